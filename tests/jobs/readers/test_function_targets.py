"""Functions that ``--run`` names: their arguments, and what is wrong with them."""

import datetime as dt
from pathlib import Path

import pytest

from isolitmus.jobs.readers.function_targets import (
    FunctionTarget,
    check_function_names,
    read_function_target,
)
from isolitmus.model.errors import IsolitmusError


@pytest.fixture
def target(tmp_path, monkeypatch):
    """target(text, given): the function of ``--run``."""
    monkeypatch.chdir(tmp_path)

    def read(text, given):
        Path("job.py").write_text(text)
        return read_function_target(given)

    return read


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("", "job.py", "--run is 'job.py'; write FILE.py:FUNCTION"),
        ("", "job.sql:f", "--run is 'job.sql:f'; write FILE.py:FUNCTION"),
        ("", "job.py:f", "job.py has no function 'f'; it defines no function at its top"),
        ("def load(): pass", "job.py:lod", "job.py has no function 'lod'; did you mean 'load'?"),
        ("def f(:\n", "job.py:f", "job.py:1:7: not Python: "),
        ("x = 1\nasync def f(): pass", "job.py:f", "job.py:2: f is asynchronous"),
        (
            "def f(spark, day, *, n): pass",
            "job.py:f",
            "job.py:1: f also needs day and n; write 'job.py:f(day=…, n=…)'",
        ),
        ("def f(spark, a, n): pass", "job.py:f(1)", "job.py:1: f also needs n; write"),
        (
            "def f(day): pass",
            "job.py:f",
            (
                "job.py:1: f also needs day; write 'job.py:f(day=…)'; the SparkSession is passed to"
                " a parameter named spark"
            ),
        ),
        (
            "def f(spark, day): pass",
            "job.py:f(dya=1)",
            "job.py:1: f has no parameter 'dya'; did you mean 'day'?",
        ),
        (
            "def f(spark): pass",
            "job.py:f(day=1)",
            "job.py:1: f has no parameter 'day'; it has no parameters but the SparkSession",
        ),
        ("def f(spark, day, /): pass", "job.py:f(day=1)", "job.py:1: f has no parameter 'day'"),
        (
            "def f(spark, day): pass",
            "job.py:f(1, 2)",
            (
                "job.py:1: f takes 1 arguments (day) by position besides the SparkSession; 2 are"
                " given"
            ),
        ),
        ("def f(day): pass", "job.py:f(1, day=2)", "job.py:1: f gets day twice; give it once"),
        (
            "def f(day): pass",
            "job.py:f(today())",
            "--run is 'job.py:f(today())': the argument today() is not a value; write literals of",
        ),
        (
            "def f(day): pass",
            "job.py:f(x)",
            "--run is 'job.py:f(x)': the argument x is not a value",
        ),
        (
            "def f(day): pass",
            "job.py:f(date(2026, 13, 1))",
            "--run is 'job.py:f(date(2026, 13, 1))': month must be in 1..12",
        ),
        ("def f(day): pass", "job.py:f(1", "--run is 'job.py:f(1'; write FILE.py:FUNCTION or"),
        ("def f(day): pass", "job.py:f(1 2)", "--run is 'job.py:f(1 2)': invalid syntax"),
        (
            "def f(day): pass",
            "job.py:f(day=1, day=2)",
            "--run is 'job.py:f(day=1, day=2)': an argu",
        ),
        ("def f(): pass\0", "job.py:f", "job.py"),
        ("", "none.py:f", "cannot read none.py"),
    ],
)
def test_what_is_wrong_with_run(target, text, given, said):
    with pytest.raises(IsolitmusError) as caught:
        target(text, given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("definition", "call", "shown", "arguments"),
    [
        ("spark", "", "f", (["S"], {})),
        ("", "()", "f", ([], {})),
        ("spark, day, n=3", "('x')", "f(day='x', n=3)", (["S", "x"], {})),
        ("day, session, n=3", "('x', n=4)", "f(day='x', n=4)", (["x", "S"], {"n": 4})),
        ("day, spark, n", "('x', 5)", "f(day='x', n=5)", (["x", "S", 5], {})),
        (
            "day, *, spark_session",
            "(day='x')",
            "f(day='x')",
            ([], {"day": "x", "spark_session": "S"}),
        ),
        ("s: 'SparkSession', day", "(day='x')", "f(day='x')", (["S"], {"day": "x"})),
        ("spark, day", "(spark, [1, None])", "f(day=[1, None])", (["S", [1, None]], {})),
        (
            "spark, day=date.today()",
            "(day=datetime.date(2026, 1, 2))",
            "f(day=datetime.date(2026, 1, 2))",
            (["S"], {"day": dt.date(2026, 1, 2)}),
        ),
        ("spark, day=date.today()", "", "f(day=date.today())", (["S"], {})),
        ("spark, *days, **more", "(1, n=2)", "f(n=2, *days=(1,))", (["S", 1], {"n": 2})),
    ],
)
def test_arguments(target, definition, call, shown, arguments):
    found = target(f"def f({definition}): pass", f"job.py:f{call}")
    assert found.shown == shown
    assert found.arguments("S") == arguments


def test_the_name_of_a_job(target, tmp_path):
    text = "def f(n=1): pass"
    one = target(text, "job.py:f")
    two = target(text, "late=job.py:f(n=2)")
    assert (two.name, two.shown) == ("late", "late(n=2)")
    check_function_names([one, two])
    with pytest.raises(IsolitmusError, match=r"so write --run NAME=job.py:f for one of them"):
        check_function_names([one, two._replace(title="")])
    with pytest.raises(IsolitmusError, match="is not a name of a job"):
        check_function_names([FunctionTarget(tmp_path / "a.py", "é", 1, "")])
    folder = Path("a=b")
    folder.mkdir()
    Path("a=b/job.py").write_text(text)
    assert read_function_target("a=b/job.py:f").name == "f"
