"""isolitmus as a library: defaults of its functions, and what they say of wrong arguments."""

import pytest

import isolitmus
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.model.errors import IsolitmusError

TEXT = """
ddl   = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"
level = "WriteSerializable"
[jobs.ingest]
sql = "INSERT INTO t VALUES (:id, :day)"
[jobs.cleanup]
sql = "DELETE FROM t WHERE day = :day"
[invariants]
one_row = "unique(id)"
"""


@pytest.fixture
def jobs():
    return read_workload(TEXT, "jobs")


def words(prediction):
    return {(one.loser, one.winner): one.word for one in prediction.meetings}


def test_jobs_are_predicted_at_the_level_of_their_table_unless_another_is_named(jobs):
    default = isolitmus.predict(jobs)
    named = isolitmus.predict(jobs, "WriteSerializable")
    other = isolitmus.predict(jobs, "delta-serializable")
    assert words(default) == words(named)
    assert words(default)["cleanup", "ingest"] == "never"
    assert words(other)["cleanup", "ingest"] == "when"


def test_jobs_are_decided_at_each_level_with_the_invariants_of_both(jobs):
    answers = isolitmus.robust(jobs, promises=["log-serializable"], keeps=["not null(day)"])
    assert [str(answer).partition(":")[0] for answer in answers] == [
        "log-serializable under delta-serializable",
        "log-serializable under delta-write-serializable",
        "one_row under delta-serializable",
        "not null(day) under delta-serializable",
        "one_row under delta-write-serializable",
        "not null(day) under delta-write-serializable",
    ]
    assert [answer.word for answer in answers[:2]] == ["safe", "unsafe"]
    assert answers[2].word == "broken"


def test_a_folder_is_linted_with_its_settings(tmp_path):
    (tmp_path / "tables.sql").write_text("CREATE TABLE t (id INT) USING delta;")
    (tmp_path / "a.sql").write_text("DELETE FROM t WHERE id = :id")
    (tmp_path / "isolitmus.toml").write_text("ignore = ['ISO2']\n")
    assert {one.code for one in isolitmus.lint([tmp_path]).findings} == set()
    (tmp_path / "isolitmus.toml").unlink()
    assert "ISO201" in {one.code for one in isolitmus.lint([tmp_path]).findings}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: isolitmus.predict("shop", "Strict"), "unknown level 'Strict'; give Serializable"),
        (lambda: isolitmus.predict("shpo"), "unknown workload 'shpo'; did you mean 'shop'"),
        (lambda: isolitmus.robust("shop", promises=["x"]), "unknown promise 'x'"),
        (lambda: isolitmus.robust("shop", keeps=["uniq(id)"]), "invariant"),
        (lambda: isolitmus.matrix("pair"), "unknown matrix 'pair'; did you mean 'pairs'"),
        (lambda: next(isolitmus.verify_claims(["D999"])), "unknown claim 'D999'"),
        (lambda: isolitmus.install("dleta"), "did you mean 'delta'"),
        (lambda: isolitmus.report("nowhere"), "nowhere: no tables of a sweep"),
    ],
)
def test_a_wrong_argument_is_one_sentence(call, says):
    with pytest.raises(IsolitmusError, match=says):
        call()


def test_lint_without_a_path_says_where_paths_may_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsolitmusError, match="no path to lint; name a folder"):
        isolitmus.lint()


def test_a_wrong_setting_has_its_place(tmp_path):
    (tmp_path / "tables.sql").write_text("CREATE TABLE t (id INT) USING delta;")
    (tmp_path / "isolitmus.toml").write_text("strict = true\nlevel = 'Strict'\n")
    with pytest.raises(IsolitmusError, match=r"isolitmus.toml:2.*: unknown level 'Strict'"):
        isolitmus.lint([tmp_path])
