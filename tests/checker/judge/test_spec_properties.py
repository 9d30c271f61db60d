"""Who comes last and has seen all: what is not asked of it, because it can be said beforehand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.spec_properties import INTO, ignores_latecomers
from isolitmus.checker.sweeps.space import IDLE, RowContents, Space
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation
from isolitmus.specs import scope, spec
from isolitmus.specs.files.spec_catalogue import levels, protocols
from isolitmus.specs.files.spec_reader import read_spec

IGNORE = [made for made in map(spec, (*levels(), *protocols("delta"))) if ignores_latecomers(made)]


@st.composite
def with_and_without(draw, made):
    """A frame whose last node is a latecomer, and the frame of the others."""
    n = draw(st.integers(1, 4))
    relations, sets = {}, {}
    for name in made.needs:
        if name[0].isupper():
            sets[name] = 0 if name == "Aborted" else draw(st.integers(0, (2 << n) - 1))
            continue
        pairs = [(i, j) for i in range(n + 1) for j in range(n + 1) if i != j]
        if name == "unseen":
            pairs = [(i, j) for i, j in pairs if n not in (i, j)]
        elif name in INTO:
            pairs = [(i, j) for i, j in pairs if i != n]
        relations[name] = draw(st.sets(st.sampled_from(pairs), max_size=6)) if pairs else set()
    names = tuple(f"T{i}" for i in range(n + 1))
    return [
        Frame(
            names[:size],
            {
                name: Relation.of(size, [(i, j) for i, j in some if max(i, j) < size])
                for name, some in relations.items()
            },
            {name: some & (1 << size) - 1 for name, some in sets.items()},
        )
        for size in (n + 1, n)
    ]


@pytest.mark.slow
@given(st.data())
def test_a_latecomer_changes_nothing_where_it_is_said_to_be_ignored(data):
    made = data.draw(st.sampled_from(IGNORE), "spec")
    with_it, without = data.draw(with_and_without(made))
    admits = compile_spec(made)
    assert admits(with_it) == admits(without)


def test_delta_and_the_levels_of_tables_ignore_latecomers():
    names = {made.name for made in IGNORE}
    assert names > {"log-serializable", "write-serializable", "serializable", "snapshot-isolation"}
    assert names > {"delta-serializable", "delta-write-serializable"}


@pytest.mark.parametrize(
    "line",
    [
        "acyclic wr ; wr^-1 as order",
        "empty wr as nobody-reads",
        "empty rw ; [Writer] as order",
        "acyclic wr | adds-meets-reads as order",
        "irreflexive [Writer] as nobody-writes",
        "acyclic (rw ; rw^-1) & wr as order",
        "with co from linearisations acyclic co | wr as order",
    ],
)
def test_of_what_a_latecomer_may_break_it_is_not_said(line):
    assert not ignores_latecomers(read_spec(f'"A" {line}', "a"))


def reached(space, n, choose):
    """The state after up to n commits at random, some of which missed others."""
    states = [choose.choice(space.starts)]
    while len(states) <= n:
        position = len(states)
        found = choose.choice(space.options(choose.choice(states), position))
        if found >= 0:
            states.append(space.after(states[-1], found))
    return states[choose.randint(0, n)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["fourteen-writers", "two-partitions", "writers-unpartitioned", "lattice", "rows"]
)
def test_what_statements_do_to_rows_does_not_depend_on_files(name, seed):
    """The rows that are left, whether there is an error, and whether a file changes: of random
    states.
    """
    space = Space(scope(name))
    assert RowContents.known(space)
    contents, choose = RowContents(space), random.Random(seed)
    changed = idle = 0
    for _ in range(80):
        state = reached(space, 3, choose)
        late = contents.late(state, 4)
        assert late == [min(option, 0) for option in space.options(state, 4)]
        for k in range(len(space.scope.statements)):
            after = space.step(state, k, 4)
            assert after is not None
            assert contents.step(contents.of(state), k, 4) == contents.of(after)
        changed += late.count(0)
        idle += late.count(IDLE)
    assert changed > 100
    assert idle > 10


def test_of_other_statements_that_is_not_supposed():
    assert not RowContents.known(Space(scope("altered")))
