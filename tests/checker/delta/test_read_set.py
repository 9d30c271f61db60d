"""What a statement reads is said once: its effect reads that at row level, and nothing else."""

import pytest
from hypothesis import given

from isolitmus.checker import strategies
from isolitmus.checker.auditing.read_set import read_set_of
from isolitmus.checker.delta.commit import apply_commit
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.model.delta.log import LogCommit, LogMetadata
from isolitmus.model.execution import Event
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement

T = Schema("t", (Column("id", "INT"), Column("part", "INT"), Column("x", "INT")), ("part",))
TABLES = {"t": T, "s": Schema("s", (Column("id", "INT"), Column("x", "INT")))}
FILL = ["INSERT INTO t VALUES (1, 0, 1), (3, 1, 3)", "INSERT INTO s VALUES (1, 10)"]
SOME = "(SELECT max(x) FROM s)"

WANTED = {
    "INSERT INTO t VALUES (1, 1, 1)": [],
    "INSERT OVERWRITE t SELECT id, 1, x FROM s": ["t target files", "s query nothing"],
    "INSERT INTO t SELECT * FROM t WHERE part = 0 AND id IN (SELECT id FROM t WHERE id > 3)"
    f" UNION ALL SELECT 1, 1, {SOME}": [
        "t query files", "t subquery files", "s subquery nothing",
    ],
    "INSERT INTO t SELECT * FROM t VERSION AS OF {init[1]}": ["t query plan init[1]"],
    "INSERT INTO t REPLACE WHERE part = 0 SELECT id, 0, x FROM t": ["t target files", "t query files"],
    "DELETE FROM t WHERE part = 0": ["t target files"],
    f"UPDATE t SET x = {SOME} WHERE part = 0": ["t target files", "s value nothing planned"],
    f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = {SOME}": [
        "t match files", "s query nothing", "s value nothing planned",
    ],
    "OPTIMIZE t": ["t compact predicate"],
    "TRUNCATE TABLE t": ["t target files"],
    "VACUUM t": [],
    "SELECT * FROM t": ["t query nothing"],
    "ALTER TABLE t ADD CONSTRAINT few CHECK (id < 9)": ["t target files"],
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')": [],
}  # fmt: skip


def shown(access):
    words = [access.table, access.role, access.tracked, "planned" if access.planned else ""]
    words.append("" if access.version is None else f"init[{access.version}]")
    return " ".join(filter(None, words))


@pytest.mark.parametrize(("sql", "wanted"), WANTED.items())
def test_accesses(sql, wanted):
    assert list(map(shown, accesses(read_statement(sql, TABLES), TABLES))) == wanted


LOGGED = {
    "DELETE FROM t WHERE part = 0": {"predicate": '["(part#1 = 0)"]'},
    "DELETE FROM t": {"predicate": "[]"},
    "UPDATE t SET x = 1": {"predicate": "[]"},
    "INSERT OVERWRITE t SELECT id, 1, x FROM s": {
        "mode": "Overwrite", "isDynamicPartitionOverwrite": "false",
    },
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE": {
        "notMatchedBySourcePredicates": '[{"actionType": "delete"}]',
    },
    "INSERT INTO t VALUES (1, 1, 1)": {"mode": "Append"},
    "INSERT INTO t SELECT * FROM t": {"mode": "Append"},
    "OPTIMIZE t": {},
    "TRUNCATE TABLE t": {},
    "ALTER TABLE t ADD CONSTRAINT few CHECK (id < 9)": {},
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')": {},
}  # fmt: skip


@pytest.mark.parametrize(("sql", "parameters"), LOGGED.items())
def test_an_audit_takes_a_log_to_tell_what_the_statement_reads(sql, parameters):
    statement = read_statement(sql, TABLES)
    database = initial_database(DELTA, TABLES, [read_statement(text, TABLES) for text in FILL])
    done = statement_effect(statement, database, "a", TABLES)
    said = {
        "operation": done.operation,
        "operationParameters": parameters,
        "isBlindAppend": done.footprint.claims_blind,
    }
    read = read_set_of(LogCommit(1, said), LogMetadata(partitioned_by=("part",)))
    found = accesses(statement, TABLES)
    recorded = [a for a in found if a.tracked != "nothing" and a.role != "compact"]
    assert (read.kind == "nothing") == (not recorded)
    assert read.everything == any(a.where is None and a.role != "query" for a in recorded)


def read(statement, done, schemas):
    """The tables that an effect read and those that it might, in order: no files that are only
    moved, no constants, and values of subqueries only where rows change.
    """
    found = [a for a in accesses(statement, schemas) if a.role != "compact" and a.version is None]
    if not done.writes:
        found = [a for a in found if a.role != "value"]
    return [r.table for r in done.reads], [a.table for a in found]


@pytest.mark.parametrize("sql", [sql for sql in WANTED if "VERSION" not in sql])
def test_every_read_is_an_access(sql):
    database = initial_database(DELTA, TABLES, [read_statement(text, TABLES) for text in FILL])
    statement = read_statement(sql, TABLES)
    one, other = read(statement, statement_effect(statement, database, "a", TABLES), TABLES)
    assert one == other


@pytest.mark.slow
@given(strategies.litmus_tests())
def test_every_read_of_random_statements_is_an_access(litmus):
    database = initial_database(DELTA, litmus.tables, litmus.init)
    for name, statement in litmus.transactions.items():
        done = statement_effect(statement, database, name, litmus.tables)
        if done.error is None:
            one, other = read(statement, done, litmus.tables)
            assert one == other, statement.sql
            database = apply_commit(database, Event(name, done, 0))
