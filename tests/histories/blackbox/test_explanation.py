"""Explanations of recorded histories: each step is looked up in the history, nothing of the part
can be left out, every order of versions is covered, and the catalogue's levels say the same.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_records import not_allowed

from isolitmus.checker import check, compare
from isolitmus.checker.checks.history_verdicts import IMPLIES
from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.checker.judge.completion import completions
from isolitmus.checker.render.verdicts import check_lines
from isolitmus.checker.strategies import histories
from isolitmus.histories.blackbox.check import ASKED, check_recorded
from isolitmus.histories.blackbox.explanation import (
    explain_record,
    extract_part,
    forbidden_ways,
    shrink_core,
    to_version_history,
)
from isolitmus.histories.blackbox.judgement import ORDERED, judge_recorded
from isolitmus.histories.blackbox.read_from import attribute_reads
from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    RegisterHistory,
)
from isolitmus.histories.readers.recorded_history import read_recorded
from isolitmus.model.budget import Budget
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files.catalogue import litmus
from isolitmus.specs.files.spec_catalogue import level, levels


def plume(*sessions):
    """A history from texts: sessions of transactions between bars, ``w(x1) r(y2) | r(x0)``; 0 is
    nothing.
    """
    lines, transaction = [], 0
    for number, session in enumerate(sessions):
        for part in session.split("|"):
            for word, key, value in re.findall(r"([rw])\((\w)(\d+)\)", part):
                lines.append(f"{word}({'xyz'.index(key)},{value},{number},{transaction})\n")
            transaction += 1
    return read_recorded("".join(lines).encode(), Path("h.txt"), "plume")


@st.composite
def drawn(draw):
    """A history in which each read of a transaction that has not written the key sees what somebody
    left of it.
    """
    many = draw(st.integers(1, 6))
    sessions = [draw(st.integers(0, 2)) for _ in range(many)]
    reads = st.tuples(st.just("r"), st.sampled_from("xyz"), st.integers(0, many))
    writes = st.tuples(st.just("w"), st.sampled_from("xyz"), st.just(0))
    plans = [draw(st.lists(reads | writes, min_size=1, max_size=3)) for _ in range(many)]
    wrote = [{key for word, key, _ in plan if word == "w"} for plan in plans]
    texts = [""] * 3
    for number, plan in enumerate(plans, 1):
        done, own = [], set()
        for word, key, other in plan:
            if word == "w" and key not in own:
                own.add(key)
                done.append(f"w({key}{number})")
            elif word == "r" and key not in own:
                there = other and other != number and key in wrote[other - 1]
                done.append(f"r({key}{other if there else 0})")
        texts[sessions[number - 1]] += ("|" if texts[sessions[number - 1]] else "") + " ".join(done)
    return plume(*(text for text in texts if text))


@st.composite
def wild(draw):
    """Any columns: values that several wrote or nobody, own writes, transactions that did not
    commit.
    """
    many = draw(st.integers(1, 5))
    operation = st.tuples(st.booleans(), st.integers(0, 1), st.integers(-1, 3))
    plans = [draw(st.lists(operation, max_size=4)) for _ in range(many)]
    done = [(w, key, max(value, 0) if w else value) for plan in plans for w, key, value in plan]
    table = np.array(done, int).reshape(-1, 3)
    ends = st.sampled_from([COMMITTED, COMMITTED, ABORTED, UNKNOWN])
    return RegisterHistory(
        ("x", "y"),
        ("s", "t"),
        np.array(sorted(draw(st.lists(st.integers(0, 1), min_size=many, max_size=many)))),
        np.array(draw(st.lists(ends, min_size=many, max_size=many))),
        np.cumsum([0, *map(len, plans)]),
        table[:, 0].astype(bool),
        table[:, 1],
        table[:, 2],
        np.arange(1, len(table) + 1),
    )


class Looked:
    """A history, looked at anew."""

    def __init__(self, history):
        self.history = history
        self.owner = np.repeat(np.arange(len(history.session)), np.diff(history.first)).tolist()
        self.left = {}
        self.reads = []
        for op, who in enumerate(self.owner):
            key, value = int(history.key[op]), int(history.value[op])
            if history.is_write[op]:
                self.left[who, key] = value
            elif (who, key) not in self.left:
                self.reads.append((who, key, value))

    def holds(self, edge):
        a, b = int(edge.source[1:]) - 1, int(edge.target[1:]) - 1
        left, keys = self.left, range(3)
        match edge.kind:
            case "so":
                return a < 0 or (self.history.session[a] == self.history.session[b] and a < b)
            case "wr":
                return any(who == b and left.get((a, key)) == v for who, key, v in self.reads)
            case "ww":
                return any((a, key) in left and (b, key) in left for key in keys)
            case "rw":
                return any(who == a and left.get((b, key), v) != v for who, key, v in self.reads)
            case "co":  # somebody reads what the target left of a key that the source wrote, too
                return any(
                    left.get((b, key), INITIAL) == v and (a, key) in left and who != a
                    for who, key, v in self.reads
                )
        return False


@pytest.mark.slow
@given(drawn(), st.sampled_from(ASKED))
def test_each_step_of_an_explanation_is_in_the_history(history, name):
    judged = judge_recorded(history, name)
    verdict = explain_record(judged, Budget())
    assert str(verdict) == judged.verdict
    looked = Looked(history)
    for violation in verdict.violations if isinstance(verdict, Forbidden) else ():
        cycle = violation.cycle
        assert all(looked.holds(edge) for edge in cycle), violation
        for before, after in zip((cycle[-1], *cycle[:-1]), cycle, strict=True):
            assert before.target == after.source


@pytest.mark.slow
@given(not_allowed(drawn(), st.sampled_from(ASKED)))
def test_nothing_of_a_forbidden_part_can_be_left_out(judged):
    part = shrink_core(judged, Budget())
    size = len(part.history.key)
    assert judge_recorded(part.history, judged.level).verdict == "forbidden"
    for out in range(size):
        less = extract_part(part.history, np.arange(size) != out).history
        assert judge_recorded(less, judged.level).verdict == "allowed"


@pytest.mark.slow
@given(drawn() | wild(), st.data())
def test_what_is_forbidden_of_a_part_is_forbidden_of_the_whole(history, data):
    kept = data.draw(st.lists(st.booleans(), min_size=len(history.key), max_size=len(history.key)))
    part = extract_part(history, np.array(kept, bool)).history
    for name in ASKED:
        if judge_recorded(part, name).verdict == "forbidden":
            assert judge_recorded(history, name).verdict == "forbidden"


@pytest.mark.slow
@given(not_allowed(drawn(), st.sampled_from(ORDERED)))
def test_the_ways_leave_no_order_of_versions(judged):
    part = shrink_core(judged, Budget())
    versions = to_version_history(part, attribute_reads(part.history))
    ways = [
        [(a, b) for reason in way.supposing for a, b in pairwise(reason["versions"])]
        for way in forbidden_ways(versions, level(judged.level))
    ]
    found = [*completions(versions)]
    assert found
    for completion in found:
        place = {
            (key, number): at
            for key, order in completion.orders.items()
            for at, number in enumerate(order)
        }
        assert any(
            all(place[a.object, a.writer] < place[b.object, b.writer] for a, b in way)
            for way in ways
        )


@pytest.mark.slow
@given(drawn())
def test_a_recorded_history_stands_where_its_verdicts_say(history):
    checked = check_recorded("h", history)
    alone = {name: judge_recorded(history, name).verdict for name in ASKED}
    assert {name: str(verdict) for name, verdict in checked.levels.items()} == alone
    (weakest,) = checked.standing.weakest or ("",)
    (strongest,) = checked.standing.strongest or ("",)
    holds = [name for name in ASKED if str(checked.levels[name]) == "allowed"]
    assert (strongest, weakest) == (
        holds[-1] if holds else "",
        ASKED[len(holds)] if len(holds) < len(ASKED) else "",
    )
    assert all(anomaly_names(checked.levels[name]) for name in ASKED[len(holds) :])
    assert [*check_lines(checked, every=True)][-2].startswith("Assumptions")


@pytest.mark.slow
@given(histories(predicates=True, observed=True))
def test_no_level_holds_where_a_weaker_one_fails(history):
    found = check(history, [level(name) for name in levels()])
    assert found.standing.strongest or found.standing.weakest


@pytest.mark.slow
def test_what_implies_what_is_what_compare_finds():
    """Between neighbours of the catalogue's own levels: of abstract histories, and of
    log-serializable on tables.
    """
    abstract, tables = compare([level(name) for name in levels()]).lattices
    found = {
        (edge.stronger[0], edge.weaker[0])
        for lattice in (abstract, tables)
        for edge in lattice.edges
        if lattice is abstract or edge.stronger == ("log-serializable",)
    }
    assert found == {(name, weaker) for name, below in IMPLIES.items() for weaker in below}


NAMED = {
    "circular information flow (G1c)": ("read-committed", "r(y2) w(x1)", "r(x1) w(y2)"),
    "circular information flow with sessions (G1c)": (
        "read-committed-biswas-enea",
        "r(y2) | w(x1)",
        "r(x1) | w(y2)",
    ),
    "non-monotonic read": ("read-committed-biswas-enea", "w(x1) | w(x2) w(y2)", "r(y2) r(x1)"),
    "non-repeatable read": ("read-committed-biswas-enea", "w(x1)", "r(x1) r(x0)"),
    "fractured read": ("read-atomic", "w(x1) w(y1)", "r(x0) r(y1)"),
    "read your writes broken": ("read-atomic", "w(x1) | r(x0)"),
    "monotonic reads broken": ("causal", "w(x1)", "r(x1) | r(x0)"),
    "monotonic writes broken": ("causal", "w(x1) | w(y1)", "r(y1) r(x0)"),
    "writes follow reads broken": ("causal", "w(x1)", "r(x1) | w(y1)", "r(y1) r(x0)"),
    "causality violation": ("causal", "w(x1)", "r(x1) w(y1)", "r(y1) r(x0)"),
    "readers that disagree on an order": (
        "read-atomic",
        "w(x1) w(y1)",
        "w(x2) w(y2)",
        "r(x1) r(y2)",
    ),
    "long fork": ("prefix-consistency", "w(x1)", "w(y1)", "r(x1) r(y0)", "r(x0) r(y1)"),
    "lost update": ("snapshot-isolation", "r(x0) w(x1)", "r(x0) w(x2)"),
    "write skew (G2-item)": ("serializable", "r(x0) r(y0) w(x1)", "r(x0) r(y0) w(y1)"),
    "anti-dependency cycle (G2-item)": (
        "serializable",
        "r(x0) w(y1)",
        "r(y0) w(z1)",
        "r(z0) w(x1)",
    ),
    "thin-air read": ("read-committed", "r(x7)"),
    "intermediate read (G1b)": ("read-committed", "w(x1) w(x2)", "r(x1)"),
    "future read": ("read-committed", "r(x1) w(x1)"),
    "own write missed": ("read-committed", "w(x1) r(x2)", "w(x2)"),
}
"""By anomaly the weakest level that fails, and sessions that show it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_an_anomaly_has_its_name_at_the_weakest_level_that_fails(name):
    weakest, *sessions = NAMED[name]
    checked = check_recorded("h", plume(*sessions))
    assert checked.standing.weakest == (weakest,)
    assert anomaly_names(checked.levels[weakest]) == (name,)


OF_THE_CATALOGUE = {
    "history-aborted-read": "aborted read (G1a)",
    "history-circular-information-flow": "circular information flow (G1c)",
    "history-fractured-read": "fractured read",
    "history-fuzzy-read": "non-repeatable read",
    "history-long-fork": "long fork",
    "history-lost-update": "lost update",
    "history-phantom": "write skew (G2)",
    "history-phantom-read": "phantom read",
    "history-write-cycle": "dirty write (G0)",
    "history-write-skew": "write skew (G2-item)",
}
"""By history of the catalogue the anomaly that it is called after."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_THE_CATALOGUE)
def test_a_history_of_the_catalogue_is_named_by_what_the_weakest_levels_forbid(name):
    checked = check(litmus(name), [level(one) for one in levels()])
    found = {of for one in checked.standing.weakest for of in anomaly_names(checked.levels[one])}
    assert found == {OF_THE_CATALOGUE[name]}


def test_an_aborted_read_has_its_name():
    history = read_recorded(b"w(0,1,0,-1)\nr(0,1,1,1)\n", Path("h.txt"), "plume")
    checked = check_recorded("h", history)
    assert anomaly_names(checked.levels["read-committed"]) == ("aborted read (G1a)",)


def test_the_words_of_a_lost_update():
    lines = list(check_lines(check_recorded("h", plume("r(x0) w(x1)", "r(x0) w(x2)")), every=True))
    assert lines == [
        (
            "Strongest level that holds: prefix-consistency; read-committed,"
            " read-committed-biswas-enea, read-atomic and causal hold, too."
        ),
        "Weakest level that fails: snapshot-isolation (lost update); serializable fails, too.",
        (
            "Snapshot isolation forbids it if key 0 = 1 of T1 (session 0, line 2) came before key 0"
            " = 2 of T2 (session 1, line 4) (lost update):"
        ),
        (
            "  T1 before T2, because T2 (session 1, line 4) overwrote key 0 = 1 of T1 (session 0,"
            " line 2) with 2"
        ),
        (
            "  T2 before T1, because T2 (session 1, line 3) read nothing of key 0, and T1 (session"
            " 0, line 2) wrote key 0 = 1"
        ),
        "  cycle T1 → T2 → T1: no serial order satisfies these dependencies",
        (
            "Snapshot isolation forbids it if key 0 = 2 of T2 (session 1, line 4) came before key 0"
            " = 1 of T1 (session 0, line 2) (lost update):"
        ),
        (
            "  T2 before T1, because T1 (session 0, line 2) overwrote key 0 = 2 of T2 (session 1,"
            " line 4) with 1"
        ),
        (
            "  T1 before T2, because T1 (session 0, line 1) read nothing of key 0, and T2 (session"
            " 1, line 4) wrote key 0 = 2"
        ),
        "  cycle T2 → T1 → T2: no serial order satisfies these dependencies",
        "Assumptions, because the history does not say:",
        "- the version order is one that the level allows, if there is one",
    ]


@given(wild(), st.sampled_from(ASKED))
def test_whatever_was_recorded_is_explained(history, name):
    judged = judge_recorded(history, name)
    explained = explain_record(judged, Budget())
    assert str(explained) == judged.verdict
    assert bool(anomaly_names(explained)) == (judged.verdict == "forbidden")


def test_flaws_are_counted_by_kind():
    checked = check_recorded("h", plume("r(x7) r(y8)", "r(y9) w(z1) | r(z0)"))
    (line,) = [line for line in check_lines(checked, every=True) if "no transaction wrote" in line]
    assert (
        line
        == "  transaction 1 (session 0, line 1) read key 0 = 7, which no transaction wrote (the first of 3"
        " such reads)"
    )


def test_a_budget_that_is_spent_still_explains():
    judged = judge_recorded(plume("r(x0) w(x1)", "r(x0) w(x2)", "w(z1) | r(z1)"), "serializable")
    assert anomaly_names(explain_record(judged, Budget(seconds=0))) == ("lost update",)


def test_where_versions_have_too_many_orders_the_cycle_of_the_judge_is_told(monkeypatch):
    monkeypatch.setattr("isolitmus.histories.blackbox.explanation.COMPLETIONS", 1)
    judged = judge_recorded(plume("r(x0) w(x1)", "r(x0) w(x2)"), "snapshot-isolation")
    lines = repr(explain_record(judged, Budget()))
    assert "otherwise T" in lines
    assert "came before" in lines
