"""What no candidate exercised is said after an answer "none", and what some did is not."""

import json
import os
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolitmus.checker.judge.graph_semantics import fold_over
from isolitmus.checker.search import space_searches
from isolitmus.checker.search.lattice_search import compare
from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.sweeps.abstract_sweep import sweep_abstract
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.universes.abstract import variation_for
from isolitmus.checker.universes.abstract_enumeration import history_batches
from isolitmus.checker.universes.abstract_solver import watch_histories
from isolitmus.checker.universes.exercised_names import (
    ExerciseRecord,
    Unexercised,
    UnexercisedName,
    spec_parts,
)
from isolitmus.checker.universes.scope_vocabulary import (
    NAMES_FILE,
    scope_names,
    scopes_with_names,
    shipped_scope_names,
    watch_proposals,
    watch_scope,
)
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.budget import Budget
from isolitmus.model.errors import TimeLimit
from isolitmus.model.spec import Fold
from isolitmus.model.vocabulary import BASE, relations_of
from isolitmus.specs import level, protocol, scope, spec
from isolitmus.specs.disk.input_files import HOME, shipped_files
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import format_named

EXCUSES = r"""
"Row level"
include "delta.cat"
let both = [Vectors] ; deleted-deleted ; [Vectors]
empty added \ both as ConcurrentAppendException
empty deleted-read \ both as ConcurrentDeleteReadException
empty deleted-deleted \ both as ConcurrentDeleteDeleteException
"""
PAIRS = [
    ("delta-serializable", "log-serializable"),
    ("delta-write-serializable-repaired", "write-serializable"),
    ("serializable", "snapshot-isolation"),
]


def excuses():
    return read_spec(EXCUSES, "row-level")


def names_of(unexercised):
    return {part.name for part in unexercised.names}


def enumerated(specs, inside, sizes):
    """The names that no candidate makes non-empty, by the graph semantics on every candidate."""
    left = {part.name: part for part in spec_parts(*specs)}
    frames = chain.from_iterable(candidates(inside, n, lambda _: True) for n in sizes)
    for found in frames:
        folds = {}
        for name, part in list(left.items()):
            fold = folds.setdefault(part.spec.name, fold_over(found.frame, part.spec))
            some = fold.members if part.expr.kind == "set" else fold.relation
            if some(part.expr):
                del left[name]
    return {*left}


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("inside", ["two-partitions", "rows"])
def test_the_record_of_a_scope_is_that_of_its_candidates(names, inside):
    specs = [*map(spec, names)]
    record = ExerciseRecord(*specs)
    watch_scope(record, scope(inside), 2, lambda: None)
    assert {part.name for part in record.open} == enumerated(specs, scope(inside), (1, 2))


@pytest.mark.slow
def test_the_solver_finds_what_three_transactions_exercise():
    """A pair of one of the first two commits and the third, which has seen neither."""
    mine = read_spec(
        '"Three" empty unseen ; log ; wr^-1 & unseen as third empty (unseen ; unseen) & wr as seen',
        "three",
    )
    inside = scope("two-partitions")
    solver = format_named(inside.format).solver()
    record = ExerciseRecord(mine)
    watch_proposals(record, solver, inside, [2], Budget())
    assert {part.name for part in record.open} == enumerated([mine], inside, (2,))
    watch_proposals(record, solver, inside, [3], Budget())
    assert {part.name for part in record.open} == enumerated([mine], inside, (2, 3))


@pytest.mark.parametrize(
    "names",
    [
        ("serializable", "snapshot-isolation"),
        ("causal", "read-committed"),
        ("read-atomic", "causal"),
    ],
)
@pytest.mark.parametrize("sessions", [False, True])
def test_the_solver_and_the_enumeration_of_histories_agree(names, sessions):
    specs = [*map(level, names)]
    vary = variation_for(*specs, sessions=sessions, aborts=sessions)
    record = ExerciseRecord(*specs)
    watch_histories(record, specs, [1, 2], vary, Budget(), keys=2)
    left = {(part.kind, part.name): part for part in spec_parts(*specs)}
    for n in (1, 2):
        for batch in history_batches(n, vary, *specs, keys=2):
            for key, part in list(left.items()):
                for linear in batch._linear(part.spec):
                    frame = batch.frames.of(part.spec, batch.orders, linear)
                    fold = Fold(frame, part.spec.definitions)
                    some = (
                        fold.members(part.expr)
                        if part.expr.kind == "set"
                        else [pair for row in fold.relation(part.expr) for pair in row.values()]
                    )
                    bits = batch.product.bits(batch.histories.booleans.disj(some))
                    if (bits.reshape(batch.valid.size, -1) & batch.valid[:, None]).any():
                        left.pop(key, None)
    assert [(part.kind, part.name) for part in record.open] == [*left]


def test_an_axiom_that_no_candidate_can_break_is_listed_after_the_names_that_make_it_empty():
    answer = separate(
        excuses(), "log-serializable", scope("two-partitions"), shipped=False, transactions=[2]
    )
    assert answer.found is False
    assert answer.unexercised.words == (
        "Never exercised: Vectors, Backfill, Aborted (no candidate has such a transaction or pair);"
        " always empty without them: both, no-aborted-read"
    )
    document = answer.to_json()
    assert {"kind": "let", "name": "both", "because": ["Vectors"]} in document["unexercised"]
    assert document["exercise_unknown"] == document["always_empty"] == []


@pytest.mark.parametrize("by", ["symbolic", "exhaustive"])
def test_both_ways_to_search_a_scope_list_the_same(by):
    answer = separate(
        "delta-serializable", "log-serializable", "two-partitions", by=by, transactions=[1, 2],
        shipped=False,
    )  # fmt: skip
    specs = protocol("delta-serializable"), level("log-serializable")
    assert names_of(answer.unexercised) == enumerated(specs, scope("two-partitions"), (1, 2))


@pytest.mark.slow
def test_schedules_are_watched():
    answer = separate(
        "locking-serializable", "serializable", "fixed-keys", transactions=[2], shipped=False
    )
    assert answer.found is False
    listed = names_of(answer.unexercised)
    assert "no-aborted-read" in listed
    assert listed.isdisjoint({"wr", "ww", "rw"})


def test_a_definition_is_shown_only_if_something_that_is_not_listed_uses_it():
    answer = separate(
        "delta-serializable", "log-serializable", "two-partitions", transactions=[2], shipped=False
    )
    parts = {part.name: part for part in answer.unexercised.names}
    assert parts["overtaken"].is_inner
    assert "overtaken" not in answer.unexercised.words
    assert "ConcurrentWriteException" in answer.unexercised.words


def test_nothing_is_listed_beside_a_counterexample():
    answer = separate("delta-write-serializable", "log-serializable")
    assert answer.found
    assert answer.unexercised == Unexercised()


def test_a_limit_leaves_open_what_is_exercised(monkeypatch):
    def ended(*_):
        raise TimeLimit("time limit of 1 s")

    monkeypatch.setattr(space_searches, "watch_proposals", ended)
    answer = separate(excuses(), "log-serializable", "two-partitions", shipped=False)
    assert answer.found is False
    assert answer.unexercised.names == ()
    (line,) = answer.unexercised.lines()
    assert line.startswith("Unknown whether exercised (limit): Vectors, Backfill, Aborted, both")
    assert "both" in answer.to_json()["exercise_unknown"]


def test_two_searches_leave_what_neither_exercised():
    first = Unexercised(
        (
            UnexercisedName("set", "A"),
            UnexercisedName("set", "B"),
            UnexercisedName("axiom", "both", ("A", "B")),
            UnexercisedName("axiom", "of-a", ("A",)),
        )
    )
    second = Unexercised(
        (
            UnexercisedName("set", "B"),
            UnexercisedName("axiom", "both", ("B",)),
            UnexercisedName("axiom", "of-a"),
        ),
        ("C",),
    )
    assert first.within(second).names == (
        UnexercisedName("set", "B"),
        UnexercisedName("axiom", "both", ("B",)),
        UnexercisedName("axiom", "of-a"),
    )
    assert first.within(second).unknown == ()


def test_a_sweep_says_what_no_candidate_exercised():
    done = sweep("two-partitions", 2, protocols=[excuses()], levels=["log-serializable"])
    specs = excuses(), level("log-serializable")
    assert names_of(done.unexercised) == enumerated(specs, scope("two-partitions"), (1, 2))
    assert "  Never exercised: Vectors, Backfill, Aborted" in str(done)
    assert done.to_json()["unexercised"]


@pytest.mark.slow
def test_a_sweep_of_three_transactions_asks_the_solver():
    done = sweep("two-partitions", 3, protocols=[excuses()], levels=["log-serializable"])
    assert names_of(done.unexercised) == {
        "Vectors",
        "Backfill",
        "Aborted",
        "both",
        "no-aborted-read",
    }
    assert "no candidate has" in done.unexercised.words


def test_a_sweep_of_histories_says_what_none_exercised():
    done = sweep_abstract(["snapshot-isolation"], 2, sessions=False, aborts=False)
    assert {"so", "Aborted"} <= names_of(done.unexercised)
    assert "Never exercised: so, " in str(done)


@pytest.mark.slow
def test_a_comparison_says_what_no_history_exercised():
    found = compare(["serializable", "snapshot-isolation"])
    by_universe = {lattice.universe: names_of(lattice.unexercised) for lattice in found.lattices}
    assert by_universe["abstract"] == set()
    assert by_universe["table"] == {"so", "Aborted", "no-aborted-read"}
    assert "Never exercised: so, Aborted" in str(found)


SLIP = '"Slip" acyclic wr | rw as order empty [Writer] ; rw ; [Writer] & ww^-1 as late'


def test_an_answer_names_the_axioms_that_are_empty_by_their_text(tmp_path, call):
    slip = read_spec(SLIP, "slip")
    answer = separate("serializable", slip, transactions=[1, 2])
    assert answer.unexercised.always_empty == ("axiom late of slip",)
    assert "Always empty by its text, so it cannot fail: axiom late of slip." in str(answer)
    found = separate(slip, "serializable", transactions=[1, 2])
    assert found.found
    assert found.to_json()["always_empty"] == ["axiom late of slip"]
    path = tmp_path / "slip.cat"
    path.write_text(SLIP)
    _, out, err = call("separate", "serializable", path, "--transactions", "2", "--json")
    assert json.loads(out)["always_empty"] == ["axiom late of slip"]
    assert err.count("axiom late cannot fail") == 1


@pytest.mark.slow
def test_a_proof_names_the_axioms_that_are_empty_by_their_text():
    text = '"Slip" empty [Aborted] ; wr as no-aborted-read empty wr & [Writer] as late'
    answer = separate_unbounded("delta-serializable", read_spec(text, "slip"))
    assert answer.proved
    assert "axiom late of slip" in str(answer)


@pytest.mark.parametrize("name", ["table", "rows", "no-ops"])
def test_the_vocabulary_of_a_scope_is_that_of_its_pairs(name):
    inside = scope(name)
    found = set()
    for candidate in chain.from_iterable(candidates(inside, n, lambda _: True) for n in (1, 2)):
        frame = candidate.frame
        relations = frame.every_relation()
        for one, pairs in relations.items():
            refined = relations.get(BASE[one].refines)
            if any((pairs if refined is None else refined - pairs).rows):
                found.add(one)
        found |= {one for one, members in frame.sets.items() if members}
    assert scope_names(inside) == found


@pytest.mark.slow
@given(st.sets(st.sampled_from(sorted(format_named("delta").terms)), max_size=6))
@settings(deadline=None)
def test_the_chosen_scopes_exercise_all_names_that_some_scope_does(names):
    chosen = [*scopes_with_names(scope("table"), names)]
    assert chosen[0].name == "table"
    gained = [shipped_scope_names(one.name) & names for one in chosen]
    possible = names & frozenset().union(
        *map(shipped_scope_names, ("table", "altered", "rows", "no-ops", "orders"))
    )
    assert frozenset().union(*gained) >= possible
    # for names below the level of files, all scopes that exercise one are chosen, not the fewest
    if names.isdisjoint(relations_of("delta-rows")):
        assert all(gained[k] - frozenset().union(*gained[:k]) for k in range(1, len(gained)))


def test_specs_whose_names_a_scope_exercises_are_searched_there_alone():
    answer = separate("snapshot-isolation", "log-serializable")
    assert (answer.universe, answer.bound.count("search space")) == ("table", 1)


@pytest.mark.slow
def test_without_a_scope_those_with_the_vocabulary_are_searched():
    """In `table` nothing has a vector; where tables have them, the excuse is seen to be wrong."""
    answer = separate(excuses(), "log-serializable")
    assert answer.found
    assert answer.universe.startswith("table, ")
    assert "delta.enableDeletionVectors" in answer.litmus.tables["t"].properties
    assert answer.bound.startswith("no counterexample with up to 2 transactions")
    assert "'table'" in answer.bound
    assert answer.bound.partition("; then ")[2].endswith(")")


@pytest.mark.slow
def test_several_scopes_without_a_counterexample_are_one_answer():
    answer = separate("delta-serializable", "log-serializable")
    assert answer.found is False
    assert answer.universe.startswith("table, altered")
    assert answer.bound.count("up to 3 transactions") == 1 + answer.universe.count(",")
    assert {"Meta", "Protocol", "Marked", "metadata-clashes"}.isdisjoint(
        names_of(answer.unexercised)
    )
    assert "Large" in names_of(answer.unexercised)
    assert answer.ships is not None


SCOPE = """
title = "Appends"
[table]
columns = "id INT"
init = ["INSERT INTO t VALUES (1)"]
[scope]
transactions = [2]
statements = ["INSERT INTO t VALUES ({fresh})"]
"""


def test_a_scope_without_a_statement_that_the_vocabulary_needs_is_said_to_be_one(tmp_path, call):
    (tmp_path / "appends.toml").write_text(SCOPE)
    (tmp_path / "row-level.cat").write_text(EXCUSES.strip())
    asked = (tmp_path / "row-level.cat", "log-serializable")
    status, out, _ = call("separate", *asked, "--universe", tmp_path / "appends.toml")
    assert status == 0
    assert "Never exercised: " in out
    assert "removes-meets-removes" in out
    (line,) = [line for line in out.splitlines() if line.startswith("Scope appends has no")]
    assert "(Vectors" in line or "Vectors," in line or "Vectors)" in line


@pytest.mark.slow
def test_the_names_of_shipped_scopes_are_those_that_their_candidates_exercise():
    """``ISOLITMUS_UPDATE=1`` writes the file."""
    computed = {name: sorted(scope_names(scope(name))) for name in sorted(shipped_files("scopes"))}
    lines = (
        f"{json.dumps(name)} = [\n" + "".join(f"    {json.dumps(one)},\n" for one in names) + "]\n"
        for name, names in computed.items()
    )
    head = "# The names that candidates of one and two transactions make non-empty, by scope.\n"
    text = head + "".join(lines)
    path = HOME / NAMES_FILE
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text
