"""Commits whose files another commit removed: which texts admit them, and what is supposed then."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isolitmus.checker.delta.commit import apply_commit, replay_commit, supposed_writer
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.spec_algebra import without_silences
from isolitmus.specs import protocol, scope
from isolitmus.specs.files.spec_catalogue import proposals, protocols
from isolitmus.specs.files.spec_reader import read_spec

RELEASED = [name for name in protocols() if protocol(name).format == "delta"]


SCOPES = ("vectors", "vectors-two-files", "compactions", "table", "altered", "no-ops")


def share_removals(frame):
    """Whether both of two commits, one of which did not see the other, removed a file."""
    return any((frame.relations["removes-meets-removes"] & frame.relations["unseen"]).rows)


@cache
def histories():
    """All histories of one or two transactions of these scopes."""
    found = (each for name in SCOPES for each in candidates(scope(name), 2, keep=lambda _: True))
    return [each for each in found if each is not None]


@cache
def histories_that_share_removals():
    return [each.frame for each in histories() if share_removals(each.frame)]


def replays_files(event, before):
    """Whether a commit leaves what the log replays: the files that it removed are as it read them."""
    left, replayed = (step(before, event)["t"].rows() for step in (apply_commit, replay_commit))
    return Counter(left) == Counter(replayed)


def test_where_both_did_not_remove_a_file_the_log_is_replayed():
    """Elsewhere the change is applied row by row, which often leaves something else."""
    different = 0
    for each in histories():
        writers = zip(each.events[: each.writers], each.states, strict=False)
        alike = all(replays_files(event, before) for event, before in writers)
        assert alike or share_removals(each.frame)
        different += not alike
    assert different > 100


def admits_shared_removals(spec):
    admits = compile_spec(without_silences(spec))
    return any(map(admits, histories_that_share_removals()))


def test_released_rules_reject_a_commit_of_whose_files_one_is_gone():
    assert len(histories_that_share_removals()) > 100
    assert {"delta-serializable", "delta-write-serializable"} < {*RELEASED}
    for name in RELEASED:
        assert supposed_writer(protocol(name)) == ""
        assert not admits_shared_removals(protocol(name))


@pytest.mark.parametrize("name", proposals())
def test_a_proposal_supposes_a_writer_if_it_admits_such_commits(name):
    spec = protocol(name)
    assert bool(supposed_writer(spec)) == admits_shared_removals(spec)


MEMBERS = st.recursive(
    st.sampled_from(["Empty", "NoData", "Writer", "Reader", "Blind"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&", "|", "\\"]), inner).map(" ".join).map("({})".format),
        inner.map("~{}".format),
    ),
    max_leaves=3,
)
PAIRS = st.recursive(
    st.sampled_from(["unseen", "removes-meets-removes", "removes-meets-reads", "log", "ww"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&", "|", "\\"]), inner).map(" ".join).map("({})".format),
        st.tuples(inner, MEMBERS).map("({0[0]} ; [{0[1]}])".format),
        st.tuples(MEMBERS, inner).map("([{0[0]}] ; {0[1]})".format),
    ),
    max_leaves=4,
)


@given(st.lists(PAIRS, min_size=1, max_size=2))
@example(["unseen & removes-meets-removes ; [~(Empty & (NoData \\ Blind))]"])
@example(["unseen & removes-meets-removes ; [~NoData]"])
@example(["unseen & removes-meets-reads"])
@settings(deadline=None)
def test_a_text_of_which_nothing_is_supposed_admits_no_such_commits(pairs):
    text = "\n".join(f"empty {pair} as check{k}" for k, pair in enumerate(pairs))
    spec = read_spec(f'"Drawn"\nformat delta\n{text}', "drawn")
    if not supposed_writer(spec):
        assert not admits_shared_removals(spec)


@pytest.mark.parametrize("ask", [separate, separate_unbounded])
def test_an_answer_about_such_a_text_says_what_it_supposes(ask):
    text = '"Row by row" include "delta-commits.cat" empty unseen & rw^-1 as MissedARow'
    text += " empty metadata-changed as MetadataChangedException"
    answer = ask(read_spec(text, "row-by-row"), "log-serializable", "vectors")
    assert answer.found is False
    assert answer.assumptions[-1] == (
        "if two commits that row-by-row admits removed one file, the second is applied row by row"
        " (one that replaced the whole file would undo the first)"
    )
    released = ask("delta-serializable", "log-serializable", "vectors").assumptions
    assert not any("row by row" in sentence for sentence in released)
