"""``sweep``: exact counts, whoever counts, and what they say of Delta's promises."""

import itertools
import json
import random
from dataclasses import replace

import pytest

from isolitmus.checker.counting.kernel import LOG_ORDER, ONCE, SOME_ORDER, Kernel
from isolitmus.checker.counting.pairs import Layout, Pairs, commit
from isolitmus.checker.counting.space import Space
from isolitmus.checker.counting.tally import Tallies, shards
from isolitmus.checker.reading.admission import admission
from isolitmus.checker.running.effects import effect
from isolitmus.checker.running.execute import after, committed, initial
from isolitmus.checker.running.frames import PLAIN, SETS, frame
from isolitmus.checker.running.serial import ModelExecutor, gives
from isolitmus.checker.searching.table_bits import batches, uncountable
from isolitmus.checker.searching.universe import candidate, candidates
from isolitmus.checker.sweep import sweep
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.execution import Event
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import scope, spec
from isolitmus.specs.cat import read
from isolitmus.specs.scope_file import read_scope

PROTOCOLS = ("delta-serializable", "delta-write-serializable", "delta-write-serializable-repaired")
LEVELS = ("log-serializable", "write-serializable")


def counts(done):
    return {
        name: (c.admitted, c.forbidden, c.unexplained, c.not_log_order)
        for name, c in done.protocols.items()
    }


@pytest.fixture
def small():
    return scope("two-partitions")


def log_order_gives(found):
    names = tuple(event.name for event in found.events)
    seen = {name: table.rows() for name, table in found.states[-1].items()}
    return gives(ModelExecutor(found.plain()), names, seen)


def one_by_one(inside, n, asked, judged):
    """Every candidate executed, its whole frame judged, every serial order tried."""
    judges = {spec.name: admission(spec) for spec in (*asked, *judged)}
    found = Tallies.none([p.name for p in asked], [level.name for level in judged])
    for one in candidates(inside, n, lambda _: True):
        verdicts = {name: admits(one.frame) for name, admits in judges.items()}
        for name, tally in found.of.items():
            if verdicts[name]:
                tally.admitted += 1
                tally.unexplained += one.unexplained()
                tally.not_log_order += not log_order_gives(one)
                for level in tally.forbidden:
                    tally.forbidden[level] += not verdicts[level]
    return {
        name: (t.admitted, t.forbidden, t.unexplained, t.not_log_order)
        for name, t in found.of.items()
    }


def by_bits(inside, n, asked, judged):
    found = {p.name: [0, dict.fromkeys([level.name for level in judged], 0)] for p in asked}
    for batch in batches(inside, n):
        active = batch.active()
        every = dict(zip([s.name for s in (*asked, *judged)], batch.admits(*asked, *judged), strict=True))
        for name, tally in found.items():
            mine = every[name] & active
            tally[0] += mine.bit_count()
            for level in tally[1]:
                tally[1][level] += (mine & ~every[level]).bit_count()
    return {name: tuple(tally) for name, tally in found.items()}


MANY = ("log-serializable", "serializable", "write-serializable", "snapshot-isolation", "prefix-consistency")  # fmt: skip
VALUES = """
title = "Values have a say"
[table]
columns = "id INT, part INT"
{layout}
init = [["INSERT INTO t VALUES (1, 0), (2, 1)"], ["INSERT INTO t VALUES (1, 0)", "INSERT INTO t VALUES (3, 0)"]]
[scope]
transactions = 2
statements = [
    "INSERT INTO t VALUES ({{fresh}}, 0)",
    "INSERT INTO t SELECT {{fresh}}, 0 UNION ALL SELECT {{fresh}} + 1, 1",
    "DELETE FROM t WHERE id >= 100",
    "UPDATE t SET id = 1 WHERE id >= 2",
    "UPDATE t SET part = 1 WHERE part = 0",
    "INSERT INTO t SELECT sum(id), 1 FROM t WHERE part = 0",
    "MERGE INTO t USING (SELECT {{fresh}} AS id, 0 AS part) AS s ON t.part = 0 AND t.id >= 100 WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED AND t.part = 0 THEN UPDATE SET id = 7 WHEN MATCHED THEN DELETE",
    "INSERT OVERWRITE t SELECT id, part FROM t WHERE part = 1",
    "OPTIMIZE t",
]
"""
LAYOUTS = ('partitioned_by = ["part"]', "", "rows_per_file = 1")


def by_values(layout, statements=10):
    whole = read_scope(VALUES.format(layout=layout), "values")
    return replace(whole, statements=whole.statements[:statements])


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_kernel_counts_as_bits_do(small, n):
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in MANY]
    done = sweep(small, n, protocols=asked, levels=judged)
    expected = by_bits(small, n, asked, judged)
    assert {name: found[:2] for name, found in counts(done).items()} == expected


@pytest.mark.parametrize(
    ("layout", "n", "statements"),
    [
        *((layout, 1, 10) for layout in LAYOUTS),
        *((layout, 2, 3) for layout in LAYOUTS),
        *(pytest.param(layout, 2, 10, marks=pytest.mark.slow) for layout in LAYOUTS),
        pytest.param(LAYOUTS[0], 3, 5, marks=pytest.mark.slow),
        pytest.param(LAYOUTS[1], 3, 4, marks=pytest.mark.slow),
    ],
)
def test_the_kernel_counts_as_execution_one_by_one_does(layout, n, statements):
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in LEVELS]
    inside = by_values(layout, statements)
    assert uncountable(inside) or statements < 3 or layout == LAYOUTS[0]
    done = sweep(inside, n, protocols=asked, levels=judged)
    assert counts(done) == one_by_one(inside, n, asked, judged)


def kept(inside, n, protocol, judged):
    """Every candidate carried out commit by commit as an execution is, no-ops kept."""
    judges = [admission(level) for level in judged]
    tally = [0, dict.fromkeys([level.name for level in judged], 0), 0, 0]
    options = [[(k, v) for k in range(len(inside.statements)) for v in range(j)] for j in range(1, n + 1)]  # fmt: skip
    for init in inside.inits:
        for choices in itertools.product(*options):
            states, events = [initial(inside.tables, init)], []
            transactions = {}
            for position, (k, version) in enumerate(choices, 1):
                name, statement = f"T{position}", inside.statements[k][position - 1]
                transactions[name] = statement
                done = effect(statement, states[version], name, inside.tables)
                event = committed(Event(name, done, version), events, position, protocol)
                events.append(event)
                states.append(after(states[-1], event))
            if any(event.aborted for event in events):
                continue
            tally[0] += 1
            whole = frame(events, reasons=False)
            for level, admits in zip(tally[1], judges, strict=True):
                tally[1][level] += not admits(whole)
            executor = ModelExecutor(Litmus("", "", "", inside.tables, init, transactions, Schedule(())))  # fmt: skip
            bags = [{name: table.rows() for name, table in state.items()} for state in states]
            names = [[e.name for e in events[:v] if e.version is not None] for v in range(n + 1)]
            tally[2] += not all(
                any(gives(executor, order, bag) for order in itertools.permutations(so_far))
                for so_far, bag in zip(names, bags, strict=True)
            )
            tally[3] += not gives(executor, tuple(names[-1]), bags[-1])
    return tuple(tally)


@pytest.mark.parametrize(
    ("layout", "n"), [(0, 1), (0, 2), (1, 2), pytest.param(0, 3, marks=pytest.mark.slow)]
)
def test_no_ops_are_kept_as_each_protocol_keeps_them(layout, n):
    """Delta drops them unchecked at Serializable, and records them at WriteSerializable."""
    whole = by_values(LAYOUTS[layout])
    few = tuple(whole.statements[k] for k in (0, 2, 3, 4, 9)[: 7 - n])
    inside = replace(whole, statements=few, noops="keep")
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in LEVELS]
    done = sweep(inside, n, protocols=asked, levels=judged)
    skipped = sweep(replace(inside, noops="skip"), n, protocols=asked, levels=judged)
    expected = {p.name: kept(inside, n, p, judged) for p in asked}
    assert counts(done) == expected
    assert all(done.protocols[name].admitted > skipped.protocols[name].admitted for name in PROTOCOLS)


def test_protocols_that_see_rows_or_third_commits_are_counted_as_well():
    """A protocol over rows (whose forks pairs do not know), one that more commits can appease."""
    rows = read('"First committer wins" empty unseen & ww as lost irreflexive rw ; ww as skew', "rows")
    kind = read(r'"Forgiven later" empty (unseen & rw^-1) \ (log ; log) as missed', "kind")
    inside = by_values(LAYOUTS[0], 5)
    judged = [spec(name) for name in LEVELS]
    for asked in ([rows], [kind], [rows, kind, spec("delta-serializable")]):
        done = sweep(inside, 2, protocols=asked, levels=judged)
        assert counts(done) == one_by_one(inside, 2, asked, judged)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_frames_made_of_numbers_are_frames(layout):
    """Relation by relation, set by set, on random candidates, whatever they overwrote."""
    inside = by_values(layout)
    choose = random.Random(7)  # noqa: S311
    layout = Layout([*PLAIN, *SETS])
    plain = forked = 0
    for init in inside.inits:
        space = Space(inside, init)
        pairs = Pairs(space, layout, [])
        for _ in range(150):
            n = choose.randint(1, 5)
            choices = [(choose.randrange(len(inside.statements)), choose.randrange(j)) for j in range(1, n + 1)]  # fmt: skip
            states, commits = [0], []
            for position, (k, version) in enumerate(choices, 1):
                effect = space.run(states[version], k, position)
                states.append(space.after(states[-1], effect))
                commits.append(commit(effect))
            rows = []
            for j, (_, version) in enumerate(choices):
                with_earlier = [pairs.pair(c, commits[j], seen=i < version) for i, c in enumerate(commits[:j])]  # fmt: skip
                rows.append(layout.row(pairs.single(commits[j]), with_earlier))
            whole = pairs.frame(commits, [version for _, version in choices])
            if any(row & layout.forks(j) for j, row in enumerate(rows, 1)):
                forked += 1
            else:
                plain += 1
                assert layout.frame(rows) == whole
            if all(not space.done[c >> 1].effect.footprint.empty for c in commits):
                made = candidate(inside, init, choices, ())
                assert made.frame.relations == {name: whole.relations[name] for name in PLAIN}
                assert made.frame.sets == whole.sets
            assert layout.frame(layout.rows_of(whole)) == whole
    assert plain > 100 < forked + 80
