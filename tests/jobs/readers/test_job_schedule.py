"""What may overlap is read from [schedule], and applied to the jobs of a project."""

import pytest

from isolitmus.jobs.readers.job_schedule import JobSchedule, find_job_schedule, read_job_schedule
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import LitmusError
from isolitmus.specs.files.toml_reader import Source

BEFORE = {"a": (), "b": ("a",), "c": ("a", "b")}


def read(text):
    return read_job_schedule(
        Source("isolitmus.toml", f"[schedule]\n{text}").node().inner("schedule")
    )


PAIRS = {
    "": set(),
    'one_at_a_time = ["a"]': {("a", "a")},
    'one_at_a_time = "b"': {("b", "b")},
    'one_at_a_time = "all"': {(x, y) for x in "abc" for y in "abc"},
    'apart = [["a", "c"]]': {("a", "c"), ("c", "a")},
    'after = { c = "a" }': {("a", "a"), ("c", "c"), ("a", "c"), ("c", "a")},
    'after = { c = ["b"] }': {("b", "b"), ("c", "c"), ("b", "c"), ("c", "b")},
}


@pytest.mark.parametrize("text", PAIRS)
def test_pairs_that_never_overlap(text):
    assert set(read(text).pairs(BEFORE)) == PAIRS[text]


def test_with_one_thread_no_two_models_overlap():
    text = 'one_at_a_time = "all"\nthreads = 1'
    assert set(read(text).pairs({"a": (), "b": ()})) == {(x, y) for x in "ab" for y in "ab"}
    assert str(read(text)).startswith(
        "No two invocations overlap; each runs one model after another;"
    )
    assert set(read("threads = 1").pairs({"a": (), "b": ()})) == set()


def test_models_of_one_invocation_overlap_if_neither_depends_on_the_other():
    found = set(read('one_at_a_time = "all"').pairs({"a": (), "b": ()}))
    assert found == {("a", "a"), ("b", "b")}


WORDS = {
    "": "Two invocations may overlap; OPTIMIZE of each table runs at any time; no invocation uses --full-refresh (isolitmus.toml:1).",
    'one_at_a_time = "all"\nmaintenance = false': "No two invocations overlap; in one, models overlap if neither depends on the other; no maintenance runs meanwhile; no invocation uses --full-refresh (isolitmus.toml:1).",
    'one_at_a_time = ["a", "b"]\nmaintenance = "VACUUM t"\nfull_refresh = true': "Two invocations may overlap, but no two runs of a or b; maintenance runs at any time; an invocation may use --full-refresh (isolitmus.toml:1).",
    'apart = [["a", "b"]]\nafter = { c = "a" }': "Two invocations may overlap; never at the same time: a and b; c runs after a; OPTIMIZE of each table runs at any time; no invocation uses --full-refresh (isolitmus.toml:1).",
}


@pytest.mark.parametrize("text", WORDS)
def test_the_assumption_in_words(text):
    assert str(read(text)) == WORDS[text]


REFUSED = {
    "one_at_time = true": "isolitmus.toml:2: [schedule] has no key 'one_at_time'; did you mean 'one_at_a_time'?",
    "one_at_a_time = true": 'isolitmus.toml:2: schedule.one_at_a_time is True; write "all" or a list of jobs',
    "one_at_a_time = [3]": 'isolitmus.toml:2: schedule.one_at_a_time is [3]; write "all" or a list of jobs',
    'apart = ["a", "b"]': 'isolitmus.toml:2: schedule.apart has \'a\'; write pairs of jobs: [["a", "b"]]',
    "apart = 3": "isolitmus.toml:2: schedule.apart is 3; expected a list",
    "threads = -1": "isolitmus.toml:2: schedule.threads is -1; write a number from 1",
    "after = { a = 3 }": "isolitmus.toml:2: schedule.after.a is 3; write a job or a list of jobs",
    'after = { a = ["b", "a"] }': "isolitmus.toml:2: schedule.after: a job does not run after itself; write one_at_a_time = ['a'], so that no two of its runs overlap",
    "maintenance = 3": "isolitmus.toml:2: schedule.maintenance is 3; write true, false or a list of statements",
    'full_refresh = "yes"': "isolitmus.toml:2: schedule.full_refresh is 'yes'; expected true or false",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(text):
    with pytest.raises(LitmusError) as found:
        read(text)
    assert str(found.value) == REFUSED[text]


@pytest.mark.parametrize(
    "text", ['one_at_a_time = ["d"]', 'apart = [["a", "d"]]', 'after = { d = "a" }']
)
def test_an_unknown_job_is_refused(text):
    with pytest.raises(LitmusError, match=r"isolitmus.toml:2: schedule.\w+: unknown job 'd'"):
        read(text).check_jobs(BEFORE)
    read('one_at_a_time = "all"').check_jobs(BEFORE)


def test_the_files_that_have_a_schedule(tmp_path):
    assert find_job_schedule(tmp_path) == JobSchedule()
    (tmp_path / "pyproject.toml").write_text(
        "[tool.isolitmus.schedule]\nmaintenance = false\n", "utf-8"
    )
    assert find_job_schedule(tmp_path).maintenance is False
    (tmp_path / "isolitmus.toml").write_text("[schedule]\nfull_refresh = true\n", "utf-8")
    assert find_job_schedule(tmp_path).full_refresh
    (tmp_path / "isolitmus.toml").write_text("title = 'x'\n", "utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool]\nisolitmus = 3\n", "utf-8")
    assert find_job_schedule(tmp_path) == JobSchedule()


SETTINGS = """
[schedule]
apart = [["load", "load"]]

[invariants]
one = "t: unique(id)"
"""


def jobs(folder):
    folder.mkdir()
    create = "CREATE TABLE t (id INT, day DATE) USING delta;"
    (folder / "load.sql").write_text(f"{create}\nINSERT INTO t SELECT id, day FROM s", "utf-8")
    return folder


@pytest.mark.parametrize("place", ["jobs", "."])
def test_a_folder_of_sql_has_the_schedule_and_the_invariants_of_its_settings(
    place, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    folder = jobs(tmp_path / "jobs")
    assert workload(str(folder)).apart == frozenset()
    (tmp_path / place / "isolitmus.toml").write_text(SETTINGS, "utf-8")
    found = workload(str(folder))
    assert found.apart == {("load", "load")}
    assert [one.name for one in found.invariants] == ["one"]
    assert "Never at the same time: two runs of load." in found.assumptions


def test_settings_of_an_unrelated_folder_do_not_count(tmp_path, monkeypatch):
    folder = jobs(tmp_path / "jobs")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "isolitmus.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(tmp_path / "other")
    assert workload(str(folder)).apart == frozenset()


def test_a_job_that_a_schedule_of_its_folder_names_has_to_exist(tmp_path):
    folder = jobs(tmp_path / "jobs")
    (folder / "isolitmus.toml").write_text('schedule.apart = [["lod", "load"]]', "utf-8")
    with pytest.raises(LitmusError, match=r"isolitmus.toml:1: schedule.apart: unknown job 'lod'"):
        workload(str(folder))
