"""The notebook of the docs: its cells run, and show what it says that they show.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/pipeline/test_notebook.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "sweep-tables.ipynb"
RUN = """
import ast, contextlib, io, json, sys

names, shown = {}, []
for source in json.load(sys.stdin):
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "a cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "a cell", "eval"), names)
    shown.append((printed.getvalue(), None if value is None else repr(value)))
json.dump(shown, sys.stdout)
"""
"""Cells one after another, as a notebook runs them: what each prints, and what its last expression is."""


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
@pytest.mark.wide
def test_the_notebook_shows_what_one_sees(tmp_path):
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(["".join(cell["source"]) for cell in cells]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = [list(outputs(*one)) for one in json.loads(done.stdout)]
    if os.environ.get("ISOLITMUS_UPDATE"):
        for cell, shown in zip(cells, seen, strict=True):
            cell["outputs"] = shown
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(f"{text}\n", "utf-8")
        return
    assert [cell["outputs"] for cell in cells] == seen
