"""All interleavings of the snapshots and commits of two or three jobs on real Delta.

A job is code that writes a Delta table by Spark. It first runs until one of its transactions on the
table is about to take its snapshot, and waits. What it has read until then may be stale by the time
it writes. (A statement given as text has read nothing; it waits at its commit.) Its next step runs
to the transaction's commit, and one more from there until the next transaction is about to take its
snapshot, or to the end. So a job that commits twice, or retries, has more steps.

Orders of steps are run one after another, each on the table as it was at the beginning (RESTORE).
Two adjacent steps of two jobs that commit nothing are run in one order only, on the assumption that
neither job sees the effect of the other one's step.

Each final table is compared with those of the serial orders of the jobs that succeeded, or failed
after a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.racing.races import race_at, shared_session, table_path
from isolitmus.model.display import ReadableRepr, count_of, first_lines
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.logs.delta_log import commits_since, latest_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isolitmus.conformance.racing.races import Parked, Race, RaceOutcome

Steps = tuple[str, ...]
"""Names of jobs, one for each step."""
RacedJob = str | Callable[[], object]
"""Statement or callable."""
Able = Mapping[str, bool]
"""Jobs that can take the next step, each with whether that step commits nothing."""
SHOWN = 3
"""Maximum number of interleavings in the text of a result."""


@dataclass(frozen=True, slots=True)
class InterleavingResult(ReadableRepr):
    """Order of the steps of some jobs, and its result.

    Its ``repr`` is the schedule; its text also has the outcomes.
    """

    order: Steps
    """Job of each step."""
    actions: Steps
    """Action of each step.

    ``begin`` runs until before the first snapshot, ``start`` from there to a commit, ``commit``
    from there on to the next snapshot, or to the end.
    """
    endings: Mapping[str, RaceOutcome]
    """Outcome of each job, by name."""
    rows: tuple[str, ...]
    """Rows of the final table, sorted."""
    serial: tuple[str, ...] = ()
    """Serial orders, of the jobs that succeeded or committed, that give the same final table."""

    @property
    def schedule(self) -> str:
        """Steps in the form of a litmus file.

        A job that ran alone has one step, and ``begin`` is left out right before its ``start``.
        """
        words: list[str] = []
        for k, (name, action) in enumerate(zip(self.order, self.actions, strict=True)):
            if name in words:
                continue  # it ran alone and has its one word
            own = self.order.count(name)
            goes_on = self.order[k + 1 : k + 2] == (name,)
            if self.order[k : k + own] == (name,) * own:
                words.append(name)
            elif action != "begin" or not goes_on:
                words.append(f"{name}.{action}")
        return " ".join(words)

    @property
    def failed(self) -> tuple[str, ...]:
        """Jobs that raised an exception."""
        return tuple(name for name, end in self.endings.items() if end.error is not None)

    @property
    def effective(self) -> tuple[str, ...]:
        """Jobs whose effect the serial orders have to contain."""
        ends = self.endings.items()
        return tuple(name for name, end in ends if end.error is None or end.commits)

    @property
    def printed(self) -> str:
        """Full text, also where objects print by their ``repr``."""
        return str(self)

    def __repr__(self) -> str:
        return self.schedule

    def __str__(self) -> str:
        lines = (f"  {line}" for e in self.endings.values() for line in str(e).splitlines())
        return "\n".join([self.schedule, *lines])


@dataclass(frozen=True, slots=True)
class InterleavingsResult(ReadableRepr):
    """All interleavings of some jobs on a table.

    Its ``repr`` is one line; its text shows the interleavings that no serial order explains, and
    those in which a job fails.
    """

    table: str
    """Table as it was given."""
    interleavings: tuple[InterleavingResult, ...]
    """One result for each order of the steps."""
    alone: Mapping[str, tuple[str, ...] | None]
    """Final table of each serial order, by the names of its jobs; None if one of them failed there.
    """

    @property
    def unexplained(self) -> tuple[InterleavingResult, ...]:
        """Interleavings whose final table no serial order produces."""
        return tuple(one for one in self.interleavings if not one.serial)

    @property
    def explained(self) -> bool:
        """True if some serial order produces the final table of each interleaving."""
        return not self.unexplained

    @property
    def failed(self) -> tuple[InterleavingResult, ...]:
        """Interleavings in which a job raised an exception, such as a conflict."""
        return tuple(one for one in self.interleavings if one.failed)

    @property
    def printed(self) -> str:
        """Full text, also where objects print by their ``repr``."""
        return str(self)

    def __repr__(self) -> str:
        total, wrong = len(self.interleavings), len(self.unexplained)
        names = " and ".join(self.interleavings[0].endings)
        if not wrong:
            end = "each final table equals that of a serial order"
        else:
            end = (
                f"{wrong} of them {'ends' if wrong == 1 else 'end'} with a table that no"
                " serial order produces"
            )
        failed = len(self.failed)
        also = f"; in {failed} of them a job fails" if failed else ""
        return f"{names} on {self.table}: {count_of(total, 'interleaving')}, {end}{also}"

    def __str__(self) -> str:
        lines = [repr(self)]
        shown = [*self.unexplained, *(one for one in self.failed if one.serial)]
        for one in shown[:SHOWN]:
            lines += ["", *str(one).splitlines()]
            if not one.serial:
                lines += self._against(one)
        if len(shown) > SHOWN:
            lines += ["", f"and {len(shown) - SHOWN} more"]
        return "\n".join(lines)

    def _against(self, one: InterleavingResult) -> Iterator[str]:
        """Yield the final table of an interleaving and those of the serial orders."""
        yield f"  final table: {_table(one.rows)}"
        for order in permutations(one.effective):
            rows = self.alone[" ".join(order)]
            gives = "a job fails" if rows is None else f"{_table(rows)}"
            yield f"  serial order {' → '.join(order)}: {gives}"


def interleave(
    spark: Any,
    table: str | Path,
    *jobs: RacedJob,
    columns: Sequence[str] = (),
    before: Callable[[], object] | None = None,
    most: int = 200,
    seconds: float = 60.0,
) -> InterleavingsResult:
    """Run two or three jobs on a table in every interleaving of their snapshots and commits.

    A job that reads, and later writes what it has computed from that, is also interleaved between
    the two. The table is restored afterwards, by RESTORE.

    Parameters
    ----------
    spark : SparkSession
        Session with Delta.
    table : str or Path
        Name or path of the table.
    *jobs : str or callable
        Two or three statements or callables.
    columns : sequence of str
        Columns that are compared, by default all. Leave out times and random keys.
    before : callable, optional
        Called before each interleaving, to reset whatever else the jobs change.
    most : int
        Maximum number of interleavings.
    seconds : float
        Time limit of each step.

    Returns
    -------
    InterleavingsResult
        Interleavings, compared with the serial orders.

    Raises
    ------
    IsolitmusError
        A job never commits to the table, or commits where it cannot be held; the jobs give another
        table when they run in the same order again; or there are more interleavings than ``most``.

    Examples
    --------
    >>> def test_totals(spark):
    ...     add, double = "UPDATE totals SET n = n + 1", "UPDATE totals SET n = n * 2"
    ...     found = interleave(spark, "totals", add, double)
    ...     assert found.explained, found
    """
    if len(jobs) not in (2, 3):
        raise IsolitmusError(f"cannot interleave {count_of(len(jobs), 'job')}; pass two or three")
    walk = _Interleaving(
        spark, table, _named(jobs), columns=columns, before=before, seconds=seconds
    )
    with walk.restored():
        return walk.all(most)


def _named(jobs: Sequence[RacedJob]) -> dict[str, RacedJob]:
    """Return the jobs by unique names: a function's name, a statement's first word, or a number."""
    named: dict[str, RacedJob] = {}
    for k, job in enumerate(jobs, 1):
        if isinstance(job, str):
            called = job.split()[0].lower()
        else:
            called = getattr(
                getattr(job, "func", job), "__name__", ""
            )  # `func` of a functools.partial
        name = called if called.isidentifier() else f"job{k}"
        named[f"{name}{k}" if name in named else name] = job
    return named


class _Interleaving:
    """Search through the interleavings of some jobs."""

    def __init__(
        self,
        spark: Any,
        given: str | Path,
        jobs: Mapping[str, RacedJob],
        *,
        columns: Sequence[str],
        before: Callable[[], object] | None,
        seconds: float,
    ) -> None:
        self.spark, self.given, self.jobs = spark, given, jobs
        self.columns, self.before, self.seconds = columns, before, seconds
        self._path = table_path(spark, given)
        self._base = latest_version(self._path)
        self._touched = False

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the table after the block to its state at the beginning."""
        try:
            yield
        finally:
            self._restore()

    def _restore(self) -> None:
        if self._touched:
            self.spark.sql(f"RESTORE TABLE delta.`{self._path}` TO VERSION AS OF {self._base}")
        self._touched = False

    def all(self, most: int) -> InterleavingsResult:
        """Return every interleaving, compared with the serial orders."""
        found = self._followed(most)
        names = tuple(self.jobs)
        for name in names:
            if not any(one.endings[name].commits for one in found):
                raise IsolitmusError(
                    f"{name} commits nothing to {self.given} in any of"
                    f" {count_of(len(found), 'interleaving')}, so it cannot be interleaved"
                )
        alone = {" ".join(dict.fromkeys(one.order)): _gives(one) for one in found if _serial(one)}
        again = _gives(self._run(names)[0])
        if alone[" ".join(names)] != again:
            raise IsolitmusError(
                f"{' and then '.join(names)} gave another table when they ran serially again:"
                " exclude columns with times or random keys, columns=[…]"
            )
        judged = [self._judged(one, alone) for one in found]
        return InterleavingsResult(str(self.given), tuple(judged), alone)

    def _followed(self, most: int) -> list[InterleavingResult]:
        """Return the result of each order of steps."""
        found: list[InterleavingResult] = []
        left: list[Steps] = [()]
        while left:
            if len(found) == most:
                raise IsolitmusError(
                    f"{' and '.join(self.jobs)} have more than"
                    f" {count_of(most, 'interleaving')}; interleave fewer jobs, or raise most=…"
                )
            begin = left.pop()
            one, enabled = self._run(tuple(self.jobs), begin)
            found.append(one)
            for k in reversed(range(len(begin), len(one.order))):
                others = (name for name in enabled[k] if name != one.order[k])
                before = one.order[:k]
                left += [(*before, name) for name in others if self._wanted(before, enabled, name)]
        return found

    def _wanted(self, order: Steps, enabled: Sequence[Able], name: str) -> bool:
        """Return whether a step may follow these steps.

        Two adjacent steps of two jobs that commit nothing are allowed in one order only.
        """
        if not order or order[-1] == name:
            return True
        names, k = list(self.jobs), len(order)
        both = enabled[k - 1][order[-1]] and enabled[k][name]
        return not both or names.index(order[-1]) < names.index(name)

    def _run(self, names: Steps, begin: Steps = ()) -> tuple[InterleavingResult, list[Able]]:
        """Run some jobs: the steps of ``begin`` first, then the remaining ones job by job.

        Returns the result, and for each step the jobs that could take it.
        """
        self._restore()
        if self.before is not None:
            self.before()
        self._touched = True
        first = latest_version(self._path)
        parked: dict[str, Parked] = {}
        order: Steps = ()
        enabled: list[Able] = []
        with race_at(
            shared_session(self.spark, self._path), self.given, self._path, self.seconds
        ) as run:
            while able := {
                n: n not in parked or parked[n].reads
                for n in names
                if n not in parked or not parked[n].ended
            }:
                enabled.append(able)
                wanted = (n for n in able if self._wanted(order, enabled, n))
                name = next(wanted, next(iter(able)))
                if len(order) < len(begin):
                    name = begin[len(order)]
                if name not in able:
                    raise IsolitmusError(
                        f"{name} ended earlier than in another run of the same steps,"
                        f" '{' '.join(begin)}': its steps depend on something else"
                    )
                if name in parked:
                    parked[name].advance()
                else:
                    parked[name] = self._begin(run, name)
                order = (*order, name)
            endings = {name: parked[name].release() for name in names}
        own = {version for ending in endings.values() for version in ending.commits}
        for commit in commits_since(self._path, first):
            if commit.version not in own:
                raise IsolitmusError(
                    f"{commit.words} was committed by none of the held jobs"
                    f" {' and '.join(names)}, but by a thread that was not waited for, or by"
                    " another process or engine"
                )
        return (
            InterleavingResult(order, self._actions(order, enabled), endings, self._rows()),
            enabled,
        )

    def _actions(self, order: Steps, enabled: Sequence[Able]) -> Steps:
        """Return the action of each step."""
        return tuple(
            (
                ("start" if enabled[k][name] else "commit")
                if name in order[:k] or isinstance(self.jobs[name], str)
                else "begin"
            )
            for k, name in enumerate(order)
        )

    def _begin(self, run: Race, name: str) -> Parked:
        """Start a job, up to its first snapshot; a statement up to its first commit."""
        job = self.jobs[name]
        if isinstance(job, str):
            return run.park(lambda: self.spark.sql(job).collect(), name)
        return run.park(job, name, "init")

    def _rows(self) -> tuple[str, ...]:
        frame = self.spark.read.format("delta").load(str(self._path))
        rows = frame.select(*self.columns).collect() if self.columns else frame.collect()
        return tuple(sorted(repr(tuple(row)) for row in rows))

    def _judged(
        self, one: InterleavingResult, alone: dict[str, tuple[str, ...] | None]
    ) -> InterleavingResult:
        """Return an interleaving with the serial orders that give its final table."""
        serial = []
        for order in permutations(one.effective):
            words = " ".join(order)
            if words not in alone:
                alone[words] = _gives(self._run(order)[0])
            if alone[words] == one.rows:
                serial.append(words)
        return replace(one, serial=tuple(serial))


def _serial(one: InterleavingResult) -> bool:
    """Return whether the jobs ran serially."""
    changes = sum(a != b for a, b in zip(one.order, one.order[1:], strict=False))
    return changes == len(one.endings) - 1


def _gives(one: InterleavingResult) -> tuple[str, ...] | None:
    """Return the final table, or None if a job failed."""
    return None if one.failed else one.rows


def _table(rows: Sequence[str]) -> str:
    return " ".join(first_lines(rows, 12).splitlines()) or "no row"
