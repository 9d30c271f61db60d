"""Litmus tests of the jobs of a workload: runs that its file allows, the smallest that fail, and
what predict says.
"""

import re
from datetime import date

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.jobs.strategies import jobs
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.verdict import Allowed
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

STRONG, WEAK = protocol("delta-serializable"), protocol("delta-write-serializable")
QUIET = settings(max_examples=1000, phases=[Phase.generate, Phase.shrink])
DDL = 'ddl = "CREATE TABLE orders (id INT, day DATE) USING delta PARTITIONED BY (day)"\n'
SHOP = read_workload(
    DDL
    + """
[shared]
today = "DATE"
[jobs.ingest]
sql = "INSERT INTO orders VALUES (:id, :day)"
parameters = { id = "INT", day = "DATE" }
where = "day = today AND id > 10"
[jobs.clean]
sql = ["DELETE FROM orders WHERE day < :today", "OPTIMIZE orders WHERE day < :today"]
alone = true
[jobs.count]
sql = "INSERT INTO orders SELECT count(*), :day FROM orders WHERE day = :day"
parameters = { day = "DATE" }
after = "clean"
""",
    "shop",
)


def spans(test):
    """When each transaction is under way, as steps of the schedule."""
    steps = [step.transaction for step in test.schedule.steps]
    return {n: (steps.index(n), len(steps) - 1 - steps[::-1].index(n)) for n in test.transactions}


def runs_of(test):
    """The job of each transaction, and the run that it is of."""
    return {
        name: (name.split("_")[0], test.client(name).session or name) for name in test.transactions
    }


@pytest.mark.slow
@given(jobs(SHOP))
def test_runs_are_those_that_the_file_allows_and_read_back(test):
    assert str(read_litmus(str(test), "drawn")) == str(test)
    when, of = spans(test), runs_of(test)
    for a, (first, end) in when.items():
        for b, (start, last) in when.items():
            if of[a][1] != of[b][1] and first < last and start < end:
                assert SHOP.overlap(of[a][0], of[b][0])
    sql = {name: statement.sql for name, statement in test.transactions.items()}
    days = {text.split("VALUES (")[1] for text in sql.values() if "VALUES" in text}
    assert all(int(row.split(",")[0]) > 10 for row in days)
    todays = {row.split(", ")[1].rstrip(")") for row in days}
    todays |= {text.split("day < ")[1] for text in sql.values() if "day <" in text}
    assert len(todays) <= 1


@pytest.mark.slow
@given(jobs(SHOP, least=3, most=4).filter(lambda test: "clean_2" in test.transactions))
def test_each_statement_of_a_run_begins_after_the_one_before(test):
    when = spans(test)
    seconds = [name for name in test.transactions if name.startswith("clean_2")]
    assert seconds
    for name in seconds:
        first = "clean_1" + name.removeprefix("clean_2")
        assert when[first][1] < when[name][0]
        assert test.client(first).session == test.client(name).session is not None


def stopped(test):
    """The transactions that Serializable's check refuses."""
    ends = run(test, STRONG).run.transactions
    return [name for name, end in ends.items() if end.aborted]


@pytest.mark.slow
def test_what_fails_shrinks_to_the_fewest_runs_and_rows():
    found = find(jobs(SHOP, values={"id": [11]}), stopped, settings=QUIET)
    texts = {statement.sql for statement in found.transactions.values()}
    (day,) = {day for text in texts for day in re.findall(r"DATE '[\d-]+'", text)}
    assert texts == {
        f"INSERT INTO orders SELECT count(*), {day} FROM orders WHERE day = {day}",
        f"INSERT INTO orders VALUES (11, {day})",
    }
    assert found.init == ()
    assert stopped(read_litmus(repr(found), "again")) == stopped(found)


@pytest.mark.slow
def test_what_a_client_reads_may_be_old_when_its_statement_starts():
    """A count that is read before another run commits, and written after: no conflict, and an
    update is lost.
    """
    seats = read_workload(
        """
ddl = "CREATE TABLE seats (n BIGINT) USING delta"
[jobs.take]
sql = "INSERT INTO seats VALUES (:seen + 1)"
let = { seen = "SELECT count(*) FROM seats" }
""",
        "seats",
    )

    def lost(test):
        """Though no two are under way at a time, both write the same number."""
        done = run(test, STRONG).run
        begun = [s.transaction for s in test.schedule.steps if s.action != "before"]
        apart = begun[0] == begun[1]
        return apart and len(set(done.tables["seats"])) == 1

    found = find(jobs(seats, most=2), lost, settings=QUIET)
    assert "before" in str(found.schedule)
    assert found.init == ()


@pytest.mark.slow
@pytest.mark.parametrize("check", [STRONG, WEAK])
def test_nobody_is_stopped_of_whom_it_is_proved_that_never(check):
    """Two runs at a time: who is stopped, the solver says may be."""
    meetings = predict_workload(SHOP, check, examples=False).meetings
    words = {(m.loser, m.winner): m.word for m in meetings}
    assert set(words.values()) > {"never"}

    @given(jobs(SHOP, most=2))
    def agree(test):
        ends = run(test, check).run.transactions
        of = {name: name if name.startswith("clean") else name.split("_")[0] for name in ends}
        when = spans(test)
        for name, end in ends.items():
            if end.aborted:
                over = [n for n in ends if when[name][0] < when[n][1] < when[name][1]]
                pairs = {(of[name][:7], of[n][:7]) for n in over}
                assert any(words[pair] not in ("never", "apart") for pair in pairs), test

    agree()


@pytest.mark.slow
def test_runs_that_overlap_differ_in_their_distinct_parameters():
    """Then nobody is stopped and every order is the log's: proved, and so of all that is drawn."""
    days = read_workload(
        f'distinct = ["day"]\n{DDL}[jobs.ingest]\nsql = "INSERT INTO orders VALUES (:id, :day)"\n'
        '[jobs.clean]\nsql = "DELETE FROM orders WHERE day = :day"\n',
        "days",
    )
    assert {m.word for m in predict_workload(days, STRONG).meetings} == {"never"}
    answer = decide_robustness(days, WEAK, "log-serializable")
    assert answer.word == "safe"
    assert answer.assumptions[-1] == "Concurrent runs never have the same :day."

    @given(jobs(days, most=3))
    def agree(test):
        done = run(test, WEAK)
        assert not any(t.aborted for t in done.run.transactions.values())
        assert isinstance(done.levels["log-serializable"], Allowed)

    agree()


@pytest.mark.slow
@given(jobs(SHOP, values={"day": [date(2026, 3, 1)]}, rows={"orders": st.just("(1, NULL)")}))
def test_values_and_rows_may_be_given(test):
    assert {init.sql for init in test.init} <= {"INSERT INTO orders VALUES (1, NULL)"}
    for statement in test.transactions.values():
        if "count(*)" in statement.sql:
            assert statement.sql.count("DATE '2026-03-01'") == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": {"dya": [1]}}, "has no parameter 'dya'; did you mean 'day'"),
        ({"values": {"id": ["mon"]}}, "'mon' is none of type INT, which 'id' has"),
        ({"values": {"id": [2**40]}}, "is none of type INT, which 'id' has"),
        ({"values": {"id": [3]}}, r"'day = today AND id > 10' holds for none .* as values={'today': "),
        ({"rows": {"order": st.just("(1, NULL)")}}, "has no table 'order'; did you mean 'orders'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(given, said):
    with pytest.raises(IsolitmusError, match=said):
        find(jobs(SHOP, **given), lambda _: True)


@pytest.mark.slow
def test_a_name_and_a_file_will_do_for_a_workload(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(DDL + '[jobs.all]\nsql = "DELETE FROM orders"\n')
    assert {*find(jobs(str(path)), lambda _: True).transactions} == {"all", "all_2"}
    with pytest.raises(IsolitmusError, match="unknown workload 'shopp'; did you mean 'shop'"):
        find(jobs("shopp"), lambda _: True)


@pytest.mark.slow
def test_the_clock_says_one_day_to_all():
    """``current_date()`` is a date in what is drawn, and in what the solver proposes."""
    daily = read_workload(
        DDL
        + """
[jobs.compact]
sql = "OPTIMIZE orders WHERE day < current_date()"
[jobs.clean]
sql = "DELETE FROM orders WHERE day < CURRENT_DATE"
""",
        "daily",
    )
    (meeting,) = [
        m for m in predict_workload(daily, STRONG).meetings if m.loser + m.winner == "compactclean"
    ]
    assert {*meeting.examples} == {"ConcurrentDeleteReadException"}
    for statement in meeting.examples["ConcurrentDeleteReadException"].transactions.values():
        assert "DATE '" in statement.sql

    def both(test):
        days = {statement.sql.split("DATE ")[1] for statement in test.transactions.values()}
        assert len(days) == 1
        return {"compact", "clean"} <= {*test.transactions} and stopped(test)

    assert find(jobs(daily), both, settings=QUIET).init
