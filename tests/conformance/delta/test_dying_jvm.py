"""A JVM that dies in the middle of the work is one sentence, whatever was asked of it, and leaves
nothing behind.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from isolitmus.conformance.delta import jvm as engine
from isolitmus.conformance.delta.transaction_outcome import read_failure
from isolitmus.model.errors import EngineUnavailable

gateway = pytest.importorskip("py4j.java_gateway", reason="the extra spark is not installed")
Py4JNetworkError = gateway.Py4JNetworkError

AWAIT = engine._await
PROGRAM = Path(sys.executable).with_name("isolitmus")


@pytest.fixture
def stub(monkeypatch):
    """A process in the place of the JVM, and nobody who talks to it."""
    started = []

    def launch(*_):
        started.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True))
        return started[-1]

    monkeypatch.setattr(engine, "_launch", launch)
    monkeypatch.setattr(engine, "_await", lambda *_: None)
    monkeypatch.setattr(engine, "_read_address", lambda *_: (0, ""))
    monkeypatch.setattr(engine, "_connect", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(engine, "_no_more_finalizers", lambda *_: None)
    return started


@pytest.mark.parametrize("error", [Py4JNetworkError("no answer"), ConnectionError(), KeyError("x")])
def test_what_fails_because_the_jvm_is_gone_says_so(stub, tmp_path, error):
    with (
        pytest.raises(EngineUnavailable, match="Spark's JVM ended during the run"),
        engine.open_gateway(None, {}, tmp_path),
    ):
        stub[0].kill()
        stub[0].wait()
        raise error


def test_a_jvm_that_is_killed_while_it_starts_says_so(stub, monkeypatch, tmp_path):
    def starting(process, *rest):
        process.kill()
        process.wait()
        AWAIT(process, *rest)

    monkeypatch.setattr(engine, "_await", starting)
    with (
        pytest.raises(EngineUnavailable, match="was killed by SIGKILL before it was ready"),
        engine.open_gateway(None, {}, tmp_path),
    ):
        pass
    assert stub[0].returncode == -signal.SIGKILL


def test_what_fails_beside_a_jvm_says_what_it_says(stub, tmp_path):
    with pytest.raises(KeyError), engine.open_gateway(None, {}, tmp_path):
        raise KeyError
    assert stub[0].returncode is not None


@pytest.mark.parametrize("error", [Py4JNetworkError("no answer"), ConnectionRefusedError()])
def test_that_nobody_answers_is_no_outcome_of_a_statement(error):
    with pytest.raises(type(error)):
        read_failure(error, None)


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("error", [KeyboardInterrupt, Py4JNetworkError])
def test_what_py4j_raises_it_does_not_write_as_well(tmp_path, caplog, error):
    def send(_):
        raise error

    client = gateway.GatewayClient()
    connection = SimpleNamespace(send_command=send, close=lambda _: None, socket=None)
    client._get_connection = lambda: connection
    client._should_retry = lambda *_: False
    with engine.open_gateway(None, {}, tmp_path), suppress(KeyboardInterrupt):
        client.send_command("")
    assert not caplog.records
    with suppress(KeyboardInterrupt):
        client.send_command("")
    assert caplog.records


@pytest.mark.slow
def test_what_hypothesis_keeps_is_not_in_the_current_folder(tmp_path):
    script = (
        "from isolitmus.checker.strategies import litmus_tests\n"
        "from isolitmus.conformance.agreement import draw_tests\n"
        "from isolitmus.specs import protocol\n"
        "assert len(draw_tests(litmus_tests(), 2, 1, [protocol('delta-serializable')])) == 2\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def java_of(pid):
    """The JVM that a process has started."""
    rows = [
        line.split()
        for line in subprocess.check_output(["ps", "-eo", "pid=,ppid=,comm="], text=True).split(
            "\n"
        )
    ]
    return [int(row[0]) for row in rows if len(row) > 2 and int(row[1]) == pid and row[2] == "java"]


def begun(words, folder, sign):
    """A command at work in a folder: it has made such a file below its temporary one."""
    (folder / "tmp").mkdir()
    process = subprocess.Popen(
        [PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
    )
    end = time.monotonic() + 200
    while not list((folder / "tmp").glob(sign)) and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return process


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
@pytest.mark.parametrize(("whom", "status"), [("jvm", 4), ("command", 130)])
def test_random_tests_that_are_stopped_leave_nothing(tmp_path, whom, status):
    words = ["explore", "raw", "--count", "200", "--evidence", "seen.toml"]
    process = begun(words, tmp_path, "*/*/t/_delta_log/*1.json")
    (java,) = java_of(process.pid)
    os.kill(*((java, signal.SIGKILL) if whom == "jvm" else (process.pid, signal.SIGINT)))
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (status, "")
    if whom == "jvm":
        assert err.startswith("isolitmus: Spark's JVM ended ")
        assert err.count("\n") == 1
    with pytest.raises(ProcessLookupError):
        os.kill(java, 0)
    assert list(tmp_path.rglob("*")) == [tmp_path / "tmp"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_a_ctrl_c_while_the_command_waits_for_the_jvm_is_silent(tmp_path):
    words = ["sweep", "two-partitions", "--transactions", "3", "--spark", "--json"]
    process = begun(words, tmp_path, "*/local/blockmgr-*")
    (java,) = java_of(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=100) == ("", "")
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(java, 0)
    assert list(tmp_path.rglob("*")) == [tmp_path / "tmp"]
