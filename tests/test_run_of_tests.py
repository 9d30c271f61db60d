"""The run of the tests itself: one seed for all that is drawn, no test without an assertion, times
by module.
"""

import csv
import importlib
from types import SimpleNamespace

import durations
import pytest
from case_checks import undrawn
from durations import Durations, ModuleScheduling, longest_first, needs_spark
from hypothesis import given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

pytest_plugins = ["pytester"]

CONFTEST = """
from assertions import Assertions

def pytest_configure(config):
    assertions = Assertions()
    assertions.install()
    config.pluginmanager.register(assertions)
"""
TESTS = """
import pytest
from hypothesis import given
from hypothesis import strategies as st

def test_loop_over_nothing():
    for case in []:
        assert case

def test_loop():
    for case in [1]:
        assert case

def test_error():
    with pytest.raises(ZeroDivisionError):
        1 // 0

@given(st.integers(0, 1_000_000))
def test_premise_that_hardly_ever_holds(n):
    if n == 7:
        assert n

@given(st.integers(0, 1_000_000))
def test_premise_that_holds_often(n):
    if n % 2 == 0:
        assert n + 1
"""


@pytest.mark.slow
def test_a_test_that_reaches_no_assertion_fails(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(durations.ROOT / "tests"))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    options = (
        "-o",
        "enable_assertion_pass_hook=true",
        "--hypothesis-seed=1",
        "-p",
        "no:cacheprovider",
    )
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_loop_over_nothing*",
            "no assertion was reached",
            "*test_premise_that_hardly_ever_holds*",
            "*",
        ]
    )


@pytest.fixture
def tracked(monkeypatch, tmp_path):
    """tracked(SECONDS by module): the tracked times, for this test."""

    def write(seconds):
        rows = "".join(f"{module},{count},abc\n" for module, count in seconds.items())
        (tmp_path / "durations.csv").write_text(f"module,seconds,commit\n{rows}")
        monkeypatch.setattr(durations, "TRACKED", tmp_path / "durations.csv")
        durations.tracked.cache_clear()

    yield write
    durations.tracked.cache_clear()


SPARK, HOUSE = "tests/conformance/test_catalogue.py", "tests/test_house.py"
NAMES = "tests/test_names.py"


def test_modules_with_spark_come_first_and_then_the_longest(tracked):
    tracked({SPARK: 1, HOUSE: 2, NAMES: 3})
    assert [needs_spark(module) for module in (SPARK, HOUSE)] == [True, False]
    items = [SimpleNamespace(nodeid=f"{module}::test") for module in (HOUSE, NAMES, SPARK)]
    longest_first(items)
    assert [item.nodeid.split("::")[0] for item in items] == [SPARK, NAMES, HOUSE]


@pytest.mark.parametrize("first", [0, 35])
def test_five_seeds_in_a_row_draw_each_test_that_is_marked_so(first):
    def item(path, name, *, drawn):
        return SimpleNamespace(path=path, name=name, get_closest_marker=lambda _: drawn)

    items = [item(path, k, drawn=k < 7) for path in (SPARK, HOUSE) for k in range(9)]
    out = [undrawn(items, seed) for seed in range(first, first + 5)]
    for one in items:
        assert sum(one in each for each in out) == (4 if one.get_closest_marker("drawn") else 0)
    for each in out:
        assert {5, 6} >= {sum(one.path == path for one in each) for path in (SPARK, HOUSE)}


def test_one_worker_has_all_modules_with_spark():
    scope = ModuleScheduling._split_scope
    assert scope(None, f"{SPARK}::test_a[1]") == "spark"
    assert scope(None, f"{HOUSE}::test_a[x::y]") == HOUSE


def report(module, seconds, when="call", engines=(), note=None):
    said = [("engines", engines), *([("note", note)] if note else [])]
    return SimpleNamespace(
        nodeid=f"{module}::test", duration=seconds, when=when, user_properties=said
    )


def test_a_module_that_takes_twice_its_time_is_reported(tracked):
    tracked({HOUSE: 10, NAMES: 0.1})
    seen = Durations(record=False)
    for module, seconds in ((HOUSE, 10), (HOUSE, 11), (NAMES, 1)):
        seen.pytest_runtest_logreport(report(module, seconds))
    assert seen.doubled() == [HOUSE]


def test_the_end_of_a_run_has_modules_engines_and_notes(tracked):
    tracked({HOUSE: 10})
    seen, lines = Durations(record=False), []
    seen.pytest_runtest_logreport(report(HOUSE, 30))
    seen.pytest_runtest_logreport(report(SPARK, 40, engines=("spark",)))
    seen.pytest_runtest_logreport(report(SPARK, 1, "teardown", ("spark",), "asked about 3 cases"))
    terminal = SimpleNamespace(
        section=lines.append, write_line=lambda line, **_: lines.append(line)
    )
    seen.pytest_terminal_summary(terminal)
    assert lines == [
        "time by module and engine",
        f"    41.0 s  {SPARK}",
        f"    30.0 s  {HOUSE}, tracked 10.0 s",
        "    41.0 s  spark: 1 test",
        "    30.0 s  no engine: 1 test",
        "asked about 3 cases",
        f"warning: {HOUSE} took 30.0 s, tracked are 10.0 s",
    ]


def test_times_are_recorded_and_modules_that_did_not_run_keep_theirs(tracked):
    tracked({HOUSE: 10, NAMES: 3, "gone": 5})
    seen = Durations(record=True)
    seen.pytest_runtest_logreport(report(HOUSE, 12.34))
    seen.write()
    with durations.TRACKED.open(encoding="utf-8", newline="") as lines:
        rows = {row["module"]: row for row in csv.DictReader(lines)}
    assert {module: row["seconds"] for module, row in rows.items()} == {HOUSE: "12.3", NAMES: "3"}
    assert rows[NAMES]["commit"] == "abc" != rows[HOUSE]["commit"]


def test_the_seed_is_one_number_and_hypothesis_has_it(pytestconfig, seed):
    assert str(seed) == pytestconfig.option.seed
    assert int(pytestconfig.option.hypothesis_seed) >= 0
    text = (durations.ROOT / "tests" / "seed.txt").read_text("ascii")
    assert text == f"{int(text)}\n"


def test_a_seed_draws_the_same_whatever_modules_are_there(tmp_path, monkeypatch):
    """Hypothesis would take the constants of the project's modules that are imported by then."""
    drawn = [_drawn() for _ in range(2)]
    (tmp_path / "constants_of_a_module.py").write_text(f"KNOWN = {[*range(200, 20_000, 70)]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("constants_of_a_module")
    assert drawn == [_drawn() for _ in range(2)] == [drawn[0]] * 2


def _drawn():
    found = []

    @hypothesis_seed(7)
    @settings(max_examples=100)
    @given(st.permutations(range(30)), st.integers(0, 10**5))
    def draw(order, number):
        found.append((order, number))

    draw()
    return found
