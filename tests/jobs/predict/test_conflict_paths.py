"""Handlers of conflicts that no run executes, because their statement never aborts."""

from types import SimpleNamespace

import pytest

from isolitmus.cli.main import main
from isolitmus.jobs.cli import predict
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.jobs.readers.function_targets import FunctionTarget
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.model.errors import LitmusError

DDL = """
CREATE TABLE t (id BIGINT, n BIGINT, day DATE) USING delta PARTITIONED BY (day);
CREATE TABLE s (id BIGINT, day DATE) USING delta;
"""
FILE = "def load(spark):\n" + "    change('t', 's')\n" * 9
SERIALIZABLE, WRITE = "delta-serializable", "delta-write-serializable"


def statement(line, sql):
    return {"kind": "statement", "line": line, "sql": sql}


def aborted(line):
    return {"kind": "aborted", "line": line, "problem": "ConcurrentAppendException"}


APPEND = statement(2, "INSERT INTO t VALUES (1, 7, DATE '2026-01-01')")
OF_T = statement(2, "INSERT INTO t SELECT id + 1, n, day FROM t WHERE n > 3")
NULL = statement(4, "INSERT INTO t VALUES (1, NULL, DATE '2026-01-01')")
GAP = {"kind": "gap", "line": 4, "problem": "a pipe is not understood"}
RAISED = {"kind": "raised", "line": 4, "problem": "it raised KeyError: x."}


@pytest.fixture
def function(tmp_path):
    """function(steps of a path, …, beside={file: SQL}): a workload with its paths."""
    (tmp_path / "ddl.sql").write_text(DDL)

    def build(*paths, beside=None, **more):
        files = []
        for name, sql in (beside or {}).items():
            files.append(str(tmp_path / f"{name}.sql"))
            (tmp_path / f"{name}.sql").write_text(sql)
        target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)
        records = FunctionRecord.of_paths(target, paths, **more)
        return workload(*files, ddl=tmp_path / "ddl.sql", run=lambda _: records)

    return build


def answer(work, level=SERIALIZABLE, keeps="not null(n)"):
    asked = read_invariant(keeps, work.tables, ("t",), "here")
    (found,) = decide_invariants(work, [level], [asked])
    return found


SENTENCE = (
    "load: no handler runs for a conflict in job.py:2, because the INSERT there never aborts"
    f" (proved under {SERIALIZABLE})."
)


def test_the_handler_of_a_statement_that_never_aborts_breaks_nothing(function):
    work = function([APPEND], [aborted(2), NULL], beside={"more": "DELETE FROM t WHERE id = :id"})
    assert [*work.jobs] == ["more", "load", "load_path2"]
    found = answer(work)
    assert found.word == "kept"
    assert SENTENCE in found.assumptions
    assert [*found.workload.jobs] == [*work.jobs]  # a repair starts with all paths
    safe, *_ = decide_all(work, [SERIALIZABLE], ["write-serializable"])
    assert SENTENCE in safe.assumptions


@pytest.mark.parametrize(
    "beside",
    [
        {"more": "INSERT INTO t SELECT id, n, day FROM t WHERE n > 9"},  # it aborts, not this one
        {"more": "OPTIMIZE t"},
        {"more": "UPDATE t SET n = n + 1 WHERE id = :id"},
    ],
)
def test_an_append_aborts_beside_no_change_of_rows(function, beside):
    assert answer(function([APPEND], [aborted(2), NULL], beside=beside)).word == "kept"


@pytest.mark.parametrize(
    "beside",
    [
        {"more": "ALTER TABLE t ADD COLUMN extra BIGINT"},  # MetadataChangedException
        {"more": "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'false')"},
    ],
)
def test_a_change_of_the_table_is_a_conflict(function, beside):
    found = answer(function([APPEND], [aborted(2), NULL], beside=beside))
    assert found.word == "unknown"
    assert not any("no handler runs" in one for one in found.assumptions)


def test_what_is_not_understood_may_conflict(function):
    about_t = GAP | {"line": 3, "tables": ["t"]}
    found = answer(function([APPEND, about_t], [aborted(2), NULL]))
    assert not any("no handler runs" in one for one in found.assumptions)


@pytest.mark.slow
def test_the_level_decides(function):
    """An INSERT that reads its table aborts beside an append at Serializable only."""
    work = function(
        [OF_T], [aborted(2), NULL], beside={"more": "INSERT INTO t VALUES (1, 9, NULL)"}
    )
    words = [answer(work, level).word for level in (SERIALIZABLE, WRITE)]
    assert words[0] == "unknown"
    others = [
        [*decide_all(work, [level], ["write-serializable"])] for level in (WRITE, SERIALIZABLE)
    ]
    both = [*decide_all(work, [WRITE, SERIALIZABLE], ["write-serializable"])]
    assert [one.word for one in both] == [one.word for (one,) in others]
    assert both[0].assumptions == others[0][0].assumptions


def test_a_handler_that_makes_its_own_statement_abort_does_not_run_first(function):
    """The UPDATE of the handler would conflict, but nothing conflicts before it."""
    alone = statement(2, "INSERT INTO t SELECT id + 1, n, day FROM t WHERE day = DATE '2026-01-01'")
    fix = statement(4, "UPDATE t SET n = NULL WHERE day = DATE '2026-01-01'")
    apart = {"more": "DELETE FROM t WHERE day = DATE '2026-02-01'"}
    path = [aborted(2), fix]
    assert answer(function([APPEND], path, beside=apart)).word == "kept"
    assert answer(function([alone], path, beside=apart)).word == "unknown"  # beside itself


def test_predict_shows_no_handler_that_never_runs(function, monkeypatch, capsys):
    work = function([APPEND], [aborted(2), NULL])
    chosen = SimpleNamespace(workload=work, functions=(), lines=lambda: ())
    monkeypatch.setattr(predict, "choose_workload", lambda *_: chosen)
    assert work.jobs.keys() == {"load", "load_path2"}
    monkeypatch.setattr("sys.argv", ["isolitmus", "predict", "load.sql"])
    with pytest.raises(SystemExit, match="0"):
        main()
    said = " ".join(capsys.readouterr().out.split())
    assert "load_path2" not in said
    assert SENTENCE.partition(" (")[0] in said


def test_a_handler_of_a_handler(function):
    """The second handler runs only after the first: an UPDATE that meets itself."""
    update = statement(2, "UPDATE t SET n = 2 WHERE id = 1")
    second = statement(4, "INSERT INTO t VALUES (1, 5, DATE '2026-01-01')")
    last = statement(6, "INSERT INTO t VALUES (1, NULL, DATE '2026-01-01')")
    paths = [update], [aborted(2), second], [aborted(2), aborted(4), last]
    found = answer(function(*paths))
    assert found.word == "kept"
    assert any("a conflict in job.py:4" in one for one in found.assumptions)
    assert not any("a conflict in job.py:2" in one for one in found.assumptions)


def test_all_that_a_line_executes_counts(function):
    other = statement(2, "UPDATE t SET n = 2 WHERE id = 1")
    assert answer(function([APPEND, other], [APPEND, aborted(2), NULL])).word == "unknown"
    nothing = [aborted(2), NULL]  # nothing tells what aborted
    assert answer(function([statement(3, APPEND["sql"])], nothing)).word == "unknown"
    gap = GAP | {"line": 2, "tables": ["s"]}
    assert answer(function([APPEND, gap], nothing)).word == "unknown"


def test_what_is_not_understood_of_a_handler_that_never_runs(function):
    for step in (GAP, RAISED):
        work = function([APPEND], [aborted(2), step])
        assert len(work.unread) == 1
        assert answer(work).word == "kept"
        assert answer(function([OF_T], [aborted(2), step])).word == "unknown"


def test_what_is_not_understood_of_another_path_stays(function):
    later = [APPEND, GAP], [aborted(2), GAP, NULL]
    assert answer(function(*later)).word == "unknown"
    assert answer(function(*later[::-1])).word == "unknown"
    update = statement(3, "UPDATE t SET n = 2 WHERE id = 1")
    paths = [APPEND, update], [aborted(2), GAP, NULL], [APPEND, aborted(3), GAP]
    work = function(*paths)
    assert [one.name for one in work.unread] == ["load_line4", "load_line4_"]
    assert answer(work).word == "unknown"


def test_paths_that_were_not_taken_stay(function):
    work = function([APPEND], [aborted(2), NULL], more=True)
    assert answer(work).word == "unknown"
    work = function([APPEND], [aborted(2), NULL], failure=LitmusError("job.py:1: it ended"))
    assert answer(work).word == "unknown"


def test_a_path_after_another_conflict_does_not_stand_for_one(function):
    """Both paths do the same; the first follows an append, the second an UPDATE."""
    update = statement(3, "UPDATE t SET n = 2 WHERE id = 1")
    paths = [update, APPEND], [update, aborted(2), NULL], [aborted(3), update, NULL]
    work = function(*paths)
    assert [*work.jobs] == ["load", "load_path2", "load_path3"]
    assert answer(work).word == "unknown"
