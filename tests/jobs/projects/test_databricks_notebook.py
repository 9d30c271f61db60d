"""Notebooks in the source format are SQL at the places that it has in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.projects.notebooks import read_notebook
from isolitmus.jobs.readers.sql_jobs import read_sql_file

SIGNS = {"sql": "--", "py": "#", "scala": "//", "r": "#"}
NAMES = {"sql": "sql", "py": "python", "scala": "scala", "r": "r"}
BODIES = st.sampled_from(["DELETE FROM t", "INSERT INTO t\nVALUES (1)", "OPTIMIZE t", "x = 'é'"])


def cell(ending, magic, body):
    if magic is None:
        return body
    lines = f"%{magic}\n{body}".split("\n")
    return "\n".join(f"{SIGNS[ending]} MAGIC {line}" for line in lines)


@given(
    st.sampled_from([*SIGNS]),
    st.lists(st.tuples(st.sampled_from([None, "sql", "md", "python", "run"]), BODIES), min_size=1),
)
def test_the_sql_of_a_notebook_stays_where_it_is(ending, cells):
    sign = SIGNS[ending]
    written = [cell(ending, magic, body) for magic, body in cells]
    between = f"\n\n{sign} COMMAND ----------\n\n"
    text = f"{sign} Databricks notebook source\n{between.join(written)}\n"
    found = read_notebook(text, ending)
    assert found is not None
    assert len(found.sql) == len(text)
    lines = text.split("\n"), found.sql.split("\n")
    assert [*map(len, lines[0])] == [*map(len, lines[1])]
    told = [
        "nothing" if (ending, magic, body) == ("py", None, "x = 'é'") else magic or NAMES[ending]
        for magic, body in cells
    ]
    assert [one.language for one in found.others] == [
        name for name in told if name not in ("sql", "md", "nothing")
    ]
    parts = [" ".join(part.split()) for part in found.sql.split(";")]
    read = [
        " ".join(body.split()) if name == "sql" else ""
        for name, (_, body) in zip(told, cells, strict=True)
    ]
    assert parts == read
    for one in found.others:
        assert text[one.start :].startswith(tuple(written))


@pytest.mark.parametrize(
    ("text", "ending"),
    [("DELETE FROM t", "sql"), ("# Databricks notebook source", "sql"), ("print(1)", "py"),
     ("-- Databricks notebook sources", "sql"), ("{}", "ipynb")],
)  # fmt: skip
def test_another_text_is_no_notebook(text, ending):
    assert read_notebook(text, ending) is None


@pytest.mark.parametrize("body", ["# a comment", "", "# MAGIC %md\n# MAGIC text"])
def test_a_cell_that_executes_nothing_is_not_told(body):
    assert read_notebook(f"# Databricks notebook source\n{body}\n", "py").others == ()


def test_a_cell_of_python_that_executes_sql():
    text = "# Databricks notebook source\nspark.sql('DELETE FROM t')\n# COMMAND ----------\nf()\n"
    found = read_notebook(text, "py")
    assert found.sql.replace(" ", "").strip() == "DELETEFROMt;\n;"
    (left,) = found.others
    assert text[left.start :] == "f()\n"


def test_titles_and_widgets_of_a_notebook(tmp_path):
    path = tmp_path / "n.sql"
    path.write_text(
        "-- Databricks notebook source\n"
        "-- DBTITLE 1,Old rows\n"
        "DELETE FROM t WHERE day = '${day}'\n"
        "-- COMMAND ----------\n"
        "-- MAGIC %python\n"
        "-- MAGIC print(1)\n",
        "utf-8",
    )
    found = read_sql_file(path, "n.sql")
    assert "day = :day    " in found.source.text
    (left,) = found.unread("n")
    assert (
        str(left) == "n (n.sql:5:1): python cell of a notebook; only its SQL cells are understood"
    )
    (tmp_path / "m.py").write_text("print(1)\n", "utf-8")
    assert read_sql_file(tmp_path / "m.py", "m.py") is None
