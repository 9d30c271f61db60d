"""``sweep``: exact counts, whoever counts, and what they say of Delta's promises."""

import itertools
import json
import random
from dataclasses import replace
from importlib import import_module

import pytest
from table_batches import candidate_batches, uncountable

from isolitmus.checker.delta.commit import apply_commit
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.frame import BASIC, BASIC_SETS, delta_frame
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.delta.table_solver import build_circuit
from isolitmus.checker.execution.commit_loop import after_attempt, initial_database
from isolitmus.checker.execution.serial_orders import ModelExecutor, is_serial_order
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.solver.circuit_semantics import assert_admitted, assert_forbidden
from isolitmus.checker.solver.circuits import Gates, Solver
from isolitmus.checker.sweeps.kernel import LOG_ORDER, SOME_ORDER
from isolitmus.checker.sweeps.pair_frames import Layout, Pairs, commit_number
from isolitmus.checker.sweeps.space import Space
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.sweeps.tally import Tallies, make_shards
from isolitmus.checker.universes.tables import candidate, candidates
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.execution import Event
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import scope, spec
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec

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
    return is_serial_order(ModelExecutor(found.plain()), names, seen)


def one_by_one(inside, n, asked, judged):
    """Every candidate executed, its whole frame judged, every serial order tried."""
    judges = {spec.name: compile_spec(spec) for spec in (*asked, *judged)}
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
    for batch in candidate_batches(inside, n):
        active = batch.active()
        every = dict(
            zip([s.name for s in (*asked, *judged)], batch.admits(*asked, *judged), strict=True)
        )
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
WITHOUT_OVERWRITE = (0, 1, 2, 3, 4, 5, 6, 7, 9)
LAYOUTS = ('partitioned_by = ["part"]', "", "rows_per_file = 1")


def by_values(layout, statements=10):
    """The scope of the first so many statements, or of those with these numbers."""
    whole = read_scope(VALUES.format(layout=layout), "values")
    if isinstance(statements, int):
        statements = range(statements)
    return replace(whole, statements=tuple(whole.statements[k] for k in statements))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_kernel_counts_as_bits_do(small, n):
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in MANY]
    done = sweep(small, n, protocols=asked, levels=judged)
    expected = by_bits(small, n, asked, judged)
    assert {name: found[:2] for name, found in counts(done).items()} == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "n", "statements"),
    [
        *((layout, 1, 10) for layout in LAYOUTS),
        (LAYOUTS[0], 2, 3),
        *((layout, 2, 10) for layout in LAYOUTS),
        *((layout, 2, WITHOUT_OVERWRITE) for layout in LAYOUTS),
        (LAYOUTS[0], 3, 5),
        (LAYOUTS[2], 3, (0, 3, 5, 7, 9)),
        (LAYOUTS[1], 3, 4),
    ],
)
def test_the_kernel_counts_as_execution_one_by_one_does(layout, n, statements):
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in LEVELS]
    inside = by_values(layout, statements)
    assert uncountable(inside) or len(inside.statements) < 3 or layout == LAYOUTS[0]
    done = sweep(inside, n, protocols=asked, levels=judged)
    assert counts(done) == one_by_one(inside, n, asked, judged)


def kept(inside, n, protocol, judged):
    """Every candidate carried out commit by commit as an execution is, no-ops kept."""
    judges = [compile_spec(level) for level in judged]
    tally = [0, dict.fromkeys([level.name for level in judged], 0), 0, 0]
    options = [[(k, v) for k in range(len(inside.statements)) for v in range(j)] for j in range(1, n + 1)]  # fmt: skip
    for init in inside.inits:
        for choices in itertools.product(*options):
            states, events = [initial_database(DELTA, inside.tables, init)], []
            transactions = {}
            for position, (k, version) in enumerate(choices, 1):
                name, statement = f"T{position}", inside.statements[k][position - 1]
                transactions[name] = statement
                done = statement_effect(statement, states[version], name, inside.tables)
                event = after_attempt(DELTA, Event(name, done, version), events, position, protocol)
                events.append(event)
                states.append(apply_commit(states[-1], event))
            if any(event.aborted for event in events):
                continue
            tally[0] += 1
            whole = delta_frame(events, reasons=False)
            for level, admits in zip(tally[1], judges, strict=True):
                tally[1][level] += not admits(whole)
            empty = Litmus(
                "", "", "", inside.tables, init, transactions, Schedule(()), format=inside.format
            )
            executor = ModelExecutor(empty)
            bags = [{name: table.rows() for name, table in state.items()} for state in states]
            names = [[e.name for e in events[:v] if e.version is not None] for v in range(n + 1)]
            tally[2] += not all(
                any(
                    is_serial_order(executor, order, bag)
                    for order in itertools.permutations(so_far)
                )
                for so_far, bag in zip(names, bags, strict=True)
            )
            tally[3] += not is_serial_order(executor, tuple(names[-1]), bags[-1])
    return tuple(tally)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "n", "chosen"),
    [
        (0, 1, (0, 2, 3, 4, 9)),
        (0, 2, (2, 3, 9)),
        *((layout, 2, (0, 2, 3, 4, 9)) for layout in (0, 1)),
        (0, 3, (0, 2, 3, 9)),
    ],
)
def test_no_ops_are_kept_as_each_protocol_keeps_them(layout, n, chosen):
    """Delta drops them unchecked at Serializable, and records them at WriteSerializable."""
    whole = by_values(LAYOUTS[layout])
    few = tuple(whole.statements[k] for k in chosen)
    inside = replace(whole, statements=few, noops="keep")
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in LEVELS]
    done = sweep(inside, n, protocols=asked, levels=judged)
    skipped = sweep(replace(inside, noops="skip"), n, protocols=asked, levels=judged)
    expected = {p.name: kept(inside, n, p, judged) for p in asked}
    assert counts(done) == expected
    assert all(
        done.protocols[name].admitted > skipped.protocols[name].admitted for name in PROTOCOLS
    )


@pytest.mark.slow
def test_protocols_that_see_rows_or_third_commits_are_counted_as_well():
    """A protocol over rows (whose forks pairs do not know), one that more commits can appease."""
    rows = read_spec(
        '"First committer wins" empty unseen & ww as lost irreflexive rw ; ww as skew', "rows"
    )
    kind = read_spec(r'"Forgiven later" empty (unseen & rw^-1) \ (log ; log) as missed', "kind")
    inside = by_values(LAYOUTS[0], 3)
    judged = [spec(name) for name in LEVELS]
    for asked in ([rows], [rows, kind, spec("delta-serializable")]):
        done = sweep(inside, 2, protocols=asked, levels=judged)
        assert counts(done) == one_by_one(inside, 2, asked, judged)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_frames_made_of_numbers_are_frames(layout, seed):
    """Relation by relation, set by set, on random candidates, whatever they overwrote."""
    inside = by_values(layout)
    choose = random.Random(seed)
    layout = Layout([*BASIC, *BASIC_SETS])
    plain = forked = 0
    space = Space(inside)
    pairs = Pairs(space, layout, [])
    for init, start in zip(inside.inits, space.starts, strict=True):
        for _ in range(60):
            n = choose.randint(1, 5)
            choices = [(choose.randrange(len(inside.statements)), choose.randrange(j)) for j in range(1, n + 1)]  # fmt: skip
            states, commits = [start], []
            for position, (k, version) in enumerate(choices, 1):
                effect = space.run(states[version], k, position)
                states.append(space.after(states[-1], effect))
                commits.append(commit_number(effect))
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
                assert made.frame.relations == {name: whole.relations[name] for name in BASIC}
                assert {name: made.frame.sets[name] for name in BASIC_SETS} == whole.sets
            assert layout.frame(layout.rows_of(whole)) == whole
    assert min(plain, forked) > 10


def pinned(scope, n, *found):
    """The counts of Delta's two levels and the repair: admitted, not log-, not write-serializable,
    unexplained, not as the log's order has it."""
    slow = pytest.mark.slow if n > 2 else ()
    return pytest.param(scope, n, found, marks=slow, id=f"{scope}-{n}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "expected"),
    [
        pinned("two-partitions", 2, (94, 0, 0, 0, 0), (102, 8, 0, 0, 8), (102, 8, 0, 0, 8)),
        pinned("two-partitions", 3, (953, 0, 0, 0, 0), (1155, 202, 4, 4, 190), (1149, 196, 0, 0, 184)),
        pinned("two-partitions", 4, (11596, 0, 0, 0, 0), (15959, 4363, 139, 131, 4000), (15720, 4124, 0, 0, 3789)),
        pinned("writers-partitioned", 2, (121, 0, 0, 0, 0), (133, 12, 0, 0, 12), (133, 12, 0, 0, 12)),
        pinned("writers-partitioned", 3, (1967, 0, 0, 0, 0), (2528, 561, 12, 8, 517), (2502, 535, 0, 0, 507)),
        pinned("writers-unpartitioned", 2, (125, 0, 0, 0, 0), (139, 12, 0, 0, 12), (139, 12, 0, 0, 12)),
        pinned("writers-unpartitioned", 3, (1839, 0, 0, 0, 0), (2419, 492, 4, 0, 450), (2399, 476, 0, 0, 450)),
        pinned("fourteen-writers", 3, (14234, 0, 0, 0, 0), (17724, 3490, 59, 45, 3314)),
    ],
)  # fmt: skip
def test_the_zeros_are_zeros_and_the_other_counts_do_not_change(name, n, expected):
    asked = [spec(protocol) for protocol in PROTOCOLS[: len(expected)]]
    done = sweep(scope(name), n, protocols=asked)
    found = tuple(
        (c.admitted, *(c.forbidden[level] for level in LEVELS), c.unexplained, c.not_log_order)
        for c in done.protocols.values()
    )
    assert found == expected
    serializable, _, *repaired = found
    assert serializable[1:] == (0, 0, 0, 0)
    assert all(counted[2:4] == (0, 0) for counted in repaired)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_what_is_not_executed_would_be_explained(small, n):
    """docs/semantics.md, Theorems 1 and 3, candidate by candidate: without a cycle some order
    explains every version, along the log the log's order gives the table.
    """
    acyclic, along = map(compile_spec, (SOME_ORDER, LOG_ORDER))
    executed = 0
    for found in candidates(small, n, lambda _: True):
        if acyclic(found.frame):
            assert not found.unexplained()
            executed += 1
        if along(found.frame):
            assert log_order_gives(found)
    assert executed > 100


@pytest.mark.slow
def test_the_smallest_is_the_first_that_enumeration_has(small):
    asked, judged = spec("delta-write-serializable"), spec("write-serializable")
    admits, allows = compile_spec(asked), compile_spec(judged)
    small = replace(small, statements=small.statements[:3])
    first = next(
        c for c in candidates(small, 3, admits)
        if c is not None and c.writers == 3 and not allows(c.frame)
    )  # fmt: skip
    found = sweep(small, 3).smallest[asked.name, judged.name]
    assert [s.sql for s in found.transactions.values()] == [s.sql for s in first.litmus("", "", "").transactions.values()]  # fmt: skip
    assert found.schedule == first.litmus("", "", "").schedule


@pytest.mark.slow
def test_two_processes_count_what_one_does(small):
    one, two = (sweep(small, 4, cores=cores) for cores in (1, 2))
    assert counts(one) == counts(two)
    assert one.to_json()["protocols"] == two.to_json()["protocols"]


@pytest.mark.slow
def test_shards_and_processes_do_not_change_the_counts(small, monkeypatch):
    def all_of(done):
        smallest = {key: litmus.text for key, litmus in done.smallest.items()}
        return counts(done), smallest, done.failed, done.failure

    whole = all_of(sweep(small, 2))
    monkeypatch.setattr(import_module("isolitmus.checker.sweeps.table_sweep"), "FEW", 10)
    assert all_of(sweep(small, 2, cores=2)) == whole
    monkeypatch.setattr("isolitmus.checker.sweeps.kernel.MOST", 5)
    assert all_of(sweep(small, 2)) == whole


@pytest.mark.slow
def test_shards_hold_every_candidate_once(small):
    for largest in (1, 50, 10_000):
        cut = make_shards(small, 3, largest)
        assert len({(shard.init, shard.choices) for shard in cut}) == len(cut)
        assert len(cut) * cut.each == 4116
        assert all(version < j for shard in cut for j, (_, version) in enumerate(shard.choices, 1))


def test_a_statement_that_fails_is_counted_and_said():
    text = """
title = "Overflow"
[table]
columns = "id INT, part INT"
init = ["INSERT INTO t VALUES (1, 0)"]
[scope]
transactions = 2
statements = ["UPDATE t SET id = 2147483647 WHERE part = 0", "UPDATE t SET id = id + 1 WHERE part = 0"]
"""
    done = sweep(read_scope(text, "overflow"), 2)
    assert done.failed == 1
    assert done.failure.choices == ((0, 0), (1, 1))
    assert done.failure.sql.startswith("UPDATE t SET id = id + 1")
    assert done.protocols["delta-serializable"].admitted == 3


@pytest.mark.slow
def test_more_candidates_than_the_limit_are_refused_with_how_long_it_would_take(small, monkeypatch):
    monkeypatch.setattr(import_module("isolitmus.checker.sweeps.table_sweep"), "SAMPLE", 0.2)
    with pytest.raises(IsolitmusError) as error:
        sweep(small, 5, limit=100_000, cores=2)
    assert "has 4,033,680 candidates with 5 transactions, more than the limit of 100,000; on 2 cores this takes about " in str(error.value)  # fmt: skip
    assert "to run it, add --limit 4033680" in str(error.value)


def test_specs_that_a_sweep_has_no_names_for_are_refused(small):
    with pytest.raises(
        IsolitmusError, match="mine needs co, which the transactions of a sweep do not"
    ):
        sweep(small, 2, levels=[read_spec('"Mine" acyclic co as order', "mine")])
    with pytest.raises(IsolitmusError, match="causal needs single reads"):
        sweep(small, 2, levels=[spec("causal")])


@pytest.mark.slow
def test_what_a_sweep_finds_is_in_its_json(small):
    document = json.loads(json.dumps(sweep(small, 2).to_json()))
    levels = document["protocols"]["delta-write-serializable"]["levels"]
    assert document["candidates"] == 196
    assert levels["write-serializable"] == {"forbidden": 0, "smallest": None}
    assert "[transactions]" in levels["log-serializable"]["smallest"]


def by_solver(inside, n, protocol, level=None):
    """How many candidates Z3 finds that the protocol admits (and the level forbids), each once."""
    found = 0
    for init in inside.inits:
        gates = Gates()
        made = build_circuit(gates, inside, init, n, 0)
        plain = made.frames(protocol.needs | (level.needs if level else frozenset()))
        assert_admitted(gates, plain, protocol)
        if level is not None:
            assert_forbidden(gates, plain, level)
        solver = Solver(gates)
        while (model := solver.check()) is not None:
            found += 1
            literals = [lit for run in (*made.runs, *made.sees) for lit in run]
            gates.add(*(-lit if model[lit] else lit for lit in literals))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("n", "statements"), [(2, 4), (2, 7), (3, 3)])
def test_the_kernel_counts_as_many_as_a_solver_finds(small, n, statements):
    """All models of the circuit, one by one, each ruled out once it is found."""
    inside = replace(small, statements=small.statements[:statements])
    asked, judged = [spec(name) for name in PROTOCOLS], [spec(name) for name in LEVELS]
    done = sweep(inside, n, protocols=asked, levels=judged)
    for protocol in asked:
        counted = done.protocols[protocol.name]
        assert by_solver(inside, n, protocol) == counted.admitted
        for level in judged:
            assert by_solver(inside, n, protocol, level) == counted.forbidden[level.name]
