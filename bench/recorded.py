"""How long it takes to judge recorded histories of registers: a table in Markdown, in seconds of one processor.

The histories are made up, and serializable: so many sessions take turns at random, each transaction runs alone,
and each of its operations is a read or a write, as likely as not, of a key that is drawn by Zipf's law. What the
recording has is what a database that keeps its promise would leave; to find that out takes the longest. Where
``--stale`` is above nothing, that share of the transactions reads and writes as of some transactions before: then
serializable it is not.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from isolitmus.checker.recorded.judging import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.model.register_history import INITIAL, RegisterHistory

SIZES = ((500, 15), (1333, 15), (2000, 15), (5000, 15))


def generated(
    transactions: int,
    operations: int,
    sessions: int = 20,
    keys: int = 10_000,
    seed: int = 1,
) -> RegisterHistory:
    """A history of transactions that ran one after another."""
    random = np.random.default_rng(seed)
    session = np.sort(random.permutation(np.arange(transactions) % sessions))
    ran = random.permutation(transactions)  # whose turn it was: of each session in its order
    slots = {s: iter(np.flatnonzero(session == s).tolist()) for s in range(sessions)}
    weights = 1 / np.arange(1, keys + 1)
    key = random.choice(keys, (transactions, operations), p=weights / weights.sum())
    is_write = random.random((transactions, operations)) < 0.5
    value = np.zeros((transactions, operations), np.int64)
    there = np.full(keys, INITIAL)
    for turn in session[ran].tolist():
        number = next(slots[turn])
        for k in range(operations):
            if is_write[number, k]:
                there[key[number, k]] = number * operations + k
            value[number, k] = there[key[number, k]]
    return RegisterHistory(
        [f"k{k}" for k in range(keys)],
        [f"s{s}" for s in range(sessions)],
        session,
        np.zeros(transactions, int),
        np.arange(transactions + 1) * operations,
        is_write.reshape(-1),
        key.reshape(-1),
        value.reshape(-1),
        np.arange(1, transactions * operations + 1),
    )


def main() -> None:
    for transactions, operations in SIZES:
        history = generated(transactions, operations)
        for level in POLYNOMIAL + ORDERED:
            start = process_time()
            judged = judge_recorded(history, level)
            assert judged.verdict == "allowed", judged
            took = process_time() - start
            sys.stdout.write(
                f"| {transactions:,} transactions of {operations} operations, {level} | {took:.3f} s |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
