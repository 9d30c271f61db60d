"""Bundles are read with their variables and targets; what is wrong is refused with its place."""

from pathlib import Path

import pytest

from isolitmus.jobs.projects.databricks_bundle import read_bundle
from isolitmus.jobs.projects.project_files import find_bundle
from isolitmus.model.errors import LitmusError

SHOP = Path(__file__).parents[2] / "data" / "bundle"
TASK = "{task_key: a, sql_task: {file: {path: a.sql}}}"


def bundle(folder, text, name="databricks.yml", target="", **files):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    (folder / "a.sql").write_text("DELETE FROM t", "utf-8")
    for file, inner in files.items():
        (folder / f"{file}.yml").write_text(inner, "utf-8")
    return read_bundle(find_bundle(folder), target)


def job(more="", tasks=f"[{TASK}]"):
    return f"resources:\n  jobs:\n    j:\n      tasks: {tasks}\n{more}"


def test_the_bundle_of_the_documentation():
    found = read_bundle(SHOP / "databricks.yml")
    assert (found.name, found.target) == ("orders", "prod")
    load, corrections, maintain = found.jobs
    assert (load.runs, corrections.runs, maintain.runs) == (3, 1, 1)
    assert corrections.paused
    assert corrections.started == "by '0 0 2 * * ?' (UTC)"
    assert load.started == "by a trigger"
    upsert, report, export = corrections.tasks
    assert [one.name for one in corrections.tasks] == [
        "corrections_upsert", "corrections_report", "corrections_export",
    ]  # fmt: skip
    assert (upsert.after, report.after) == (frozenset(), {"corrections_upsert"})
    assert export.after == {"corrections_upsert", "corrections_report"}
    assert str(export.location) == "resources/jobs.yml:37:13"
    assert upsert.retries == 2
    assert export.problem.startswith("Python file")
    assert [one.name for one in maintain.tasks] == ["maintain"]


def test_a_target_that_is_named():
    found = read_bundle(SHOP / "databricks.yml", "dev")
    assert [one.runs for one in found.jobs] == [1, 1, 1]
    assert not found.jobs[1].paused
    with pytest.raises(LitmusError) as error:
        read_bundle(SHOP / "databricks.yml", "pord")
    assert str(error.value) == (
        "databricks.yml:15:3: the bundle has no target 'pord'; did you mean 'prod'?"
    )


TARGETS = {
    "targets: {a: {}, b: {default: true}}": ("b", ""),
    "targets: {a: null}": ("a", ""),
    "targets: {a: {}, b: {}}": ("", "No target of a and b is chosen"),
    "targets: {a: {mode: development, default: true}}": ("a", "has the mode development"),
    "targets: {a: {mode: production}, b: {mode: production, default: true}}": ("b", ""),
}


@pytest.mark.parametrize("text", TARGETS)
def test_the_target_that_is_chosen(text, tmp_path):
    found = bundle(tmp_path, job(text))
    target, told = TARGETS[text]
    assert found.target == target
    assert told in " ".join(found.assumptions)
    assert bool(told) == bool(found.assumptions)


def test_tasks_of_a_target_are_merged_by_their_key(tmp_path):
    more = (
        "targets:\n  p:\n    resources:\n      jobs:\n        j:\n          tasks:\n"
        "            - {task_key: a, max_retries: 2}\n"
        "            - {task_key: b, depends_on: [{task_key: a}], condition_task: {op: EQUAL_TO}}\n"
    )
    a, b = bundle(tmp_path, job(more)).jobs[0].tasks
    assert (a.retries, a.path, b.after) == (2, tmp_path / "a.sql", {"j_a"})
    assert (b.path, b.problem) == (None, "")


def test_included_files_and_variables(tmp_path):
    text = "bundle: {name: x}\ninclude: ['*.yml']\nvariables: {n: {default: 2}, m: {default: '${var.n}'}}"
    found = bundle(tmp_path, text, one=job("      max_concurrent_runs: ${var.m}\n"))
    assert (found.name, found.jobs[0].runs) == ("x", 2)
    assert str(found.jobs[0].location) == "one.yml:4:7"


@pytest.mark.parametrize("name", ["jobs.yml", "resources/j.yml", "databricks.yaml"])
def test_files_without_a_root_file(name, tmp_path):
    (tmp_path / "other.yml").write_text("x: 1", "utf-8")
    assert [one.name for one in bundle(tmp_path, job(), name).jobs] == ["j"]


def test_a_folder_that_is_no_bundle(tmp_path):
    assert find_bundle(tmp_path) is None
    (tmp_path / "jobs.yml").write_text("jobs: {a: 1}", "utf-8")
    assert find_bundle(tmp_path) is None
    assert find_bundle(tmp_path / "none.yml") is None


SCHEDULES = {
    "": (1, "", False),
    "      max_concurrent_runs: 4\n": (4, "", False),
    "      max_concurrent_runs: 4\n      continuous: {pause_status: PAUSED}\n": (
        1,
        "continuously",
        True,
    ),
    "      trigger: {periodic: {interval: 1, unit: HOURS}}\n": (1, "by a trigger", False),
    "      queue: {enabled: true}\n": (1, "", False),
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_runs_and_starts_of_a_job(text, tmp_path):
    (found,) = bundle(tmp_path, job(text)).jobs
    assert (found.runs, found.started, found.paused) == SCHEDULES[text]
    assert found.queued == ("queue" in text)


EXECUTED = {
    "{task_key: a, sql_task: {file: {path: ./a.sql}}}": "",
    "{task_key: a, sql_task: {file: {path: '${workspace.file_path}/a.sql'}}}": "",
    "{task_key: a, sql_task: {file: {path: '${workspace.root_path}/files/a.sql'}}}": "",
    "{task_key: a, for_each_task: {inputs: '[1]', task: {task_key: b, sql_task: {file: {path: a.sql}}}}}": "",
    "{task_key: a, run_job_task: {job_id: '${resources.jobs.j.id}'}}": "",
    "{task_key: a, sql_task: {alert: {alert_id: x}}}": "",
    "{task_key: a, sql_task: {query: {query_id: x}}}": "SQL of a saved query; only files are understood",
    "{task_key: a, notebook_task: {notebook_path: a}}": "there is no file 'a'; write 'a.sql'",
    "{task_key: a, sql_task: {file: {path: ../a.sql}}}": "'../a.sql' is outside of the bundle's folder, which is all that is read",
    "{task_key: a, sql_task: {file: {path: /Workspace/a.sql}}}": "'/Workspace/a.sql' is in the workspace; only files of the bundle are read",
    "{task_key: a, sql_task: {file: {path: a.sql, source: GIT}}}": "'a.sql' comes from a Git repository; only files of the bundle are read",
    "{task_key: a, sql_task: {file: {path: '${var.p}/a.sql'}}}": "path '${var.p}/a.sql', whose variable has no value here",
    "{task_key: a, dbt_task: {commands: [dbt run]}}": "dbt task; its models are read if the folder of the dbt project is given",
    "{task_key: a, new_kind_task: {}}": "new_kind_task; only sql_task and notebook_task are understood",
}


@pytest.mark.parametrize("task", EXECUTED)
def test_what_a_task_executes(task, tmp_path):
    ((found,),) = (one.tasks for one in bundle(tmp_path, job(tasks=f"[{task}]")).jobs)
    assert found.problem == EXECUTED[task]
    assert (found.path is not None) == ("a.sql" in task and not found.problem)


def test_what_is_not_read_of_a_bundle_is_told(tmp_path):
    text = job(
        "  pipelines: {p: {name: p}}\npython: {resources: [x]}\n",
        "[{task_key: a, run_job_task: {job_id: 7}}]",
    )
    assert bundle(tmp_path, text).assumptions == (
        "The job that the task a starts is not one of the bundle.",
        "p (pipelines) writes to no table of the jobs.",
        "Jobs that Python code of the bundle defines are not read.",
    )


def test_names_of_tasks_are_unique(tmp_path):
    two = f"[{TASK}, {TASK.replace('key: a', 'key: b-c')}]"
    text = job(f"    j_a:\n      tasks: [{TASK}]\n    j-a:\n      tasks: [{TASK}]\n", two)
    found = bundle(tmp_path, text)
    assert [task.name for one in found.jobs for task in one.tasks] == [
        "j_a",
        "j_b_c",
        "j_a_2",
        "j_a_3",
    ]


REFUSED = {
    "no jobs": ("bundle: {name: x}", "databricks.yml:1:1: the bundle has no jobs; expected"),
    "a list": ("- a", "databricks.yml:1:1: the document is a list; expected a mapping"),
    "a job that is a list": ("resources: {jobs: {j: [1]}}", "databricks.yml:1:23: the job j is a list; expected a mapping"),
    "jobs that are a list": ("resources: {jobs: [1]}", "databricks.yml:1:19: jobs is a list; expected a mapping"),
    "no tasks": ("resources: {jobs: {j: {}}}", "databricks.yml:1:23: the job j has no tasks; expected a list"),
    "tasks that are no list": (job(tasks="x"), "databricks.yml:4:14: tasks is 'x'; expected a list"),
    "a task that is no mapping": (job(tasks="[x]"), "databricks.yml:4:15: a task of the job j is 'x'; expected a mapping"),
    "no key": (job(tasks="[{sql_task: {}}]"), "databricks.yml:4:15: a task of the job j needs task_key (a string)"),
    "two of a key": (job(tasks=f"[{TASK}, {TASK}]"), "databricks.yml:4:63: the job j has two tasks a"),
    "no kind": (job(tasks="[{task_key: a}]"), "databricks.yml:4:15: the task a has none; expected one of"),
    "two kinds": (job(tasks="[{task_key: a, sql_task: {}, dbt_task: {}}]"), "the task a has sql_task and dbt_task; expected one of"),
    "no file": (job(tasks="[{task_key: a, sql_task: {}}]"), "databricks.yml:4:39: sql_task needs file, query"),
    "no path": (job(tasks="[{task_key: a, sql_task: {file: {}}}]"), "sql_task of a needs path (a string)"),
    "an unknown task": (
        job(tasks="[{task_key: abc, depends_on: [{task_key: abd}], dbt_task: {}}]"),
        "databricks.yml:4:44: abc depends on the unknown task 'abd'; did you mean 'abc'?",
    ),
    "depends_on of names": (
        job(tasks="[{task_key: a, depends_on: [b], dbt_task: {}}]"),
        "databricks.yml:4:42: depends_on has 'b'; expected - task_key: NAME",
    ),
    "a cycle": (
        job(tasks="[{task_key: a, depends_on: [{task_key: a}], dbt_task: {}}]"),
        "tasks of the job j depend on each other in a cycle: a → a",
    ),
    "runs": (job("      max_concurrent_runs: many\n"), "databricks.yml:5:28: max_concurrent_runs is 'many'; expected a number"),
    "negative runs": (job("      max_concurrent_runs: -1\n"), "max_concurrent_runs of the job j is -1; expected 0 or more"),
    "runs of a variable": (
        job("      max_concurrent_runs: ${var.n}\n"),
        "databricks.yml:5:28: max_concurrent_runs is '${var.n}', which has no value here; give it a default",
    ),
    "a cycle of variables": (
        job("      max_concurrent_runs: ${var.n}\nvariables: {n: {default: '${var.n}'}}"),
        "the variables of '${var.n}' refer to each other in a cycle",
    ),
    "a schedule": (job("      schedule: {timezone_id: UTC}\n"), "databricks.yml:5:17: schedule needs quartz_cron_expression"),
    "an include": (job("include: [/x/*.yml]"), "databricks.yml:5:11: include has '/x/*.yml'; write a pattern relative to databricks.yml"),
    "one job twice": (job("include: ['*.yml']"), "j of jobs is defined twice, here and in databricks.yml:4:7"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(case, tmp_path):
    text, problem = REFUSED[case]
    with pytest.raises(LitmusError) as found:
        bundle(tmp_path, text, other=job())
    assert problem in str(found.value)
    assert str(found.value).startswith(("databricks.yml:", "other.yml:4:7"))
