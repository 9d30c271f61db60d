"""NULL as a parameter: a statement aborts, or not, on the engine as on the model."""

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.specs import protocol
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
