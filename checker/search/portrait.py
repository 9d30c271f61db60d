"""The verb ``portray``: what a protocol promises, how far it keeps it, what it aborts for nothing.

Nothing here is written by hand: every sentence is the answer of a search or of a count, with its
bound, and every history in it was executed and judged anew. A needless abort is one of a history
that the promised level admits; it is asked for each exception that the protocol can raise, with the
exceptions that stand before it in the file kept silent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import sweep_work, tally_sweep
from isolitmus.model.budget import Budget
from isolitmus.model.display import TextResult
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.model.spec_algebra import conjunction, with_axioms
from isolitmus.specs.files.catalogue import level, protocol, related_protocols, scope
from isolitmus.specs.files.catalogue import spec as named_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Spec

    Tell = Callable[[str], None]
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["AbortShare", "NeedlessAbort", "Portrait", "Promise", "needless_abort_specs", "portray"]

UNIVERSE = "table"
SCOPES = ("two-partitions", "writers-partitioned", "writers-unpartitioned")
"""The scopes in which the shares are counted."""
SECONDS = 60.0
"""After so long a single search is unknown."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A level that a protocol promises: the smallest history that it admits all the same, the
    smallest that no serial order explains either, and what other protocols do to that history.
    """

    level: str
    hole: Separation
    unexplained: Separation | None
    elsewhere: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class NeedlessAbort:
    """The smallest needless abort with an exception."""

    exception: str
    """Its name."""
    level: str
    """The one that the history keeps all the same."""
    found: Separation
    """The smallest such history, if there is one."""
    raised: bool
    """False: nothing in the universe raises the exception at all."""
    elsewhere: Mapping[str, Mapping[str, str]]
    """How its transactions end under the other protocols of the engine."""
    layouts: Mapping[str, Litmus]
    """The same history on layouts of the table, by what they are called, in which the protocol
    aborts nothing.
    """


@dataclass(frozen=True, slots=True)
class AbortShare:
    """How many of a scope's candidates are needlessly aborted, and how many are holes."""

    scope: str
    """The name of the scope."""
    transactions: int
    """How many a candidate has."""
    level: str
    """The one that is to be kept."""
    allowed: int
    """How many candidates the level allows."""
    aborted: int
    """Of those, how many the protocol aborts."""
    admitted: int
    """How many the protocol admits."""
    broken: int
    """Of those, how many the level forbids."""
    silent: int
    """On how many the protocol is silent."""


@dataclass(frozen=True, slots=True, repr=False)
class Portrait(TextResult):
    """What a protocol promises and keeps."""

    protocol: str
    """Its name."""
    universe: str
    """Where it was looked at, in words."""
    promises: tuple[Promise, ...]
    """The levels, each with the smallest hole."""
    aborts: tuple[NeedlessAbort, ...]
    """The needless aborts, by exception."""
    shares: tuple[AbortShare, ...]
    """How frequent both are, by scope."""
    uncounted: tuple[str, ...] = ()
    """Of which scopes a limit ended the count."""

    @property
    def whole(self) -> bool:
        """Whether no limit ended any of its searches and counts."""
        asked = [p.hole for p in self.promises] + [a.found for a in self.aborts]
        asked += [p.unexplained for p in self.promises if p.unexplained is not None]
        return not self.uncounted and all(answer.found is not None for answer in asked)

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
                    "silent": s.silent,
                }
                for s in self.shares
            ],
            "uncounted": list(self.uncounted),
        }


def portray(
    spec: SpecLike, tell: Tell = lambda _: None, *, budget: Budget | None = None
) -> Portrait:
    """Search and count; ``tell`` is told what is being asked. ``budget``: of all of it together;
    what is asked once it is spent is unknown. Without a time, each search has SECONDS.

    >>> seen = portray("delta-write-serializable-repaired")
    >>> [(promise.level, promise.hole.ships) for promise in seen.promises]  # nothing in the universe
    [('write-serializable', 'parked-merge-torn-read')]
    >>> [(abort.exception, abort.found.transactions) for abort in seen.aborts if abort.found.found]
    [('ConcurrentAppendException', 2), ('ConcurrentDeleteReadException', 2)]
    """
    spec = protocol(spec)
    budget = budget or Budget()
    promises: list[Promise] = []
    aborts: list[NeedlessAbort] = []
    shares: list[AbortShare] = []
    uncounted: list[str] = []
    for promised in map(level, spec.promises):
        tell(f"what it admits against {promised.name}")
        promises.append(_promise(spec, promised, budget))
        for name in dict.fromkeys(axiom.name for axiom in spec.axioms):
            tell(f"{name} for nothing")
            aborts.append(_abort(spec, promised, name, budget))
        for name in SCOPES:
            try:
                shares += _shares(spec, promised, name, budget, tell)
            except Limit as limit:
                uncounted.append(f"{name}, for {limit}")
    return Portrait(
        spec.name, UNIVERSE, tuple(promises), tuple(aborts), tuple(shares), tuple(uncounted)
    )


def _part(budget: Budget) -> Budget:
    """What a single search may take."""
    return budget.within(SECONDS) if budget.seconds is None else budget


def _promise(spec: Spec, promised: Spec, budget: Budget) -> Promise:
    ask = partial(separate, spec, promised, scope(UNIVERSE))
    hole = ask(budget=_part(budget)).with_catalogue()
    if not hole.found:
        return Promise(promised.name, hole, None, {})
    worst = ask(unexplained=True, budget=_part(budget)).with_catalogue()
    litmus = (worst if worst.found else hole).litmus
    assert isinstance(litmus, Litmus)
    return Promise(promised.name, hole, worst, _elsewhere(litmus, spec))


def _abort(spec: Spec, promised: Spec, exception: str, budget: Budget) -> NeedlessAbort:
    silent, alone = needless_abort_specs(spec, promised, exception)
    ask = partial(separate, universe=scope(UNIVERSE), shipped=False)
    found = ask(silent, alone, budget=_part(budget))
    litmus = found.litmus
    if not isinstance(litmus, Litmus):
        anything = with_axioms(spec, [], "anything")
        ever = ask(anything, alone, budget=_part(budget)).found is not False
        return NeedlessAbort(exception, promised.name, found, ever, {}, {})
    layouts = dict(_layouts(litmus, spec))
    return NeedlessAbort(exception, promised.name, found, True, _elsewhere(litmus, spec), layouts)


def needless_abort_specs(spec: SpecLike, promised: SpecLike, exception: str) -> tuple[Spec, Spec]:
    """Two specs: what the first admits and the second forbids is a needless abort with the
    exception. The first is the level with the checks that stand before the exception, the second
    the exception's.
    """
    spec, promised = named_spec(spec), named_spec(promised)
    names = [axiom.name for axiom in spec.axioms]
    before = spec.axioms[: names.index(exception)]
    silent = conjunction(promised, with_axioms(spec, before, ""), promised.name)
    return silent, with_axioms(spec, [a for a in spec.axioms if a.name == exception], spec.name)


def _elsewhere(litmus: Litmus, spec: Spec) -> dict[str, dict[str, str]]:
    """The outcomes of the transactions under the other protocols of the same engine."""
    others = (name for name in related_protocols(spec.name) if name != spec.name)
    return {name: _outcomes(litmus, protocol(name)) for name in others}


def _outcomes(litmus: Litmus, spec: Spec) -> dict[str, str]:
    run = observed_run(litmus, execute(litmus, spec), spec.name)
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


def _shares(
    spec: Spec, promised: Spec, name: str, budget: Budget, tell: Tell
) -> Iterator[AbortShare]:
    inside = scope(name)
    for n in inside.transactions:
        tell(f"{inside.title}, {n} transactions")
        try:
            work = sweep_work(inside, n, protocols=[spec, promised], levels=[promised, spec])
        except IsolitmusError:  # more candidates than a look should take
            continue
        counts = tally_sweep(work, budget).of
        yield AbortShare(
            inside.name,
            n,
            promised.name,
            counts[promised.name].admitted,
            counts[promised.name].forbidden[spec.name],
            counts[spec.name].admitted,
            counts[spec.name].forbidden[promised.name],
            counts[spec.name].silent,
        )
