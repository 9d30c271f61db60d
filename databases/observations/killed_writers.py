"""Observations of writers that are held or killed at a phase of their commit.

The files on disk then form a table, with the commit or without it. Delta's own observer for tests
holds the phases, including those after the commit file is written: BACKFILL and POST_COMMIT
(fuzzer/OptimisticTransactionPhases.scala). A transaction that is held there holds the lock of its
table's log, so the state that others would find is read from a copy of the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.conformance.delta.session import open_session
from isolitmus.conformance.workers import Interruption, Worker
from isolitmus.databases.observations.record import Observation
from isolitmus.model.errors import EngineFailed, TimeLimit
from isolitmus.specs.logs.delta_log import latest_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.conformance.delta.session import Session
    from isolitmus.databases.observations.record import Facts

PHASES = ("initial", "prepare", "commit", "backfill", "postCommit")
"""Phases of Delta's observer, in order."""
WRITTEN = PHASES.index("backfill")
"""Index of the first phase at which the commit file exists."""
SECONDS = 180.0
"""Time limit of each step, in seconds."""


class _Held:
    """Statement in its own thread, which waits at each phase until it is released."""

    def __init__(self, session: Session, sql: str) -> None:
        self._session, self._sql = session, sql
        fuzzer = "org.apache.spark.sql.delta.fuzzer"
        phases = session.java(f"{fuzzer}.OptimisticTransactionPhases").forName("killed")
        self._observer = session.java(f"{fuzzer}.PhaseLockingTransactionExecutionObserver")(phases)
        self._locks = {name: getattr(phases, f"{name}Phase")() for name in PHASES}
        self._worker = Worker("killed", self._run)

    def start(self) -> None:
        self._worker.start()

    def _run(self) -> None:
        """Run the statement with the phase-locking observer installed in its thread."""
        observers = self._session.scala("org.apache.spark.sql.delta.TransactionExecutionObserver")
        observers.setObserver(self._observer)
        try:
            self._session.spark.sql(self._sql).collect()
        finally:
            noop = self._session.scala(
                "org.apache.spark.sql.delta.NoOpTransactionExecutionObserver"
            )
            observers.setObserver(noop)

    def come_to(self, phase: str, interruption: Interruption) -> None:
        """Wait until the statement is held at a phase."""
        reached = self._locks[phase].hasReached
        if not interruption.wait_for(lambda: reached() or self._worker.ended, SECONDS):
            raise TimeLimit(f"the statement did not reach {phase} within {SECONDS:g} s")
        if self._worker.ended:
            self._worker.value()
            raise EngineFailed(f"the statement ended before it reached {phase}")

    def go(self, phase: str) -> None:
        """Release the statement from a phase; each phase may be released only once."""
        self._locks[phase].entryBarrier().unblock()

    def end(self) -> None:
        if not self._worker.join(SECONDS):
            raise TimeLimit(f"the statement did not end within {SECONDS:g} s")
        self._worker.value()


def _made(session: Session, path: Path) -> str:
    """Create a table with two partitions, and return a statement that rewrites both."""
    name = f"delta.`{path}`"
    session.spark.sql(
        f"CREATE TABLE {name} USING delta PARTITIONED BY (part) AS VALUES (1, 0), (2, 1) AS v (id,"
        " part)"
    )
    return f"UPDATE {name} SET id = id + 10"


def _found(session: Session, path: Path) -> list[object]:
    """Return the state of a table on disk.

    It consists of the newest version, the rows, the number of data files on disk, live or not, and
    whether the next write makes the next version.
    """
    spark, name = session.spark, f"delta.`{path}`"
    files = len(list(path.glob("part=*/*.parquet")))
    rows = spark.sql(f"SELECT id FROM {name}").collect()
    newest = latest_version(path)
    spark.sql(f"INSERT INTO {name} VALUES (5, 0)")
    can = latest_version(path) == newest + 1
    said = f"{files} data files", f"can{'' if can else 'not'} be written"
    return [f"version {newest}", *sorted(row[0] for row in rows), *said]


def _expected() -> Mapping[str, object]:
    """Return the expected states: with the commit from BACKFILL on, without it before.

    Before BACKFILL, no commit refers to the files that were written.
    """
    old, new = ["version 0", 1, 2], ["version 1", 11, 12]
    return {
        phase: [
            *(new if k >= WRITTEN else old),
            f"{4 if k else 2} data files",
            "can be written",
        ]
        for k, phase in enumerate(PHASES)
    }


def _copied(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Copy the table at each phase of a held UPDATE; return the version and rows of the copies."""
    held = _Held(session, _made(session, folder / "t"))
    held.start()
    let = 0
    try:
        for phase in PHASES:
            held.come_to(phase, interruption)
            shutil.copytree(folder / "t", folder / phase)
            held.go(phase)
            let += 1
    finally:
        for phase in PHASES[let:]:
            held.go(phase)
        held.end()
    return {phase: _found(session, folder / phase) for phase in PHASES}


def kill_writers(folder: str) -> None:
    """Create a table for each phase, hold a writer at each, and kill the JVM with all of them."""
    with open_session() as session:
        writers = {phase: _Held(session, _made(session, Path(folder) / phase)) for phase in PHASES}
        for at, held in writers.items():
            held.start()
            for phase in PHASES[: PHASES.index(at)]:
                held.go(phase)
        for at, held in writers.items():
            held.come_to(at, Interruption())
        os.kill(session.jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)


def _killed(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Kill a JVM with a writer held at each phase; return the version and rows of each table."""
    program = f"from {__name__} import {kill_writers.__name__} as go; go({str(folder)!r})"
    process = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        if not interruption.wait_for(lambda: process.poll() is not None, SECONDS):
            raise TimeLimit(f"the process with the writers did not end within {SECONDS:g} s")
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise EngineFailed(
            f"the process with the writers ended with exit status {process.returncode}"
        )
    return {phase: _found(session, folder / phase) for phase in PHASES}


COPIED = Observation(
    "stopped-writer",
    "An UPDATE of two partitions is held at a phase of its commit: version and rows of the table on"
    " disk",
    _expected(),
    _copied,
)
KILLED = Observation(
    "killed-writer",
    "The JVM of such an UPDATE is killed at a phase of its commit: version and rows of the"
    " table on disk",
    _expected(),
    _killed,
    wide=True,
)
