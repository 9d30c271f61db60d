"""Commits that replace a file which is no longer what they read: the rows count (S_i = S_{i-1} +
W_i).
"""

from itertools import pairwise

import pytest

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.universes.tables import candidates
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec

SCOPE = """
title = "Statements that share files"
[table]
columns = "id INT, x INT"
init = ["INSERT INTO t VALUES (1, 0), (2, 0)"]
[scope]
transactions = 2
statements = [
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET x = x + 1 WHERE id = 2",
    "UPDATE t SET x = x + 1",
    "INSERT INTO t VALUES ({fresh}, 0)",
    "INSERT INTO t SELECT sum(id), 1 FROM t",
    "OPTIMIZE t",
]
"""
LENIENT = read_spec('"By row" empty unseen & ww as SameRow', "by-row")
PAIR = """
title = "Two statements on one file"
schedule = "a.start b a.commit"
[table]
columns = "id INT, x INT"
init = ["INSERT INTO t VALUES (1, 0), (2, 0)"]
[transactions]
a = "{}"
b = "{}"
"""


@pytest.mark.slow
def test_a_commit_does_to_the_rows_what_it_writes_and_nothing_else():
    scope = read_scope(SCOPE, "files")
    seen = 0
    for found in candidates(scope, 3, lambda _: True):
        for event, (before, after) in zip(found.events, pairwise(found.states), strict=True):
            rows = {r.id: r.values for f in before["t"].files for r in f.rows}
            for write in event.effect.writes:
                if write.after is None:
                    rows.pop(write.id, None)
                else:
                    rows[write.id] = write.after
            assert {r.id: r.values for f in after["t"].files for r in f.rows} == rows
            seen += 1
    assert seen > 1000


def final(a, b):
    test = read_litmus(PAIR.format(a, b), "pair")
    run = observed_run(test, execute(test, LENIENT), LENIENT.name)
    assert {t.outcome for t in run.transactions.values()} == {"committed"}
    return run.tables["t"]


def test_rows_of_one_file_may_go_to_different_writers():
    assert final("DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 2") == ()
    assert final("UPDATE t SET x = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2") == ((1, 5),)
    updates = "UPDATE t SET x = 5 WHERE id = 1", "UPDATE t SET x = 6 WHERE id = 2"
    assert final(*updates) == ((1, 5), (2, 6))
