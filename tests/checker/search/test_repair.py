"""``repair``: what it finds keeps the level, nothing cheaper does, and each part is needed."""

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import repair, separate
from isolitmus.checker.execution.commit_loop import execute, execution_frame, without_checks
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.search.repair import repaired_spec
from isolitmus.checker.search.repair_front import (
    ClauseEffect,
    PricedClause,
    RuleClause,
    cheapest_covers,
    repair_front,
    without_dominated,
)
from isolitmus.checker.search.rule_terms import (
    RULE_COSTS,
    RuleTerm,
    concurrent_pairs,
    pair_types,
    rule_terms,
)
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, TimeLimit, UnknownName
from isolitmus.model.vocabulary import relations_of
from isolitmus.specs import level, protocol, scope, spec
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec

TINY = """\
title  = "Writers of one file with a deletion vector"
source = "test"

[table]
columns    = "id INT"
properties = { "delta.enableDeletionVectors" = "true" }
init       = ["INSERT INTO t VALUES (1), (2), (3)"]

[scope]
transactions = [2]
statements   = [
    "DELETE FROM t WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "MERGE INTO t USING (SELECT id FROM t WHERE id = 2) AS s ON t.id = s.id - 1 WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (SELECT id FROM t WHERE id = 1) AS s ON t.id = s.id + 1 WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES ({fresh})",
]
readers      = ["SELECT * FROM t"]
"""
RULE, LEVEL = "case-2-serializable", "log-serializable"


@pytest.fixture(scope="module")
def tiny():
    return read_scope(TINY, "tiny")


@pytest.fixture(scope="module")
def repairs(tiny):
    return repair(RULE, LEVEL, [tiny], proofs=False)


@pytest.fixture(scope="module")
def frames(tiny):
    """Graphs of all candidates, whatever a protocol admits."""
    return [c.frame for n in (1, 2) for c in candidates(tiny, n, lambda _: True) if c is not None]


def test_terms_are_all_relations_of_commits_but_those_of_the_judge_and_those_checked_anyway():
    names = relations_of("delta", "delta-rows")
    terms = {t.names[0] for t in rule_terms(names, ()) if t.side == "pair"}
    judge = {"ww-later", "wr-earlier", "rw-later"}
    checked = {"protocol-clashes", "metadata-clashes", "same-domain", "writes-read-app"}
    assert terms == set(names) - judge - checked
    everything = rule_terms(relations_of("histories", "items", "logs"), ())
    assert {term.text for term in everything} == {"(vis ; unseen)", "(unseen ; unseen)"}


def test_costs_are_ranked_and_a_winner_costs_no_less_than_a_loser():
    assert [cost.rank for cost in RULE_COSTS] == sorted(cost.rank for cost in RULE_COSTS)
    assert len({cost.name for cost in RULE_COSTS}) == len(RULE_COSTS)
    sets = ("Merging", "ReadsTarget", "InsertsUnmatched", "Blind", "NoData")
    for term in rule_terms((), sets):
        if term.side == "loser":
            assert RuleTerm("winner", term.names, term.inside).rank >= term.rank


@pytest.mark.slow
def test_a_term_holds_where_its_text_in_cat_does(frames):
    longer = [c.frame for c in candidates(scope("two-partitions"), 3, lambda _: True) if c]
    frames = [*frames, *longer[::23]]
    terms = rule_terms(frames[0].every_relation(), frames[0].sets)
    kinds = [pair_types(frame, terms) for frame in frames]
    for bit, term in enumerate(terms):
        text = f'"T" format delta empty {RuleClause((term,)).text} as t'
        avoids = compile_spec(read_spec(text, "t"))
        for frame, of_pairs in zip(frames, kinds, strict=True):
            assert avoids(frame) != any(kind >> bit & 1 for kind in of_pairs), text
    bridged = [term for term in terms if term.side == "between"]
    assert any(kind >> terms.index(t) & 1 for t in bridged for kind in frozenset().union(*kinds))


def numbered_clause(number, size):
    """Return a clause whose text is unlike others', of so many names."""
    side = ("winner", "loser")[number % 2]
    terms = [RuleTerm(side, ("Blind",) * size)] if size else []
    return RuleClause(tuple(terms))


instances = st.integers(1, 4).flatmap(
    lambda n_bad: st.tuples(
        st.just(n_bad),
        st.lists(
            st.tuples(st.integers(0, 2**n_bad - 1), st.integers(0, 63), st.integers(1, 3)),
            min_size=1,
            max_size=7,
        ),
    )
)


@given(instances)
def test_covers_are_those_of_brute_force(instance):
    n_bad, drawn = instance
    clauses = [
        PricedClause(numbered_clause(k, size), ClauseEffect(bad, good))
        for k, (bad, good, size) in enumerate(drawn)
    ]
    least = {}
    for count in (1, 2, 3):
        for chosen in combinations(clauses, count):
            bad = good = 0
            for one in chosen:
                bad |= one.effect.bad
                good |= one.effect.good
            size = sum(one.clause.size for one in chosen)
            if bad == (1 << n_bad) - 1 and size <= 6:
                least[size] = min(least.get(size, 99), good.bit_count())
    expected, fewest = [], 99
    for size in sorted(least):
        if least[size] < fewest:
            fewest = least[size]
            expected.append((size, fewest))
    found = cheapest_covers(without_dominated(clauses), n_bad)
    assert [(cover.size, cover.needless) for cover in found] == expected
    whole = [c for c in repair_front(clauses, n_bad) if c.rank == 0]
    assert [(cover.size, cover.needless) for cover in whole] == expected


def test_clauses_are_written_with_sets_outside_and_relations_inside():
    relation = RuleTerm("pair", ("removes-read-row",))
    blind, merging = RuleTerm("winner", ("Blind",), False), RuleTerm("loser", ("Merging",))
    both = RuleTerm("loser", ("Blind", "NoData"))
    assert RuleClause((merging,)).text == "unseen ; [Merging]"
    assert RuleClause((relation,)).text == "unseen & removes-read-row"
    clause = RuleClause((blind, relation, merging, both))
    assert clause.text == ("[~Blind] ; (unseen & removes-read-row) ; [Merging & (Blind | NoData)]")
    assert clause.words == (
        "the winner is not a blind append, and the winner removes a row read by the loser, and the"
        " loser is a MERGE, and the loser is a blind append or the loser changes no data"
    )
    assert str(repaired_spec(protocol(RULE), [clause]).axioms[-1].name) == "repair"


def test_words_of_a_clause_without_a_relation_say_that_a_commit_is_concurrent():
    merging = RuleTerm("loser", ("Merging",))
    assert RuleClause(()).words == "a commit is concurrent"
    assert RuleClause((merging,)).words == "a commit is concurrent, and the loser is a MERGE"


def test_every_repair_keeps_the_level_by_brute_force(repairs, frames):
    admits, keeps = compile_spec(protocol(RULE)), compile_spec(level(LEVEL))
    assert repairs.outcome == "repaired"
    assert repairs.bad == sum(admits(f) and not keeps(f) for f in frames) > 0
    assert repairs.admitted == sum(map(admits, frames))
    released = compile_spec(protocol("delta-serializable"))
    for one in repairs.front:
        allows = compile_spec(one.spec)
        assert all(keeps(frame) for frame in frames if allows(frame))
        good = [frame for frame in frames if admits(frame) and keeps(frame)]
        assert one.cover.needless == sum(not allows(frame) for frame in good)
        assert one.saved == sum(allows(f) and not released(f) for f in good)


def test_no_rule_of_one_term_or_two_beats_the_front(repairs, frames):
    admits, keeps = compile_spec(protocol(RULE)), compile_spec(level(LEVEL))
    bad = [f for f in frames if admits(f) and not keeps(f)]
    good = [f for f in frames if admits(f) and keeps(f)]
    terms = rule_terms(frames[0].every_relation(), frames[0].sets)
    of_bad, of_good = ([pair_types(f, terms) for f in some] for some in (bad, good))
    columns = [1 << bit for bit in range(len(terms))]
    pairs = combinations(range(0, len(terms), 3), 2)
    for chosen in [*((k,) for k in range(len(terms))), *pairs]:
        wanted = sum(columns[k] for k in chosen)
        hits = [
            [any(k & wanted == wanted for k in kinds) for kinds in of] for of in (of_bad, of_good)
        ]
        if not all(hits[0]):
            continue
        rank, size = max(terms[k].rank for k in chosen), sum(terms[k].size for k in chosen)
        as_good = (
            one.cover.needless
            for one in repairs.front
            if one.cover.rank <= rank and one.cover.size <= size
        )
        assert min(as_good, default=99) <= sum(hits[1]), [terms[k].text for k in chosen]


def test_nothing_in_the_front_is_beaten(repairs):
    prices = [(one.cover.rank, one.cover.size, one.cover.needless) for one in repairs.front]
    assert len(prices) > 1
    for a, b in combinations(prices, 2):
        assert not all(x <= y for x, y in zip(a, b, strict=True))
        assert not all(y <= x for x, y in zip(a, b, strict=True))


def test_every_part_of_a_repair_is_needed(repairs):
    rule, keeps = protocol(RULE), compile_spec(level(LEVEL))
    for one in repairs.front:
        clauses = one.cover.clauses
        parts = iter(one.needed)
        for k, clause in enumerate(clauses):
            others = [*clauses[:k], *clauses[k + 1 :]]
            part = next(parts)
            seen = execution_frame(execute(part.litmus, without_checks(rule)))
            assert part.reason == "violation"
            assert compile_spec(repaired_spec(rule, others))(seen)
            assert not keeps(seen)
            assert not compile_spec(one.spec)(seen)
            for t in range(len(clause.terms)):
                part = next(parts)
                wider = RuleClause((*clause.terms[:t], *clause.terms[t + 1 :]))
                seen = execution_frame(execute(part.litmus, without_checks(rule)))
                assert part.reason == "needless abort"
                assert part.without == clause.terms[t].text
                assert compile_spec(one.spec)(seen)
                assert keeps(seen)
                assert not compile_spec(repaired_spec(rule, [*others, wider]))(seen)
        assert next(parts, None) is None


@pytest.mark.slow
def test_a_pair_that_no_term_tells_apart_has_the_same_terms_and_other_verdicts():
    found = repair("case-2-serializable", LEVEL, ["vectors"], proofs=False)
    if found.indistinct is None:
        assert min(one.cover.needless for one in found.front) == 0
        return
    keeps = compile_spec(level(LEVEL))
    seen = [execution_frame(execute(t, without_checks(protocol(RULE)))) for t in found.indistinct]
    terms = rule_terms(seen[0].every_relation(), seen[0].sets)
    assert pair_types(seen[0], terms) == pair_types(seen[1], terms)
    assert [keeps(frame) for frame in seen] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["case-2-serializable", "case-1-statistics-and-2-serializable"])
def test_row_local_statements_and_newly_deleted_rows_repair_case_2(rule):
    found = repair(rule, LEVEL, proofs=False)
    alone = {cover.clauses[0].text: cover.needless for cover in found.alone}
    assert "unseen & removed-rows-match-reads" in alone
    texts = {frozenset(c.text.split(" ; ")[-1] for c in r.cover.clauses) for r in found.front}
    assert frozenset({"[ReadsTarget]", "[InsertsUnmatched]"}) in texts
    released = min(one.cover.needless for one in found.front if one.cover.rank == 0)
    assert all(one.cover.needless < released for one in found.front if one.cover.rank)


@pytest.mark.slow
def test_the_hole_of_write_serializable_has_a_proved_repair_as_weak_as_the_one_that_ships():
    found = repair("delta-write-serializable", "write-serializable")
    proved = [one for one in found.front if one.proved_for is not None]
    weakest = min(proved, key=lambda one: one.cover.needless)
    [clause] = weakest.cover.clauses
    assert clause.text == "unseen & adds-meets-reads & (vis ; [~Blind] ; unseen)"
    ships = compile_spec(spec("delta-write-serializable-repaired"))
    rule, keeps = (
        compile_spec(spec(n)) for n in ("delta-write-serializable", "write-serializable")
    )
    lost = 0
    for n in (1, 2, 3):
        for candidate in candidates(scope("table"), n, rule):
            seen = None if candidate is None else candidate.frame
            lost += seen is not None and keeps(seen) and not ships(seen)
    assert weakest.cover.needless <= lost


@pytest.mark.slow
def test_a_rule_that_keeps_the_level_has_nothing_to_repair(tiny):
    found = repair("delta-serializable", LEVEL, [tiny], transactions=2)
    assert (found.outcome, found.front, found.bad) == ("holds", (), 0)
    assert str(found).startswith("Nothing to repair: no counterexample in scope tiny with up to 2")
    assert found.beside is not None


def test_a_violation_without_concurrent_commits_has_no_repair(tiny):
    strict = read_spec('"Nothing seen" empty vis ; [Writer] as alone', "nothing-seen")
    found = repair(RULE, strict, [tiny], transactions=2, proofs=False)
    assert (found.outcome, found.front) == ("impossible", ())
    assert "even a rule that aborts every concurrent commit admits it" in str(found)
    seen = execution_frame(execute(found.hole, protocol(RULE)))
    assert list(concurrent_pairs(seen)) == []
    assert not compile_spec(strict)(seen)


@pytest.mark.slow
def test_with_explained_a_table_of_no_serial_order_is_bad_too(tiny):
    plain = repair(RULE, "read-committed", [tiny], transactions=2)
    assert plain.outcome == "holds"
    found = repair(RULE, "read-committed", [tiny], transactions=2, explained=True)
    assert (found.outcome, found.hole.title.endswith("no serial order")) == ("repaired", True)
    for one in found.front:
        answer = separate(
            one.spec, "log-serializable", tiny, transactions=[2], unexplained=True,
            by="exhaustive", shipped=False,
        )  # fmt: skip
        assert answer.found is False


def test_a_spent_budget_gives_what_was_found_so_far(tiny):
    none = repair(RULE, LEVEL, [tiny], budget=Budget(0))
    assert (none.outcome, none.front, bool(none.ended)) == ("unknown", (), True)
    assert str(none).startswith(f"Unknown whether {RULE} admits anything that {LEVEL} forbids")


def test_a_limit_during_the_search_repairs_what_was_collected(tiny):
    class Steps(Budget):
        left_steps = 60

        def check(self):
            self.left_steps -= 1
            if self.left_steps < 0:
                raise TimeLimit("the time limit of 1 s ended it")

    found = repair(RULE, LEVEL, [tiny], budget=Steps())
    assert (found.outcome, found.ended) == ("repaired", "the time limit of 1 s ended it")
    assert found.bad > 0
    assert "so larger ones are not covered" in found.bound
    assert [one.needed for one in found.front] == [()] * len(found.front)


@pytest.mark.parametrize(
    ("rule", "keeps", "universe", "problem"),
    [
        ("serializable", LEVEL, "vectors", "'serializable' is a level, and a repair changes"),
        ("case-2-serialisable", LEVEL, "vectors", "unknown protocol 'case-2-serialisable'"),
        (RULE, "log-serialisable", "vectors", "did you mean 'log-serializable'?"),
        (RULE, "delta-serializable", "vectors", "'delta-serializable' is a protocol, and a level is expected; did you mean 'log-serializable'?"),
        (RULE, LEVEL, "vector", "unknown scope 'vector'"),
        (RULE, LEVEL, "scans", "is of format delta, and what is searched, 'scans', of format"),
        ("locking-read-committed", LEVEL, "vectors", "is no rule for pairs of commits"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(rule, keeps, universe, problem):
    with pytest.raises((IsolitmusError, UnknownName)) as error:
        repair(rule, keeps, [universe])
    assert problem in str(error.value)


def test_the_command_saves_texts_that_keep_the_level(call, tmp_path):
    file, out = tmp_path / "tiny.toml", tmp_path / "out"
    file.write_text(TINY)
    words = ("repair", RULE, "--keeps", LEVEL, "--universe", str(file), "--no-proofs")
    status, said, _ = call(*words, "--save", str(out), "--json")
    document = json.loads(said)
    assert (status, document["outcome"]) == (0, "repaired")
    for one in document["front"]:
        text = out / f"{one['name']}.cat"
        assert text.read_text() == one["text"]
        assert separate(str(text), LEVEL, str(file), by="exhaustive", shipped=False).found is False
    assert set(document["files"]) == {str(path) for path in out.iterdir()}
    status, said, _ = call(*words)
    assert status == 0
    assert f"{RULE} does not keep {LEVEL}: of {document['admitted']} candidates" in said
    status, said, _ = call(*words, "--time", "0")
    assert status == 3
    status, _, problem = call("repair", RULE, "--keeps", LEVEL, "--transactions", "9")
    assert (status, "--transactions is 9; expected an integer up to 8" in problem) == (2, True)
    status, _, problem = call("repair", RULE)
    assert (status, "--keeps" in problem) == (2, True)


def test_a_text_that_includes_a_file_beside_it_is_saved_beside_it(call, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tiny.toml").write_text(TINY)
    text = protocol(RULE).text
    (home / "mine.cat").write_text(text.replace("delta-commits.cat", "commits.cat"))
    commits = '"Commits" include "delta-commits.cat"'
    (home / "commits.cat").write_text(commits)
    words = ("repair", home / "mine.cat", "--keeps", LEVEL, "--universe", home / "tiny.toml")
    status, _, problem = call(*words, "--no-proofs", "--save", tmp_path / "elsewhere")
    assert status == 2
    assert "cannot be read there" in problem
    assert "name the folder of mine with --save" in problem
    status, _, problem = call(*words, "--no-proofs", "--save", home)
    assert (status, problem) == (0, "")
    assert spec(home / "mine-repaired-1.cat").axioms[-1].name.startswith("repair")


UNTRACKED = """\
title  = "Updates, some with a subquery in SET, which the read set does not record"
source = "test"

[table]
columns        = "id INT, part INT"
partitioned_by = ["part"]
init           = ["INSERT INTO t VALUES (1, 0), (2, 1)"]

[scope]
transactions = [2]
statements   = [
    "UPDATE t SET id = (SELECT max(id) FROM t WHERE part = 1) WHERE part = 0",
    "UPDATE t SET id = (SELECT max(id) FROM t WHERE part = 0) WHERE part = 1",
    "UPDATE t SET id = id + 1 WHERE part = 0",
]
"""


def test_a_read_that_is_not_recorded_is_repaired_by_the_kind_of_the_statement():
    untracked = read_scope(UNTRACKED, "untracked")
    found = repair("delta-serializable", LEVEL, [untracked], proofs=False)
    texts = [one.cover.clauses[0].text for one in found.front]
    assert texts == ["unseen", "unseen ; [ReadsTarget]"]
    assert found.front[-1].cover.needless == 0
    assert (found.released, found.excused, found.front[0].saved) == (None, None, None)
