"""Parameters that are NULL: what only they change is told apart, and what rules them out."""

from __future__ import annotations

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.lint.linter import lint_workload
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.lint_settings import LintSettings
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.prediction import meeting_words, pair_sign
from isolitmus.jobs.robust.repairs import find_repairs
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.model.errors import LitmusError
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import level, protocol

SERIALIZABLE = protocol("delta-serializable")
WRITE_SERIALIZABLE = protocol("delta-write-serializable")
INSERT = "INSERT INTO t VALUES (:id, :p, 5)"
UPSERT = (
    "MERGE INTO t USING (SELECT :id AS id, :p AS part) AS s ON t.id = s.id AND t.part = s.part"
    " WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.id, s.part, 1)"
)
IS_NULL = "DELETE FROM t WHERE part IS NULL"


def jobs(*statements, column="part INT", types="INT", more=""):
    """A workload of statements on a table that is partitioned by part."""
    text = f'ddl = "CREATE TABLE t (id INT, {column}, x INT) USING delta PARTITIONED BY (part)"\n'
    for k, sql in enumerate(statements):
        given = ", ".join(f'{p} = "{types}"' for p in ("id", "p", "q") if f":{p}" in sql)
        text += f'[jobs.j{k}]\nsql = "{sql}"\nparameters = {{ {given} }}\n'
    return read_workload(text + more, "nulls")


def pair(work, loser="j0", winner="j1"):
    """The prediction of two statements."""
    found = predict_workload(work, SERIALIZABLE, processes=1).meetings
    return next(one for one in found if (one.loser, one.winner) == (loser, winner))


@pytest.mark.slow
@pytest.mark.parametrize("winner", [INSERT, UPSERT])
def test_never_unless_a_parameter_is_null(winner):
    found = pair(jobs(IS_NULL, winner))
    assert (found.word, found.condition) == ("when", ("j1's :p is NULL",))
    assert (found.unless, found.not_null.word) == (("j1's :p",), "never")
    assert pair_sign(found) == ".n"
    assert "never aborts if j1 commits" in meeting_words(found)
    assert "unless j1's :p is NULL: then it always aborts" in meeting_words(found)
    (test,) = found.examples.values()
    assert "NULL AS INT" in str(test)
    document = found.to_json()
    assert document["not_null"] == {"word": "never", "condition": [], "certain": False}
    assert document["unless"] == ["j1's :p"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"types": "INT NOT NULL"},
        {"types": "int not  null"},
        {"column": "part INT NOT NULL"},
        {"column": "part INT NOT NULL PRIMARY KEY"},
        {"more": '[invariants]\nknown = "not null(part)"\n'},
    ],
)
@pytest.mark.parametrize("winner", [INSERT, UPSERT])
def test_what_is_known_not_to_be_null_settles_it(winner, more):
    found = pair(jobs(IS_NULL, winner, **more))
    assert (found.word, found.not_null) == ("never", None)


def test_a_condition_of_the_job_settles_it():
    text = 'where = "p > 0"\n'
    found = pair(jobs(IS_NULL, INSERT, more=text))
    assert (found.word, found.not_null) == ("never", None)


def test_a_column_of_which_a_job_drops_not_null_settles_nothing():
    drop = "ALTER TABLE t ALTER COLUMN part DROP NOT NULL"
    found = pair(jobs(IS_NULL, INSERT, drop, column="part INT NOT NULL"))
    assert found.not_null.word == "never"


def test_an_invariant_that_settles_it_is_an_assumption():
    work = jobs(IS_NULL, INSERT, more='[invariants]\nknown = "not null(part)"\n')
    (said,) = predict_workload(work, SERIALIZABLE).assumptions
    assert said == "j1's :p is not NULL: known says that t.part, where it is stored, has no NULL."


def test_sql_files_declare_it(tmp_path):
    (tmp_path / "t.ddl").write_text("CREATE TABLE t (id INT, part INT, x INT) USING delta"
                                    " PARTITIONED BY (part)", "utf-8")  # fmt: skip
    (tmp_path / "j0.sql").write_text(IS_NULL, "utf-8")
    for declared, word in (("INT NOT NULL", "never"), ("INT", "when")):
        (tmp_path / "j1.sql").write_text(f"-- :p {declared}\n{INSERT}", "utf-8")
        files = [str(tmp_path / name) for name in ("j0.sql", "j1.sql")]
        assert pair(workload(*files, ddl=tmp_path / "t.ddl")).word == word


def test_a_type_is_still_refused():
    with pytest.raises(LitmusError, match="unknown type 'INTT NOT NULL'"):
        jobs(IS_NULL, INSERT, types="INTT NOT NULL")


def test_always_unless_null():
    """A condition that is always true, but of NULL."""
    found = pair(jobs("UPDATE t SET x = 1 WHERE :p = :p OR part IS NOT NULL", INSERT))
    assert found.word != "always"
    assert found.not_null == ("always", (), True)
    assert "always aborts" in meeting_words(found)
    assert "unless j1's :p is NULL" in meeting_words(found)


def test_where_it_is_the_same_with_null_nothing_is_said():
    found = pair(jobs("DELETE FROM t WHERE part = :p", INSERT))
    assert (found.word, found.condition) == ("when", ("both have the same :p",))
    assert (found.unless, found.not_null) == ((), None)


def test_promises():
    found = decide_robustness(jobs(IS_NULL, INSERT), WRITE_SERIALIZABLE, "log-serializable")
    assert (found.word, found.verdict, found.not_null) == ("unsafe", "safe unless NULL", "safe")
    assert found.worst.nulls == ("j1's :p",)
    assert (found.to_json()["word"], found.to_json()["not_null"]) == ("unsafe", "safe")
    judged = run(found.worst.test, WRITE_SERIALIZABLE)
    assert isinstance(judged.verdict(level("log-serializable")), Forbidden)
    declared = jobs(IS_NULL, INSERT, types="INT NOT NULL")
    assert decide_robustness(declared, WRITE_SERIALIZABLE, "log-serializable").word == "safe"


@pytest.mark.slow
def test_repairs_of_what_only_null_violates():
    found = decide_robustness(jobs(IS_NULL, INSERT), WRITE_SERIALIZABLE, "log-serializable")
    assert "delta-serializable" in {one.protocol for one in find_repairs(found, found.protocol)}


INVARIANTS = """[invariants]
known = "not null(part)"
one_each = "count per part <= 1"
"""


def test_invariants():
    guarded = "INSERT INTO t SELECT :id, :p, 1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE part = :p)"
    work = jobs(guarded.replace("= :p)", "= :p AND id >= -2147483648)"), more=INVARIANTS)
    found = {one.invariant.name: one for one in decide_invariants(work, [SERIALIZABLE])}
    assert (found["known"].word, found["known"].not_null) == ("broken", "kept")
    assert "NULL AS INT" in str(found["known"].violation.test)
    declared = jobs(INSERT, types="INT NOT NULL", more=INVARIANTS)
    found = {one.invariant.name: one for one in decide_invariants(declared, [SERIALIZABLE])}
    assert (found["known"].word, found["known"].not_null) == ("kept", None)
    assert (found["one_each"].word, found["one_each"].not_null) == ("broken", None)
    assert "NULL" not in str(found["one_each"].violation.test)


CASE = "DELETE FROM t WHERE part = CASE WHEN :q >= 0 THEN 1 WHEN :q < 0 THEN 2 ELSE 3 END"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loser", "code"), [(CASE, "ISO304"), (CASE.replace("part =", "part <=> NULL OR part ="), None)]
)
def test_lint_has_a_note(loser, code, tmp_path):
    work = jobs(loser, "INSERT INTO t VALUES (1, 3, 5)")
    found = lint_workload(work, SERIALIZABLE, LintSettings(tmp_path)).findings
    codes = {one.code: one for one in found if {site.name for site in one.sites} == {"j0", "j1"}}
    if code is not None:
        assert codes.keys() & {"ISO201", "ISO202", "ISO304"} == {code}
        assert codes[code].rule.severity == "note"
    else:
        assert "ISO304" not in codes
