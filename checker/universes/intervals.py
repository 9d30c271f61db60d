"""Orders of intervals: of transactions that begin and end, who had ended when another one began."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING

from isolitmus.model.operations import INITIAL, read_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.history import History
    from isolitmus.model.recorded import Moment

__all__ = ["crossings", "intervals", "one_after_another", "scheduled"]


def crossings(
    n: int,
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[tuple[int, int], ...]]]:
    """What makes a relation on n an order of intervals (Fishburn, Intransitive indifference with unequal indifference
    intervals, 1970): of each two pairs (a, b) and (c, d), those of which then one is there, too, (a, d) or (c, b).
    None relates anybody to himself.

    >>> [(one, other) for one, other, then in crossings(2) if not then]
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    for (a, b), (c, d) in permutations(permutations(range(n), 2), 2):
        yield (a, b), (c, d), tuple((i, j) for i, j in ((a, d), (c, b)) if i != j)


def intervals(n: int) -> Iterator[list[list[bool]]]:
    """All orders of n intervals: ``[i][j]``, i had ended when j began.

    >>> [sum(1 for _ in intervals(n)) for n in (1, 2, 3)]
    [1, 3, 19]
    """
    pairs = [*permutations(range(n), 2)]
    demands = [*crossings(n)]
    for chosen in product((False, True), repeat=len(pairs)):
        there = {pair for pair, one in zip(pairs, chosen, strict=True) if one}
        if all(
            one not in there or other not in there or not there.isdisjoint(then)
            for one, other, then in demands
        ):
            yield [[(i, j) in there for j in range(n)] for i in range(n)]


def scheduled(ended: Sequence[Sequence[bool]]) -> tuple[Moment, ...]:
    """When transactions, from number 1, began and ended, so that just these had ended when others began.

    >>> scheduled([[False, True], [False, False]])
    ((1, 'start'), (1, 'end'), (2, 'start'), (2, 'end'))
    """
    n = len(ended)
    before = [{i for i in range(n) if ended[i][j]} for j in range(n)]
    moments: list[Moment] = []
    over: set[int] = set()
    for j in sorted(range(n), key=lambda j: (len(before[j]), j)):
        moments += [(i + 1, "end") for i in sorted(before[j] - over)]
        over |= before[j]
        moments.append((j + 1, "start"))
    return (*moments, *((i + 1, "end") for i in range(n) if i not in over))


def one_after_another(history: History) -> History | None:
    """The history with a time in which nobody overlaps, and nobody reads what is not written yet: whoever asks for no
    time says the same of it. None if there is no such time, or if nobody knows how somebody ended.

    >>> from isolitmus.model.history import History
    >>> one_after_another(History.from_table({"T1": "r(x2)", "T2": "w(x2)"})).to_table()["schedule"]
    'T2 T1'
    >>> one_after_another(History.from_table({"T1": "r(x2) w(y1)", "T2": "r(y1) w(x2)"}))
    """
    from networkx import DiGraph, NetworkXUnfeasible, lexicographical_topological_sort

    graph = DiGraph()
    graph.add_nodes_from(t.number for t in history.transactions)
    graph.add_edges_from(pair for session in history.sessions for pair in pairwise(session))
    graph.add_edges_from((a.writer, b.writer) for a, b in history.order)
    written = history.versions()
    for t in history.transactions:
        saw = {version for done in t.operations for version in read_versions(done)}
        graph.add_edges_from((v.writer, t.number) for v in saw & written if v.writer != t.number)
    graph.remove_nodes_from([INITIAL])
    try:
        order = [*lexicographical_topological_sort(graph)]
    except NetworkXUnfeasible:
        return None
    if any(t.status == "unknown" for t in history.transactions):
        return None
    moments: list[Moment] = []
    for number in order:
        moments += [(number, "start"), (number, "end")]
    return replace(history, schedule=tuple(moments))
