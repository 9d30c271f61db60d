"""``separate``: the questions of the mission, their answers, and that an answer is one."""

from dataclasses import replace
from itertools import permutations

import pytest

from isolitmus.checker import run, separate
from isolitmus.checker.execution.commit_loop import execute, execution_frame, without_checks
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import litmus, protocol, scope, spec
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_catalogue import levels, protocols, related_protocols
from isolitmus.specs.files.spec_reader import read_spec


@pytest.fixture(scope="module")
def table():
    return scope("table")


@pytest.fixture(params=["symbolic", "exhaustive"])
def by(request):
    return request.param


def ask(table, a, b, **options):
    return separate(spec(a), spec(b), table, **options)


def kinds(answer):
    return sorted(type(s).__name__ for s in answer.litmus.transactions.values())


@pytest.mark.slow
def test_write_serializable_reorders_a_delete_and_an_insert(table, by):
    answer = ask(table, "delta-write-serializable", "log-serializable", by=by)
    assert answer.transactions == 2
    assert str(answer.litmus.schedule) == "delete.start insert delete.commit"
    assert [edge.kind for edge in answer.violation.cycle] == ["log", "rw"]
    assert answer.serial.orders == ("delete insert",)
    assert answer.examined == {"symbolic": 1, "exhaustive": 31}[by]


@pytest.mark.slow
def test_a_reader_in_between_makes_it_not_serializable(table, by):
    answer = ask(table, "delta-write-serializable", "serializable", by=by)
    assert answer.transactions == 3
    assert str(answer.litmus.schedule) == "delete.start insert reader delete.commit"
    assert kinds(answer) == ["Delete", "Insert", "Read"]
    assert sorted(edge.kind for edge in answer.violation.cycle) == ["rw", "rw", "wr"]


@pytest.mark.slow
def test_the_hole_needs_three_transactions_and_no_order_explains_it(table, by):
    question = ("delta-write-serializable", "write-serializable")
    two = ask(table, *question, by=by, transactions=[2], unexplained=True, shipped=False)
    assert two.found is False
    answer = ask(table, *question, by=by, unexplained=True)
    assert answer.transactions == 3
    assert answer.serial.orders == ()
    assert answer.serial.unexplained == (3,)
    assert kinds(answer) == ["Delete", "Insert", "Insert"]
    aborted = run(answer.litmus, protocol("delta-serializable")).run.transactions["delete"]
    assert aborted.outcome == "ConcurrentAppendException"


@pytest.mark.slow
def test_serializable_as_checked_keeps_its_promise_up_to_the_bound(table, by):
    answer = ask(table, "delta-serializable", "log-serializable", by=by, shipped=False)
    assert answer.found is False
    assert answer.examined == {"symbolic": 0, "exhaustive": 7031}[by]
    assert (
        answer.bound == "up to 3 transactions, readers among them, in search space 'table'"
        " (12 statements, 1 reader, 1 initial table)"
    )


def test_snapshot_isolation_allows_write_skew(table):
    answer = ask(table, "snapshot-isolation", "serializable")
    assert answer.transactions == 2
    assert kinds(answer) == ["Insert", "Insert"]
    assert [edge.kind for edge in answer.violation.cycle] == ["rw", "rw"]
    skewed = run(answer.litmus, protocol("delta-snapshot-isolation"))
    assert {t.outcome for t in skewed.run.transactions.values()} == {"committed"}


@pytest.mark.slow
def test_the_answer_s_file_holds_what_the_model_predicts(table):
    answer = ask(table, "delta-write-serializable", "serializable")
    assert answer.litmus.expect == {}
    assert set(answer.file.expect) == set(related_protocols())
    for name in related_protocols():
        assert run(answer.file, protocol(name)).expected == "met"
    assert read_litmus(answer.file.text, answer.file.name) == answer.file
    assert answer.to_json()["litmus"] == answer.file.text


def test_a_reader_of_the_last_version_is_in_the_answer(table):
    late = read_spec('"Read too late" empty unseen ; wr ; [Reader] as late', "late")
    answer = separate(spec("snapshot-isolation"), late, table)
    assert kinds(answer) == ["Insert", "Insert", "Read"]
    assert str(answer.litmus.schedule) == "insert1.start insert2 insert1.commit reader"


def test_who_reads_snapshots_along_the_log_reads_prefixes(table):
    """Cerone and Gotsman's PREFIX holds of a log by construction, whatever is checked at commit."""
    anything = read_spec('"Whatever" empty log & log^-1 as never', "whatever")
    answer = separate(anything, spec("prefix-consistency"), table, shipped=False)
    assert answer.found is False


@pytest.mark.slow
def test_the_same_question_gives_the_same_history(table):
    first, second = (ask(table, "delta-write-serializable", "log-serializable") for _ in range(2))
    assert first.litmus.text == second.litmus.text


LATTICE = ["log-serializable", "serializable", "write-serializable", "snapshot-isolation"]


@pytest.mark.slow
@pytest.mark.parametrize("stronger", LATTICE)
@pytest.mark.parametrize("weaker", LATTICE)
def test_separate_finds_nothing_against_the_direction_of_the_lattice(table, stronger, weaker):
    if LATTICE.index(stronger) <= LATTICE.index(weaker):
        assert ask(table, stronger, weaker, transactions=[2]).found is False
    elif (weaker, stronger) == ("serializable", "write-serializable"):
        assert ask(table, stronger, weaker, transactions=[2]).found is False
        assert ask(table, stronger, weaker, transactions=[3]).found is True
    else:
        assert ask(table, stronger, weaker, transactions=[2]).found is True


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [  # delta-rs' protocols need what no universe has
        name
        for name in [*levels(), *protocols()]
        if not needs_reads(spec(name)) and not name.startswith("delta-rs-")
    ],
)
def test_pruning_prefixes_loses_nothing(table, name):
    admits = compile_spec(spec(name))
    assert is_monotone(spec(name))
    pruned = [c.frame for c in candidates(table, 2, admits) if c is not None]
    whole = [c.frame for c in candidates(table, 2, lambda _: True) if admits(c.frame)]
    assert pruned == whole


def test_a_limit_of_time_is_an_unknown_answer(table, by):
    answer = ask(table, "delta-serializable", "log-serializable", by=by, budget=Budget(seconds=0))
    assert answer.found is None
    assert answer.bound.startswith("the time limit of 0 s ended it, at 2 transactions in ")


def test_a_spec_that_needs_what_runs_do_not_have_is_refused(table):
    mine = read_spec('"Mine" acyclic co | wr ; [Meta] as order', "mine")
    with pytest.raises(IsolitmusError, match="mine needs co, which searches of tables do not have"):
        separate(mine, spec("serializable"), table)


@pytest.mark.slow
def test_the_level_inversion():
    """What has no effect is not checked at Serializable, and may abort at WriteSerializable."""
    stricter, weaker = spec("delta-serializable"), spec("delta-write-serializable")
    assert separate(stricter, weaker, scope("table"), shipped=False).found is False
    answer = separate(stricter, weaker, scope("no-ops"))
    assert str(answer.litmus.schedule) == "delete1.start delete2 delete1.commit"
    outcomes = {
        p.name: run(answer.litmus, p).run.transactions["delete1"].outcome
        for p in (stricter, weaker)
    }
    assert outcomes == {
        "delta-serializable": "no-op",
        "delta-write-serializable": "ConcurrentAppendException",
    }
    assert answer.violation.axiom == "ConcurrentAppendException"


@pytest.mark.slow
def test_what_ships_is_asked_before_the_answer_is_none(table):
    """A read that no footprint has is in no statement of the universe, but it is in the
    catalogue.
    """
    question = spec("delta-serializable"), spec("log-serializable")
    answer = separate(*question, table)
    assert (answer.found, answer.transactions, answer.litmus) == (False, None, None)
    assert answer.bound.startswith("up to 3 transactions")
    assert separate(*question, table, shipped=False).ships is None
    counted = answer.with_catalogue()
    assert (counted.found, counted.transactions, counted.litmus.name) == (True, 2, answer.ships)
    assert (
        counted.bound == f"{answer.ships} of the catalogue; no counterexample with {answer.bound}"
    )
    done = run(litmus(answer.ships), question[0])
    assert {t.outcome for t in done.run.transactions.values()} == {"committed"}
    assert str(done.levels["log-serializable"]) == "forbidden"


def test_what_the_catalogue_has_does_not_deny_what_is_proved_of_the_repaired_check(call):
    """It is of reads that the universe has not: printed after the answer, and really so, but no
    answer.
    """
    a, b = "delta-write-serializable-repaired", "write-serializable"
    status, out, _ = call("separate", a, b)
    first, _, second, *_ = out.splitlines()
    assert (status, first.endswith(f" admits nothing that {b} forbids.")) == (0, True)
    assert first.startswith("No counterexample with up to ")
    assert second.startswith(f"Outside the search: {a} admits and {b} forbids")
    name = second.partition(" forbids ")[2].partition(" ")[0]
    done = run(name, a)
    assert {t.outcome for t in done.run.transactions.values()} == {"committed"}
    assert str(done.levels[b]) == "forbidden"


@pytest.mark.slow
def test_beyond_a_bound_of_one_s_own_what_ships_is_named_and_not_found():
    hole = spec("delta-write-serializable"), spec("delta-write-serializable-repaired")
    few = separate(*hole, transactions=[2])
    assert (few.found, few.litmus) == (False, None)
    assert few.with_catalogue() is few
    assert few.beside.transactions > 2
    elsewhere = separate(
        spec("delta-serializable"),
        spec("log-serializable"),
        scope("two-partitions"),
        transactions=[2],
    )
    assert elsewhere.found is False
    assert elsewhere.ships is not None
    assert elsewhere.with_catalogue() is elsewhere


NOTHING_TO_DO = read_scope(
    """
title = "What finds nothing to do at first may find what others insert"
[table]
columns = "id INT, x INT"
init = ["INSERT INTO t VALUES (1, 10)"]
[scope]
transactions = [2, 3]
noops = "keep"
readers = ["SELECT * FROM t"]
statements = [
    "DELETE FROM t WHERE id >= 100",
    "INSERT INTO t VALUES ({fresh}, 0)",
    "INSERT INTO t SELECT sum(id), 1 FROM t",
    "UPDATE t SET id = 1 WHERE id = 2",
]
""",
    "nothing-to-do",
)
ASKED = ("log-serializable", "serializable", "write-serializable", "snapshot-isolation")
DELTA_PROTOCOLS = ("delta-serializable", "delta-write-serializable", "delta-snapshot-isolation")


@pytest.mark.slow
@pytest.mark.parametrize("under", DELTA_PROTOCOLS)
def test_of_what_finds_nothing_to_do_separate_finds_what_a_sweep_counts(under):
    """Not recorded it is a reader, recorded it is a writer."""
    inside, protocol = replace(NOTHING_TO_DO, readers=()), spec(under)
    for n in (1, 2, 3):
        done = sweep(inside, n, protocols=[protocol], levels=[spec(name) for name in ASKED])
        counted = done.protocols[under]
        for name, count in counted.forbidden.items():
            answer = ask(inside, under, name, transactions=[n], shipped=False)
            assert (answer.found, answer.by) == (count > 0, "exhaustive")
        found = candidates(inside, n, compile_spec(protocol), recorder=protocol)
        unexplained = [one.unexplained() for one in found if one is not None]
        assert (len(unexplained), sum(unexplained)) == (counted.admitted, counted.unexplained)
        answer = ask(
            inside, under, "serializable", transactions=[n], unexplained=True, shipped=False
        )
        assert answer.found == (counted.unexplained > 0)


@pytest.mark.slow
@pytest.mark.parametrize("under", DELTA_PROTOCOLS)
def test_what_finds_nothing_to_do_is_in_its_file_what_it_is_in_the_search(under):
    """A file has no empty versions: who read one read the version before. Also the other way, for
    what a level admits and a protocol, which says what is recorded, forbids.
    """
    judges = {name: compile_spec(spec(name)) for name in (under, *ASKED)}
    inverse = dict.fromkeys(ASKED, False)
    dropped = 0
    for found in candidates(NOTHING_TO_DO, 3, lambda _: True, recorder=spec(under)):
        done = execute(found.litmus("found", "", ""), without_checks(spec(under)))
        dropped += len(done.states) < len(found.states)
        seen = execution_frame(done)
        verdicts = {name: admits(found.frame) for name, admits in judges.items()}
        assert verdicts == {name: admits(seen) for name, admits in judges.items()}
        for name in ASKED:
            inverse[name] |= verdicts[name] and not verdicts[under]
    assert bool(dropped) == (under != "delta-write-serializable")
    for name, found in inverse.items():
        answer = ask(NOTHING_TO_DO, name, under, transactions=[3], shipped=False)
        assert (answer.found, answer.by) == (found, "exhaustive")


@pytest.mark.slow
def test_between_levels_what_finds_nothing_to_do_is_taken_for_recorded():
    inside = replace(scope("two-partitions"), noops="keep")
    for a, b in permutations(ASKED, 2):
        answers = [ask(inside, a, b, by=by, transactions=[2], shipped=False) for by in ("symbolic", "exhaustive")]  # fmt: skip
        one, other = ((found.found, str(found.litmus)) for found in answers)
        assert one == other
        assert (
            answers[0]
            .assumptions[-1]
            .startswith("a transaction that finds nothing to do is recorded")
        )


@pytest.mark.slow
def test_a_solver_does_not_know_what_a_protocol_drops():
    inside = replace(scope("two-partitions"), noops="keep")
    with pytest.raises(IsolitmusError, match="delta-serializable does not record every commit"):
        ask(inside, "delta-serializable", "serializable", by="symbolic")
    assert (
        ask(inside, "delta-serializable", "serializable", transactions=[2], shipped=False).found
        is False
    )
