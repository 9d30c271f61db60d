"""Histories that nobody here wrote, with the verdicts that their authors state.

They lie beside the repository, in ``shared/datasets``, and are never copied into it: the folder of
each has its source and licence. Where they are not, these tests are skipped.
"""

from itertools import islice
from pathlib import Path

import pytest

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead, Transaction, Version, Write
from isolitmus.specs.files.spec_catalogue import level
from isolitmus.specs.files.spec_reader import read_spec

AWDIT = Path(__file__).parents[4] / "shared" / "datasets" / "awdit-tests"
FILES = sorted(path.relative_to(AWDIT).as_posix() for path in AWDIT.rglob("*.txt"))
LETTERS = str.maketrans("0123456789", "abcdefghij")
PASSES = {  # by the folder: AWDIT's own tests assert these, of read committed, read atomic, causal
    "causal": (True, True, True),
    "read-atomic": (True, True, False),
    "read-committed": (True, False, False),
    "none": (False, False, False),
}

READ_COMMITTED = read_spec(
    '"Read committed, as Biswas and Enea have it"'
    " empty [Aborted] ; wr as no-aborted-read"
    " acyclic so | wr | (rival & (rf ; po)) ; rf^-1 as monotonic",
    "read-committed-per-read",
)


def parse(text):
    """AWDIT's text: sessions between ``=====``, transactions between ``-----``, operations a line.

    ``w K V`` writes a value that no other write of K has, ``r K V`` reads it. The session that only
    writes 0 is T0. A version of ours is the last that its transaction wrote; these files have no
    read of an earlier one.
    """
    sessions = [
        [[line.split() for line in part.strip().splitlines()] for part in session.split("-----")]
        for session in text.split("=====")
    ]
    sessions = [s for s in sessions if any((k, v) != ("w", "0") for t in s for k, _, v in t)]
    numbered = list(enumerate((t for session in sessions for t in session), 1))
    final = [{key: value for kind, key, value in t if kind == "w"} for _, t in numbered]
    writer = {(key, "0"): 0 for _, t in numbered for _, key, _ in t}
    writer |= {(key, value): n for n, last in enumerate(final, 1) for key, value in last.items()}
    transactions = []
    for (n, done), last in zip(numbered, final, strict=True):
        operations = []
        for kind, key, value in done:
            name = "k" + key.translate(LETTERS)
            if kind == "r":
                operations.append(ItemRead(Version(name, writer[key, value])))
            elif value == last[key]:
                operations.append(Write(Version(name, n)))
        transactions.append(Transaction(n, tuple(operations)))
    numbers = iter(range(1, len(numbered) + 1))
    order = tuple(tuple(islice(numbers, len(session))) for session in sessions)
    return History(tuple(transactions), order)


def test_the_format():
    history = parse("w 0 0\nw 1 0\n=====\nr 0 0\nw 0 1\n-----\nr 1 0\n=====\nr 0 1\n")
    assert history.to_table() == {
        "sessions": ["T1 T2", "T3"],
        "T1": "r(ka0) w(ka1)",
        "T2": "r(kb0)",
        "T3": "r(ka1)",
    }


ABSENT = pytest.param("", marks=pytest.mark.skip("no ../shared/datasets/awdit-tests here"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES or [ABSENT])
def test_awdit_s_verdicts(name):
    history = parse((AWDIT / name).read_text("utf-8"))
    specs = (READ_COMMITTED, level("read-atomic"), level("causal"))
    found = tuple(bool(check_history(history, spec)) for spec in specs)
    assert found == PASSES[name.split("/")[0]]


def test_all_of_awdit_s_histories_are_judged():
    assert len(FILES) in (0, 22)
