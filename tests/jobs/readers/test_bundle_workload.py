"""A bundle is a workload: its tasks, what the scheduler rules out, and what is not understood."""

import json
from pathlib import Path

import networkx as nx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.readers.lint_settings import LintSettings
from isolitmus.jobs.readers.lint_sources import read_lint_sources
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import IsolitmusError, LitmusError

SHOP = Path(__file__).parents[2] / "data" / "bundle"
DDL = "CREATE TABLE t (id INT) USING delta;"


def written(folder, jobs, more=None, sql="DELETE FROM t", schedule=""):
    (folder / "sql").mkdir(exist_ok=True)
    (folder / "databricks.yml").write_text(
        yaml.safe_dump({"bundle": {"name": "b"}, "resources": {"jobs": jobs}} | (more or {})),
        "utf-8",
    )
    (folder / "sql" / "tables.sql").write_text(DDL, "utf-8")
    (folder / "sql" / "a.sql").write_text(sql, "utf-8")
    if schedule:
        (folder / "isolitmus.toml").write_text(f"[schedule]\n{schedule}\n", "utf-8")
    return folder


def task(key, *after, **more):
    return {
        "task_key": key,
        "depends_on": [{"task_key": one} for one in after],
        "sql_task": {"file": {"path": "sql/a.sql"}},
    } | more


def test_the_bundle_of_the_documentation():
    found = workload(str(SHOP))
    assert found.name == "orders"
    assert [*found.tables] == ["orders", "corrections", "sums"]
    assert [one.name for one in found.statements] == [
        "load", "corrections_upsert", "corrections_report", "maintain_1", "maintain_2",
    ]  # fmt: skip
    assert [str(one.location) for one in found.statements] == [
        "sql/append.sql:1:1", "sql/upsert.sql:1:1", "notebooks/report.py:8:9",
        "notebooks/compact.sql:7:1", "notebooks/compact.sql:11:1",
    ]  # fmt: skip
    (left,) = found.unread
    assert str(left.location) == "resources/jobs.yml:37:13"
    assert found.schedule.endswith("(databricks.yml, target prod).")
    assert found.assumptions[-3:] == (
        "corrections is paused, but it may be started by hand.",
        "What starts the jobs is not taken into account: load by a trigger; corrections by '0 0 2 * * ?' (UTC); maintain by '0 0 4 ? * SUN' (UTC). A run may be late, or started by hand.",
        "A retry of corrections_upsert is a run like any other, after the one that failed.",
    )
    assert workload(str(SHOP / "databricks.yml")).apart == found.apart


@st.composite
def drawn_jobs(draw):
    jobs = {}
    for name in ("x", "y")[: draw(st.integers(1, 2))]:
        tasks = []
        for k in range(draw(st.integers(1, 4))):
            after = draw(st.sets(st.integers(0, k - 1))) if k else ()
            made = task(f"t{k}", *(f"t{one}" for one in after))
            if draw(st.booleans()):
                inner = {"task_key": "i", "sql_task": made.pop("sql_task")}
                made["for_each_task"] = {
                    "inputs": "[]",
                    "task": inner,
                    "concurrency": draw(st.integers(1, 2)),
                }
            tasks.append(made)
        jobs[name] = {"tasks": draw(st.permutations(tasks))}
        if draw(st.booleans()):
            jobs[name]["max_concurrent_runs"] = draw(st.integers(0, 2))
    return jobs


@given(drawn_jobs())
def test_what_the_scheduler_rules_out(tmp_path_factory, jobs):
    """Two tasks may overlap unless a run of one has to end before the other one starts."""
    found = workload(str(written(tmp_path_factory.mktemp("bundle"), jobs)))
    every = {}
    for name, job in jobs.items():
        order = nx.DiGraph()
        order.add_nodes_from(one["task_key"] for one in job["tasks"])
        order.add_edges_from(
            (first["task_key"], one["task_key"])
            for one in job["tasks"]
            for first in one["depends_on"]
        )
        alone = len(job["tasks"]) == 1
        for one in job["tasks"]:
            key = one["task_key"]
            related = nx.ancestors(order, key) | nx.descendants(order, key)
            if one.get("for_each_task", {}).get("concurrency", 1) == 1:
                related |= {key}
            several = job.get("max_concurrent_runs", 1) > 1
            every[name if alone else f"{name}_{key}"] = (
                set() if several else {name if alone else f"{name}_{other}" for other in related}
            )
    assert {*found.jobs} == {*every}
    assert found.apart == {(a, b) for a, others in every.items() for b in others}


WORDS = {
    "one job": (
        {"a": {"tasks": [task("x")]}}, "",
        "No two runs of a overlap (max_concurrent_runs is 1) (databricks.yml).",
    ),
    "runs that overlap": (
        {"a": {"tasks": [task("x"), task("y", "x")], "max_concurrent_runs": 2}, "b": {"tasks": [task("x")]}}, "",
        "Runs of different jobs may overlap, whatever their schedules; no two runs of b overlap (max_concurrent_runs is 1); 2 runs of a may overlap (max_concurrent_runs); in one run a task starts after those that it depends on (databricks.yml).",
    ),
    "a schedule": (
        {"a": {"tasks": [task("x")], "max_concurrent_runs": 2}, "b": {"tasks": [task("x")]}},
        'apart = [["a", "b"]]\none_at_a_time = "a"\nafter = { b = "a" }',
        "Runs of different jobs may overlap, whatever their schedules; no two runs of b overlap (max_concurrent_runs is 1); 2 runs of a may overlap (max_concurrent_runs); no two runs of a overlap; a and b never overlap; b runs after a (databricks.yml; isolitmus.toml:1).",
    ),
    "one at a time": (
        {"a": {"tasks": [task("x")], "max_concurrent_runs": 2}}, 'one_at_a_time = "all"',
        "2 runs of a may overlap (max_concurrent_runs); no two runs of a job overlap (databricks.yml; isolitmus.toml:1).",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_the_assumption_in_words(case, tmp_path):
    jobs, schedule, said = WORDS[case]
    found = workload(str(written(tmp_path, jobs, schedule=schedule)))
    assert found.schedule == said
    assert (("a", "b") in found.apart) == ("apart" in schedule)


def test_a_job_in_the_schedule_stands_for_its_tasks(tmp_path):
    jobs = {"a": {"tasks": [task("x"), task("y")]}, "b": {"tasks": [task("x")]}}
    found = workload(str(written(tmp_path, jobs, schedule='apart = [["a", "b"]]')))
    assert {pair for pair in found.apart if pair[0] != pair[1]} == {
        ("a_x", "b"), ("a_y", "b"), ("b", "a_x"), ("b", "a_y"),
    }  # fmt: skip


SCHEDULES = {
    'apart = [["a", "c"]]': "isolitmus.toml:2: schedule.apart: unknown job 'c'; known: a",
    "maintenance = false": "isolitmus.toml:2: schedule.maintenance is for dbt projects; remove it",
    'target = "p"': "databricks.yml: the bundle has no target 'p'",
    'distinct = ["day"]': "distinct names 'day', but no job has this parameter",
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_a_schedule_that_does_not_fit_is_refused(text, tmp_path):
    with pytest.raises(LitmusError) as found:
        workload(str(written(tmp_path, {"a": {"tasks": [task("x")]}}, schedule=text)))
    said = str(found.value).replace("databricks.yml:1:1", "databricks.yml")
    assert SCHEDULES[text] in said


UNREAD = {
    "a Python file": ({"x": task("x"), "y": {"task_key": "y", "spark_python_task": {"python_file": "a.py"}}}, "Python file"),
    "no notebook": ({"x": task("x"), "y": {"task_key": "y", "notebook_task": {"notebook_path": "n.py"}}}, "'n.py' is no notebook in the source format"),
    "a missing file": ({"x": task("x"), "y": task("y", sql_task={"file": {"path": "b.sql"}})}, "there is no file 'b.sql'"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREAD)
def test_a_task_that_is_not_understood_leaves_the_others_their_answers(case, tmp_path, call):
    tasks, problem = UNREAD[case]
    written(tmp_path, {"j": {"tasks": [*tasks.values()]}})
    (tmp_path / "n.py").write_text("print(1)", "utf-8")
    _, out, err = call("predict", str(tmp_path), "--json")
    found = json.loads(out)
    assert err == ""
    (left,) = found["not_understood"]
    assert left["name"] == "j_y"
    assert left["place"].startswith("databricks.yml:")
    assert problem in left["problem"]
    assert [
        one["word"] for one in found["meetings"] if {one["loser"], one["winner"]} == {"j_x"}
    ] == ["apart"]


def test_jupyter_notebooks_of_a_bundle(tmp_path):
    tasks = [{"task_key": k, "notebook_task": {"notebook_path": f"{k}.ipynb"}} for k in "xyz"]
    written(tmp_path, {"j": {"tasks": tasks}})
    lines = ["%sql\n", "DELETE FROM t;\n", "DELETE FROM nowhere"]
    cells = [{"cell_type": "code", "source": one} for one in (["print(1)"], lines)]
    text = json.dumps({"cells": cells, "metadata": {}}, indent=1)
    (tmp_path / "x.ipynb").write_text(text, "utf-8")
    (tmp_path / "y.ipynb").write_text(text[: len(text) // 2], "utf-8")
    (tmp_path / "z.ipynb").write_text("{}", "utf-8")
    found = workload(str(tmp_path))
    (one,) = found.statements
    assert str(one.location) == "x.ipynb:13:6"
    told = {str(left.place): left.problem for left in found.unread}
    assert told.pop("x.ipynb:14:18").startswith("cell 2: unknown table 'nowhere'")
    assert told.pop("x.ipynb:6:6") == (
        "cell 1: python cell of a notebook; only its SQL cells are understood"
    )
    first, second = told.values()
    assert first.startswith("y.ipynb: not a notebook: not JSON: ")
    assert second == "z.ipynb: not a notebook: it has no list 'cells' (nbformat 4)"


def test_a_bundle_of_which_nothing_is_understood_is_an_error(tmp_path):
    tasks = [{"task_key": "y", "spark_python_task": {"python_file": "a.py"}}]
    written(tmp_path, {"j": {"tasks": tasks}})
    with pytest.raises(
        IsolitmusError, match=r"no task of b is understood; databricks.yml:\d+:\d+: Python file"
    ):
        workload(str(tmp_path))
    written(tmp_path, {"j": {"tasks": [{"task_key": "y", "condition_task": {}}]}})
    with pytest.raises(IsolitmusError, match="no task of b executes SQL"):
        workload(str(tmp_path))


def test_lint_reads_a_bundle_and_its_ignore_comments(tmp_path):
    sql = "-- isolitmus: ignore[ISO201]\nDELETE FROM t"
    written(tmp_path, {"j": {"tasks": [task("x"), task("y")]}}, sql=sql)
    found = read_lint_sources([str(tmp_path)], LintSettings(tmp_path))
    assert [one.name for one in found.workload.statements] == ["j_x", "j_y"]
    assert [str(one.place) for one in found.comments] == ["sql/a.sql:1:4"]


@pytest.mark.slow
def test_lint_of_the_bundle_of_the_documentation(call):
    status, out, _ = call("lint", str(SHOP), "--no-cache", "--json")
    found = json.loads(out)["findings"]
    assert status == 1
    told = {(one["rule"], one["places"][0]["file"].rpartition("bundle/")[2]) for one in found}
    assert ("ISO001", "resources/jobs.yml") in told
    assert ("ISO201", "sql/upsert.sql") in told


PARTS = yaml.safe_load((SHOP / "resources" / "jobs.yml").read_text("utf-8"))
VALUES = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(
    ["", "x", "${var.runs}", [], [1], {}, {"a": 1}, [{}]]
)  # fmt: skip


def places(value, path=()):
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


@given(st.lists(st.tuples(st.sampled_from([*places(PARTS)]), VALUES), min_size=1, max_size=3))
def test_a_mutated_bundle_is_read_or_refused_in_a_sentence(tmp_path_factory, changes):
    made = json.loads(json.dumps(PARTS))
    for path, value in changes:
        at = made
        for key in path[:-1]:
            known = at if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
            at = at[key] if key in known else {}
        if isinstance(at, dict) or (isinstance(at, list) and path[-1] in range(len(at))):
            at[path[-1]] = value
    folder = tmp_path_factory.mktemp("mutated")
    for one in SHOP.rglob("*.*"):
        (folder / one.relative_to(SHOP)).parent.mkdir(exist_ok=True, parents=True)
        (folder / one.relative_to(SHOP)).write_bytes(one.read_bytes())
    (folder / "resources" / "jobs.yml").write_text(yaml.safe_dump(made), "utf-8")
    try:
        found = workload(str(folder))
    except IsolitmusError as error:
        assert "\n\n" not in str(error)
    else:
        assert "overlap" in found.schedule
