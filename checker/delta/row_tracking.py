"""Row tracking as ALTER TABLE enables it: the commits before that of the property.

Files that were written before the table supported row tracking have no row ids. ALTER TABLE … SET
TBLPROPERTIES ('delta.enableRowTracking' = 'true') therefore makes up to three kinds of commits: the
table feature, then batches of files that are committed anew and get row ids, then the property
(TableFeature.scala, RowTrackingFeature.validateAndBackfill; RowTrackingBackfillCommand.scala;
BackfillExecutor.scala). Between them other transactions commit, whose files get row ids from the
feature on.

In a litmus test each of these commits is a transaction, and so has steps and an outcome
(``commit_of``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from isolitmus.model.delta.footprint import Actions, Settings
from isolitmus.model.delta.header import (
    WITH_ROW_TRACKING,
    enables_row_tracking,
    with_required_features,
)
from isolitmus.model.display import count_of
from isolitmus.model.errors import Refused
from isolitmus.model.execution import Effect
from isolitmus.model.sql.nondeterminism import choose
from isolitmus.model.sql.raw_transaction import OPERATIONS
from isolitmus.model.sql.statement import Definition, SetProperties
from isolitmus.specs.sql.configuration import BACKFILLED, BACKFILLED_AT_MOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.header import Header, Metadata
    from isolitmus.model.sql.data_file import File

FEATURE = "rowTracking"


def refuse_earlier_commits(snapshot: Snapshot, statement: Definition) -> None:
    """Raise Refused if a statement enables row tracking and has to make other commits first.

    In init it may, where nothing is concurrent (writers there are ``+0``, …).
    """
    name, change = statement.target, statement.change
    enables = isinstance(change, SetProperties) and enables_row_tracking(change.properties)
    if not enables or name not in snapshot.database or snapshot.writer.startswith("+"):
        return
    missing = _missing_commits(snapshot, name)
    if missing:
        raise Refused(
            f"'{statement.sql}' makes other commits here before that of the property:"
            f" {', '.join(missing)}; in a litmus test each is a transaction, scheduled before"
            f' {snapshot.writer}: {{ commit_of = "{snapshot.writer}" }}'
        )


def _missing_commits(snapshot: Snapshot, name: str) -> list[str]:
    """Return descriptions of the commits that have to be made before that of the property."""
    header = snapshot.header(name)
    supported = FEATURE in header.features
    files = len(_files_without_ids(snapshot, name) if supported else snapshot.files(name))
    batches = -(-files // _most_files(snapshot))
    found = [] if supported else ["the table feature"]
    if batches:
        often = "" if batches == 1 else f" in {batches} commits"
        found.append(f"row ids for {count_of(files, 'file')}{often}")
    return found


def earlier_commit(snapshot: Snapshot, statement: Definition) -> Effect:
    """Return the effect of a commit that ALTER TABLE makes before that of the property.

    Raises
    ------
    Refused
        If the statement makes no such commit here.
    """
    name = statement.target
    if FEATURE not in snapshot.header(name).features:
        return _support(snapshot, name)
    files = _files_without_ids(snapshot, name)
    if not files:
        raise Refused(
            f"'{statement.sql}' does not make the commit {snapshot.writer}: the table supports row"
            " tracking, and every file has row ids; leave it out"
        )
    return _batch(snapshot, name, _first_files(snapshot, files))


def _support(snapshot: Snapshot, name: str) -> Effect:
    """Return the effect of the commit of the table feature (DeltaLog.scala, upgradeProtocol)."""
    header = snapshot.header(name)
    features = header.features | with_required_features({FEATURE})
    return _without_data(snapshot, name, (), Actions(features=features), "UpgradeProtocol")


def _batch(snapshot: Snapshot, name: str, files: tuple[File, ...]) -> Effect:
    """Return the effect of a batch, which commits files anew (RowTrackingBackfillBatch.scala)."""
    return _without_data(snapshot, name, files, Actions(), "RowTrackingBackfill")


def _without_data(
    snapshot: Snapshot, name: str, files: tuple[File, ...], actions: Actions, operation: str
) -> Effect:
    """Return the effect of a commit that reads and writes no row."""
    footprint = replace(
        snapshot.footprint(snapshot.schemas[name], (), files),
        files=frozenset(file.path for file in files),
        data_change=False,
        changes_data=False,
        actions=actions,
        settings=Settings(backfill=OPERATIONS[operation].backfill, always=True),
    )
    return Effect(adds=files, footprint=footprint, operation=OPERATIONS[operation].name)


def _files_without_ids(snapshot: Snapshot, name: str) -> tuple[File, ...]:
    lacking = snapshot.header(name).unnumbered
    return tuple(file for file in snapshot.files(name) if file.path in lacking)


def _most_files(snapshot: Snapshot) -> int:
    """Return the maximum number of files in a batch."""
    confs = snapshot.outside.confs
    return int(next((confs[key] for key in BACKFILLED if key in confs), BACKFILLED_AT_MOST))


def _first_files(snapshot: Snapshot, files: tuple[File, ...]) -> tuple[File, ...]:
    """Return the files of a batch.

    Which files of a snapshot come first is not known, so all choices are tried.
    """
    most = _most_files(snapshot)
    if len(files) <= most:
        return files
    every = tuple(combinations(files, most))
    why = f"which {count_of(most, 'file')} of {len(files)} come first in a backfill is not known"
    answers = tuple(range(len(every)))
    answer = choose(snapshot.outside.choices, "first files", answers, why, changes_rows=False)
    assert isinstance(answer, int)
    return every[answer]


def backfill_row_tracking(done: Effect, winners: Iterable[Effect]) -> Effect:
    """Return the effect of a backfill of row tracking after concurrent commits.

    It leaves out the files that they added or removed (ConflictChecker.scala,
    resolveRowTrackingBackfillConflicts).
    """
    theirs = {
        path
        for winner in winners
        if winner.footprint is not None
        for path in (*winner.footprint.removes, *(file.path for file in winner.adds))
    }
    return replace(done, adds=tuple(file for file in done.adds if file.path not in theirs))


def with_row_tracking_columns(
    header: Header, written: Metadata, features: frozenset[str], writer: str
) -> Metadata:
    """Return written metadata with the names of row id columns, if ``features`` has row
    tracking.
    """
    if FEATURE not in features:
        return written
    known = header.metadata.configuration
    names = {key: known.get(key, f"named by {writer}") for key in WITH_ROW_TRACKING}
    return replace(written, configuration={**written.configuration, **names})
