"""The engine deltalake: litmus tests executed on delta-rs.

``conformance.deltalake.writer`` describes what each step is on delta-rs.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.conformance.delta.table_versions import CommitHistory
from isolitmus.conformance.deltalake.environment import (
    ENGINE,
    RELEASES,
    EngineError,
    install,
    interpreter,
    open_worker,
)
from isolitmus.conformance.deltalake.writer import Writer, error_line, refuse_unlike_table
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import Refused
from isolitmus.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.conformance.deltalake.environment import WorkerProcess
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Rows

PROTOCOLS: dict[str, dict[str, str | None]] = {
    "1.6.6": {
        "delta-rs-serializable": None,
        "delta-rs-write-serializable": "writeSerializable",
        "delta-rs-snapshot-isolation": "snapshotIsolation",
    },
    "1.6.3": {"delta-rs-1.6.3-serializable": None},
}
"""Protocols of each release, each with the spelling of ``delta.isolationLevel`` in its tables.

None means that the property is not set. Any other spelling, such as Spark's ``WriteSerializable``,
has the effect of an unset property (delta_kernel's table properties).
"""


def replay(litmus: Litmus, protocol: str, worker: WorkerProcess) -> Run:
    """Run the schedule of a litmus test on real tables in a temporary folder.

    Raises
    ------
    UnknownName
        The release does not have the protocol.
    Refused
        The engine cannot run the test; the message has the statement and the engine's error.
    """
    _of_release(worker.release).refuse_unable(protocol)
    level = PROTOCOLS[worker.release][protocol]
    if any(client.protocol is not None for client in litmus.clients.values()):
        raise Refused(f"{litmus.name}: {ENGINE} {worker.release} runs only its own transactions")
    folder = Path(tempfile.mkdtemp(prefix="litmus_"))
    try:
        return _DeltalakeReplay(litmus, level, worker, folder).run(protocol)
    except Refused as error:
        raise Refused(f"{litmus.name}: {ENGINE} {worker.release}: {error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(release: str) -> Iterator[RunsTests]:
    with open_worker(release) as worker:
        yield RunsTests(release, lambda litmus, spec: replay(litmus, spec.name, worker))


@contextmanager
def _joined(
    release: str,
    litmus: Litmus,
    protocol: str,
    paths: Mapping[str, Path],
    chronicle: CommitHistory,
) -> Iterator[Writer]:
    """Yield a writer for tables created by Spark; raise Refused if the protocol sets a level."""
    level = PROTOCOLS[release][protocol]
    if level is not None:
        raise Refused(
            f"{litmus.name}: {protocol} needs a table with {LEVEL_KEY} = {level}, which Spark"
            " cannot set; all writers of a table share one level"
        )
    for schema in litmus.tables.values():
        refuse_unlike_table(schema)
    with open_worker(release) as worker:
        yield Writer(litmus, worker, paths, chronicle)


def _engine(release: str, name: str, title: str) -> Engine:
    """Return the engine of a release of deltalake."""
    return Engine(
        name,
        title,
        partial(_opened, release),
        product=f"{ENGINE} {release}",
        format="delta-rs",
        protocols=tuple(PROTOCOLS[release]),
        install=partial(install, release),
        ready=partial(interpreter, release),
        join=partial(_joined, release),
    )


NEWEST = _engine(
    RELEASES[0],
    ENGINE,
    "delta-rs by its Python package, the newest release known here: handles at one version",
)
OLDER = _engine(RELEASES[1], f"{ENGINE}-{RELEASES[1]}", "delta-rs, an older release")


def _of_release(release: str) -> Engine:
    return NEWEST if release == RELEASES[0] else OLDER


class _DeltalakeReplay:
    def __init__(
        self, litmus: Litmus, level: str | None, worker: WorkerProcess, folder: Path
    ) -> None:
        self._litmus = litmus
        self._worker = worker
        self._paths = {name: folder / name.lower() for name in litmus.tables}
        for name, schema in litmus.tables.items():
            self._create(schema, self._paths[name], level)
        filler = Writer(litmus, worker, self._paths, CommitHistory(self._paths), level=level)
        for number, statement in enumerate(litmus.init):
            filler.fill(number, statement)
        self._chronicle = CommitHistory(self._paths)
        self._writer = Writer(litmus, worker, self._paths, self._chronicle, level=level)

    def run(self, protocol: str) -> Run:
        """Execute the schedule and return the observed run."""
        for step in self._litmus.schedule.steps:
            self._writer.take(step)
        return Run(
            litmus=self._litmus.name,
            engine=ENGINE,
            engine_version=self._worker.release,
            protocol=protocol,
            base=next(iter(self._chronicle.base.values())),
            transactions={name: self._writer.observed(name) for name in self._litmus.transactions},
            versions=self._chronicle.rows(self._rows_by_version),
        )

    def _create(self, schema: Schema, path: Path, level: str | None) -> None:
        """Create a table with the level as a property; raise Refused if delta-rs cannot."""
        refuse_unlike_table(schema)
        said = {} if level is None else {LEVEL_KEY: level}
        try:
            self._worker.ask(
                "create",
                path=str(path),
                columns=[(column.name, column.type) for column in schema.columns],
                partitioned_by=list(schema.partitioned_by),
                configuration={**said, **schema.properties},
            )
        except EngineError as error:
            raise Refused(f"table {schema.name}: {error_line(error)}") from None

    def _rows_by_version(self, path: Path, first: int, last: int) -> Mapping[int, Rows]:
        """Return the rows of a table at each version from `first` to `last`."""
        name = next(n for n, p in self._paths.items() if p == path)
        rows = {}
        for version in range(first, last + 1):
            self._worker.ask("open", handle="seen", path=str(path), version=version)
            rows[version] = self._writer.rows("seen", self._litmus.tables[name])
        return rows
