"""The count of five writers: what is kept of it, and that a part of it comes out again."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from isolitmus.checker.sweeps.shard_runner import make_kernel
from isolitmus.checker.sweeps.table_sweep import nothing, sweep_work
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.specs import scope

BENCH = Path(__file__).parents[3] / "bench"
LEVELS = ("log-serializable", "write-serializable")
COUNTED = ("candidates", "admitted", *LEVELS, "unexplained", "not_log_order")


@pytest.fixture(scope="module")
def kept():
    """The counts by initial table, the first commit's statement, and protocol."""
    with (BENCH / "five-writers.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        (int(row["init"]), int(row["first"]), row["protocol"]): {
            name: int(row[name]) for name in COUNTED
        }
        for row in rows
    }


@pytest.fixture(scope="module")
def work():
    return sweep_work(scope("fourteen-writers"), 5, limit=10**9)


def test_all_are_there_and_the_page_says_their_sums(kept, work):
    assert len(kept) == len(work.scope.inits) * len(work.scope.statements) * len(work.protocols)
    sums: dict[str, Counter] = {spec.name: Counter() for spec in work.protocols}
    for (_, _, protocol), counts in kept.items():
        sums[protocol].update(counts)
    page = (BENCH / "README.md").read_text()
    for protocol, counts in sums.items():
        assert counts["candidates"] == 193_616_640
        said = ", ".join(f"{counts[name]:,}" for name in COUNTED[1:])
        assert f"| `{protocol}` | {said.replace(', ', ' | ')} |" in page


@pytest.mark.slow
def test_a_part_is_counted_again(kept, work):
    init, first = 1, 1
    total, counting = nothing(work), make_kernel(work)
    for shard in make_shards(work.scope, 5):
        if (shard.init, shard.choices[0][0]) == (init, first):
            total.add(counting.count(shard))
    for protocol, tally in total.of.items():
        expected = kept[init, first, protocol]
        assert tally.admitted == expected["admitted"]
        assert tally.forbidden == {level: expected[level] for level in LEVELS}
        assert tally.unexplained == expected["unexplained"]
        assert tally.not_log_order == expected["not_log_order"]
