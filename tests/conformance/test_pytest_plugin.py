"""The pytest plugin: litmus files are tests, and what fails says why; with Spark, fixtures and
exported files.
"""

import subprocess
import sys

import pytest
from inner_runs import run_pytest, run_script

from isolitmus.conformance.delta import session as sessions
from isolitmus.conformance.python_export import export_tests
from isolitmus.specs import litmus, protocol

pytest_plugins = ["pytester"]

FILE = """
title = "Delete, insert"
schedule = "delete.start insert delete.commit"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]
[transactions]
delete = "DELETE FROM t WHERE part = 0"
insert = "INSERT INTO t VALUES (100, 0)"
"""
WRONG = """
[expect.delta-serializable]
outcome = { delete = "committed" }
"""
"""What Delta refuses."""
EXPECT = """
[expect.delta-serializable]
outcome = { delete = "ConcurrentAppendException" }
[expect.delta-write-serializable]
outcome = { delete = "aborted" }
"""


ABSTRACT = str(litmus("history-write-skew"))
SWAPPED = (
    ABSTRACT.replace("holds ", "fails_").replace("fails ", "holds ").replace("fails_", "fails ")
)

FILES = {
    "reorder": FILE + EXPECT,
    "silent": FILE,
    "columnless": FILE.replace("part = 0", "pat = 0") + EXPECT,
    "misspelled": FILE.replace("schedule", "shedule"),
    "abstract": ABSTRACT,
    "swapped": SWAPPED,
    "levelless": ABSTRACT[: ABSTRACT.index("[expect]")],
}


def write(files, folder):
    for name, text in files.items():
        (folder / f"{name}.litmus.toml").write_text(text, "utf-8")


@pytest.fixture
def tried(pytester):
    """tried(FILES, *words): what pytest says of a folder with litmus files by name, in a process of
    its own.
    """

    def run(files, *words):
        write(files, pytester.path)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words)

    return run


@pytest.mark.slow
def test_litmus_files_are_tests_and_what_fails_is_said_in_sentences(tried):
    """One for each protocol of which something is expected, one for the levels of an abstract
    history; what cannot be one is an error.
    """
    result = tried(FILES, "-v", "--continue-on-collection-errors")
    result.assert_outcomes(passed=2, failed=3, errors=3)
    result.stdout.fnmatch_lines_random(
        [
            "reorder.litmus.toml::delta-serializable?model? PASSED*",
            "reorder.litmus.toml::delta-write-serializable?model? FAILED*",
            "abstract.litmus.toml::levels PASSED*",
            "swapped.litmus.toml::levels FAILED*",
            "levelless.litmus.toml::levels FAILED*",
            "silent.litmus expects nothing under any protocol*",
            "*transaction delete:1:21: unknown column 'pat'*",
            "misspelled.litmus.toml:3: *shedule*",
            "FAILED: expected * by *, got *:",
            "swapped.litmus: 2 transactions*",
            "levelless.litmus.toml names no level*",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "reorder.litmus: Delete, insert",
            "on model (*) under delta-write-serializable:",
            "  delete: expected aborted, got committed",
            "  delete  ├───────┤   reads version 0, commits version 2",
            "  The final table equals that of the serial order delete → insert.",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "site-packages" not in result.stdout.str()


@pytest.mark.slow
def test_a_file_that_the_engine_cannot_carry_out_is_an_error_of_a_sentence(tried):
    result = tried({"scans": str(litmus("scan-twice"))}, "--isolitmus-engine", "delta")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*has format locking*"])
    assert "site-packages" not in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--isolitmus-engine", "model,spork"), ()])
def test_an_engine_that_is_none_is_told_before_any_test(tried, pytester, words):
    """In the configuration, too."""
    if not words:
        pytester.makeini("[pytest]\nisolitmus_engine = spork\n")
    result = tried({"reorder": FILE}, *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: unknown engine 'spork'; known: *"])


RACES = """
import pytest
from hypothesis import given, settings

from isolitmus.checker.strategies import litmus_tests
from isolitmus.conformance import interleave
from isolitmus.conformance.agreement import find_differences
from isolitmus.conformance.delta.engine import open_delta
from isolitmus.specs import protocol

EVENTS = "CREATE TABLE events (id INT, day INT) USING delta PARTITIONED BY (day)"


@pytest.fixture
def events(delta_spark):
    delta_spark.sql(EVENTS)
    delta_spark.sql("INSERT INTO events VALUES (1, 2), (2, 3)")
    delta_spark.sql("CREATE TEMPORARY VIEW seen AS SELECT 1")
    delta_spark.conf.set("spark.sql.files.maxRecordsPerFile", "1")
    delta_spark.conf.set("mine", "1")
    assert {table.name for table in delta_spark.catalog.listTables()} == {"events", "seen"}
    return "events"


@settings(max_examples=2, deadline=None)
@given(litmus_tests(table=EVENTS, statements=["DELETE FROM events", "INSERT INTO events VALUES (1, 2)"]))
def test_drawn(delta_session, test):
    assert find_differences(test, protocol("delta-serializable"), open_delta(delta_session)) == ()


def test_fails(delta_spark, delta_race, events):
    def cleanup():
        delta_spark.sql("DELETE FROM events WHERE day = 3")

    run = delta_race(events)
    waiting = run.park(cleanup)
    delta_spark.sql("INSERT INTO events VALUES (7, 3)")
    left = run.park("DELETE FROM events WHERE day = 2", "left")
    ending = waiting.release()
    assert ending.committed, ending


def test_level(delta_level, delta_race, events):
    delta_level(events, "WriteSerializable")
    run = delta_race(events)
    waiting = run.park("DELETE FROM events WHERE day = 3", "cleanup")
    run.sql("INSERT INTO events VALUES (7, 3)")
    ending = waiting.release()
    ending.raise_if_conflict()
    assert ending.committed, ending


def test_raises(delta_spark, delta_race, events):
    run = delta_race(events)
    waiting = run.park("DELETE FROM events WHERE day = 3", "cleanup")
    run.sql("INSERT INTO events VALUES (7, 3)")
    waiting.release().raise_if_conflict()


def test_what_tests_made_is_gone(delta_spark):
    assert delta_spark.sql("SHOW TABLES").count() == 0
    assert delta_spark.conf.get("mine", "gone") == "gone"
    assert delta_spark.conf.get("spark.sql.files.maxRecordsPerFile") == "0"
    assert delta_spark.catalog.listTables() == []
    assert delta_spark.range(3).count() == 3


def test_interleaved(delta_spark, events):
    delta_spark.sql("CREATE TABLE totals (n INT) USING delta")
    delta_spark.sql("INSERT INTO totals VALUES (1)")
    found = interleave(delta_spark, "totals", "UPDATE totals SET n = n + 1", "DELETE FROM totals WHERE n = 1")
    assert not found.failed, found
"""
SAID = [
    "*AssertionError: cleanup read version 1 and ended with ConcurrentAppendException *",
    "*- race for events -*",
    "cleanup *├───────────┤ *reads version 1, aborts with ConcurrentAppendException",
    "version 2 (WRITE) *● *commits version 2",
    "left *● *reads version 2, parked",
    "cleanup read version 1 and ended with ConcurrentAppendException *",
    "  concurrent commit: version 2 (WRITE: 1 file added in day=3, a blind append)",
    "  *Transaction conflict detected*",
    "*ConcurrentAppendException: *",
    "*- interleaving totals -*",
    (
        "update and delete on totals: 4 interleavings, each final table equals that of a serial"
        " order; in 2 of them a job fails"
    ),
    "update.start delete update.commit",
]
REFUSED = [
    "on delta (*) under delta-serializable:",
    "  delete: expected committed, got ConcurrentAppendException*",
    "  delete *├───────┤ *reads version 0, aborts with ConcurrentAppendException",
    (
        "  delete conflicts with insert, because delete read version 0, before insert committed"
        " version 1, *"
    ),
    (
        "  delete failed with ConcurrentAppendException:"
        " *DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT* Transaction conflict detected.*"
    ),
]


EXPORTED = (
    "reorder", "write-skew-two-tables", "parked-update-torn-read", "statements-that-fail", "reorder-reader",
    "two-deletes-one-row-files", "vacuum-beside-writers",
)  # fmt: skip


def at_write_serializable(names):
    return [(test, protocol("delta-write-serializable")) for test in map(litmus, names)]


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_races_litmus_files_and_exported_tests_in_one_run(tmp_path):
    """All on one Spark, here that of all tests: fixtures give back what they have changed."""
    (tmp_path / "test_races.py").write_text(RACES, "utf-8")
    cases = at_write_serializable(EXPORTED)
    (tmp_path / "test_exported.py").write_text(export_tests(cases, "pytest"), "utf-8")
    write({"reorder": FILE + EXPECT, "refused": FILE + WRONG}, tmp_path)
    result = run_pytest(
        tmp_path, "-p", "no:cacheprovider", "--isolitmus-engine", "delta,model", "-v"
    )
    said_of_races(result, len(cases))


@pytest.mark.spark
@pytest.mark.wide
def test_a_run_of_pytest_starts_one_spark_and_ends_it(tried, pytester):
    """As a process: it starts Spark once for all, and nothing of it stays behind."""
    pytester.makepyfile(test_races=RACES)
    cases = at_write_serializable(EXPORTED[:1])
    (pytester.path / "test_exported.py").write_text(export_tests(cases, "pytest"), "utf-8")
    files = {"reorder": FILE + EXPECT, "refused": FILE + WRONG}
    said_of_races(tried(files, "--isolitmus-engine", "delta,model", "-v"), len(cases))


def said_of_races(result, exported_tests):
    result.stdout.fnmatch_lines(SAID)
    result.stdout.fnmatch_lines(
        [
            "reorder.litmus.toml::delta-serializable?delta? PASSED*",
            "reorder.litmus.toml::delta-write-serializable?delta? FAILED*",
        ]
    )
    result.stdout.fnmatch_lines(["*delete: expected aborted, got committed*"])
    result.stdout.fnmatch_lines(REFUSED)
    result.assert_outcomes(passed=5 + exported_tests, failed=7)


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_second_session_is_refused_with_what_to_do(tmp_path, monkeypatch):
    """The session of all tests, once it is not shared, is one that the user's suite has started."""
    monkeypatch.setattr(sessions, "_shared", [])
    (tmp_path / "test_two.py").write_text("def test_two(delta_spark): pass\n", "utf-8")
    result = run_pytest(tmp_path, "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(
        "*another Spark session is open in this Python process;"
        "*define a fixture delta_spark that returns it*"
    )
    result.assert_outcomes(errors=1)


@pytest.fixture
def script(tmp_path):
    """A script that needs PySpark and Delta alone, with four races."""
    file = tmp_path / "races.py"
    text = export_tests(at_write_serializable(EXPORTED[:4]), "pyspark")
    file.write_text(text, "utf-8")
    assert "isolitmus" not in text.split('"""', 2)[2]
    return file


@pytest.mark.spark
def test_an_exported_script_races_as_expected(script, session, monkeypatch):
    """In the session of all tests, which its builder gets and its end must not stop. That the
    builder makes one of PySpark and Delta alone is the next test's.
    """
    monkeypatch.setattr(type(session.spark), "stop", lambda _: None)
    before = {name for (name,) in session.spark.sql("SHOW DATABASES").collect()}
    try:
        status, out, err = run_script(script)
    finally:
        for (name,) in session.spark.sql("SHOW DATABASES").collect():
            if name not in before:
                session.spark.sql(f"DROP DATABASE {name} CASCADE")
    assert (status, err) == (0, ""), out
    assert out.splitlines()[-1] == "all passed"


@pytest.mark.spark
@pytest.mark.wide
def test_an_exported_script_needs_nothing_of_ours(script):
    """As a process: it starts Spark by itself, with the confs that it has written down."""
    done = subprocess.run(
        [sys.executable, "-P", script], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all passed"
