"""What is predicted of jobs is what the model then does, whatever parameters and rows they have."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import z3
from condition_words import condition_holds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.jobs.predict import prediction
from isolitmus.jobs.predict.abort_examples import AbortExamples
from isolitmus.jobs.predict.pair_formulas import PairFormulas
from isolitmus.jobs.predict.prediction import _Pair, predict_pair, predict_workload
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.prediction import meeting_words, prediction_lines
from isolitmus.jobs.robust.repairs import try_changes
from isolitmus.jobs.templates.delta_instance import DeltaInstance
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.sql.values import literal
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.parameters import bind_text

ROW = "MERGE INTO t USING (SELECT :k AS id, :p AS part) AS s ON t.id = s.id AND t.part"
NEW = "WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.id, s.part, 1)"
UPSERT = f"{ROW} = :p WHEN MATCHED THEN UPDATE SET x = 9 {NEW}"
INSERT_NEW = f"{ROW} = s.part {NEW}"
STATEMENTS = (
    "INSERT INTO t VALUES (:k, :p, 5)",
    "INSERT INTO t SELECT id, :p, x FROM t WHERE part = :q",
    "INSERT INTO t SELECT count(*), :p, 0 FROM t WHERE x = :k",
    "INSERT OVERWRITE t SELECT id, part, x + 1 FROM t",
    "DELETE FROM t WHERE part = :p",
    "DELETE FROM t WHERE id = :k",
    "DELETE FROM t WHERE part = :p AND id <> :k",
    "DELETE FROM t WHERE part < :p OR id = :k",
    "UPDATE t SET x = x + 1 WHERE part = :p",
    "UPDATE t SET part = :q WHERE part = :p",
    "UPDATE t SET x = :k WHERE id IN (:k, :p)",
    UPSERT,
    (
        "MERGE INTO t USING (SELECT :k AS id) AS s ON t.id = s.id WHEN MATCHED AND t.part = :p THEN"
        " DELETE"
    ),
    INSERT_NEW,
    "TRUNCATE TABLE t",
    "DELETE FROM t WHERE coalesce(x, 0) = :k AND part BETWEEN :p AND :q",
    "DELETE FROM t WHERE id % 2 = 1 AND part = :p",
    "UPDATE t SET part = CASE WHEN x > :k THEN part ELSE :q END WHERE part = :p",
    "OPTIMIZE t WHERE part = :p",
    "OPTIMIZE t",
    "VACUUM t",
    "DELETE FROM t WHERE part IS NULL",
    "DELETE FROM t WHERE part = :p OR part IS NULL",
    "DELETE FROM t WHERE NOT part = :p",
    "UPDATE t SET x = 1 WHERE part = coalesce(:p, part)",
    "UPDATE t SET part = :q WHERE part IN (:p, 1) OR x IS NULL",
    "DELETE FROM t WHERE part NOT IN (:p, :q)",
    "DELETE FROM t WHERE :p IS NULL AND part = :q",
)
PROTOCOLS = (
    "delta-serializable",
    "delta-write-serializable",
    "delta-snapshot-isolation",
    "databricks-serializable-newest-rows",
)
TABLES = (
    'columns = "id INT, part INT, x INT"',
    'columns = "id INT, part INT, x INT"\npartitioned_by = ["part"]',
)
SMALL = st.none() | st.integers(0, 2)
VALUES = st.fixed_dictionaries(dict.fromkeys("kpq", SMALL))


def _job(name, sql):
    used = [p for p in "kpq" if f":{p}" in sql]
    types = ", ".join(f'{p} = "INT"' for p in used)
    return f'[jobs.{name}]\nsql = "{sql}"\nparameters = {{ {types} }}\n'


def _fits(table, *statements):
    """OPTIMIZE takes conditions on partitions only."""
    return "partitioned_by" in table or not any(
        s.startswith("OPTIMIZE t WHERE") for s in statements
    )


def _workload(table, loser, winner):
    return read_workload(
        f"[table]\n{table}\n{_job('loser', loser)}{_job('winner', winner)}", "random"
    )


def _carried_out(table, statements, values, rows, under):
    """What became of the loser and of the winner with these parameters, on a table with these
    rows.
    """
    texts = (", ".join(map(literal, row)) for row in rows)
    inits = ", ".join(f'"INSERT INTO t VALUES ({text})"' for text in texts)
    text = (
        f'title = "random"\nschedule = "loser.start winner loser.commit"\n[table]\n{table}\ninit ='
        f" [{inits}]\n[transactions]\n"
    )
    for name, sql in statements.items():
        text += f'{name} = "{bind_text(sql, values[name], dict.fromkeys("kpq", "INT"))}"\n'
    done = execute(read_litmus(text, "random"), under)
    return {event.name: event for event in done.events}


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.mark.slow
@settings(deadline=None)
@given(
    table=st.sampled_from(TABLES),
    loser=st.sampled_from(STATEMENTS),
    winner=st.sampled_from(STATEMENTS),
    under=st.sampled_from(PROTOCOLS),
    rows=st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=4),
    values=st.fixed_dictionaries(dict.fromkeys(("loser", "winner"), VALUES)),
)
def test_what_stops_was_predicted(known, table, loser, winner, under, rows, values):  # noqa: PLR0917 - what is drawn
    """Never is never; a condition holds wherever something stops; always is always."""
    assume(_fits(table, loser, winner))
    key = table, loser, winner, under
    if key not in known:
        work = _workload(table, loser, winner)
        known[key] = pair_of(work, *work.statements, protocol(under)).proposal()
    meeting = known[key]
    statements = {"loser": loser, "winner": winner}
    try:
        done = _carried_out(table, statements, values, rows, protocol(under))
    except (
        IsolitmusError
    ):  # what the model refuses with these values: a MERGE that is ambiguous, say
        return
    if done["winner"].aborted or done["loser"].effect.error is not None:
        return
    stopped = done["loser"].conflict is not None
    wrote = [done[name].effect.footprint for name in ("loser", "winner")]
    both = not any(one.empty for one in wrote)
    answers = [meeting]
    owned = values | {"loser_2": values["winner"]}
    if not any(condition_holds(f"{one} is NULL", owned) for one in meeting.unless):
        answers += [meeting.not_null] if meeting.not_null else []
    for answer in answers:
        holds = all(condition_holds(words, owned) for words in answer.condition)
        assert not stopped or (answer.word in ("when", "always") and holds)
        if answer.certain and holds and both:
            assert stopped


def pair_of(work, loser, winner, under):
    return _Pair(PairFormulas(Instances(work), loser, winner, under), loser, winner, under)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("under", PROTOCOLS[:2])
def test_what_may_stop_does_so_in_an_example(table, under):
    """Of nearly all pairs of such statements there is an example, and it is what it says that it
    is.
    """
    spec = protocol(under)
    unknown = []
    for k, loser in enumerate(STATEMENTS):
        winner = STATEMENTS[(k * 5 + 4) % len(STATEMENTS)]
        if not _fits(table, loser, winner):
            continue
        work = _workload(table, loser, winner)
        meeting = predict_pair(Instances(work), *work.statements, spec)
        if meeting.word == "unknown":
            unknown.append((loser, winner))
        for exception, test in meeting.examples.items():
            again = read_litmus(str(test), test.name)
            ends = {event.name: event.conflict for event in execute(again, spec).events}
            assert ends == {"winner": None, "loser": exception}
            assert again.expect[under].outcome["loser"] == (exception,)
    assert unknown == []


@pytest.mark.slow
def test_the_shop():
    """Who stops whom among the jobs that ship; ingest and report never meet, since their days
    differ.
    """
    found = predict_workload(workload("shop"), protocol("delta-serializable"))
    said = {(m.loser, m.winner): m for m in found.meetings}
    assert {pair for pair, m in said.items() if m.word == "always"} == {
        *(("upsert", name) for name in ("ingest", "upsert", "erase", "report", "compact")),
        ("erase", "report"),
        ("erase", "compact"),
    }
    assert said["report", "ingest"].word == "never"
    assert said["report", "report"].word == "apart"
    assert said["report", "upsert"].condition == ("both have the same :day",)
    assert said["erase", "upsert"].condition == ("upsert's :day is below :today",)
    assert all(m.retries for m in found.meetings if m.examples)


@pytest.mark.slow  # two processes begin
def test_several_processes_say_the_same():
    spec = protocol("delta-write-serializable")
    told = []
    several = predict_workload(workload("shop"), spec, processes=2, tell=told.append)
    assert (
        several.to_json()["meetings"]
        == predict_workload(workload("shop"), spec).to_json()["meetings"]
    )
    assert told == [
        f"conflicts of {one}" for one in dict.fromkeys(m.loser for m in several.meetings)
    ]


@pytest.mark.slow
def test_remedies_are_asked_anew():
    """A literal on the partition column is what lets MERGE alone, and no other change of the shop's
    does.
    """
    under = protocol("delta-serializable")
    found = predict_workload(workload("shop"), under)
    ways = {change.title: change for change in try_changes(found, under)}
    literal = ways["write upsert with a literal for day in ON"]
    assert ("upsert", "ingest", ("both have the same :day",)) in literal.narrows
    assert literal.brings == ()
    assert ways["set the isolation level to WriteSerializable"].ends == (("upsert", "ingest"),)
    changed = predict_workload(literal.workload, under)
    said = {(m.loser, m.winner): m for m in changed.meetings}
    assert said["upsert", "ingest"].condition == ("both have the same :day",)


CHECK_THEN_APPEND = """
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
[jobs.append]
sql = "INSERT INTO t SELECT :id, :seen FROM t WHERE part = 7 AND id = 1"
let = { seen = "SELECT count(*) FROM t WHERE part = :part" }
parameters = { id = "INT", part = "INT" }
[jobs.cleanup]
sql = ["DELETE FROM t WHERE part = :part", "OPTIMIZE t"]
parameters = { part = "INT" }
"""


@pytest.mark.slow
def test_a_query_outside_is_not_what_stops():
    """What a client reads before its transaction is in no read set: only the statement's own
    partition counts.
    """
    work = read_workload(CHECK_THEN_APPEND, "check")
    found = predict_workload(work, protocol("delta-serializable"))
    said = {(m.loser, m.winner): m for m in found.meetings}
    assert set(said) == {
        (a, b)
        for a in ("append", "cleanup_1", "cleanup_2")
        for b in ("append", "cleanup_1", "cleanup_2")
    }
    test = said["append", "cleanup_1"].examples["ConcurrentDeleteReadException"]
    assert test.transactions["cleanup_1"].sql == "DELETE FROM t WHERE part = 7"
    assert list(test.clients["append"].let) == ["seen"]
    assert (
        read_litmus(str(test), test.name)
        .clients["append"]
        .let["seen"]
        .sql.startswith("SELECT count(*)")
    )


SAMPLE = """ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"
[jobs]
sample = "DELETE FROM t WHERE {} < 'a' AND day = :day"
insert = "INSERT INTO t VALUES (1, :day)"
"""


@pytest.mark.slow
def test_what_else_was_asked_has_no_say():
    """The same proposals in any process, whatever a solver was asked before, and wherever its
    formulas are.
    """
    work = read_workload(SAMPLE.format("mask(CAST(id AS STRING), 'X')"), "masked")
    proposed, kept = set(), []
    for k in range(12):
        pair = pair_of(work, *work.statements, protocol("delta-serializable"))
        pair.proposal()
        for apart in (False, True):
            model = pair.asked.example(next(iter(pair.reached.values())), apart=apart)
            values = [one.value for role in pair.asked.roles for one in role.terms.values]
            proposed.add((apart, *map(model.value, values)))
        kept += [z3.FreshConst(z3.IntSort()) for _ in range(37 * k)]
        kept.append(bytearray(7919 * k))
    assert len(proposed) == 2
    assert kept


@pytest.mark.slow
def test_words():
    """A grid, and a sentence for each way in which somebody is stopped."""
    work = _workload(TABLES[1], STATEMENTS[4], STATEMENTS[0])
    lines = list(prediction_lines(predict_workload(work, protocol("delta-serializable"))))
    assert lines[3:6] == ["        loser  winner", "loser   R      A", "winner  .      ."]
    assert (
        "loser always aborts with ConcurrentAppendException if winner with the same :p commits"
        " meanwhile. Retry: succeeds." in lines
    )


UNMET = {
    "ConcurrentWriteException": "no job commits in one attempt, unchecked (commitLarge)",
    "ProtocolChangedException": "no job writes the protocol",
    "MetadataChangedException": "no job writes metadata",
    "ConcurrentTransactionException": "no job has an application's id",
}
"""Axioms that jobs cannot break, and why (a job that would is refused:
jobs/readers/workload_file.py).
"""
MEETING = {
    "ingest": "INSERT INTO t VALUES (1, 0, 5)",
    "total": "INSERT INTO t SELECT 0, 0, sum(x) FROM t WHERE part = 0",
    "cleanup": "DELETE FROM t WHERE part = 0",
    "overwrite": "INSERT OVERWRITE t VALUES (1, 0, 5)",
}
REFILL = """[jobs.refill]
sql = "INSERT OVERWRITE t VALUES (1, 0, 5)"
options = { partitionOverwriteMode = "dynamic" }
"""
"""It removes files that it has not recorded as read, unlike any other statement."""


def _said(work, under):
    """Of each pair whether the loser is stopped, and by which axioms."""
    found = {}
    for loser in work.statements:
        for winner in work.statements:
            pair = pair_of(work, loser, winner, under)
            found[loser.name, winner.name] = (pair.proposal().word, set(pair.reached))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("under", PROTOCOLS[:2])
def test_every_axiom_of_a_protocol_counts(under):
    """Without any one of them something else is predicted; of those that no job can break it is
    said why.
    """
    spec = protocol(under)
    work = read_workload(
        f"[table]\n{TABLES[1]}\n"
        + "".join(_job(name, sql) for name, sql in MEETING.items())
        + REFILL,
        "all",
    )
    before = _said(work, spec)
    for k, axiom in enumerate(spec.axioms):
        without = replace(spec, axioms=(*spec.axioms[:k], *spec.axioms[k + 1 :]))
        metadata = "Meta" in str(axiom.expr)  # added files that count for who writes metadata
        same = _said(work, without) == before
        assert same == (axiom.name in UNMET or metadata), (under, axiom.name)


READS_ALL = (
    (
        "INSERT OVERWRITE t SELECT id, part, x FROM (SELECT *, row_number() OVER (PARTITION BY id"
        " ORDER BY x) AS n FROM t) WHERE n = 1"
    ),
    "TRUNCATE TABLE t",
    "DELETE FROM t",
)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("loser", READS_ALL)
def test_who_reads_all_is_stopped_by_whoever_commits(table, loser):
    """Whatever the other one adds or removes, if it writes anything: one of them does if a parameter
    is NULL.
    """
    for winner in STATEMENTS:
        if _fits(table, winner) and "VACUUM" not in winner:
            work = _workload(table, loser, winner)
            pair = pair_of(work, *work.statements, protocol("delta-serializable"))
            said = pair.proposal()
            null = ("winner's :p is NULL",) if ":p IS NULL" in winner else ()
            word = "when" if null else "always"
            assert (said.word, said.certain, said.condition) == (word, True, null), winner


def test_a_condition_around_a_query_may_narrow_its_scan():
    """Spark pushes it to the scan: of another part, both commit."""
    seen = "(SELECT * FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id)) AS v"
    report = f"INSERT INTO t SELECT count(*), :p, 0 FROM {seen} WHERE part = :p"
    text = "".join(f"[tables.{name}]\n{TABLES[1]}\n" for name in "ts") + _job("a", report)
    work = read_workload(text, "narrowed")
    pair = pair_of(work, *work.statements * 2, protocol("delta-serializable"))
    said = pair.proposal()
    assert (said.word, said.certain) == ("when", False)


@pytest.mark.parametrize(
    "where", ["part IS NOT NULL", "EXISTS (SELECT 1 FROM s WHERE s.id = v.part)"]
)
def test_a_condition_on_a_column_that_is_a_parameter_may_leave_no_scan(where):
    """Spark folds it if the parameter is NULL: the insert is a blind append then."""
    counted = f"SELECT count(*), 1, 0 FROM (SELECT :p AS part FROM t) AS v WHERE {where}"
    text = "".join(f"[tables.{name}]\n{TABLES[1]}\n" for name in "ts")
    text += _job("a", "INSERT OVERWRITE t SELECT 0, 1, 0")
    work = read_workload(text + _job("b", f"INSERT INTO t {counted}"), "folded")
    said = pair_of(work, *work.statements, protocol("delta-write-serializable")).proposal()
    assert (said.word, said.certain) == ("when", False)


@pytest.mark.slow
def test_where_rows_move_to_is_looked_at():
    """A file that goes because its rows move to another value of a second partition column: the day
    is read all the same, so it is the added file that stops."""
    work = read_workload(
        """[table]
columns = "id INT, day INT, kind INT"
partitioned_by = ["day", "kind"]
[jobs.total]
sql = "INSERT INTO t SELECT count(*), day, 0 FROM t WHERE day = :day GROUP BY day"
[jobs.move]
sql = "UPDATE t SET kind = 2 WHERE kind = 1 AND id = :id"
""",
        "moved",
    )
    said = predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))
    assert (list(said.examples), said.perhaps) == (["ConcurrentAppendException"], ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        ("DELETE FROM t WHERE id = 1", "INSERT OVERWRITE t SELECT id, part, x FROM t WHERE x > 0"),
        ("DELETE FROM t WHERE x = 5 AND part = :p", "DELETE FROM t WHERE x <> 5"),
        ("DELETE FROM t WHERE x IN (3, 7)", "DELETE FROM t WHERE x <> 5 AND x <> 3 AND x <> 7"),
    ],
)
def test_a_file_that_goes_is_read_by_its_statistics(loser, winner):
    """The file that the winner removes has none of the rows that the loser wants; the loser has
    read it, since its statistics do not say so.
    """
    work = _workload(TABLES[1], loser, winner)
    found = predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))
    assert (found.perhaps, "ConcurrentDeleteReadException" in found.examples) == ((), True)


def test_a_file_that_is_skipped_is_not_searched_for(monkeypatch):
    """No test shows a file with rows of x = 5 alone that is read for x = 7: none is executed. It is
    not proved impossible, since files may lack statistics.
    """
    ran = []
    execute_model = AbortExamples._execute_model

    def executed(self, model, exception, most):
        ran.append(exception)
        execute_model(self, model, exception, most)

    monkeypatch.setattr(AbortExamples, "_execute_model", executed)
    work = _workload(TABLES[1], "UPDATE t SET id = 0 WHERE x = 7", "DELETE FROM t WHERE x = 5")
    found = predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))
    assert found.perhaps == ("ConcurrentDeleteReadException",)
    assert set(ran) == {"ConcurrentAppendException"}


@pytest.mark.slow
def test_a_rule_that_refutes_what_runs_show_is_a_disagreement(monkeypatch):
    """Formulas that forget that a file which goes may have been read: the run that shows it is the
    error.
    """
    work = _workload(TABLES[1], "DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 1")
    before = predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))
    assert set(before.examples) == {"ConcurrentAppendException", "ConcurrentDeleteReadException"}
    monkeypatch.setattr(DeltaInstance, "_reads_file", lambda *_: z3.BoolVal(False))
    with pytest.raises(
        Disagreement, match=r"prove ConcurrentDeleteRead\w+ impossible, but this run"
    ):
        predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))


ORDERS = '''
ddl = [
  "CREATE TABLE shop.orders (order_id BIGINT, customer STRING, amount DECIMAL(10,2), status STRING, day DATE) USING DELTA PARTITIONED BY (day)",
  "CREATE TABLE staging (order_id BIGINT, customer STRING, amount STRING, day DATE)",
  "CREATE TABLE updates (order_id BIGINT, customer STRING, amount DECIMAL(10,2), status STRING, day DATE)",
]
[jobs]
ingest = "INSERT INTO shop.orders SELECT order_id, customer, CAST(amount AS DECIMAL(10,2)), 'new', :day FROM staging WHERE day = :day"
close = "UPDATE shop.orders SET status = 'closed' WHERE status = 'new' AND day < date_sub(current_date(), 30)"
erase = "DELETE FROM shop.orders WHERE customer = :who"
upsert = """MERGE INTO shop.orders t USING updates s ON t.order_id = s.order_id AND t.day = :day
  WHEN MATCHED THEN UPDATE SET t.amount = s.amount WHEN NOT MATCHED THEN INSERT *"""
compact = "OPTIMIZE shop.orders"
'''


@pytest.mark.slow
def test_of_jobs_as_people_have_them_nothing_stays_unknown():
    """Texts that are cast, literals, the current date, sources of their own: each example has what
    these need.
    """
    found = predict_workload(read_workload(ORDERS, "orders"), protocol("delta-serializable"))
    assert {meeting.word for meeting in found.meetings} == {"never", "always", "when"}
    words = {(one.loser, one.winner): one for one in found.meetings}
    assert words["upsert", "ingest"].condition == ("both have the same :day",)
    assert "date_sub(DATE '" in str(words["close", "erase"].examples["ConcurrentAppendException"])


@pytest.mark.slow
def test_what_is_not_modelled_is_perhaps_and_what_is_proved_of_it_is_said():
    """A hash beside a text: neither refused as a comparison of types, nor taken for a value."""
    work = read_workload(SAMPLE.format("mask(CAST(id AS STRING), 'X')"), "w")
    found = predict_workload(work, protocol("delta-serializable"))
    (words,) = (
        meeting_words(m) for m in found.meetings if (m.loser, m.winner) == ("sample", "insert")
    )
    assert words.startswith("sample perhaps aborts if insert with the same :day commits between")
    assert "; unknown: " in words
    assert words.endswith("what 'mask(CAST(id AS STRING), 'X') < 'a'' gives is not modelled.")


@pytest.mark.slow
def test_of_digests_there_are_examples():
    """The solver knows nothing of them; what it proposes is carried out with their values."""
    work = read_workload(SAMPLE.format("sha2(CAST(id AS STRING), 256)"), "w")
    found = predict_workload(work, protocol("delta-serializable"))
    words = {(m.loser, m.winner): meeting_words(m) for m in found.meetings}
    assert words["sample", "insert"].startswith(
        "sample always aborts with ConcurrentAppendException if insert with the same :day commits"
    )
    assert re.match(
        "sample can abort .* if another run of sample with the same :day commits .*, for some rows",
        words["sample", "sample"],
    )


TAKEN_IN = "MERGE INTO t USING ({}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
OLD = "DELETE FROM t WHERE day = DATE '2026-01-01'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        (OLD, TAKEN_IN.format("SELECT 1 AS id, DATE '2026-01-01' AS day")),
        (OLD, TAKEN_IN.format("SELECT id, DATE '2026-01-01' AS day FROM fresh")),
        (TAKEN_IN.format("SELECT id, day FROM fresh"), OLD),
        ("INSERT INTO t SELECT id, day FROM t", TAKEN_IN.format("SELECT id, day FROM fresh")),
    ],
)
def test_the_row_that_one_needs_is_not_the_one_that_the_other_looks_for(loser, winner):
    """Of jobs without parameters, too: a MERGE that finds its row puts in none, and stops
    nobody.
    """
    jobs = read_workload(
        f"""
        ddl = ["CREATE TABLE t (id INT, day DATE) USING delta", "CREATE TABLE fresh (id INT, day DATE) USING delta"]
        jobs.loser.sql = "{loser}"
        jobs.winner.sql = "{winner}"
        """,
        "keys",
    )
    a, b = jobs.statements
    assert predict_pair(Instances(jobs), a, b, protocol("delta-serializable")).examples


@pytest.mark.slow
def test_a_retry_of_an_update_is_asked_for_beside_a_merge_of_another_table():
    """Its rows are those of its own table, which has fewer columns than the other one."""
    merge = (
        'sql = "MERGE INTO b USING (SELECT :id AS id, :x AS x, :y AS y) AS s ON b.y = s.y'
        ' WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"\n'
    )
    work = read_workload(
        'ddl = ["CREATE TABLE a (id BIGINT, x BIGINT) USING delta",'
        ' "CREATE TABLE b (id BIGINT, x BIGINT, y BIGINT) USING delta"]\n'
        f'[jobs.u]\nsql = "UPDATE a SET x = 1 WHERE id = :id"\n[jobs.m]\n{merge}[jobs.n]\n{merge}',
        "w",
    )
    found = predict_workload(work, protocol("delta-serializable"))
    words = {(one.loser, one.winner): one.word for one in found.meetings}
    assert words["u", "m"] == words["u", "n"] == words["m", "u"] == "never"
    assert words["u", "u"] == words["m", "n"] == "always"


@pytest.mark.slow
def test_a_statement_that_does_not_name_a_table_is_not_stopped_by_its_commits(monkeypatch):
    """Without the solver the answer is the same as with it."""
    jobs = read_workload(
        """
        ddl = [
            "CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)",
            "CREATE TABLE u (id INT, day INT) USING delta",
        ]
        [jobs]
        a = "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE"
        b = "DELETE FROM t WHERE day = 1"
        c = "INSERT INTO u SELECT id, day FROM t"
        d = "UPDATE u SET id = 2"
        e = "CREATE OR REPLACE TABLE u USING delta AS SELECT 1 AS id, 1 AS day"
        f = "OPTIMIZE u"
        """,
        "jobs",
    )
    quick = predict_workload(jobs, "delta-serializable")
    monkeypatch.setattr(prediction.PairPredictor, "_names_target", lambda *_: True)
    asked = predict_workload(jobs, "delta-serializable")
    assert [(m.loser, m.winner, m.word) for m in quick.meetings] == [
        (m.loser, m.winner, m.word) for m in asked.meetings
    ]


def _by_name(work, loser, winner):
    """Return what is predicted of two statements, given by their names, at Serializable."""
    known = {one.name: one for one in work.statements}
    return predict_pair(Instances(work), known[loser], known[winner], "delta-serializable")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trips", "sales.trips", "main.sales.trips", "main.`sales`.trips"])
@pytest.mark.parametrize("query", ["SELECT id, day FROM {} WHERE day = '2026-01-01'", "TABLE {}"])
def test_a_read_of_a_table_with_its_database_is_recorded(name, query):
    work = read_workload(
        f"""
ddl = "CREATE TABLE {name} (id BIGINT, day DATE) USING delta PARTITIONED BY (day)"
[jobs.copy]
sql = "INSERT INTO {name} {query.format(name)}"
[jobs.add]
sql = "INSERT INTO {name} VALUES (7, DATE '2026-01-01')"
""",
        "copies",
    )
    found = _by_name(work, "copy", "add")
    assert (found.word, list(found.examples)) == ("always", ["ConcurrentAppendException"])


FUNCTIONS = """
ddl = "CREATE TABLE t (id BIGINT, kind STRING, at TIMESTAMP, fee DECIMAL(10,2), km INT, day DATE) USING delta PARTITIONED BY (day)"
[jobs.add]
sql = "INSERT INTO t VALUES (7, 'k', NULL, 1.00, 1, DATE '2026-01-01')"
[jobs.other]
sql = "%s"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "word", "own"),
    [
        ("DELETE FROM t WHERE length(kind) > 10", "always", "when"),
        ("UPDATE t SET kind = lower(trim(kind)) WHERE kind <> lower(trim(kind))", "always", "always"),
        ("DELETE FROM t WHERE concat(kind, '-', CAST(km AS STRING)) = 'b-2'", "always", "when"),
        ("DELETE FROM t WHERE substring(kind, 2, 1) = 'x' AND month(day) = 1", "when", "when"),
        ("DELETE FROM t WHERE fee / km > 10", "always", "when"),
        ("DELETE FROM t WHERE fee * km = 150", "always", "when"),
        ("DELETE FROM t WHERE at < date_sub(current_date(), 14)", "always", "when"),
        ("DELETE FROM t WHERE year(day) = 2026", "always", "always"),
        ("DELETE FROM t WHERE year(day) = 2024", "never", "always"),
        ("DELETE FROM t WHERE month(day) = 2", "never", "when"),
        ("DELETE FROM t WHERE upper(kind) = 'K' AND year(day) = 2025", "never", "when"),
    ],
)  # fmt: skip
def test_of_functions_without_a_formula_there_are_examples(sql, word, own):
    work = read_workload(FUNCTIONS % sql, "functions")
    assert _by_name(work, "other", "add").word == word
    assert _by_name(work, "other", "other").word == own


def test_a_source_with_a_query_that_sqlglot_writes_otherwise_is_any_rows():
    work = read_workload(
        """
ddl = ["CREATE TABLE t (id BIGINT, day DATE) USING delta", "CREATE TABLE s (text STRING) USING delta"]
[jobs.load]
sql = '''INSERT INTO t SELECT get_json_object(text, '$.id'), to_date(text, 'yyyy-MM-dd') FROM s'''
[jobs.purge]
sql = "DELETE FROM t WHERE id < 0"
""",
        "load",
    )
    assert _by_name(work, "purge", "load").word == "always"
