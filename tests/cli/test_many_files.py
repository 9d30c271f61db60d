"""``isolitmus run`` on many files: what cannot be read or carried out is passed over and told, and
no result is lost. The engine here is the model behind a thin mask, which fails, ends, lies or is
slow where a test says so.
"""

import json
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

import pytest

import isolitmus.conformance.agreement as on_engine
from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import BESIDE
from isolitmus.conformance import agreement, engines
from isolitmus.conformance.workers import run_together
from isolitmus.model.engine import RunsTests
from isolitmus.model.errors import EngineFailed, EngineUnavailable, Refused, TimeLimit
from isolitmus.model.matrix import MatrixPlace
from isolitmus.model.run import TransactionRun, Wait
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files import catalogue
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.registries import engine_named, format_named

TEXT = litmus("reorder").text
FOREIGN = "[project]\nname = 'x'\n"
UNDER = ("--protocol", "delta-serializable")
ON_DELTA = ("--engine", "delta", *UNDER)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """files(name=text, …): litmus files in the current folder, ``name`` without its ending."""
    monkeypatch.chdir(tmp_path)

    def files(**texts):
        for name, text in texts.items():
            Path(f"{name}.toml").write_text(text)

    return files


@pytest.fixture
def delta(monkeypatch):
    """delta(carry): the engine delta is carry(test, protocol, how often it was started), which may
    ask the model.
    """
    starts = []

    def masked(carry):
        @contextmanager
        def opened(name):
            starts.append(name)
            if carry is None:
                raise EngineUnavailable("there is no Java")
            yield lambda test, spec: carry(test, spec, len(starts))

        monkeypatch.setattr(engines, "open_engine", opened)
        return starts

    return masked


def wait_for(condition, seconds=20):
    for _ in range(seconds * 50):
        if condition():
            return True
        time.sleep(0.02)
    return False


def seen(test, spec, _=None):
    done = run(test, spec).run
    return replace(done, engine="delta", engine_version="mask")


# Files


@pytest.mark.slow
def test_what_cannot_be_read_stops_nothing(files, call):
    wrong = TEXT.replace("schedule", "shedule", 1)
    files(a=TEXT, bad=wrong, broken="a = [", other=wrong, foreign=FOREIGN, z=TEXT)
    status, out, err = call("run", ".", *UNDER)
    assert status == 2
    assert out.count(": passed\n") == 2
    assert out.endswith("2 of 2 runs passed. 1 skipped. 3 not run.\n")
    assert "isolitmus: skipped: foreign.toml: not a litmus test" in err
    assert "did you mean 'schedule'?: bad.toml:4, other.toml:4\n" in err
    assert "isolitmus: broken.toml:1:" in err
    status, out, _ = call("run", ".", *UNDER, "--json")
    document = json.loads(out)
    assert status == 2
    assert [test["litmus"] for test in document["tests"]] == ["a", "z"]
    assert [each["name"] for each in document["refused"]] == ["bad.toml", "broken.toml", "other.toml"]  # fmt: skip
    assert {each["status"] for each in document["refused"]} == {2}
    assert [each["name"] for each in document["left_out"]] == ["foreign.toml"]
    assert document["interrupted"] is False


OPEN = """
title = "Open"
schedule = "a.start b a.commit"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]
[transactions]
a = "DELETE FROM t WHERE CASE WHEN part = 0 THEN id = 1 ELSE FALSE END"
b = "INSERT INTO t VALUES (3, 1)"
"""


def test_files_after_a_limit_are_not_read(call, monkeypatch, tmp_path):
    """Reading counts, of one file and of many; the first is judged, or said to be unread."""
    one = tmp_path / "one.edn"
    one.write_text("{:index 0, :type :ok, :process 0, :value [[:append 1 1]]}")
    status, out, err = call("check", one, "--time", "0")
    assert (status, out) == (3, "")
    assert err == f"isolitmus: {one}: the time limit of 0 s ended it before it was read\n"
    call("check", "reorder")  # whatever it imports has the function itself
    read = []
    monkeypatch.setattr(catalogue, "litmus", lambda name: read.append(name) or litmus(name))
    status, out, err = call("check", "reorder", "hole-partitioned", "two-properties", "--time", "0")
    assert (status, len(read)) == (3, 1)
    assert out.startswith("reorder: ")
    assert "allowed" not in out
    assert "the time limit of 0 s ended it: " in err


def test_what_is_up_to_an_optimizer_is_undecided_and_stops_nothing(files, call):
    files(a=TEXT, open=OPEN)
    status, out, err = call("run", ".", *UNDER)
    assert status == 3
    assert out.endswith("1 of 1 run passed. 1 undecided: several runs are possible.\n")
    assert "is up to what Spark's optimizer makes of" in out
    assert not err


@pytest.mark.slow
def test_a_file_that_is_no_litmus_test_is_left_out_where_it_is_found_and_refused_where_it_is_named(
    files, call
):
    files(a=TEXT, foreign=FOREIGN, history=litmus("history-write-skew").text)
    assert call("run", ".", *UNDER)[0] == 0
    for name in ("foreign.toml", "history.toml", "gone.toml", "nope"):
        status, out, err = call("run", "a.toml", name, *UNDER)
        assert status == 2, name
        assert out.endswith("1 of 1 run passed. 1 not run.\n")
        assert err.count("isolitmus: ") == 1
        assert call("run", name, *UNDER)[:2] == (2, "")
    assert call("run", ".", "foreign.toml", *UNDER)[0] == 2
    Path("a.toml").unlink()
    status, out, err = call("run", ".")
    assert (status, out) == (2, "")
    assert err.endswith("isolitmus: .: nothing there could be run\n")


def test_tests_of_one_name_are_told_apart(files, call):
    files(a=TEXT)
    Path("sub").mkdir()
    shutil.copy("a.toml", "sub")
    status, out, _ = call("run", ".", *UNDER, "--table")
    assert status == 0
    assert "| `a.toml` | aborted |\n| `sub/a.toml` | aborted |\n" in out


# Expectations


@pytest.mark.slow
def test_a_run_of_which_nothing_is_expected_is_not_as_expected(files, call, delta):
    files(a=TEXT[: TEXT.index("[expect.")])
    status, out, _ = call("run", "a.toml", *UNDER)
    assert (status, "passed" in out) == (0, False)
    assert ": no expectation\n" in out
    assert out.endswith("\n1 without an expectation.\n")
    delta(seen)
    status, out, _ = call("run", "a.toml", "reorder", *ON_DELTA)
    assert ": as the model predicts; no expectation\n" in out
    assert out.endswith("1 of 1 run passed. 1 as the model predicts, without an expectation.\n")


def test_what_was_not_compared_is_said(call):
    status, out, _ = call("run", "statements-that-fail", *UNDER)
    assert status == 0
    assert "  Not compared: ambiguous's error class\n" in out


# Engines


def failing(error, at):
    """An engine that fails at the test of a name."""

    def carry(test, spec, _):
        if test.name == at:
            raise error
        return seen(test, spec)

    return carry


WRONG = TEXT.replace('serial      = ["insert"]', "serial = []")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        (None, {}, 0),
        (TimeLimit("it took too long"), {}, 3),
        (TimeLimit("it took too long"), {"wrong": WRONG}, 1),
        (EngineFailed("it failed"), {"wrong": WRONG}, 4),
        (EngineFailed("it failed"), {"wrong": WRONG, "bad": "="}, 2),
        (Refused("b: not there"), {"wrong": WRONG}, 1),
    ],
)
def test_the_worst_decides_the_exit_status(files, call, delta, case):
    error, also, status = case
    files(a=TEXT, b=TEXT, c=TEXT, **also)
    delta(seen if error is None else failing(error, "b"))
    ended, out, err = call("run", ".", *ON_DELTA)
    assert ended == status
    assert "a on delta" in out
    assert "c on delta" in out
    if error is None:
        return
    assert str(error) in err
    document = json.loads(call("run", ".", *ON_DELTA, "--json")[1])
    aside = document["left_out" if isinstance(error, Refused) else "refused"]
    told = [each for each in aside if each["engine"] == "delta"]
    assert [each["name"] for each in told] == ["b"]
    assert [each["status"] for each in told] == [error.status]


def test_an_engine_that_does_not_start_is_told_once_and_the_model_s_runs_are_there(
    files, call, delta
):
    files(a=TEXT, b=TEXT)
    starts = delta(None)
    status, out, err = call("run", ".", "--engine", "model,delta", *UNDER)
    assert (status, starts) == (4, ["delta"])
    assert err == "isolitmus: there is no Java: a, b\n"
    assert out.endswith("2 of 2 runs passed. 2 not run.\n")


@pytest.mark.slow
def test_an_engine_that_ends_is_started_again_for_what_is_left(files, call, delta):
    files(**{f"t{k}": TEXT for k in range(6)})
    starts = delta(failing(EngineUnavailable("the JVM ended"), "t2"))
    status, out, err = call("run", ".", *ON_DELTA)
    assert (status, len(starts)) == (4, 2)
    assert out.endswith("5 of 5 runs passed. 1 not run.\n")
    assert err == "isolitmus: the JVM ended\n"


def test_an_engine_that_always_ends_is_given_up(files, call, delta):
    files(**{f"t{k}": TEXT for k in range(6)})

    def carry(*_):
        raise EngineUnavailable("the JVM ended")

    starts = delta(carry)
    status, out, err = call("run", ".", *ON_DELTA)
    assert (status, out, len(starts)) == (4, "", engines.STARTS)
    assert err == "isolitmus: the JVM ended: t0, t1, t2, t3, t4, t5\n"


@pytest.mark.slow
def test_results_are_printed_as_they_come(files, call, delta, capsys):
    files(**{f"t{k}": TEXT for k in range(4)})
    printed = []

    def first_is_printed():
        printed.append(capsys.readouterr().out)
        return "t0 on delta" in "".join(printed)

    def carry(test, spec, _):
        if test.name == "t3":
            assert wait_for(first_is_printed)
        return seen(test, spec)

    delta(carry)
    assert call("run", ".", *ON_DELTA, "--at-once", 1)[0] == 0


FOUND = {
    "separate": ("separate", "delta-write-serializable", "log-serializable", "--both"),
    "sweep": ("sweep", "two-partitions", "--transactions", 2),
    "show": ("show", "delta-write-serializable-repaired"),
}


def gone(*_):
    raise EngineUnavailable("there is no Java")


def late(*_):
    raise TimeLimit("there is no Java")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("separate", (None, 1, 4)),
        ("separate", (gone, engines.STARTS, 4)),
        ("separate", (late, 1, 3)),
        ("sweep", (None, 1, 4)),
        ("sweep", (gone, engines.STARTS, 4)),
        ("show", (None, 1, 4)),
    ],
)
def test_what_was_found_is_there_though_no_engine_carries_it_out(call, delta, command, engine):
    carry, starts, status = engine
    begun = delta(carry)
    ended, out, err = call(*FOUND[command], "--engine", "model,delta", "--json")
    assert ended == status
    assert err.startswith("isolitmus: there is no Java")
    assert err.count("\n") == 1
    document = json.loads(out)
    for each in document if isinstance(document, list) else [document]:
        assert {refusal["engine"] for refusal in each["refused"]} == {"delta"}
        assert {refusal["status"] for refusal in each["refused"]} == {status}
        assert {refusal["reason"] for refusal in each["refused"]} == {"there is no Java"}
        assert len(each.get("runs", each.get("replays"))) > 0
        assert each["left_out"] == []
    assert len(begun) <= starts * (2 if command == "separate" else 1)
    answers = [line for line in call(*FOUND[command])[1].splitlines() if "seconds" not in line]
    ended, out, err = call(*FOUND[command], "--engine", "delta")
    assert (ended, err.count("\n")) == (status, 1)
    assert [line[:40] for line in answers if line and line[:40] not in out] == []


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_a_ctrl_c_keeps_what_there_is(files, call, delta, as_json):
    files(a=TEXT, b=TEXT, c=TEXT)
    delta(failing(KeyboardInterrupt(), "c"))
    status, out, err = call("run", ".", *ON_DELTA, *(["--json"] if as_json else []))
    assert (status, err) == (130, "")
    if as_json:
        document = json.loads(out)
        assert document["interrupted"] is True
        assert [(t["litmus"], len(t["runs"])) for t in document["tests"]][:2] == [("a", 1), ("b", 1)]  # fmt: skip
    else:
        assert out.endswith("Stopped. 2 of 2 runs passed.\n")


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 4])
def test_so_many_are_carried_out_at_once(files, call, delta, n):
    """They wait for each other: with fewer at a time nothing would come."""
    files(**{f"t{k}": TEXT for k in range(4)})
    together_ = threading.Barrier(n, timeout=20)

    def carry(test, spec, _):
        together_.wait()
        return seen(test, spec)

    delta(carry)
    status, out, _ = call("run", ".", *ON_DELTA, "--at-once", n)
    assert status == 0
    assert out.endswith("\n4 of 4 runs passed.\n")


def test_at_once_is_a_number_and_of_an_engine(call):
    assert "--at-once is 0; expected an integer of at least 1" in call("run", "reorder", *ON_DELTA, "--at-once", 0)[2]  # fmt: skip
    assert "add --engine delta" in call("run", "reorder", "--at-once", 2)[2]


@pytest.mark.slow
def test_work_that_nobody_waits_for_any_more_ends():
    from isolitmus.conformance.workers import run_interruptibly

    begun, ended = threading.Event(), threading.Event()

    def work(k):
        if k == 0:
            begun.wait(20)
            raise EngineFailed("it failed")

        def wait(interruption):
            begun.set()
            try:
                interruption.wait_for(lambda: False, 60)
            finally:
                ended.set()

        return run_interruptibly(wait)

    start = time.monotonic()
    with pytest.raises(EngineFailed):
        list(run_together(work, [0, 1], 2))
    assert ended.is_set()
    assert time.monotonic() - start < 30, "it waited to its own end"


# An engine that lies


def lying(field):
    """An engine that tells one field of a transaction wrong."""

    def carry(test, spec, _=None):
        done = seen(test, spec)
        name, said = next(
            ((n, t) for n, t in done.transactions.items() if getattr(t, field)),
            next(iter(done.transactions.items())),
        )
        value = getattr(said, field)
        more = Wait("commit", ("?",)) if field == "waits" else 99
        wrong = (*value, more) if isinstance(value, tuple) else ((7,),) if field == "rows" else "?"
        told = {**done.transactions, name: replace(said, **{field: wrong})}
        return replace(done, transactions=told)

    return carry


@pytest.mark.slow
@pytest.mark.parametrize("field", [f.name for f in fields(TransactionRun) if f.name not in BESIDE])
def test_a_lie_is_caught_by_whatever_compares(files, call, delta, field):
    files(a=TEXT[: TEXT.index("[expect.")])
    delta(lying(field))
    status, out, _ = call("run", "a.toml", *ON_DELTA)
    assert status == 1
    assert ": FAILED\n" in out
    assert "predicted" in out
    liar, under = RunsTests("mask", lying(field)), protocol(UNDER[1])
    assert agreement.find_differences(litmus("reorder"), under, liar)
    assert list(agreement.find_mismatches([(litmus("reorder"), under)], liar))
    at = MatrixPlace("delete-row", "insert", "same partition"), under
    (cell,) = on_engine.observe_cells(matrix("pairs"), [at], engine_named("delta"), liar)
    assert cell.differences


@pytest.mark.slow
def test_a_lie_is_caught_among_random_tests():
    tests, under = format_named("delta").random[0].strategy(), protocol(UNDER[1])
    liar = RunsTests("mask", lying("operation"))
    found = agreement.explore(tests, 2, 1, liar, protocols=[under])
    assert found.mismatch is not None
