"""What an audit says of a clean table: who overlapped whom, and what another timing would have
done.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import audit
from isolitmus.checker.render.audit import overview_lines, overview_svg
from isolitmus.model.audit import NearMiss, Overview

WS = "WriteSerializable"


def overview(delta, *commits, **table):
    return audit(delta.table(*commits, **table)).overview


def test_a_clean_table_without_overlaps(delta):
    seen = overview(delta, delta.append(0, "f1"), delta.append(1, "f2"))
    assert seen.operations == {"WRITE": 2, "CREATE TABLE": 1}
    assert seen.levels == {WS: 3}
    assert (seen.overlapping, seen.pairs, seen.near) == (0, {}, ())
    assert [(span.version, span.read) for span in seen.spans] == [(0, -1), (1, 0), (2, 1)]


@pytest.mark.parametrize(
    ("level", "part", "near"),
    [
        ("Serializable", 0, [NearMiss(2, 3, "ConcurrentAppendException", "certain")]),
        (WS, 0, [NearMiss(2, 3, "reorder", "certain")]),
        ("Serializable", 1, []),
    ],
)
def test_an_insert_that_could_have_come_before_a_delete(delta, level, part, near):
    """The delete was quicker. The other order is what `reorder` has, which is refused or reordered
    by its level.
    """
    delete = delta.delete(1, "(part#1 = 0)", "f1", level=level)
    seen = overview(
        delta, delta.append(0, "f1"), delete, delta.append(1, "f2", part=part), level=level
    )
    assert list(seen.near) == near
    assert seen.pairs == {"WRITE beside DELETE": 1}
    assert seen.near_counts == {f"{one.end}, {one.certainty}": 1 for one in near}


def test_a_removal_that_could_have_come_first(delta):
    """The update reads files of both partitions, the delete takes one of them away."""
    update = [
        delta.info("UPDATE", 2, False, predicate='["(id#1 > 0)"]'),
        delta.remove("f1"),
        delta.add("f3"),
    ]
    seen = overview(
        delta,
        delta.append(0, "f1"),
        delta.append(1, "f2", part=1),
        update,
        delta.delete(2, "(part#1 = 1)", "f2"),
    )
    assert seen.near == (NearMiss(3, 4, "ConcurrentDeleteReadException", "certain"),)


def test_what_no_log_shows_is_possible(delta):
    merge = [delta.info("MERGE", 1, False, predicate='["(id#1 = id#2)"]'), delta.add("f2")]
    seen = overview(delta, delta.append(0, "f1"), merge, delta.append(1, "f3"))
    assert seen.near == (NearMiss(2, 3, "reorder", "possible"),)
    text = "\n".join(overview_lines(seen))
    assert (
        "if version 3 (WRITE) had committed first, version 2 (MERGE) might have committed without"
        " seeing it" in text
    )


def test_of_writers_that_do_not_say_what_they_check_nothing_is_said(delta):
    delete = delta.delete(1, "(part#1 = 0)", "f1")
    delete[0]["commitInfo"]["engineInfo"] = "delta-rs:1.0"
    seen = overview(delta, delta.append(0, "f1"), delete, delta.append(1, "f2"))
    assert (seen.overlapping, seen.near) == (1, ())
    assert seen.writers["delta-rs:1.0"] == 1


@pytest.mark.slow
def test_much_is_counted_and_little_is_kept(delta):
    commits = [delta.append(0, "f0")]
    commits += [delta.delete(1, "(part#1 = 0)")]
    commits += [delta.append(1, f"f{k}") for k in range(150)]
    seen = overview(delta, *commits)
    assert len(seen.near) == 100
    assert seen.near_counts == {"reorder, certain": 100}  # of a window the newest 100
    assert len(seen.spans) == 60
    assert overview_svg(seen).count("<circle") == 60


NAMES = st.sampled_from(["WRITE", "DELETE", "<b>", "x" * 80])
COMMITS = st.lists(
    st.tuples(NAMES, st.integers(-1, 20), st.booleans(), st.integers(0, 1)), max_size=12
)


@pytest.mark.slow
@given(COMMITS)
def test_any_log_has_an_overview_that_is_told_and_drawn(logs_in, tmp_path_factory, commits):
    logs = logs_in(tmp_path_factory.mktemp("any"))
    written = [
        [logs.info(name, read, blind, predicate="[]"), logs.add(f"f{k}", part)]
        for k, (name, read, blind, part) in enumerate(commits)
    ]
    done = audit(logs.table(*written))
    seen = done.overview
    assert sum(seen.operations.values()) == len(commits) + 1
    assert sum(seen.pairs.values()) >= seen.overlapping
    assert Overview.of_json(json.loads(json.dumps(seen.to_json()))) == seen
    assert "<b>" not in overview_svg(seen)
    assert all("\n" not in line for line in overview_lines(seen))
    for near in seen.near:
        assert near.first < near.second
        assert commits[near.second - 1][1] < near.first  # the second had not seen the first
        assert not commits[near.first - 1][2]  # a blind append reads nothing: nothing stops it
