"""Histories with more completions than anybody tries: a solver's proposals against trying every
one.
"""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import completions, frames
from isolitmus.checker.judge.completion_search import CompletionSearch, is_monotone_in_assumptions
from isolitmus.checker.judge.graph_semantics import admits
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import is_increasing, takes_later
from isolitmus.checker.render.verdicts import other_ways
from isolitmus.checker.strategies import histories
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.model.history import History
from isolitmus.model.verdict import Forbidden, Unknown
from isolitmus.specs.files.spec_catalogue import level, levels
from isolitmus.specs.files.spec_reader import read_spec

BINDS = '"Mine" with ww from versions '
OWN = [
    read_spec(BINDS + text, name)
    for name, text in {
        "next-only": "acyclic wr | rw as order",
        "two-missed": "irreflexive ww ; ww as back empty [Writer] ; rw ; rw as two",
        "parallel": "irreflexive (so | wr | ww)+ ; rw? as past empty [Aborted] ; wr as clean",
        "both-ways": "empty (ww & so^-1) | (wr+ & rw^-1) as against",
        "around": "irreflexive [Reader] ; rw ; ww+ ; wr as back acyclic ww as versions",
    }.items()
]
SPECS = [spec for spec in (*map(level, levels()), *OWN) if is_monotone_in_assumptions(spec)]


@st.composite
def open_histories(draw):
    """A history of which some ends are unknown."""
    drawn = draw(histories(keys="xy", most=4, predicates=draw(st.booleans()), observed=True))
    ends = st.sampled_from(["committed", "committed", "unknown", "aborted"])
    ended = tuple(replace(t, status=draw(ends)) for t in drawn.transactions)
    gone = {t.number for t in ended if t.status == "aborted"}
    order = tuple(pair for pair in drawn.order if not gone & {version.writer for version in pair})
    return History(ended, drawn.sessions, order)


UNBORN = History.from_table(
    {
        "T1": "r(P: x0, y3 | x2, x3, x4*, y0, y2*, y4)",
        "T2": "w(x2) w(y2)",
        "T3": "w(x3) w(y3)",
        "T4": "r(P: x0, y0 | x2, x3, x4*, y2*, y3, y4) w(x4) w(y4)",
        "order": ["x2 < x3", "x3 < x4", "y2 < y3", "y3 < y4"],
        "unknown": ["T3"],
    }
)
"""T1 read P after T2's change only if T3, whose version it saw, has committed."""


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@given(history=open_histories())
@example(history=UNBORN)
def test_a_proposal_is_found_just_if_some_completion_is_admitted(spec, history):
    reads = needs_reads(spec)
    some = any(admits(c.frame(reasons=False, reads=reads), spec) for c in completions(history))
    found = CompletionSearch(history, spec, orders=True).admitted(10**6, Budget())
    assert (found is not None) == some
    if found is not None:
        assert found in completions(history)


@pytest.mark.slow
@given(history=histories(keys="xy", most=3, predicates=True, observed=True))
def test_what_proposals_share_every_completion_has(history):
    common = CompletionSearch(history, level("serializable"), orders=True).common()
    found = list(frames(history))
    for name, relation in common.relations.items():
        assert all(set(relation.pairs()) <= set(f.relations[name].pairs()) for f in found)
    if len(found) == 1:
        assert common.relations == found[0].relations


def skew(writers, blind="w(z{})"):
    """A write skew beside so many who write another key, which nobody reads."""
    table = {"T1": "r(x0) r(y0) w(x1)", "T2": "r(x0) r(y0) w(y2)"}
    return History.from_table(
        table | {f"T{n}": blind.replace("{}", str(n)) for n in range(3, 3 + writers)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("writers", [4, 12, 200])
def test_a_write_skew_is_seen_whoever_else_writes(writers):
    """The cycle is certain, so it is what is shown, with no word on the others."""
    verdict = check_history(skew(writers), level("serializable"))
    assert [(e.source, e.target) for v in verdict.violations for e in v.cycle] == [
        ("T1", "T2"),
        ("T2", "T1"),
    ]
    assert not verdict.others and not verdict.violations[0].supposing
    assert verdict == check_history(skew(1), level("serializable"))
    for name in ("snapshot-isolation", "read-committed", "prefix-consistency", "causal"):
        found = check_history(skew(writers), level(name))
        assert sorted(found.witness) == sorted(f"T{n}" for n in range(1, writers + 3))


def test_what_no_order_mends_is_forbidden_beside_many_orders():
    """Each order of x and y is refuted by a cycle of its own, so nothing is shared."""
    table = {
        "T1": "w(x1) w(y1)",
        "T2": "w(x2) w(y2)",
        "T3": "r(x1) r(y2)",
        "T4": "r(x2) r(y1)",
    } | {f"T{n}": f"w(z{n})" for n in range(5, 17)}
    verdict = check_history(History.from_table(table), level("serializable"))
    assert isinstance(verdict, Forbidden)
    assert len(verdict.violations) == 3
    assert all(violation.supposing for violation in verdict.violations)
    assert other_ways(verdict) == ["Every other completion of the history is forbidden, too."]
    proposing = CompletionSearch(History.from_table(table), level("serializable"), orders=True)
    with pytest.raises(Limit, match="none of the first 1 completions that were proposed"):
        proposing.admitted(1, Budget())
    ended = check_history(History.from_table(table), level("serializable"), limit=1)
    assert isinstance(ended, Unknown)
    assert isinstance(
        check_history(History.from_table(table), level("serializable"), budget=Budget(seconds=0)),
        Unknown,
    )


def test_who_loses_pairs_as_others_come_is_not_asked_of_a_solver():
    spec = read_spec(BINDS + r"acyclic (wr | ww) \ (ww ; ww) as order", "mine")
    assert not is_increasing(spec) and not is_monotone_in_assumptions(spec)
    verdict = check_history(skew(12), spec, limit=1000)
    assert verdict or isinstance(verdict, Unknown)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("acyclic wr | ww | rw as a", True),
        ("acyclic wr | rw as a", False),
        ("acyclic (so | wr) ; rw? | ww as a", True),
        ("acyclic (so | wr) ; rw? as a", False),
        ("acyclic ww ; rw as a", False),
        ("acyclic [Writer] ; (ww | rw) ; [Writer] as a", True),
        ("acyclic [Reader] ; (ww | rw) as a", False),
        ("empty ww ; rw as a", True),
        ("empty rw ; ww as a", False),
        ("empty [Reader] ; rw as a", True),
        ("irreflexive ww+ ; rw as a", True),
        ("irreflexive wr ; rw as a", False),
        ("irreflexive rw^-1 ; wr as a", False),
        ("empty rw & so as a", False),
    ],
)
def test_where_a_later_version_stands_for_the_next(text, same):
    assert takes_later(read_spec(BINDS + text, "mine")) == same
