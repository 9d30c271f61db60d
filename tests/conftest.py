"""What every test has in common: how hard Hypothesis tries (HYPOTHESIS_PROFILE), and the command line.

Tests that start a JVM are marked ``spark``, long ones ``slow``; `pytest -m "not spark"` runs on a
machine without Java. The default profile is deterministic: what passed passes again.
"""

import gc
import json
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from isolitmus.cli.main import main
from isolitmus.conformance import open_session

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    derandomize=False,
    max_examples=5000,
    print_blob=True,
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a shell that starts us behind its back does that
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()


def pytest_collection_finish():
    """What collection made stays until the end: nobody looks through it for what may go."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    gc.unfreeze()


@pytest.fixture
def call(monkeypatch, capsys):
    """call(*words): the exit status, standard output and standard error of ``isolitmus WORDS``."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", *map(str, words)])
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
    """Made-up logs of tables with the columns id and part, both INT; ``table(commit, …)`` writes one.

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
    with open_session() as opened:
        yield opened
