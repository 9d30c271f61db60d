"""Safe jobs are safe, in every search; what is not safe has a test that shows it
(docs/semantics.md, 3.4).
"""

from __future__ import annotations

import re

import pytest
import z3
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.questions import cycle_patterns as dangers
from isolitmus.jobs.questions.counterexamples import keeping_orders
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.robustness import across_words, robust_lines
from isolitmus.jobs.robust.repairs import find_repairs
from isolitmus.jobs.robust.robustness import PROMISES, decide_all, decide_robustness
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.parameters import bind_text

WRITE, LOG = "write-serializable", "log-serializable"
WEAK = "delta-write-serializable"
TABLE = '[table]\ncolumns = "id INT, x INT, part INT"\npartitioned_by = ["part"]\n'
STATEMENTS = {
    "ingest": "INSERT INTO t VALUES (:k, 1, :p)",
    "cleanup": "DELETE FROM t WHERE part = :p",
    "erase": "DELETE FROM t WHERE id = :k AND part = :p",
    "report": "INSERT INTO t SELECT 0, sum(x), 9 FROM t WHERE part = :p",
    "total": "INSERT INTO t SELECT 0, sum(x), :p FROM t WHERE part = :p",
    "raise": "UPDATE t SET x = x + 1 WHERE part = :p",
    "upsert": (
        "MERGE INTO t USING (SELECT :k AS id, :p AS part) AS s ON t.id = s.id AND t.part = :p WHEN"
        " MATCHED THEN UPDATE SET x = 5 WHEN NOT MATCHED THEN INSERT (id, x, part) VALUES (s.id, 7,"
        " s.part)"
    ),
    "compact": "OPTIMIZE t WHERE part = :p",
    "blank": "INSERT OVERWRITE t SELECT id, 0, part FROM t",
}
SETS = (
    ("ingest", "cleanup"),
    ("ingest", "cleanup", "report"),
    ("ingest", "cleanup", "total"),
    ("ingest", "upsert", "compact"),
    ("ingest", "raise"),
    ("erase", "report", "compact"),
    ("ingest", "erase", "blank"),
)


def jobs(names, more=""):
    text = TABLE
    for name in names:
        used = [p for p in "kp" if f":{p}" in STATEMENTS[name]]
        types = ", ".join(f'{p} = "INT"' for p in used)
        text += f'[jobs.{name}]\nsql = "{STATEMENTS[name]}"\nparameters = {{ {types} }}\n{more}\n'
    return read_workload(text, "jobs")


def word(names, promise, under=WEAK):
    return decide_robustness(jobs(names), protocol(under), promise)


@pytest.mark.slow
def test_serializable_is_safe_without_untracked_reads():
    """Theorem 5, for these jobs: nothing goes back."""
    under = protocol("delta-serializable")
    answers = list(decide_all(jobs(tuple(STATEMENTS)), (under,), PROMISES))
    assert [(one.promise, one.word) for one in answers] == [(p, "safe") for p in PROMISES]
    assert all(set(one.lemmas) == {"nothing goes back"} for one in answers)


@pytest.mark.slow
def test_the_hole_is_found():
    """The clean-up, the late order and the report (Theorem 6): no order gives the table."""
    found = word(("ingest", "cleanup", "report"), WRITE)
    assert (found.word, found.seen, found.worst.serial) == ("unsafe", "unsafe", ())
    assert {one.name for one in found.worst.danger.members} == {"ingest", "report", "cleanup"}
    again = read_litmus(str(found.worst.test), "again")
    judged = run(again, protocol(WEAK))
    assert judged.serial.orders == ()
    assert isinstance(judged.levels[WRITE], Forbidden)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("ingest", "cleanup"), "safe"),
        (("ingest", "raise"), "safe"),
        (("ingest", "upsert", "compact"), "safe"),
        (("erase", "report", "compact"), "safe unless NULL"),
    ],
)
def test_two_that_may_meet_a_row_are_safe(names, said):
    """At WriteSerializable only what is built on a blind append in between can break the order of
    writers. A report about a part that is NULL is one: Spark plans no scan.
    """
    assert word(names, WRITE).verdict == said


@pytest.mark.slow
def test_domains_are_a_repair():
    """Ingest only today and clean up only before: the days never meet, and the proof needs no
    more.
    """
    text = """
    [table]
    columns = "id INT, x INT, part INT"
    partitioned_by = ["part"]
    [shared]
    today = "INT"
    [jobs.ingest]
    sql = "INSERT INTO t VALUES (:k, 1, :p)"
    parameters = { k = "INT", p = "INT" }
    where = "p = today"
    [jobs.cleanup]
    sql = "DELETE FROM t WHERE part = :p"
    parameters = { p = "INT" }
    where = "p < today"
    """
    for promise in PROMISES:
        assert (
            decide_robustness(read_workload(text, "days"), protocol(WEAK), promise).word == "safe"
        )


@pytest.mark.slow
def test_what_a_client_reads_outside_is_seen():
    """Check, then append: no commit check knows of the check, and at Serializable the order of the
    log breaks.
    """
    text = (
        TABLE + '[jobs.append]\nsql = "INSERT INTO t VALUES (1, :seen, 0)"\n'
        'let = { seen = "SELECT count(*) FROM t WHERE part = 0" }\n'
    )
    found = decide_robustness(read_workload(text, "check"), protocol("delta-serializable"), LOG)
    assert found.word == "unsafe"
    assert "append" in found.worst.test.clients


@pytest.mark.slow
def test_repairs_are_proved():
    under = protocol(WEAK)
    found = word(("ingest", "cleanup", "report"), WRITE)
    repairs = {repair.title: repair for repair in find_repairs(found, under)}
    assert "set the isolation level to Serializable" in repairs
    apart = [repair for repair in repairs.values() if repair.apart]
    assert len(apart) == 1
    assert decide_robustness(apart[0].workload, under, WRITE).word == "safe"
    assert not apart[0].brings
    level = repairs["set the isolation level to Serializable"]
    assert level.brings
    assert level.needless == ()  # who is stopped now took part in what broke the promise
    (reading,) = (repair for title, repair in repairs.items() if " as INSERT" in title)
    harmful = {
        (one.danger.members[-1].name, other.name)
        for one in found.counterexamples
        for other in one.danger.members[:-1]
    }
    assert set(reading.needless) == set(reading.brings) - harmful
    prices = [len(repair.needless) for repair in repairs.values()]
    assert prices == sorted(prices)
    assert any("NOT EXISTS" in title for title in repairs)


@pytest.mark.slow
def test_questions_are_refuted_by_a_solver_that_knows_nothing_else():
    """The certificate: each text by itself, as any solver reads it."""
    found = decide_robustness(workload("shop"), protocol(WEAK), WRITE)
    assert found.word == "safe"
    assert len(found.refuted) > 30
    for one in found.refuted:
        solver = z3.Solver(ctx=z3.Context())
        solver.from_string(one.text)
        assert str(solver.check()) == "unsat"


@pytest.mark.slow
@pytest.mark.parametrize(
    "work", [workload("shop"), jobs(("ingest", "cleanup", "report"))], ids=["shop", "hole"]
)
def test_what_is_refuted_of_two_is_refuted_of_more(monkeypatch, work):
    """To ask of pairs first spares questions, and changes no answer."""
    possible = dangers.QuestionSolver.possible
    asked = []

    def count(self, *parts):
        asked.append(parts)
        return possible(self, *parts)

    def answers():
        asked.clear()
        found = decide_all(work, (protocol(WEAK),), PROMISES)
        return [one.to_json() | {"seconds": 0} for one in found], len(asked)

    monkeypatch.setattr(dangers.QuestionSolver, "possible", count)
    said, fewer = answers()
    monkeypatch.setattr(dangers, "is_monotone", lambda _: False)
    again, more = answers()
    assert said == again
    assert fewer < more


SMALL = st.integers(0, 1)
VALUES = st.fixed_dictionaries({"k": SMALL, "p": st.sampled_from((0, 9))})


@st.composite
def schedules(draw, names):
    """Starts and commits of a few transactions, in some order."""
    steps = draw(st.permutations([name for name in names for _ in range(2)]))
    seen = set()
    words = []
    for name in steps:
        words.append(f"{name}.{'commit' if name in seen else 'start'}")
        seen.add(name)
    return " ".join(words)


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.mark.slow
@settings(deadline=None)
@given(data=st.data(), names=st.sampled_from(SETS), promise=st.sampled_from((WRITE, LOG)))
def test_no_run_of_safe_jobs_breaks_the_promise(known, data, names, promise):
    """Random runs of two to four transactions, with small values: safe means that the promise holds
    of each.
    """
    key = names, promise
    if key not in known:
        known[key] = word(names, promise)
    assume(known[key].word == "safe" or promise == LOG)
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=4))
    called = [f"t{k}" for k in range(len(chosen))]
    texts = [
        f'{name} = "{bind_text(STATEMENTS[job], data.draw(VALUES))}"'
        for name, job in zip(called, chosen, strict=True)
    ]
    rows = data.draw(st.lists(st.tuples(SMALL, SMALL, st.sampled_from((0, 9))), max_size=3))
    init = f'init = ["INSERT INTO t VALUES {", ".join(map(str, rows))}"]' if rows else ""
    schedule = data.draw(schedules(called))
    text = (
        f'title = "random"\nschedule = "{schedule}"\n{TABLE}{init}\n[transactions]\n'
        + "\n".join(texts)
    )
    try:
        judged = run(read_litmus(text, "random"), protocol(WEAK))
        forbidden = isinstance(judged.levels[promise], Forbidden)
    except IsolitmusError:
        return
    if any(t.outcome.startswith("error") for t in judged.run.transactions.values()):
        return
    assert not forbidden or known[key].word == "unsafe", text
    assert all(t.outcome in TOOK_EFFECT or t.aborted for t in judged.run.transactions.values())


@pytest.mark.slow
@pytest.mark.parametrize("names", SETS)
def test_what_is_unsafe_has_a_test_that_reads_back(names):
    for promise in PROMISES:
        found = word(names, promise)
        assert found.word != "unknown" or (names[-1] == "blank" and found.why)
        for one in found.counterexamples:
            judged = run(read_litmus(str(one.test), "again"), protocol(WEAK))
            assert isinstance(judged.levels[promise], Forbidden)
            assert re.fullmatch(r"[\w.\[\] ]+", one.danger.schedule)


@pytest.mark.slow
@pytest.mark.parametrize(
    "under", ["databricks-serializable-newest", "databricks-serializable-newest-rows"]
)
def test_of_a_check_that_looks_at_rows_nothing_is_proved(under):
    """Theorems 11 and 12 follow a row into the files that the check looks at."""
    jobs = read_workload(
        'ddl = "CREATE TABLE t (id INT)"\n[jobs]\na = "DELETE FROM t WHERE id = 1"', "jobs"
    )
    of_files = decide_robustness(jobs, protocol("delta-serializable"), "write-serializable")
    of_rows = decide_robustness(jobs, protocol(under), "write-serializable")
    assert (of_files.word, of_rows.word) == ("safe", "unknown")
    assert "the theorems cover only commit protocols that compare files" in of_rows.why[0]


UPSERTS = ("ingest", "upsert", "cleanup")


@pytest.mark.slow
def test_conflicts_and_what_one_sees_are_told_apart():
    """Upsert misses an append that a clean-up takes away: an order gives that table, and no order
    its conflicts.
    """
    found = word(UPSERTS, "write-serializable")
    assert (found.word, found.seen) == ("unsafe", "unknown")
    for one in found.counterexamples:
        judged = run(one.test, protocol(WEAK))
        assert isinstance(judged.levels["write-serializable"], Forbidden)
        assert one.explained == one.serial == judged.serial.orders != ()
    log = word(UPSERTS, "log-serializable")
    assert (log.word, log.seen) == ("unsafe", "unsafe")
    assert not log.worst.explained
    assert word(UPSERTS, "log-serializable", "delta-serializable").seen == "safe"


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_who_explains_what_one_sees(promise):
    """Rows came and went between two versions: only conflicts know of them."""
    done = run(litmus("came-and-went"), protocol(WEAK))
    assert isinstance(done.levels[promise], Forbidden)
    assert keeping_orders(promise, done) == ("insert delete count",)


def test_the_logs_order_alone_explains_the_logs_promise():
    done = run(litmus("reorder"), protocol(WEAK))
    assert (done.serial.orders, keeping_orders("log-serializable", done)) == (
        ("delete insert",),
        (),
    )


DRAWN = (
    "UPDATE t SET x = 1 WHERE part = 0", "UPDATE t SET part = 1 WHERE part = 0",
    "INSERT INTO t SELECT 2, max(x), 1 FROM t WHERE part = 0", "DELETE FROM t WHERE part = 1",
    "INSERT INTO t SELECT id, x, 1 FROM t WHERE part = 0", "INSERT INTO t VALUES (1, 1, 0)",
    "INSERT INTO t REPLACE WHERE part = 0 SELECT id, x, part FROM t WHERE part = 0",
)  # fmt: skip
READERS = ("SELECT sum(x) FROM t", "SELECT count(*) FROM t WHERE part = 0")


def drawn_run(statements, steps, under):
    """The run of statements a, b, … with starts and commits in this order; None if refused."""
    text = "\n".join(f'{name} = "{sql}"' for name, sql in zip("abcd", statements, strict=False))
    schedule = " ".join(
        f"{name}.{'commit' if name in steps[:k] else 'start'}" for k, name in enumerate(steps)
    )
    test = read_litmus(
        f'title = "T"\nschedule = "{schedule}"\n{TABLE}'
        f'init = ["INSERT INTO t VALUES (1, 1, 0)"]\n[transactions]\n{text}\n',
        "drawn",
    )
    return run(test, protocol(under))


def explained_promises(judged):
    """The promises that each run keeps, by its conflicts or by the values of an order."""
    return [
        not isinstance(judged.levels[promise], Forbidden) or keeping_orders(promise, judged) != ()
        for promise in PROMISES
    ]


def test_an_order_of_the_log_explains_the_weaker_promises():
    """The REPLACE misses a row that the INSERT wrote, and writes an equal one."""
    steps = ["a", "b", "b", "c", "a", "c"]
    judged = drawn_run((DRAWN[-1], DRAWN[-2], READERS[0]), steps, WEAK)
    assert isinstance(judged.levels["update-serializable"], Forbidden)
    assert [keeping_orders(one, judged) for one in PROMISES[1:]] == [("b a",), ("b a",)]


@given(
    st.lists(st.sampled_from(DRAWN), min_size=1, max_size=2),
    st.sampled_from(READERS),
    st.sampled_from((WEAK, "delta-snapshot-isolation")),
    st.data(),
)
def test_what_keeps_a_promise_keeps_the_weaker_ones(writers, reader, under, data):
    statements = (*writers, reader)
    steps = data.draw(st.permutations([*"abcd"[: len(statements)]] * 2))
    try:
        kept = explained_promises(drawn_run(statements, steps, under))
    except IsolitmusError:
        return
    assert kept == sorted(kept, reverse=True)


def _jobs(ddl, **jobs):
    tables = ", ".join(f'"{one}"' for one in ddl)
    return read_workload(
        f"ddl = [{tables}]\n[jobs]\n" + "".join(f'{n} = "{sql}"\n' for n, sql in jobs.items()), "w"
    )


COUNTS = (
    "CREATE TABLE x (id INT, n INT) USING delta",
    "CREATE TABLE y (id INT, n INT) USING delta",
)


@pytest.mark.slow
def test_no_level_prevents_what_spans_two_tables():
    """Each of two jobs counts what the other one writes: it is said that a level does not help, and
    what does.
    """
    work = _jobs(
        COUNTS,
        a="INSERT INTO x SELECT 1, count(*) FROM y",
        b="INSERT INTO y SELECT 1, count(*) FROM x",
    )
    found = decide_robustness(work, protocol("delta-serializable"), "write-serializable")
    said = " ".join(" ".join(line.split()) for line in robust_lines(found))
    assert found.worst.danger.tables in (("x", "y"), ("y", "x"))
    assert "no isolation level prevents it. Remedy: one table for both, at Serializable" in said
    alone = _jobs(COUNTS[:1], a="INSERT INTO x SELECT 1, count(*) FROM x")
    one = decide_robustness(alone, protocol("delta-snapshot-isolation"), "write-serializable")
    assert (one.word, across_words(one.worst.danger)) == ("unsafe", [])


@pytest.mark.slow
def test_verdicts_respect_the_order_of_promises():
    """What breaks a promise breaks those that imply it; what is safe for one is safe for those that
    it implies.
    """
    work = _jobs(
        ["CREATE TABLE t (id INT, day INT, n INT) USING delta PARTITIONED BY (day)"],
        count="INSERT INTO t SELECT 0, :day, count(*) FROM t WHERE day = :day",
        fix="UPDATE t SET n = (SELECT max(n) FROM t WHERE day = :d) WHERE day = :e",
    )
    under = protocol("delta-serializable")
    found = list(decide_all(work, [under], PROMISES))
    words = [answer.word for answer in found]
    assert words == sorted(words, key=["safe", "unknown", "unsafe"].index)
    assert "unsafe" in words
    alone = decide_robustness(work, under, PROMISES[-1])
    assert (alone.word, alone.verdict) == (found[-1].word, found[-1].verdict)
    assert [answer.to_json()["word"] for answer in found] == [one.verdict for one in found]


@pytest.mark.slow
def test_what_the_time_does_not_suffice_for_is_unknown():
    work = _jobs(COUNTS[:1], a="DELETE FROM x WHERE id = :i")
    answers = decide_all(work, [protocol("delta-serializable")], PROMISES, budget=Budget(seconds=0))
    assert {answer.word for answer in answers} == {"unknown"}
    found = predict_workload(work, protocol("delta-serializable"), budget=Budget(seconds=0))
    assert [m.word for m in found.meetings] == ["unknown"]
    assert found.ended == "the time limit of 0 s ended it"


@pytest.mark.slow
def test_what_a_clear_removes_may_have_come_after_the_snapshot():
    """Who reads a whole table is stopped by a removal of what it found, not of what another one has
    put in since.
    """
    jobs = """[table]
columns = "id INT, x INT"
[jobs.ingest]
sql = "INSERT INTO t VALUES (:id, 1)"
parameters = { id = "INT" }
[jobs.clear]
sql = "DELETE FROM t"
[jobs.total]
sql = "INSERT INTO t SELECT count(*), 0 FROM t"
"""
    spec = protocol("delta-write-serializable")
    found = decide_robustness(read_workload(jobs, "cleared"), spec, "update-serializable")
    shown = {(one.danger.schedule, one.test.text) for one in found.counterexamples}
    assert len(found.counterexamples) == 4
    assert any("total.start ingest clear total.commit" in schedule for schedule, _ in shown)
