"""Sweeps on a cluster of Spark's own: a master and two workers in processes of their own, on the
loopback interface.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.conformance.delta import session
from isolitmus.conformance.java import find_java
from isolitmus.pipeline.sweep_report import SweepFolder
from isolitmus.specs import scope

pyspark = pytest.importorskip("pyspark", reason="the extra spark is not installed")

ISOLITMUS = Path(sys.executable).parent / "isolitmus"
HOME = Path(pyspark.__file__).parent
EXECUTOR = b"CoarseGrainedExecutorBackend"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(stack, folder, name, *words, python=sys.executable):
    """A process of Spark's, which ends with the stack, and all that it started with it."""
    environment = {
        **find_java().environment(),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
    }
    program, *rest = words
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [HOME / "bin" / program, *rest],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    stack.callback(process.wait)
    stack.callback(lambda: os.killpg(process.pid, signal.SIGKILL))


def answers(port, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"nothing listens at port {port} after {seconds} s", pytrace=False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a master with two workers of a core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        stack.callback(lambda: [os.kill(one, signal.SIGKILL) for one in executors(folder)])
        at = ("--host", "127.0.0.1", "--webui-port", "0")
        started(
            stack,
            folder,
            "master",
            "spark-class",
            f"{deploy}.master.Master",
            *at,
            "--port",
            str(port),
        )
        answers(port)
        for name in ("one", "two"):
            own = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            started(
                stack, folder, name, "spark-class", f"{deploy}.worker.Worker", *at, *own, master
            )
        yield master, folder


def executors(folder):
    """The processes of executors that the workers of a cluster have started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            inside = (process / "cwd").resolve().is_relative_to(folder)
        except OSError:
            continue
        if inside and EXECUTOR in words:
            found.append(int(process.name))
    return found


def without_seconds(document):
    return {key: value for key, value in document.items() if key != "seconds"}


def commits(out):
    return len([*(out / "counts" / "_delta_log").glob("*.json")])


def wait_for(condition, process, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "it ended before it was to be killed"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_an_executor_and_then_the_driver_are_killed(cluster, tmp_path):
    """The job goes on without the executor; the next one goes on where the driver was; the counts
    are exact.
    """
    master, folder = cluster
    out = tmp_path / "data"
    words = [ISOLITMUS, "sweep", "two-partitions", "--transactions", "4", "--spark", "--json"]
    words += ["--master", master, "--out", out, "--keep", "counts"]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: commits(out) > 1, running)
    found = executors(folder)
    assert len(found) == 2
    os.kill(found[0], signal.SIGKILL)
    then = commits(out)
    wait_for(lambda: commits(out) > then, running)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    expected = sweep(scope("two-partitions"), 4)
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected.to_json())
    assert commits(out) < len(make_shards(scope("two-partitions"), 4))


@pytest.fixture(scope="module")
def python(bare_python, tmp_path_factory):
    """A Python without the package, which workers are sent."""
    folder = tmp_path_factory.mktemp("python")
    bare_python(folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def connect(tmp_path_factory, python):
    """The address of a server of Spark Connect, with Delta."""
    pytest.importorskip("grpc", reason="the extra connect is not installed")
    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    conf = session._configuration(folder, session.PACKAGES)
    conf |= {"spark.master": "local[2]", "spark.connect.grpc.binding.port": str(port)}
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with ExitStack() as stack:
        options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        words = ("spark-submit", *options, "--class", server, "spark-internal")
        started(stack, folder, "server", *words, python=python)
        answers(port)
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture
def server(session):
    """The address of a server of Spark Connect in the JVM of all tests."""
    pytest.importorskip("grpc", reason="the extra connect is not installed")
    port = free_port()
    context = session.spark.sparkContext._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.port", str(port))
    service = session.scala("org.apache.spark.sql.connect.service.SparkConnectService")
    service.start(context)
    none = session.scala("scala.None")
    try:
        answers(port)
        yield f"sc://127.0.0.1:{port}"
    finally:
        service.stop(none, none)


@pytest.mark.spark
@pytest.mark.slow
def test_a_client_of_spark_connect_counts_and_keeps_the_same(server, tmp_path):
    """The client is a process without a JVM, and sends its package; the server's Python has one,
    too.
    """
    counted_and_kept(server, 2, tmp_path / "data")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_by_spark_connect_the_same_is_counted_and_kept(connect, tmp_path):
    """The server is a process whose Python has no package but the one that it is sent."""
    counted(connect, 3)
    counted_and_kept(connect, 3, tmp_path / "data")


def counted(master, size, *more):
    """What a sweep there counts is what is counted here: how many candidates there are."""
    words = [ISOLITMUS, "sweep", "two-partitions", "--transactions", str(size), "--spark", "--json"]
    done = subprocess.run(
        [*words, "--master", master, *more], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    expected = sweep(scope("two-partitions"), size)
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected.to_json())
    return expected.candidates


def counted_and_kept(master, size, out):
    candidates = counted(master, size, "--out", out, "--keep", "verdicts")
    assert SweepFolder(out).rows("SELECT count(*) FROM candidates") == [(candidates,)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_with_two_executors_the_same_is_counted(cluster, python):
    master, _ = cluster
    words = [ISOLITMUS, "sweep", "two-partitions", "--transactions", "3", "--spark", "--json"]
    words += ["--master", master]
    own = os.environ | {"PYSPARK_PYTHON": str(python)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 1, done.stderr
    expected = sweep(scope("two-partitions"), 3).to_json()
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected)


TWO = """
import sys
from isolitmus.model.errors import IsolitmusError
from isolitmus.pipeline import open_spark, sweep
from isolitmus.specs import scope

with open_spark("local[1]") as spark:
    try:
        sweep(spark, scope("two-partitions"), 3, out=sys.argv[1], keep="executions")
    except IsolitmusError as error:
        print(error)
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_two_drivers_on_one_folder_count_nothing_twice(tmp_path):
    """Each is right, or says that there is another; what is left is what one of them alone
    leaves.
    """
    out = tmp_path / "data"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, out],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [one.communicate() for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert {text for text, _ in said} <= {"", OTHER}, said
    alone = subprocess.run(
        [sys.executable, "-c", TWO, out], capture_output=True, text=True, check=True
    )
    assert alone.stdout == ""
    rows = SweepFolder(out).rows
    assert rows("SELECT count(*), count(DISTINCT rank) FROM candidates") == [(4116, 4116)]
    assert rows("SELECT count(*), count(DISTINCT (shard, protocol, level)) FROM counts") == [
        (56, 56)
    ]


OTHER = "somebody else writes these tables: wait for the end, or name another folder\n"
