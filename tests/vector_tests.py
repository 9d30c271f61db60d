"""Drawn litmus tests on a table with deletion vectors, whose statements share files."""

from hypothesis import strategies as st

from isolitmus.checker.strategies import litmus_tests

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
