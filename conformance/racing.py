"""A deterministic race of one's own code: any callable that writes to Delta, parked before its commit.

What the callable does is its own business: SQL, a DataFrame, DeltaTable. It runs in a thread of its own
until its transaction comes to a phase, and waits there; who wrote what meanwhile, and how it ended, is read
from the table's log. Of a statement that is given as a text, the model says how it should end, and why.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from isolitmus.conformance.ended import committed, failed
from isolitmus.conformance.failure import keep_java_exceptions, understand
from isolitmus.conformance.log import latest, read_commits
from isolitmus.conformance.parking import Parking
from isolitmus.conformance.predicting import Account, foretell, respelled
from isolitmus.conformance.session import Session
from isolitmus.conformance.threads import Interruption
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import TransactionRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.conformance.log import Commit
    from isolitmus.conformance.parking import Phase, Transaction
    from isolitmus.conformance.predicting import Prediction, Told

__all__ = ["Ending", "Parked", "Race", "race"]

TORN = "IllegalStateTransitionException"
"""What Delta's observer of one transaction raises where it sees two (fuzzer/AtomicBarrier.scala)."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a parked callable or statement ended.

    ``outcome`` as of a transaction in a run: ``committed``, ``no-op`` (nothing was recorded), a conflict's
    class, or ``error:CLASS``. ``read_version`` is the table's newest version when its snapshot was taken,
    ``commits`` are the versions that it made, ``overtook`` the commits between, the table's own numbers all.
    ``again`` is the version that it read at a second attempt (OPTIMIZE makes one), None if it made none;
    ``error`` is what it raised. ``prediction`` is what the model says of it, or ``unpredicted`` why it says
    nothing.
    """

    name: str
    outcome: str
    error_class: str | None
    read_version: int
    commits: tuple[int, ...]
    overtook: tuple[Commit, ...]
    again: int | None = None
    error: BaseException | None = None
    prediction: Prediction | None = None
    unpredicted: str = ""

    @property
    def version(self) -> int | None:
        """The first version that it made; None if it failed or recorded nothing."""
        return self.commits[0] if self.outcome == "committed" else None

    def __str__(self) -> str:
        again = "" if self.again is None else f", tried again on version {self.again}"
        first = f"{self.name} read version {self.read_version}{again} and "
        made = " to ".join(map(str, dict.fromkeys((*self.commits[:1], *self.commits[-1:]))))
        made = f"version{'s' if len(self.commits) > 1 else ''} {made}"
        if self.outcome == "no-op":
            first += "recorded nothing"
        elif self.outcome == "committed":
            first += f"committed as {made}"
        else:
            after = f" after it had made {made}" if self.commits else ""
            first += f"ended with {self.outcome}{after}"
        lines = [first + (f" ({self.error_class})" if self.error_class is not None else "")]
        lines += [f"  {commit.words} overtook it" for commit in self.overtook]
        if self.prediction is not None:
            lines += [f"  {line}" for line in str(self.prediction).splitlines()]
        elif self.unpredicted:
            lines.append(f"  no prediction: {self.unpredicted}")
        return "\n".join(lines)


class Parked:
    """What waits before its commit, or has ended without coming there (``ended``)."""

    def __init__(self, race: Race, running: _Running) -> None:
        self._race, self._running = race, running

    @property
    def name(self) -> str:
        """What it is called."""
        return self._running.name

    @property
    def read_version(self) -> int:
        """The table's newest version when its snapshot was taken, or so far."""
        return self._running.read_version

    @property
    def ended(self) -> bool:
        """Whether it is not parked any more, or never was: it had nothing to commit."""
        return self._running.transaction.ended

    def go_on(self, until: Phase) -> None:
        """Let it go on to a later phase; TimeLimit if it does not come there in time."""
        self._race.go_on(self._running, until)

    def next(self, until: Phase = "commit") -> None:
        """Let its transaction try its commit, and hold the next one that it starts (OPTIMIZE tries again after
        a conflict, VACUUM makes two commits) at a phase, or let it end; TimeLimit if neither comes in time,
        IsolitmusError where it begins one that it never commits (DROP FEATURE does), and then another.
        """
        self._race.next(self._running, until)

    def release(self) -> Ending:
        """Let it try its commit, and how that ended; TimeLimit if it does not end in time."""
        return self._race.ending(self._running)


@dataclass(slots=True)
class _Running:
    """What a race has started: ``held`` while its snapshot is not taken, ``made`` are its versions so far."""

    name: str
    transaction: Transaction[Any]
    read_version: int
    held: bool
    made: tuple[int, ...]
    told: Told | None


class Race:
    """Parks callables and statements; made by ``race``."""

    def __init__(self, session: Session, given: str | Path, table: Path, seconds: float) -> None:
        self.table = table
        self._given = given
        self._session = session
        self._account = Account()
        self.parking = Parking(session, Interruption(), seconds)

    def park(
        self,
        body: str | Callable[[], object],
        name: str | None = None,
        until: Phase = "commit",
    ) -> Parked:
        """Run a callable, or a statement, in a thread until its transaction comes to a phase: ``commit`` (it
        has read and written its files), ``prepare`` (before it knows its actions), ``init`` (before its
        snapshot). Without a name a statement is called by its first word.

        TimeLimit if it neither comes there nor ends in time. What has several transactions is parked at its
        first; the others run freely, but for those that ``Parked.next`` holds.
        """
        return Parked(self, self._start(body, name, until))

    def sql(self, text: str, name: str | None = None) -> None:
        """Run a statement to its end, of which the model then knows what it did; raises what it raises."""
        running = self._start(text, name, None)
        if running.told is not None:
            running.told.seen = self._seen(running)
        running.transaction.result()

    def go_on(self, running: _Running, until: Phase) -> None:
        """Let what is parked go on to a later phase."""
        before = self._snapshot(running)
        self.parking.move(running.transaction, until)
        running.made += self._since(before)
        if running.told is not None:
            self._account.step(running.told, f"park-{until}")

    def next(self, running: _Running, until: Phase) -> None:
        """Let what is parked go on to its next transaction."""
        before = self._snapshot(running)
        self.parking.next(running.transaction, until)
        running.made += self._since(before)
        self._refuse_torn(running)
        if running.told is not None:
            running.told.unknown = f"{running.name} was held at its second transaction, and the model's schedules have one each"

    def ending(self, running: _Running) -> Ending:
        """Release what is parked."""
        before = self._snapshot(running)
        self.parking.finish(running.transaction)
        last = latest(self.table)
        running.made += self._since(before)
        self._refuse_torn(running)
        seen = self._seen(running)
        if seen.read_version is not None:  # OPTIMIZE has its snapshot when it comes to ``init``
            running.read_version = min(running.read_version, seen.read_version)
        later = read_commits(self.table, since=running.read_version)
        overtook = tuple(c for c in later if c.version <= before and c.version not in running.made)
        prediction, unpredicted = self._foretold(running, seen, last)
        return Ending(
            running.name,
            seen.outcome,
            seen.error_class,
            running.read_version,
            running.made,
            overtook,
            seen.read_version if seen.read_version != running.read_version else None,
            running.transaction.error,
            prediction,
            unpredicted,
        )

    def _foretold(
        self, running: _Running, seen: TransactionRun, last: int
    ) -> tuple[Prediction | None, str]:
        """What the model says of what ended so, or why it says nothing."""
        told = running.told
        if told is None:
            return (
                None,
                f"{running.name} is a callable; of a statement, as a text, the model says why",
            )
        self._account.step(told, "commit")
        told.seen = seen
        try:
            window = self._account.window(told, last)
            return foretell(self._session, window, self._given, self.table), ""
        except IsolitmusError as error:
            return None, str(error).splitlines()[0]

    def _refuse_torn(self, running: _Running) -> None:
        """IsolitmusError for what failed because it was held, and not by what it does."""
        error = running.transaction.error if running.transaction.ended else None
        if error is not None and understand(error, self._session.jvm).exception == TORN:
            raise IsolitmusError(
                f"{running.name} cannot be held there: it began a transaction without committing it, and then"
                " another one, which Delta's observer of one transaction fails; park its parts one by one"
                f" (it has made {len(running.made)} commits)"
            ) from error

    def _start(
        self, body: str | Callable[[], object], name: str | None, until: Phase | None
    ) -> _Running:
        """Start a callable or a statement, until it comes to a phase or to its end."""
        before = latest(self.table)
        told = self._tell(body, before, name) if isinstance(body, str) else None
        called = told.name if told is not None else name or "it"
        if told is not None:
            self._account.step(told, "both" if until is None else f"park-{until}")
        spark = self._session.spark
        run = (lambda: spark.sql(body).collect()) if isinstance(body, str) else body
        transaction = self.parking.start(called, run, until)
        return _Running(called, transaction, before, until == "init", self._since(before), told)

    def _tell(self, sql: str, began: int, name: str | None) -> Told:
        """Take note of a statement."""
        unknown = ""
        try:
            if _path(self._session.spark, self._given) != self.table:
                unknown = f"'{self._given}' means another table by now"
            sql = respelled(sql, self._given)
        except IsolitmusError as error:
            unknown = str(error)
        return self._account.tell(sql, began, name, unknown)

    def _snapshot(self, running: _Running) -> int:
        """The newest version, at which a snapshot that is not taken yet will be taken."""
        newest = latest(self.table)
        if running.held:
            running.read_version, running.held = newest, False
        return newest

    def _since(self, version: int) -> tuple[int, ...]:
        return tuple(commit.version for commit in read_commits(self.table, since=version))

    def _seen(self, running: _Running) -> TransactionRun:
        """How something ended, by the table's own numbers."""
        made, error = running.made, running.transaction.error
        if error is not None:
            return failed(error, self._session.jvm, running.read_version, made)
        if not made:
            return TransactionRun("no-op", read_version=running.read_version)
        first, last = (read_commits(self.table, since=made[k] - 1)[0] for k in (0, -1))
        read = running.read_version if first.read_version is None else first.read_version
        return committed(last, read, made)


@contextmanager
def race(spark: Any, table: str | Path, *, seconds: float = 60.0) -> Iterator[Race]:
    """A race for a table, by name or path, on a SparkSession with Delta; ``seconds`` is the time limit of
    each step. At the end of the block, however it comes, whatever is parked is let go and waited for.

    IsolitmusError for a table that is not Delta's or not on this machine's file system.

    >>> def test_delete_beside_insert(spark):
    ...     with race(spark, "events") as run:
    ...         delete = run.park(lambda: spark.sql("DELETE FROM events WHERE day = 1"), "delete")
    ...         spark.sql("INSERT INTO events VALUES (1, 7)")
    ...         assert delete.release().outcome == "ConcurrentAppendException"
    """
    path = _path(spark, table)
    session = Session(spark, spark._jvm, f"Spark {spark.version}", path)  # noqa: SLF001 - no public name
    running = Race(session, table, path, seconds)
    with keep_java_exceptions(), running.parking:
        yield running


def _path(spark: Any, table: str | Path) -> Path:
    """Where a table is."""
    from delta.tables import DeltaTable
    from pyspark.errors import PySparkException

    try:
        if isinstance(table, Path):
            found = DeltaTable.forPath(spark, str(table))
        else:
            found = DeltaTable.forName(spark, table)
        location = found.detail().collect()[0]["location"]
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
        raise IsolitmusError(
            f"'{table}' is no Delta table that Spark can read: {condition}"
        ) from None
    url = urlparse(location)
    if url.scheme not in ("", "file"):
        raise IsolitmusError(f"'{table}' is at {location}; a race needs a table on the file system")
    return Path(unquote(url.path))
