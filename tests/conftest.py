"""What all tests share: the seed of all that is drawn, how hard Hypothesis tries, times, the
command line, Spark.

Tests that start a JVM are marked ``spark``, long ones ``slow``; ``pytest -m "not spark"`` runs on a
machine without Java.
"""

import atexit
import gc
import json
import os
import secrets
import shutil
import signal
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from assertions import Assertions
from durations import (
    Durations,
    ModuleScheduling,
    longest_first,
    name_engines,
    needs_spark,
    workers,
)
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from isolitmus.cli.main import main
from isolitmus.conformance import open_session
from isolitmus.specs.disk.user_cache import user_cache

pytest.register_assert_rewrite(
    "pages", "case_checks", "html_pages"
)  # so that their assertions count
SEED = Path(__file__).with_name("seed.txt")
"""It goes up by one with every landing, never back, and never past one that failed
(docs/CONTRIBUTING.md).
"""
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "tests")
settings.register_profile(
    "tests",
    database=None,
    deadline=None,
    max_examples=25,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("tests"), max_examples=5000, phases=[*Phase]
)
settings.register_profile("quick", settings.get_profile("tests"), max_examples=10)
settings.load_profile(PROFILE)
assert providers.is_local_module_file
providers.is_local_module_file = lambda _file: False
"""Otherwise Hypothesis draws constants of the modules imported so far, which differ with the order
of the tests, and a seed draws other cases in each run.
"""

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a shell that starts us behind its back does that
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["COLUMNS"] = "100"
# Spark keeps something of each of the thousands of tables of a run: with 1 GB it collected garbage in the end.
os.environ.setdefault("SPARK_DRIVER_MEMORY", "2g")
"""Commands and pages wrap as in a pipe, whatever terminal runs the tests."""

os.environ.setdefault("ISOLITMUS_ENGINES", str(user_cache() / "engines"))
os.environ["XDG_CACHE_HOME"] = mkdtemp(prefix="isolitmus-cache-")
"""What tests keep is not the user's; engines are."""
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

gc.disable()


def pytest_addoption(parser):
    group = parser.getgroup("isolitmus")
    group.addoption(
        "--seed",
        metavar="N",
        help=(
            "the seed of all that is drawn: a number, or 'fresh' for a new one; default: that of"
            " tests/seed.txt"
        ),
    )
    group.addoption(
        "--whole",
        action="store_true",
        help="ask real engines about the whole catalogue, not about a sample",
    )
    group.addoption(
        "--record-durations",
        action="store_true",
        help="write the times of this run to tests/durations.csv",
    )
    group.addoption(
        "--record-runs",
        action="store_true",
        help="write what engines did in this run to conformance/evidence",
    )
    group.addoption(
        "--classes",
        metavar="FOLDER",
        help="ask Delta with this folder of classes about the litmus tests of proposals",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Decide the seed, once: the workers of pytest-xdist are given the options of whoever starts
    them.
    """
    options = config.option
    asked = options.seed or ("fresh" if PROFILE == "thorough" else SEED.read_text("ascii").strip())
    if asked == "fresh":
        asked = str(secrets.randbelow(1_000_000_000))
    if not asked.isdecimal():
        raise pytest.UsageError(f"--seed is '{asked}'; expected an integer or 'fresh'")
    options.seed = asked
    if options.hypothesis_seed is None:
        options.hypothesis_seed = asked
    options.loadscopereorder = False  # the order of collection is that of durations
    assertions = Assertions()
    assertions.install()
    config.pluginmanager.register(assertions)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(record=options.record_durations))


def pytest_report_header(config):
    return f"seed: {config.option.seed} (--seed {config.option.seed} draws the same again)"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    return workers()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ModuleScheduling(config, log)


def pytest_collection_modifyitems(config, items):
    leave_out_undrawn(config, items)
    for item in items:
        if item.get_closest_marker("spark") and not needs_spark(item.nodeid.split("::", 1)[0]):
            raise pytest.UsageError(
                f"{item.nodeid} is marked spark; its module does not say mark.spark"
            )
    longest_first(items)
    name_engines(items)


def leave_out_undrawn(config, items):
    """Leave out what ``undrawn`` says; with ``--whole`` nothing, nor where tests are asked for by
    name.
    """
    from case_checks import undrawn  # not earlier: its assertions are rewritten

    if not config.option.whole and not any("::" in asked for asked in config.args):
        out = undrawn(items, int(config.option.seed))
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


def pytest_collection_finish():
    """What collection made stays until the end: nobody looks through it for what may go."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    gc.unfreeze()


@pytest.fixture(scope="session")
def seed(pytestconfig):
    """The seed of all that is drawn."""
    return int(pytestconfig.option.seed)


@pytest.fixture
def call(monkeypatch, capsys):
    """call(*words): the exit status, standard output and standard error of ``isolitmus WORDS``.

    In lines of so many ``columns``; by default sentences are not wrapped.
    """

    def call(*words, columns=10_000):
        monkeypatch.setattr(sys, "argv", ["isolitmus", *map(str, words)])
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return call


@pytest.fixture
def delta(tmp_path):
    """A builder of Delta logs: see ``Logs``."""
    return Logs(tmp_path)


@pytest.fixture(scope="session")
def logs_in():
    """As ``delta``, for a folder."""
    return Logs


class Logs:
    """Made-up logs of tables with the columns id and part, both INT; ``table(commit, …)`` writes
    one.

    A commit is a list of actions; version 0, with metadata and protocol, is made first.
    """

    def __init__(self, folder):
        self.folder = folder

    def table(self, *commits, name="t", level="WriteSerializable", partitioned=True, features=()):
        log = self.folder / name / "_delta_log"
        log.mkdir(parents=True)
        start = [self.info("CREATE TABLE", None, True, level), self.protocol(features)]
        start.append(self.metadata(level, partitioned=partitioned))
        for version, actions in enumerate([start, *commits]):
            self.write(log, version, actions)
        return log.parent

    @staticmethod
    def write(log, version, actions):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text(text, "utf-8")

    @staticmethod
    def protocol(features=()):
        fields = {"minReaderVersion": 3, "minWriterVersion": 7}
        readers = [feature for feature in features if feature not in ("appendOnly", "invariants")]
        return {"protocol": fields | {"readerFeatures": readers, "writerFeatures": [*features]}}

    @staticmethod
    def metadata(level=None, *, partitioned=True):
        columns = [{"name": n, "type": "integer", "metadata": {}} for n in ("id", "part")]
        schema = json.dumps({"type": "struct", "fields": columns})
        return {
            "metaData": {
                "schemaString": schema,
                "partitionColumns": ["part"] if partitioned else [],
                "configuration": {"delta.isolationLevel": level} if level else {},
            }
        }

    @staticmethod
    def info(operation, read, blind, level="WriteSerializable", **said):
        fields = {"operation": operation, "isBlindAppend": blind, "isolationLevel": level}
        fields |= {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0", "operationParameters": said}
        return {"commitInfo": fields | ({} if read is None else {"readVersion": read})}

    @staticmethod
    def add(path, part=0, ids=(1,), **more):
        low, high = min(ids, default=0), max(ids, default=0)
        stats = {"numRecords": len(ids), "minValues": {"id": low}, "maxValues": {"id": high}}
        stats |= {"nullCount": {"id": 0}}
        fields = {"path": path, "partitionValues": {"part": str(part)}, "dataChange": True}
        return {"add": fields | {"stats": json.dumps(stats)} | more}

    def remove(self, path, part=0, ids=(1,), **more):
        return {"remove": self.add(path, part, ids, **more)["add"]}

    def append(self, read, path, part=0, ids=(1,), **claims):
        """A blind append of one file."""
        return [self.info("WRITE", read, True, mode="Append", **claims), self.add(path, part, ids)]

    def delete(self, read, where, *files, level="WriteSerializable"):
        """A DELETE that removes whole files."""
        said = json.dumps([where] if where else [])
        info = self.info("DELETE", read, False, level, predicate=said)
        return [info, *(self.remove(f) for f in files)]


@pytest.fixture(scope="session")
def session():
    """One Spark session for the whole run."""
    with open_session(shared=True) as opened:
        yield opened
