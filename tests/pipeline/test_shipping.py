"""Executors that have what the package needs, and not the package, are sent it; what they lack is
one sentence.
"""

import json
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from pages import FOLDERS

from isolitmus.checker.sweeps.table_sweep import sweep_work
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.pipeline.check_job import check_function
from isolitmus.pipeline.spark import NEEDED, failure, is_cluster, package_archive, ship_package
from isolitmus.pipeline.sweep_shards import ShardTask, count_function
from isolitmus.pipeline.sweep_tables import kept_tables, sweep_tables
from isolitmus.specs import scope
from isolitmus.specs.disk.input_files import shipped_files

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

WORKER = """
import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles, cloudpickle

SparkFiles._root_directory, SparkFiles._is_running_on_worker = sys.argv[1], True
try:
    import isolitmus.model
except ModuleNotFoundError:
    pass
else:
    sys.exit("the package is there already")
run = cloudpickle.loads(Path(sys.argv[2]).read_bytes())
places = pa.RecordBatch.from_pydict({"id": [0, 1]})
rows = [row for batch in run(iter([places])) for row in batch.to_pylist()]
print(json.dumps(rows))
"""
FILES = ("history-write-skew", "reorder-reader")


@pytest.fixture
def bare(bare_python, tmp_path):
    """As ``bare_python``: its folder, and where its packages are."""
    folder = tmp_path / "bare"
    return folder, bare_python(folder)


@pytest.fixture
def on_worker(bare, tmp_path):
    """on_worker(function): what that Python prints as a worker of a cluster, or its error."""
    from pyspark import cloudpickle

    sent, settings = [], {}
    context = SimpleNamespace(master="spark://one:7077", addArchive=sent.append)
    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
    spark = SimpleNamespace(sparkContext=context, conf=conf)

    def done(function):
        (tmp_path / "run.pickle").write_bytes(cloudpickle.dumps(ship_package(spark, function)))
        (one,) = sent  # once, however many jobs
        root = tmp_path / "work"
        zipfile.ZipFile(one).extractall(root / Path(one).name)
        words = [bare[0] / "bin" / "python", "-c", WORKER, root, tmp_path / "run.pickle"]
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)

    return done


def counting():
    work = sweep_work(scope("two-partitions"), 2)
    tables = {name: sweep_tables(work.scope)[name] for name in kept_tables("verdicts")}
    return count_function(
        ShardTask("one", work, make_shards(work.scope, 2), tables, kinds=True), [0, 1]
    )


def judging():
    return check_function([("litmus", shipped_files("litmus")[name]) for name in FILES], None)


@pytest.mark.slow
@pytest.mark.parametrize("makes", [counting, judging])
def test_a_worker_without_the_package_finds_the_same(on_worker, makes):
    done = on_worker(makes())
    assert done.returncode == 0, done.stderr
    places = pa.RecordBatch.from_pydict({"id": [0, 1]})
    expected = [row for batch in makes()(iter([places])) for row in batch.to_pylist()]
    assert len(expected) > 10
    assert without_seconds(json.loads(done.stdout)) == without_seconds(expected)


def without_seconds(rows):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.mark.slow
def test_what_a_worker_lacks_is_one_sentence(on_worker, bare):
    numpy, lark = (next(bare[1].glob(f"{name}-*.dist-info")) for name in ("numpy", "lark"))
    numpy.unlink()
    older = bare[1] / "numpy-1.26.4.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Name: numpy\nVersion: 1.26.4\n", "utf-8")
    assert str(failure(RuntimeError(on_worker(counting()).stderr))) == (
        "where Spark's workers run, numpy>=2.1 has to be installed, and there is 1.26.4"
    )
    lark.unlink()
    assert str(failure(RuntimeError(on_worker(counting()).stderr))) == (
        "where Spark's workers run, lark>=1.2 has to be installed, and there is none"
    )


def test_executors_of_this_machine_are_sent_nothing():
    for master in ("local[2]", "local-cluster[2,1,1024]"):
        spark = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
        assert not is_cluster(spark)
        assert ship_package(spark, print) is print


@pytest.mark.slow
def test_the_archive_has_all_that_is_read_and_nothing_compiled():
    names = zipfile.ZipFile(package_archive()).namelist()
    assert {
        "isolitmus/__init__.py",
        "isolitmus/specs/language/cat.lark",
        "isolitmus/specs/stdlib.cat",
    } < {*names}
    assert {name.split("/")[1] for name in names if name.count("/") > 1} == {*FOLDERS}
    assert not any("__pycache__" in name for name in names)


def test_the_documents_name_what_executors_need():
    said = (Path(__file__).parents[2] / "docs" / "comparing-levels.md").read_text("utf-8")
    assert ", ".join(NEEDED) in said
