"""What a statement was resolved from, so that it can be resolved again on tables that were altered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["Origin", "Resolved"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The ``syntax`` of a statement, which is the business of those who read it, and the ``tables`` as
    they were when its names were resolved.
    """

    syntax: Any
    tables: Mapping[str, Schema]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Resolved(Command):
    """A statement whose names have been resolved: two are the same if they do the same, wherever they
    come from.
    """

    origin: Origin | None = field(default=None, compare=False)
