"""Queries in which the table that is written to is joined, and statements that meet them; for
Hypothesis.
"""

from hypothesis import strategies as st

HEAD = """
title    = "A table that is written to stands in a join"
schedule = "a.start b a.commit"

[tables.t]
columns        = "id INT, x INT, y INT"
partitioned_by = [{}]
init = ["INSERT INTO t VALUES (1, 1, 1)", "INSERT INTO t VALUES (2, 2, 1)", "INSERT INTO t VALUES (NULL, 2, 2)", "INSERT INTO t VALUES (4, NULL, 2)"]

[tables.s]
columns = "id INT, x INT, y INT"
init    = ["INSERT INTO s VALUES (2, 2, 1), (3, 1, 1), (NULL, 2, 2), (4, 1, NULL)"]

[tables.u]
columns = "id INT, z INT"
init    = ["INSERT INTO u VALUES (2, 1), (3, NULL), (NULL, 2)"]

[transactions]
a = "{}"
b = "{}"
"""
MET = [
    "t.id = s.id",
    "t.x = s.x",
    "t.id = s.id AND t.y = s.y",
    "t.id < s.id",
    "t.id = s.x",
    "t.id = s.id AND t.x < s.x",
]
SAID = [
    "t.x = 2",
    "t.id > 1",
    "t.y = 1",
    "s.x = 1",
    "s.id > 2",
    "(s.y = 1 OR s.id = 2)",
    "t.id IS NOT NULL",
]
HOW = [
    "JOIN",
    "JOIN",
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
]
WINNERS = [
    *(f"DELETE FROM t WHERE id = {k}" for k in (1, 2, 4)),
    "DELETE FROM t WHERE id IS NULL",
    "INSERT INTO t VALUES (7, 1, 1)",
    "INSERT INTO t VALUES (7, NULL, NULL)",
]


@st.composite
def joins(draw):
    """A litmus file."""
    how, met = draw(st.sampled_from(HOW)), draw(st.sampled_from(MET))
    on = draw(st.lists(st.sampled_from(SAID), max_size=1))
    semi = how in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    first, second = draw(st.sampled_from([("t", "s"), ("t", "s"), ("s", "t")]))
    where = draw(st.lists(st.sampled_from(SAID), max_size=1))
    if semi:
        where = [part for part in where if first in part.replace("(", "")[:1]]
    third = draw(st.sampled_from(["", "", " JOIN u ON u.id = s.id"])) if not semi else ""
    query = f"FROM {first} {how} {second} ON {' AND '.join([met, *on])}{third}"
    if where:
        query += f" WHERE {where[0]}"
    items = f"{first}.id + 10, {first}.x, {second if not semi else first}.y"
    sql = f"INSERT INTO t SELECT {items} {query}"
    if draw(st.integers(0, 3)) == 0:
        sql = (
            f"MERGE INTO t USING (SELECT {first}.id + 2 AS id, {first}.x, 5 AS y {query}) k ON t.id"
            " = k.id AND t.x = 2 WHEN MATCHED THEN UPDATE SET y = k.y WHEN NOT MATCHED THEN"
            " INSERT *".replace("FROM t ", "FROM t AS r ")
            .replace("JOIN t ON", "JOIN t AS r ON")
            .replace("t.", "r.")
            .replace("ON r.id = k.id AND r.x", "ON t.id = k.id AND t.x")
        )
    part = draw(st.sampled_from(['"x"', '"x"', "", '"y"']))
    return HEAD.format(part, sql, draw(st.sampled_from(WINNERS)))
