"""What a partition column keeps of odd values: the model, DuckDB and real Delta agree, by whatever
command they come.
"""

from contextlib import closing

import pytest
from case_checks import PARTS, sample, sampled

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.conformance.engines import run_cases
from isolitmus.model.errors import IsolitmusError, UndeterminedError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

TEXTS = (
    "", " ", "a ", " a", "A", "a", "%41", "a%2Fb", "a/b", "a=b", "a:b", "__HIVE_DEFAULT_PARTITION__", "null", "NULL",
    "é", "e\u0301", '"', "it''s", "{x}", ".", "..", "a" * 200, "1", "01", "\U0001f600", "#", "a?b", "a*b", "[x]", "^",
)  # fmt: skip
VALUES = {
    "STRING": [f"'{text}'" for text in TEXTS],
    "INT": ["-2147483648", "0", "2147483647"],
    "BIGINT": ["-9223372036854775807", "9223372036854775807"],
    "DATE": [
        f"DATE '{day}'"
        for day in ("0001-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "9999-12-31")
    ],
    "TIMESTAMP": [
        f"TIMESTAMP '{at}'"
        for at in (
            "2026-01-01 10:20:30.5",
            "2026-01-01 10:20:30.123456",
            "1800-01-01 00:00:00",
            "1970-01-01 00:00:00",
        )
    ],
    "BOOLEAN": ["TRUE", "FALSE"],
    "DOUBLE": [f"CAST('{number}' AS DOUBLE)" for number in ("0.0", "1e300", "0.1", "-2.5", "1e-7")],
    "DECIMAL(10,2)": ["1.1", "1.10", "-1.00", "0.00", "99999999.99"],
}
CASES = [(type_, value) for type_, values in VALUES.items() for value in values]
"""57 values."""
WRITES = {
    "insert": "INSERT INTO t VALUES (1, {})",
    "update": "UPDATE t SET p = {} WHERE id = 0",
    "merge": (
        "MERGE INTO t USING (SELECT 2 AS id, CAST({} AS {type}) AS p) AS s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, s.p)"
    ),
}
READS = {
    "found": "DELETE FROM t WHERE p = {} AND id = 1",
    "absent": "DELETE FROM t WHERE p IS NULL AND id = 2",
    "overwrite": "INSERT OVERWRITE t SELECT id, p FROM t WHERE p IS NULL OR p = {}",
}
FRAME = """[transactions.frame]
write = 'append'
query = '''SELECT 3, CAST({} AS {type})'''
"""


def _tests(type_, value, frame=FRAME):
    """A test of writes, the last by a DataFrame (``frame``), and one of reads."""
    rows = f"(0, NULL), (1, {value}), (2, {value}), (3, {value})"
    for commands, more, init in ((WRITES, frame, "(0, NULL)"), (READS, "", rows)):
        sql = {name: text.format(value, type=type_) for name, text in commands.items()}
        written = "\n".join(f"{name} = '''{text}'''" for name, text in sql.items())
        schedule = " ".join([*sql, *(["frame"] if more else [])])
        yield read_litmus(
            f"""
            title = "An odd value in a partition column"
            schedule = "{schedule}"
            [table]
            columns = "id INT, p {type_}"
            partitioned_by = ["p"]
            init = ['''INSERT INTO t VALUES {init}''']
            [transactions]
            {written}
            {more.format(value, type=type_)}
            """,
            "odd",
        )


@sampled
def test_two_executors_agree(seed, whole):
    """The model and DuckDB give the same tables in every serial order."""
    spec = protocol("delta-serializable")
    for type_, value in sample(CASES, seed, whole):
        for test in _tests(type_, value):
            done = run(test, spec)  # two executors explain it, or it fails
            assert {t.outcome for t in done.run.transactions.values()} <= {"committed", "no-op"}
            assert done.serial.orders, value


@pytest.mark.spark
@sampled
def test_delta_keeps_what_the_model_does(session, seed, whole):
    """Every value, by SQL and by a DataFrame: the tables, the logs and the outcomes. A sample is a
    tenth.
    """
    spec = protocol("delta-serializable")
    every = [(t, spec) for case in CASES for t in _tests(*case)]
    cases = sample(every, seed, whole, parts=2 * PARTS)
    assert len(cases) > 10
    assert [
        str(found) for found in find_mismatches(cases, open_delta(session), DELTA.at_once)
    ] == []


NULLS = ("''", "'__HIVE_DEFAULT_PARTITION__'")
RS = protocol("delta-rs-serializable")


@pytest.mark.deltalake
@pytest.mark.slow
@sampled
def test_delta_rs_keeps_what_the_model_does(seed, whole):
    """Every value of the types that it is asked with: outcomes, and the tables of every version."""
    types = ("STRING", "INT", "BIGINT", "DATE", "BOOLEAN")
    cases = [case for case in CASES if case[0] in types and case[1] not in NULLS]
    tests = [t for case in sample(cases, seed, whole) for t in _tests(*case, frame="")]
    assert len(tests) > 10
    with closing(run_cases("deltalake", [(test, RS) for test in tests])) as answers:
        found = [run_differences(run(t, RS).run, a) for t, a in zip(tests, answers, strict=True)]
    assert [*filter(None, found)] == []


NULL = """
title = "A text that is NULL to Spark"
schedule = "a"
[table]
columns = "id INT, p STRING"
partitioned_by = ["p"]
init = ['''INSERT INTO t VALUES (0, {first})''']
[transactions]
a = '''{sql}'''
"""
MORE = {
    "overwrite": "INSERT OVERWRITE t VALUES (1, {})",
    "partition": "INSERT INTO t PARTITION (p = {}) VALUES (1)",
    "init": "DELETE FROM t",
}


@pytest.mark.parametrize("text", NULLS)
@pytest.mark.parametrize("how", [*WRITES, *MORE])
def test_a_text_that_is_null_to_spark_alone_is_not_modelled_for_delta_rs(how, text):
    sql = (WRITES | MORE)[how].format(text, type="STRING")
    test = read_litmus(NULL.format(first=text if how == "init" else "'x'", sql=sql), "null")
    assert run(test, protocol("delta-serializable")).run.transactions["a"].outcome == "committed"
    with pytest.raises(UndeterminedError, match=f"{text} in partition column 'p' is not modelled"):
        run(test, RS)


@pytest.mark.deltalake
@pytest.mark.slow
def test_delta_rs_keeps_an_empty_text_until_it_compacts():
    """Seen on the real one: why it is not modelled."""
    two = NULL.replace('"a"', '"a optimize"').format(first="''", sql="INSERT INTO t VALUES (1, '')")
    test = read_litmus(f'{two}optimize = "OPTIMIZE t"\n', "null")
    with closing(run_cases("deltalake", [(test, RS)])) as answers:
        (seen,) = answers
    kept, compacted = (version["t"] for version in seen.versions[-2:])
    assert (kept, compacted) == (((0, ""), (1, "")), ((0, None), (1, None)))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("STRING", f"'{'a' * 300}'"),
        *(("DOUBLE", f"CAST('{n}' AS DOUBLE)") for n in ("-0.0", "NaN")),
    ],
)
def test_other_values_are_not_modelled(type_, value):
    """A text that no folder is called is up to the file system; -0.0 has a partition of its own,
    and is 0.0.
    """
    with pytest.raises(IsolitmusError, match=r"not modelled|NaN"):
        execute(next(_tests(type_, value)), protocol("delta-serializable"))
