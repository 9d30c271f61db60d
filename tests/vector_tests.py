"""Drawn litmus tests on a table with deletion vectors, whose statements share files."""

from hypothesis import strategies as st

from isolitmus.checker.strategies import litmus_tests
from isolitmus.specs.files.litmus_file import read_litmus

KEYS = st.integers(1, 5)
SQL = st.one_of(
    KEYS.map("DELETE FROM t WHERE id = {}".format),
    KEYS.map("DELETE FROM t WHERE x <= {}".format),
    st.builds("UPDATE t SET x = x + {} WHERE id = {}".format, KEYS, KEYS),
    st.builds("UPDATE t SET id = {} WHERE id IN ({}, {})".format, KEYS, KEYS, KEYS),
    st.builds(
        "MERGE INTO t USING (SELECT id FROM t WHERE id = {}) AS s ON t.id = s.id + {} WHEN MATCHED"
        " THEN DELETE".format,
        KEYS,
        KEYS,
    ),
    st.builds(
        "MERGE INTO t USING (SELECT * FROM VALUES ({}), ({}) AS v(id)) AS s ON t.id = s.id WHEN"
        " MATCHED AND t.x = {} THEN UPDATE SET x = 9 WHEN NOT MATCHED THEN INSERT (id, x) VALUES"
        " (s.id, 1)".format,
        KEYS,
        KEYS,
        KEYS,
    ),
    st.builds("INSERT INTO t VALUES ({}, {})".format, KEYS, KEYS),
    st.builds("INSERT INTO t SELECT sum(id), 1 FROM t WHERE id < {}".format, KEYS),
    st.sampled_from(["OPTIMIZE t", "REORG TABLE t APPLY (PURGE)", "DELETE FROM t"]),
)
ON_VECTORS = litmus_tests(
    table="CREATE TABLE t (id INT, x INT) USING delta TBLPROPERTIES"
    " ('delta.enableDeletionVectors' = 'true')",
    statements=[SQL],
    rows=st.builds("({}, {}), ({}, {})".format, KEYS, KEYS, KEYS, KEYS),
    most=4,
)
"""Statements on a table with deletion vectors, whose files have several rows."""

RESTORED = """
title    = "Drawn"
schedule = "{steps}"

[table]
columns    = "id INT, x INT"
properties = {{ "delta.enableDeletionVectors" = "true" }}
init       = ["INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (4, 1)", "{second}", "{third}"]

[transactions]
{transactions}
"""


@st.composite
def restored_tests(draw):
    """A RESTORE to a version before or after the second init statement, and one to three statements
    beside it.
    """
    version = draw(st.sampled_from(["{init[1]}", "{init[2]}"]))
    statements = [f"RESTORE TABLE t TO VERSION AS OF {version}"]
    statements += draw(st.lists(SQL, min_size=1, max_size=3))
    moves = draw(st.permutations([*range(len(statements))] * 2))
    steps = [f"t{i}.{'commit' if i in moves[:k] else 'start'}" for k, i in enumerate(moves)]
    text = RESTORED.format(
        steps=" ".join(steps),
        second=draw(st.sampled_from(["DELETE FROM t WHERE id = 4", "INSERT INTO t VALUES (5, 5)"])),
        third=draw(
            st.sampled_from(["DELETE FROM t WHERE id = 3", "UPDATE t SET x = 7 WHERE id = 2"])
        ),
        transactions="\n".join(f't{i} = "{sql}"' for i, sql in enumerate(statements)),
    )
    return read_litmus(text, "drawn")
