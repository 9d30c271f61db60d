"""The frame of what any engine with versions has, and what a format adds to it."""

from dataclasses import dataclass

from isolitmus.checker.delta import frame as delta
from isolitmus.checker.execution import frame as frames
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.frame import build_frame
from isolitmus.checker.judge.read_nodes import READ_RELATIONS
from isolitmus.model.execution import Effect, Event, RowRead, RowWrite
from isolitmus.model.sql.data_file import TableRow
from isolitmus.specs import litmus


@dataclass(frozen=True)
class Keys:
    """The footprint of a store that is not Delta: all that a frame asks of it is its table."""

    table: str


def put(name, read_version, version, before, after):
    row = TableRow("k", "", before)
    read = RowRead("kv", "kv k", lambda _: True, (row,))
    effect = Effect((read,), (RowWrite("kv", "k", before, after),), footprint=Keys("kv"))
    return Event(name, effect, read_version, version, session="s")


def test_a_store_that_is_not_delta_has_a_frame():
    seen = build_frame([put("a", 0, 1, (1,), (2,)), put("b", 0, 2, (1,), (3,))], reads=True)
    assert set(seen.relations) == set(frames.RELATIONS)
    assert set(seen.sets) == set(frames.SETS)
    pairs = {(edge.source, edge.target, edge.kind) for edge in seen.edges()}
    lost = {("a", "b", "ww"), ("b", "a", "rw"), ("a", "b", "unseen")}
    assert lost | {("a", "b", "so"), ("a", "b", "log")} <= pairs
    assert ("a", "b", "vis") not in pairs
    assert all(edge.why for edge in seen.edges())


def test_what_delta_adds_changes_nothing_of_the_rest():
    events = execute(litmus("hole-partitioned")).events
    for reads in (False, True):
        plain, seen = (of(events, reads=reads) for of in (build_frame, delta.delta_frame))
        assert seen.nodes == plain.nodes
        assert seen.relations.items() >= plain.relations.items()
        assert seen.reasons.items() >= plain.reasons.items()
        assert seen.sets.items() >= plain.sets.items()
        added = seen.relations.keys() - plain.relations.keys()
        assert added == set(delta.BASIC) - set(frames.BASIC)
        assert READ_RELATIONS[0] in seen.relations or not reads
