"""Conflict, view and state: what is said beside a verdict of a history that has a serial order all
the same.
"""

from dataclasses import replace

import pytest
from case_checks import check_cases
from hypothesis import given
from level_forms import FORMS, Executed, Reorderings, StepMemory
from vector_tests import restored_tests

from isolitmus.checker import sweep
from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.execution.serial_orders import (
    CONFLICT,
    form_verdicts,
    strongest_explanations,
)
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.level_forms import NAMED_FORMS
from isolitmus.checker.render.verdicts import order_arrows, verdict_words, view_words
from isolitmus.checker.strategies import litmus_tests
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs import level, litmus, protocol, scope, spec
from isolitmus.specs.files.catalogue import litmus_names as shipped
from isolitmus.specs.files.spec_reader import read_spec

DELTA = spec("delta-write-serializable")
LEVELS = [level(name) for name in CONFLICT]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "forbidden", "explained"),
    [("writers-unpartitioned", 4, 4), ("writers-partitioned", 12, 4), ("two-partitions", 4, 0)],
)
def test_what_conflicts_alone_forbid_is_told_so(name, forbidden, explained):
    """Issue 16: 4 and 12 histories of three writers are forbidden, and 0 and 8 lack a serial
    order.
    """
    admits, permits = compile_spec(DELTA), compile_spec(level("write-serializable"))
    found = [
        one.litmus("found", "t", "s")
        for one in candidates(scope(name), 3, admits)
        if one is not None and not permits(one.frame)
    ]
    assert len(found) == forbidden
    told = 0
    for test in found:
        checked = check(test, [level("write-serializable")])
        one = checked.explained["write-serializable"]
        orders = run(test, DELTA).serial
        assert bool(one.orders) == bool(orders.orders)
        line = verdict_words(checked.levels["write-serializable"], LEVELS[2], one)[-1]
        assert line == view_words(one)
        if not orders.unexplained:
            told += 1
            assert (one.name, one.versions) == ("write-serializable-view", True)
            assert f"the serial order {order_arrows(orders.orders[0])} explains every read" in line
    counts = sweep(scope(name), 3, protocols=[DELTA]).protocols[DELTA.name]
    assert counts.forbidden["write-serializable"] == forbidden
    assert counts.for_conflicts_alone["write-serializable"] == told == explained


def test_a_row_that_came_and_went_is_a_conflict_and_no_view():
    checked = check(litmus("came-and-went"), LEVELS)
    assert {str(verdict) for verdict in checked.levels.values()} == {"forbidden"}
    assert {one.name for one in checked.explained.values()} == {f"{n}-view" for n in CONFLICT}
    assert checked.to_json("f")["levels"]["write-serializable"]["explained"] == {
        "sense": "write-serializable-view",
        "orders": ["insert delete count"],
        "every_version": True,
    }


def test_what_readers_read_counts_with_all_transactions_and_not_with_the_writers():
    test = litmus("reorder-reader")
    found = strongest_explanations(test, execute(test), CONFLICT)
    assert {name: one.name for name, one in found.items()} == {
        "serializable": "serializable-state-coherent",
        "log-serializable": None,
        "write-serializable": "write-serializable-view",
        "update-serializable": "update-serializable-state-coherent",
    }
    seen = litmus("came-and-went-readers")
    (order,) = check(seen, LEVELS).explained["log-serializable"].orders
    assert order == ("insert", "between", "delete", "after", "count", "last")


def test_an_order_may_explain_the_last_table_and_not_what_was_read():
    one = check(litmus("came-and-went-twice-seen"), LEVELS).explained["write-serializable"]
    assert (one.name, one.versions) == ("write-serializable-state", False)
    assert (
        "no serial order explains every read, but first → second → insert produces the final"
        in view_words(one)
    )


STRICTER = [
    ("{}", "{}-view"),
    ("{}-view", "{}-state"),
    ("{}-view-prefix", "{}-view"),
    ("{}-view-prefix", "{}-state-prefix"),
    ("{}-state-coherent", "{}-state-prefix"),
    ("{}-state-coherent", "{}-state"),
    ("{}-state-prefix", "{}-state"),
]


@pytest.mark.slow
@given(litmus_tests(most=3))
def test_forms_asked_by_name_are_those_of_the_theorems(test):
    """Of writers, by an executor that knows nothing of the other; and what implies what (3.2 of the
    semantics).
    """
    execution = execute(test)
    said = {name: str(v) for name, v in form_verdicts(test, execution, [*NAMED_FORMS]).items()}
    said |= {spec.name: str(judge_execution(execution, spec)) for spec in LEVELS}
    events = [event for event in execution.events if event.version is not None]
    if not any(event.version is None for event in execution.events):
        own = (
            tuple(event.name for event in events),
            tuple(test.transactions[event.name] for event in events),
            tuple(event.effect for event in events),
        )
        orders = Reorderings(Executed(test.tables, *own, execution.states), StepMemory())
        for name, holds in FORMS.items():
            assert said[name] == ("allowed" if holds(orders) else "forbidden"), name
    for name in CONFLICT:
        for strong, weak in STRICTER:
            pair = said.get(strong.format(name)), said.get(weak.format(name))
            assert pair != ("allowed", "forbidden"), (strong.format(name), weak)


def test_a_form_is_asked_as_a_level_is(call):
    """The order that is shown gives the table; what has no statements has no forms."""
    status, said, _ = call("check", "reorder", "--level", "log-serializable-state")
    assert status == 1
    assert "it does not hold that the order of the log produces every version of the table" in said
    status, said, _ = call("check", "reorder", "--level", "write-serializable-state")
    assert status == 0
    assert "Write-serializable (state) allows it, for example in the order delete → insert" in said
    status, _, said = call("check", "history-long-fork", "--level", "serializable-view")
    assert status == 2
    assert "serializable-view needs statements, which this history does not have" in said


@pytest.mark.slow
def test_the_forms_are_those_of_the_theorems():
    """In the scope of the theorems: what Delta admits of three writers, and write-serializable
    forbids.
    """
    lattice, memory = scope("lattice"), StepMemory()
    admits, permits = compile_spec(DELTA), compile_spec(level("write-serializable"))
    names = []
    for found in candidates(lattice, 3, admits):
        if found is None or permits(found.frame):
            continue
        own = (
            tuple(e.name for e in found.events),
            found.statements,
            tuple(e.effect for e in found.events),
        )
        orders = Reorderings(Executed(lattice.tables, *own, found.states), memory)
        test = found.litmus("found", "t", "s")
        beside = strongest_explanations(
            test, execute(test), ("log-serializable", "write-serializable")
        )
        for name, one in beside.items():
            has = {form for form, holds in FORMS.items() if form.startswith(name) and holds(orders)}
            assert one.name in has if one.name else f"{name}-state" not in has
            assert one.reads == (f"{name}-view" in has)
            names.append(one.name)
    assert len(names) == 2 * 18
    assert {
        None,
        "write-serializable-view",
        "write-serializable-state",
        "write-serializable-state-coherent",
    } < set(names)


def serially(test, order):
    """The transactions one after another."""
    return replace(
        test,
        transactions={name: test.transactions[name] for name in order},
        schedule=Schedule(tuple(Step(name, "both") for name in order)),
    )


def read(event):
    return [
        (r.words, sorted((row.writer, *map(repr, row.values)) for row in r.matched))
        for r in event.effect.reads
    ]


def follow(test):
    """Check that what a level allows has an order that explains all, and execute each order that is
    named.

    Returns how many levels and orders were looked at.
    """
    looked = 0
    execution = execute(test)
    events = {event.name: event for event in execution.events if not event.aborted}
    for name, one in strongest_explanations(test, execution, CONFLICT).items():
        if judge_execution(execution, level(name)):
            assert one.reads, (name, one)
            assert one.versions
            looked += 1
        for order in one.orders:
            looked += 1
            alone = execute(serially(test, order))
            for table, state in alone.states[-1].items():
                assert same_bag(state.rows(), execution.states[-1][table].rows())
            if one.reads:
                assert all(read(event) == read(events[event.name]) for event in alone.events)
    return looked


@pytest.mark.slow
@given(litmus_tests(most=4, sessions=True))
def test_what_conflicts_allow_a_serial_order_explains(test):
    follow(test)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        protocol("case-2-and-4-serializable"),
        read_spec('"Lenient" format delta empty unseen ; [Large] as LateRestore', "lenient"),
    ],
    ids=lambda rule: rule.name,
)
@given(test=restored_tests())
def test_what_conflicts_allow_beside_a_restore_a_serial_order_explains(rule, test):
    """A commit that merges its vector deletes again what the RESTORE brought back."""
    try:
        done = execute(test, rule)
    except UndeterminedError:
        return
    for name, one in strongest_explanations(test, done, CONFLICT).items():
        assert one.reads or not judge_execution(done, level(name)), name


def test_a_row_that_came_back_is_an_update_that_is_lost():
    done = execute(litmus("merged-with-restore"), protocol("case-2-serializable"))
    (seen,) = judge_execution(done, level("log-serializable")).violations
    assert [str(edge.reason) for edge in seen.cycle] == [
        "delete deleted row (3), which restore had written",
        "delete read that row (3) was gone, which restore then brought back",
    ]


@pytest.mark.slow
def test_what_conflicts_allow_in_the_catalogue_a_serial_order_explains():
    """But of seven transactions or more, all of whose orders take minutes."""
    on_tables = [test for test in map(litmus, shipped()) if isinstance(test, Litmus)]
    followed = check_cases(
        lambda name: follow(litmus(name)),
        [t.name for t in on_tables if len(t.transactions) < 7 and not t.raw and not t.clients],
    )
    assert sum(map(bool, followed)) >= 100


@pytest.mark.slow
def test_a_run_says_so_too():
    done = run(litmus("came-and-went-merge"), protocol("delta-write-serializable"))
    assert done.explained["write-serializable"].orders == (("insert", "delete", "merge"),)
    assert done.to_json()["explained"]["serializable"]["sense"] == "serializable-view"
    assert "explains every read" in done._repr_html_()
