"""The exceptions of a refused commit: what each means, what to do, and what a pasted one says.

The table of them is data (``specs/exceptions.toml``); their letters in a grid stand in ``model.conflict``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.readable import Readable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ConflictChange",
    "ConflictExample",
    "ConflictException",
    "ConflictFacts",
    "PastedException",
    "When",
]

Where = Literal["partition", "table"]
Wording = Literal["Delta", "Databricks", "delta-rs"]


@dataclass(frozen=True, slots=True)
class ConflictFacts:
    """What is known of one conflict; None: it is not."""

    winner: str | None = None
    """The operation of the commit that stopped the other, as its log names it."""
    blind: bool | None = None
    """Whether that commit calls itself a blind append."""
    level: str | None = None
    """The level that it was checked at."""
    version: int | None = None
    """The version that it made."""
    where: Where | None = None
    """Whether a partition is named, or none is."""
    mine: str | None = None
    """What the refused job was."""


@dataclass(frozen=True, slots=True)
class When:
    """When a piece of advice or an example is for a conflict: all that it names must be known, and so."""

    winner: tuple[str, ...] = ()
    """With what the winner's operation begins; nothing: any."""
    mine: tuple[str, ...] = ()
    """What the refused job is; nothing: any."""
    blind: bool | None = None
    """Whether the winner is a blind append."""
    level: str | None = None
    """The winner's level."""
    version: int | None = None
    """The version that the winner made."""
    where: Where | None = None
    """Whether a partition is named."""

    def holds(self, facts: ConflictFacts) -> bool:
        """Whether a conflict is one of these.

        >>> When(winner=("OPTIMIZE",)).holds(ConflictFacts(winner="OPTIMIZE"))
        True
        >>> When(blind=False).holds(ConflictFacts())
        False
        """
        plain = ("blind", "level", "version", "where")
        if any(getattr(self, k) not in (None, getattr(facts, k)) for k in plain):
            return False
        named = ((self.winner, facts.winner), (self.mine, facts.mine))
        return all(not asked or (said or "").upper().startswith(asked) for asked, said in named)


ALWAYS = When()


@dataclass(frozen=True, slots=True)
class ConflictChange:
    """One thing that can be changed, a sentence or more, and of which conflicts it is said."""

    text: str
    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class ConflictExample:
    """A litmus test of the catalogue, a protocol, and the transaction in it that is refused."""

    test: str
    under: str
    loser: str
    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class ConflictException(Readable):
    """One of Delta's exceptions."""

    name: str
    """Its class, without its package."""
    title: str
    """What has happened, in a line."""
    check: str
    """When Delta raises it."""
    place: str
    """Where, in its source."""
    classes: tuple[str, ...]
    """Its error classes, without what comes after a dot."""
    phrases: tuple[str, ...]
    """Words by which its messages are known: of Delta's releases, of Databricks, of delta-rs."""
    meaning: str
    """What it means, in a few sentences."""
    retry: str
    """Whether to run the statement again: ``yes``, ``no``, or ``after a look``."""
    retrying: str
    """What that does."""
    changes: tuple[ConflictChange, ...]
    """What can be changed."""
    examples: tuple[ConflictExample, ...]
    """Litmus tests; the last is for any conflict."""

    @property
    def page(self) -> str:
        """Where the pages have it."""
        return f"docs/conflicts.md#{self.name.lower()}"

    def advice(self, facts: ConflictFacts) -> tuple[str, ...]:
        """What can be changed about one conflict."""
        return tuple(one.text for one in self.changes if one.when.holds(facts))

    def example(self, facts: ConflictFacts) -> ConflictExample:
        """The example that is like one conflict."""
        return next(one for one in self.examples if one.when.holds(facts))

    def __repr__(self) -> str:
        return f"{self.name}: {self.title}"


@dataclass(frozen=True, slots=True)
class PastedException(Readable):
    """What the text of an exception says, as far as it is understood."""

    name: str
    """Its class, without its package."""
    error_class: str | None = None
    """Its error class, with what comes after the dot."""
    wording: Wording = "Delta"
    """Whose words they are."""
    table: str | None = None
    """The table, as the message names it."""
    version: int | None = None
    """The version that the other commit made."""
    operation: str | None = None
    """What the other commit did."""
    partition: str | None = None
    """The partition that is named, such as ``day=3``."""
    everywhere: bool = False
    """Whether it says that no partition is to blame but the table."""
    file: str | None = None
    """A file that is named."""
    commit: Mapping[str, Any] = field(default_factory=dict)
    """What is said of the other commit, as in its ``commitInfo``."""
    mine: str | None = None
    """What the refused job was, by its stack trace."""
    others: tuple[str, ...] = ()
    """Further exceptions in the text."""

    @property
    def hint(self) -> str:
        """What comes after the dot of the error class; nothing if nothing does."""
        return (self.error_class or "").partition(".")[2]

    @property
    def facts(self) -> ConflictFacts:
        """What is known of the conflict by the text alone."""
        blind, level = self.commit.get("isBlindAppend"), self.commit.get("isolationLevel")
        named = self.partition is not None
        nowhere = self.everywhere or self.hint == "WITHOUT_HINT"
        return ConflictFacts(
            self.operation,
            blind if isinstance(blind, bool) else None,
            level if isinstance(level, str) else None,
            self.version,
            "partition" if named else "table" if nowhere else None,
            self.mine,
        )

    def __repr__(self) -> str:
        return self.error_class or self.name
