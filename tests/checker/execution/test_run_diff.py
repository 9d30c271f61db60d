"""A comparison that cannot fail is a defect: whatever a run or an expectation says is changed,
field by field, and each change is seen.
"""

from dataclasses import fields, replace
from functools import cache

import pytest
from case_checks import check_cases
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.execution.run_diff import BESIDE, WHO, compare_runs, compare_with_expectation
from isolitmus.checker.execution.run_result import RunResult
from isolitmus.checker.render.expectation_report import PredictedRuns
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.litmus import Expectation, Litmus
from isolitmus.model.run import Run, TransactionRun, same_bag
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names as shipped
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import levels, related_protocols

OF_THE_SIDES = {*BESIDE, "unread"}
SCANS = {"emitted", "waits"}
"""Fields of runs of another format: tests/databases/locking has them."""
"""What runs say of their other fields: it is no observation."""
SOME = ["reorder-reader", "hole-partitioned", "optimize-during-delete", "statements-that-fail", "raw/delete-delete", "clone-again", "convert-twice"]  # fmt: skip
UNDER = "delta-serializable"


@cache
def done(name):
    return run(litmus(name.rpartition("/")[2]), protocol(UNDER))


def changed(value):
    """Another value that a field of this one may have; of rows and mappings see ``bags``."""
    match value:
        case None:
            return "?"
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}?"
        case tuple():
            return (*value, value[-1] if value else 0)
    raise TypeError(value)


def bags(rows):
    """Bags of rows that are others than this one."""
    yield (*rows, rows[0] if rows else (0,))
    if rows:
        yield rows[1:]
        (first, *others), *more = rows
        same_in_python = (bool(first), float(first)) if first in (0, 1) else ("?",)
        yield from (((other, *others), *more) for other in same_in_python)


def of_transaction(seen):
    for name in {field.name for field in fields(TransactionRun)} - OF_THE_SIDES - seen.unsaid:
        value = getattr(seen, name)
        if name == "rows" and value is not None:
            yield from (replace(seen, rows=rows) for rows in bags(value))
        yield replace(seen, **{name: () if name == "rows" and value is None else changed(value)})


def of_versions(versions):
    yield versions[:-1]
    yield (*versions, versions[-1])
    for k, tables in enumerate(versions):
        others = [{**tables, "another": ()}]
        for name, rows in tables.items():
            others.append({n: r for n, r in tables.items() if n != name})
            others += [{**tables, name: bag} for bag in bags(rows)]
        for other in others:
            yield (*versions[:k], other, *versions[k + 1 :])


def of_transactions(transactions):
    for name, seen in transactions.items():
        yield {n: t for n, t in transactions.items() if n != name}
        yield {**transactions, f"{name}?": seen}
        yield from ({**transactions, name: other} for other in of_transaction(seen))


def lies(seen):
    """Runs that are this one but for one thing."""
    for field in fields(Run):
        value = getattr(seen, field.name)
        by_name = {"transactions": of_transactions, "versions": of_versions}
        if field.name in by_name:
            others = by_name[field.name](value)
        else:
            others = () if field.name in {*WHO, *OF_THE_SIDES} else (changed(value),)
        yield from (replace(seen, **{field.name: other}) for other in others)


def test_a_version_that_nobody_could_read_is_not_compared_and_the_others_are():
    seen = done("reorder-reader").run
    last = len(seen.versions) - 1
    blank = replace(seen, versions=(*seen.versions[:last], {}), unread=frozenset({last}))
    found = compare_runs(seen, blank)
    assert (found.differences, found.uncompared[-1]) == ((), f"the tables at version {last}")
    other = replace(blank, versions=({}, *blank.versions[1:]))
    assert compare_runs(seen, other).differences
    assert compare_runs(seen, replace(blank, unread=frozenset())).differences


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_no_two_runs_that_differ_agree(name):
    seen = done(name).run
    assert compare_runs(seen, seen).differences == ()
    told = list(lies(seen))
    assert len(told) >= 30
    for lie in told:
        assert compare_runs(seen, lie).differences, lie
        assert compare_runs(lie, seen).differences, lie


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(related_protocols()), st.data())
def test_no_lie_of_a_random_run_is_missed(test, under, data):
    seen = run(test, protocol(under)).run
    lie = data.draw(st.sampled_from(list(lies(seen))))
    assert compare_runs(seen, lie).differences


def test_who_saw_a_run_may_differ_and_nothing_else():
    seen = done("reorder").run
    others = {name: changed(getattr(seen, name)) for name in WHO}
    assert compare_runs(seen, replace(seen, **others)).differences == ()
    assert set(WHO) <= {field.name for field in fields(Run)}


@pytest.mark.parametrize(
    "field",
    [f.name for f in fields(TransactionRun) if f.name not in {*BESIDE, "outcome", "rows", *SCANS}],
)
def test_what_one_side_does_not_say_is_told_and_no_agreement(field):
    """Nor does it count as a point that was compared."""
    seen = done("optimize-during-delete").run
    name, said = next(
        (n, t) for n, t in seen.transactions.items() if getattr(t, field) not in (None, ())
    )
    silent = replace(said, **{field: None}, unsaid=frozenset({field}))
    other = replace(seen, transactions={**seen.transactions, name: silent})
    for a, b in ((seen, other), (other, seen)):
        held = compare_runs(a, b)
        assert held.differences == ()
        assert held.uncompared == (f"{name}'s {field.replace('_', ' ')}",)
        assert held.points == compare_runs(seen, seen).points - 1


# What is expected

ALL = {
    "outcome": lambda j: {n: (t.outcome,) for n, t in j.run.transactions.items()},
    "error_class": lambda j: {
        n: t.error_class for n, t in j.run.transactions.items() if t.error_class is not None
    },
    "log": lambda j: {
        n: {"blind": t.blind, "level": t.isolation_level, "operation": t.operation}
        for n, t in j.run.transactions.items()
        if t.version is not None
    },
    "reads": lambda j: {n: t.rows for n, t in j.run.transactions.items() if t.rows is not None},
    "emitted": lambda j: {n: t.emitted for n, t in j.run.transactions.items() if t.emitted},
    "waits": lambda j: {
        n: tuple(w.behind[0] for w in t.waits) for n, t in j.run.transactions.items() if t.waits
    },
    "tables": lambda j: j.run.tables,
    "versions": lambda j: dict(enumerate(j.run.versions)),
    "breaks": lambda j: j.breaks,
    "serial": lambda j: None if j.litmus.raw else j.serial.orders,
    "holds": lambda j: tuple(n for n, v in j.levels.items() if str(v) == "allowed"),
    "fails": lambda j: tuple(n for n, v in j.levels.items() if str(v) == "forbidden"),
}
"""All that can be expected of a run, by field."""


def falsified(name, value, other):
    """Expectations of a field that its run does not meet; ``other`` is a name of the other
    verdict.
    """
    match name:
        case "serial" | "breaks":
            yield from () if value is None else ((*value, "?"), value[1:] if value else ("?",))
        case "holds" | "fails":
            yield from ((n,) for n in other)
        case "outcome":
            yield from (
                {**value, n: ("no-op", "aborted") if value[n] == ("committed",) else ("committed",)}
                for n in value
            )
        case "error_class":
            yield from ({n: v} for n in value for v in ("DELTA_CONCURRENT", "DELTA_OTHER", "", f"{value[n]}.X"))  # fmt: skip
        case "log":
            yield from ({n: {key: changed(v)}} for n, entry in value.items() for key, v in entry.items())  # fmt: skip
        case "waits":
            yield from ({**value, n: ("?",)} for n in value)
        case "reads" | "tables" | "emitted":
            yield from ({n: bag} for n, rows in value.items() for bag in bags(rows))
        case "versions":
            yield {len(value): {}}
            for k, tables in value.items():
                yield from ({k: {n: bag}} for n, rows in tables.items() for bag in bags(rows))


@pytest.mark.slow
@pytest.mark.parametrize("field", [f.name for f in fields(Expectation)])
def test_no_expectation_is_met_by_another_run(field):
    wrong = check_cases(
        lambda name, under: falsify(run(litmus(name), protocol(under)), field),
        [
            *((name.rpartition("/")[2], UNDER) for name in SOME),
            ("reorder", "delta-write-serializable"),
            ("scan-twice", "locking-read-committed"),
            ("scan-twice", "locking-serializable"),
        ],
    )
    assert sum(wrong) > 0


def falsify(judged, field):
    """Check that no wrong expectation of a run is met, and return how many there are."""
    value = ALL[field](judged)
    met = compare_with_expectation(Expectation(**{field: value}), judged)
    assert met.differences == ()
    other = {"holds": "fails", "fails": "holds"}.get(field)
    every = [*falsified(field, value, ALL[other](judged) if other else ())]
    for wrong in every:
        assert compare_with_expectation(Expectation(**{field: wrong}), judged).differences, wrong
    return len(every)


TEXT = """
title = "Two appends"
schedule = "a.start b a.commit"
[table]
columns = "id INT"
[transactions]
a = "INSERT INTO t VALUES (1)"
b = "INSERT INTO t VALUES (2)"
[expect.delta-serializable]
"""


def judged(expect):
    return run(read_litmus(TEXT + expect, "two"), protocol(UNDER))


def test_an_error_class_is_not_met_by_what_has_none():
    wrong = judged('error_class = { a = "DELTA_CONCURRENT_APPEND" }')
    assert wrong.expected == "not met"
    assert wrong.differences == ("a: expected error class DELTA_CONCURRENT_APPEND, got none",)


@pytest.mark.slow
def test_an_error_class_that_the_model_does_not_know_is_not_compared():
    """On real Delta it is (``statements-that-fail``)."""
    late = done("statements-that-fail")
    assert late.uncompared == ("ambiguous's error class",)
    assert late.expected == "met"


def test_nothing_is_expected_by_what_nobody_tells():
    silent = done("statements-that-fail")
    wanted = Expectation(error_class={"ambiguous": "X"})
    test = replace(silent.litmus, expect={UNDER: wanted})
    assert RunResult(test, silent.run).expected == "none"


def test_raw_transactions_have_no_serial_orders_to_expect():
    raw = done("raw/delete-delete")
    assert compare_with_expectation(Expectation(serial=()), raw).differences == (
        "serial orders: expected none, unknown because rows are unknown",
    )
    assert raw.uncompared == ("the rows of t",)


def test_rows_of_other_types_are_other_rows():
    assert same_bag(((1, None), (2, 0)), ((2, 0), (1, None)))
    for other in (True, 1.0):
        assert not same_bag(((1,),), ((other,),))


# What follows from a run


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(related_protocols()))
def test_the_levels_of_a_run_are_those_of_its_execution(test, under):
    judged, execution = run(test, protocol(under)), execute(test, protocol(under))
    assert {name: str(v) for name, v in judged.levels.items()} == {
        name: str(judge_execution(execution, level(name))) for name in levels()
    }


@pytest.mark.slow
def test_the_levels_of_every_run_of_the_catalogue_are_those_of_its_execution():
    count = 0
    for test in filter(lambda t: isinstance(t, Litmus) and not t.raw, map(litmus, shipped())):
        for under in set(test.expect) & set(related_protocols()):
            judged, execution = run(test, protocol(under)), execute(test, protocol(under))
            if test.name == "deleted-during-spark-optimize":  # its files are not what its rows say
                assert set(map(str, judged.levels.values())) == {"unknown"}
                continue
            for name, verdict in judged.levels.items():
                assert str(verdict) == str(judge_execution(execution, level(name))), test.name
            count += 1
    assert count > 300


def test_a_run_that_no_statement_explains_is_judged_by_nobody():
    """What a reader read, a version that was read and is not there, a table that is gone."""
    seen = done("reorder-reader")
    told = seen.run.transactions
    reader = told["reader"]
    name, writer = next((n, t) for n, t in told.items() if t.version == 1)
    for lie in (
        replace(seen.run, transactions={**told, "reader": replace(reader, rows=reader.rows[1:])}),
        replace(seen.run, transactions={**told, "reader": replace(reader, read_version=99)}),
        replace(
            seen.run, transactions={**told, name: replace(writer, outcome="no-op", commits=())}
        ),
        replace(seen.run, versions=({}, *seen.run.versions[1:])),
    ):
        assert {str(v) for v in RunResult(seen.litmus, lie).levels.values()} == {"unknown"}


def test_what_an_engine_says_of_a_failure_is_told_where_something_differs():
    """Elsewhere the model's words are the reason, and of two runs it is no point."""
    test, spec = litmus("reorder"), protocol(UNDER)
    model = PredictedRuns(test, spec)
    seen = done("reorder").run
    said = replace(seen.transactions["delete"], message="Please retry.")
    alike = replace(seen, transactions={**seen.transactions, "delete": said})
    told = "delete failed with ConcurrentAppendException: Please retry."
    assert model.beside(alike).end == "met"
    assert told not in model.beside(alike).lines
    assert told in model.beside(replace(alike, versions=alike.versions[:-1])).lines
