"""Three readings and two searches check each other: graph, bits, circuit; solver and
enumeration.
"""

import operator
import random
from itertools import islice, permutations

import numpy as np
import pytest
from case_checks import check_cases, sampled
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import separate
from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.delta.table_circuit import add_read_nodes
from isolitmus.checker.delta.table_solver import build_circuit, unsupported_scope
from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import admits, judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.judge.matrix_semantics import BitSlices, Matrices, spec_holds
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.solver.circuit_semantics import assert_admitted, assert_forbidden
from isolitmus.checker.solver.circuits import Gates, Solver
from isolitmus.checker.universes import abstract
from isolitmus.checker.universes import abstract_enumeration as abstract_exhaustive
from isolitmus.checker.universes import abstract_solver as abstract_symbolic
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.frame import Frame
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.relation import Relation
from isolitmus.model.spec_algebra import without_silences
from isolitmus.model.verdict import Allowed
from isolitmus.specs import litmus, scope, spec
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import levels, related_protocols
from isolitmus.specs.files.spec_reader import read_spec

SHIPPED = [*levels(), *related_protocols(), "databricks-write-serializable-newest"]
ABSTRACT = [name for name in SHIPPED if spec(name).needs <= abstract.NAMES]
SIZES = (1, 2, 3)


def size(history):
    """Links of sessions, aborted transactions, operations, keys."""
    keys = {op.version.object for t in history.transactions for op in t.operations}
    links = sum(len(session) - 1 for session in history.sessions)
    aborted = sum(t.status == "aborted" for t in history.transactions)
    return links, aborted, history.operations, len(keys)


# The readings: one text, one frame, three algebras

RELATIONS = ("wr", "ww", "rw", "so")
EXPRESSIONS = st.recursive(
    st.sampled_from([*RELATIONS, "[Writer]", "[~Writer]"]),
    lambda e: st.one_of(
        st.tuples(e, st.sampled_from(["|", ";", "\\", "&"]), e).map(lambda t: f"({' '.join(t)})"),
        st.tuples(e, st.sampled_from(["+", "*", "?", "^-1"])).map(lambda t: f"({t[0]}){t[1]}"),
    ),
    max_leaves=5,
)
TESTS = st.sampled_from(["acyclic", "irreflexive", "empty"])
CLAUSES = st.builds(
    operator.add,
    st.lists(st.tuples(TESTS, EXPRESSIONS), min_size=1, max_size=2),
    st.lists(st.tuples(st.just("silent"), EXPRESSIONS), max_size=1),
)
TEXTS = CLAUSES.map(
    lambda clauses: '"S" ' + " ".join(f"{t} {e} as a{k}" for k, (t, e) in enumerate(clauses))
)


@st.composite
def frames(draw):
    n = draw(st.integers(1, 4))
    bits = st.integers(0, 2 ** (n * n) - 1)

    def relation():
        pairs = draw(bits) & draw(bits)
        return Relation(tuple(pairs >> n * i & 2**n - 1 for i in range(n)))

    writers = draw(st.integers(0, 2**n - 1))
    return Frame(
        tuple(f"T{i}" for i in range(n)),
        {name: relation() for name in RELATIONS},
        {"Writer": writers},
    )


def matrices(booleans, some):
    """The same frame with the Booleans of an algebra."""
    n = len(some.nodes)
    relations = {
        name: [{j: booleans.true for j in range(n) if (i, j) in r} for i in range(n)]
        for name, r in some.relations.items()
    }
    members = some.sets["Writer"]
    writer = [booleans.true if members >> i & 1 else booleans.false for i in range(n)]
    return Matrices(booleans, [booleans.true] * n, relations, {"Writer": writer})


@pytest.mark.slow
@given(frames(), TEXTS)
def test_bits_circuit_and_graph_read_a_text_alike(some, text):
    spec_ = read_spec(text, "s")
    verdict = str(judge(some, spec_))
    assert verdict in {"allowed", "forbidden", *("silent" for _ in spec_.silences)}
    assert compile_spec(spec_)(some) == admits(some, spec_) == (verdict == "allowed")
    assert compile_spec(without_silences(spec_))(some) == (verdict != "forbidden")
    bits = matrices(BitSlices(0b11), some)
    assert spec_holds(bits, spec_) == 0b11 * (verdict == "allowed")
    for assert_it, expected in (
        (assert_admitted, verdict == "allowed"),
        (assert_forbidden, verdict == "forbidden"),
    ):
        gates = Gates()
        assert_it(gates, matrices(gates, some), spec_)
        assert (Solver(gates).check() is not None) == expected


@pytest.mark.slow
@given(st.lists(frames(), min_size=1, max_size=9), TEXTS)
def test_many_frames_at_once_are_each_judged_alone(some, text):
    spec_ = read_spec(text, "s")
    some = [f for f in some if len(f.nodes) == len(some[0].nodes)]
    every = BitSlices((1 << len(some)) - 1)
    n = len(some[0].nodes)
    relations = {
        name: [
            {
                j: sum(((i, j) in f.relations[name]) << k for k, f in enumerate(some))
                for j in range(n)
            }
            for i in range(n)
        ]
        for name in RELATIONS
    }
    writer = [sum((f.sets["Writer"] >> i & 1) << k for k, f in enumerate(some)) for i in range(n)]
    together = Matrices(every, [every.true] * n, relations, {"Writer": writer})
    alone = sum(compile_spec(spec_)(f) << k for k, f in enumerate(some))
    assert spec_holds(together, spec_) == alone


@given(st.lists(st.booleans(), max_size=7), st.integers(1, 8))
def test_a_counter_counts(values, most):
    gates = Gates()
    literals = [gates.new() for _ in values]
    counts = gates.at_least(literals, most)
    model = Solver(gates).check([v if yes else -v for v, yes in zip(literals, values, strict=True)])
    assert [model[c] for c in counts] == [sum(values) >= c for c in range(1, most + 1)]


@given(st.integers(1, 5), st.randoms(use_true_random=False))
def test_an_order_may_be_any_order_and_nothing_else(n, random):
    gates = Gates()
    before = gates.order(n)
    wanted = list(range(n))
    random.shuffle(wanted)
    place = {thing: k for k, thing in enumerate(wanted)}
    pairs = list(permutations(range(n), 2))
    choice = [before[i][j] if place[i] < place[j] else before[j][i] for i, j in pairs]
    assert Solver(gates).check(choice) is not None
    if n > 2:
        assert Solver(gates).check([before[0][1], before[1][2], before[2][0]]) is None


# The abstract universe

MINE = {
    "rc-po": '"RC" (* Biswas and Enea *) acyclic wr | ((rival & (rf ; po)) ; rf^-1) as order',
    "given": '"Given" empty ww ; rw as unbound',
    "readers": '"Readers" irreflexive [~Writer] ; so ; [Reader] ; so^-1 as no-two-readers',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ABSTRACT, *MINE])
def test_every_small_history_is_judged_by_bits_as_by_the_graph(name):
    some = read_spec(MINE[name], name) if name in MINE else spec(name)
    observed = abstract.observes_versions(some)
    judged = 0
    every = abstract_exhaustive.history_batches(2, abstract.variation_for(some, some), some)
    for batch in islice(every, 0, None, 9):
        admitted = batch.admits(some, observed=observed)
        for h in np.flatnonzero(batch.valid)[:: 1 + batch.valid.size // 5]:
            for k in range(admitted.shape[1]):
                history = batch.history(int(h) * batch.choices + k, observed=observed)
                assert size(history)[:2] == batch.size[:2]
                assert isinstance(check_history(history, some), Allowed) == admitted[h, k], history
                judged += 1
    assert judged > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["given", "readers", "rc-po"])
def test_solver_and_enumeration_agree_on_a_spec_of_mine(name):
    mine, theirs = read_spec(MINE[name], name), spec("read-committed")
    for a, b in ((mine, theirs), (theirs, mine)):
        first, _ = abstract_symbolic.search(a, b, 2)
        second, _ = abstract_exhaustive.search(a, b, 2)
        assert (first and size(first)) == (second and size(second))


@pytest.mark.slow
@sampled
def test_solver_and_enumeration_agree_on_pairs_of_levels(seed, whole):
    """Up to three transactions over three keys, of a sample two levels with three; found or none,
    the smallest size.
    """
    two = random.Random(seed).sample(ABSTRACT, 2)
    for n in SIZES:
        pairs = [*permutations(two if n == 3 and not whole else ABSTRACT, 2)]
        smallest = enumerated(n, pairs)
        for pair in pairs:
            found, _ = abstract_symbolic.search(spec(pair[0]), spec(pair[1]), n)
            assert (found and size(found)) == smallest.get(pair), (n, pair)


def enumerated(n, pairs):
    """The size of the smallest history of n transactions for each pair that has one."""
    smallest = {}
    names = sorted({name for pair in pairs for name in pair})
    everything = abstract.Variation(sessions=True, aborts=True)
    for batch in abstract_exhaustive.history_batches(n, everything, *map(spec, names)):
        admitted = {name: batch.valid & batch.admits(spec(name))[:, 0] for name in names}
        for a, b in pairs:
            if (a, b) not in smallest and (admitted[a] & ~admitted[b]).any():
                smallest[a, b] = batch.size
    return smallest


NEIGHBOURS = {
    ("read-committed", "read-atomic"): ["r(x0) r(y2)", "w(x2) w(y2)"],  # fractured read
    ("read-atomic", "causal"): ["r(x0) r(y2)", "r(x3) w(y2)", "w(x3)"],  # causality violation
    ("causal", "prefix-consistency"): ["r(x0) r(y4)", "r(x3) r(y0)", "w(x3)", "w(y4)"],  # long fork
    ("prefix-consistency", "snapshot-isolation"): ["r(x0) w(x1)", "r(x0) w(x2)"],  # lost update
    ("snapshot-isolation", "serializable"): ["r(x0) w(y1)", "r(y0) w(x2)"],  # write skew
    ("update-serializable", "serializable"): ["r(x0) r(y4)", "r(x3) r(y0)", "w(x3)", "w(y4)"],
}


@pytest.mark.slow
@pytest.mark.parametrize("pair", NEIGHBOURS, ids="-".join)
def test_neighbouring_levels_differ_by_the_anomaly_that_everyone_knows(pair):
    answer = separate(*map(spec, pair), sessions=pair[0] != "update-serializable")
    assert answer.universe == "abstract"
    assert [str(t) for t in answer.litmus.history.transactions] == NEIGHBOURS[pair]
    assert answer.litmus.history.sessions == ()
    back = separate(spec(pair[1]), spec(pair[0]), transactions=SIZES, shipped=False)
    assert back.found is False


SPELLED = {
    "plain": '"P" with ww from versions acyclic wr | ww as order',
    "vacuous": r'"V" with ww from versions acyclic wr | ww | so \ so as order',
    "by-name": '"N" with ww from versions let before = so acyclic before | wr | ww as order',
}


@pytest.mark.slow
@pytest.mark.parametrize("other", ["causal", "read-committed", "snapshot-isolation"])
def test_an_answer_does_not_depend_on_how_a_spec_is_spelled(other):
    """What is never looked at does not count; what a definition looks at does."""
    plain, vacuous, by_name = (read_spec(text, name) for name, text in SPELLED.items())
    found = [[said(x, spec(other)), said(spec(other), x)] for x in (plain, vacuous)]
    assert found[0] == found[1]
    assert separate(plain, by_name).litmus.history.sessions
    assert separate(by_name, plain).found is False


def said(a, b):
    answer = separate(a, b, shipped=False)
    history = answer.litmus.history if answer.found else None
    return answer.found, answer.transactions, history, answer.assumptions


@pytest.mark.slow
def test_sessions_and_aborts_vary_unless_told_otherwise():
    pair = spec("update-serializable"), spec("causal")
    assert separate(*pair).litmus.history.sessions == ((1, 2),)
    assert separate(*pair, sessions=False).found is False
    pair = spec("write-serializable"), spec("read-committed")
    assert [t.status for t in separate(*pair).litmus.history.transactions] == ["committed", "aborted"]  # fmt: skip
    alone = separate(*pair, aborts=False, shipped=False)
    assert alone.found is False
    assert alone.assumptions[0].startswith("every transaction commits, and reads")


@pytest.mark.slow
def test_no_relation_between_levels_contradicts_a_history_that_ships():
    """Of any two levels, as ``separate --both`` compares them."""
    implied = [
        pair
        for pair in permutations(levels(), 2)
        if separate(*map(spec, pair)).with_catalogue().found is False
    ]
    assert len(implied) >= 20
    named = sorted({name for pair in implied for name in pair})

    def speak(name):
        test = litmus(name)
        if isinstance(test, HistoryTest):
            said = {one: str(check_history(test.history, spec(one))) for one in named}
        else:
            done = execute(test)
            said = {one: str(judge_execution(done, spec(one))) for one in named}
        assert [
            pair for pair in implied if [said[n] for n in pair] == ["allowed", "forbidden"]
        ] == []
        return sum(said[stronger] == "allowed" for stronger, _ in implied)

    assert sum(map(bool, check_cases(speak, litmus_names()))) > 100


@pytest.mark.slow
def test_writers_alone_allow_the_read_only_anomaly():
    answer = separate(spec("write-serializable"), spec("update-serializable"), scope("table"))
    assert [type(s).__name__ for s in answer.litmus.transactions.values()] == ["Delete", "Insert", "Read"]  # fmt: skip
    assert sorted(edge.kind for edge in answer.violation.cycle) == ["rw", "rw", "wr"]


# The table universe


@pytest.mark.slow
@pytest.mark.wide
def test_solver_and_enumeration_agree_on_every_pair_in_the_table_universe():
    """Up to three transactions: the same answer to the letter, or none in the universe both times;
    then what ships may have one (``ships``).
    """
    table = scope("table")
    first = {}
    for n in (2, 3):
        for candidate in candidates(table, n, lambda _: True):
            plain, wide = candidate.frame, delta_frame(candidate.events, reasons=False, reads=True)
            admitted = {
                name: admission_of(name)(wide if needs_reads(spec(name)) else plain)
                for name in SHIPPED
            }
            for a in SHIPPED:
                for b in SHIPPED if admitted[a] else ():
                    if not admitted[b]:
                        first.setdefault((a, b), candidate.litmus(f"{a}-not-{b}", "", ""))
    for a in SHIPPED:
        for b in SHIPPED:
            answer = separate(spec(a), spec(b), table, by="symbolic", transactions=(2, 3))
            expected = first.get((a, b))
            assert bool(answer.found and not answer.ships) == (expected is not None), (a, b)
            if expected is not None:
                assert answer.litmus.transactions == expected.transactions, (a, b)
                assert answer.litmus.schedule == expected.schedule, (a, b)


KNOWN = {}


def admission_of(name):
    return KNOWN.setdefault(name, compile_spec(spec(name)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 0), (2, 1)], ids=str)
def test_the_circuit_has_every_frame_that_execution_gives(shape):
    table = scope("table")
    everything = frozenset().union(*(spec(name).needs for name in SHIPPED))
    gates = Gates()
    made = build_circuit(gates, table, table.inits[0], *shape)
    symbolic = made.frames(everything)
    wide = add_read_nodes(made, symbolic)
    solver = Solver(gates)
    count = 0
    for candidate in candidates(table, sum(shape), lambda _: True):
        if candidate.writers != shape[0]:
            continue
        count += 1
        concrete = looks(delta_frame(candidate.events, reasons=False, reads=True))
        assert solver.check(
            [
                *chosen(made, table, candidate),
                *equal(symbolic, candidate.frame),
                *(found(gates, wide, made.size, look) for look in concrete),
            ]
        )
    assert count > 150


def looks(some):
    """What the reads of a frame are, whatever their names: reader, source, rivals."""
    pairs = {name: some.relations[name].pairs() for name in ("in", "rf", "rival")}
    return {
        (j, s, tuple(sorted(u for u, r in pairs["rival"] if r == read)))
        for read, j in pairs["in"]
        for s, r in pairs["rf"]
        if r == read
    }


def found(gates, symbolic, size, look):
    """A literal that says of a symbolic frame that it has such a read."""
    reader, source, rivals = look
    rf, inside, rival = (symbolic.relations[name] for name in ("rf", "in", "rival"))
    every = range(size + 1)
    return gates.disj(
        gates.conj([
            inside[node].get(reader, -1),
            rf[source].get(node, -1),
            *((1 if u in rivals else -1) * rival[u].get(node, -1) for u in every),
        ])
        for node in range(size + 1, len(symbolic.exists))
    )  # fmt: skip


def chosen(made, table, candidate):
    """The literals of a candidate's choices."""
    literals = []
    for j, (event, statement) in enumerate(
        zip(candidate.events, candidate.statements, strict=True)
    ):
        menu = [s[j] for s in table.statements] if j < made.writers else list(table.readers)
        literals.append(made.runs[j][menu.index(statement)])
        sees = made.sees[j]
        literals += [s if k < event.read_version else -s for k, s in enumerate(sees)]
    return literals


def equal(symbolic, concrete):
    """Literals that say of a symbolic frame that it is this one."""
    literals = []
    n = len(concrete.nodes)
    for name, matrix in symbolic.relations.items():
        for i in range(n):
            for j in range(n):
                pair = matrix[i].get(j, -1)
                literals.append(pair if (i, j) in concrete.relations[name] else -pair)
    for name, members in symbolic.sets.items():
        literals += [m if concrete.sets[name] >> i & 1 else -m for i, m in enumerate(members)]
    return literals


@pytest.mark.slow
def test_a_scope_without_an_outline_is_enumerated_and_says_why(tmp_path):
    path = tmp_path / "values.toml"
    path.write_text(
        'title = "By value"\nsource = "this test"\n[table]\ncolumns = "id INT, part INT"\n'
        'partitioned_by = ["part"]\ninit = ["INSERT INTO t VALUES (1, 0)"]\n'
        "[scope]\ntransactions = 2\n"
        'statements = ["DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 0)"]\n'
    )
    by_value = scope(str(path))
    assert unsupported_scope(by_value) == "'DELETE FROM t WHERE id = 1' looks at values"
    answer = separate(spec("delta-write-serializable"), spec("log-serializable"), by_value)
    assert answer.by == "exhaustive"
    assert answer.transactions == 2
    assert delta_frame(()).nodes == ()
