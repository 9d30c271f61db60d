"""Rules that are being designed: what each admits among the histories of the scopes with vectors."""

from functools import cache

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.render.search_results import separation_lines
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.checker.universes.scope_vocabulary import scope_names
from isolitmus.checker.universes.tables import candidates
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.spec_catalogue import proposals

SCOPES = ("vectors", "vectors-two-files")
PROVED = (
    "case-1-statistics-serializable", "case-1-values-serializable", "case-2-repaired-serializable",
    "case-1-statistics-and-2-repaired-serializable", "case-4-serializable",
    "case-4-repaired-serializable",
)  # fmt: skip
SERIALIZABLE = [name for name in proposals() if not name.endswith("write-serializable")]


@cache
def frames(name):
    """The graphs of all histories of two writers of a scope, without readers."""
    found = candidates(scope(name), 2, keep=lambda _: True)
    return [each.frame for each in found if each is not None and each.writers == 2]


def admitted(name, rule):
    admits = compile_spec(protocol(rule))
    return {place for place, frame in enumerate(frames(name)) if admits(frame)}


def violations(name, rule, promise):
    permits = compile_spec(level(promise))
    return {k for k in admitted(name, rule) if not permits(frames(name)[k])}


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.parametrize("rule", PROVED)
def test_a_rule_that_is_proved_admits_no_violation(name, rule):
    assert admitted(name, rule) >= admitted(name, "delta-serializable")
    assert violations(name, rule, "log-serializable") == set()


@pytest.mark.parametrize(
    ("rule", "promise", "name", "count"),
    [
        ("case-2-serializable", "log-serializable", "vectors", 21),
        ("case-2-serializable", "write-serializable", "vectors", 12),
        ("case-1-statistics-and-2-serializable", "log-serializable", "vectors", 26),
        ("case-1-statistics-and-2-serializable", "write-serializable", "vectors", 14),
    ],
)
def test_a_rule_that_is_refuted_admits_violations_and_a_sweep_counts_them(
    rule, promise, name, count
):
    assert len(violations(name, rule, promise)) == count
    counted = sweep(scope(name), 2, protocols=[rule], levels=[promise])
    assert counted.protocols[rule].forbidden[promise] == count
    assert counted.protocols[rule].admitted == len(admitted(name, rule))


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.parametrize("rule", SERIALIZABLE)
def test_a_pair_of_flags_admits_what_either_admits(name, rule):
    if "-and-" in rule and "repaired" not in rule:
        first, second = rule.removesuffix("-serializable").split("-and-")
        either = admitted(name, f"{first}-serializable") | admitted(
            name, f"case-{second}-serializable"
        )
        assert admitted(name, rule) >= either
    assert admitted(name, rule) >= admitted(name, "delta-serializable")


def test_a_reading_of_case_2_lies_between_the_released_rule_and_the_whole_case():
    for name in SCOPES:
        narrow, wide = (
            admitted(name, f"case-2-{reading}-serializable") for reading in ("no-merge", "matched")
        )
        assert admitted(name, "delta-serializable") <= narrow <= wide
        assert wide <= admitted(name, "case-2-serializable")


def test_the_repair_of_case_2_aborts_what_violates_and_little_else():
    repaired = admitted("vectors", "case-2-repaired-serializable")
    whole = admitted("vectors", "case-2-serializable")
    bad = violations("vectors", "case-2-serializable", "log-serializable")
    assert repaired <= whole - bad
    assert len(repaired) > len(admitted("vectors", "delta-serializable"))


def test_statistics_admit_less_than_values():
    for name in SCOPES:
        by_statistics = admitted(name, "case-1-statistics-serializable")
        assert by_statistics <= admitted(name, "case-1-values-serializable")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "size", "inside", "test"),
    [
        ("case-2-serializable", 2, "vectors", "merged-write-skew"),
        ("case-1-statistics-and-2-serializable", 2, "vectors", "merged-write-skew-of-updates"),
        ("case-3-serializable", 3, "compactions", "moved-then-deleted"),
        ("case-1-statistics-and-3-serializable", 3, "compactions", "moved-then-overwritten"),
        ("case-3-and-4-serializable", 3, "compactions", "moved-then-deleted"),
        ("delta-serializable-1305", 3, "compactions", None),
    ],
)
def test_a_history_is_found_without_a_scope(rule, size, inside, test):
    """Of all scopes that ship; `table` has all names of case 3, and no table that refutes it."""
    answer = separate(rule, "log-serializable")
    assert (answer.transactions, answer.universe.split(", ")[-1]) == (size, inside)
    assert answer.ships is None
    if test is not None:
        told = run(litmus(test), protocol(rule))
        assert told.serial.orders == ()
        assert not any(t.outcome.endswith("Exception") for t in told.run.transactions.values())


@pytest.mark.slow
def test_the_smallest_history_of_all_scopes_is_found(tmp_path):
    """One with three transactions is in a scope before that with two."""
    text = protocol("case-2-serializable").text
    excused = "(unseen \\ (unseen & merges-vectors))"
    for name in ("adds-meets-reads", "removes-meets-reads", "removes-meets-removes"):
        text = text.replace(f"unseen & {name}-unmerged", f"{excused} & {name}")
    assert text.count(excused) == 3
    rule = tmp_path / "whole-pairs.cat"
    rule.write_text(text)
    answer = separate(rule, "log-serializable")
    alone = {name: separate(rule, "log-serializable", name) for name in ("rows", "vectors")}
    assert answer.transactions == min(one.transactions for one in alone.values() if one.found)


@pytest.mark.slow
def test_a_rule_without_a_counterexample_was_searched_on_every_kind_of_table():
    answer = separate("case-4-repaired-serializable", "log-serializable")
    assert answer.found is False
    searched = answer.universe.split(", ")
    ours = {one for one in shipped_files("scopes") if scope(one).format == "delta"}
    assert answer.unsearched
    assert {*searched, *answer.unsearched} == ours
    assert len(searched) == len({*searched}) == answer.bound.count("'") / 2
    lines = [*separation_lines(answer)]
    assert "Not searched, since larger: fourteen-writers (--universe NAME)." in lines
    assert answer.to_json()["unsearched"] == ["fourteen-writers"]
    # The released rule admits this violation, too.
    assert (answer.beside.released, answer.ships) == (
        "delta-serializable",
        separate("delta-serializable", "log-serializable").ships,
    )
    assert "delta-serializable admits it, too" in " ".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["case-3-serializable", "case-4-serializable"])
def test_a_test_of_the_catalogue_that_the_released_rule_rejects_comes_first(rule):
    """`parked-merge-torn-read` is smaller, and violates the released rule as well."""
    beside = separate(rule, "log-serializable", "two-partitions").beside
    assert beside.released == ""
    for name, rejects in ((rule, False), ("delta-serializable", True)):
        outcomes = [t.outcome for t in run(beside.test, protocol(name)).run.transactions.values()]
        assert any(outcome.endswith("Exception") for outcome in outcomes) == rejects


WITHOUT_VECTORS = ("table", "two-partitions", "orders", "by-day")


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_VECTORS)
@pytest.mark.parametrize(
    "rule", ["case-2-serializable", "case-4-write-serializable", "case-2-and-4-serializable"]
)
def test_a_solver_knows_that_no_file_is_merged_without_vectors(name, rule):
    assert not scope_names(scope(name)) & {"merges-vectors", "removes-meets-removes-unmoved"}
    for promise in ("log-serializable", "write-serializable", "snapshot-isolation"):
        found = [
            separate(rule, promise, name, by=by, shipped=False) for by in ("symbolic", "exhaustive")
        ]
        one, other = ((each.found, str(each.litmus), each.unexercised) for each in found)
        assert one == other


def test_a_restore_beside_a_merged_delete_loses_its_update():
    """Whoever commits a vector commits again what it had found in it."""
    told = run(litmus("merged-with-restore"), protocol("case-2-serializable"))
    assert (told.serial.orders, told.run.tables["t"]) == ((), ((2,),))
    repaired = run(litmus("merged-with-restore"), protocol("case-2-repaired-serializable"))
    assert repaired.run.transactions["delete"].outcome == "ConcurrentDeleteDeleteException"


def test_a_restore_beside_a_compaction_loses_its_rows():
    """Where the winner has deleted a row of some compacted file, case 4 takes over all vectors."""
    told = run(litmus("moved-with-restore"), protocol("case-4-serializable"))
    assert (told.serial.orders, told.run.tables["t"]) == ((), ((1,), (2,), (12,)))
    assert str(told.levels["log-serializable"]) == "forbidden"
