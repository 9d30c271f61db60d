"""Benchmark of `check` beside another checker: whole commands in turn, a Markdown table.

AWDIT (Møldrup and others, PLDI 2025) and VeriStrong ("Fast Verification of Strong Database
Isolation") are built from their published sources, outside this project, and named by ``--awdit``
or ``--veristrong``. Both programs read the same file, in Plume's text or in dbcop's binary format.
The histories are given by ``--files``, or else generated like those of `bench/recorded.py`: each
has keys of equal probability, or with Zipf's distribution, and is serializable, or a share of its
transactions reads an older state, or an anomaly is planted at its end. Processor seconds are those
of the whole command, user and system; a cell has the minimum and the median of the rounds, and the
last column the ratio of the medians. A program that uses more than `SECONDS` of processor gives no
answer; a run of more than `LONG` is not repeated. A verdict that differs ends the benchmark with an
error.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from bulk import plume
from recorded import generated

from isolitmus.histories.readers.dbcop import EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.histories.readers.blackbox_history import RegisterHistory

ISOLITMUS = str(Path(sys.executable).parent / "isolitmus")
SECONDS, LONG = 60, 10
OUT_OF_TIME = -24
"""Status of a command that has used its processor seconds: SIGXCPU ended it."""
FEW = "3 writers a key"
KEYS = ("Zipf", "uniform", FEW)
HOLDS, STALE = "holds", "1 % stale"
CASES = [f"{keys}, {what}" for keys in KEYS for what in (HOLDS, STALE, "write skew", "lost update")]
"""Kinds of histories: the distribution of keys, and what is wrong."""
MEASURE = f"""
import resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS + 5}))
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, done.returncode)
print(done.stdout[-2000:])
"""
ANSWERS = {
    "Consistent.": True,
    "Inconsistent.": False,
    "accept: true": True,
    "accept: false": False,
}
"""Lines of AWDIT and of VeriStrong that say whether a history is allowed."""


ENDINGS = {"plume": "txt", "dbcop": "bincode"}
VERDICTS = {True: "allowed", False: "forbidden", None: "no answer"}


class Peer(NamedTuple):
    """Another checker: its name, the format of its files, its levels, arguments and sizes."""

    name: str
    format: str
    levels: dict[str, str]
    """Levels here, with their names there."""
    words: tuple[str, ...]
    """Arguments before the name of the level and the file."""
    sizes: list[int]


PEERS = {
    "awdit": Peer(
        "AWDIT",
        "plume",
        {
            "read-committed-biswas-enea": "read-committed",
            "read-atomic": "read-atomic",
            "causal": "causal",
        },
        ("check", "--report-mode", "first", "-i"),
        [10**3, 10**4, 10**5],
    ),
    "veristrong": Peer(
        "VeriStrong",
        "dbcop",
        {"serializable": "ser", "snapshot-isolation": "si"},
        ("--pruning", "fast", "--isolation-level"),
        [10**2, 10**3, 10**4],
    ),
}


class Round(NamedTuple):
    """One run of a command: seconds of processor and of the clock, peak memory, and its answer.

    The answer is None if the command was out of time.
    """

    processor: float
    clock: float
    megabytes: float
    allowed: bool | None


def run(command: list[str]) -> tuple[float, float, int, str]:
    """Run a command in a process of its own, with a limit of processor seconds.

    Return its processor seconds, its peak memory in MB, its status and the end of its output.
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *command], capture_output=True, text=True, check=True
    )
    head, _, output = done.stdout.partition("\n")
    processor, kilobytes, status = head.split()
    return float(processor), int(kilobytes) / 1024, int(status), output


def measured(command: list[str]) -> Round:
    """Run a command and return what it took and answered."""
    start = perf_counter()
    processor, megabytes, status, output = run(command)
    clock = perf_counter() - start
    says = {0: True, 1: False}.get(status) if command[0] == ISOLITMUS else answer(output)
    if says is None and status != OUT_OF_TIME:
        raise ValueError(f"{' '.join(command)} gave no verdict (status {status}): {output}")
    return Round(processor, clock, megabytes, says)


def answer(output: str) -> bool | None:
    """Return whether another checker allows a history; None if it does not say."""
    said = [ANSWERS[line] for line in output.splitlines() if line in ANSWERS]
    return said[0] if len(said) == 1 else None


def bincode(history: RegisterHistory) -> bytes:
    """Return the history in dbcop's binary format, in which value 0 exists before any write."""
    events = np.ones(len(history.key), EVENT)
    events["write"], events["variable"] = history.is_write, history.key
    events["value"] = history.value + 1
    parts = [bytes(64), _number(len(history.sessions))]  # five parameters, three empty texts
    for session in range(len(history.sessions)):
        (mine,) = np.nonzero(history.session == session)
        parts.append(_number(len(mine)))
        for number in mine.tolist():
            some = events[history.first[number] : history.first[number + 1]]
            parts += [_number(len(some)), some.tobytes(), b"\1"]
    return b"".join(parts)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def made(size: int, case: str) -> RegisterHistory:
    """Return a history of a case."""
    keys, _, what = case.partition(", ")
    return generated(
        size,
        15,
        keys=5 * size // 2 if keys == FEW else 10_000,
        zipf=keys == "Zipf",
        stale=0.01 if what == STALE else 0.0,
        planted=what,
    )


def row(
    path: Path, level: str, peer: Peer, program: str, rounds: int
) -> tuple[list[Round], list[Round]]:
    """Run both programs on a history at a level in turn; raise ValueError for unlike verdicts."""
    commands = (
        [ISOLITMUS, "check", str(path), "--format", peer.format, "--level", level],
        [program, *peer.words, peer.levels[level], str(path)],
    )
    found: tuple[list[Round], list[Round]] = ([], [])
    for _ in range(rounds):
        for command, runs in zip(commands, found, strict=True):
            if not runs or runs[-1].processor < LONG:
                runs.append(measured(command))
    if len({one.allowed for runs in found for one in runs} - {None}) > 1:
        kept = Path(tempfile.gettempdir()) / f"unlike-{level}-{path.name}"
        kept.write_bytes(path.read_bytes())
        raise ValueError(f"the verdicts on {kept} at {level} differ")
    return found


def cells(runs: list[Round]) -> str:
    """Return minimum and median of the processor seconds, the clock's median, and peak memory."""
    processor = [one.processor for one in runs]
    clock = statistics.median(one.clock for one in runs)
    peak = max(one.megabytes for one in runs)
    if runs[0].allowed is None:
        return f"no answer in {SECONDS} s | | {peak:,.0f} MB"
    seconds = f"{min(processor):.2f}, {statistics.median(processor):.2f} s"
    return f"{seconds} | {clock:.2f} s | {peak:,.0f} MB"


def ratio(ours: list[Round], theirs: list[Round]) -> str:
    """Return the ratio of the medians of processor seconds, or a bound of it."""
    here, there = (statistics.median(one.processor for one in runs) for runs in (ours, theirs))
    if ours[0].allowed is None:
        return ""
    return f"{'< ' if theirs[0].allowed is None else ''}{here / max(there, 0.001):.2g}"


def histories(
    peer: Peer, files: list[Path], sizes: list[int], cases: list[str]
) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each history: those given, or else the generated ones."""
    if files:
        yield from ((path.name, path) for path in files)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"history.{ENDINGS[peer.format]}"
        for size in sizes:
            for case in cases:
                history = made(size, case)
                if peer.format == "plume":
                    path.write_text(plume(history))
                else:
                    path.write_bytes(bincode(history))
                yield f"{size:,} × 15, {case}", path


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    asked_peer = options.add_mutually_exclusive_group(required=True)
    for name in PEERS:
        asked_peer.add_argument(f"--{name}", metavar="PROGRAM")
    options.add_argument("--sizes", nargs="+", type=int)
    options.add_argument("--cases", nargs="+", choices=CASES)
    options.add_argument("--files", nargs="+", type=Path, default=[])
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    name, program = next((name, given) for name in PEERS if (given := getattr(asked, name)))
    peer = PEERS[name]
    usual = [case for case in CASES if name != "awdit" or case.endswith((HOLDS, STALE))]
    sys.stdout.write(
        "| history | level | verdict | isolitmus: CPU | clock | memory |"
        f" {peer.name}: CPU | clock | memory | CPU, isolitmus / {peer.name} |\n|{'---|' * 10}\n"
    )
    sizes, cases = asked.sizes or peer.sizes, asked.cases or usual
    for title, path in histories(peer, asked.files, sizes, cases):
        for level in peer.levels:
            ours, theirs = row(path, level, peer, program, asked.rounds)
            verdict = min(VERDICTS[one.allowed] for one in ours + theirs)
            sys.stdout.write(
                f"| {title} | {level} | {verdict} | {cells(ours)} | {cells(theirs)} |"
                f" {ratio(ours, theirs)} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
