"""The verb ``portray``: what a protocol promises, how far it keeps it, what it aborts for nothing.

Nothing here is written by hand: every sentence is the answer of a search or of a count, with its bound,
and every history in it was executed and judged anew. A needless abort is one of a history that the
promised level admits; it is asked for each exception that the protocol can raise, with the exceptions
that stand before it in the file kept silent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.running.execute import execute, observe
from isolitmus.checker.separation import separate
from isolitmus.checker.sweep import planned, tallied
from isolitmus.model.combine import together, with_axioms
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.catalogue import level, protocol, relatives, scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.separation import Separation
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Spec

    Tell = Callable[[str], None]

__all__ = ["Abort", "Portrait", "Promise", "Share", "needless", "portray"]

UNIVERSE = "table"
SCOPES = ("two-partitions", "writers-partitioned", "writers-unpartitioned")
"""The scopes in which the shares are counted."""
SECONDS = 60.0
"""After so long a single search is unknown."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A level that a protocol promises: the smallest history that it admits all the same, the smallest
    that no serial order explains either, and what other protocols do to that history.
    """

    level: str
    hole: Separation
    unexplained: Separation | None
    elsewhere: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Abort:
    """The smallest needless abort with an exception: what admits it, protocols and layouts.

    ``raised`` False: nothing in the universe raises the exception at all. ``layouts`` are, by what they
    are called, the same history on other layouts of the table in which the protocol aborts nothing.
    """

    exception: str
    level: str
    found: Separation
    raised: bool
    elsewhere: Mapping[str, Mapping[str, str]]
    layouts: Mapping[str, Litmus]


@dataclass(frozen=True, slots=True)
class Share:
    """Of a scope's candidates with n transactions: how many the level allows and of those how many
    the protocol aborts; how many the protocol admits and of those how many the level forbids.
    """

    scope: str
    transactions: int
    level: str
    allowed: int
    aborted: int
    admitted: int
    broken: int


@dataclass(frozen=True, slots=True)
class Portrait:
    """A protocol's promises, needless aborts and shares."""

    protocol: str
    universe: str
    promises: tuple[Promise, ...]
    aborts: tuple[Abort, ...]
    shares: tuple[Share, ...]

    def to_json(self) -> dict[str, object]:
        """Everything, the histories as litmus files."""
        return {
            "promises": [
                {
                    "level": p.level,
                    "kept": None if p.hole.found is None else not p.hole.found,
                    "hole": p.hole.to_json(),
                    "unexplained": None if p.unexplained is None else p.unexplained.to_json(),
                    "elsewhere": {name: dict(outcomes) for name, outcomes in p.elsewhere.items()},
                }
                for p in self.promises
            ],
            "needless": [
                {
                    "exception": a.exception,
                    "level": a.level,
                    "abort": a.found.to_json(),
                    "raised": a.raised,
                    "elsewhere": {name: dict(outcomes) for name, outcomes in a.elsewhere.items()},
                    "layouts": list(a.layouts),
                }
                for a in self.aborts
            ],
            "shares": [
                {
                    "scope": s.scope,
                    "transactions": s.transactions,
                    "level": s.level,
                    "allowed": s.allowed,
                    "aborted": s.aborted,
                    "admitted": s.admitted,
                    "forbidden": s.broken,
                }
                for s in self.shares
            ],
        }


def portray(spec: Spec, tell: Tell = lambda _: None) -> Portrait:
    """Search and count; ``tell`` is told what is being asked.

    >>> from isolitmus.specs import protocol
    >>> seen = portray(protocol("delta-write-serializable-repaired"))
    >>> [(promise.level, promise.hole.found) for promise in seen.promises]
    [('write-serializable', False)]
    >>> [(abort.exception, abort.found.transactions) for abort in seen.aborts if abort.found.found]
    [('ConcurrentAppendException', 2), ('ConcurrentDeleteReadException', 2)]
    """
    promises: list[Promise] = []
    aborts: list[Abort] = []
    shares: list[Share] = []
    for promised in map(level, spec.promises):
        tell(f"what it admits against {promised.name}")
        promises.append(_promise(spec, promised))
        for name in dict.fromkeys(axiom.name for axiom in spec.axioms):
            tell(f"{name} for nothing")
            aborts.append(_abort(spec, promised, name))
        for name in SCOPES:
            shares += _shares(spec, promised, name, tell)
    return Portrait(spec.name, UNIVERSE, tuple(promises), tuple(aborts), tuple(shares))


def _promise(spec: Spec, promised: Spec) -> Promise:
    hole = separate(spec, promised, scope(UNIVERSE), seconds=SECONDS)
    if not hole.found:
        return Promise(promised.name, hole, None, {})
    worst = separate(spec, promised, scope(UNIVERSE), unexplained=True, seconds=SECONDS)
    litmus = (worst if worst.found else hole).litmus
    assert isinstance(litmus, Litmus)
    return Promise(promised.name, hole, worst, _elsewhere(litmus, spec))


def _abort(spec: Spec, promised: Spec, exception: str) -> Abort:
    silent, alone = needless(spec, promised, exception)
    found = separate(silent, alone, scope(UNIVERSE), seconds=SECONDS)
    litmus = found.litmus
    if not isinstance(litmus, Litmus):
        anything = with_axioms(spec, [], "anything")
        ever = separate(anything, alone, scope(UNIVERSE), seconds=SECONDS).found is not False
        return Abort(exception, promised.name, found, ever, {}, {})
    layouts = dict(_layouts(litmus, spec))
    return Abort(exception, promised.name, found, True, _elsewhere(litmus, spec), layouts)


def needless(spec: Spec, promised: Spec, exception: str) -> tuple[Spec, Spec]:
    """Two specs: what the first admits and the second forbids is a needless abort with the exception.
    The first is the level with the checks that stand before the exception, the second the exception's.
    """
    names = [axiom.name for axiom in spec.axioms]
    before = spec.axioms[: names.index(exception)]
    silent = together(promised, with_axioms(spec, before, ""), promised.name)
    return silent, with_axioms(spec, [a for a in spec.axioms if a.name == exception], spec.name)


def _elsewhere(litmus: Litmus, spec: Spec) -> dict[str, dict[str, str]]:
    """The outcomes of the transactions under the other protocols of the same engine."""
    others = (name for name in relatives(spec.name) if name != spec.name)
    return {name: _outcomes(litmus, protocol(name)) for name in others}


def _outcomes(litmus: Litmus, spec: Spec) -> dict[str, str]:
    run = observe(litmus, execute(litmus, spec), spec.name)
    return {name: transaction.outcome for name, transaction in run.transactions.items()}


def _layouts(litmus: Litmus, spec: Spec) -> Iterator[tuple[str, Litmus]]:
    """The history on other layouts of its tables, if the protocol aborts nothing there."""
    columns = sorted({c.name for schema in litmus.tables.values() for c in schema.columns})
    changes: tuple[tuple[str, Callable[[Schema], Schema]], ...] = (
        ("not partitioned", lambda s: replace(s, partitioned_by=())),
        *((f"partitioned by {name}", partial(_partitioned, name=name)) for name in columns),
        ("with a file for each row", lambda s: replace(s, rows_per_file=1)),
    )
    for words, change in changes:
        tables = {name: change(schema) for name, schema in litmus.tables.items()}
        if tables != litmus.tables:
            other = replace(litmus, tables=tables, expect={})
            if set(_outcomes(other, spec).values()) == {"committed"}:
                yield words, other


def _partitioned(schema: Schema, name: str) -> Schema:
    """The schema partitioned by a column, if it has that and another."""
    if schema.index(name) is None or len(schema.columns) == 1:
        return schema
    return replace(schema, partitioned_by=(name,))


def _shares(spec: Spec, promised: Spec, name: str, tell: Tell) -> Iterator[Share]:
    inside = scope(name)
    for n in inside.transactions:
        tell(f"{inside.title}, {n} transactions")
        try:
            work = planned(inside, n, protocols=[spec, promised], levels=[promised, spec])
        except IsolitmusError:  # more candidates than a look should take
            continue
        counts = tallied(work).of
        yield Share(
            inside.name,
            n,
            promised.name,
            counts[promised.name].admitted,
            counts[promised.name].forbidden[spec.name],
            counts[spec.name].admitted,
            counts[spec.name].forbidden[promised.name],
        )
