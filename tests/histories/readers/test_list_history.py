"""What reads of lists say together: an order of versions for each key, or that there is none."""

from pathlib import Path

import pytest

from isolitmus.histories.readers.recorded_history import read_recorded

CASES = {  # what reads saw of key 1: its order, and the reads that it does not explain
    ("[1 2]", "[1]", "nil", "[]"): ([1, 2], []),
    ("[1]", "[2]"): ([1], [1]),
    ("[2]", "[1 2]", "[1]"): ([1, 2], [0]),
    ("[1 2]", "[2 1]"): ([1, 2], [1]),
    ("nil",): ([], []),
    ("[3 1 2]", "[3 2]"): ([3, 1, 2], [1]),
}


@pytest.mark.parametrize(("reads", "expected"), CASES.items(), ids=map(" ".join, CASES))
def test_the_longest_list_is_the_order(reads, expected):
    text = "".join(
        f"{{:type {kind}, :process {i}, :value [[:append 2 {i}] [:r 1 {seen}]]}}"
        for i, seen in enumerate(reads)
        for kind in (":invoke", ":ok")
    )
    history = read_recorded(text.encode(), Path("h"))
    registers = history.registers
    assert registers.keys == ("2", "1")
    order, strays = expected
    assert [registers.values[v] for v in history.order(1)] == order
    assert history.order(0).tolist() == []
    assert [i // 2 for i in history.strays()] == strays
