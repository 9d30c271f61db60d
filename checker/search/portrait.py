"""Guarantees of a protocol: promised levels, violations of these, and needless aborts.

Every statement is the answer of a search or of a count, with its bound, and every history in it was
executed and judged again. A needless abort is an abort in a history that the promised level admits.
It is searched for each exception of the protocol, with the exceptions before it in the file held
silent.
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
from isolitmus.specs.files.catalogue import scope
from isolitmus.specs.files.spec_catalogue import is_designed, level, protocol, related_protocols
from isolitmus.specs.files.spec_catalogue import spec as named_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.schema import Schema

    Tell = Callable[[str], None]
    from isolitmus.specs.files.spec_catalogue import SpecLike

UNIVERSE = "table"
SCOPES = ("two-partitions", "writers-partitioned", "writers-unpartitioned")
"""Scopes in which candidates are counted."""
SECONDS = 60.0
"""Time limit in seconds of a single search, if the budget has none."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Promised level, with its smallest violation and the outcomes under other protocols.

    `hole` is the smallest history that the protocol admits and the level forbids. `unexplained` is
    the smallest such history that no serial order explains.
    """

    level: str
    hole: Separation
    unexplained: Separation | None
    elsewhere: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class NeedlessAbort:
    """Smallest needless abort with an exception."""

    exception: str
    """Name of the exception."""
    level: str
    """Level that admits the history."""
    found: Separation
    """Search for the smallest such history."""
    raised: bool
    """True if some history in the search space raises the exception at all."""
    elsewhere: Mapping[str, Mapping[str, str]]
    """Outcomes of its transactions under the other protocols of the engine."""
    layouts: Mapping[str, Litmus]
    """Variants of the history, by table layout, in which the protocol aborts nothing."""


@dataclass(frozen=True, slots=True)
class AbortShare:
    """Numbers of needless aborts and of violations among the candidates of a scope."""

    scope: str
    """Name of the scope."""
    transactions: int
    """Number of transactions of a candidate."""
    level: str
    """Promised level."""
    allowed: int
    """Number of candidates that the level allows."""
    aborted: int
    """Number of those that the protocol aborts."""
    admitted: int
    """Number of candidates that the protocol admits."""
    broken: int
    """Number of those that the level forbids."""
    silent: int
    """Number of candidates on which the protocol is silent."""


@dataclass(frozen=True, slots=True, repr=False)
class Portrait(TextResult):
    """Guarantees of a protocol."""

    protocol: str
    """Name of the protocol."""
    universe: str
    """Name of the search space of needless aborts."""
    promises: tuple[Promise, ...]
    """Promised levels, each with the smallest violation."""
    aborts: tuple[NeedlessAbort, ...]
    """Needless aborts by exception."""
    shares: tuple[AbortShare, ...]
    """Frequencies of both by scope."""
    uncounted: tuple[str, ...] = ()
    """Scopes whose count a limit ended."""
    is_designed: bool = False
    """True if it is a rule that is being designed; the other protocols are those that ship."""

    @property
    def whole(self) -> bool:
        """True if no limit ended any of the searches and counts."""
        asked = [p.hole for p in self.promises] + [a.found for a in self.aborts]
        asked += [p.unexplained for p in self.promises if p.unexplained is not None]
        return not self.uncounted and all(answer.found is not None for answer in asked)

    def to_json(self) -> dict[str, object]:
        """Return the guarantees, with the histories as litmus files."""
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
    """Return the guarantees of a protocol.

    Parameters
    ----------
    spec : Spec, str or path
        Protocol, its name or its file.
    tell : callable
        Receives a text for each query.
    budget : Budget, optional
        Limit of all searches together; queries after it is spent are unknown. Without a time limit,
        each search has SECONDS.

    Examples
    --------
    >>> seen = portray("delta-write-serializable-repaired")
    >>> [(promise.level, promise.hole.ships) for promise in seen.promises]  # of the catalogue
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
        spec.name,
        UNIVERSE,
        tuple(promises),
        tuple(aborts),
        tuple(shares),
        tuple(uncounted),
        is_designed(spec),
    )


def _part(budget: Budget) -> Budget:
    """Return the budget of a single search."""
    return budget.within(SECONDS) if budget.seconds is None else budget


def _promise(spec: Spec, promised: Spec, budget: Budget) -> Promise:
    """Return the smallest violation of a promised level, and one that no serial order explains."""
    ask = partial(separate, spec, promised, exercise=False)
    hole = ask(budget=_part(budget)).with_catalogue()
    if not hole.found:
        return Promise(promised.name, hole, None, {})
    worst = ask(unexplained=True, budget=_part(budget)).with_catalogue()
    litmus = (worst if worst.found else hole).litmus
    assert isinstance(litmus, Litmus)
    return Promise(promised.name, hole, worst, _elsewhere(litmus, spec))


def _abort(spec: Spec, promised: Spec, exception: str, budget: Budget) -> NeedlessAbort:
    """Return the smallest needless abort with an exception, and what admits its history."""
    silent, alone = needless_abort_specs(spec, promised, exception)
    ask = partial(separate, universe=scope(UNIVERSE), shipped=False, exercise=False)
    found = ask(silent, alone, budget=_part(budget))
    litmus = found.litmus
    if not isinstance(litmus, Litmus):
        anything = with_axioms(spec, [], "anything")
        ever = ask(anything, alone, budget=_part(budget)).found is not False
        return NeedlessAbort(exception, promised.name, found, ever, {}, {})
    layouts = dict(_layouts(litmus, spec))
    return NeedlessAbort(exception, promised.name, found, True, _elsewhere(litmus, spec), layouts)


def needless_abort_specs(spec: SpecLike, promised: SpecLike, exception: str) -> tuple[Spec, Spec]:
    """Return two specs that separate exactly the needless aborts with an exception.

    Returns
    -------
    (Spec, Spec)
        The level together with the protocol's checks before the exception, and the check that
        raises the exception.
    """
    spec, promised = named_spec(spec), named_spec(promised)
    names = [axiom.name for axiom in spec.axioms]
    before = spec.axioms[: names.index(exception)]
    silent = conjunction(promised, with_axioms(spec, before, ""), promised.name)
    return silent, with_axioms(spec, [a for a in spec.axioms if a.name == exception], spec.name)


def _elsewhere(litmus: Litmus, spec: Spec) -> dict[str, dict[str, str]]:
    """Return the outcomes of the transactions under the other protocols of the same engine.

    For a rule that is being designed, these are the rules that ship.
    """
    own = () if is_designed(spec) else (spec.name,)
    related = related_protocols(*own, form=litmus.format)
    return {name: _outcomes(litmus, protocol(name)) for name in related if name != spec.name}


def _outcomes(litmus: Litmus, spec: Spec) -> dict[str, str]:
    run = observed_run(litmus, execute(litmus, spec), spec.name)
    return {name: transaction.outcome for name, transaction in run.transactions.items()}


def _layouts(litmus: Litmus, spec: Spec) -> Iterator[tuple[str, Litmus]]:
    """Yield the history on other layouts of its tables on which the protocol aborts nothing."""
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
    """Return the schema partitioned by a column, if it has that column and another one."""
    if schema.index(name) is None or len(schema.columns) == 1:
        return schema
    return replace(schema, partitioned_by=(name,))


def _shares(
    spec: Spec, promised: Spec, name: str, budget: Budget, tell: Tell
) -> Iterator[AbortShare]:
    """Yield the shares of aborts and violations per size, without sizes too large to count."""
    inside = scope(name)
    for n in inside.transactions:
        tell(f"{inside.title}, {n} transactions")
        try:
            work = sweep_work(inside, n, protocols=[spec, promised], levels=[promised, spec])
        except IsolitmusError:  # too many candidates
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
