"""Engine that runs litmus tests, as a record of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from isolitmus.model.errors import UnknownName, near

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run, TransactionRun
    from isolitmus.model.schedule import Step
    from isolitmus.model.spec import Spec


@dataclass(frozen=True, slots=True)
class RunsTests:
    """Started engine that runs litmus tests."""

    version: str
    """Version of the engine, as recorded in its runs and in stored runs."""
    carry: Callable[[Litmus, Spec], Run]
    """Function that runs a litmus test under a protocol."""

    def __call__(self, litmus: Litmus, spec: Spec) -> Run:
        """Run a litmus test under a protocol."""
        return self.carry(litmus, spec)


class RunsTransactions(Protocol):
    """Engine that runs single transactions next to those of another engine."""

    def take(self, step: Step, /) -> None:
        """Execute one step of a schedule."""

    def observed(self, name: str, /) -> TransactionRun:
        """Return the outcome of a transaction."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Engine that runs litmus tests of a format and reports what happened.

    Each run marks as unspecified what the engine cannot observe (``model.run``).
    """

    name: str
    """Name on the command line and in results."""
    title: str
    """Description in one line."""
    open: Callable[[], AbstractContextManager[RunsTests]]
    """Start the engine for the duration of the block; EngineUnavailable, with the remedy, if that
    fails.
    """
    product: str = ""
    """Name in messages; empty for ``name``."""
    format: str | None = None
    """Name of the format whose commit check the engine has (``model.format``); it runs every format
    with the same log. None for any format.
    """
    protocols: tuple[str, ...] | None = None
    """Protocols that the engine implements; None for all."""
    refusal: Callable[[str], str] | None = None
    """Return why the engine does not implement a protocol outside of ``protocols``; "" if it does.
    None if it implements no others.
    """
    at_once: int = 1
    """Default number of litmus tests that run at a time; 1 if never more."""
    hosts: bool = False
    """True if transactions of other writers of its log may run next to its own, on one table."""
    join: Callable[..., AbstractContextManager[RunsTransactions]] | None = None
    """Run single transactions on tables that another engine made, for the duration of the block.

    Takes a litmus test, a protocol, and the paths of the tables, whose commits are recorded in a
    chronicle. None if the engine cannot do this.
    """
    ready: Callable[[], object] | None = None
    """Raise EngineUnavailable, with the remedy, if a prerequisite is missing; starts nothing."""
    install: Callable[[], Path] | None = None
    """Install what the engine needs or what speeds up its start, and return its path; None if there
    is nothing to install.
    """

    def most(self, at_once: int | None = None) -> int:
        """Return the number of litmus tests that run at a time if `at_once` are requested (None:
        default).
        """
        return (at_once or self.at_once) if self.at_once > 1 else 1

    def implements(self, protocol: str) -> bool:
        """Return whether the engine implements the protocol of this name."""
        if self.protocols is None or protocol in self.protocols:
            return True
        return self.refusal is not None and not self.refusal(protocol)

    def refuse_unable(self, protocol: str) -> None:
        """Raise UnknownName, with a suggestion, unless the engine implements `protocol`."""
        if not self.implements(protocol):
            reason = self.refusal(protocol) if self.refusal is not None else ""
            raise UnknownName(
                f"{self.product or self.name} does not implement the protocol '{protocol}'"
                f"{f': {reason}' if reason else near(protocol, self.protocols or ())}"
            )
