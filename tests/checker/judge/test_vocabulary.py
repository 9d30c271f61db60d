"""Every list of base names is whole: a name that the vocabulary has is known wherever it has to
be.
"""

import pytest

from isolitmus.checker.auditing.dependencies import dependency_frames as of_commits
from isolitmus.checker.delta.delta_rs_read_set import LEVEL_SETS, READ_SETS
from isolitmus.checker.delta.frame import BASIC, FLAGS, delta_frame
from isolitmus.checker.delta.table_circuit import NO_FILE_MERGED, add_read_nodes
from isolitmus.checker.delta.table_solver import build_circuit
from isolitmus.checker.execution import frame as frames
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.judge.completion import completions
from isolitmus.checker.solver.circuits import Gates
from isolitmus.checker.universes import abstract
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.history import History
from isolitmus.model.vocabulary import BASE, BINDERS, RELATIONS, SETS, TERMS, relations_of, sets_of
from isolitmus.specs import litmus, protocol, scope
from isolitmus.specs.files.spec_catalogue import protocols

HISTORIES = {*relations_of("histories"), *sets_of("histories")}
READS = {*relations_of("reads"), *sets_of("reads")}
OPERATIONS = {*relations_of("operations"), *sets_of("operations")}
MOMENTS = {*relations_of("moments")}
ITEMS = {*relations_of("items")}
TIMES = {*relations_of("times")}
LOGS = {*relations_of("logs"), *sets_of("logs")}
DELTA = {*relations_of("delta"), *sets_of("delta")}
ROWS = {*relations_of("delta-rows")}


def test_a_name_stands_once_and_is_worded():
    assert len(TERMS) == len(BASE) == len(RELATIONS) + len(SETS)
    for term in TERMS:
        assert bool(term.verb) == (term.kind == "relation"), term.name
        assert bool(term.inside) == bool(term.outside) == (term.kind == "set"), term.name
    said = [term.member("a", inside=inside) for term in SETS.values() for inside in (True, False)]
    assert len(set(said)) == 2 * len(SETS)
    assert all(sentence.startswith("a") for sentence in said)


def test_every_name_is_of_one_world_and_only_orders_are_bound():
    frames_have = HISTORIES | READS | OPERATIONS | MOMENTS | ITEMS | TIMES | LOGS | DELTA
    frames_have |= {*READ_SETS, *LEVEL_SETS, *ROWS}
    assert frames_have | {*relations_of("orders")} == {*BASE}
    assert {*relations_of("orders")} <= {*BINDERS.values()} <= {*RELATIONS}


def test_histories_have_the_names_of_histories():
    (first,) = completions(History.parse("w1(x1) r2(x1) c1 c2"))
    assert {*first.frame().names()} == HISTORIES | ITEMS
    assert {*first.frame(reads=True).names()} == HISTORIES | READS | ITEMS
    every = HISTORIES | READS | ITEMS | OPERATIONS
    assert {*first.frame(operations=True).names()} == every
    assert every | TIMES | MOMENTS == abstract.NAMES
    (first,) = completions(History.parse("b1 w1(x1) c1 b2 r2(x1) c2"))
    assert {*first.frame().names()} == HISTORIES | ITEMS | TIMES
    assert {*first.frame(operations=True).names()} == every | TIMES | MOMENTS


def test_runs_have_the_names_of_logs_and_of_delta():
    events = execute(litmus("reorder"), protocol("delta-write-serializable")).events
    assert {*frames.build_frame(events).names()} == HISTORIES | LOGS
    assert {*delta_frame(events).names()} == HISTORIES | LOGS | DELTA
    assert delta_frame(events).later == ROWS
    assert {*delta_frame(events, reads=True).names()} == HISTORIES | LOGS | DELTA | READS
    assert {*FLAGS} == {*sets_of("delta")}
    assert tuple(name for name in RELATIONS if name in HISTORIES | LOGS | DELTA) == BASIC


@pytest.mark.slow
@pytest.mark.parametrize("reads", [False, True])
def test_a_circuit_of_tables_has_them_all(reads):
    searched = scope("table")
    made = build_circuit(Gates(), searched, searched.inits[0], 2, 1)
    seen = made.frames(BASE)
    seen = add_read_nodes(made, seen) if reads else seen
    plain = HISTORIES | LOGS | DELTA | {*NO_FILE_MERGED, "merges-vectors"}
    assert {*seen.relations, *seen.sets} == plain | (READS if reads else set())


def test_audits_have_those_of_histories_and_the_log():
    for found in of_commits([]):
        assert {*found.names()} == HISTORIES | {"log"}


def test_delta_s_conflicts_are_the_axioms_of_its_protocols():
    """What grids, expectations and error classes know by name, and nothing else."""
    specs = [protocol(name) for name in protocols()]
    checks = {axiom.name for spec in specs for axiom in spec.axioms if axiom.test == "empty"}
    raised = {name for name in checks if name.endswith("Exception")}
    assert raised - {"ConcurrentModificationException"} == set(CONFLICTS)
    assert len({conflict.letter for conflict in CONFLICTS.values()}) == len(CONFLICTS)
