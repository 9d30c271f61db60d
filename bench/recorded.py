"""Benchmark of verdicts on recorded histories of registers: a Markdown table of time and memory.

The histories are generated and serializable: sessions take turns at random, each transaction runs
alone, and each operation is a read or a write, with equal probability, of a key with Zipf's
distribution. The recording has what a correct database would record; verifying that takes the
longest. With ``--stale``, that share of the transactions reads an older state, so that the history
is not serializable; other benchmarks plant an anomaly at its end. Each row is a process of its own.
Seconds are of one processor; memory is the peak of the process, with the history.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections import deque
from time import process_time

import numpy as np

from isolitmus.histories.blackbox.judgement import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.histories.readers.blackbox_history import INITIAL, RegisterHistory
from isolitmus.model.budget import Budget

SIZES = [
    f"{transactions}x{operations}"
    for operations in (15, 8)
    for transactions in (10**2, 10**3, 10**4, 10**5)
]
BEHIND = 5
"""Number of transactions by which the reads of a stale one lag behind."""
PLANTED = {
    "write skew": [[(0, 0), (0, 1), (1, 0)], [(0, 0), (0, 1), (1, 1)]],
    "lost update": [[(0, 0), (1, 0)], [(0, 0), (1, 0)]],
}
"""Anomalies: transactions as pairs of 0 for a read, 1 for a write, and key 0 or 1."""


def generated(
    transactions: int,
    operations: int,
    sessions: int = 20,
    keys: int = 10_000,
    seed: int = 1,
    *,
    stale: float = 0.0,
    zipf: bool = True,
    planted: str = "",
) -> RegisterHistory:
    """Return a history of transactions that ran one after another.

    The share ``stale`` of them reads the state before the last transactions. Keys have Zipf's
    distribution, or else equal probability. The transactions of the anomaly ``planted``, each in a
    session of its own, read the last state of the two most popular keys.
    """
    random = np.random.default_rng(seed)
    session = np.sort(random.permutation(np.arange(transactions) % sessions))
    ran = random.permutation(transactions)  # the session of each turn, in its order
    slots = {s: iter(np.flatnonzero(session == s).tolist()) for s in range(sessions)}
    weights = 1 / np.arange(1, keys + 1) if zipf else np.ones(keys)
    key = random.choice(keys, (transactions, operations), p=weights / weights.sum())
    is_write = random.random((transactions, operations)) < 0.5
    late = random.random(transactions) < stale
    value = np.zeros((transactions, operations), np.int64)
    there = np.full(keys, INITIAL)
    overwritten: deque[dict[int, int]] = deque(
        maxlen=BEHIND
    )  # old values of each of the last transactions
    for turn in session[ran].tolist():
        number = next(slots[turn])
        own: dict[int, int] = {}
        before: dict[int, int] = {}
        for step in reversed(overwritten) if late[number] else ():
            before |= step
        for k in range(operations):
            at = int(key[number, k])
            if is_write[number, k]:
                own[at] = number * operations + k
            value[number, k] = own.get(at, before.get(at, there[at]))
        overwritten.append({at: int(there[at]) for at in own})
        for at, new in own.items():
            there[at] = new
    added = PLANTED.get(planted, [])
    more = np.array([event for one in added for event in one], int).reshape(-1, 2)
    count = transactions * operations + np.arange(len(more) + 1)
    ends = count[0] + np.cumsum([len(one) for one in added], dtype=int)
    return RegisterHistory(
        [f"k{k}" for k in range(keys)],
        [f"s{s}" for s in range(sessions + len(added))],
        np.append(session, sessions + np.arange(len(added))),
        np.zeros(transactions + len(added), int),
        np.append(np.arange(transactions + 1) * operations, ends),
        np.append(is_write, more[:, 0] == 1),
        np.append(key, more[:, 1]),
        np.append(value, np.where(more[:, 0] == 1, count[:-1], there[more[:, 1]])),
        np.arange(1, count[-1] + 1),
    )


def row(size: str, level: str, stale: float, seconds: float) -> None:
    """Judge one history at one level, and print the row."""
    transactions, operations = map(int, size.split("x"))
    history = generated(transactions, operations, stale=stale)
    start = process_time()
    judged = judge_recorded(history, level, budget=Budget(seconds))
    took = process_time() - start
    assert stale or judged.verdict != "forbidden", judged
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(
        f"| {transactions:,} transactions of {operations} operations, {level} | {judged.verdict} |"
        f" {took:.2f} s | {peak:,} MB |\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", nargs="+", default=SIZES, metavar="TRANSACTIONSxOPERATIONS")
    options.add_argument("--levels", nargs="+", default=POLYNOMIAL + ORDERED, metavar="LEVEL")
    options.add_argument("--stale", type=float, default=0.0, metavar="SHARE")
    options.add_argument("--time", type=float, default=300.0, metavar="SECONDS")
    options.add_argument("--row", action="store_true", help="the one row that is asked, here")
    asked = options.parse_args()
    for size in asked.sizes:
        for level in asked.levels:
            if asked.row:
                row(size, level, asked.stale, asked.time)
                continue
            words = ["--row", "--sizes", size, "--levels", level, "--stale", str(asked.stale)]
            subprocess.run(
                [sys.executable, __file__, *words, "--time", str(asked.time)], check=True
            )


if __name__ == "__main__":
    main()
