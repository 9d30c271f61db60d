"""A deterministic race of one's own code: any callable that writes to Delta, parked before its commit.

What the callable does is its own business: SQL, a DataFrame, DeltaTable. It runs in a thread of its own
until its transaction comes to a phase, and waits there; who wrote what meanwhile, and how it ended, is read
from the table's log.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from isolitmus.conformance.failure import keep_java_exceptions, understand
from isolitmus.conformance.log import read_commits
from isolitmus.conformance.parking import Parking
from isolitmus.conformance.session import Session
from isolitmus.conformance.threads import Interruption
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.conformance.log import Commit
    from isolitmus.conformance.parking import Phase, Transaction

__all__ = ["Ending", "Parked", "Race", "race"]

PARTITION = "partitionValues"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a parked callable ended.

    ``outcome`` as of a transaction in a run: ``committed``, ``no-op`` (nothing was recorded), a conflict's
    class, or ``error:CLASS``. ``read_version`` is the table's newest version when it was parked, ``version``
    what it became; ``overtook`` are the commits between, the table's own numbers all. ``error`` is what it
    raised.
    """

    name: str
    outcome: str
    error_class: str | None
    read_version: int
    version: int | None
    overtook: tuple[Commit, ...]
    error: BaseException | None = None

    def __str__(self) -> str:
        ended = (
            "committed as" if self.outcome == "committed" else f"ended with {self.outcome} after"
        )
        version = self.read_version if self.version is None else self.version
        lines = [f"{self.name} read version {self.read_version} and {ended} version {version}"]
        if self.outcome == "no-op":
            lines = [f"{self.name} read version {self.read_version} and recorded nothing"]
        if self.error_class is not None:
            lines[0] += f" ({self.error_class})"
        lines += [f"  {_words(commit)} overtook it" for commit in self.overtook]
        return "\n".join(lines)


class Parked:
    """A callable that waits before its commit, or has ended without coming there (``ended``)."""

    def __init__(self, race: Race, name: str, transaction: Transaction[Any], version: int) -> None:
        self._race, self._transaction = race, transaction
        self.name, self.read_version = name, version

    @property
    def ended(self) -> bool:
        """Whether it is not parked any more, or never was: it had nothing to commit."""
        return self._transaction.ended

    def go_on(self, until: Phase) -> None:
        """Let it go on to a later phase; TimeLimit if it does not come there in time."""
        self._race.parking.move(self._transaction, until)

    def release(self) -> Ending:
        """Let it try its commit, and how that ended; TimeLimit if it does not end in time."""
        return self._race.ending(self, self._transaction)


class Race:
    """Parks callables; made by ``race``."""

    def __init__(self, session: Session, table: Path, seconds: float) -> None:
        self.table = table
        self._session = session
        self.parking = Parking(session, Interruption(), seconds)

    def park(self, body: Callable[[], object], name: str = "it", until: Phase = "commit") -> Parked:
        """Run a callable in a thread until its transaction comes to a phase: ``commit`` (it has read and
        written its files), ``prepare`` (before it knows its actions), ``init`` (before its snapshot).

        TimeLimit if it neither comes there nor ends in time. A callable with several transactions is parked
        at its first, the others run freely.
        """
        version = self._newest()
        transaction = self.parking.start(name, body, until)
        return Parked(self, name, transaction, version)

    def ending(self, parked: Parked, transaction: Transaction[Any]) -> Ending:
        """Release a parked callable."""
        before = self._newest()
        self.parking.finish(transaction)
        later = read_commits(self.table, since=parked.read_version)
        own = tuple(commit for commit in later if commit.version > before)
        overtook = tuple(commit for commit in later if commit.version <= before)
        error = transaction.error
        outcome, error_class = "committed" if own else "no-op", None
        if error is not None:
            failure = understand(error, self._session.jvm)
            outcome, error_class = failure.outcome, failure.error_class
        version = own[0].version if own and error is None else None
        return Ending(
            parked.name, outcome, error_class, parked.read_version, version, overtook, error
        )

    def _newest(self) -> int:
        return max((commit.version for commit in read_commits(self.table)), default=-1)


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
    running = Race(session, path, seconds)
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


def _words(commit: Commit) -> str:
    """A commit in words."""
    counts = ((len(commit.adds), "added"), (len(commit.removes), "removed"))
    files = " and ".join(
        f"{count} file{'s' if count > 1 else ''} {what}" for count, what in counts if count
    )
    folders = {
        ", ".join(f"{k}={v}" for k, v in action[PARTITION].items())
        for action in (*commit.adds, *commit.removes)
        if action.get(PARTITION)
    }
    where = f" in {'; '.join(sorted(folders))}" if folders else ""
    blind = ", a blind append" if commit.blind else ""
    said = f"{files}{where}{blind}" if files else "no file"
    return f"version {commit.version} ({commit.operation}: {said})"
