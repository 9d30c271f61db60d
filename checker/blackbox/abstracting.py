"""A recorded history as one of versions: what the levels of the catalogue are asked of, in every order of versions."""

from __future__ import annotations

from itertools import islice, pairwise, permutations
from typing import TYPE_CHECKING

from networkx import DiGraph, has_path, is_directed_acyclic_graph

from isolitmus.checker.judge.completion import completions
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL, ItemRead, Transaction, Version, Write
from isolitmus.model.reason import Reason
from isolitmus.model.verdict import Forbidden, Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.checker.blackbox.shrinking import Core
    from isolitmus.model.blackbox_history import RegisterHistory
    from isolitmus.model.recorded import Moment
    from isolitmus.model.spec import Spec

__all__ = ["COMPLETIONS", "abstracted", "forbidden_ways"]

COMPLETIONS = 5000
"""So many orders of versions are tried."""


def abstracted(part: Core, seen: Attributed, *, timed: bool = False) -> History:
    """What counts of a part, ``seen`` as it may have been, with the names of the whole; an object is ``k`` and the
    number of its key. Versions have an order where lists, or sessions and reads, give them one. ``timed``: with when
    transactions began and ended.

    >>> import numpy as np
    >>> from isolitmus.checker.blackbox.read_from import attributed
    >>> from isolitmus.checker.blackbox.shrinking import part_of
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, True]), np.array([0, 0, 0]), np.array([7, 7, 8]), np.array([1, 2, 3]),
    ... )
    >>> part = part_of(history, np.ones(3, bool))
    >>> abstracted(part, attributed(part.history))
    History.from_table({'T1': 'w(k0_1)', 'T2': 'r(k0_1) w(k0_2)', 'order': ['k0_1 < k0_2']})
    """
    history, numbers = part.history, part.numbers
    reads: dict[int, list[ItemRead | Write]] = {}
    rows = zip(seen.reader.tolist(), seen.key.tolist(), seen.writer.tolist(), strict=True)
    for reader, key, writer in rows:
        number = INITIAL if writer == seen.initial else numbers[writer]
        reads.setdefault(reader, []).append(ItemRead(Version(f"k{key}", number)))
    for key, writer in zip(seen.written_key.tolist(), seen.written_by.tolist(), strict=True):
        reads.setdefault(writer, []).append(Write(Version(f"k{key}", numbers[writer])))
    sessions: dict[int, list[int]] = {}
    for number in reads.keys() & {*range(seen.initial)}:
        sessions.setdefault(int(history.session[number]), []).append(numbers[number])
    done = tuple(
        Transaction(numbers[n], tuple(operations)) for n, operations in sorted(reads.items())
    )
    ordered = tuple(sorted(tuple(sorted(one)) for one in sessions.values() if len(one) > 1))
    shows = (getattr(seen.observed, of).tolist() for of in ("source", "target", "read"))
    observed = [
        (Version(f"k{history.key[read]}", numbers[a]), Version(f"k{history.key[read]}", numbers[b]))
        for a, b, read in zip(*shows, strict=True)
    ]
    shown = {first.object for first, _ in observed}
    sees = (pair for pair in _sees(done, ordered) if pair[0].object not in shown)
    schedule = _schedule(history, numbers, sorted(reads)) if timed else ()
    return History(tuple(done), ordered, (*observed, *sees), schedule)


def _schedule(
    history: RegisterHistory, numbers: Sequence[int], done: Sequence[int]
) -> tuple[Moment, ...]:
    """When transactions began and ended; who began when another ended had not missed it."""
    assert history.started is not None
    assert history.ended is not None
    moments: list[tuple[int, int, Moment]] = []
    for n in done:
        moments.append((int(history.started[n]), 0, (numbers[n], "start")))
        moments.append((int(history.ended[n]), 1, (numbers[n], "end")))
    return tuple(moment for *_, moment in sorted(moments, key=lambda one: one[:2]))


def _sees(
    done: Sequence[Transaction], sessions: Iterable[tuple[int, ...]]
) -> tuple[tuple[Version, Version], ...]:
    """The versions of which one comes first by sessions and reads: at each level with an order of versions."""
    graph = DiGraph()
    graph.add_nodes_from(one.number for one in done)
    graph.add_edges_from(pair for one in sessions for pair in pairwise(one))
    graph.add_edges_from(
        (read.version.writer, one.number)
        for one in done
        for read in one.operations
        if isinstance(read, ItemRead) and read.version.writer
    )
    if not is_directed_acyclic_graph(graph):
        return ()
    writers: dict[str, list[Version]] = {}
    for version in (version for one in done for version in one.writes):
        writers.setdefault(version.object, []).append(version)
    return tuple(
        (first, second)
        for versions in writers.values()
        for first, second in permutations(versions, 2)
        if has_path(graph, first.writer, second.writer)
    )


def forbidden_ways(history: History, spec: Spec) -> list[Violation] | None:
    """Violations of a history, all of it committed, that together leave no order of versions: each supposes the order
    of the objects of which its cycle says something. None: there are too many orders. A spec that allows one of
    them is a defect of whoever called the history forbidden.

    >>> from isolitmus.specs.files.catalogue import level
    >>> lost = History.parse("r1(x0) r2(x0) w1(x1) w2(x2) w1(y1) w2(y2)")
    >>> [[str(why) for why in way.supposing] for way in forbidden_ways(lost, level("snapshot-isolation"))]
    [['x1 came before x2'], ['x2 came before x1']]
    """
    every = list(islice(completions(history), COMPLETIONS + 1))
    if len(every) > COMPLETIONS:
        return None
    found: list[Violation] = []
    while every:
        first = every[0]
        verdict = judge(first.frame(), spec)
        assert isinstance(verdict, Forbidden), f"{spec.name} does not forbid {history}"
        violation = verdict.violations[0]
        about = {
            edge.reason["version"].object for edge in violation.cycle if edge.kind in ("ww", "rw")
        }
        supposing = tuple(
            Reason.of("came in order", versions=open_part)
            for reason in first.supposing()
            if reason["versions"][0].object in about
            for open_part in _open(reason["versions"], history.order)
        )
        found.append(Violation(violation.axiom, violation.kind, violation.cycle, supposing))
        every = [
            other
            for other in every
            if any(other.orders[name] != first.orders[name] for name in about)
        ]
    return found


def _open(
    order: Sequence[Version], known: Collection[tuple[Version, Version]]
) -> list[list[Version]]:
    """The stretches of an order of which nobody knows that each comes before the next."""
    stretches: list[list[Version]] = [[]]
    for version in order:
        if stretches[-1] and (stretches[-1][-1], version) in known:
            stretches.append([])
        stretches[-1].append(version)
    return [stretch for stretch in stretches if len(stretch) > 1]
