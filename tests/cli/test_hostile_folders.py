"""A folder that is judged, and the working folder, can neither run, lie nor write."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isolitmus.checker.execution.worker_processes import SAFE_PATH, process_pool

DDL = "CREATE TABLE events (id BIGINT, kind STRING, day DATE) USING delta PARTITIONED BY (day)"
DEPENDENCIES = ("duckdb", "isolitmus", "lark", "numpy", "sqlglot", "typer", "yaml", "z3")
PROGRAM = [str(Path(sys.executable).with_name("isolitmus"))]
MODULE = [sys.executable, "-m", "isolitmus"]


def called(command, *words, cwd):
    done = subprocess.run([*command, *words], cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def modules(tmp_path):
    """A folder of nine jobs, and a module of each name that a command may import."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "tables.sql").write_text(DDL)
    for k in range(9):
        (folder / f"j{k}.sql").write_text(f"INSERT INTO events VALUES ({k}, 'click', :day)")
    for name in (*sys.stdlib_module_names, *DEPENDENCIES):
        (folder / f"{name}.py").write_text(
            f"with open({str(tmp_path / 'ran')!r}, 'a') as file: file.write('{name} ')\n"
        )
    return folder


@pytest.mark.parametrize("command", [PROGRAM, MODULE], ids=["isolitmus", "python -m isolitmus"])
def test_no_module_of_the_working_folder_is_executed(modules, command):
    (modules / "isolitmus.py").unlink()  # it would be what `python -m isolitmus` is asked for
    status, out, err = called(command, "predict", ".", "--json", "--cores", "2", cwd=modules)
    assert (status, err) == (0, "")
    assert [one["word"] for one in json.loads(out)["meetings"]] == ["never"] * 81
    assert not (modules.parent / "ran").exists()


def test_a_program_that_uses_the_library_starts_processes_without_its_folder(modules):
    (modules / "zzz.py").write_text(
        "if __name__ == '__main__':\n"
        "    import sys\n"
        "    sys.path.remove(sys.path[0])\n"
        "    from isolitmus.checker.execution.worker_processes import process_pool\n"
        "    with process_pool(2, print) as pool:\n"
        "        print(pool.submit(abs, -3).result())\n"
    )
    status, out, err = called([sys.executable, "zzz.py"], cwd=modules)
    assert (status, out.split(), err) == (0, ["3"], "")
    assert not (modules.parent / "ran").exists()


@pytest.mark.parametrize("before", [None, "yes"])
def test_the_environment_is_as_before(monkeypatch, before):
    monkeypatch.delenv(SAFE_PATH, raising=False)
    if before is not None:
        monkeypatch.setenv(SAFE_PATH, before)
    with process_pool(1, print):
        assert os.environ[SAFE_PATH] == "1"
    assert os.environ.get(SAFE_PATH) == before


PYTHON_CHILDREN = {
    "checker/execution/worker_processes.py": "PYTHONSAFEPATH",
    "conformance/deltalake/environment.py": '"-I"',
    "conformance/observations/killed_writers.py": '"-P"',
    "conformance/pyspark_jobs/function_runs.py": '"-P"',
    "conformance/delta/jvm.py": "SAFE_PATH",
}
"""Every file that starts Python, and with what it does so without the current folder."""


def test_every_process_of_python_starts_isolated():
    root = Path(__file__).parents[2]
    starting = {
        path.relative_to(root).as_posix(): text
        for top in ("model", "specs", "checker", "conformance", "pipeline", "cli")
        for path in (root / top).rglob("*.py")
        if any(
            word in (text := path.read_text("utf-8"))
            for word in ("sys.executable", "get_context(", "interpreter(release)")
        )
    }
    starting.pop("conformance/delta/session.py")  # of Spark's own processes, as jvm.py starts them
    assert starting.keys() == PYTHON_CHILDREN.keys()
    for name, word in PYTHON_CHILDREN.items():
        assert word in starting[name]
