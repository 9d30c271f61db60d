"""The command line on an engine that is not there, hangs, or is interrupted: the exit status, one
message, and nothing that stays behind.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import isolitmus.conformance.delta.session as module
from isolitmus.conformance.delta import engine
from isolitmus.conformance.workers import run_interruptibly, run_together

RUN = ("run", "hole-partitioned", "--engine", "delta", "--protocol", "delta-write-serializable")


def test_no_java_is_status_4(call, monkeypatch, tmp_path):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, out, err = call(*RUN)
    assert (status, out) == (4, "")
    assert err.startswith("isolitmus: PySpark with Delta needs Java 17 or 21")
    assert err.count("\n") == 1


@pytest.mark.spark
@pytest.mark.slow
def test_no_jar_and_no_network_is_status_4_and_says_what_to_fetch(call, monkeypatch, tmp_path):
    """Ivy has an empty cache and looks where there is nothing; what it prints stays off the
    terminal.
    """
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='none'/>"
        f"<resolvers><filesystem name='none'><ivy pattern='{tmp_path}/[module].xml'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    elsewhere = {"spark.jars.ivySettings": str(settings), "spark.jars.ivy": str(tmp_path / "ivy")}
    monkeypatch.setattr(module, "_shared", [])
    monkeypatch.setattr(module, "_refuse_a_second", lambda: None)
    monkeypatch.setattr(module, "SPEED", module.SPEED | elsewhere)
    status, out, err = call(*RUN)
    assert (status, out) == (4, "")
    assert err == (
        "isolitmus: cannot download the jar io.delta:delta-spark_4.2_2.13:4.4.0; connect this"
        " machine to Maven Central for the first start, which downloads it and its dependencies"
        " (about 17 MB); later starts read Ivy's cache\n"
    )


@pytest.mark.spark
def test_a_statement_that_hangs_is_status_3_and_the_session_lives_on(call, monkeypatch, session):
    """No statement comes to its commit within no time at all, which is as good as one that
    hangs.
    """
    session.kept.clear()  # so that the init statement is carried out
    replay = engine.replay
    monkeypatch.setattr(engine, "replay", partial(replay, seconds=0))
    status, _, err = call(*RUN)
    assert status == 3
    assert err.startswith("isolitmus: init statement 'INSERT INTO t VALUES (1, 10, 0),")
    assert err.endswith("did not end within 0 s\n")
    assert session.spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert not any(session.directory.glob("litmus_*"))
    monkeypatch.setattr(engine, "replay", replay)
    status, out, _ = call(*RUN)
    assert status == 0
    assert out.endswith("1 of 1 run passed.\n")


def children(process):
    """The processes that it started and that have not ended."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [
        int(pid) for pid, parent, state in rows if int(parent) == process.pid and "Z" not in state
    ]


def writes(directory):
    """How many commits of INSERT the table of the litmus test has, in the directory of a
    session.
    """
    found = 0
    for entry in directory.glob("litmus_*/t/_delta_log/*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        found += any(a.get("commitInfo", {}).get("operation") == "WRITE" for a in actions)
    return found


def wait_for(condition, seconds=300):
    for _ in range(seconds * 20):
        if condition():
            return True
        time.sleep(0.05)
    return False


def run_as_a_process(folder):
    """The replay, as one starts it, with its temporary files in a folder; and the JVM that it has
    started.
    """
    process = subprocess.Popen(
        [Path(sys.executable).with_name("isolitmus"), *RUN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert wait_for(lambda: [*folder.glob("isolitmus-*/litmus_*")] or process.poll() is not None)
    started = children(process)
    assert started
    return process, started


def nothing_stays(folder, started):
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert list(folder.glob("isolitmus-*")) == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_replay_as_a_process_says_how_it_went_and_leaves_nothing(tmp_path):
    """The replay that starts a JVM of its own on every change: what is printed beside the result,
    and what stays.
    """
    process, started = run_as_a_process(tmp_path)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("1 of 1 run passed.\n")
    nothing_stays(tmp_path, started)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_a_ctrl_c_while_a_statement_is_parked_ends_everything(tmp_path):
    """The delete is parked from its start to the end; the second write is that of the append."""
    process, started = run_as_a_process(tmp_path)
    (directory,) = tmp_path.glob("isolitmus-*")
    assert wait_for(lambda: writes(directory) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    nothing_stays(tmp_path, started)


WAITING = {run_interruptibly.__code__, run_together.__code__}


@contextmanager
def interrupted_once(condition):
    """A Ctrl-C in this process, once the condition holds, while the main thread waits for replays:
    there it makes no call to the JVM, whose answer the next call would get
    (``conformance.workers``).
    """
    over = threading.Event()

    def heard(_, frame):
        while frame is not None:
            if frame.f_code in WAITING:
                raise KeyboardInterrupt
            frame = frame.f_back

    def watch():
        while not over.wait(0.005):
            if condition():
                os.kill(os.getpid(), signal.SIGINT)
                return

    before = signal.signal(signal.SIGINT, heard)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)


EXPLORE = ("explore", "raw", "--count", "100", "--evidence", "seen.toml")


@pytest.mark.spark
@pytest.mark.parametrize("stopped", [(RUN, 2), (EXPLORE, 0)], ids=["run", "explore"])
def test_a_ctrl_c_is_silent_and_leaves_nothing_in_the_session(
    call, monkeypatch, session, tmp_path, stopped
):
    """Of the replay the delete is parked from its start to the end, and the second write is that of
    the append. That the JVM ends, too, is for processes: the test before, and the sweep of
    tests/pipeline/test_pipeline.py.
    """
    monkeypatch.chdir(tmp_path)
    words, commits = stopped

    def at_work():
        return any(session.directory.glob("litmus_*/t")) and writes(session.directory) >= commits

    with interrupted_once(at_work):
        status, out, err = call(*words)
    assert (status, out, err) == (130, "", "")
    assert session.spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert not any(session.directory.glob("litmus_*"))
    assert list(tmp_path.iterdir()) == []
    assert session.spark.range(3).count() == 3


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_claim_is_asked_of_delta_and_what_the_page_alone_has_of_the_model(call):
    """Of the litmus tests that claims cite, and of the observations, other tests make every one."""
    status, out, _ = call("claims", "verify", "D46", "D10", "--engine", "delta")
    assert status == 0
    assert "D46: confirmed (delta, model)\n" in out
    assert "D10: differs in open-source Delta (delta, model)\n" in out


@pytest.mark.slow
def test_without_java_nothing_is_confirmed(call, monkeypatch, tmp_path):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, out, _ = call("claims", "verify", "D46", "--engine", "delta")
    assert (status, "D46: undecided\n" in out, "confirmed" in out) == (3, True, False)
    assert "delta: PySpark with Delta needs Java 17 or 21" in out
