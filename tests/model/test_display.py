"""What objects print: a few lines that a person reads, also where IPython and Hypothesis print
them.
"""

import re
from dataclasses import replace
from textwrap import dedent
from typing import get_args

import pytest
from hypothesis import Phase, given, settings

from isolitmus.checker import check, run, separate, sweep
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.conflict_matrix import predict_cells
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.prove.proof import Question, prove
from isolitmus.checker.search.portrait import Portrait
from isolitmus.checker.strategies import histories, litmus_tests
from isolitmus.conformance.agreement import ExplorationResult, Mismatch
from isolitmus.conformance.racing.race_prediction import Prediction
from isolitmus.conformance.racing.races import RaceOutcome
from isolitmus.model import History
from isolitmus.model.audit import Audit, Finding
from isolitmus.model.display import Command
from isolitmus.model.matrix import MatrixPlace
from isolitmus.model.sql.statement import Statement
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.files.catalogue import litmus_names as names
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.litmus_file import read_litmus

TAKEN_APART = re.compile(r"\b(?!History\.)[A-Z]\w+\(\w+=|object at 0x")


def judged():
    return run(litmus("reorder"), protocol("delta-write-serializable"))


PRINTED = {
    "litmus test": lambda: litmus("insert-last"),
    "history test": lambda: litmus("history-write-skew"),
    "history": lambda: litmus("history-write-skew").history,
    "expectation": lambda: litmus("reorder").expect["delta-serializable"],
    "level": lambda: level("serializable"),
    "protocol": lambda: protocol("delta-serializable"),
    "scope": lambda: scope("two-partitions"),
    "matrix": lambda: matrix("pairs"),
    "execution": lambda: execute(litmus("reorder")),
    "frame": lambda: judged().frame,
    "run": lambda: judged().run,
    "verdicts": lambda: judged().levels,
    "judged run": judged,
    "graph": lambda: judged().graph,
    "timeline": lambda: judged().timeline,
    "records": lambda: judged().records,
    "verdicts on a history": lambda: check(
        litmus("history-write-skew"), [level("serializable"), level("causal")]
    ),
    "separation": lambda: separate(
        level("snapshot-isolation"), level("serializable"), transactions=range(2, 3)
    ),
    "sweep": lambda: sweep(scope("two-partitions"), 1),
    "cells": lambda: predict_cells(
        matrix("pairs"),
        [protocol("delta-serializable")],
        [MatrixPlace("insert", "delete-row", "same partition")],
    ),
    "proof": lambda: prove(Question(level("serializable"), level("serializable"))),
    "portrait": lambda: Portrait("delta-serializable", "table", (), (), ()),
    "sight": lambda: denote(litmus("reorder")),
    "prediction": lambda: Prediction("delete", judged().run, ("why",), "", ()),
    "ending": lambda: RaceOutcome("delete", "committed", None, None, (), ()),
    "explored": lambda: ExplorationResult(
        1, 2, 0, 0, Mismatch(litmus("insert-last"), "model", ("so",))
    ),
    "audit": lambda: Audit("t", 0, 1, (Finding("bridge", (1,), "certain", "so"),)),
}


@pytest.mark.slow
@pytest.mark.parametrize("noun", PRINTED)
def test_what_is_printed_is_short_and_not_taken_apart(noun):
    printed = repr(PRINTED[noun]())
    assert not TAKEN_APART.search(printed)
    assert len(printed.splitlines()) <= 40


def test_hypothesis_prints_the_litmus_file():
    drawn = []

    @settings(database=None, max_examples=30, phases=[Phase.generate], print_blob=False)
    @given(test=litmus_tests())
    def fails(test):
        drawn.append(test)
        assert not test.transactions

    with pytest.raises(AssertionError) as failure:
        fails()
    (printed,) = failure.value.__notes__
    assert not TAKEN_APART.search(printed)
    (_, _, file) = printed.partition("# drawn.toml\n")
    again = read_litmus(dedent(file).rpartition(",")[0], "drawn")
    assert replace(again, text="", path=None) == drawn[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", names()[::9])
def test_a_litmus_test_as_a_text_is_its_file(name):
    test = litmus(name)
    again = read_litmus(str(test), name)
    assert replace(again, text="", path=None) == replace(test, text="", path=None)


def test_statements_print_as_their_sql():
    assert all(issubclass(kind, Command) for kind in get_args(Statement))
    for statement in litmus("reorder").transactions.values():
        assert repr(statement) == statement.sql


@given(histories(predicates=True, observed=True))
def test_a_history_prints_what_gives_it_back(history):
    assert eval(repr(history), {"History": History}) == history
