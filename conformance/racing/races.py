"""Deterministic races of user code: any callable that writes to Delta, parked before its commit.

The callable may use SQL, a DataFrame, DeltaTable, other tables or other threads. It runs until one
of its transactions on the raced table reaches a phase, and waits there. Delta reports the versions
that its transactions read and committed, and the table's log has to agree. For a statement that is
given as text, the model also predicts its outcome, with the reasons.

The steps of a race form a timeline, which includes concurrent commits of others.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.parking import Parking, version_read_by, versions_made_by
from isolitmus.conformance.delta.session import Session
from isolitmus.conformance.delta.transaction_outcome import (
    committed_transaction,
    failed_transaction,
    first_words,
    keep_java_exceptions,
)
from isolitmus.conformance.racing.race_prediction import RaceRecord, predict_statement, respell
from isolitmus.conformance.workers import Interruption
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import PARKED, TOOK_EFFECT, Run, Timeline, TransactionRun
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs.logs.delta_log import commits_since, latest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isolitmus.conformance.delta.parking import CommitAttempt, HeldTransaction, Phase
    from isolitmus.conformance.racing.race_prediction import Prediction, RacedStatement
    from isolitmus.model.delta.log import LogCommit
    from isolitmus.model.schedule import Action


class RaceSteps:
    """Steps of a race on a table, in order."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._began = latest_version(table)
        self._steps: list[tuple[int, Step]] = []

    def take(self, name: str, action: Action) -> None:
        """Record a step of a participant, on the table as it is now."""
        self._steps.append((latest_version(self._table), Step(name, action)))

    def timeline(self, seen: Mapping[str, TransactionRun]) -> Timeline:
        """Return the steps so far, with the outcome of each participant.

        Commits that ``seen`` does not contain are shown as those of others.
        """
        runs = dict(seen)
        own = {version for each in seen.values() for version in each.commits}
        others = {
            commit.version: f"version {commit.version} ({commit.operation or 'unknown operation'})"
            for commit in commits_since(self._table, self._began)
            if commit.version not in own
        }
        steps: list[Step] = []
        before = self._began
        for newest, step in [*self._steps, (latest_version(self._table), None)]:
            for version in range(before + 1, newest + 1):
                if version in others:
                    name = others[version]
                    runs[name] = TransactionRun("committed", version=version, commits=(version,))
                    steps.append(Step(name, "both"))
            before = newest
            steps += [] if step is None else [step]
        run = Run("a race", "delta", "", "", self._began, runs, ())
        return Timeline(Schedule(tuple(steps)), run)


@dataclass(frozen=True, slots=True)
class RaceOutcome(ReadableRepr):
    """Outcome of a parked callable or statement, by the table's log.

    Its ``repr`` is one line, as ``assert ending.committed, ending`` shows it; its text has the
    reasons.
    """

    name: str
    """Name under which it was parked."""
    outcome: str
    """``committed``, ``no-op`` (nothing was committed), a conflict's class, or ``error:CLASS``."""
    error_class: str | None
    """Error class of the exception, if Delta gave it one."""
    read_version: int | None
    """Version that its first attempt read, or else its first transaction; None if it began none."""
    attempts: tuple[CommitAttempt, ...]
    """Its transactions on the table that reached their commit."""
    concurrent_commits: tuple[LogCommit, ...]
    """Concurrent commits: between the version that an attempt read and its own commit or failure.
    """
    error: BaseException | None = None
    """Exception that it raised."""
    prediction: Prediction | None = None
    """Prediction of the model."""
    unpredicted: str = ""
    """Reason why a statement given as text has no prediction; empty for callables."""

    @property
    def committed(self) -> bool:
        """True if it committed a version, and did not fail."""
        return self.outcome == "committed"

    @property
    def conflict(self) -> bool:
        """True if Delta aborted it because of concurrent commits."""
        return self.outcome not in TOOK_EFFECT and not self.outcome.startswith("error:")

    def raise_if_conflict(self) -> None:
        """Raise Delta's exception if a conflict aborted it, to test code that catches conflicts."""
        if self.conflict and self.error is not None:
            raise self.error

    @property
    def message(self) -> str:
        """Message of its exception; empty if it raised none."""
        return "" if self.error is None else first_words(self.error)

    @property
    def commits(self) -> tuple[int, ...]:
        """Versions that it committed."""
        return versions_made_by(self.attempts)

    @property
    def version(self) -> int | None:
        """First version that it committed; None if it failed or committed nothing."""
        return self.commits[0] if self.outcome == "committed" else None

    @property
    def again(self) -> int | None:
        """Version that it read at its first retry (OPTIMIZE retries after a conflict), or None."""
        found = (b.read_version for a, b in pairwise(self.attempts) if _again(a, b))
        return next(found, None)

    @property
    def printed(self) -> str:
        """Full text, also where objects print by their ``repr``."""
        return str(self)

    def __repr__(self) -> str:
        said = f"{self.name} {self._did}"
        return said + (f" ({self.error_class})" if self.error_class is not None else "")

    def __str__(self) -> str:
        lines = [repr(self)]
        for commit in self.concurrent_commits:
            own = " (its own)" if commit.version in self.commits else ""
            lines.append(f"  concurrent commit{own}: {commit.words}")
        if self.message:
            lines.append(f"  {self.message}")
        if self.prediction is not None:
            lines += [f"  {line}" for line in str(self.prediction).splitlines()]
        elif self.unpredicted:
            lines.append(f"  no prediction: {self.unpredicted}")
        return "\n".join(lines)

    @property
    def _did(self) -> str:
        """Description of its attempts and its end."""
        end = "" if self.error is None else f"ended with {self.outcome}"
        if self.read_version is None:
            none = "began no transaction on the table"
            return f"{end} and {none}" if end else none
        if not self.attempts:
            return f"read {_version(self.read_version)} and {end or 'committed nothing'}"
        said = ""
        for before, attempt in zip((None, *self.attempts), self.attempts, strict=False):
            said += f"{_joint(before, attempt)} {_version(attempt.read_version)}"
            if attempt.version is not None:
                said += f" and committed as version {attempt.version}"
        last = self.attempts[-1]
        if last.version is None:
            return f"{said} and {end or 'failed to commit'}"
        return f"{said}, then {end}" if end else said


def _version(read: int | None) -> str:
    """Return the words for a version that was read, which may be that of a missing table."""
    return "no version" if read is None or read < 0 else f"version {read}"


def _joint(before: CommitAttempt | None, attempt: CommitAttempt) -> str:
    """Return the words between two attempts, of which the later one need not be a retry."""
    if before is None:
        return "read"
    if _again(before, attempt):
        return ", retried on"
    after = before.version is not None and before.version <= (attempt.read_version or 0)
    return ", then read" if after else ", and read"


def _again(before: CommitAttempt, attempt: CommitAttempt) -> bool:
    """Return whether an attempt is a retry after another one's failure."""
    return before.failed_at is not None and before.failed_at <= (attempt.read_version or 0)


def concurrent_commits(
    commits: Iterable[LogCommit], attempts: Iterable[CommitAttempt]
) -> tuple[LogCommit, ...]:
    """Return the commits between what one of the attempts read and its own commit or failure."""
    met = {version for attempt in attempts for version in attempt.met}
    return tuple(commit for commit in commits if commit.version in met)


PARKS: dict[Phase, Action] = {
    "init": "park-init",
    "prepare": "park-prepare",
    "commit": "park-commit",
}
"""Step of a schedule that stops at each phase."""


class Parked:
    """Callable or statement that waits before its commit, or has ended (``ended``)."""

    def __init__(self, race: Race, running: _Running) -> None:
        self._race, self._running = race, running

    @property
    def name(self) -> str:
        """Name of the callable or statement."""
        return self._running.name

    @property
    def read_version(self) -> int | None:
        """Version of the table that it has read; None before its snapshot."""
        return version_read_by(self._running.transaction.attempts)

    @property
    def ended(self) -> bool:
        """True if it is not parked: it was released, or had nothing to commit to the table."""
        return self._running.transaction.ended

    def go_on(self, until: Phase) -> None:
        """Release it to a later phase; raise TimeLimit if it does not get there in time."""
        self._race.go_on(self._running, until)

    def next(self, until: Phase = "commit") -> None:
        """Release its transaction, and hold its next one at a phase, or let it end.

        OPTIMIZE retries after a conflict, and VACUUM makes two commits. Raises TimeLimit if neither
        happens in time.
        """
        self._race.next(self._running, until)

    def advance(self) -> None:
        """Go on to the commit, or from there to the next transaction's ``init`` or the end."""
        self._race.advance(self._running)

    @property
    def reads(self) -> bool:
        """True if it is parked before its commit."""
        return self._running.transaction.gate.reads

    def release(self) -> RaceOutcome:
        """Let it try its commit and return its outcome; later calls return the same.

        Raises TimeLimit if it does not end in time.
        """
        return self._race.ending(self._running)


@dataclass(slots=True)
class _Running:
    """Callable or statement of a race; ``began`` is the table's newest version at its start."""

    name: str
    transaction: HeldTransaction[Any]
    began: int
    statement: RacedStatement | None
    ending: RaceOutcome | None = None


class Race:
    """Parks callables and statements on a table; created by ``race``."""

    def __init__(self, session: Session, given: str | Path, table: Path, seconds: float) -> None:
        self.table = table
        self._given = given
        self._session = session
        self._record = RaceRecord()
        self._steps = RaceSteps(table)
        self._started: list[_Running] = []
        self.parking = Parking(session, Interruption(), seconds, table)

    def park(
        self,
        body: str | Callable[[], object],
        name: str | None = None,
        until: Phase = "commit",
    ) -> Parked:
        """Run a callable or a statement until one of its transactions on the table reaches a phase.

        Its transactions on other tables are not held. Those in other threads are: a streaming
        query's, a pool's, or any that begins on the table while this waits. If it has several
        transactions on the table, it is parked at the first; the others run freely, except those
        that ``Parked.next`` holds.

        Parameters
        ----------
        body : str or callable
            Statement, or callable that writes by Spark.
        name : str, optional
            Name; by default, a statement is called by its first word and a callable by its name.
        until : {"commit", "prepare", "init"}
            Phase: ``commit`` (it has read and written its files), ``prepare`` (before it knows its
            actions), or ``init`` (before its snapshot).

        Returns
        -------
        Parked
            The parked callable or statement, which may have ended.

        Raises
        ------
        TimeLimit
            It neither reaches the phase nor ends in time.
        IsolitmusError
            It ended without being held although the table has a new version, so another process or
            engine committed that.
        """
        running = self._start(body, name, until)
        self._refuse_unheld(running)
        return Parked(self, running)

    def sql(self, text: str, name: str | None = None) -> None:
        """Run a statement to its end, so that predictions know its effect; raise what it raises."""
        running = self._start(text, name, None)
        if running.statement is not None:
            running.statement.seen = self._seen(running)
            running.statement.active = bool(running.transaction.attempts)
        running.transaction.result()

    @property
    def timeline(self) -> Timeline:
        """Start, end and outcome of each participant, with the commits of others in between."""
        return self._steps.timeline({each.name: self._fate(each) for each in self._started})

    @property
    def story(self) -> str:
        """Timeline, and the outcome of each released participant."""
        endings = (each.ending for each in self._started if each.ending is not None)
        return "\n".join([repr(self.timeline), *map(str, endings)])

    def go_on(self, running: _Running, until: Phase) -> None:
        """Release a participant to a later phase."""
        self._refuse_released(running)
        self.parking.move(running.transaction, until)
        if running.statement is not None:
            self._record.step(running.statement, f"park-{until}")

    def next(self, running: _Running, until: Phase) -> None:
        """Release a participant to its next transaction."""
        self._refuse_released(running)
        self.parking.next(running.transaction, until)
        if running.statement is not None:
            running.statement.unknown = (
                f"{running.name} was held at its second transaction; a statement in the"
                " model's schedules has only one"
            )

    def advance(self, running: _Running) -> None:
        """Release a participant by a step."""
        self._refuse_released(running)
        self.parking.advance(running.transaction)

    def ending(self, running: _Running) -> RaceOutcome:
        """Release a participant and return its outcome."""
        if running.ending is None:
            self._steps.take(running.name, "commit")
            self.parking.finish(running.transaction)
            running.ending = self._ending(running, latest_version(self.table))
        return running.ending

    def _ending(self, running: _Running, last: int) -> RaceOutcome:
        """Return the outcome of a participant that has ended."""
        attempts, seen = running.transaction.attempts, self._seen(running)
        tried = tuple(attempt for attempt in attempts if attempt.tried)
        since = min((a.read_version or 0 for a in tried), default=last)
        prediction, unpredicted = self._predicted(running, seen, last)
        return RaceOutcome(
            running.name,
            seen.outcome,
            seen.error_class,
            version_read_by(attempts),
            tried,
            concurrent_commits(commits_since(self.table, since), tried),
            running.transaction.error,
            prediction,
            unpredicted,
        )

    def _predicted(
        self, running: _Running, seen: TransactionRun, last: int
    ) -> tuple[Prediction | None, str]:
        """Return the prediction for a participant that has ended, or the reason for having none."""
        statement = running.statement
        if statement is None:
            return None, ""
        self._record.step(statement, "commit")
        statement.seen, statement.active = seen, bool(running.transaction.attempts)
        try:
            window = self._record.window(statement, last)
            return predict_statement(self._session, window, self._given, self.table), ""
        except IsolitmusError as error:
            return None, str(error).splitlines()[0]

    def _refuse_unheld(self, running: _Running) -> None:
        """Raise IsolitmusError if a participant ended and may have committed without being held."""
        if running.transaction.held:
            return
        for commit in commits_since(self.table, running.began):
            raise IsolitmusError(
                f"{running.name} ended without being held, but {commit.words} was committed"
                " meanwhile: commits of other processes or engines cannot be parked"
            )

    @staticmethod
    def _refuse_released(running: _Running) -> None:
        """Raise IsolitmusError for a participant that was released."""
        if running.ending is not None:
            raise IsolitmusError(f"{running.name} was released and cannot be held again")

    def _start(
        self, body: str | Callable[[], object], name: str | None, until: Phase | None
    ) -> _Running:
        """Start a callable or a statement, up to a phase or to its end."""
        before = latest_version(self.table)
        statement = self._known(body, before, name) if isinstance(body, str) else None
        called = statement.name if statement is not None else name or _called(body)
        action = "both" if until is None else PARKS[until]
        self._steps.take(called, action)
        if statement is not None:
            self._record.step(statement, action)
        spark = self._session.spark
        run = (lambda: spark.sql(body).collect()) if isinstance(body, str) else body
        running = _Running(called, self.parking.start(called, run, until), before, statement)
        self._started.append(running)
        return running

    def _known(self, sql: str, began: int, name: str | None) -> RacedStatement:
        """Record a statement."""
        unknown = ""
        try:
            if table_path(self._session.spark, self._given) != self.table:
                unknown = f"'{self._given}' now refers to another table"
            sql = respell(sql, self._given)
        except IsolitmusError as error:
            unknown = str(error)
        return self._record.add(sql, began, name, unknown)

    def _seen(self, running: _Running) -> TransactionRun:
        """Return the run of a participant that has ended, in the table's own version numbers."""
        attempts, error = running.transaction.attempts, running.transaction.error
        read, made = version_read_by(attempts), self._checked(running, attempts)
        read = running.began if read is None else read
        if error is not None:
            return failed_transaction(error, self._session.jvm, read, versions_made_by(attempts))
        if not made:
            return TransactionRun("no-op", read_version=read)
        return committed_transaction(made[-1], made[0].read_version, versions_made_by(attempts))

    def _fate(self, running: _Running) -> TransactionRun:
        """Return the run of a participant so far."""
        if running.transaction.ended:
            return self._seen(running)
        attempts = running.transaction.attempts
        return TransactionRun(
            PARKED, read_version=version_read_by(attempts), commits=versions_made_by(attempts)
        )

    def _checked(self, running: _Running, attempts: tuple[CommitAttempt, ...]) -> list[LogCommit]:
        """Return the commits of a participant; raise IsolitmusError if the log disagrees."""
        versions, made = versions_made_by(attempts), []
        since = min(versions, default=0) - 1
        log = {commit.version: commit for commit in commits_since(self.table, since)}
        for version in versions:
            attempt = next(a for a in attempts if a.version == version)
            commit = log.get(version)
            if commit is None or commit.transaction != attempt.id:
                raise IsolitmusError(
                    f"{running.name} committed version {version}, but the log of"
                    f" {self._given} has another commit there: the table was created anew, or"
                    " its commits do not record their transaction"
                )
            made.append(commit)
        return made


def _called(body: object) -> str:
    """Return the name of a callable that was given none."""
    name = getattr(body, "__name__", "<it>")
    return name if name.isidentifier() else "it"


@contextmanager
def race(spark: Any, table: str | Path, *, seconds: float = 60.0) -> Iterator[Race]:
    """Open a race for a table on a SparkSession with Delta.

    At the end of the block, whatever happens, everything parked is released and joined.

    Parameters
    ----------
    spark : SparkSession
        Session with Delta.
    table : str or Path
        Name or path of the table.
    seconds : float
        Time limit of each step.

    Yields
    ------
    Race
        Object that parks, runs and releases statements and callables.

    Raises
    ------
    IsolitmusError
        The table is not a Delta table, or not on this machine's file system.

    Examples
    --------
    >>> def test_delete_beside_insert(spark):
    ...     with race(spark, "events") as run:
    ...         delete = run.park(lambda: spark.sql("DELETE FROM events WHERE day = 1"), "delete")
    ...         spark.sql("INSERT INTO events VALUES (1, 7)")
    ...         assert delete.release().outcome == "ConcurrentAppendException"
    """
    path = table_path(spark, table)
    with race_at(shared_session(spark, path), table, path, seconds) as run:
        yield run


@contextmanager
def race_at(session: Session, given: str | Path, path: Path, seconds: float) -> Iterator[Race]:
    """Open a race as ``race`` does, for a table whose path is known."""
    run = Race(session, given, path, seconds)
    with keep_java_exceptions(), run.parking:
        yield run


def shared_session(spark: Any, path: Path) -> Session:
    """Return a Session for a SparkSession that other code has started, for a table at a path."""
    return Session(spark, spark._jvm, f"Spark {spark.version}", path)  # noqa: SLF001 - no public name


def table_path(spark: Any, table: str | Path) -> Path:
    """Return the path of a table, given by name or path.

    Raises IsolitmusError if it is not a Delta table, or not on this machine's file system.
    """
    from delta.tables import DeltaTable
    from pyspark.errors import PySparkException

    try:
        if isinstance(table, Path):
            found = DeltaTable.forPath(spark, str(table))
        else:
            found = DeltaTable.forName(spark, table)
        # `detail()` has it too, but reads all files of the table: a second in each race
        location = found._jdt.deltaLog().dataPath().toUri()  # noqa: SLF001 - no public name
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
        raise IsolitmusError(
            f"'{table}' is not a Delta table that Spark can read: {condition}"
        ) from None
    if location.getScheme() not in (None, "file"):
        raise IsolitmusError(
            f"'{table}' is at {location.toString()}; a race needs a table on the file system"
        )
    return Path(location.getPath())
