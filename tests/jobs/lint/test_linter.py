"""The linter finds what `predict` and `robust` say, whatever tables are called, and from a cache."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isolitmus.jobs.lint.answer_cache import AnswerCache
from isolitmus.jobs.lint.job_answers import JobAnswers
from isolitmus.jobs.lint.linter import lint_workload
from isolitmus.jobs.lint.structure_keys import QuestionKeys
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.lint_settings import LintSettings
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.specs import protocol

STATEMENTS = (
    "INSERT INTO {a} VALUES (:k, :p)",
    "INSERT INTO {a} SELECT k, p FROM {b} WHERE p = :p",
    "DELETE FROM {a} WHERE p = :p",
    "DELETE FROM {a} WHERE p = 1 AND k > 0",
    "DELETE FROM {a} WHERE p = 2 AND k > 0",
    "UPDATE {a} SET k = k + 1 WHERE p = :p",
    "OPTIMIZE {a}",
    "SELECT k FROM {b} WHERE p = :p",
)
TABLES = ("t", "u", "v")
JOBS = st.lists(
    st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(TABLES), st.sampled_from(TABLES)),
    min_size=1,
    max_size=4,
)
LESS = max(1, settings.default.max_examples // 3)
"""Examples of the laws that ask a solver about each."""


def texts(jobs, names=TABLES):
    """A workload of jobs j0, j1, … on three tables with these names."""
    called = dict(zip(TABLES, names, strict=True))
    ddl = ", ".join(
        f'"CREATE TABLE {name} (k INT, p INT) USING delta PARTITIONED BY (p)"' for name in names
    )
    return f"ddl = [{ddl}]\n" + "".join(
        f'[jobs.j{n}]\nsql = "{sql.format(a=called[a], b=called[b])}"\n'
        for n, (sql, a, b) in enumerate(jobs)
    )


def writes(work):
    return any(getattr(one.statement, "target", None) for one in work.statements)


@pytest.mark.slow
@settings(max_examples=LESS)
@given(JOBS, st.sampled_from(("delta-serializable", "delta-write-serializable")))
@example([(STATEMENTS[1], "t", "u"), (STATEMENTS[1], "u", "t")], "delta-serializable")
@example([(STATEMENTS[1], "t", "u"), (STATEMENTS[2], "u", "t")], "delta-serializable")
def test_pairs_are_those_of_predict(jobs, under):
    """Also those that the linter does not ask about, as they have no table in common."""
    work = read_workload(texts(jobs), "w")
    cache = AnswerCache(None)
    answers = JobAnswers(work, protocol(under), cache)
    found = {
        (one.loser, one.winner): one for a, b in answers.pairs() for one in answers.meetings(a, b)
    }
    again = JobAnswers(work, protocol(under), cache)
    assert [m for a, b in again.pairs() for m in again.meetings(a, b)] == [
        m for a, b in again.pairs() for m in again.meetings(a, b)
    ]
    assert again.asked == 0
    expected = predict_workload(work, under).meetings if writes(work) else ()
    assert found.keys() <= {(one.loser, one.winner) for one in expected}
    for one in expected:
        here = found.get((one.loser, one.winner))
        if here is None:
            assert one.word == "never"
        else:
            assert (here.word, here.condition, here.certain) == (
                one.word,
                one.condition,
                one.certain,
            )
            assert here.exceptions == one.exceptions


@pytest.mark.slow
@settings(max_examples=LESS)
@given(JOBS)
@example([(STATEMENTS[1], "t", "u"), (STATEMENTS[1], "u", "t")])
def test_promises_are_those_of_robust(jobs):
    """Of all jobs at once, while the linter asks about those that share a table."""
    work = read_workload(texts(jobs), "w")
    under = protocol("delta-serializable")
    (whole,) = decide_all(work, (under,), ("write-serializable",))
    codes = {
        one.code
        for one in lint_workload(work, under, LintSettings(root=work.path)).findings
        if one.violation or one.code == "ISO303"
    }
    expected = {"safe": set(), "unknown": {"ISO303"}, "unsafe": {"ISO301"}}[whole.word]
    if whole.word == "unsafe" and whole.seen != "unsafe":
        expected = {"ISO303"}
    elif whole.word == "unsafe" and whole.not_null:
        expected = {"ISO304"}
    assert codes == expected


def keys_of(text):
    work = read_workload(text, "w")
    known = {name.lower(): name for name in work.tables}
    tables = {one.name: one.named_tables(known) for one in work.statements}
    keys = QuestionKeys(work, protocol("delta-serializable"), tables)
    return [keys.pair(a, b) for a in work.statements for b in work.statements]


@given(JOBS, st.permutations(("left_one", "o", "zz")))
def test_a_key_does_not_depend_on_names_of_tables(jobs, names):
    assert keys_of(texts(jobs)) == keys_of(texts(jobs, names))
    assert None not in keys_of(texts(jobs))


@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("DELETE FROM t WHERE k = 1", "DELETE FROM t WHERE k = 2"),
        ("DELETE FROM t WHERE k = 1", "DELETE FROM t WHERE p = 1"),
        ("DELETE FROM t WHERE s = 't'", "DELETE FROM t WHERE s = 'u'"),
        ("DELETE FROM t WHERE k = :k", "DELETE FROM t WHERE k = :p"),
        ("INSERT INTO t SELECT * FROM u", "INSERT INTO t SELECT * FROM t"),
        ("DELETE FROM t WHERE k IN (1, 2)", "DELETE FROM t WHERE k IN (1, 3)"),
    ],
)
def test_a_key_depends_on_everything_else(sql, other):
    columns = "(k INT, p INT, s STRING) USING delta"
    ddl = f'ddl = ["CREATE TABLE t {columns}", "CREATE TABLE u {columns}"]\n'
    (one,), (two,) = (keys_of(f'{ddl}[jobs.j]\nsql = "{text}"') for text in (sql, other))
    assert one != two
    assert one is not None


@pytest.mark.parametrize(
    "more",
    [
        'distinct = ["k"]',
        'shared = { k = "INT" }',
        '[jobs.j]\nsql = "DELETE FROM t WHERE k = :k"\nwhere = "k > 1"',
        'ddl = "CREATE TABLE t (k BIGINT, p INT) USING delta"',
        'ddl = "CREATE TABLE t (k INT, p INT) USING delta PARTITIONED BY (k)"',
    ],
)
def test_a_key_depends_on_the_workload(more):
    parts = {
        "ddl": 'ddl = "CREATE TABLE t (k INT, p INT) USING delta"',
        "jobs": '[jobs.j]\nsql = "DELETE FROM t WHERE k = :k"',
    }
    plain = keys_of("\n".join(parts.values()))
    changed = {**parts, "ddl" if more.startswith("ddl") else "jobs": more}
    text = "\n".join(changed.values())
    if not more.startswith(("ddl", "[")):
        text = "\n".join((more, *parts.values()))
    assert keys_of(text) != plain


@pytest.mark.slow
def test_two_tables_with_the_same_jobs_are_asked_about_once():
    jobs = [(sql, table, table) for table in TABLES for sql in STATEMENTS[2:5]]
    work = read_workload(texts(jobs), "w")
    done = lint_workload(work, "delta-serializable", LintSettings(root=work.path))
    one = read_workload(texts(jobs[:3]), "w")
    alone = lint_workload(one, "delta-serializable", LintSettings(root=one.path))
    assert (done.asked, len(done.findings)) == (alone.asked, 3 * len(alone.findings))
    assert done.cached == 2 * alone.asked + alone.cached * 3


@pytest.mark.parametrize("cut", ["current_date()", "add_months(current_date(), -1)"])
def test_an_answer_from_the_cache_names_its_own_statements(cut):
    """Also beside a parameter that has no name of its own."""
    jobs = "".join(
        f'[jobs.{name}_{table}]\nsql = "{sql.format(table=table, cut=cut)}"\n'
        for table in ("t", "u")
        for name, sql in (
            ("erase", "DELETE FROM {table} WHERE day < {cut}"),
            ("load", "INSERT INTO {table} VALUES (1, :day)"),
        )
    )
    ddl = ", ".join(
        f'"CREATE TABLE {table} (id INT, day DATE) USING delta PARTITIONED BY (day)"'
        for table in ("t", "u")
    )
    work = read_workload(f"ddl = [{ddl}]\n{jobs}", "jobs")
    answers = JobAnswers(work, protocol("delta-serializable"), AnswerCache(None))
    by_name = {one.name: one for one in work.statements}
    for table in ("t", "u"):
        pair = by_name[f"erase_{table}"], by_name[f"load_{table}"]
        conditions = [each for one in answers.meetings(*pair) for each in one.condition]
        assert conditions == [f"erase_{table}'s {cut} is above load_{table}'s :day"]
    assert answers.cached
