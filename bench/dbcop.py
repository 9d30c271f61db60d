"""Verdicts and time of `check` beside dbcop, and beside all serial orders: two Markdown tables.

dbcop (Biswas and Enea, OOPSLA 2019) is built from its published sources, outside this project, and
named by ``--dbcop``. Both programs read the same files of dbcop's JSON. The verdicts are those on
small random histories, of which a third program tries every serial order. The times are those of
whole commands on histories that are serializable, in turn. With ``--veristrong``, the verdicts are
those of VeriStrong; `bench/peers.py` has its times.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers import ISOLITMUS, OUT_OF_TIME, PEERS, SECONDS, answer, bincode, run

if TYPE_CHECKING:
    from isolitmus.histories.readers.blackbox_history import RegisterHistory

LEVELS = {
    "read-atomic": "atomic-read",
    "causal": "causal",
    "prefix-consistency": "prefix",
    "snapshot-isolation": "snapshot-isolation",
    "serializable": "serializable",
}
"""Levels here, with their names in dbcop."""
Event = tuple[str, int, int | None]
"""An operation: r or w, key, and version; None is the initial version."""
Sessions = list[list[list[Event]]]


def small(draw: random.Random) -> Sessions:
    """Return a random history of two or three sessions on two keys, which is not always allowed."""
    shape = [
        [draw.randint(1, 3) for _ in range(draw.randint(1, 2))] for _ in range(draw.choice((2, 3)))
    ]
    kinds = [[[draw.choice("rw") for _ in range(n)] for n in session] for session in shape]
    written: list[list[int | None]] = [[None], [None]]
    found: Sessions = []
    for session in kinds:
        found.append([])
        for kind in session:
            found[-1].append([(word, draw.randrange(2), None) for word in kind])
    for transaction in (one for session in found for one in session):
        for k, (word, key, _) in enumerate(transaction):
            if word == "w":
                new = sum(map(len, written))
                written[key].append(new)
                transaction[k] = word, key, new
    for transaction in (one for session in found for one in session):
        known: dict[int, int | None] = {}
        for k, (word, key, version) in enumerate(transaction):
            usual = key in known and draw.random() < 0.95
            seen = known[key] if usual else draw.choice(written[key])
            known[key] = version if word == "w" else seen
            transaction[k] = word, key, known[key]
    return found


def large(transactions: int, draw: random.Random) -> Sessions:
    """Return a serializable history of five sessions on 50 keys, each once in a transaction."""
    found: Sessions = [[[("w", key, key + 1) for key in range(50)]], [], [], [], []]
    state, version = {key: key + 1 for key in range(50)}, 50
    for _ in range(transactions):
        events: list[Event] = []
        for key in draw.sample(range(50), 8):
            if draw.random() < 0.5:
                version += 1
                state[key] = version
                events.append(("w", key, version))
            else:
                events.append(("r", key, state[key]))
        found[draw.randrange(5)].append(events)
    return found


def document(sessions: Sessions) -> str:
    """Return a history in dbcop's JSON."""
    words = {"r": "Read", "w": "Write"}
    data = [
        [
            {
                "events": [{words[word]: {"variable": k, "version": v}} for word, k, v in events],
                "committed": True,
            }
            for events in session
        ]
        for session in sessions
    ]
    moment = "2026-01-01T00:00:00.000000000Z"
    names = ("id", "n_node", "n_variable", "n_transaction", "n_event")
    given = dict.fromkeys(names, len(sessions))
    return json.dumps({"params": given, "info": "", "start": moment, "end": moment, "data": data})


def has_serial_order(sessions: Sessions) -> bool:
    """Return whether some order of the transactions, with the sessions', explains all reads."""
    named = [(s, k) for s, session in enumerate(sessions) for k in range(len(session))]
    return any(_explains(order, sessions) for order in permutations(named))


def _explains(order: tuple[tuple[int, int], ...], sessions: Sessions) -> bool:
    if any(a[0] == b[0] and a[1] > b[1] for a, b in combinations(order, 2)):
        return False
    state: dict[int, int | None] = {}
    for s, k in order:
        for word, key, version in sessions[s][k]:
            if word == "w":
                state[key] = version
            elif state.get(key) != version:
                return False
    return True


def kind(sessions: Sessions, *, serializable: bool) -> str:
    """Return what is special about a history on which a verdict differs."""
    for transaction in (one for session in sessions for one in session):
        reads = [event for event in transaction if event[0] == "r"]
        own = {event[1:] for event in transaction if event[0] == "w"}
        if serializable and any(
            n > 1 and event[1:] not in own and event[2] is not None
            for event, n in Counter(reads).items()
        ):
            return "a transaction reads a version of another one twice"
        for place, (word, key, version) in enumerate(transaction):
            if serializable and word == "r" and (key, version) in own:
                later = transaction[place + 1 :]
                if any(event[0] == "w" and event[1] == key for event in later):
                    return "a transaction reads its own write and then overwrites it"
    initial = any(e[0] == "r" and e[2] is None for one in sessions for t in one for e in t)
    if not serializable and initial:
        return "forbidden, and a transaction reads an initial version"
    return "other"


def verdicts(folder: Path, dbcop: str, level: str) -> dict[str, bool | None]:
    """Return, by file, whether dbcop allows the histories of a folder."""
    words = [dbcop, "verify", "--input-dir", str(folder), "--consistency", LEVELS[level]]
    lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    said = dict(line.split(": ", 1) for line in lines if ".json: " in line)
    return {name: {"PASS": True, "FAIL": False}[text.split()[0]] for name, text in said.items()}


def veristrong_verdicts(read: list[RegisterHistory], program: str) -> dict[str, bool | None]:
    """Return whether VeriStrong allows each history at serializable, by file."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "history.bincode"
        for k, history in enumerate(read):
            path.write_bytes(bincode(history))
            words = [program, *PEERS["veristrong"].words, "ser", str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            found[f"{k}.json"] = answer(done.stdout)
    return found


def compare(peer: str, program: str, many: int) -> None:
    """Print how many verdicts are right, and what is special about the wrong ones."""
    from isolitmus.histories.blackbox.judgement import judge_recorded
    from isolitmus.histories.readers.recorded_history import recorded_history

    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder, drawn = Path(name), [small(draw) for _ in range(many)]
        for k, sessions in enumerate(drawn):
            (folder / f"{k}.json").write_text(document(sessions))
        read = [recorded_history(folder / f"{k}.json", "dbcop") for k in range(many)]
        theirs = (
            verdicts(folder, program, "serializable")
            if peer == "dbcop"
            else veristrong_verdicts([one.registers for one in read], program)
        )
    wrong: Counter[str] = Counter()
    right = ours = 0
    for k, sessions in enumerate(drawn):
        known = has_serial_order(sessions)
        right += known
        ours += (judge_recorded(read[k], "serializable").verdict == "allowed") != known
        if theirs[f"{k}.json"] != known:
            wrong[kind(sessions, serializable=known)] += 1
    say(f"{many:,} histories, {right:,} serializable.")
    say(f"Wrong verdicts of isolitmus: {ours}; of {peer}:\n")
    say("| histories | what is special |\n|---|---|")
    for what, number in wrong.most_common():
        say(f"| {number} | {what} |")


def measured(command: list[str]) -> float | None:
    """Return the processor seconds of a command; None if it takes longer than the limit."""
    processor, _, status, _ = run(command)
    return None if status == OUT_OF_TIME else processor


def race(dbcop: str, sizes: list[int], rounds: int) -> None:
    """Print minimum and median of both programs on serializable histories."""
    say("\n| transactions | level | isolitmus: CPU | dbcop: CPU |\n|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "h.json"
            path.write_text(document(large(size, random.Random(5))))
            for level, word in LEVELS.items():
                commands: dict[str, list[str]] = {
                    "ours": [ISOLITMUS, "check", str(path), "--level", level],
                    "theirs": [dbcop, "verify", "--input-dir", name, "--consistency", word],
                }
                runs: dict[str, list[Any]] = {who: [] for who in commands}
                for _ in range(rounds):
                    for who, command in commands.items():
                        if None not in runs[who]:
                            runs[who].append(measured(command))
                cells = [seconds(some) for some in runs.values()]
                say(f"| {size:,} | {level} | {' | '.join(cells)} |")


def seconds(runs: list[float | None]) -> str:
    """Return minimum and median of some runs."""
    done = [one for one in runs if one is not None]
    if len(done) < len(runs):
        return f"no answer in {SECONDS} s"
    return f"{min(done):.2f}, {statistics.median(done):.2f} s"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    peers = options.add_mutually_exclusive_group(required=True)
    peers.add_argument("--dbcop", metavar="PROGRAM")
    peers.add_argument("--veristrong", metavar="PROGRAM")
    options.add_argument("--histories", type=int, default=3_000)
    options.add_argument("--sizes", nargs="+", type=int, default=[100, 1_000, 3_000])
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    if asked.veristrong:
        compare("VeriStrong", asked.veristrong, asked.histories)
    else:
        compare("dbcop", asked.dbcop, asked.histories)
        race(asked.dbcop, asked.sizes, asked.rounds)


if __name__ == "__main__":
    main()
