"""Litmus tests for Hypothesis that a level admits, or that it admits and another level forbids.

No example is rejected. A search (``separate``, or ``robust`` for jobs) finds the smallest tests
that lie between the levels before anything is drawn. What is drawn then changes them: other
statements, further transactions, further rows. A change stays only if the levels still say what was
asked, so a failing example shrinks to one of the smallest tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from hypothesis import HealthCheck, Phase, event, given, reject, seed, settings
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.search.separation import separate
from isolitmus.checker.universes.recheck import judge_candidate
from isolitmus.checker.universes.schedule_times import Times
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.scope import LARGEST, Scope
from isolitmus.model.sql.statement import Read
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.catalogue import spec
from isolitmus.specs.files.scope_file import SCOPE
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = [
    "BetweenLevels",
    "SmallestTest",
    "TestDomain",
    "complete_test",
    "draw_between",
    "note_coverage",
    "note_overlap",
    "read_times",
    "samples",
    "search_smallest",
    "too_few_tests",
]

SECONDS = 60.0
"""How long the smallest test is looked for."""
ROWS = 3
"""So many rows are drawn, at most."""
FEW = 5
"""So many of the statements are searched for tables that no serial order gives: there are many
candidates.
"""
CHANGES = 3
"""So many changes of a smallest test are drawn, at most."""
Part = TypeVar("Part")
Drawn = TypeVar("Drawn")


class TestDomain(Protocol[Part]):
    """What litmus tests are drawn of: their parts, each a transaction or a run of a job with its
    times.
    """

    @property
    def rows(self) -> SearchStrategy[str]:
        """A row at the start."""
        ...

    def litmus(self, parts: Sequence[Part], rows: Sequence[str]) -> Litmus:
        """The test of these parts, on tables that begin with these rows."""
        ...

    def later(self, part: Part, by: int) -> Part:
        """A part that begins so much later."""
        ...

    def ends(self, part: Part) -> int:
        """When a part ends."""
        ...

    def instead(self, part: Part, other: Part) -> Part | None:
        """What the other one does, at the times of the part; None if its times do not fit."""
        ...


@dataclass(frozen=True, slots=True)
class SmallestTest(Generic[Part]):
    """One of the smallest tests between two levels."""

    parts: tuple[Part, ...]
    """Its transactions, or its runs."""
    rows: tuple[str, ...]
    """The rows at the start."""
    more: SearchStrategy[Part]
    """What may stand beside or instead of its parts."""


class BetweenLevels(NamedTuple):
    """What is asked of drawn tests."""

    level: Spec
    """What admits them: every transaction commits, and the level allows the run."""
    forbidden_by: Spec | None
    """What forbids them; None: nothing need."""

    def holds(self, test: Litmus) -> bool:
        """Whether the one admits a test and the other, if there is one, forbids it."""
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
        except IsolitmusError:  # a part that the model cannot compute: neither is known
            return False


def draw_between(
    asked: BetweenLevels,
    domain: TestDomain[Part],
    parts: SearchStrategy[Sequence[Part]],
    cores: Sequence[SmallestTest[Part]],
    *,
    least: int,
    most: int,
) -> SearchStrategy[Litmus]:
    """Litmus tests of which holds what is asked: free ones of ``parts`` if nothing need forbid
    them, else such as grow around a core.
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
    """A test that the level admits: a part that it would refuse waits for the others, or is left
    out if it fails alone.
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
    """A core with such of the drawn changes as leave what is asked."""
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
    """A core with as few rows as what is asked needs, and with so many parts: further ones follow
    when it has ended. None if it is none, or if no such part leaves what is asked.
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
) -> Iterator[Litmus]:
    """The smallest test of these statements that lies between the levels, and of the first few the
    smallest whose tables no serial order gives, on tables with none, one or all of these rows.

    IsolitmusError if there is none, or none is found in a minute.
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
    first = search(_scope(tables, usable, rows, most))
    if not isinstance(first.litmus, Litmus):
        raise IsolitmusError(
            f"no test of these statements is known that {first.a} admits and {first.b} forbids,"
            f" with at most {count_of(most, 'transaction')}: {first.bound}"
        )
    yield first.litmus
    if first.serial is not None and not first.serial.unexplained:
        other = search(_scope(tables, usable[:FEW], rows, most), unexplained=True)
        if isinstance(other.litmus, Litmus):
            yield other.litmus


def _scope(
    tables: Mapping[str, Schema],
    statements: Sequence[Statement],
    rows: Sequence[Statement],
    most: int,
) -> Scope:
    """Statements, on tables with none, one or all of these rows."""
    inits = ((), tuple(rows), *((row,) for row in rows[:ROWS]))
    return Scope(
        "drawn", "Statements that are drawn", "", tables, tuple(dict.fromkeys(inits)),
        tuple((one,) * LARGEST for one in statements if not isinstance(one, Read)),
        tuple(one for one in statements if isinstance(one, Read)),
        tuple(range(1, min(most, LARGEST) + 1)),
    )  # fmt: skip


def too_few_tests(asked: BetweenLevels, least: int) -> IsolitmusError:
    """The error where tests between the levels are known, and none with so many transactions."""
    assert asked.forbidden_by is not None
    return IsolitmusError(
        f"no test is known that {asked.level.name} admits and {asked.forbidden_by.name} forbids,"
        f" with at least {count_of(least, 'transaction')} and within what the strategy draws"
    )


def _in_scope(statement: Statement) -> bool:
    """Whether a search of a scope takes the statement."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise IsolitmusError("not in a scope")

    try:
        refuse_together(features_of(statement) | SCOPE, refuse, "", sql=statement.sql)
    except IsolitmusError:
        return False
    return True


def read_times(test: Litmus) -> dict[str, Times]:
    """When each transaction of a test starts and ends, by the places of its steps in the schedule.

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
    """Some of what a strategy draws, at most so many, each once and always the same."""
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
    """The test; Hypothesis' statistics say of how many examples how many transactions were under
    way at a time.
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
    """A run, as it is; Hypothesis' statistics say of how many examples what ended their
    transactions, and what is anomalous: which of the levels forbid the run (by default those that
    its protocol promises), and whether no serial order gives its tables. They are printed by
    ``pytest --hypothesis-show-statistics``.

    >>> from hypothesis import given, settings
    >>> from isolitmus.checker import run
    >>> from isolitmus.checker.strategies import jobs, note_coverage
    >>> @settings(max_examples=5)
    ... @given(jobs("shop"))
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
    """The levels that a protocol of the catalogue promises; of others "serializable"."""
    try:
        return spec(protocol).promises or ("serializable",)
    except IsolitmusError:  # of a file of one's own: a run has its name alone
        return ("serializable",)
