"""Texts of invariants, guards of statements, and keys of queries."""

from __future__ import annotations

import dataclasses
import random
import string

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.postconditions import violated_queries
from isolitmus.jobs.invariant import TableVersions
from isolitmus.jobs.sql.guards import insert_as_merge, with_condition
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.jobs.sql.query_keys import query_keys
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.syntax import Syntax

TABLES = {
    name: Schema(name, (Column("id", "INT"), Column(other, "STRING"), Column("day", "DATE")))
    for name, other in (("t", "v"), ("s", "w"))
}


def read(text):
    return read_invariant(text, TABLES, ["t"], "--keeps")


@pytest.mark.parametrize(
    ("text", "table", "columns", "most"),
    [
        ("unique(id)", "t", (0,), 1),
        ("UNIQUE ( ID , `day` )", "t", (0, 2), 1),
        ("s: unique(id)", "s", (0,), 1),
        ("unique(s.id, s.w)", "s", (0, 1), 1),
        ("not  null(v, day)", "t", (), 0),
        ("check(id >= 0 OR v IS NULL)", "t", (), 0),
        ("count per v <= 3 where id > 0", "t", (1,), 3),
        ("count < 3", "t", (), 2),
        ("count per w <= 1", "t", None, 1),
        ("SELECT * FROM s WHERE w = 'a'", "s", (), 0),
        ("SELECT v, count(*) FROM t GROUP BY v HAVING count(*) >= 2", "t", (1,), 1),
    ],
)
def test_forms(text, table, columns, most):
    if columns is None:
        with pytest.raises(LitmusError, match="t has no column 'w'"):
            read(text)
        return
    found = read(text)
    assert (found.table, found.columns, found.most) == (table, columns, most)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no invariant"),
        ("unique", "is no invariant"),
        ("unique()", "names no column"),
        ("unique(id + 1)", "'id + 1' is no column"),
        ("unique(idd)", "t has no column 'idd'; did you mean 'id'"),
        ("unique(t.id, s.id)", "names several tables"),
        ("x: unique(id)", "unknown table 'x'"),
        ("check(1 = 1)", "depends on no column"),
        ("check(id >)", "--keeps"),
        ("check(zz > 1)", "unknown column 'zz'"),
        ("check(:p > id)", "--keeps"),
        ("check(id IN (SELECT id FROM t))", "not modelled"),
        ("count per v <= -1", "is no invariant"),
        ("count < 0", "allows no count"),
        ("SELECT * FROM t JOIN s ON t.id = s.id", "not a query on one table"),
        ("SELECT * FROM t LIMIT 3", "not a query on one table"),
        ("SELECT sum(id) FROM t", "not modelled"),
        ("SELECT * FROM", "--keeps"),
        ("id references x(id)", "unknown table 'x'"),
        ("id references s(idd)", "s has no column 'idd'; did you mean 'id'"),
        ("id references s(w)", "t.id is INT and s.w is STRING"),
        ("(id, v) references s(id)", "2 columns and 1 key column"),
        ("id references s()", "is no column"),
        ("t: sum(v) unchanged", "is STRING; sums of integers and decimals"),
        ("t: sum(1) unchanged", "not modelled; write sum(column)"),
        ("t: sum(id, v) unchanged", "not modelled; write sum(column)"),
        ("t: sum(*) unchanged", "not modelled; write sum(column)"),
        ("t: sum(DISTINCT id) unchanged", "not modelled; write sum(column)"),
        ("t: sum(max(id)) unchanged", "not modelled; write sum(column)"),
        ("t: sum(id AS x) unchanged", "--keeps"),
        ("t: sum(idd) unchanged", "unknown column 'idd'"),
        ("t: avg(id) unchanged", "is no invariant"),
        ("t: sum(id) = before(count(*))", "write sum(id) = before"),
        ("SELECT t.* FROM t ANTI JOIN s ON t.id = s.id", "add id IS NOT NULL to the query"),
        ("SELECT t.* FROM t ANTI JOIN s ON t.id > s.id", "not a query on one table"),
    ],
)
def test_mistakes(text, said):
    with pytest.raises(LitmusError) as error:
        read(text)
    assert said in str(error.value)


def test_a_comment_ends_no_query():
    assert read("count per id <= 1 where day IS NULL -- old\n").query.endswith(
        "HAVING count(*) > 1"
    )
    with pytest.raises(LitmusError, match="is no invariant"):
        read("t: sum(id -- all) unchanged")


TEXTS = st.text(string.printable, max_size=30) | st.builds(
    "{}({}){}".format,
    st.sampled_from(("unique", "not null", "check", "t: unique", "count per", "SELECT * FROM t")),
    st.text("idvday, ().<>='`:1*\n", max_size=12),
    st.sampled_from(("", " <= 3", " < 2 where id > 1", ";", "'")),
)


@given(TEXTS)
def test_any_text_is_read_or_refused(text):
    try:
        found = read(text)
    except IsolitmusError as error:
        assert str(error)
        return
    assert read(found.query).query.lower() == found.query.lower() or found.columns == ()


ROWS = st.lists(
    st.tuples(st.sampled_from((None, 1, 2)), st.sampled_from((None, "a", "b")), st.just(None)),
    max_size=5,
)
STATED = st.sampled_from(
    (
        "unique(id)", "unique(id, v)", "not null(v)", "check(id > 1)", "check(v = 'a' AND id < 2)",
        "count per id <= 2", "count per v <= 1 where id IS NULL", "count <= 3",
        "SELECT id, count(*) FROM t WHERE v = 'a' GROUP BY id HAVING count(*) >= 2",
    )
)  # fmt: skip


@given(ROWS, STATED)
def test_the_model_and_duckdb_find_the_same_violations(rows, text):
    found = read(text)
    said = violated_queries([(TABLES["t"], tuple(rows))], [found.query])
    assert bool(found.violations(TableVersions({"t": tuple(rows)}, {}))) == bool(said)


RELATED = st.sampled_from(
    (
        "id references s(id)", "(id, v) references s(id, w) where day IS NULL", "t: id references t(id)",
        "SELECT t.* FROM t ANTI JOIN s ON t.v = s.w WHERE t.v IS NOT NULL AND t.id = 1",
        "t: sum(id) unchanged", "t: sum( id )>= before (SUM(id)) where id > 0", "t: sum(id + 1) >= before where v = 'a'", "t: count(*) <= before where id > 1",
        "SELECT 1 WHERE (SELECT count(*) FROM t WHERE v = 'b') <> (SELECT count(*) FROM before WHERE v = 'b')",
    )
)  # fmt: skip


@given(ROWS, ROWS, RELATED)
def test_the_model_and_duckdb_agree_on_references_and_totals(rows, others, text):
    """The other rows are those of s, and those of t before."""
    found = read(text)
    assert read(found.query).query == found.query
    rows, others = tuple(rows), tuple(others)
    tables = {"t": rows, "s": others}
    before = (dataclasses.replace(TABLES["t"], name="before"), others)
    said = violated_queries(
        [*((TABLES[name], some) for name, some in tables.items()), before], [found.query]
    )
    violated = found.violations(TableVersions(tables, {"t": others}))
    assert bool(violated) == bool(said)


NUMBERED = "row_number() OVER (PARTITION BY {} ORDER BY b)"


def random_query(draw):
    """Return a query on r(a, b, c) in the form in which its columns are qualified."""
    source = "r"
    for _ in range(draw.choice((0, 1, 1, 2))):
        source = f"({_select(draw, source)}) AS q"
    return _select(draw, source)


def _select(draw, source):
    name = "q" if source != "r" else "r"
    part = draw.choice(("a", "a", "b", "a, b"))
    shown = [f"{name}.{each} AS {each}" for each in ("a", "b", "c")]
    match draw.choice(("plain", "distinct", "group", "number", "qualify", "rename", "where")):
        case "distinct":
            return f"SELECT DISTINCT {', '.join(shown)} FROM {source}"
        case "group":
            return (
                f"SELECT {name}.a AS a, {name}.b AS b, max({name}.c) AS c FROM {source}"
                f" GROUP BY {name}.a, {name}.b"
            )
        case "number":
            keys = ", ".join(f"{name}.{each}" for each in part.split(", "))
            return (
                f"SELECT {', '.join(shown[:2])}, {NUMBERED.format(keys).replace('b)', name + '.b)')}"
                f" AS c FROM {source}"
            )
        case "qualify":
            keys = ", ".join(f"{name}.{each}" for each in part.split(", "))
            window = NUMBERED.format(keys).replace("ORDER BY b", f"ORDER BY {name}.b")
            return f"SELECT {', '.join(shown)} FROM {source} QUALIFY {window} = 1"
        case "rename":
            return f"SELECT {name}.b AS a, {name}.a AS b, {name}.c AS c FROM {source}"
        case "where":
            return f"SELECT {', '.join(shown)} FROM {source} WHERE {name}.c = 1"
    return f"SELECT {', '.join(shown)} FROM {source}"


@pytest.mark.slow
def test_no_two_rows_agree_in_a_key():
    """Keys of random queries, on random rows in DuckDB."""
    draw, keyed = random.Random(1), 0
    base = duckdb.connect()
    base.execute("CREATE TABLE r (a INT, b INT, c INT)")
    for _ in range(300):
        query = random_query(draw)
        keys = query_keys(Syntax(query).tree())
        keyed += bool(keys)
        base.execute("DELETE FROM r")
        for _ in range(6):
            row = [draw.choice((None, 1, 1, 2)) for _ in range(3)]
            base.execute("INSERT INTO r VALUES (?, ?, ?)", row)
        rows = base.execute(query).fetchall()
        for key in keys:
            places = ["abc".index(name) for name in key]
            values = [tuple(row[k] for k in places) for row in rows]
            assert len(set(values)) == len(values), (query, key, rows)
    assert keyed > 150


@pytest.mark.parametrize(
    ("text", "merge", "guarded"),
    [
        (
            "INSERT INTO t SELECT :id, :v, NULL WHERE :n = 0",
            (
                "MERGE INTO t USING (SELECT :id AS id, :v AS v, NULL AS day WHERE :n = 0) AS new ON"
                " t.id = new.id WHEN NOT MATCHED THEN INSERT *"
            ),
            (
                "INSERT INTO t SELECT id, v, day FROM (SELECT :id AS id, :v AS v, NULL AS day WHERE"
                " :n = 0) AS new WHERE NOT v IS NULL"
            ),
        ),
        (
            "INSERT INTO t (id) VALUES (1)",
            (
                "MERGE INTO t USING (SELECT 1 AS id) AS new ON t.id = new.id WHEN NOT MATCHED THEN"
                " INSERT (id) VALUES (new.id)"
            ),
            None,
        ),
        ("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL)", None, None),
        ("INSERT INTO t SELECT * FROM s", None, None),
        ("INSERT OVERWRITE t SELECT 1, 'a', NULL", None, None),
        ("DELETE FROM t", None, None),
        (
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.w = 'a' THEN UPDATE SET v = s.w"
                " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
            ),
            None,
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.w = 'a' AND NOT s.w IS NULL THEN"
                " UPDATE SET v = s.w WHEN NOT MATCHED AND NOT NULL IS NULL THEN INSERT (id) VALUES"
                " (s.id)"
            ),
        ),
    ],
)
def test_statements_with_a_guard(text, merge, guarded):
    assert insert_as_merge(text, TABLES["t"], ["id"], TABLES) == merge
    assert with_condition(text, TABLES["t"], "v IS NOT NULL", TABLES) == guarded
