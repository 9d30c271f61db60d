"""The session: what is missing is said in one sentence, and nothing stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

import pytest

from isolitmus.conformance import open_session
from isolitmus.conformance.delta import session as sessions
from isolitmus.conformance.delta.jvm import archive_option, class_archive, open_gateway
from isolitmus.conformance.java import find_java
from isolitmus.model.errors import EngineUnavailable


def refusal(*given, **more):
    with pytest.raises(EngineUnavailable) as caught, open_session(*given, **more):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_importing_is_light():
    code = "import isolitmus.conformance, sys; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_java(monkeypatch, tmp_path):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "this machine has no Java" in refusal()


def test_no_package(monkeypatch):
    def version(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", version)
    assert "pip install 'isolitmus[spark]'" in refusal()


def test_another_release(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda _: "4.2.0")
    assert "delta-spark 4.2.0 is installed" in refusal()


@pytest.mark.spark
def test_another_session_in_this_process(session, monkeypatch):
    monkeypatch.setattr(sessions, "_shared", [])
    assert "another Spark session is open" in refusal()
    assert session.spark.sql("SELECT 1").collect()


@pytest.mark.spark
@pytest.mark.parametrize("master", ["local", "local[1]", "local[*]", "local[2,3]"])
def test_a_shared_session_serves_whoever_asks_for_threads(session, master):
    """The same JVM, and a SparkSession as at a start: nothing of it is there for the next."""
    fresh, name = session.fresh().conf.getAll, "shared_database"
    for _ in range(2):
        with open_session(master, {sessions.JAVA_OPTIONS: "-Xint"}) as opened:
            assert (opened.jvm, opened.directory) == (session.jvm, session.directory)
            assert opened.spark.conf.getAll == fresh
            assert opened.spark.catalog.currentDatabase() == "default"
            assert opened.spark.sql("SHOW VIEWS").collect() == []
            opened.spark.sql(f"CREATE DATABASE {name}")
            opened.spark.catalog.setCurrentDatabase(name)
            opened.spark.sql("SELECT 1").createTempView("one")
            opened.spark.conf.set("spark.sql.shuffle.partitions", "7")
            opened.spark.sql(f"DROP DATABASE {name} CASCADE")
    assert session.spark.sql("SELECT 1").collect()


@pytest.mark.spark
@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    "given",
    [
        {"master": "local-cluster[1,1,1024]"},
        {"master": "spark://127.0.0.1:7077"},
        {"conf": {"spark.sql.shuffle.partitions": "2"}},
        {"archive": Path("classes.jsa")},
    ],
    ids=str,
)
def test_what_a_shared_session_is_not_is_refused(given):
    assert "another Spark session is open" in refusal(**given)


@pytest.mark.spark
def test_a_session_is_shared_until_its_block_ends(session):
    with open_session(shared=True) as again:
        assert again.jvm is session.jvm
    with open_session() as still:
        assert still.jvm is session.jvm


@pytest.mark.spark
def test_java_reads_the_archive_of_its_classes_if_there_is_one(session):
    beans = session.java("java.lang.management.ManagementFactory")
    given = [
        str(option)
        for option in beans.getRuntimeMXBean().getInputArguments()
        if "SharedArchiveFile" in option
    ]
    assert given == [option for option in [archive_option(class_archive(find_java()))] if option]


@pytest.mark.spark
@pytest.mark.wide
def test_an_archive_of_classes_is_made_once(tmp_path):
    """In a process of its own, in a place of its own."""
    code = f"""if 1:
        from pathlib import Path
        from isolitmus.conformance.delta import engine
        place = Path({str(tmp_path)!r}) / "a blank" / "classes.jsa"
        engine.class_archive = lambda java: place
        assert engine.DELTA.install() == place
        made = place.stat()
        assert engine.DELTA.install() == place
        assert place.stat() == made
        assert [*place.parent.iterdir()] == [place]
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "a blank" / "classes.jsa").stat().st_size > 50_000_000


@pytest.mark.spark
def test_version(session):
    assert session.version == "delta-spark 4.4.0, Spark 4.2.0"


@pytest.mark.spark
def test_a_jvm_that_is_killed_at_work_is_an_engine_that_is_not_there(tmp_path):
    """A JVM beside that of all tests, with Spark's gateway and no Spark in it, which starts in two
    seconds.
    """
    said = pytest.raises(EngineUnavailable, match="Spark's JVM ended during the run")
    with said, open_gateway(find_java(), {}, tmp_path) as opened:
        java = opened.jvm.java.lang.ProcessHandle.current().pid()
        killer = threading.Timer(0.5, os.kill, (java, signal.SIGKILL))
        killer.start()
        opened.jvm.java.lang.Thread.sleep(60_000)
    assert gone(java)


SCRIPT = """
import sys
import threading
from isolitmus.conformance import open_session, replay
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import Delete, Insert

table = Schema("t", (Column("id", "INT"),))
parked, other = Delete("DELETE FROM t", "t", None), Insert(sys.argv[1], "t", ())
schedule = Schedule.parse("parked.start other parked.commit", {"parked", "other"})
litmus = Litmus(
    "script", "", "", {"t": table}, (), {"parked": parked, "other": other}, schedule, format="delta"
)
with open_session() as session:
    print(session.directory, session.jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    replay(litmus, "delta-write-serializable", session)
for thread in threading.enumerate()[1:]:
    thread.join(5)
    if thread.is_alive():
        print("this thread goes on:", thread)
"""
ENDLESS = "INSERT INTO t SELECT count(*) FROM range(1000000000000)"


def run_in_a_process(sql):
    """Python with a session and a replay in it: its process, the session's directory, the JVM's
    id.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, sql],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    directory, java = process.stdout.readline().split()
    return process, Path(directory), int(java)


def wait_until_it_runs(directory):
    """Until the litmus test has its table, and some seconds more."""
    for _ in range(900):
        if any(directory.glob("litmus_*/t/_delta_log/*.json")):
            break
        time.sleep(0.1)
    time.sleep(5)


def gone(java):
    """Whether the process has ended, within some seconds."""
    for _ in range(100):
        try:
            os.kill(java, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_nothing_stays_and_nothing_is_printed():
    process, directory, java = run_in_a_process("INSERT INTO t VALUES (1)")
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0
    assert gone(java)
    assert not directory.exists()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_interrupt_ends_everything():
    process, directory, java = run_in_a_process(ENDLESS)
    wait_until_it_runs(directory)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert gone(java)
    assert not directory.exists()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_jvm_that_dies_is_an_engine_that_is_not_there():
    process, directory, java = run_in_a_process(ENDLESS)
    wait_until_it_runs(directory)
    os.kill(java, signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert "EngineUnavailable: Spark's JVM ended during 'script'" in errors
    assert not directory.exists()
