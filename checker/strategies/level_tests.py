"""Litmus tests for Hypothesis that a level admits, or that it admits and another level forbids.

Tests that lie between two levels are drawn without rejection. A search (``separate``, or
``robust`` for jobs) finds the smallest of them before anything is drawn. The drawn tests change
these: other statements, further transactions, further rows. A change is kept only if the levels
still admit and forbid as required, so a failing example shrinks to one of the smallest tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, event, given, reject, seed, settings
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.search.separation import separate
from isolitmus.checker.universes.recheck import judge_candidate
from isolitmus.checker.universes.schedules import Times
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.scope import LARGEST, Scope
from isolitmus.model.sql.statement import Read
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.scope_file import SCOPE
from isolitmus.specs.files.spec_catalogue import spec
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.files.spec_catalogue import SpecLike

SECONDS = 60.0
"""Time limit in seconds of the search for the smallest test."""
ROWS = 3
"""Maximal number of drawn rows."""
FEW = 5
"""Number of statements in the search for tables that no serial order produces.

The search has many candidates, so that the number is small.
"""
CHANGES = 3
"""Maximal number of changes drawn for a smallest test."""
Part = TypeVar("Part")
Drawn = TypeVar("Drawn")
P = ParamSpec("P")


def fails_when_drawn(
    strategy_of: Callable[P, SearchStrategy[Drawn]],
) -> Callable[P, SearchStrategy[Drawn]]:
    """Return the function with its IsolitmusError raised in the test that draws.

    A decorator ``@given(litmus_tests(…))`` is executed when a file is imported. An error there
    would keep every other test of the file from being collected.
    """

    @wraps(strategy_of)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> SearchStrategy[Drawn]:
        try:
            return strategy_of(*args, **kwargs)
        except IsolitmusError as error:
            problem = error

        def fail() -> SearchStrategy[Drawn]:
            raise problem

        return st.deferred(fail)

    return wrapped


class TestDomain(Protocol[Part]):
    """Domain from which litmus tests are drawn.

    A part of a test is a transaction, or a run of a job, with its times.
    """

    @property
    def rows(self) -> SearchStrategy[str]:
        """Strategy for an initial row."""
        ...

    def litmus(self, parts: Sequence[Part], rows: Sequence[str]) -> Litmus:
        """Return the test of these parts, on tables that initially hold these rows."""
        ...

    def later(self, part: Part, by: int) -> Part:
        """Return the part with its start `by` time units later."""
        ...

    def ends(self, part: Part) -> int:
        """Return the time at which the part ends."""
        ...

    def instead(self, part: Part, other: Part) -> Part | None:
        """Return `other` at the times of `part`; None if the times do not fit."""
        ...


@dataclass(frozen=True, slots=True)
class SmallestTest(Generic[Part]):
    """One of the smallest tests between two levels."""

    parts: tuple[Part, ...]
    """Transactions or runs of the test."""
    rows: tuple[str, ...]
    """Initial rows."""
    more: SearchStrategy[Part]
    """Strategy for parts to add to the test or to replace its parts."""


class BetweenLevels(NamedTuple):
    """Levels that must admit and forbid the drawn tests."""

    level: Spec
    """Level that admits a test: every transaction commits, and the level allows the run."""
    forbidden_by: Spec | None
    """Level that forbids the tests; None if none has to."""

    def holds(self, test: Litmus) -> bool:
        """Return whether `level` admits the test and `forbidden_by`, if any, forbids it."""
        try:
            execution = execute(test, self.level)
            fails = any(
                e.aborted or e.silence is not None or e.effect.error is not None
                for e in execution.events
            )
            if fails or not isinstance(judge_execution(execution, self.level), Allowed):
                return False
            other = self.forbidden_by
            return other is None or isinstance(judge_candidate(test, execution, other), Forbidden)
        except IsolitmusError:  # an unsupported part: neither is known
            return False


def between_levels(level: SpecLike | None, forbidden_by: SpecLike | None) -> BetweenLevels | None:
    """Return the constraints on the drawn tests, or None if there are none."""
    if level is None:
        if forbidden_by is not None:
            raise without_level(forbidden_by)
        return None
    return BetweenLevels(spec(level), None if forbidden_by is None else spec(forbidden_by))


def without_level(forbidden_by: SpecLike) -> IsolitmusError:
    """Return the error for ``forbidden_by`` without ``level``."""
    return IsolitmusError(
        f"forbidden_by is {str(forbidden_by)[:60]!r} without a level that admits;"
        " level='read-committed' would be one"
    )


def draw_between(
    asked: BetweenLevels,
    domain: TestDomain[Part],
    parts: SearchStrategy[Sequence[Part]],
    cores: Sequence[SmallestTest[Part]],
    *,
    least: int,
    most: int,
) -> SearchStrategy[Litmus]:
    """Return a strategy for litmus tests that meet the constraints.

    Parameters
    ----------
    asked : BetweenLevels
        Levels that must admit and forbid the tests.
    domain : TestDomain
        Builds tests from their parts.
    parts : SearchStrategy
        Parts of a test; used if no level has to forbid the tests.
    cores : sequence of SmallestTest
        Tests around which the drawn tests grow; used otherwise.
    least : int
        Least number of parts if no level has to forbid the tests.
    most : int
        Greatest number of parts of a test that grows around a core.
    """
    if asked.forbidden_by is None:
        return _admitted(asked, domain, parts, least=least)
    return st.sampled_from(cores).flatmap(lambda core: _grown(asked, domain, core, most=most))


@st.composite
def _admitted(
    draw: DrawFn,
    asked: BetweenLevels,
    domain: TestDomain[Part],
    parts: SearchStrategy[Sequence[Part]],
    *,
    least: int,
) -> Litmus:
    """Draw a test that the level admits.

    A part that would not be admitted waits for the end of the others; if it fails even so, it is
    left out.
    """
    rows = draw(st.lists(domain.rows, min_size=1, max_size=ROWS))
    found: list[Part] = []
    for part in draw(parts):
        after = max((domain.ends(one) + 1 for one in found), default=0)
        for wait in (0, after):
            if asked.holds(domain.litmus([*found, domain.later(part, wait)], rows)):
                found.append(domain.later(part, wait))
                break
    if len(found) < least:
        reject()
    return note_overlap(domain.litmus(found, rows))


@st.composite
def _grown(
    draw: DrawFn,
    asked: BetweenLevels,
    domain: TestDomain[Part],
    core: SmallestTest[Part],
    *,
    most: int,
) -> Litmus:
    """Draw a core with those of the drawn changes that keep the constraints satisfied."""
    parts, rows = list(core.parts), list(core.rows)
    changes = st.tuples(core.more, st.integers(0, most))
    for other, place in draw(st.lists(changes, max_size=CHANGES)):
        tried = list(parts)
        if place < len(parts):
            changed = domain.instead(parts[place], other)
            if changed is None:
                continue
            tried[place] = changed
        elif len(parts) < most:
            tried.append(other)
        if tried != parts and asked.holds(domain.litmus(tried, rows)):
            parts = tried
    for row in draw(st.lists(domain.rows, max_size=ROWS)):
        if asked.holds(domain.litmus(parts, [*rows, row])):
            rows.append(row)
    return note_overlap(domain.litmus(parts, rows))


def complete_test(
    asked: BetweenLevels,
    domain: TestDomain[Part],
    core: SmallestTest[Part],
    others: Iterable[Part],
    least: int,
) -> SmallestTest[Part] | None:
    """Return a core reduced to necessary rows and extended to at least `least` parts.

    Rows that the constraints do not need are removed. Further parts, taken from `others`, start
    when the core has ended.

    Returns
    -------
    SmallestTest or None
        None if the core does not meet the constraints, or no further part keeps them satisfied.
    """
    parts, rows = list(core.parts), list(core.rows)
    if not asked.holds(domain.litmus(parts, rows)):
        return None
    for row in core.rows:
        fewer = list(rows)
        fewer.remove(row)
        if asked.holds(domain.litmus(parts, fewer)):
            rows = fewer
    last = list(others)
    while len(parts) < least:
        after = max(map(domain.ends, parts)) + 1
        tried = ([*parts, domain.later(other, after)] for other in last)
        longer = next((each for each in tried if asked.holds(domain.litmus(each, rows))), None)
        if longer is None:
            return None
        parts = longer
    return SmallestTest(tuple(parts), tuple(rows), core.more)


def search_smallest(
    asked: BetweenLevels,
    tables: Mapping[str, Schema],
    statements: Iterable[Statement],
    rows: Sequence[Statement],
    most: int,
    *,
    form: str,
) -> Iterator[Litmus]:
    """Yield the smallest test of these statements that lies between the levels.

    If a serial order produces its tables, the smallest test of the first `FEW` statements whose
    tables no serial order produces follows, if one is found. The tables initially hold none, one or
    all of the rows.

    Parameters
    ----------
    asked : BetweenLevels
        The two levels.
    tables : mapping of str to Schema
        Tables of the tests.
    statements : iterable of Statement
        Statements of the transactions; those that no search scope supports are left out.
    rows : sequence of Statement
        Statements that insert the initial rows.
    most : int
        Greatest number of transactions.
    form : str
        Format of the tests.

    Raises
    ------
    IsolitmusError
        If there is no such test, or none is found within a minute.
    """
    assert asked.forbidden_by is not None
    usable = [one for one in statements if _in_scope(one)]
    search = partial(
        separate, asked.level, asked.forbidden_by, shipped=False, budget=Budget(SECONDS)
    )
    if all(isinstance(one, Read) for one in usable):
        raise IsolitmusError(
            f"no test of these statements is known that {asked.level.name} admits and"
            f" {asked.forbidden_by.name} forbids: none of them changes rows as a search can follow"
        )
    first = search(_scope(tables, usable, rows, most, form))
    if not isinstance(first.litmus, Litmus):
        raise IsolitmusError(
            f"no test of these statements is known that {first.a} admits and {first.b} forbids,"
            f" with at most {count_of(most, 'transaction')}: {first.bound}"
        )
    yield first.litmus
    if first.serial is not None and not first.serial.unexplained:
        other = search(_scope(tables, usable[:FEW], rows, most, form), unexplained=True)
        if isinstance(other.litmus, Litmus):
            yield other.litmus


def _scope(
    tables: Mapping[str, Schema],
    statements: Sequence[Statement],
    rows: Sequence[Statement],
    most: int,
    form: str,
) -> Scope:
    """Return the scope of these statements, on tables with none, one or all of these rows."""
    inits = ((), tuple(rows), *((row,) for row in rows[:ROWS]))
    return Scope(
        "drawn", "Statements that are drawn", "", tables, tuple(dict.fromkeys(inits)),
        tuple((one,) * LARGEST for one in statements if not isinstance(one, Read)),
        tuple(one for one in statements if isinstance(one, Read)),
        tuple(range(1, min(most, LARGEST) + 1)),
        format=form,
    )  # fmt: skip


def too_few_tests(asked: BetweenLevels, least: int) -> IsolitmusError:
    """Return the error for tests between the levels of which none has enough transactions."""
    assert asked.forbidden_by is not None
    return IsolitmusError(
        f"no test is known that {asked.level.name} admits and {asked.forbidden_by.name} forbids,"
        f" with at least {count_of(least, 'transaction')} and within what the strategy draws"
    )


def _in_scope(statement: Statement) -> bool:
    """Return whether the search of a scope supports the statement."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise IsolitmusError("not in a scope")

    try:
        refuse_together(features_of(statement) | SCOPE, refuse, "", sql=statement.sql)
    except IsolitmusError:
        return False
    return True


def read_times(test: Litmus) -> dict[str, Times]:
    """Return the times of each transaction of a test: the positions of its steps in the schedule.

    Examples
    --------
    >>> from isolitmus.specs import litmus
    >>> read_times(litmus("reorder"))["delete"]
    Times(start=0, long=2, early=0)
    """
    at: dict[str, list[int]] = {}
    early: dict[str, int] = {}
    for k, step in enumerate(test.schedule.steps):
        if step.action == "before":
            early[step.transaction] = k
        else:
            at.setdefault(step.transaction, []).append(k)
    return {
        name: Times(found[0], found[-1] - found[0], found[0] - early.get(name, found[0]))
        for name, found in at.items()
    }


def samples(strategy: SearchStrategy[Drawn], count: int) -> list[Drawn]:
    """Return at most `count` distinct values that a strategy draws, the same ones at every call."""
    found: list[Drawn] = []

    @seed(0)
    @settings(
        max_examples=3 * count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def draw(value: Drawn) -> None:
        if value not in found:
            found.append(value)

    draw()
    return found[:count]


def note_overlap(test: Litmus) -> Litmus:
    """Return the test unchanged, and record how many transactions overlap.

    Hypothesis' statistics then show the share of examples by the maximal number of transactions
    that are under way at a time.
    """
    under_way: set[str] = set()
    at_once = 0
    for step in test.schedule.steps:
        under_way.add(step.transaction)
        at_once = max(at_once, len(under_way))
        if step.ends:
            under_way.remove(step.transaction)
    event("transactions under way at a time", at_once)
    return test


def note_coverage(done: RunResult, *levels: SpecLike) -> RunResult:
    """Return a run unchanged, and record its errors and anomalies for Hypothesis' statistics.

    The statistics show the share of examples by the errors that ended their transactions, and by
    anomalies: levels that forbid the run, and tables that no serial order produces. ``pytest
    --hypothesis-show-statistics`` prints them.

    Parameters
    ----------
    done : RunResult
        The run.
    *levels : str, path or Spec
        Levels that judge the run; by default those that its protocol promises.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from isolitmus.checker import run
    >>> from isolitmus.checker.strategies import litmus_tests, note_coverage
    >>> @settings(max_examples=5)
    ... @given(litmus_tests())
    ... def all_end(test):
    ...     assert note_coverage(run(test, "delta-serializable")).run.transactions
    >>> all_end()
    """
    named = levels or _promised(done.run.protocol)
    ends = {t.outcome for t in done.run.transactions.values() if t.outcome not in TOOK_EFFECT}
    event("conflicts and errors", ", ".join(sorted(ends)) or "none")
    anomalies = [
        f"{one.name} forbids it"
        for one in map(spec, named)
        if isinstance(done.verdict(one), Forbidden)
    ]
    anomalies += ["no serial order gives the tables"] if done.serial.unexplained else []
    event("anomalies", ", ".join(anomalies) or "none")
    return done


def _promised(protocol: str) -> tuple[str, ...]:
    """Return the levels that a protocol of the catalogue promises, else "serializable"."""
    try:
        return spec(protocol).promises or ("serializable",)
    except IsolitmusError:  # a protocol file of the caller: the run knows only its name
        return ("serializable",)
