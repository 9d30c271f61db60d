"""The command line on an engine that is not there, hangs, or is interrupted: the exit status, one
message, and nothing that stays behind.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import isolitmus.conformance.delta as engine
import isolitmus.conformance.session as module

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
    """Ivy has an empty cache and looks where there is nothing; what it prints stays off the terminal."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='none'/>"
        f"<resolvers><filesystem name='none'><ivy pattern='{tmp_path}/[module].xml'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    elsewhere = {"spark.jars.ivySettings": str(settings), "spark.jars.ivy": str(tmp_path / "ivy")}
    monkeypatch.setattr(module, "_refuse_a_second", lambda: None)
    monkeypatch.setattr(module, "SPEED", module.SPEED | elsewhere)
    status, out, err = call(*RUN)
    assert (status, out) == (4, "")
    assert err == (
        "isolitmus: the jar io.delta:delta-spark_4.2_2.13:4.4.0 could not be fetched; connect this"
        " machine to Maven Central for the first start, which fetches it and what it needs (about"
        " 17 MB), after that Ivy's cache has it\n"
    )


@pytest.fixture
def opened(monkeypatch, session):
    """The engine has the session of all tests: a process has one at a time."""

    @contextmanager
    def there():
        yield session

    monkeypatch.setattr(engine, "open_session", there)


@pytest.mark.spark
@pytest.mark.usefixtures("opened")
def test_a_statement_that_hangs_is_status_3_and_the_session_lives_on(call, monkeypatch, session):
    """No statement comes to its commit within no time at all, which is as good as one that hangs."""
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
    assert out.endswith("1 of 1 runs as expected.\n")


def children(process):
    """The processes that it started and that have not ended."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [
        int(pid) for pid, parent, state in rows if int(parent) == process.pid and "Z" not in state
    ]


def writes(folder):
    """How many commits of INSERT the table of the litmus test has."""
    found = 0
    for entry in folder.glob("isolitmus-*/litmus_*/t/_delta_log/*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        found += any(a.get("commitInfo", {}).get("operation") == "WRITE" for a in actions)
    return found


def wait_for(condition, seconds=300):
    for _ in range(seconds * 20):
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.spark
@pytest.mark.slow
def test_a_ctrl_c_while_a_statement_is_parked_ends_everything(tmp_path):
    """The delete is parked from its start to the end; the second write is that of the append."""
    program = Path(sys.executable).with_name("isolitmus")
    process = subprocess.Popen(
        [program, *RUN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert wait_for(lambda: writes(tmp_path) >= 2 or process.poll() is not None)
    started = children(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert started
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert list(tmp_path.glob("isolitmus-*")) == []


@pytest.mark.spark
@pytest.mark.usefixtures("opened")
def test_a_claim_is_asked_of_delta_and_what_the_page_alone_has_is_not(call):
    """Of the litmus tests that claims cite, and of the observations, other tests make every one."""
    status, out, _ = call("claims", "verify", "D46", "D10", "--engine", "delta")
    assert status == 3
    assert "D46: confirmed (delta); not run here: model\n" in out
    assert "D10: undecided\n" in out


@pytest.mark.slow
def test_without_java_nothing_is_confirmed(call, monkeypatch, tmp_path):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, out, _ = call("claims", "verify", "D46", "--engine", "delta")
    assert (status, "D46: undecided\n" in out, "confirmed" in out) == (3, True, False)
    assert "delta: PySpark with Delta needs Java 17 or 21" in out
