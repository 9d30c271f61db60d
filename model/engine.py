"""An engine: what carries litmus tests out, as a record of functions."""

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

__all__ = ["Engine", "RunsTests", "RunsTransactions"]


@dataclass(frozen=True, slots=True)
class RunsTests:
    """An engine that was started: carries litmus tests out."""

    version: str
    """What its runs say it is, and what is kept of them."""
    carry: Callable[[Litmus, Spec], Run]
    """What happens to a litmus test under a protocol."""

    def __call__(self, litmus: Litmus, spec: Spec) -> Run:
        """What happens to a litmus test under a protocol."""
        return self.carry(litmus, spec)


class RunsTransactions(Protocol):
    """Carries single transactions out, among those of another engine."""

    def take(self, step: Step, /) -> None:
        """Carry out the step of a schedule."""

    def observed(self, name: str, /) -> TransactionRun:
        """What became of a transaction."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What carries litmus tests of a format out and says what happened; of what it cannot tell,
    each run says that it is unsaid (``model.run``).
    """

    name: str
    """What the command line and results call it."""
    title: str
    """What it is, in one line."""
    open: Callable[[], AbstractContextManager[RunsTests]]
    """Starts it, for as long as the block lasts; EngineUnavailable, with the remedy, if it
    cannot.
    """
    product: str = ""
    """What messages call it; empty: its name."""
    format: str | None = None
    """The name of the format whose commit check it has (``model.format``); it carries out what
    shares that one's log. None: any."""
    protocols: tuple[str, ...] | None = None
    """The protocols that it implements. None: any."""
    at_once: int = 1
    """So many litmus tests at a time where nobody says; 1: never more."""
    hosts: bool = False
    """Whether transactions of other writers of its log may be among its own, on one table."""
    join: Callable[..., AbstractContextManager[RunsTransactions]] | None = None
    """Carries single transactions out on tables that another engine made, for as long as the block
    lasts: of a litmus test, under a protocol, on the tables at some paths, whose commits a
    chronicle takes up. None: it cannot."""
    ready: Callable[[], object] | None = None
    """EngineUnavailable, with the remedy, if what it needs is not there; starts nothing."""
    install: Callable[[], Path] | None = None
    """Makes what it needs, or what makes its start faster, and says where; None if there is
    nothing.
    """

    def most(self, at_once: int | None = None) -> int:
        """How many litmus tests it carries out at a time if so many are asked for; None: nobody
        says.
        """
        return (at_once or self.at_once) if self.at_once > 1 else 1

    def implements(self, protocol: str) -> bool:
        """Whether it implements the protocol of a name."""
        return self.protocols is None or protocol in self.protocols

    def refuse_unable(self, protocol: str) -> None:
        """UnknownName, with the near miss, for a protocol that it does not implement."""
        if not self.implements(protocol):
            raise UnknownName(
                f"{self.product or self.name} does not implement the protocol '{protocol}'"
                f"{near(protocol, self.protocols or ())}"
            )
