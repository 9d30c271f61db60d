"""Who resolves which statements: a reader says so beside its method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.statement import Statement

__all__ = ["Kind", "kinds", "resolves"]

Head = str | type[exp.Expr]
Method = TypeVar("Method", bound=Callable[..., Any])


class Kind(NamedTuple):
    """Who resolves a kind of statement, and how; that of a tree is handed the tree."""

    reader: Callable[..., Any]
    resolve: Callable[..., Statement]


def resolves(*heads: Head) -> Callable[[Method], Method]:
    """Say of a reader's method that it resolves these statements, by the class of their tree or, for what
    sqlglot hides in a Command or cannot parse, by their first word.

    >>> class Reader:
    ...     @resolves("GENERATE")
    ...     def manifest(self): ...
    >>> kinds(Reader)["GENERATE"].resolve is Reader.manifest
    True
    """

    def said(method: Method) -> Method:
        method.__dict__["resolves"] = heads
        return method

    return said


def kinds(*readers: type) -> Mapping[Head, Kind]:
    """What all these readers resolve."""
    return {
        head: Kind(reader, method)
        for reader in readers
        for method in vars(reader).values()
        for head in getattr(method, "resolves", ())
    }
