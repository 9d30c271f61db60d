"""The notebook of the docs: its cells run, and show what it says that they show.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/pipeline/test_notebook.py.
"""

import ast
import contextlib
import io
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "results" / "sweep-tables.ipynb"


def run_cells(sources):
    """Run cells one after another, as a notebook does: what each prints, and what its last
    expression is.
    """
    names = {}
    for source in sources:
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "a cell", "exec"), names)
            value = last and eval(compile(ast.Expression(last.value), "a cell", "eval"), names)
        yield printed.getvalue(), None if value is None else repr(value)


def outputs(printed, value):
    """What a cell shows, as a notebook's file has it."""
    if printed:
        text = printed.splitlines(keepends=True)
        yield {"name": "stdout", "output_type": "stream", "text": text}
    if value is not None:
        text = value.splitlines(keepends=True)
        yield {
            "data": {"text/plain": text},
            "execution_count": None,
            "metadata": {},
            "output_type": "execute_result",
        }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("session")
def test_the_notebook_shows_what_one_sees(tmp_path, monkeypatch):
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    shown = run_cells("".join(cell["source"]) for cell in cells)
    seen = [list(outputs(*one)) for one in shown]
    if os.environ.get("ISOLITMUS_UPDATE"):
        for cell, shown in zip(cells, seen, strict=True):
            cell["outputs"] = shown
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(f"{text}\n", "utf-8")
        return
    assert [cell["outputs"] for cell in cells] == seen
