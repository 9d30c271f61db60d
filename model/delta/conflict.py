"""Conflicts of Delta: the exceptions, what each means, what to do, and what a text says of one.

Exceptions of an aborted commit: what each means, what to do, and what a pasted text says of one.

The table of them is data (``specs/exceptions.toml``); their letters in a grid stand in
``model.delta.conflict``.

What Delta calls its conflicts: the exceptions that axioms of its protocols are named after.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONFLICTS",
    "Conflict",
    "ConflictChange",
    "ConflictCondition",
    "ConflictExample",
    "ConflictException",
    "ConflictFacts",
    "ConflictPattern",
    "PastedException",
]


@dataclass(frozen=True, slots=True)
class Conflict:
    """An exception: the letter that stands for it in a grid, and whether its message names a
    partition.
    """

    letter: str
    hinted: bool = False


CONFLICTS: Mapping[str, Conflict] = {
    "ConcurrentAppendException": Conflict("A", hinted=True),
    "ConcurrentDeleteReadException": Conflict("R", hinted=True),
    "ConcurrentDeleteDeleteException": Conflict("D", hinted=True),
    "ConcurrentTransactionException": Conflict("T"),
    "ConcurrentWriteException": Conflict("W"),
    "MetadataChangedException": Conflict("M"),
    "ProtocolChangedException": Conflict("P"),
}
"""By name (DeltaConcurrentExceptions.scala, which has the class that they share besides)."""


COMPACTIONS = ("OPTIMIZE", "REORG", "AUTO COMPACTION")
"""Beginnings of operations that change no row."""
Where = Literal["partition", "table"]
UNKNOWN = "unknown"
"""The engine of a text that does not tell it."""


@dataclass(frozen=True, slots=True)
class ConflictFacts:
    """Facts about one conflict; None: not known."""

    winner: str | None = None
    """Operation of the winning commit, as the log names it."""
    blind: bool | None = None
    """Whether the winning commit calls itself a blind append."""
    level: str | None = None
    """Isolation level at which the winning commit was checked."""
    version: int | None = None
    """Version that the winning commit made."""
    where: Where | None = None
    """Whether a partition is named, or said to be none."""
    mine: str | None = None
    """Command of the job that failed."""
    engine: str = UNKNOWN
    """Engine of the job that failed, as the table of exceptions names it."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels that the table may have, the likelier first."""
        if self.level in ("Serializable", "WriteSerializable"):
            return (self.level,)
        if self.engine == "Delta":  # a user can set no other
            return ("Serializable",)
        both = ("Serializable", "WriteSerializable")
        # At WriteSerializable, the default of these, a blind append conflicts with nothing.
        return both[::-1] if self.engine in ("Databricks", "Trino") and not self.blind else both


def _begins(asked: tuple[str, ...], said: str | None) -> bool:
    return (said or "").upper().startswith(asked)


@dataclass(frozen=True, slots=True)
class ConflictPattern:
    """The conflicts that a sentence or an example is for: each fact that it names must be known,
    and equal.
    """

    winner: tuple[str, ...] = ()
    """Beginnings of the winner's operation; empty: any."""
    mine: tuple[str, ...] = ()
    """Commands of the job that failed; empty: any."""
    unless: tuple[str, ...] = ()
    """Commands of that job which it is not for."""
    not_beside: tuple[str, ...] = ()
    """Beginnings of the winner's operation which it is not for."""
    engine: tuple[str, ...] = ()
    """Its engines, among them `unknown`; empty: any."""
    blind: bool | None = None
    """Whether the winner is a blind append."""
    level: str | None = None
    """The winner's level."""
    not_level: str | None = None
    """The winner's level that it is not for."""
    version: int | None = None
    """The version that the winner made."""
    where: Where | None = None
    """Whether a partition is named."""

    def holds(self, facts: ConflictFacts) -> bool:
        """Whether a conflict is one of these.

        >>> ConflictPattern(winner=("OPTIMIZE",)).holds(ConflictFacts(winner="OPTIMIZE"))
        True
        >>> ConflictPattern(blind=False).holds(ConflictFacts())
        False
        """
        plain = ("blind", "level", "version", "where")
        if any(getattr(self, k) not in (None, getattr(facts, k)) for k in plain):
            return False
        if (self.engine and facts.engine not in self.engine) or _begins(self.unless, facts.mine):
            return False
        if _begins(self.not_beside, facts.winner) or self.not_level == (facts.level or ""):
            return False
        named = ((self.winner, facts.winner), (self.mine, facts.mine))
        return all(not asked or _begins(asked, said) for asked, said in named)


ALWAYS = ConflictPattern()


@dataclass(frozen=True, slots=True)
class ConflictChange:
    """A sentence or more, and the conflicts that it is said of."""

    text: str
    when: ConflictPattern = ALWAYS


@dataclass(frozen=True, slots=True)
class ConflictExample:
    """A litmus test of the catalogue whose transaction ends in the exception, and what it is an
    example of.
    """

    test: str
    """Its name."""
    under: tuple[str, ...]
    """Protocols, the first for a table that is Serializable."""
    loser: str
    """The transaction that aborts."""
    mine: str | None = None
    """Its command."""
    winner: str | None = None
    """Operation of the winner."""
    where: Where | None = None
    """Whether the message names a partition."""
    blind: bool | None = None
    """Whether the winner is a blind append."""
    of: str | None = None
    """Of a cause of several exceptions, the one that it ends in."""

    @property
    def by_level(self) -> Mapping[str, str]:
        """Its protocols by the level of the table."""
        return {
            "WriteSerializable" if "write-serializable" in name else "Serializable": name
            for name in self.under
        }

    def protocol(self, facts: ConflictFacts) -> str | None:
        """The protocol of the level that a conflict's table has; None if it is no example at that
        level.
        """
        return next((self.by_level[one] for one in facts.levels if one in self.by_level), None)

    def likeness(self, facts: ConflictFacts) -> tuple[bool, ...] | None:
        """What it has in common with a conflict, the most important first; None if it contradicts
        what is known.
        """
        rewrites = [_begins(COMPACTIONS, one) for one in (self.winner, facts.winner)]
        mine_rewrites = [_begins(COMPACTIONS, one) for one in (self.mine, facts.mine)]
        if (
            self.protocol(facts) is None
            or (None not in (self.blind, facts.blind) and self.blind != facts.blind)
            or (None not in (self.winner, facts.winner) and rewrites[0] != rewrites[1])
            or (None not in (self.mine, facts.mine) and mine_rewrites[0] != mine_rewrites[1])
        ):
            return None
        mine = self.mine is not None and _begins((self.mine,), facts.mine)
        winner = self.winner is not None and _begins((self.winner,), facts.winner)
        where = self.where is not None and self.where == facts.where
        likely = facts.levels[0] in self.by_level
        return mine and winner, likely, winner, mine, where


@dataclass(frozen=True, slots=True)
class ConflictException(ReadableRepr):
    """One of the exceptions."""

    name: str
    """Its class, without its package; of one that other engines raise, a name for it."""
    title: str
    """What has happened, in a line."""
    check: str
    """When it is raised."""
    place: str
    """Where, in which release's source."""
    classes: tuple[str, ...]
    """Its error classes, without what comes after a dot, and names of classes elsewhere."""
    phrases: tuple[str, ...]
    """Words by which its messages are known: ``…`` stands for any text, ``#`` for a number."""
    meaning: str
    """What it means, in a few sentences."""
    retry: str
    """Whether to run the statement again: ``yes``, ``no``, or ``after a look``."""
    retrying: str
    """What that does, if `retries` says nothing of the conflict."""
    changes: tuple[ConflictChange, ...]
    """What can be changed, what fits best first."""
    examples: tuple[ConflictExample, ...] = ()
    """Litmus tests; the first is for any conflict."""
    notes: tuple[ConflictChange, ...] = ()
    """Further sentences of the meaning."""
    retries: tuple[ConflictChange, ...] = ()
    """What a retry does, of some conflicts."""

    @property
    def page(self) -> str:
        """Where the pages have it."""
        anchor = self.name.lower() if self.name in CONFLICTS else "other-engines"
        return f"docs/conflicts.md#{anchor}"

    def means(self, facts: ConflictFacts) -> str:
        """What it means of one conflict."""
        return " ".join([self.meaning, *(one.text for one in self.notes if one.when.holds(facts))])

    def retried(self, facts: ConflictFacts) -> str:
        """What a retry does, of one conflict."""
        said = (one.text for one in self.retries if one.when.holds(facts))
        return next(said, self.retrying)

    def advice(self, facts: ConflictFacts) -> tuple[str, ...]:
        """What can be changed about one conflict."""
        return tuple(one.text for one in self.changes if one.when.holds(facts))

    def example(self, facts: ConflictFacts) -> ConflictExample | None:
        """The example that is most like one conflict; None if each contradicts what is known of it,
        or has neither of two commands that are known.
        """
        alike = [(one.likeness(facts), one) for one in self.examples]
        known = [(likeness, one) for likeness, one in alike if likeness is not None]
        if not known:
            return None
        likeness, best = max(known, key=lambda pair: pair[0])
        told = facts.mine is not None and facts.winner is not None
        return None if told and not any(likeness[2:4]) else best

    def __repr__(self) -> str:
        return f"{self.name}: {self.title}"


@dataclass(frozen=True, slots=True)
class ConflictCondition:
    """A cause of an exception, such as the part of an error class after its dot, with what it says
    instead.
    """

    name: str
    """As in the error class, or a name for it."""
    of: tuple[str, ...]
    """Exceptions that have it."""
    engine: tuple[str, ...]
    """Engines on which it is this; empty: any."""
    phrases: tuple[str, ...]
    """Words by which it is known, beside its name."""
    instead: Mapping[str, Any]
    """Fields of the exception that it replaces."""

    def of_exception(self, known: ConflictException) -> ConflictException:
        """What is known of an exception with this cause."""
        examples = [one for one in self.instead["examples"] if one.of in (None, known.name)]
        return replace(known, **{**self.instead, "examples": tuple(examples)})


@dataclass(frozen=True, slots=True)
class PastedException(ReadableRepr):
    """What the text of an exception says, as far as it is understood."""

    name: str
    """Its class, without its package."""
    error_class: str | None = None
    """Its error class, with what comes after the dot."""
    condition: str | None = None
    """Its cause, as the table of exceptions names it."""
    engine: str = UNKNOWN
    """The engine whose text it is."""
    table: str | None = None
    """The table, as the message names it."""
    version: int | None = None
    """The version that the winning commit made."""
    operation: str | None = None
    """What the winning commit did."""
    partition: str | None = None
    """The partition that is named, such as ``day=3``."""
    everywhere: bool = False
    """Whether it says that no partition is to blame but the table."""
    file: str | None = None
    """A file that is named."""
    domain: str | None = None
    """The metadata domain that is named."""
    commit: Mapping[str, Any] = field(default_factory=dict)
    """What is said of the winning commit, as in its ``commitInfo``."""
    mine: str | None = None
    """The command of the job that failed."""
    told: str | None = None
    """What tells that command: its ``stack trace``, or its ``text``."""
    others: tuple[str, ...] = ()
    """Further exceptions in the text."""

    @property
    def sub_condition(self) -> str:
        """What comes after the dot of the error class; nothing if nothing does."""
        return (self.error_class or "").partition(".")[2]

    @property
    def facts(self) -> ConflictFacts:
        """What is known of the conflict by the text alone."""
        blind, level = self.commit.get("isBlindAppend"), self.commit.get("isolationLevel")
        named = self.partition is not None
        nowhere = self.everywhere or self.sub_condition == "WITHOUT_HINT"
        return ConflictFacts(
            self.operation,
            blind if isinstance(blind, bool) else None,
            level if isinstance(level, str) else None,
            self.version,
            "partition" if named else "table" if nowhere else None,
            self.mine,
            self.engine,
        )

    def __repr__(self) -> str:
        return self.error_class or self.name
