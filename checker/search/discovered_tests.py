"""Litmus tests that searches and sweeps discover, for execution by an engine.

Protocol guarantees, searches for separating histories and sweeps often find the same history of
statements, so that duplicates are removed. Each test is named after the query that found it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.search.portrait import UNIVERSE, needless_abort_specs, portray
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import example, sweep_work, tally_sweep
from isolitmus.checker.universes.recheck import with_expectations
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.catalogue import scope, scopes
from isolitmus.specs.files.spec_catalogue import level, levels, protocol, protocols, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.search.portrait import Portrait
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.checker.sweeps.tally import First
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import SpecLike

    Tell = Callable[[str], None]

SECONDS = 20.0
"""Time limit in seconds of a search beyond those of the guarantees."""


def distinct_tests(tests: Iterable[Litmus]) -> Iterator[Litmus]:
    """Yield the tests without those that execute the same as an earlier one.

    Examples
    --------
    >>> from isolitmus.specs import litmus
    >>> [test.name for test in distinct_tests([litmus("reorder"), litmus("reorder")])]
    ['reorder']
    """
    seen: set[Hashable] = set()
    for test in tests:
        key = str(replace(test, title="", source="", expect={}))
        if key not in seen:
            seen.add(key)
            yield test


def discover_all(names: Sequence[str], tell: Tell = lambda _: None) -> Iterator[Litmus]:
    """Yield each distinct history that the catalogue's searches find about these protocols.

    The searches are: their guarantees; what separates two levels, or one of the protocols from any
    other spec, in the scope of the guarantees; and the sweeps of each scope. This takes minutes.

    Parameters
    ----------
    names : sequence of str
        Names of the protocols.
    tell : callable
        Receives a text for each query.
    """

    def found() -> Iterator[Litmus]:
        for name in names:
            tell(f"the portrait of {name}")
            yield from portrait_tests(portray(protocol(name), tell))
        for a, b in permutations(map(spec, (*levels(), *protocols())), 2):
            if not {a.name, b.name} & {*names} and not {a.name, b.name} <= {*levels()}:
                continue
            tell(f"what {a.name} admits and {b.name} forbids")
            yield from separation_tests(a, b)
        for inside in map(scope, scopes()):
            engine = [one for one in map(protocol, names) if one.format == inside.format]
            for n in inside.transactions if engine else ():
                tell(f"scope {inside.name}, {n} transactions")
                yield from scope_tests(inside, n, engine)

    return distinct_tests(found())


def portrait_tests(portrait: Portrait) -> Iterator[Litmus]:
    """Yield the violations and needless aborts of a protocol's guarantees.

    Each needless abort is followed by the layouts on which nothing aborts.
    """
    name, source = portrait.protocol, f"isolitmus show {portrait.protocol}"
    for promise in portrait.promises:
        kinds = (("hole", promise.hole), ("unexplained", promise.unexplained))
        for kind, answer in kinds:
            if answer is not None and isinstance(answer.litmus, Litmus) and not answer.ships:
                found = with_expectations(answer.litmus, name, promise.level)
                yield _named(found, f"{name}-{kind}-{promise.level}", source)
    for abort in portrait.aborts:
        if isinstance(abort.found.litmus, Litmus):
            called = f"{name}-needless-{abort.exception}"
            yield _named(with_expectations(abort.found.litmus, name), called, source)
            for layout, test in abort.layouts.items():
                yield _named(test, f"{called}-{layout}", source)


def separation_tests(a: SpecLike, b: SpecLike) -> Iterator[Litmus]:
    """Yield the smallest history over tables that ``a`` admits and ``b`` forbids.

    If ``a`` is a protocol, the smallest one that no serial order explains follows. There are none
    if the search space lacks what the specs refer to.
    """
    a, b = spec(a), spec(b)
    for unexplained in (False, True) if a.name in protocols() else (False,):
        try:
            answer = separate(
                a,
                b,
                scope(UNIVERSE),
                unexplained=unexplained,
                shipped=False,
                budget=Budget(SECONDS),
            )
        except IsolitmusError:  # the search space lacks names that a spec needs
            return
        if not isinstance(answer.litmus, Litmus):
            return
        more = "-unexplained" if unexplained else ""
        found = with_expectations(answer.litmus, a.name, b.name)
        yield _named(found, found.name + more, found.source)


def first_found_tests(done: Sweep, inside: Scope) -> Iterator[Litmus]:
    """Yield the first test that a sweep of a scope found for each protocol and level."""
    for (admits, forbids), test in done.smallest.items():
        found = with_expectations(test, admits, forbids)
        yield _of_sweep(found, inside, done.transactions, f"{admits}-not-{forbids}")


def scope_tests(inside: Scope, n: int, engine: Sequence[SpecLike]) -> Iterator[Litmus]:
    """Yield the tests that sweeps of a scope find with n transactions.

    For each protocol of the engine: the first needless abort with each exception, and, where it
    does not keep a promise, the first table that no serial order produces. For any two specs of the
    catalogue: the first candidate that one admits and the other forbids.
    """
    for under in map(protocol, engine):
        for promised in map(level, under.promises):
            yield from _needless(inside, n, under, promised)
            yield from _unexplained(inside, n, under, promised)
    known = [s for s in map(spec, (*levels(), *protocols())) if _countable(s, inside, n)]
    yield from _firsts(inside, n, known, known, {})


def _needless(inside: Scope, n: int, under: Spec, promised: Spec) -> Iterator[Litmus]:
    """Yield tests that an exception of the protocol aborts and the promised level admits."""
    exceptions = dict.fromkeys(axiom.name for axiom in under.axioms)
    called: dict[tuple[str, str], str] = {}
    pairs = []
    for exception in exceptions:
        silent, alone = needless_abort_specs(under, promised, exception)
        silent = replace(silent, name=f"{promised.name}-before-{exception}")
        alone = replace(alone, name=f"{under.name}-{exception}")
        called[silent.name, alone.name] = f"{under.name}-needless-{exception}"
        pairs.append((silent, alone))
    yield from _firsts(inside, n, [a for a, _ in pairs], [b for _, b in pairs], called)


def _unexplained(inside: Scope, n: int, under: Spec, promised: Spec) -> Iterator[Litmus]:
    """Yield a violation of n transactions that no serial order explains, if there is one."""
    counted = tally_sweep(sweep_work(inside, n, protocols=[under], levels=[promised]))
    if not counted.of[under.name].unexplained:
        return
    answer = separate(
        under, promised, inside, transactions=[n], unexplained=True, budget=Budget(SECONDS)
    )
    answer = answer.with_catalogue()
    if isinstance(answer.litmus, Litmus):
        called = f"{inside.name}-{n}-{under.name}-unexplained-{promised.name}"
        yield _named(with_expectations(answer.litmus, under.name), called, answer.litmus.source)


def _firsts(
    inside: Scope,
    n: int,
    admitting: Sequence[Spec],
    forbidding: Sequence[Spec],
    called: Mapping[tuple[str, str], str],
) -> Iterator[Litmus]:
    """Yield the first candidate for each pair of specs, without duplicates.

    A candidate that is the first of several pairs is named after a pair in ``called``, if there is
    one.
    """
    work = sweep_work(inside, n, protocols=admitting, levels=forbidding)
    tallies = tally_sweep(work).of
    found = {(a, b): first for a, tally in tallies.items() for b, first in tally.first.items()}
    pairs: dict[First, tuple[str, str]] = {}
    for pair in sorted(found, key=lambda pair: pair not in called):
        pairs.setdefault(found[pair], pair)
    for first, (admits, forbids) in pairs.items():
        test = example(work, first, admits, forbids)
        name = called.get((admits, forbids), f"{admits}-not-{forbids}")
        yield _of_sweep(with_expectations(test, admits, forbids), inside, n, name)


def _countable(asked: Spec, inside: Scope, n: int) -> bool:
    """Return whether a sweep of the scope can judge by a spec."""
    try:
        sweep_work(inside, n, protocols=[asked], levels=[asked])
    except IsolitmusError:
        return False
    return True


def _of_sweep(test: Litmus, inside: Scope, n: int, name: str) -> Litmus:
    source = f"isolitmus sweep {inside.name} --transactions {n}"
    return _named(test, f"{inside.name}-{n}-{name}", source)


def _named(test: Litmus, name: str, source: str) -> Litmus:
    called = replace(test, name=name.replace(" ", "-"), source=source)
    return replace(called, text=str(called))
