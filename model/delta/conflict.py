"""Conflict exceptions of Delta: meaning, advice on retries and changes, and facts in a pasted text.

The axioms of Delta's protocols are named after these exceptions. Their descriptions are data
(``specs/exceptions.toml``); ``CONFLICTS`` has their letters in a grid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Conflict:
    """Conflict exception: its letter in a grid, and whether its message names a partition."""

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
"""Conflict exceptions by name (DeltaConcurrentExceptions.scala, which also has their base class).
"""


COMPACTIONS = ("OPTIMIZE", "REORG", "AUTO COMPACTION")
"""Prefixes of operations that change no row."""
REPLACEMENTS = ("CREATE OR REPLACE", "REPLACE TABLE")
"""Prefixes of operations that replace every file of the table."""
Where = Literal["partition", "table"]
UNKNOWN = "unknown"
"""Engine of a text that does not identify it."""


@dataclass(frozen=True, slots=True)
class ConflictFacts:
    """Facts about one conflict; None if not known."""

    winner: str | None = None
    """Operation of the winning commit, as `winner_kind` names it."""
    blind: bool | None = None
    """True if the winning commit is marked as a blind append."""
    level: str | None = None
    """Isolation level at which the winning commit was checked."""
    version: int | None = None
    """Version that the winning commit made."""
    where: Where | None = None
    """``partition`` if a partition is named, ``table`` if none is to blame."""
    mine: str | None = None
    """Command of the job that failed."""
    engine: str = UNKNOWN
    """Engine of the job that failed, as the table of exceptions names it."""
    overwrites: bool | None = None
    """True if the winning commit is a write that replaces rows."""
    vectors: bool = False
    """True if the text or the log shows that the winning commit wrote deletion vectors."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Possible isolation levels of the table, the likelier one first."""
        if self.level in ("Serializable", "WriteSerializable"):
            return (self.level,)
        if self.engine == "Delta":  # users cannot set another level
            return ("Serializable",)
        both = ("Serializable", "WriteSerializable")
        # WriteSerializable is the default of these engines; a blind append conflicts with nothing.
        return both[::-1] if self.engine in ("Databricks", "Trino") and not self.blind else both


def winner_kind(operation: str | None, parameters: Mapping[str, Any]) -> str | None:
    """Return the operation of a commit; ``AUTO COMPACTION`` for an OPTIMIZE that Delta started.

    Examples
    --------
    >>> winner_kind("OPTIMIZE", {"auto": "true"})
    'AUTO COMPACTION'
    """
    is_auto = str(parameters.get("auto")).lower() == "true"
    return "AUTO COMPACTION" if operation == "OPTIMIZE" and is_auto else operation


def replaces_rows(operation: str | None, parameters: Mapping[str, Any]) -> bool | None:
    """Return whether a commit is a write that replaces rows; None if its fields do not say it.

    Examples
    --------
    >>> replaces_rows("WRITE", {"mode": "Overwrite"}), replaces_rows("DELETE", {})
    (True, None)
    """
    key = {"WRITE": "mode", "STREAMING UPDATE": "outputMode"}.get(operation or "", "")
    mode = parameters.get(key)
    return None if mode is None else str(mode).lower() in ("overwrite", "complete")


def has_vectors(metrics: object) -> bool:
    """Return whether the metrics of a commit count deletion vectors that it wrote.

    Examples
    --------
    >>> has_vectors({"numDeletionVectorsAdded": "2"}), has_vectors({"numDeletionVectorsRemoved": 2})
    (True, False)
    """
    if not isinstance(metrics, dict):
        return False
    counts = (v for k, v in metrics.items() if re.search("DeletionVectors(Added|Updated)$", k))
    return any(str(count) not in ("0", "None") for count in counts)


def _begins(asked: tuple[str, ...], said: str | None) -> bool:
    return (said or UNKNOWN).upper().startswith(asked)


@dataclass(frozen=True, slots=True)
class ConflictPattern:
    """Pattern of conflicts to which a sentence or an example applies.

    Each fact that it names must be known and equal.
    """

    winner: tuple[str, ...] = ()
    """Prefixes of the winner's operation, ``UNKNOWN`` among them; empty for any."""
    mine: tuple[str, ...] = ()
    """Commands of the job that failed; empty for any."""
    unless: tuple[str, ...] = ()
    """Commands of the job that failed which are excluded."""
    not_beside: tuple[str, ...] = ()
    """Prefixes of the winner's operation which are excluded."""
    engine: tuple[str, ...] = ()
    """Engines, `unknown` among them; empty for any."""
    blind: bool | None = None
    """True if the winner is a blind append."""
    level: str | None = None
    """Isolation level of the winner."""
    not_level: str | None = None
    """Isolation level of the winner that is excluded."""
    version: int | None = None
    """Version that the winner made."""
    where: Where | None = None
    """``partition`` if a partition is named, ``table`` if none is to blame."""
    overwrites: bool | None = None
    """True if the winner is a write that replaces rows."""
    vectors: bool | None = None
    """True if the winner is known to have written deletion vectors."""

    def holds(self, facts: ConflictFacts) -> bool:
        """Return whether a conflict with these facts matches.

        Examples
        --------
        >>> ConflictPattern(winner=("OPTIMIZE",)).holds(ConflictFacts(winner="OPTIMIZE"))
        True
        >>> ConflictPattern(blind=False).holds(ConflictFacts())
        False
        """
        plain = ("blind", "level", "version", "where", "overwrites", "vectors")
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
    """Sentences, and the conflicts to which they apply."""

    text: str
    when: ConflictPattern = ALWAYS
    given: str = ""
    """What `when` says, in words; empty if the sentences say it themselves."""

    def __str__(self) -> str:
        """Sentences for a reader who does not know whether they apply."""
        if not self.given:
            return self.text
        # a name in capitals, such as OPTIMIZE, keeps them
        first = self.text[0] if self.text[1].isupper() else self.text[0].lower()
        return f"If {self.given}: {first}{self.text[1:]}"


@dataclass(frozen=True, slots=True)
class ConflictExample:
    """Litmus test of the catalogue with a transaction that aborts with the exception."""

    test: str
    """Name of the litmus test."""
    under: tuple[str, ...]
    """Protocols; the first is for a table with level Serializable."""
    loser: str
    """Transaction that aborts."""
    mine: str | None = None
    """Command of that transaction."""
    winner: str | None = None
    """Operation of the winner."""
    where: Where | None = None
    """``partition`` if the message names a partition, ``table`` if it blames none."""
    blind: bool | None = None
    """True if the winner is a blind append."""
    of: str | None = None
    """Exception that it ends in, if its cause leads to several exceptions."""

    @property
    def by_level(self) -> Mapping[str, str]:
        """Protocols by the isolation level of the table."""
        return {
            "WriteSerializable" if "write-serializable" in name else "Serializable": name
            for name in self.under
        }

    def protocol(self, facts: ConflictFacts) -> str | None:
        """Return the protocol for the likeliest level of the conflict's table that the example
        covers.

        Return None if it covers none of the possible levels.
        """
        return next((self.by_level[one] for one in facts.levels if one in self.by_level), None)

    def likeness(self, facts: ConflictFacts) -> tuple[bool, ...] | None:
        """Return the features in common with a conflict, the most important first.

        Return None if the example contradicts a known fact.
        """
        winners = (self.winner, facts.winner)
        rewrites = [_begins(COMPACTIONS, one) for one in winners]
        replaces = [_begins(REPLACEMENTS, one) for one in winners]
        mine_rewrites = [_begins(COMPACTIONS, one) for one in (self.mine, facts.mine)]
        if (
            self.protocol(facts) is None
            or (None not in (self.blind, facts.blind) and self.blind != facts.blind)
            or (None not in winners and (rewrites[0] != rewrites[1] or replaces[0] != replaces[1]))
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
    """Description of one exception."""

    name: str
    """Class without its package; for exceptions of other engines, a name for it."""
    title: str
    """Event in one line."""
    check: str
    """Condition under which it is raised."""
    place: str
    """Place in the source, with its release."""
    classes: tuple[str, ...]
    """Error classes, without the part after a dot, and names of classes in other engines."""
    phrases: tuple[str, ...]
    """Phrases that identify its messages: ``…`` stands for any text, ``#`` for a number."""
    meaning: str
    """Meaning, in a few sentences."""
    retry: str
    """Advice on a retry: ``yes``, ``no``, or ``after a look``."""
    retrying: str
    """Effect of a retry, if `retries` has no sentence for the conflict."""
    changes: tuple[ConflictChange, ...]
    """Possible changes, the most suitable first."""
    examples: tuple[ConflictExample, ...] = ()
    """Litmus tests; the first is for any conflict."""
    notes: tuple[ConflictChange, ...] = ()
    """Further sentences of the meaning."""
    retries: tuple[ConflictChange, ...] = ()
    """Effect of a retry for particular conflicts."""

    @property
    def page(self) -> str:
        """Address in the documentation."""
        anchor = self.name.lower() if self.name in CONFLICTS else "other-engines"
        return f"docs/conflicts.md#{anchor}"

    def means(self, facts: ConflictFacts) -> str:
        """Return the meaning for one conflict."""
        return " ".join([self.meaning, *(one.text for one in self.notes if one.when.holds(facts))])

    def retried(self, facts: ConflictFacts) -> str:
        """Return the effect of a retry for one conflict."""
        said = (one.text for one in self.retries if one.when.holds(facts))
        return next(said, self.retrying)

    def advice(self, facts: ConflictFacts) -> tuple[str, ...]:
        """Return the possible changes for one conflict."""
        return tuple(one.text for one in self.changes if one.when.holds(facts))

    def example(self, facts: ConflictFacts) -> ConflictExample | None:
        """Return the example that is most similar to one conflict.

        Return None if each example contradicts a known fact, or if both commands are known and the
        example has neither of them.
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
    """Cause of an exception, such as the part of an error class after its dot."""

    name: str
    """Name in the error class, or a name for it."""
    of: tuple[str, ...]
    """Exceptions that have this cause."""
    engine: tuple[str, ...]
    """Engines on which it exists; empty for any."""
    phrases: tuple[str, ...]
    """Phrases that identify it, in addition to its name."""
    winner: tuple[str, ...]
    """Prefixes of operations of the winning commit that identify it."""
    instead: Mapping[str, Any]
    """Fields of the exception that it replaces."""

    def is_shown_by(self, winner: str | None) -> bool:
        """Return whether the operation of the winning commit is enough to identify the cause."""
        return bool(self.winner) and _begins(self.winner, winner)

    def of_exception(self, known: ConflictException) -> ConflictException:
        """Return the description of an exception with this cause."""
        examples = [one for one in self.instead["examples"] if one.of in (None, known.name)]
        return replace(known, **{**self.instead, "examples": tuple(examples)})


@dataclass(frozen=True, slots=True)
class PastedError:
    """Error in a text, other than a conflict of two commits to a Delta table."""

    name: str
    """Error class or class; empty if the text does not name it."""
    format: str
    """Table format or database whose conflict of commits it is; empty if it is none."""
    says: str
    """Description."""
    change: str
    """Advice; empty if there is none."""
    versions: Mapping[str, int]
    """Versions in the text, by what they are."""


@dataclass(frozen=True, slots=True)
class PastedException(ReadableRepr):
    """Facts in the text of an exception, as far as the text is understood."""

    name: str
    """Class without its package."""
    error_class: str | None = None
    """Error class, with the part after its dot."""
    condition: str | None = None
    """Cause, as the table of exceptions names it."""
    engine: str = UNKNOWN
    """Engine that wrote the text; if the text does not show it, that of the winning commit."""
    is_engine_of_winner: bool = False
    """True if only the winning commit shows the engine."""
    table: str | None = None
    """Table, as the message names it."""
    version: int | None = None
    """Version that the winning commit made."""
    operation: str | None = None
    """Operation of the winning commit."""
    partition: str | None = None
    """Partition that is named, such as ``day=3``."""
    everywhere: bool = False
    """True if the text blames the whole table instead of a partition."""
    file: str | None = None
    """File that is named."""
    domain: str | None = None
    """Metadata domain that is named."""
    commit: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the winning commit, as in its ``commitInfo``."""
    mine: str | None = None
    """Command of the job that failed."""
    told: str | None = None
    """Source of that command: ``stack trace`` or ``text``."""
    others: tuple[str, ...] = ()
    """Further exceptions in the text."""

    @property
    def sub_condition(self) -> str:
        """Part of the error class after its dot; empty if there is none."""
        return (self.error_class or "").partition(".")[2]

    @property
    def facts(self) -> ConflictFacts:
        """Facts about the conflict that the text alone gives."""
        blind, level = self.commit.get("isBlindAppend"), self.commit.get("isolationLevel")
        named = self.partition is not None
        # a file of a partition is in the folder of the partition
        nowhere = self.everywhere or self.sub_condition == "WITHOUT_HINT"
        nowhere |= self.file is not None and "/" not in self.file
        parameters = self.commit.get("operationParameters") or {}
        return ConflictFacts(
            winner_kind(self.operation, parameters),
            blind if isinstance(blind, bool) else None,
            level if isinstance(level, str) else None,
            self.version,
            "partition" if named else "table" if nowhere else None,
            self.mine,
            self.engine,
            replaces_rows(self.operation, parameters),
            has_vectors(self.commit.get("operationMetrics")),
        )

    def __repr__(self) -> str:
        return self.error_class or self.name
