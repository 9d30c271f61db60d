"""Counts of the abstract universe: against an enumeration that shares nothing with it but the
levels' texts.
"""

import json
import sys
from itertools import permutations, product

import pytest

from isolitmus.checker.judge.completion import find_flaws, frames
from isolitmus.checker.judge.graph_semantics import admits
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.sweeps.abstract_sweep import sweep_abstract
from isolitmus.checker.universes.abstract import NAMES
from isolitmus.cli.main import main
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.history import History
from isolitmus.specs.files.spec_catalogue import level, levels
from isolitmus.specs.files.spec_reader import read_spec

LEVELS = [spec for spec in map(level, levels()) if spec.needs <= NAMES]
PER_READ = read_spec(
    '"Per read" with ww from versions acyclic so | wr | rival & (rf ; po) ; rf^-1 as reads', "per-read"
)  # fmt: skip


def bodies(n, t, keys, *, in_order):
    """What transaction t may do, as text: of each key a read from somebody or none, a write or
    none.
    """
    choices = [
        [(seen, writes) for seen in (None, *(s for s in range(n + 1) if s != t)) for writes in (0, 1)]
        for _ in keys
    ]  # fmt: skip
    for chosen in product(*choices):
        reads = [
            f"r({k}{seen})" for k, (seen, _) in zip(keys, chosen, strict=True) if seen is not None
        ]
        writes = [f"w({k}{t})" for k, (_, does) in zip(keys, chosen, strict=True) if does]
        for order in permutations(reads) if in_order else [tuple(reads)]:
            if order or writes:
                yield " ".join([*order, *writes])


def every_history(n, keys, *, sessions, aborts, in_order):
    numbers = range(1, n + 1)
    cuts = product([True, False], repeat=n - 1) if sessions else [(True,) * (n - 1)]
    for cut, ends in product(list(cuts), list(product([0, 1] if aborts else [0], repeat=n))):
        runs = [[1]]
        for t in numbers[1:]:
            runs.append([t]) if cut[t - 2] else runs[-1].append(t)
        gone = {t for t in numbers if ends[t - 1]}
        if any(len(run) > 1 and gone & {*run} for run in runs):
            continue
        for texts in product(*(list(bodies(n, t, keys, in_order=in_order)) for t in numbers)):
            if any("r(" in texts[t - 1] for t in gone):
                continue
            table = {f"T{t}": text for t, text in zip(numbers, texts, strict=True)}
            together = [" ".join(f"T{t}" for t in run) for run in runs if len(run) > 1]
            history = History.from_table(
                table | {"sessions": together, "aborted": [f"T{t}" for t in sorted(gone)]}
            )
            if not any(find_flaws(history)):  # a read of what nobody wrote
                yield history


def holds(history, spec):
    return any(admits(frame, spec) for frame in frames(history, reads=needs_reads(spec)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "keys", "sessions", "aborts", "specs"),
    [
        (1, 3, True, True, LEVELS),
        (2, 1, True, True, LEVELS),
        (2, 2, False, False, LEVELS),
        (2, 2, True, True, LEVELS[:2]),
        (3, 1, True, False, LEVELS),
        (2, 2, True, False, [PER_READ]),
        (3, 1, True, True, LEVELS),
        pytest.param(2, 3, False, False, LEVELS[:2], marks=pytest.mark.wide),
    ],
)
def test_counts_agree_with_one_by_one(n, keys, sessions, aborts, specs):
    done = sweep_abstract(specs, n, keys, sessions=sessions, aborts=aborts)
    vary = done.vary
    every = list(
        every_history(
            n,
            "xyz"[:keys],
            sessions=vary.sessions,
            aborts=vary.aborts,
            in_order=specs == [PER_READ],
        )
    )
    assert done.histories == len(every)
    assert done.admitted == {s.name: sum(holds(h, s) for h in every) for s in specs}


@pytest.mark.slow
def test_what_is_stronger_admits_fewer():
    done = sweep_abstract(LEVELS, 2, 2)
    chain = ["serializable", "snapshot-isolation", "prefix-consistency", "causal", "read-atomic"]
    counts = [done.admitted[name] for name in chain]
    assert counts == sorted(counts)
    assert done.ended is None and max(counts) < done.histories
    assert [row[3:] for row in done.records.rows] == list(done.admitted.items())
    assert done.to_json()["levels"] == done.admitted


def test_a_limit_leaves_what_was_counted():
    done = sweep_abstract(LEVELS, 3, 2, budget=Budget(seconds=0))
    assert (done.histories, done.ended) == (0, "the time limit of 0 s ended it")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((LEVELS, 6), "6 transactions requested; search space 'abstract' supports 1 to 5"),
        ((LEVELS, 0), "0 transactions requested"),
        ((LEVELS, 2, 4), "4 keys requested; 1 to 3 are supported"),
        (([level("log-serializable")], 2), "log-serializable needs log, which the counted histories do not have"),
        (([read_spec('"A" acyclic ww as a', "own")], 2), "own needs an observed version order, which"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted(arguments, said):
    with pytest.raises(IsolitmusError, match=said):
        sweep_abstract(*arguments)


@pytest.fixture
def swept(monkeypatch, capsys):
    """A function that runs the command, and gives its exit status and what it printed on both
    streams.
    """

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", "sweep", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["abstract", "--cores", "2"], "--cores needs a scope; search space"),
        (["abstract", "--engine", "model"], "--engine needs a scope; search space"),
        (["abstract", "--limit", "9"], "--limit needs a scope; search space"),
        (["abstract", "--keys", "0"], "0 keys requested; 1 to 3 are supported"),
        (["two-partitions", "--keys", "2"], "--keys is for abstract histories"),
        (["two-partitions", "--level", "causal"], "--level is for abstract histories"),
        (["two-partitions", "--no-sessions"], "--no-sessions is for abstract histories"),
    ],
)
def test_options_of_the_other_universe(given, said, swept):
    status, _, errors = swept(*given)
    assert status == 2 and said in errors


@pytest.mark.slow
def test_the_command_counts_and_ends(swept):
    status, out, _ = swept("abstract", "--transactions", "1..2", "--level", "causal", "--json")
    one, two = json.loads(out)
    assert (status, one["transactions"], two["levels"]) == (0, 1, {"causal": 773})
    status, out, _ = swept("abstract", "--time", "0")
    assert status == 3 and "unknown: the time limit of 0 s ended it" in out
