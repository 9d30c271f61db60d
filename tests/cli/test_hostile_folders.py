"""A folder that is judged, and the working folder, can neither run, lie nor write."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pages import FOLDERS

from isolitmus.checker.execution.worker_processes import SAFE_PATH, process_pool
from isolitmus.jobs.projects import databricks_bundle, path_patterns
from isolitmus.jobs.readers.lint_settings import path_matches

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
    "databases/observations/killed_writers.py": '"-P"',
    "jobs/recording/function_runs.py": '"-P"',
    "conformance/delta/jvm.py": "SAFE_PATH",
}
"""Every file that starts Python, and with what it does so without the current folder."""


def test_every_process_of_python_starts_isolated():
    root = Path(__file__).parents[2]
    starting = {
        path.relative_to(root).as_posix(): text
        for top in FOLDERS
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


# Where reading ends

SECRET = "SECRET_OF_THE_MACHINE"
APPEND = "INSERT INTO events VALUES (:id, 'click', :day)"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The working folder, with a job and its table, beside a file that is not of the repository."""
    (tmp_path / "secret").write_text(f"DELETE FROM {SECRET}; -- {SECRET}")
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(f"token = {SECRET}")
    (folder / "tables.sql").write_text(DDL)
    (folder / "append.sql").write_text(APPEND)
    monkeypatch.chdir(folder)
    return folder


def everything(call, *words):
    """The status of ``lint`` and of ``predict``, and all that they print and write, in one text."""
    statuses, texts = [], []
    for command in (["lint"], ["lint", "--as", "sarif"], ["predict"], ["robust", "--json"]):
        page = ["--html", "page.html"] if len(command) == 1 else []
        status, out, err = call(*command, *words, *page, columns=10_000)
        statuses.append(status)
        texts += [out, err]
        if page and Path("page.html").exists():
            texts.append(Path("page.html").read_text("utf-8"))
            Path("page.html").unlink()
    return statuses, "\n".join(texts)


LINKS = {
    "/proc/self/environ": "it leads to /proc/self/environ, outside of ",
    "../secret": "it leads to ../secret, outside of ",
    "{parent}/secret": "/secret, outside of ",
    ".git/config": "it leads to .git/config, which is hidden",
    ".hidden.sql": "it leads to .hidden.sql, which is hidden",
    "up/secret": "it leads to up/secret, outside of ",
}


@pytest.mark.parametrize(
    ("target", "git"),
    [(target, git) for target in LINKS for git in (True, False) if git or ".git" not in target],
)
def test_a_linked_file_that_leads_out_is_refused(repository, call, monkeypatch, target, git):
    monkeypatch.setenv("TOKEN", SECRET)
    if not git:
        (repository / ".git").rename(repository / "git")
    (repository / "up").symlink_to("..")
    (repository / ".hidden.sql").write_text(f"-- {SECRET}")
    (repository / "leak.sql").symlink_to(target.format(parent=repository.parent))
    status, out, err = call("lint", ".", columns=10_000)
    assert (status, err) == (1, "")
    assert "leak.sql:1:1: ISO005 warning: invalid statement: it leads to " in out
    assert LINKS[target] in out
    status, out, err = call("predict", ".")
    assert (status, err) == (3, "")
    assert LINKS[target] in " ".join(out.split())
    for words in (["leak.sql", "append.sql", "tables.sql"], ["leak.sql", "--ddl", "tables.sql"]):
        assert SECRET not in str(call("lint", *words))
        assert SECRET not in str(call("predict", *words))


def test_nothing_of_a_link_is_printed(repository, call, monkeypatch):
    monkeypatch.setenv("TOKEN", SECRET)
    for name, target in (("a", "/proc/self/environ"), ("b", "../secret"), ("c", ".git/config")):
        (repository / f"{name}.sql").symlink_to(target)
    statuses, text = everything(call, ".")
    assert statuses == [1, 1, 3, 3]
    assert SECRET not in text


def test_a_link_within_the_repository_is_read(repository, call):
    (repository / "lib").mkdir()
    (repository / "lib" / "a.sql").write_text(APPEND)
    (repository / "jobs").mkdir()
    (repository / "jobs" / "b.sql").symlink_to("../lib/a.sql")
    status, out, err = call("lint", "jobs", "--ddl", "tables.sql")
    assert (status, err) == (0, "")
    assert "No findings; 1 statement in 1 file" in out


def test_a_linked_folder_that_is_given(repository, call):
    (repository.parent / "other").mkdir()
    (repository.parent / "other" / "a.sql").write_text(f"DELETE FROM {SECRET}")
    (repository / "models").symlink_to("../other")
    for command in ("lint", "predict"):
        status, out, err = call(command, "models", "--ddl", "tables.sql")
        assert (status, out) == (2, "")
        assert "cannot read models: it leads to ../other, outside of " in err
    (repository / ".git").rename(repository / "git")  # now it is a link of the user's
    assert "1 statement in 1 file" in call("lint", "models", "--ddl", "tables.sql")[1]


def test_what_is_skipped_is_said(repository, call):
    (repository / "OTHER.SQL").write_text(APPEND)
    (repository / ".old" / "deep").mkdir(parents=True)
    (repository / ".old" / "deep" / "a.sql").write_text(APPEND)
    (repository / ".b.sql").write_text(APPEND)
    (repository / "linked").symlink_to(".old")
    (repository / ".github").mkdir()
    for command in ("lint", "predict", "robust"):
        out = call(command, ".")[1]
        assert (
            "- Not read: .b.sql (1 hidden SQL file), .old (1 hidden SQL file), linked (linked"
            " folder).\n" in out
        )
    assert "2 statements in 2 files" in call("lint", ".")[1]
    assert call("lint", "OTHER.SQL", "--ddl", "tables.sql")[0] == 0
    assert call("predict", "OTHER.SQL", "--ddl", "tables.sql")[0] == 0
    for path in repository.glob("*.[sS][qQ][lL]"):
        path.unlink()
    assert "has no file NAME.sql, nor has a folder in it. Not read: .old (1" in call("lint", ".")[2]


SETTINGS = {
    "paths = ['../other']": "paths: '../other': it leads to ",
    "ddl = '../secret'": "ddl: '../secret': it leads to ",
    "ddl = '/proc/self/environ'": "ddl: '/proc/self/environ': it leads to ",
    "ddl = 'link'": "ddl: 'link': it leads to ../secret, outside of ",
    "baseline = '../secret'": "baseline: '../secret': it leads to ",
    "tables = ['t=../other']": "tables: '../other': it leads to ",
    "level = '../secret.cat'": "level: '../secret.cat': it leads to ",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_do_not_lead_out(repository, call, setting):
    (repository / "link").symlink_to("../secret")
    (repository / "isolitmus.toml").write_text(setting)
    status, out, err = call("lint", "--update-baseline")
    assert (status, out) == (2, "")
    assert err.startswith(f"isolitmus: isolitmus.toml:1: {SETTINGS[setting]}")
    assert SECRET not in err


@pytest.mark.parametrize("name", ["isolitmus.toml", "pyproject.toml"])
def test_settings_are_no_link(repository, call, name):
    (repository / name).symlink_to("../secret")
    for command in ("lint", "predict"):
        status, out, err = call(command, ".")
        assert (status, out) == (2, "")
        assert "it leads to ../secret, outside of " in err


def test_the_command_line_names_what_it_wants(repository, call):
    (repository.parent / "ddl.sql").write_text(DDL.replace("events", "logs"))
    (repository / "b.sql").write_text("INSERT INTO logs VALUES (:id, 'click', :day)")
    status, out, err = call(
        "lint", ".", "--ddl", "../ddl.sql", "--baseline", "../b", "--update-baseline"
    )
    assert (status, out) == (0, "")
    assert err == "isolitmus: ../b has 0 findings\n"


BUNDLE = "bundle: {name: b}\nresources: {jobs: {j: {tasks: [{task_key: t, notebook_task: {notebook_path: %s}}]}}}\n"


@pytest.mark.parametrize("pattern", ["../../..", "../*.yml", "a/../../*.yml"])
def test_a_bundle_includes_nothing_beyond_its_folder(repository, call, pattern):
    (repository / "databricks.yml").write_text(f"include: ['{pattern}']\n{BUNDLE % './append.sql'}")
    for command in ("lint", "predict"):
        status, out, err = call(command, ".")
        assert (status, out) == (2, "")
        assert err.startswith("isolitmus: databricks.yml:1:11: include has ")
        assert "which leads out of the bundle's folder" in err


def test_links_of_a_bundle(repository, call):
    (repository / "databricks.yml").write_text(f"include: ['*.yaml']\n{BUNDLE % './leak.sql'}")
    (repository / "leak.sql").symlink_to("../secret")
    status, out, err = call("lint", ".")
    assert (status, err) == (0, "")
    assert "'./leak.sql' is not read: it leads to ../secret, outside of " in " ".join(out.split())
    (repository / "databricks.yml").write_text(f"include: ['*.yaml']\n{BUNDLE % './append.sql'}")
    out = " ".join(call("lint", ".")[1].split())
    assert "cannot read" in out
    assert "leak.sql: it leads to ../secret, outside of " in out
    (repository / "more.yaml").symlink_to("../secret")
    status, out, err = call("lint", ".")
    assert (status, out) == (2, "")
    assert "more.yaml: it leads to ../secret, outside of " in err
    assert SECRET not in err
    (repository / "databricks.yml").unlink()
    (repository / "databricks.yml").symlink_to("../secret")
    assert "databricks.yml: it leads to ../secret, outside of " in call("lint", ".")[2]


@pytest.mark.parametrize(
    "link", ["target/manifest.json", "target/catalog.json", "dbt_project.yml", "target-path"]
)
def test_a_dbt_project_does_not_lead_out(tmp_path, call, link):
    shop = Path(__file__).parents[1] / "data" / "dbt" / "shop"
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    (tmp_path / "secret").mkdir()
    if link == "target-path":
        (folder / "dbt_project.yml").write_text("name: shop\ntarget-path: ../secret\n")
    else:
        (folder / link).unlink(missing_ok=True)
        (folder / link).symlink_to(tmp_path / "secret")
    for command in ("lint", "predict"):
        status, out, err = call(command, folder)
        assert (status, out) == (2, "")
        assert "it leads to " in err
        assert "/secret" in err


def test_a_log_does_not_lead_out(tmp_path, call, delta, monkeypatch):
    (tmp_path / "secret").write_text(SECRET)
    table = delta.table()
    (table / "_delta_log" / f"{1:020}.json").symlink_to("../../secret")
    monkeypatch.chdir(tmp_path)
    for words in (["audit", "t"], ["predict", "shop", "--table", "t"]):
        status, out, err = call(*words)
        assert (status, out) == (2, "")
        assert "it leads to ../../secret, outside of " in err
        assert SECRET not in err


def test_a_spec_includes_nothing_beyond_its_repository(repository, call):
    (repository.parent / "outside.cat").write_text(f'"{SECRET}"')
    (repository / "x.cat").write_text('"T" include "../outside.cat" acyclic wr as x')
    status, out, err = call("check", "reorder", "--level", "x.cat")
    assert (status, out) == (2, "")
    assert "cannot include '../outside.cat': it leads to " in err
    assert SECRET not in err


@pytest.mark.parametrize("pattern", ["*a" * 500_000 + "b", "[a-" * 300_000, "**/" * 300_000 + "x"])
def test_a_pattern_of_a_megabyte(tmp_path, monkeypatch, pattern):
    """It is compiled for no name that is shorter than any name that it matches."""
    compiled = []
    monkeypatch.setattr(
        path_patterns, "_expression", lambda text: compiled.append(text) or re.compile("x")
    )
    (tmp_path / "a").touch()
    assert not path_matches(pattern, "a/" * 50 + "a" * 200)
    assert not [*databricks_bundle._matching(tmp_path, pattern)]
    assert {*compiled} <= {"x"}


def test_a_repository_of_10_000_folders(repository, call):
    for k in range(100):
        for j in range(100):
            (repository / f"d{k}" / f"e{j}").mkdir(parents=True)
    (repository / "d7" / "e7" / "b.sql").write_text(APPEND)
    begun = time.monotonic()
    for command in ("lint", "predict"):
        status, _, err = call(command, ".")
        assert (status, err) == (0, "")
    assert time.monotonic() - begun < 60


READERS = {
    "specs/files/anomaly_file.py", "specs/files/catalogue.py", "specs/files/catalogue_titles.py",
    "claims/claims_file.py", "specs/files/equivalents_file.py", "specs/files/exceptions_file.py",
    "specs/files/spec_catalogue.py", "specs/files/spec_reader.py", "specs/language/parser.py", "specs/sql/maintenance.py",
}  # fmt: skip
"""Readers of files that ship in the package, or that the command line names."""
NAMED = {
    "jobs/readers/sql_jobs.py", "jobs/readers/project_workload.py", "jobs/readers/function_targets.py",
    "jobs/readers/baseline_file.py",
}  # fmt: skip
"""Readers of the DDL, the function and the baseline of the command line, or of checked settings."""
CHECKED = {"jobs/projects/dbt_manifest.py"}
"""Reader of files that `find_manifest` has checked."""


def test_files_of_a_repository_are_opened_in_one_place():
    root = Path(__file__).parents[2]
    pattern = r"\bread_text\b|\bread_bytes\b|\bopen_file\b|\bread_small\b|\bread_lines\b|\bopen\("
    opening = {
        path.relative_to(root).as_posix()
        for top in (
            "specs/files",
            "specs/sql",
            "specs/language",
            "jobs/lint",
            "jobs/projects",
            "jobs/readers",
            "jobs/sql",
            "claims",
        )
        for path in (root / top).rglob("*.py")
        if re.search(pattern, path.read_text("utf-8"))
    }
    assert opening - {"jobs/lint/answer_cache.py"} == READERS | NAMED | CHECKED
