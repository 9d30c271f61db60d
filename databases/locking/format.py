"""Table format of engines with locks and scans: rows in place, indexes, and plans that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.databases.locking.events import effect_of, serial_effect_of, transaction_run
from isolitmus.databases.locking.frame import OWN, RELATIONS, SETS, scan_frame
from isolitmus.databases.locking.protocol_rules import read_rules
from isolitmus.databases.locking.query_plans import read_scan_statement
from isolitmus.databases.locking.step_orders import judged_walks, run_stepwise
from isolitmus.model.delta.table import TableState
from isolitmus.model.format import Format, RandomTests
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql.data_file import File, TableRow
from isolitmus.model.vocabulary import terms_of

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from isolitmus.checker.prove.arguments import Question
    from isolitmus.checker.prove.proof import ProofAttempt
    from isolitmus.databases.locking.interleavings import Interleavings
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.format import Driver, Executor
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec


@memoize_by_identity
def _duck(litmus: Litmus) -> Executor:
    from isolitmus.databases.locking.final_state import DuckTexts

    return DuckTexts(litmus)


def _sessions() -> SearchStrategy[Litmus]:
    from isolitmus.databases.locking.random_tests import session_tests

    return session_tests()


def _interleaved(litmus: Litmus, protocol: Spec) -> Interleavings:
    from isolitmus.databases.locking.interleavings import count_interleavings

    return count_interleavings(litmus, protocol)


def _prove(question: Question, inside: Scope) -> ProofAttempt:
    from isolitmus.databases.locking.scan_proof import attempt_scan_proof

    return attempt_scan_proof(question, inside)


def _after(database: Database, event: Event) -> Database:
    """Return the tables after a commit, with one file per row, in the order of insertion."""
    rows = {
        (name, row.id): row
        for name, state in database.items()
        for file in state.files
        for row in file.rows
    }
    for write in event.effect.writes:
        key = write.table, write.id
        if write.after is None:
            rows.pop(key, None)
        else:
            rows[key] = TableRow(write.id, event.name, write.after)
    return {
        name: TableState(
            tuple(File.of(k, (), (row,)) for (of, k), row in rows.items() if of == name)
        )
        for name in database
    }


def _drive(_litmus: Litmus, _inits: object, _choices: object) -> Driver:
    raise AssertionError("no driver: the format executes its own schedules")


LOCKING = Format(
    name="locking",
    title="engines with locks and scans, or with snapshots of statements",
    log="locking",
    terms=terms_of(*RELATIONS, *SETS, *OWN),
    statement=read_scan_statement,
    empty=lambda _schema: TableState(),
    effect=effect_of,
    after=_after,
    frame=scan_frame,
    drive=_drive,
    alone=serial_effect_of,
    independent=_duck,
    steps=True,
    carry_out=run_stepwise,
    stepwise=judged_walks,
    interleave=_interleaved,
    prove=_prove,
    clauses=read_rules,
    told=transaction_run,
    dirty=True,
    protocols=("locking-read-committed",),
    random=(RandomTests("sessions", "sessions on a table of three rows", _sessions),),
    levels=("row-once", "serializable"),
    universe="scans",
)
