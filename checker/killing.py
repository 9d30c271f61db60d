"""Mutation testing of specs: which litmus tests tell a spec from its mutants, and how few tell it from all.

A test *kills* a mutant if the spec says one thing of it and the mutant another: of a level allowed or forbidden, of a
protocol what became of each transaction. What no test of the catalogue kills ``separate`` may: the smallest history
that one admits and the other does not. What is left is argued to be equivalent, in a file beside the spec, or survives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.mutating import mutants
from isolitmus.checker.reading.graph import judge
from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.running.execute import execute, execution_frame
from isolitmus.checker.separation import separate
from isolitmus.checker.worded import Worded
from isolitmus.model.budget import Budget
from isolitmus.model.default import DELTA
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.reads import needs_reads
from isolitmus.model.records import Records, Tabular
from isolitmus.model.verdict import Allowed, Forbidden, Silent
from isolitmus.specs.catalogue import litmus, litmus_names
from isolitmus.specs.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.checker.mutating import Mutant
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

    Test = HistoryTest | Litmus

__all__ = ["Killed", "Killing", "kill"]

FOUND = "mutant-"
"""What the names of tests begin with that a search found."""
SEARCH = 20.0
"""Seconds for which one mutant is looked for by ``separate``, each way."""


@dataclass(frozen=True, slots=True)
class Killed:
    """A mutant and what became of it."""

    mutant: Mutant
    """The changed spec."""
    by: tuple[str, ...]
    """The tests that tell it from the original, by name; of a search the one that it found."""
    argued: str = ""
    """Why it is equivalent, if nothing tells it apart and somebody says so."""
    bound: str = ""
    """How far was searched, if nothing was found."""

    @property
    def survives(self) -> bool:
        """Whether nothing tells it apart, and nobody argues why."""
        return not self.by and not self.argued


@dataclass(frozen=True, repr=False)
class Killing(Worded, Tabular):
    """The mutants of a spec, and the tests that tell it from them."""

    name: str
    """Of the spec."""
    killed: tuple[Killed, ...]
    """What became of each mutant, in the order of the text."""
    tests: Mapping[str, Test]
    """The tests that kill some mutant, those that were found among them."""
    seconds: float
    """What it took."""
    ended: str | None = None
    """What ended the search before its end, if something did."""

    @property
    def survivors(self) -> tuple[Killed, ...]:
        """The mutants that survive."""
        return tuple(one for one in self.killed if one.survives)

    @cached_property
    def suite(self) -> tuple[str, ...]:
        """The fewest tests that kill every mutant which any kills: a smallest hitting set, by a solver."""
        from pysat.examples.hitman import Hitman

        sets = [list(one.by) for one in self.killed if one.by]
        if not sets:
            return ()
        with Hitman(bootstrap_with=sets, htype="sorted") as solver:
            return tuple(sorted(solver.get() or ()))

    @property
    def records(self) -> Records:
        """What became of each mutant, a row each."""
        rows = tuple(
            (self.name, one.mutant.line, one.mutant.what, one.by[0] if one.by else None, len(one.by), one.argued or None)
            for one in self.killed
        )  # fmt: skip
        return Records(("spec", "mutant", "change", "killed_by", "tests", "argued"), rows)

    def to_json(self) -> dict[str, object]:
        """The mutants as docs/interface.md, 6, has them."""
        return {
            "spec": self.name,
            "mutants": [
                {
                    "mutant": one.mutant.line,
                    "change": one.mutant.what,
                    "killed_by": list(one.by),
                    "argued": one.argued or None,
                    "bound": one.bound or None,
                }
                for one in self.killed
            ],
            "suite": list(self.suite),
            "survivors": len(self.survivors),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


def kill(
    spec: Spec,
    argued: Mapping[str, str] | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> Killing:
    """Ask the catalogue's litmus tests, then ``separate``, of each mutant of a spec.

    ``argued``: by a mutant's line why it is equivalent; IsolitmusError for one that is killed, or is no mutant. Once
    the ``budget`` is spent the rest is as if nothing had been found.

    >>> from isolitmus.specs import level
    >>> done = kill(level("read-committed"))
    >>> len(done.killed), len(done.suite) < 6
    (11, True)
    """
    start, budget, argued = monotonic(), budget or Budget(), argued or {}
    asked = _tests(spec)
    own = {name: says(spec) for name, (_, says) in asked.items()}
    tests: dict[str, Test] = {}
    done: list[Killed] = []
    every = mutants(spec)
    for line in argued.keys() - {one.line for one in every}:
        raise IsolitmusError(
            f"{spec.name} has no mutant '{line}', which is argued to be equivalent"
        )
    for k, mutant in enumerate(every):
        by = [] if budget.spent() else [
            name for name, (_, says) in asked.items() if _differ(own[name], says(mutant.spec))
        ]  # fmt: skip
        bound = ""
        if not by and mutant.line not in argued:
            found, bound = _searched(spec, mutant, budget)
            if found is not None:
                name = f"{FOUND}{k + 1}-of-{spec.name}"
                asked[name] = found, _says(found, spec)
                own[name] = asked[name][1](spec)
                by = [name]
        if by and mutant.line in argued:
            raise IsolitmusError(
                f"'{mutant.line}' is argued to be equivalent to {spec.name}, but {by[0]} tells them apart"
            )
        tests |= {name: asked[name][0] for name in by}
        done.append(Killed(mutant, tuple(by), argued.get(mutant.line, ""), bound))
        if progress is not None:
            progress(k + 1)
    found_last = {name: asked[name][1] for name in tests if name.startswith(FOUND)}
    done = [
        replace(one, by=(*one.by, *(
            name for name, says in found_last.items()
            if one.by and name not in one.by and _differ(own[name], says(one.mutant.spec))
        )))
        for one in done
    ]  # fmt: skip
    limit = budget.spent()
    return Killing(
        spec.name, tuple(done), tests, monotonic() - start, None if limit is None else str(limit)
    )


def _tests(spec: Spec) -> dict[str, tuple[Test, Callable[[Spec], object]]]:
    """The catalogue's tests that a spec says something of, smallest first, and a function that gives what a spec says."""
    log = DELTA if spec.format is None else format_named(spec.format).log
    found: dict[str, tuple[Test, Callable[[Spec], object]]] = {}
    for test in sorted(map(litmus, litmus_names(log)), key=_length):
        if isinstance(test, HistoryTest) and spec.format is not None:
            continue
        says = _says(test, spec)
        if says(spec) is not None:
            found[test.name] = test, says
    return found


def _length(test: Test) -> tuple[int, int, str]:
    if isinstance(test, HistoryTest):
        return len(test.history.transactions), test.history.operations, test.name
    return len(test.transactions), len(test.schedule.steps), test.name


def _says(test: Test, spec: Spec) -> Callable[[Spec], object]:
    """A function from a spec to what it says of a test; None: nothing."""
    if isinstance(test, HistoryTest):
        free = Budget(memory=inf)
        return lambda other: _word(check_history(test.history, other, budget=free))
    if spec.format is not None:
        return lambda other: _outcome(test, other)
    if test.raw:
        return lambda _: None
    execution = execute(test)
    frames = {reads: execution_frame(execution, reads=reads) for reads in (False, True)}
    return lambda other: _word(judge(frames[needs_reads(other)], other))


def _word(verdict: object) -> str | None:
    return str(verdict) if isinstance(verdict, Allowed | Forbidden | Silent) else None


def _outcome(test: Litmus, protocol: Spec) -> object:
    """What becomes of each transaction under a protocol."""
    try:
        events = execute(test, protocol).events
    except IsolitmusError:  # what the model does not know stands in its way
        return None
    return tuple((event.name, event.version, event.conflict, event.silence) for event in events)


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _searched(spec: Spec, mutant: Mutant, budget: Budget) -> tuple[Test | None, str]:
    """The smallest test that only one of the two admits, or how far was searched."""
    bounds: list[str] = []
    for a, b in ((mutant.spec, spec), (spec, mutant.spec)):
        try:
            answer = separate(a, b, shipped=False, budget=budget.within(SEARCH))
        except IsolitmusError as error:
            bounds.append(f"not searched: {error}")
            continue
        if answer.litmus is not None:
            return answer.litmus, ""
        bounds.append(answer.bound)
    return None, "; ".join(dict.fromkeys(bounds))
