"""Saturation: commit-order edges (co) that the axioms imply at levels decided in polynomial time.

Biswas and Enea, On the complexity of checking transactional consistency, OOPSLA 2019, Fig. 2: if t3
reads x from t1 and sees t2, which also wrote x, then t2 precedes t1. What t3 sees depends on the
level. At read committed: the transactions that earlier reads of t3 read from. At read atomic: those
that t3 read from, and those before it in its session. At causal consistency: all that lead to t3 by
sessions and reads. None of these depends on co itself, so one round adds all edges. The level holds
if co, session order and wr together have no cycle.

The number of added edges is linear in reads and sessions: per session, only the latest visible
writer of x is needed, as the session order implies the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.columnar_graph import add_edges, chain_graph, reaches, vector_clocks
from isolitmus.checker.blackbox.precedence import EdgeColumns, concatenate_edges
from isolitmus.checker.blackbox.read_from import WriterIndex, ranges, span
from isolitmus.model.budget import Budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.read_from import AttributedReads

__all__ = ["happens_before", "saturate"]


def saturate(seen: AttributedReads, level: str, budget: Budget | None = None) -> EdgeColumns:
    """Return the edges that must have no cycle at a level.

    Parameters
    ----------
    seen : AttributedReads
        Reads with their writers.
    level : str
        One of "read-committed", "read-committed-biswas-enea", "read-atomic", "causal".
    budget : Budget, optional
        Limits of time and memory (default: none).

    Returns
    -------
    EdgeColumns
        Edges of kinds "so", "wr" and "co". At causal, "so" and "wr" alone if these already have a
        cycle.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
    """
    budget = budget or Budget()
    reads = EdgeColumns.of("wr", seen.writer, seen.reader, seen.read)
    if level == "read-committed":
        return reads
    known = concatenate_edges([EdgeColumns.of("so", *seen.sessions()), reads])
    last = _last(seen)
    if level == "read-committed-biswas-enea":
        return concatenate_edges([known, _after_reads(seen, last, ordered=True)])
    if level == "read-atomic":
        after = _after_reads(seen, last, ordered=False)
        return concatenate_edges([known, after, _in_session(seen, last[1])])
    clock = happens_before(seen, known, budget)
    if clock is None:
        return known
    return concatenate_edges([known, _in_sessions(seen, last[1], clock, budget)])


def happens_before(
    seen: AttributedReads, edges: EdgeColumns, budget: Budget
) -> NDArray[np.int32] | None:
    """Return the vector clocks of transactions by ``edges``, or None if these have a cycle.

    Returns
    -------
    ndarray of int32, shape (n_transactions + 1, n_chains), or None
        Latest transaction of each chain that leads to the transaction, or is it; -1 if there is
        none.
    """
    chain = seen.chains()
    graph = chain_graph(chain)
    add_edges(graph, chain, edges.source, edges.target)
    return vector_clocks(graph, chain, budget)


def _after_reads(
    seen: AttributedReads,
    last_reads: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    ordered: bool,
) -> EdgeColumns:
    """Return co edges t2 → t1, where t3 reads from t2 and reads x from t1, and t2 also writes x.

    ``last_reads`` are those of `_last`. ``ordered``: t3's read of x comes after a read from t2.
    """
    size = len(seen.counts) + 1
    # Pairs (t3, t2) with the first read of t3 from t2, and the last read of each reader, key and
    # writer.
    met, by = _first(seen.reader * size + seen.writer)
    t3, t2, seen_at = met // size, met % size, seen.read[by]
    cells, last = last_reads
    # For each pair, look up the keys that t2 wrote among those that t3 read, or the reverse,
    # whichever are fewer.
    wrote = np.argsort(seen.written_by, kind="stable")
    by_writer, w_key = seen.written_by[wrote], seen.written_key[wrote]
    every = np.arange(size + 1)
    w_first = np.searchsorted(by_writer, every)
    r_first = np.searchsorted(seen.reader[last], every)
    w_low, w_many = w_first[t2], w_first[t2 + 1] - w_first[t2]
    r_low, r_many = r_first[t3], r_first[t3 + 1] - r_first[t3]
    few = w_many <= r_many
    parts = []
    for pick, low, many in ((few, w_low, w_many), (~few, r_low, r_many)):
        pair = np.repeat(np.flatnonzero(pick), many[pick])
        item = ranges(low[pick], many[pick])
        if pick is few:
            key = w_key[item]
            width = int(seen.key.max(initial=0)) + 1
            inside = key < width
            pair, key = pair[inside], key[inside]
            low_read, many_read = span(cells, t3[pair] * width + key)
            read = last[ranges(low_read, many_read)]
            pair = np.repeat(pair, many_read)
        else:
            read = last[item]
            spread = int(max(w_key.max(initial=0), seen.key.max(initial=0))) + 1
            written = by_writer * spread + w_key
            wanted = t2[pair] * spread + seen.key[read]
            at = np.minimum(np.searchsorted(written, wanted), max(len(written) - 1, 0))
            found = written[at] == wanted if len(written) else np.zeros(len(wanted), bool)
            pair, read = pair[found], read[found]
        good = seen.writer[read] != t2[pair]
        if ordered:
            good &= seen_at[pair] < seen.read[read]
        parts.append(
            EdgeColumns.of("co", t2[pair[good]], seen.writer[read[good]], seen.read[read[good]])
        )
    return concatenate_edges(parts)


def _last(seen: AttributedReads) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each reader, key and writer, the last read, sorted by the code of reader and key.

    Returns
    -------
    cell : ndarray of int64
        Code of reader and key.
    last : ndarray of int64
        Index of the read in the columns of ``seen``.
    """
    width = int(seen.key.max(initial=0)) + 1
    cell = seen.reader * width + seen.key
    order = np.lexsort((seen.read, seen.writer, cell))
    cell, writer = cell[order], seen.writer[order]
    ends = np.ones(len(order), bool)
    ends[:-1] = (cell[1:] != cell[:-1]) | (writer[1:] != writer[:-1])
    return cell[ends], order[ends]


def _first(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found, index = np.unique(number, return_index=True)
    return found, index


def _in_session(seen: AttributedReads, last: NDArray[np.int64]) -> EdgeColumns:
    """Return co edges t2 → t1 from the latest writer t2 of x before t3 in the session of t3.

    ``last`` are the last reads (`_last`). Edges that the session order implies are left out.
    """
    chain = seen.chains()
    writers = WriterIndex(seen.written_key, seen.written_by, chain)
    one = last[np.argsort(seen.key[last], kind="stable")]  # look-ups of one key stay in the cache
    reader, source = seen.reader[one], seen.writer[one]
    row, slot = writers.slots_of(seen.key[one], chain[reader])
    writer = writers.latest(slot, reader[row] - 1)
    new = (writer >= 0) & (writer != source[row])
    new &= (chain[writer] != chain[source[row]]) | (writer > source[row])
    row, writer = row[new], writer[new]
    return EdgeColumns.of("co", writer, source[row], seen.read[one[row]])


def _in_sessions(
    seen: AttributedReads, last: NDArray[np.int64], clock: NDArray[np.int32], budget: Budget
) -> EdgeColumns:
    """Return co edges t2 → t1 from the latest writer t2 of x in each session that the clock of t3
    has.

    ``last`` are the last reads (`_last`). Edges that the clock already implies are left out.
    """
    chain = seen.chains()
    writers = WriterIndex(seen.written_key, seen.written_by, chain)
    one = last[np.argsort(seen.key[last], kind="stable")]  # look-ups of one key stay in the cache
    parts = [EdgeColumns.of("co", one[:0], one[:0])]
    for row, slot in writers.slots(seen.key[one]):
        budget.check()
        read = one[row]
        bound = clock[seen.reader[read], writers.chain[slot]].astype(np.int64)
        writer = writers.latest(slot, bound - (bound == seen.reader[read]))
        found = (writer >= 0) & (writer != seen.writer[read])
        read, writer = read[found], writer[found]
        new = ~reaches(clock, chain, writer, seen.writer[read])
        read, writer = read[new], writer[new]
        parts.append(EdgeColumns.of("co", writer, seen.writer[read], seen.read[read]))
    return concatenate_edges(parts)
