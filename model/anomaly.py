"""Anomalies by name: synonyms, definition, and the litmus tests in which each can be seen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TransactionKind = Literal["statements", "clients", "scans"]
"""What a transaction is in a test: one statement of Delta; a client that reads, then writes; or
several statements under locks.
"""
IN_PARENTHESES = re.compile(r"\([^()]*\)")
BETWEEN_WORDS = re.compile(r"[\W_]+")


def plain_name(name: str) -> str:
    """Return a name without case, spaces, punctuation and what is in parentheses.

    Examples
    --------
    >>> plain_name("Write skew (G2-item)"), plain_name("WriteSerializable"), plain_name("G2-item")
    ('writeskew', 'writeserializable', 'g2item')
    """
    return BETWEEN_WORDS.sub("", IN_PARENTHESES.sub("", name)).lower()


@dataclass(frozen=True, slots=True)
class AnomalyTest:
    """Litmus test that shows an anomaly on engines that allow it."""

    litmus: str
    """Name of the litmus test."""
    kind: TransactionKind
    when: str = ""
    """Condition under which it shows the anomaly; empty if it needs none."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What can go wrong in a history, by the names that people use.

    Examples
    --------
    >>> from isolitmus.specs.files.anomaly_file import anomaly
    >>> skew = anomaly("A5B")
    >>> skew.name, skew.title, skew.history, str(skew.absent)
    ('write-skew', 'Write skew', 'history-write-skew', 'irreflexive rw ; rw')
    """

    name: str
    title: str
    synonyms: tuple[str, ...]
    means: str
    """Definition, by transactions T1, T2, …"""
    source: str
    absent: str
    """Axiom of cat that forbids it, and perhaps more; empty if it has none of relations."""
    history: str
    """Name of its smallest abstract history; empty if it has none."""
    heading: str
    """Heading of its column in the table of engines; empty if it has no column."""
    cycles: tuple[str, ...]
    """Names that a verdict gives to it."""
    levels: tuple[str, ...]
    """Levels whose verdict on a run shows it."""
    unexplained: bool
    """True if it shows in a table that no serial order produces."""
    tests: tuple[AnomalyTest, ...]
    no_run: str
    """Why no engine was run, if it has no test."""

    @property
    def names(self) -> tuple[str, ...]:
        """All its names, as ``plain_name`` gives them."""
        return tuple(dict.fromkeys(map(plain_name, (self.name, self.title, *self.synonyms))))


@dataclass(frozen=True, slots=True)
class EngineLevel:
    """Row of the table of engines: an engine at a level, or what a text says of one."""

    title: str
    protocol: str
    transaction: TransactionKind
    engine: str
    """Engine whose recorded runs count; empty if the row is of a text."""
    release: str
    """How the version of a recorded run has to begin, up to a point or comma."""
    text: str
    """Title of the text; empty if an engine was run."""
