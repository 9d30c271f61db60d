"""The theorems on conflict, view and state forms, and how these compare (docs/semantics.md, 3.4 and
3.5): exhaustively for up to three writers in the scope "lattice", among the histories in which the
first committer wins.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from level_forms import FORMS, Executed, Reorderings, StepMemory, part

from isolitmus.checker.execution.commit_loop import execute, execution_frame, judge_execution
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.relation import Relation
from isolitmus.specs import level, protocol, scope
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec

FIRST_COMMITTER_WINS = read_spec('"NC" empty ww & unseen as first-committer-wins', "nc")
LEVELS = ("log-serializable", "write-serializable")
PROTOCOL = "delta-write-serializable"
EXAMINED = {1: 10, 2: 181, 3: 4749}
HOLES = 18
"""Of them the protocol admits so many that break write-serializable."""
VIOLATIONS = 986
"""So many break write-serializable."""


@dataclass(frozen=True)
class Judged:
    """A history of so many writers, its orders, and the names of what allows it."""

    found: object
    orders: Reorderings
    allows: frozenset

    @property
    def size(self):
        return self.found.writers


@pytest.fixture(scope="module")
def histories():
    lattice, memory = scope("lattice"), StepMemory()
    conflict = {name: compile_spec(level(name)) for name in LEVELS}
    conflict[PROTOCOL] = compile_spec(protocol(PROTOCOL))
    judged = []
    for size in EXAMINED:
        for found in candidates(lattice, size, compile_spec(FIRST_COMMITTER_WINS)):
            if found is None:
                continue
            names = tuple(event.name for event in found.events)
            effects = tuple(event.effect for event in found.events)
            run = Executed(lattice.tables, names, found.statements, effects, found.states)
            orders = Reorderings(run, memory)
            allows = {name for name, admits in conflict.items() if admits(found.frame)}
            allows |= {name for name, holds in FORMS.items() if holds(orders)}
            judged.append(Judged(found, orders, frozenset(allows)))
    assert {n: sum(h.size == n for h in judged) for n in EXAMINED} == EXAMINED
    return judged


def smallest(histories, allows, forbids):
    """The number of writers of the smallest history that one allows and the other does not."""
    return min(
        (h.size for h in histories if allows in h.allows and forbids not in h.allows), default=None
    )


SER, SER_VIEW, SER_STATE = "log-serializable", "log-serializable-view", "log-serializable-state"
WS, WS_VIEW, WS_STATE = "write-serializable", "write-serializable-view", "write-serializable-state"
PREFIX, COHERENT = "-prefix", "-coherent"
LATTICE = [  # stronger, weaker, writers of the smallest history that only the weaker allows
    (SER, SER_VIEW, 3),
    (SER_VIEW, SER_STATE, 2),
    (SER, WS, 2),
    (SER_STATE, WS_STATE + COHERENT, 2),
    (WS, WS_VIEW + PREFIX, 3),
    (WS_VIEW + PREFIX, WS_VIEW, 3),
    (WS, WS_STATE + COHERENT, 2),
    (WS_STATE + COHERENT, WS_STATE + PREFIX, 3),
    (WS_STATE + PREFIX, WS_STATE, 3),
    (SER_VIEW, WS_VIEW + PREFIX, 2),  # Theorem 1, with the two above
    (WS_VIEW, WS_STATE, 2),
]
NOT_INCLUDED = [
    (WS_VIEW + PREFIX, WS_STATE + COHERENT, 3),
    (WS_VIEW, WS_STATE + PREFIX, 3),
    (SER_STATE, WS, 2),
    (SER_VIEW, WS, 3),
]


def test_the_page_has_the_same_lattice_and_figures():
    page = (Path(__file__).parents[3] / "docs" / "semantics.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)` \| (\d) \|$", page, re.MULTILINE)
    pairs = [(a, b, int(n)) for a, b, n in rows]
    assert sorted(pairs) == sorted([*LATTICE, *NOT_INCLUDED])
    assert f"{HOLES} holes of {max(EXAMINED)} writers" in page
    assert f"{VIOLATIONS} violations" in page


@pytest.mark.slow
def test_the_lattice_of_the_forms(histories):
    found = [(a, b, smallest(histories, b, a)) for a, b, _ in LATTICE]
    assert found == LATTICE
    assert [smallest(histories, a, b) for a, b, _ in LATTICE] == [None] * len(LATTICE)
    assert [(a, b, smallest(histories, a, b)) for a, b, _ in NOT_INCLUDED] == NOT_INCLUDED
    assert min(h.size for h in histories if WS not in h.allows) == 2  # write skew


@pytest.mark.slow
def test_theorem_3_one_order_by_conflicts_explains_every_version(histories):
    admits = compile_spec(level(WS))
    for history in histories:
        if WS not in history.allows:
            continue
        names = history.orders.run.names
        order = [names.index(name) for name in judge(history.found.frame, level(WS)).witness]
        for k in range(1, history.size + 1):
            assert history.orders.gives(part(order, k), k, view=True)
        assert admits(restricted(history.found.frame, range(history.size - 1)))


def restricted(frame, nodes):
    """The frame with these nodes only."""
    nodes = list(nodes)

    def members(bits):
        return sum(1 << k for k, i in enumerate(nodes) if bits >> i & 1)

    relations = {
        name: Relation(tuple(members(r.rows[i]) for i in nodes))
        for name, r in frame.relations.items()
    }
    names = tuple(frame.nodes[i] for i in nodes)
    return type(frame)(names, relations, {n: members(s) for n, s in frame.sets.items()})


@pytest.mark.slow
def test_theorem_6_every_hole_has_a_bridge_over_a_blind_append(histories):
    holes = [h for h in histories if PROTOCOL in h.allows and WS not in h.allows]
    assert [h.size for h in holes] == [3] * HOLES  # Theorem 7: none with two
    for hole in holes:
        frame, events = hole.found.frame, hole.found.events
        wr, ww, rw = (frame.relations[name] for name in ("wr", "ww", "rw"))
        bridges = [
            (a, i, x)
            for a, i in rw.pairs()
            for x in range(hole.size)
            if frame.sets["Blind"] >> i & 1
            and not frame.sets["Blind"] >> x & 1
            and ((i, x) in wr or (i, x) in ww)
            and events[a].read_version < events[i].version <= events[x].read_version
            and events[x].version < events[a].version
        ]
        assert bridges


@pytest.mark.slow
def test_theorem_8_every_violation_has_a_dangerous_structure(histories):
    violations = [h for h in histories if WS not in h.allows]
    assert len(violations) == VIOLATIONS
    for history in violations:
        events = history.found.events
        rw = history.found.frame.relations["rw"].pairs()
        assert any(
            _concurrent(events[first], events[pivot])
            and _concurrent(events[pivot], events[last])
            and events[last].version < events[pivot].version
            and events[last].version <= events[first].version
            for first, pivot in rw
            for middle, last in rw
            if middle == pivot
        )


def _concurrent(a, b):
    return a.read_version < b.version and b.read_version < a.version


FOUR = read_litmus(
    """
title    = "A bridge with two spans"
source   = "Theorem 9"
schedule = "a.start i x y a.commit"

[table]
columns        = "v INT, part INT"
partitioned_by = ["part"]
init           = ["INSERT INTO t VALUES (1, 0), (1, 1), (1, 2), (1, 3)"]

[transactions]
a = "INSERT INTO t SELECT sum(v), 2 FROM t WHERE part = 0"
i = "INSERT INTO t VALUES (1, 0)"
x = "INSERT INTO t SELECT sum(v), 1 FROM t WHERE part = 0"
y = "INSERT INTO t SELECT sum(v), 3 FROM t WHERE part = 1 OR part = 2"
""",
    "four",
)


def test_theorem_9_a_minimal_cycle_of_four():
    done = execute(FOUR, protocol(PROTOCOL))
    assert not any(event.aborted for event in done.events)
    (violation,) = judge_execution(done, level(WS)).violations
    assert {edge.source for edge in violation.cycle} == {"a", "i", "x", "y"}
    frame = execution_frame(done)
    for missing in range(4):
        rest = [k for k in range(4) if k != missing]
        assert compile_spec(level(WS))(restricted(frame, rest))


TWO_TABLES = read_litmus(
    """
title    = "Two tables that count each other"
source   = "Theorem 10"
schedule = "a.start b a.commit"

[tables.s]
columns = "v BIGINT"
init    = ["INSERT INTO s VALUES (100)"]

[tables.t]
columns = "v BIGINT"
init    = ["INSERT INTO t VALUES (200)"]

[transactions]
a = "INSERT INTO s SELECT count(*) FROM t"
b = "INSERT INTO t SELECT count(*) FROM s"
""",
    "two-tables",
)


def test_theorem_10_tables_that_are_serializable_each_are_not_together():
    done = execute(TWO_TABLES, protocol("delta-serializable"))
    assert not any(event.aborted for event in done.events)
    verdict = judge_execution(done, level("serializable"))
    assert [edge.kind for edge in verdict.violations[0].cycle] == ["rw", "rw"]
    writes = [{write.table for write in event.effect.writes} for event in done.events]
    assert writes == [{"t"}, {"s"}]  # so each table alone has one writer, and is serializable
