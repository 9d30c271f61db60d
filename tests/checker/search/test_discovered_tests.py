"""What is found, as litmus tests: each history once, and each what its name says that it is."""

from dataclasses import replace

import pytest

from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.checker.search.discovered_tests import (
    distinct_tests,
    first_found_tests,
    portrait_tests,
    scope_tests,
    separation_tests,
)
from isolitmus.checker.search.portrait import portray
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.specs import level, litmus, protocol, scope, spec
from isolitmus.specs.files.litmus_file import read_litmus

WS = "delta-write-serializable"


@pytest.mark.slow
def test_a_portrait_s_histories_are_what_their_names_say():
    tests = {test.name: test for test in portrait_tests(portray(protocol(WS)))}
    assert run(tests[f"{WS}-unexplained-write-serializable"], protocol(WS)).serial.orders == ()
    for exception in ("ConcurrentAppendException", "ConcurrentDeleteReadException"):
        done = run(tests[f"{WS}-needless-{exception}"], protocol(WS))
        assert exception in [t.outcome for t in done.run.transactions.values()]
    assert all(read_litmus(test.text, name).source for name, test in tests.items())


@pytest.mark.slow
def test_a_layout_in_which_nothing_aborts_is_carried_out_on_that_layout():
    name = "delta-serializable"
    tests = [t for t in portrait_tests(portray(protocol(name))) if "-partitioned-by-id" in t.name]
    for test in tests:
        assert test.tables["t"].partitioned_by == ("id",)
        assert {t.outcome for t in run(test, protocol(name)).run.transactions.values()} == {
            "committed"
        }
    assert tests


@pytest.mark.slow
def test_a_scope_s_finds_have_the_needless_aborts_and_are_read_back_from_their_texts():
    tests = list(distinct_tests(scope_tests(scope("two-partitions"), 2, [protocol(WS)])))
    again = [read_litmus(test.text, test.name) for test in tests]
    assert [str(test.schedule) for test in again] == [str(test.schedule) for test in tests]
    aborted = {
        t.outcome for test in tests for t in run(test, protocol(WS)).run.transactions.values()
    }
    assert {"ConcurrentAppendException", "ConcurrentDeleteReadException"} <= aborted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "exceptions"),
    [
        ("two-partitions", {"ConcurrentAppend", "ConcurrentDeleteRead"}),
        (
            "altered",
            {"ConcurrentAppend", "ConcurrentDeleteRead", "MetadataChanged", "ProtocolChanged"},
        ),
    ],
)
def test_a_needless_abort_is_one_with_the_exception_that_it_is_called_after(name, exceptions):
    found = set()
    for test in scope_tests(scope(name), 2, [protocol(WS)]):
        if "-needless-" in test.name:
            exception = test.name.rpartition("-")[2]
            found.add(exception.removesuffix("Exception"))
            outcomes = {t.outcome for t in run(test, protocol(WS)).run.transactions.values()}
            assert outcomes == {"committed", exception}, test.text
    assert found == exceptions


@pytest.mark.slow
def test_a_scope_s_finds_have_the_table_that_no_order_gives():
    tests = scope_tests(scope("two-partitions"), 3, [protocol(WS)])
    (test,) = (t for t in tests if "-unexplained-" in t.name)
    assert run(test, protocol(WS)).serial.unexplained == (3,)


@pytest.mark.slow
def test_what_two_specs_lack_in_this_universe_is_left_out():
    assert list(separation_tests(spec("delta-rs-serializable"), level("serializable"))) == []
    (found,) = separation_tests(level("write-serializable"), level("serializable"))
    assert found.name == "write-serializable-not-serializable"


@pytest.mark.slow
def test_a_sweep_s_smallest_is_named_after_it():
    inside = scope("two-partitions")
    tests = list(first_found_tests(sweep(inside, 2), inside))
    assert [test.name for test in tests] == [f"two-partitions-2-{WS}-not-log-serializable"]
    assert tests[0].source == "isolitmus sweep two-partitions --transactions 2"


def test_serial_orders_are_those_of_the_rows_that_were_observed():
    """The model's own run is explained; the same run with other rows at the end is not."""
    test = litmus("reorder")
    predicted = run(test, protocol(WS))
    *before, last = predicted.run.versions
    assert predicted.serial.orders == ("delete insert",)
    (table,) = last
    other = replace(predicted.run, versions=(*before, {table: ((7, 7),)}))
    assert RunResult(test, other).serial.orders == ()
    swapped = replace(predicted.run, versions=(*before, {table: ((2, 1),)}))
    assert RunResult(test, swapped).serial.orders == ("insert delete",)
