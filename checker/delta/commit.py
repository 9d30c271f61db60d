"""What a commit does to a table of Delta, and what may end it besides a conflict.

As the log has it, files are removed and added. Where the files that a commit replaces are no longer
what it had read, open-source Delta lets nothing through: its checks go by file. A protocol that
goes by row does, and then the rows count, not the files: the state after a commit is the state
before it with the rows deleted, rewritten and inserted that the commit deletes, rewrites and
inserts (S_i = S_{i-1} + W_i).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.frame import (
    check_fails,
    error_class,
    removes_needed_feature,
    sets_domain_twice,
)
from isolitmus.checker.delta.raw_transaction import (
    DUPLICATE_DOMAIN,
    backfill_row_tracking,
    stated_data_file,
)
from isolitmus.model.delta.data_file import File
from isolitmus.model.delta.header import Header
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.statement import Optimize
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.disk.input_files import ROWS
from isolitmus.specs.sql.configuration import LEVELS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isolitmus.model.delta.data_file import TableRow
    from isolitmus.model.execution import Database, Effect, Event
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement

CHECKED_BEFORE_DOMAINS = ("ProtocolChangedException", "MetadataChangedException")
"""The conflicts that are looked for before domains of metadata are."""

__all__ = [
    "apply_commit",
    "error_before_conflict",
    "initial_table",
    "is_blind_append",
    "refuse_second_attempt",
    "replay_commit",
    "replay_files",
    "retries_compaction",
    "unfit_level",
    "write_commit",
]


def initial_table(schema: Schema) -> TableState:
    """A table with the files that it holds; one that is declared with an isolation level has that
    one, in every run.
    """
    state = TableState((*schema.held, *(stated_data_file(schema, file) for file in schema.files)))
    return state.under(Header.of(schema)) if LEVEL_KEY in schema.properties else state


def unfit_level(schema: Schema, taken: Sequence[str] = LEVELS[:1]) -> str:
    """Return why a table cannot declare its isolation level to an engine that takes only some;
    empty if it can.

    >>> from isolitmus.model.schema import Column, Schema
    >>> columns = (Column("id", "INT"),)
    >>> unfit_level(Schema("t", columns, properties={"delta.isolationLevel": "serializable"}))
    ''
    >>> unfit_level(Schema("t", columns, properties={"delta.isolationLevel": "x"}))[:35]
    't.properties: delta.isolationLevel '
    """
    level = schema.properties.get(LEVEL_KEY, taken[0])
    if level.lower() in map(str.lower, taken):
        return ""
    known = " and ".join(f"'{one}'" for one in taken)
    return (
        f"{schema.name}.properties: {LEVEL_KEY} is '{level}', and Delta takes only {known} from a"
        " user; leave it out, and the protocol of a run says the level, as"
        " delta-write-serializable does"
    )


def apply_commit(database: Database, event: Event) -> Database:
    """The database after a commit, row by row where the files are not as the commit had read them;
    a reader leaves it as it was.
    """
    done = event.effect
    if done.footprint is None:
        return database
    name, plain = done.footprint.table, done.footprint.plain
    before = database.get(name, TableState())
    if plain or done.writes or any(file.rows for file in done.adds):
        return _headed(database, done, replay_files(before, done))
    return replay_commit(database, event)  # a raw one's files have no rows to be carried over


def replay_commit(database: Database, event: Event) -> Database:
    """The database after a commit whose files go and come by path, as the log replays them."""
    done = event.effect
    if done.footprint is None:
        return database
    before = database.get(done.footprint.schema.name, TableState())
    return _headed(database, done, before.replay(done.removes, done.adds))


def _headed(database: Database, done: Effect, state: TableState) -> Database:
    """The database with a table's files after a commit, and what the commit says of it besides."""
    footprint = done.footprint
    assert footprint is not None
    name, actions = footprint.table, footprint.actions
    header = database.get(name, TableState()).header
    if not footprint.plain:
        header = (header or Header.of(footprint.schema)).after(
            actions.metadata, actions.features, actions.domains, actions.apps
        )
    rows = sum(len(file.rows) for file in state.files)
    if rows > ROWS:
        raise LitmusError(
            f"table {name} has {rows:,} rows after {done.operation}; at most {ROWS} are modelled"
        )
    return {**database, name: state if header is None else state.under(header)}


def is_blind_append(done: Effect) -> bool | None:
    """What a commit says of itself (isBlindAppend in its commitInfo)."""
    return None if done.footprint is None else done.footprint.claims_blind


def refuse_second_attempt(event: Event, missed: Sequence[Event]) -> EvaluationError | None:
    """A commit that tries one version only, the conf maxCommitAttempts, and is not the first
    there.
    """
    footprint = event.effect.footprint
    assert footprint is not None
    if not missed or not footprint.settings.once or footprint.settings.large:
        return None
    return EvaluationError(
        "DeltaIllegalStateException",
        "another commit was first",
        "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    )


def error_before_conflict(
    exception: str | None, missed: Sequence[Event], loser: Event
) -> tuple[EvaluationError | None, str | None]:
    """The error that comes before a conflict with the last of these winners is told, or with which
    the check itself ends there; and the error class of the conflict.
    """
    wrote, footprint = missed[-1].effect.footprint, loser.effect.footprint
    assert wrote is not None
    assert footprint is not None
    if exception not in CHECKED_BEFORE_DOMAINS and not footprint.settings.large:
        written = [e.effect.footprint.actions.features for e in missed if e.effect.footprint]
        if sets_domain_twice(wrote, footprint, written):
            return (
                EvaluationError(
                    "DeltaIllegalArgumentException", "a domain twice", DUPLICATE_DOMAIN
                ),
                None,
            )
    if exception is None:
        return None, None
    if check_fails(exception, footprint):
        return EvaluationError("SparkException", "a subquery is not bound in the check"), None
    if removes_needed_feature(wrote, footprint):
        return EvaluationError("DeltaTableFeatureException", "the feature is in use again"), None
    return None, error_class(exception, wrote, footprint)


def write_commit(event: Event, missed: Sequence[Event]) -> Event:
    """The commit as it is written: its rows are looked at no sooner, and a backfill of row ids
    takes over the files of those that it missed.
    """
    done = event.effect
    if done.unwritable is not None:
        return replace(event, effect=replace(done, error=done.unwritable), version=None)
    if done.footprint is not None and done.footprint.settings.backfill:
        return replace(
            event, effect=backfill_row_tracking(done, [other.effect for other in missed])
        )
    return event


def retries_compaction(event: Event, statement: Statement, then: Database, now: Database) -> bool:
    """Whether a compaction tries again after a conflict: while all its files are there as they
    were, deletion vectors and all (OptimizeTableCommand.scala, commitAndRetry).
    """
    footprint = event.effect.footprint
    if not isinstance(statement, Optimize) or footprint is None:
        return False
    name = footprint.schema.name
    before, left = ({(f.path, f.dead) for f in state[name].files} for state in (then, now))
    return {file for file in before if file[0] in footprint.removes} <= left


def replay_files(state: TableState, done: Effect) -> TableState:
    """The state after a commit: as the log replays it, files removed and added, if every file that
    it removes is what it had read; else row by row.

    >>> from isolitmus.model.execution import Effect, RowWrite
    >>> from isolitmus.model.delta.data_file import TableRow
    >>> a, b = TableRow("a", "", (1,)), TableRow("b", "", (2,))
    >>> state = TableState((File.of("rewritten", (), (b,)),))  # a was deleted in the meantime
    >>> delete = Effect(writes=(RowWrite("t", "b", (2,), None),), removes=frozenset({"both"}),
    ...                 adds=(File.of("rest", (), (a,)),))
    >>> replay_files(state, delete).rows()
    ()
    """
    if _as_read(state, done):
        return state.replay(done.removes, done.adds)
    gone = {write.id for write in done.writes if write.before is not None}
    wrote = {write.id for write in done.writes if write.after is not None}
    kept = [_only(file, [row for row in file.rows if row.id not in gone]) for file in state.files]
    new = [_only(file, [row for row in file.rows if row.id in wrote]) for file in done.adds]
    return TableState(tuple(file for file in (*kept, *new) if file.rows))


def _as_read(state: TableState, done: Effect) -> bool:
    """Whether the files to be removed hold just the rows that the commit replaces or carries over,
    and all that it replaces.
    """
    live = [file for file in state.files if file.path in done.removes]
    if len(live) < len(done.removes):
        return False
    wrote = {write.id for write in done.writes}
    replaced = {w.id for w in done.writes if w.before is not None and w.id != w.table}
    if not replaced <= {row.id for file in live for row in file.rows}:
        return False
    found = {row for file in live for row in file.rows if row.id not in wrote}
    return found == {row for file in done.adds for row in file.rows if row.id not in wrote}


def _only(file: File, rows: Collection[TableRow]) -> File:
    """The file with some of its rows."""
    if len(rows) == len(file.rows):
        return file
    return File.of(file.path, file.partition, tuple(rows)) if rows else replace(file, rows=())
