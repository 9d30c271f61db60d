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

from isolitmus.histories.blackbox.columnar_graph import (
    add_edges,
    begins_run,
    chain_graph,
    reaches,
    stable_order,
    vector_clocks,
)
from isolitmus.histories.blackbox.precedence import EdgeColumns, concatenate_edges
from isolitmus.histories.blackbox.read_from import WriterIndex, portions, ranges, span
from isolitmus.model.budget import Budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.read_from import AttributedReads

ROWS = 50_000
"""Approximate number of rows that are processed together; that many fit into a cache."""


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
    order, last = EdgeColumns.of("so", *seen.sessions()), _last(seen)
    if level == "read-committed-biswas-enea":
        return concatenate_edges([order, reads, _after_reads(seen, last, ordered=True)])
    if level == "read-atomic":
        after = _after_reads(seen, last, ordered=False)
        return concatenate_edges([order, reads, after, _in_session(seen, last[1])])
    known = concatenate_edges([order, reads])
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
    size, width = len(seen.counts) + 1, len(seen.history.keys)
    # The first read of each pair (t3, t2) of reader and writer, and the last read of each reader,
    # key and writer.
    pairs = _first(seen.reader * size + seen.writer)
    t3, t2, seen_at = seen.reader[pairs], seen.writer[pairs], seen.read[pairs]
    cells, last = last_reads
    writer, read, key = seen.writer[last], seen.read[last], seen.key[last]
    written = np.sort(seen.written_by * width + seen.written_key)
    w_first = np.searchsorted(written, np.arange(size + 1) * width)
    r_first = np.searchsorted(cells, np.arange(size + 1) * width)
    # For each pair, look up the keys that t2 wrote among those that t3 read, or the reverse,
    # whichever are fewer.
    w_many, r_many = np.diff(w_first), np.diff(r_first)
    few = w_many[t2] <= r_many[t3]
    maybe_read, maybe_written = _table(cells), _table(written)
    parts = [EdgeColumns.of("co", t2[:0], t2[:0])]
    for pick, of, first, many in ((few, t2, w_first, w_many), (~few, t3, r_first, r_many)):
        pairs = np.flatnonzero(pick)
        for rows in portions(many[of[pairs]], ROWS):
            some = of[pairs[rows]]
            pair, at = np.repeat(pairs[rows], many[some]), ranges(first[some], many[some])
            if pick is few:
                cell = t3[pair] * width + written[at] % width
                maybe = maybe_read[cell & (len(maybe_read) - 1)]
                start, count = span(cells, cell[maybe])
                pair, at = np.repeat(pair[maybe], count), ranges(start, count)
            good = writer[at] != t2[pair]
            if ordered:
                good &= seen_at[pair] < read[at]
            pair, at = pair[good], at[good]
            if pick is not few:
                cell = t2[pair] * width + key[at]
                maybe = np.flatnonzero(maybe_written[cell & (len(maybe_written) - 1)])
                found = maybe[span(written, cell[maybe])[1] > 0]
                pair, at = pair[found], at[found]
            parts.append(EdgeColumns.of("co", t2[pair], writer[at], read[at]))
    return concatenate_edges(parts)


def _table(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a table of the last bits of numbers; most other numbers have other last bits."""
    table = np.zeros(1 << (8 * len(numbers)).bit_length(), bool)
    table[numbers & (len(table) - 1)] = True
    return table


def _first(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first index of each number, in the order of numbers."""
    order = stable_order(number)
    return order[begins_run(number[order])]


def _last(seen: AttributedReads) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each reader, key and writer, the last read, sorted by the code of reader and key.

    Returns
    -------
    cell : ndarray of int64
        Code of reader and key.
    last : ndarray of int64
        Index of the read in the columns of ``seen``.
    """
    cell = seen.reader * len(seen.history.keys) + seen.key
    order = stable_order(seen.writer)
    order = order[stable_order(cell[order])]
    cell = cell[order]
    ends = np.roll(begins_run(cell) | begins_run(seen.writer[order]), -1)
    return cell[ends], order[ends]


def _in_session(seen: AttributedReads, last: NDArray[np.int64]) -> EdgeColumns:
    """Return co edges t2 → t1 from the latest writer t2 of x before t3 in the session of t3.

    ``last`` are the last reads (`_last`). Edges that the session order implies are left out.
    """
    chain = seen.chains()
    writers = WriterIndex(seen.written_key, seen.written_by, chain)
    one = last[stable_order(seen.key[last])]  # look-ups of one key stay in the cache
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
    one = last[stable_order(seen.key[last])]  # look-ups of one key stay in the cache
    parts = [EdgeColumns.of("co", one[:0], one[:0])]
    for row, slot in writers.slots(seen.key[one], ROWS):
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
