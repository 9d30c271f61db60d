"""Effects of commits on a Delta table, and errors that end a commit besides conflicts.

In the log, a commit removes and adds files. If the files that a commit replaces are no longer those
that it had read, open-source Delta rejects it: its checks compare files. A protocol that compares
rows admits it, and then the rows count, not the files. The state after the commit is the state
before it, with the rows deleted, rewritten and inserted that the commit deletes, rewrites and
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
from isolitmus.checker.delta.raw_transaction import DUPLICATE_DOMAIN, stated_data_file
from isolitmus.checker.delta.row_overlaps import emptied_positions, marked_files
from isolitmus.checker.delta.row_tracking import backfill_row_tracking
from isolitmus.model.delta.header import Header
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import LitmusError
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.spec_algebra import unfold
from isolitmus.model.sql.data_file import File
from isolitmus.model.sql.statement import Optimize
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.disk.input_files import ROWS
from isolitmus.specs.sql.configuration import LEVELS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isolitmus.model.execution import Database, Effect, Event
    from isolitmus.model.spec import CatExpr, Spec
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement

CHECKED_BEFORE_DOMAINS = ("ProtocolChangedException", "MetadataChangedException")
"""Conflicts that are checked before metadata domains."""


def initial_table(schema: Schema) -> TableState:
    """Return a table with its initial files, and with its declared isolation level, if any."""
    state = TableState((*schema.held, *(stated_data_file(schema, file) for file in schema.files)))
    return state.under(Header.of(schema)) if LEVEL_KEY in schema.properties else state


def unfit_level(schema: Schema, taken: Sequence[str] = LEVELS[:1]) -> str:
    """Return why a table cannot declare its isolation level to an engine; empty if it can.

    ``taken`` are the levels that the engine accepts.

    >>> from isolitmus.model.sql.schema import Column, Schema
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
    """Return the database after a commit; a reader leaves it unchanged.

    Files are replayed if they are as the commit had read them; otherwise the change is applied row
    by row.
    """
    done = event.effect
    if done.footprint is None:
        return database
    name, plain = done.footprint.table, done.footprint.plain
    before = database.get(name, TableState())
    if plain or done.writes or any(file.rows for file in done.adds):
        return _headed(database, done, replay_files(before, done, event.name))
    return replay_commit(database, event)  # files of raw transactions have no rows to carry over


def replay_commit(database: Database, event: Event) -> Database:
    """Return the database after a commit, with files replayed by path as in the log."""
    done = event.effect
    if done.footprint is None:
        return database
    before = database.get(done.footprint.schema.name, TableState())
    return _headed(database, done, before.replay(done.removes, done.adds))


def _headed(database: Database, done: Effect, state: TableState) -> Database:
    """Return the database with a table's files after a commit, and its changed header."""
    footprint = done.footprint
    assert footprint is not None
    name, actions = footprint.table, footprint.actions
    header = database.get(name, TableState()).header
    if not footprint.plain or (header is not None and header.unnumbered):
        before = header or Header.of(footprint.schema)
        header = before.after(actions.metadata, actions.features, actions.domains, actions.apps)
        live, added = ([file.path for file in files] for files in (state.files, done.adds))
        header = header.with_files(live, added, before)
    rows = sum(len(file.rows) for file in state.files)
    if rows > ROWS:
        raise LitmusError(
            f"table {name} has {rows:,} rows after {done.operation}; at most {ROWS} are modelled"
        )
    return {**database, name: state if header is None else state.under(header)}


def is_blind_append(done: Effect) -> bool | None:
    """Return isBlindAppend of the commit's commitInfo; None if there is no commit."""
    return None if done.footprint is None else done.footprint.claims_blind


def refuse_second_attempt(event: Event, missed: Sequence[Event]) -> EvaluationError | None:
    """Return the error of a commit with only one attempt (maxCommitAttempts) that is not first."""
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
    """Return the error that precedes a conflict, and the error class of the conflict.

    Parameters
    ----------
    exception : str or None
        Exception of the conflict; None if there is no conflict with the last winner.
    missed : sequence of Event
        Winning commits checked so far.
    loser : Event
        The transaction that commits.

    Returns
    -------
    error : EvaluationError or None
        Error that is raised before the conflict, or by the check itself.
    error_class : str or None
        Error class of the conflict.
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
    """Return the commit as it is written.

    Errors that Delta raises only on writing are raised here. A backfill of row ids takes over the
    files of the commits that it missed.
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
    """Return whether a compaction retries after a conflict.

    It does while all its files exist unchanged, with the same deletion vectors
    (OptimizeTableCommand.scala, commitAndRetry).
    """
    footprint = event.effect.footprint
    if not isinstance(statement, Optimize) or footprint is None:
        return False
    name = footprint.schema.name
    before, left = ({(f.path, f.marker) for f in state[name].files} for state in (then, now))
    return {file for file in before if file[0] in footprint.removes} <= left


def replay_files(state: TableState, done: Effect, writer: str) -> TableState:
    """Return the state of a table after a commit.

    If every file that the commit removes is as it had read it, files are removed and added, as the
    log replays them; else the change is applied row by row.

    >>> from isolitmus.model.execution import Effect, RowWrite
    >>> from isolitmus.model.sql.data_file import TableRow
    >>> a, b = TableRow("a", "", (1,)), TableRow("b", "", (2,))
    >>> state = TableState((File.of("rewritten", (), (b,)),))  # a was deleted in the meantime
    >>> delete = Effect(writes=(RowWrite("t", "b", (2,), None),), removes=frozenset({"both"}),
    ...                 adds=(File.of("rest", (), (a,)),))
    >>> replay_files(state, delete, "delete").rows()
    ()
    """
    if _as_read(state, done):
        return state.replay(done.removes, done.adds)
    if done.footprint is not None and not done.footprint.changes_data and done.removes:
        return _compacted(state, done, writer)
    gone = {write.id for write in done.writes if write.before is not None}
    wrote = {write.id for write in done.writes if write.after is not None}
    marked = marked_files(done)
    vectors = done.footprint is not None and done.footprint.schema.vectors
    kept: list[File] = []
    for file in state.files:
        dead = gone
        if file.path in marked:  # the union of two vectors, which may leave no row
            dead = {row.id for row in file.rows} - marked[file.path].after
        left = file.marked(dead, writer) if vectors else _without(file, dead)
        if file.path in marked:
            left = replace(left, marker=writer)
        if left.rows or file.path in marked:
            kept.append(left)
    new = [_without(file, {row.id for row in file.rows} - wrote) for file in done.adds]
    return TableState((*kept, *(file for file in new if file.rows)))


def supposed_writer(spec: Spec) -> str:
    """Return what an answer about a spec supposes of two commits that removed one file.

    It is empty if the spec admits no such pair. Released Delta rejects the second one, whatever the
    level (``deleted-deleted``), so a text without that check has no writer yet: the supposed one is
    that of `replay_files`.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> supposed_writer(protocol("delta-serializable"))
    ''
    >>> print(supposed_writer(protocol("case-2-serializable")))
    if two commits that case-2-serializable admits removed one file, the second is applied row by \
row (one that replaced the whole file would undo the first)
    """
    rejected = (
        _has_shared_removals(unfold(axiom.expr, spec.definitions))
        for axiom in spec.axioms
        if axiom.test == "empty"
    )
    if any(rejected):
        return ""
    return (
        f"if two commits that {spec.name} admits removed one file, the second is applied row by row"
        " (one that replaced the whole file would undo the first)"
    )


def _has_shared_removals(relation: CatExpr) -> bool:
    """Return whether a relation has every unseen commit that removed a file which both removed.

    Only what its text shows counts: True is certain.
    """
    match relation:
        case Name(name):
            return name in ("unseen", "removes-meets-removes")
        case Binary("|", left, right):
            return _has_shared_removals(left) or _has_shared_removals(right)
        case Binary("&", left, right):
            return _has_shared_removals(left) and _has_shared_removals(right)
        case Binary(";", Bracket(members), other) | Binary(";", other, Bracket(members)):
            return _has_shared_removals(other) and _has_removing_commits(members)
    return False


def _has_removing_commits(members: CatExpr) -> bool:
    """Return whether a set has every commit that removes a file, by its text."""
    match members:
        case Name(name):
            return name == "Writer"
        case Binary("|", left, right):
            return _has_removing_commits(left) or _has_removing_commits(right)
        case Binary("&", left, right):
            return _has_removing_commits(left) and _has_removing_commits(right)
        case Unary("~", others):
            return _has_no_removing_commit(others)
    return False


def _has_no_removing_commit(members: CatExpr) -> bool:
    """Return whether no commit of a set removes a file, by its text."""
    match members:
        case Name(name):
            return name in ("Empty", "Reader")
        case Binary("|", left, right):
            return _has_no_removing_commit(left) and _has_no_removing_commit(right)
        case Binary("&", left, right):
            return _has_no_removing_commit(left) or _has_no_removing_commit(right)
        case Binary("\\", left, _):
            return _has_no_removing_commit(left)
    return False


def _compacted(state: TableState, done: Effect, writer: str) -> TableState:
    """Return the state after a compaction whose files were changed since it read them.

    A copied row counts if it is still where it stood; the new file's deletion vector hides others.
    """
    live = {(file.path, row.id) for file in state.files for row in file.rows}
    source = {row: path for path, row in emptied_positions(done).moved}
    kept = [file for file in state.files if file.path not in done.removes]
    copies = (
        file.marked(
            {row.id for row in file.rows if (source.get(row.id), row.id) not in live}, writer
        )
        for file in done.adds
    )
    return TableState((*kept, *copies))


def _as_read(state: TableState, done: Effect) -> bool:
    """Return whether the removed files hold exactly the rows that are replaced or carried over."""
    live = [file for file in state.files if file.path in done.removes]
    if len(live) < len(done.removes):
        return False
    wrote = {write.id for write in done.writes}
    replaced = {w.id for w in done.writes if w.before is not None and w.id != w.table}
    if not replaced <= {row.id for file in live for row in file.rows}:
        return False
    found = {row for file in live for row in file.rows if row.id not in wrote}
    return found == {row for file in done.adds for row in file.rows if row.id not in wrote}


def _without(file: File, dead: Collection[str]) -> File:
    """Return the file without the rows of these identities."""
    rows = tuple(row for row in file.rows if row.id not in dead)
    if len(rows) == len(file.rows):
        return file
    return File.of(file.path, file.partition, rows) if rows else replace(file, rows=())
