"""NULL as a parameter: a statement aborts, or not, on the engine as on the model."""

from itertools import product

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import level, protocol
from isolitmus.specs.files.litmus_file import read_litmus

NULL = "CAST(NULL AS INT)"
INSERT = f"INSERT INTO t VALUES (7, {NULL}, 5)"
CASES = {
    "is-null": ("DELETE FROM t WHERE part IS NULL", INSERT, "ConcurrentAppendException"),
    "equals-null": (f"DELETE FROM t WHERE part = {NULL}", INSERT, "no-op"),
    "coalesce-null": (
        f"UPDATE t SET x = 1 WHERE part = coalesce({NULL}, part)",
        "INSERT INTO t VALUES (7, 1, 5)",
        "ConcurrentAppendException",
    ),
    "replace-null": (
        f"INSERT INTO t REPLACE WHERE part IS NULL VALUES (1, {NULL}, 3)",
        INSERT,
        "ConcurrentAppendException",
    ),
}
FOLDED = (
    f"part = {NULL}", f"NOT part = {NULL}", f"part = {NULL} OR part = 1", f"x + {NULL} = 1",
    f"x = {NULL} AND part = 1", f"{NULL} IS NULL OR part = 1", f"NOT (x = {NULL} AND part = 1)",
)  # fmt: skip
"""Conditions of which Spark folds what is NULL for every row."""
READING = (
    "DELETE FROM t WHERE {}",
    "INSERT INTO t SELECT max(id), 5, count(*) FROM t WHERE {}",
    "INSERT INTO t SELECT 7, 7, (SELECT max(x) FROM t WHERE {})",
)
REPORT = """title = "report of NULL"
schedule = "again.start report erase again.commit"
[table]
columns = "id INT, x INT, part INT"
partitioned_by = ["part"]
[transactions]
report = "INSERT INTO t SELECT 0, sum(x), 9 FROM t WHERE part = CAST(NULL AS INT)"
erase = "DELETE FROM t WHERE id = 0 AND part = 9"
again = "INSERT INTO t SELECT 0, sum(x), 9 FROM t WHERE part = 9"
"""
"""A report of a part that is NULL is a blind append."""
TEXT = """title = "{name}"
schedule = "loser.start winner loser.commit"
[table]
columns = "id INT, part INT, x INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, NULL, 1)", "INSERT INTO t VALUES (2, 1, 1)"]
[transactions]
loser = "{loser}"
winner = "{winner}"
"""


@pytest.mark.spark
def test_null_conflicts_as_on_the_model(session):
    spec = protocol("delta-serializable")
    tests = []
    for name, (loser, winner, outcome) in CASES.items():
        tests.append(read_litmus(TEXT.format(name=name, loser=loser, winner=winner), name))
        assert run(tests[-1], spec).run.transactions["loser"].outcome == outcome
    asked = ((test, spec) for test in tests)
    assert [str(one) for one in find_mismatches(asked, open_delta(session), DELTA.at_once)] == []


@pytest.mark.spark
def test_what_is_null_for_every_row_is_folded(session):
    """Spark plans no scan of FALSE, so that an INSERT without another scan is a blind append."""
    weak = protocol("delta-write-serializable")
    report = read_litmus(REPORT, "report")
    judged = run(report, weak)
    assert isinstance(judged.verdict(level("write-serializable")), Forbidden)
    asked = [(report, weak)]
    cases = [*product(READING[:1], FOLDED[2::2]), *product(READING[1:2], FOLDED)]
    for k, (text, condition) in enumerate((*cases, (READING[2], FOLDED[0]))):
        loser, winner = text.format(condition), "INSERT INTO t VALUES (3, 1, 3)"
        test = read_litmus(TEXT.format(name=k, loser=loser, winner=winner), str(k))
        asked.append((test, weak if text.startswith("INSERT") else protocol("delta-serializable")))
    assert [str(one) for one in find_mismatches(asked, open_delta(session), DELTA.at_once)] == []
