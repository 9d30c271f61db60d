"""Mutants of specs: made from the tree, read back from their text, told apart or argued about."""

import json
import sys
from itertools import combinations

import pytest

from isolitmus.checker.killing import Killed, Killing, kill
from isolitmus.checker.mutating import mutants
from isolitmus.checker.running.execute import execute, execution_frame
from isolitmus.cli.main import main
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.litmus import HistoryTest
from isolitmus.specs import level, litmus, protocol, spec
from isolitmus.specs.cat import read
from isolitmus.specs.catalogue import levels, litmus_names, protocols
from isolitmus.specs.litmus_file import read_litmus
from isolitmus.specs.mutants_file import argued_equivalent, read_arguments
from isolitmus.specs.shelf import HOME


@pytest.mark.parametrize("name", levels() + protocols())
def test_mutants_differ_in_what_they_say_and_are_text(name):
    """Each line is the language's; a mutant of it is another spec, and none is there twice."""
    original = spec(name)
    found = mutants(original)
    assert len({one.line for one in found}) == len(found)
    for one in found:
        changed = one.spec
        assert (changed.axioms, changed.definitions, changed.silences) != (
            original.axioms,
            original.definitions,
            original.silences,
        )
        assert changed.needs <= original.needs
        if one.line.startswith(("acyclic", "irreflexive", "empty")):
            lets = "".join(f"let {n} = {e}\n" for n, e in changed.definitions.items())
            if original.format is None:
                again = read(f'"Again"\n{lets}{one.line}', "again")
                assert str(again.axioms[0]) == one.line


def test_every_operator_is_changed():
    text = r'"Mine" let a = so+ empty a & (wr \ ww) as one irreflexive [~Writer] ; rw? ; so^-1 as two silent so* as three'
    lines = {one.line for one in mutants(read(text, "mine"))}
    assert {
        "let a = so",
        "without empty (a & (wr \\ ww)) as one",
        "acyclic (a & (wr \\ ww)) as one",
        "empty (a | (wr \\ ww)) as one",
        "empty a as one",
        "empty (a & wr) as one",
        "irreflexive (([Writer] ; rw?) ; so^-1) as two",
        "irreflexive (([~Writer] ; rw) ; so^-1) as two",
        "irreflexive (([~Writer] ; rw?) ; so) as two",
        "without silent so* as three",
        "silent so+ as three",
        "silent so as three",
    } <= lines


@pytest.mark.parametrize("name", ["serializable", "write-serializable", "read-committed"])
def test_what_is_argued_is_not_killed_and_the_rest_is(name):
    done = kill(level(name), argued_equivalent(level(name)))
    assert done.survivors == ()
    assert {one.mutant.line for one in done.killed if one.argued} == {
        *argued_equivalent(level(name))
    }
    for one in done.killed:
        assert bool(one.by) != bool(one.argued)


def test_the_suite_is_smallest():
    done = kill(level("serializable"))
    needed = [{*one.by} for one in done.killed if one.by]
    assert all(one & {*done.suite} for one in needed)
    useful = sorted({name for one in needed for name in one})
    signatures = {frozenset(k for k, one in enumerate(needed) if name in one) for name in useful}
    fewer = combinations(signatures, len(done.suite) - 1)
    assert not any(len(frozenset().union(*some)) == len(needed) for some in fewer)


def test_arguments_are_refused_where_they_are_wrong():
    with pytest.raises(IsolitmusError, match="is argued to be equivalent to serializable, but"):
        kill(
            level("serializable"), {"without acyclic (((so | wr) | ww) | rw) as serial-order": "no"}
        )
    with pytest.raises(IsolitmusError, match="serializable has no mutant 'acyclic so as x'"):
        kill(level("serializable"), {"acyclic so as x": "no"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("same = 1", "same is no part of arguments"),
        ("equivalent = 1", "equivalent is 1; a table of mutants"),
        ("[equivalent]\nx = 1", "'x' is 1; why it is equivalent"),
        ("[equivalent]\nx = ' '", "'x' is ' '; why it is equivalent"),
        ("[equivalent", "this is no TOML"),
    ],
)
def test_files_of_arguments(text, said):
    with pytest.raises(LitmusError, match=said):
        read_arguments(text, "mine.mutants.toml")


def test_arguments_are_of_specs_and_mutants_that_there_are():
    for path in (HOME / "mutants").glob("*.toml"):
        of = spec(path.stem)
        assert {*argued_equivalent(of)} <= {one.line for one in mutants(of)}


def test_where_there_is_a_log_nobody_aborted():
    """What the arguments for log-serializable rest on."""
    for name in litmus_names():
        test = litmus(name)
        if not isinstance(test, HistoryTest) and not test.raw:
            frame = execution_frame(
                execute(test, protocol(next(iter(test.expect), "delta-serializable")))
            )
            assert not frame.sets["Aborted"]


@pytest.fixture
def say(monkeypatch, capsys):
    """A function that runs the command, and gives its exit status and what it printed on both streams."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", "separate", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


def test_the_command_and_its_suite(say, tmp_path):
    status, out, _ = say(
        "read-committed", "--mutants", "--suite", str(tmp_path / "suite"), "--json"
    )
    found = json.loads(out)
    assert (status, found["survivors"], len(found["mutants"])) == (0, 0, 11)
    files = {path.stem: path for path in (tmp_path / "suite").iterdir()}
    assert sorted(files) == found["suite"]
    for name, path in files.items():
        test = read_litmus(path.read_text("utf-8"), name)
        assert test.holds or test.fails if isinstance(test, HistoryTest) else test.expect


def test_a_level_of_ones_own_and_its_arguments(say, tmp_path):
    path = tmp_path / "mine.cat"
    path.write_text('"Mine" empty [Writer] ; ww as nobody', "utf-8")
    status, out, _ = say(str(path), "--mutants", "--time", "60")
    assert status == 3 and "survives: empty ww as nobody ([Writer] dropped)" in out
    argued = tmp_path / "mine.mutants.toml"
    text = '[equivalent]\n"empty ww as nobody" = "ww begins at a writer."\n'
    argued.write_text(text, "utf-8")
    status, out, _ = say(str(path), "--mutants", "--time", "60")
    assert "ww begins at a writer." in out and "survives: empty ww as nobody" not in out
    argued.write_text("[equivalent]\nx = 1", "utf-8")
    status, _, errors = say(str(path), "--mutants")
    assert status == 2 and "mine.mutants.toml" in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["causal"], "needs a second spec"),
        (["causal", "serializable", "--mutants"], "--mutants is of one spec"),
        (["causal", "serializable", "--suite", "x"], "--suite is what kills mutants"),
        (["causal", "--mutants", "--as", "svg"], "mutants are a table"),
    ],
)
def test_options_that_do_not_fit(words, said, say):
    status, _, errors = say(*words)
    assert status == 2 and said in errors


def test_a_limit_is_told(say):
    status, out, _ = say("causal", "--mutants", "--time", "0")
    assert status == 3 and "the time limit of 0 s ended it" in out


def test_who_survives():
    (one, *_) = mutants(level("causal"))
    assert Killed(one, ()).survives and not Killed(one, (), "why").survives
    assert Killing("causal", (Killed(one, ()),), {}, 0.0).suite == ()
