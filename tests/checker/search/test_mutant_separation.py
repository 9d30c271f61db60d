"""Mutants of specs: each operator's are made, what tells one is judged anew from its text, and none
is left over.
"""

import random
from dataclasses import replace
from itertools import combinations

import pytest
from case_checks import check_cases, sample, sampled
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.search.conformance_suite import (
    is_caught,
    smallest_hitting_set,
    smallest_suite,
    with_single_expectation,
    write_suite,
)
from isolitmus.checker.search.mutant_separation import (
    AskedTest,
    changed_expressions,
    find_kills,
    separate_mutants,
    spec_answer,
)
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.frame import Frame
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.relation import Relation
from isolitmus.specs import level, litmus, protocol, spec
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.equivalents_file import equivalents, read_equivalents
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import every_level, levels, proposals, protocols
from isolitmus.specs.files.spec_reader import PACKAGE, read_spec
from isolitmus.specs.language.mutants import make_mutants
from isolitmus.specs.language.printer import spec_text

PROTOCOLS = [name for name in protocols() if name.startswith(("delta", "databricks"))]


def changes(text, name="mine"):
    return [mutant.change for mutant in make_mutants(read_spec(f'"Mine" {text}', name), PACKAGE)]


@pytest.mark.parametrize(
    ("expr", "becomes"),
    [
        ("wr | ww", ["ww", "wr", "wr & ww"]),
        ("wr & ww", ["ww", "wr", "wr | ww"]),
        ("wr ; ww", ["ww", "wr"]),
        ("wr \\ ww", ["wr"]),
        ("wr+", ["wr"]),
        ("wr*", ["wr"]),
        ("wr?", ["wr"]),
        ("wr^-1", ["wr"]),
        ("[Writer] ; wr", ["wr", "[Writer]"]),
        ("[~Writer]", ["[Writer]"]),
        ("wr", []),
    ],
)
def test_each_operator_has_its_mutants(expr, becomes):
    others = ["irreflexive", "empty"]
    swapped = [f"{test} {expr} as order" for test in others]
    found = changes(f"acyclic {expr} as order")
    assert found == [*swapped, *(f"acyclic {each} as order" for each in becomes)]


def test_an_axiom_a_silence_and_a_label_are_dropped():
    text = "empty ww as a empty rw as b silent wr as c show Writer as d"
    found = [change for change in changes(text) if change.startswith("without")]
    assert found == [
        "without empty ww as a", "without empty rw as b", "without silent wr as c", "without show Writer as d"
    ]  # fmt: skip


def test_a_let_is_changed_in_all_places_that_use_it():
    text = "let both = wr | ww let unused = rw | so acyclic both as a empty both & rw as b"
    first = make_mutants(read_spec(f'"Mine" {text}', "mine"), PACKAGE)[0]
    assert (first.was, first.becomes) == ("let both = wr | ww", "let both = ww")
    assert first.spec.needs == {"ww", "rw"}


def test_nothing_comes_twice():
    """``wr | wr`` has the same spec twice by dropping a part, and itself by none."""
    found = changes("empty (wr | wr) ; ww as a")
    assert len(set(found)) == len(found)
    assert [each for each in found if each.startswith("empty")] == [
        "empty ww as a", "empty wr | wr as a", "empty wr ; ww as a", "empty wr & wr ; ww as a"
    ]  # fmt: skip


@pytest.mark.slow
@sampled
def test_a_mutant_is_its_text(seed, whole):
    def read_again(name, mutant):
        again = read_spec(mutant.spec.text, mutant.spec.name)
        assert again.axioms == mutant.spec.axioms
        assert spec_text(again) == mutant.spec.text
        assert (again.format, again.binders) == (spec(name).format, spec(name).binders)

    names = sample([*levels(), *PROTOCOLS], seed, whole)
    every = [(name, mutant) for name in names for mutant in make_mutants(spec(name), PACKAGE)]
    assert len(check_cases(read_again, every)) > 30


@pytest.mark.slow
def test_of_a_protocol_only_empty_axioms_are_made():
    assert all(
        a.test == "empty"
        for m in make_mutants(protocol("delta-serializable"), PACKAGE)
        for a in m.spec.axioms
    )


def test_a_clause_that_is_said_of_everybody_without_it_is_none():
    """``see current`` and ``lock writes X row until commit`` are so without them, too."""
    found = [mutant.change for mutant in make_mutants(protocol("locking-read-committed"), PACKAGE)]
    assert found == [
        "without lock reads S row until next-asked", "without lock searches U row until next-asked"
    ]  # fmt: skip


EVERY_TIME = {
    "locking-read-committed-page",
    "derby-serializable",
    "postgresql-read-committed",
    "delta-rs-serializable",
    "pl-cs",
    "no-lost-update",
}
"""Protocols, and levels of operations, whose statements the others have, but for a few."""


def each(names):
    return [n if n in EVERY_TIME else pytest.param(n, marks=pytest.mark.wide) for n in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", each(protocols("locking")))
def test_no_clause_of_an_engine_is_left(name):
    report = separate_mutants(protocol(name))
    assert report.judged
    assert report.survivors == ()
    for one in report.told:
        judged_anew(report.spec, one)


def judged_anew(spec, one):
    """What tells a mutant, from its text: both say of it what the report says, and not the same."""
    for kill in one.kills[:3]:
        test = read_litmus(kill.test.text, kill.test.name) if kill.found else litmus(kill.name)
        if kill.found and isinstance(test, HistoryTest):
            assert str(check_history(test.history, spec)) != str(
                check_history(test.history, one.mutant.spec)
            )
        elif not kill.found:
            again = [*find_kills(one.mutant, [AskedTest(test, spec)])]
            assert [each.words for each in again] == [kill.words]


OF_OPERATIONS = [name for name in every_level() if "loc" in level(name).needs]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*levels(), *each(OF_OPERATIONS)])
def test_no_mutant_of_a_level_is_left(name):
    report = separate_mutants(level(name))
    assert report.survivors == ()
    for one in report.told:
        judged_anew(report.spec, one)


@pytest.mark.slow
@pytest.mark.parametrize("name", each(PROTOCOLS))
def test_no_mutant_of_a_protocol_is_left(name, tmp_path):
    report = separate_mutants(protocol(name))
    assert report.survivors == ()
    suite = smallest_suite(report)
    sets = [{kill.name for kill in one.kills} for one in report.told]
    names = {kill.name for kill in suite.tests}
    assert all(each & names for each in sets)
    assert refuted(sets, len(names) - 1)
    files = write_suite(suite, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "README.md"])
    for file in files:
        test = read_litmus((tmp_path / file).read_text(), file.removesuffix(".toml"))
        assert list(test.expect) == [name]
        assert run(test, report.spec).expected == "met"


def refuted(sets, size):
    """Whether no ``size`` names have one in each set: by another solver, which counts. It need not
    be told of a set that holds another one, nor of a name that another one has all the sets of.
    """
    import z3

    sets = [each for each in {*map(frozenset, sets)} if not any({*o} < each for o in sets)]
    of = {name: {each for each in sets if name in each} for each in sets for name in each}
    needless = {n for n in of for o in of if of[n] < of[o] or (of[n] == of[o] and n < o)}
    sets = [each - needless for each in sets]
    names = {name: z3.Bool(name) for each in sets for name in each}
    solver = z3.Solver()
    solver.add(*(z3.Or([names[name] for name in sorted(each)]) for each in sets))
    solver.add(z3.PbLe([(each, 1) for each in names.values()], size))
    return solver.check() == z3.unsat


@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), max_size=8))
def test_the_fewest_are_the_fewest(sets):
    found = smallest_hitting_set(sets)
    assert all(each & {*found} for each in sets)
    some = (c for k in range(len(found)) for c in combinations("abcdef", k))
    assert not any(all(each & {*choice} for each in sets) for choice in some)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta-write-serializable", "databricks-serializable-middle"])
def test_what_need_not_be_carried_out_says_the_same(name, seed):
    spec, rng = protocol(name), random.Random(seed)
    every = [test for test in map(litmus, litmus_names()) if isinstance(test, Litmus)]
    tests = [AskedTest(test, spec) for test in rng.sample(every, 40)]
    passed = 0
    for mutant in rng.sample(make_mutants(spec, PACKAGE), 20):
        changed = changed_expressions(spec, mutant.spec)
        for asked in tests:
            if not asked.may_differ(mutant, changed):
                passed += 1
                assert spec_answer(asked.test, mutant.spec) == asked.said
    assert passed > 400


@pytest.fixture(scope="module")
def small():
    return separate_mutants(protocol("delta-rs-snapshot-isolation"))


@pytest.mark.slow
def test_a_client_that_checks_less_is_caught(small):
    suite = smallest_suite(small)
    tests = [with_single_expectation(kill.test, suite) for kill in suite.tests]
    name = small.spec.name
    assert all(is_caught(one.mutant, tests, name) for one in small.told)
    assert not any(is_caught(one.mutant, tests, name) for one in small.argued)


@pytest.mark.slow
def test_a_flipped_outcome_is_caught(small):
    suite = smallest_suite(small)
    for kill in suite.tests:
        test = with_single_expectation(kill.test, suite)
        expect = test.expect[small.spec.name]
        for name, (outcome,) in expect.outcome.items():
            other = "no-op" if outcome == "committed" else "committed"
            flipped = replace(expect, outcome={**expect.outcome, name: (other,)})
            wrong = replace(test, expect={small.spec.name: flipped})
            assert run(wrong, small.spec).expected == "not met"


@pytest.mark.slow
def test_the_report_says_what_it_found(small):
    rows = small.records.rows
    assert len(rows) == len(small.judged) == len(small.to_json()["mutants"])
    assert {row[4] for row in rows} == {"told", "argued"}
    assert small.to_json()["survivors"] == []


@pytest.mark.slow
def test_what_no_time_was_for_is_unknown():
    report = separate_mutants(level("causal"), budget=Budget(0))
    assert {one.outcome for one in report.judged} == {"unknown"}
    assert len(report.survivors) == len(report.judged)


@pytest.mark.slow
def test_a_level_has_no_suite():
    with pytest.raises(IsolitmusError, match="read-committed is not a protocol"):
        smallest_suite(separate_mutants(level("read-committed"), budget=Budget(0)))


@pytest.mark.slow
def test_an_argument_that_a_history_refutes_is_refused(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" with ww from versions acyclic wr | ww as order')
    (tmp_path / "mine.equivalent.toml").write_text(
        '[[equivalent]]\nargument = "ww is nothing"\n'
        'changes = [{ was = "acyclic wr | ww as order", becomes = "acyclic wr as order" }]\n'
    )
    with pytest.raises(LitmusError) as error:
        separate_mutants(spec(str(tmp_path / "mine.cat")))
    assert "'acyclic wr as order' is said to be equivalent, and history-" in str(error.value)
    assert "take the argument out" in str(error.value)


ARGUED = '[[equivalent]]\nargument = "so"\nchanges = [{ was = "%s", becomes = "%s" }]\n'
WAS = "acyclic wr | ww as no-circular-information-flow"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ARGUED % (WAS.replace("ww", "rw"), ""), "it has no statement 'acyclic wr | rw"),
        (ARGUED % (WAS, WAS), f"'{WAS}' does not become '{WAS}'"),
        (ARGUED % (WAS, WAS.replace("wr | ", "")) * 2, "which has an argument already"),
        ('[[equivalent]]\nargument = " "\nchanges = []\n', "is empty; say why"),
        ('[[equivalent]]\nargument = "so"\nchanges = []\n', "is empty; name at least one"),
        ('[[equivalent]]\nargument = "so"\nchanges = ["x"]\n', "expected tables"),
        ('[[equivalent]]\nargument = "so"\nchange = []\n', "has no key 'change'"),
        ('like = ["detla"]\n', "no file of arguments: 'detla'; did you mean 'delta'"),
        ("equivalent = 3\n", "equivalent is 3"),
        ("[[", "not valid TOML"),
    ],
)
def test_bad_arguments_are_refused(text, says):
    with pytest.raises(LitmusError) as error:
        read_equivalents(text, "mine.toml", make_mutants(level("read-committed"), PACKAGE))
    assert says in str(error.value)
    assert str(error.value).startswith("mine.toml")


def test_every_file_of_arguments_is_of_a_spec():
    parts = ("rows", "merges", "middle", "middle-by-file", "named", "oldest-rows")
    shared = {"delta", "delta-rs", "databricks", *(f"databricks-{part}" for part in parts)}
    assert shipped_files("equivalent").keys() - shared <= {
        *every_level(),
        *protocols(),
        *protocols("locking"),
        *proposals(),
    }


# Arguments as laws: random frames that are as an argument says, and nothing else


def frame_of(rng, n=5):
    """Some frame of a log with readers: a wr begins with a writer, a rw ends in one, ww is a part
    of log, nobody aborted, and everyone reads one version: at or before it are those it reads from,
    later those that overwrite that.
    """
    writers = [i for i in range(n) if i < 1 or rng.random() < 0.7]
    rng.shuffle(writers)
    place = {i: k for k, i in enumerate(writers)}
    reads = {i: rng.randint(0, place.get(i, len(writers))) for i in range(n)}
    log = {(a, b) for a in writers for b in writers if place[a] < place[b]}
    ww = {pair for pair in log if rng.random() < 0.4}
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b and rng.random() < 0.4]
    wr = {(a, b) for a, b in pairs if a in place and place[a] < reads[b]}
    rw = {(a, b) for a, b in pairs if b in place and place[b] >= reads[a]}
    members = sum(1 << i for i in writers)
    relations = {"log": log, "ww": ww, "wr": wr, "rw": rw, "so": set()}
    sets = {"Writer": members, "Reader": (1 << n) - 1 & ~members, "Aborted": 0}
    return Frame(
        tuple(f"T{i}" for i in range(n)),
        {name: Relation.of(n, sorted(of)) for name, of in relations.items()},
        sets,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log-serializable", "update-serializable", "write-serializable"])
def test_what_is_argued_of_a_level_holds_of_any_frame(name, seed):
    of = level(name)
    every = make_mutants(of, PACKAGE)
    argued = equivalents(of, every)
    others = [mutant.spec for mutant in every if mutant.number in argued]
    rng = random.Random(seed)
    frames = [frame_of(rng) for _ in range(3_000)]
    said = [compile_spec(of)(frame) for frame in frames]
    assert {*said} == {True, False}
    assert len(others) == len(argued) > 1
    for other in others:
        assert [compile_spec(other)(frame) for frame in frames] == said
