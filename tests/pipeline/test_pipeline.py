"""Sweeps on Spark: the same counts, wherever the shards are counted, and after whatever kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.model.errors import EngineUnavailable, IsolitmusError
from isolitmus.pipeline import open_spark
from isolitmus.pipeline import sweep as on_spark
from isolitmus.pipeline.spark import parallelism
from isolitmus.specs import scope

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

ISOLITMUS = Path(sys.executable).parent / "isolitmus"


def without_seconds(document):
    return {key: value for key, value in document.items() if key != "seconds"}


def test_what_spark_needs_and_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr("isolitmus.pipeline.spark.PACKAGES", {"nosuchthing": "spark"})
    with pytest.raises(
        EngineUnavailable, match="nosuchthing is not installed, which work on Spark"
    ):
        open_spark().__enter__()


@pytest.mark.parametrize(("slots", "expected"), [(0, 1), (2, 2)])
def test_one_task_waits_for_executors_that_have_not_come_yet(slots, expected):
    profiles = SimpleNamespace(defaultResourceProfile=lambda: None)
    scala = SimpleNamespace(
        resourceProfileManager=lambda: profiles, maxNumConcurrentTasks=lambda _: slots
    )
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala))
    assert parallelism(SimpleNamespace(sparkContext=context)) == expected


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        ("mesos", r"--master is 'mesos'; expected local\[N\], local-cluster.*"),
        (
            "spark://127.0.0.1:1",
            r"--master spark://127.0.0.1:1: no answer \(.*refused\)",
        ),
        ("spark://127.0.0.1:x", "expected a number as its port"),
    ],
)
def test_a_master_that_is_none_or_does_not_answer(master, sentence):
    with pytest.raises(IsolitmusError, match=sentence):
        open_spark(master).__enter__()


def test_without_spark_the_command_ends_with_status_4(call, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    status, out, err = call("sweep", "two-partitions", "--transactions", "2", "--spark")
    assert (status, out) == (4, "")
    assert err.startswith(
        "isolitmus: PySpark with Delta needs Java 17 or 21, but this machine has no"
    )


def command(*words):
    return subprocess.run([ISOLITMUS, "sweep", *words], capture_output=True, text=True, check=False)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGINT", pytest.param("SIGKILL", marks=pytest.mark.wide)])
def test_a_stopped_sweep_goes_on_and_counts_nothing_twice(tmp_path, how):
    """The two sweeps that start a JVM of their own on every change: one is stopped at work, and
    leaves nothing but its tables; the other goes on, as one starts it.
    """
    out, temporary = tmp_path / "counts", tmp_path / "temporary"
    temporary.mkdir()
    words = ("two-partitions", "--transactions", "4", "--spark", "--out", str(out), "--json")
    environment = os.environ | {"TMPDIR": str(temporary)}
    stopped = subprocess.Popen(
        [ISOLITMUS, "sweep", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    first = out / "counts" / "_delta_log" / f"{1:020}.json"
    while not first.exists() and stopped.poll() is None:
        time.sleep(0.05)
    jvms = java_of(stopped.pid)
    if how == "SIGKILL":
        for one in (stopped.pid, *jvms):  # Spark's is a group of its own
            os.killpg(one, signal.SIGKILL)
    else:
        stopped.send_signal(signal.SIGINT)
    said = stopped.communicate(timeout=100)
    if how == "SIGINT":
        assert (stopped.returncode, said) == (130, ("", ""))
        assert [*temporary.iterdir()] == []
        assert not any(map(runs, jvms))
    assert len(jvms) == 1
    done = command(*words)
    expected = sweep(scope("two-partitions"), 4)
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected.to_json())
    assert (done.returncode, done.stderr) == (1, "")
    commits = [commit(path) for path in sorted((out / "counts" / "_delta_log").glob("*.json"))]
    assert sum(commits) == len(make_shards(scope("two-partitions"), 4)) * 4


def java_of(pid):
    """The JVMs that a process has started."""
    listed = subprocess.check_output(["ps", "-eo", "pid=,ppid=,comm="], text=True)
    rows = [line.split() for line in listed.splitlines()]
    return [int(own) for own, parent, name, *_ in rows if int(parent) == pid and name == "java"]


def runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def commit(path):
    """How many rows a commit added."""
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    return sum(json.loads(a["add"]["stats"])["numRecords"] for a in actions if "add" in a)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_executors_of_their_own_count_the_same():
    words = ("two-partitions", "--transactions", "3", "--json")
    done = command(*words, "--spark", "--master", "local-cluster[2,1,1024]")
    expected = sweep(scope("two-partitions"), 3).to_json()
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", small],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a small disk")
    words = [ISOLITMUS, "sweep", "two-partitions", "--transactions", "3", "--spark", "--json"]
    words += ["--out", small / "data", "--keep", "verdicts"]
    try:
        full = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (full.returncode, full.stderr) == (
            4,
            (
                "isolitmus: the disk is full: what was written until then is whole, and the same"
                " command goes on\n"
            ),
        )
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 1, done.stderr
    expected = sweep(scope("two-partitions"), 3).to_json()
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("out", ["viewfs://isolitmus/data/sweep", "spark_catalog.sweep"])
def test_tables_lie_wherever_spark_has_tables(session, tmp_path, out):
    """By an address that is no folder of this machine, where Delta writes its log as it does in
    HDFS; and by names of a catalog.
    """
    place, one = tmp_path / "sweep", scope("two-partitions")
    conf = session.spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.isolitmus.link./data", tmp_path.as_uri())
    session.spark.sql(f"CREATE DATABASE IF NOT EXISTS sweep LOCATION '{place.as_uri()}'")
    expected = without_seconds(sweep(one, 2).to_json())
    try:
        for _ in range(2):  # what is there is gone on with
            done = on_spark(session.spark, one, 2, out=out, keep="counts")
            assert without_seconds(done.to_json()) == expected
        assert (place / "counts" / "_delta_log").is_dir()
        with pytest.raises(IsolitmusError, match="it holds the tables of another sweep"):
            on_spark(session.spark, scope("writers-partitioned"), 2, out=out, keep="counts")
    finally:
        session.spark.sql("DROP DATABASE sweep CASCADE")
