"""Jupyter notebooks are SQL in the lines of the file, with the numbers of their cells."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.projects.notebooks import read_jupyter_notebook, read_python_cell
from isolitmus.jobs.readers.sql_jobs import split_statements
from isolitmus.model.errors import LitmusError


def code(*lines):
    return {"cell_type": "code", "metadata": {}, "source": [*lines]}


def notebook(*cells, indent=1, **metadata):
    found = {"cells": [*cells], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=indent, ensure_ascii=False)


def statements(text):
    found = read_jupyter_notebook(text, "n.ipynb")
    return [" ".join(one.split()) for one in found.sql.split(";") if one.strip()]


CELLS = (
    code("%sql\n", "DELETE FROM t\n", 'WHERE k = "it\'s\\té"'),
    {"cell_type": "markdown", "source": ["DELETE FROM s"]},
    code("%%sql\n", "\n", "OPTIMIZE t"),
    code("%md\n", "text"),
    code("import pyspark\n", 'spark.sql("VACUUM t")\n', 'display(spark.sql("""\n', 'SELECT 1"""))'),
    code("print(1)"),
)
SQL = [
    'DELETE FROM t WHERE k = "it\'s\\té"',
    "OPTIMIZE t",
    "VACUUM t",
    "SELECT 1",
]


@pytest.mark.parametrize("indent", [1, 4, None])
@pytest.mark.parametrize("joined", [True, False])
def test_the_sql_of_a_notebook(indent, joined):
    cells = [one | {"source": "".join(one["source"]) if joined else one["source"]} for one in CELLS]
    text = notebook(*cells, indent=indent)
    expected = [" ".join(one.split()) for one in SQL]
    assert statements(text) == expected
    found = read_jupyter_notebook(text, "n.ipynb")
    ((start, language),) = found.others
    assert language == "python"
    assert found.cell_at(found.sql.count("\n", 0, start) + 1) == 6
    assert found.cell_at(found.sql.count("\n", 0, found.sql.index("OPTIMIZE")) + 1) == 3


def test_lines_are_those_of_the_file():
    text = notebook(*CELLS)
    found = read_jupyter_notebook(text, "n.ipynb").sql
    assert len(found) == len(text)
    for word in ("DELETE FROM t", "WHERE", "OPTIMIZE", "VACUUM"):
        assert found.count("\n", 0, found.index(word)) == text.count("\n", 0, text.index(word))


@pytest.mark.parametrize("indent", [1, None])
def test_a_comment_at_the_end_of_a_cell_does_not_hide_the_next(indent):
    cells = [code("%sql\n", "DELETE FROM t -- all"), code("%sql\n", "OPTIMIZE t -- all")]
    found = read_jupyter_notebook(notebook(*cells, indent=indent), "n.ipynb").sql
    assert [one.split("\n")[-1].strip() for one in split_statements(found)] == [
        "DELETE FROM t -- all",
        "OPTIMIZE t -- all",
    ]


def test_the_language_of_a_notebook_and_of_a_cell():
    of_sql = {"application/vnd.databricks.v1+notebook": {"language": "sql"}}
    assert statements(notebook(code("DELETE FROM t"), **of_sql)) == ["DELETE FROM t"]
    assert statements(notebook(code("%sql DELETE FROM t"))) == ["DELETE FROM t"]
    assert (
        statements(
            notebook(code("x = 1"), code(""), code("%python\n", "x"), code("%%sql -o d\n", "x"))
        )
        == []
    )
    found = read_jupyter_notebook(
        notebook(code("%sh\n", "ls"), code("%%sql -o d\n", "x"), kernelspec={"language": "scala"}),
        "",
    )
    assert [one.language for one in found.others] == ["sh", "sql with options"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (notebook(*CELLS)[:80], "n.ipynb: not a notebook: not JSON: "),
        ("", "n.ipynb: not a notebook: not JSON: "),
        ("[1]", "n.ipynb: not a notebook: it has no list 'cells' (nbformat 4)"),
        ('{"cells": 3}', "n.ipynb: not a notebook: it has no list 'cells' (nbformat 4)"),
        ('{"cells": [3]}', "n.ipynb: cell 1 has no source (a string, or a list of lines)"),
        (notebook(code("x"), {"source": [3]}), "n.ipynb: cell 2 has no source"),
        ("[" * 9000, "n.ipynb: not a notebook: not JSON: nested too deeply"),
    ],
)
def test_a_file_that_is_no_notebook_is_one_sentence(text, said):
    with pytest.raises(LitmusError) as caught:
        read_jupyter_notebook(text, "n.ipynb")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@given(st.lists(st.lists(st.text(max_size=8), max_size=4), max_size=4), st.sampled_from([1, None]))
def test_any_text_of_a_cell_comes_back(cells, indent):
    of_sql = {"language_info": {"name": "sql"}}
    lines = ["".join(one).replace(";", "").replace("%", "") for one in cells]
    text = notebook(*map(code, lines), indent=indent, **of_sql)
    plain = (" ".join(one.replace("\r", "\n").split()) for one in lines)
    assert statements(text) == [one for one in plain if one]


@pytest.mark.parametrize(
    "cell",
    [
        "spark.sql('DELETE FROM t'",
        "spark.sql(f'DELETE FROM {t}')",
        "spark.sql('DELETE' ' FROM t')",
        "spark.sql('a\\tb')",
        "spark.sql('DELETE FROM t -- all')",
        "spark.sql('SELECT 1').write.saveAsTable('t')",
        "spark.sql('SELECT :x', args=given)",
        "if x: spark.sql('DELETE FROM t')",
        "import jobs",
        "x.y = spark.sql('DELETE FROM t')",
        "x = load()",
        "%pip install x",
    ],
)
def test_a_cell_that_may_do_something_else(cell):
    assert read_python_cell(cell) is None


def test_a_cell_of_python_that_executes_sql():
    cell = "é = 1\nx = spark.sql(r'DELETE FROM t WHERE k = :k', args={'k': é})"
    found = read_python_cell(cell)
    assert found == " " * 5 + "\n" + " " * 16 + "DELETE FROM t WHERE k = :k" + ";" + " " * 16
    assert read_python_cell("spark.sql('SELECT 1').show()").split() == ["SELECT", "1;"]
