"""``explore`` and ``matrix`` of an engine that they have never heard of: the dictionary, as it is
and lying.
"""

import json
import re
import threading
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from threading import Event, Timer
from time import sleep

import pytest
from formats.dictionary import DICTIONARY, carry
from formats.drawn_store import store_tests
from formats.test_store import MATRIX

from isolitmus.conformance.agreement import explore
from isolitmus.model.engine import RunsTests
from isolitmus.specs.registries import ENGINES

FIRST = '"First committer wins" format store empty unseen & ww as WriteConflict'
UNDER = ("--protocol", "first.cat")
SO_MANY = 40


@pytest.fixture(autouse=True)
def offered(monkeypatch, tmp_path):
    """A folder with the protocol and a matrix; ``offered(engine)`` is another engine in the
    dictionary's place.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.cat").write_text(FIRST)
    (tmp_path / "keys.toml").write_text(MATRIX)

    with ExitStack() as there:

        def offer(engine):
            there.close()
            there.enter_context(ENGINES.offered(engine))

        offer(DICTIONARY)
        yield offer


def forgetful(litmus, spec):
    """A dictionary that lets the last committer win, without a word: no transaction aborts."""
    seen = carry(litmus, spec)
    done = {
        name: replace(t, outcome="committed", exception=None) if t.aborted else t
        for name, t in seen.transactions.items()
    }
    return replace(seen, transactions=done)


LIAR = replace(DICTIONARY, open=lambda: nullcontext(RunsTests("1", forgetful)))


@pytest.mark.slow
def test_explore_finds_the_dictionary_as_the_model_says(call):
    words = ("explore", "--engine", "dictionary", *UNDER, "--count", SO_MANY)
    status, out, err = call(*words, "--evidence", "seen.toml")
    assert (status, err) == (0, "")
    assert out == f"{SO_MANY} random tests (sequences, seed 1) on 1: all as predicted.\n"


def dawdling(litmus, spec):
    """A dictionary that takes its time."""
    sleep(1)
    return carry(litmus, spec)


@pytest.mark.slow
def test_a_limit_ends_explore(call, offered):
    offered(replace(DICTIONARY, open=lambda: nullcontext(RunsTests("1", dawdling))))
    words = ("explore", "--engine", "dictionary", *UNDER, "--count", SO_MANY, "--time", 1)
    status, out, err = call(*words)
    assert (status, out) == (3, "")
    assert "the time limit of 1 s ended it; of 40 tests" in err


@pytest.mark.slow
def test_a_limit_ends_a_matrix_with_what_was_seen(call, offered):
    offered(replace(DICTIONARY, open=lambda: nullcontext(RunsTests("1", dawdling))))
    status, _out, err = call("matrix", "keys.toml", "--engine", "dictionary", *UNDER, "--time", 1)
    assert status == 3
    assert re.search(r"the time limit of 1 s ended it; \d+ of \d+ cases are done", err)


@pytest.mark.slow
def test_explore_finds_the_smallest_test_that_an_engine_lies_about(call, offered):
    offered(LIAR)
    status, out, _ = call("explore", "--engine", "dictionary", *UNDER, "--count", SO_MANY)
    assert status == 1
    assert out.startswith("# tests sequences, seed 1: model and engine differ\n")
    statements = re.findall(r"^[abc] = (.*)$", out, re.MULTILINE)
    assert len(statements) == 2, "two transactions"
    assert all(re.fullmatch(r'"(PUT|DEL) x.*"', text) for text in statements), "of a statement each"
    assert "outcome predicted WriteConflict, observed committed" in out


def interrupted(when):
    """A forgetful dictionary, and a Ctrl-C while it carries out a test: the first after it has
    lied, or the first of all.
    """
    lied = []

    def asked(litmus, spec):
        if lied or when == "at once":
            raise KeyboardInterrupt
        told, true = forgetful(litmus, spec), carry(litmus, spec)
        lied.extend([told] * (told != true))
        return told

    return replace(DICTIONARY, open=lambda: nullcontext(RunsTests("1", asked)))


def test_an_interrupted_explore_tells_what_it_has_found(call, offered):
    words = ("explore", "--engine", "dictionary", *UNDER, "--count", SO_MANY)
    offered(interrupted("later"))
    status, out, _ = call(*words)
    assert status == 1
    assert out.startswith("# tests sequences, seed 1: model and engine differ\n")
    assert "outcome predicted WriteConflict, observed committed" in out
    offered(interrupted("at once"))
    assert call(*words)[:2] == (130, "")


def test_what_has_come_out_of_its_turn_is_told_when_it_is_interrupted():
    """The first of two tests that are carried out at a time is under way when the second has
    differed.
    """
    drawn, seen = store_tests(), Event()

    def asked(litmus, spec):
        if seen.is_set() or threading.current_thread().name.endswith("_0"):
            seen.wait(30)
            raise KeyboardInterrupt
        told = forgetful(litmus, spec)
        if told != carry(litmus, spec):
            Timer(0.2, seen.set).start()  # until then that has been compared
        return told

    try:
        found = explore(drawn, SO_MANY, 1, asked, protocols=["first.cat"], at_once=2)
    except KeyboardInterrupt:
        pytest.fail("what has differed was lost")
    assert found.mismatch.differences
    assert found.runs == 0


@pytest.mark.slow
def test_evidence_is_of_the_engine_s_version(call, offered):
    words = ("explore", "--engine", "dictionary", *UNDER, "--count", 2, "--evidence", "seen.toml")
    assert call(*words)[0] == 0
    offered(replace(DICTIONARY, open=lambda: nullcontext(RunsTests("2", carry))))
    assert call(*words)[0] == 0, "nothing is asked again"
    status, _, err = call(*words[:-3], 3, *words[-2:])
    assert status == 2
    assert "it is of 1, and this is 2; name a file that is not there yet" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sequence", "--engine", "dictionary", *UNDER], "no random tests 'sequence'; did you mean 'sequences'?"),
        (["--engine", "model"], "--engine is model; name the engine to compare"),
        (["--engine", "dictionery"], "unknown engine 'dictionery'; did you mean 'dictionary'?"),
        (["--engine", "dictionary", "--protocol", "delta-serializable"], "does not implement the protocol"),
        (["--engine", "deltalake"], "format delta-rs of deltalake offers no random tests; formats that do: delta, locking, store"),
    ],
)  # fmt: skip
def test_explore_refuses(call, words, message):
    status, out, err = call("explore", *words)
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1


@pytest.mark.slow
def test_a_matrix_is_observed(call, offered):
    words = ("matrix", "keys.toml", "--engine", "dictionary", *UNDER)
    status, out, err = call(*words, "--evidence", "seen.toml")
    assert (status, err) == (0, "")
    assert out.startswith("Keys: first, one (dictionary): 4 of 9 cases conflict\n")
    assert "  1  set  x x .\n" in out and "\n  x  another conflict\n" in out
    assert out.endswith("9 of 9 cases as predicted.\n")
    cells = json.loads(call(*words, "--json")[1])
    assert [c["observed"] for c in cells if c["a"] == c["winner"] == "set"] == ["WriteConflict"]
    offered(LIAR)
    status, out, _ = call(*words)
    assert status == 1
    assert (
        "set, with add committing in between, one, first:\n  a: outcome predicted WriteConflict,"
        " observed committed" in out
    )
    assert out.endswith("5 of 9 cases as predicted.\n")
