"""The report of a demo: one HTML page with, for each history that was found, all one needs to judge it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import permutations, zip_longest
from typing import TYPE_CHECKING

from isolitmus.checker.running.serial import ModelExecutor, gives, writers
from isolitmus.checker.telling.draw import dependencies
from isolitmus.checker.telling.figures import Graph, graph, render
from isolitmus.checker.telling.picture import timeline_svg
from isolitmus.checker.telling.words import serial_words
from isolitmus.model.values import show_row, sort_rows
from isolitmus.model.vocabulary import RELATIONS, SETS
from isolitmus.specs.catalogue import protocol, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.runs import Judged
    from isolitmus.checker.separation import Separation
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.values import Rows

__all__ = ["Finding", "Replay", "report"]

TRIED = 4
"""Up to so many writers, the table that every serial order of them gives is shown."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A history under one protocol: what the model predicts, what an engine did (None: not run), and
    where they differ.
    """

    predicted: Judged
    observed: Judged | None
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A history that was found, with its replays; and in plain words what it is about, what was
    promised and why it matters.
    """

    separation: Separation
    replays: tuple[Replay, ...]
    title: str
    promise: str
    matters: str


@dataclass(frozen=True, slots=True)
class _Cell:
    """What stands in a cell: words, or rows, each with whether the other side has it, too."""

    words: str
    rows: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the comparison; ``observed`` is None where nothing was run."""

    label: str
    predicted: _Cell
    observed: _Cell | None

    @property
    def differs(self) -> bool:
        return self.observed is not None and self.observed != self.predicted


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of the schedule in words, and the tables if it made a version."""

    name: str
    words: str
    version: int | None
    tables: Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class _Trial:
    """The tables that a serial order gives (None: it fails), and whether they are those seen."""

    order: tuple[str, ...]
    tables: Mapping[str, Rows] | None
    same: bool


BEFORE = {
    "before": "does what it does outside the transaction",
    "park-init": "is planned; its snapshot is not yet taken",
}


def report(findings: Sequence[Finding], headline: str) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped."""
    replays = [replay for finding in findings for replay in finding.replays]
    return render(
        "report.html.j2",
        findings=findings,
        headline=headline,
        replayed=any(replay.observed for replay in replays),
        differing=any(replay.differences for replay in replays),
        assumptions=dict.fromkeys(a for f in findings for a in f.separation.assumptions),
        sets=SETS,
        dependencies={kind: RELATIONS[kind] for kind in ("wr", "ww", "rw", "log", "so")},
        spec=spec,
        protocol=protocol,
        admitted=_admitted,
        graph=_graph,
        lines=_lines,
        serial_words=serial_words,
        steps=_steps,
        timeline=timeline_svg,
        trials=_trials,
    )


def _admitted(finding: Finding) -> Judged:
    """The run under the protocol that admits the history."""
    predicted = [replay.predicted for replay in finding.replays]
    return next((p for p in predicted if p.run.protocol == finding.separation.a), predicted[0])


def _graph(finding: Finding) -> Graph:
    """The dependency graph of the history as it was found, the cycle thick."""
    shown = _admitted(finding)
    assert shown.frame is not None
    nodes = {name: shown.litmus.transactions[name].sql for name in shown.frame.nodes}
    return graph(nodes, dependencies(shown.frame), finding.separation.violation)


def _steps(judged: Judged) -> Iterator[_Step]:
    """The schedule as it was carried out."""
    run = judged.run
    read: set[str] = set()
    for step in judged.litmus.schedule.steps:
        done = run.transactions[step.transaction]
        words = [BEFORE[step.action]] if step.action in BEFORE else []
        if step.reads and step.transaction not in read:
            read.add(step.transaction)
            words.append(f"starts and reads version {done.read_version}")
        version = None
        if step.ends:
            words.append(_end(done))
            version = done.version
        tables = {} if version is None else run.versions[version]
        yield _Step(step.transaction, ", then ".join(words), version, tables)


def _end(done: TransactionRun) -> str:
    match done.outcome:
        case "committed":
            return "ends" if done.version is None else f"commits version {done.version}"
        case "no-op":
            return "ends: there is nothing to record"
        case "unknown":
            return "ends, nobody knows how"
        case outcome if outcome.startswith("error:"):
            return f"fails with {outcome.removeprefix('error:')}"
        case outcome:
            return f"tries to commit and is refused with {outcome}"


def _trials(judged: Judged) -> list[_Trial]:
    """What one would have got from the writers one after another, in every order."""
    names = writers(judged.run)
    if len(names) > TRIED:
        return []
    executor = ModelExecutor(judged.litmus)
    found = []
    for order in permutations(names):
        tables = executor.after(order)
        found.append(_Trial(order, tables, gives(executor, order, judged.run.tables)))
    return found


def _lines(replay: Replay) -> Iterator[_Line]:
    """Predicted and observed side by side."""
    ours, theirs = replay.predicted, replay.observed
    seen = None if theirs is None else theirs.run
    for name, t in ours.run.transactions.items():
        other = None if seen is None else seen.transactions[name]
        yield _Line(name, _Cell(_words(t)), None if other is None else _Cell(_words(other)))
        if t.rows is not None:
            yield _rows_line(f"{name} read", t.rows, other.rows if other else None, theirs)
    versions = zip_longest(ours.run.versions, () if seen is None else seen.versions)
    for k, (predicted, observed) in enumerate(versions):
        for table in ours.litmus.tables:
            a = None if predicted is None else predicted.get(table)
            b = None if observed is None else observed.get(table)
            if a is not None or b is not None:
                yield _rows_line(f"{table} at version {k}", a, b, theirs)
    for what, say in _JUDGEMENTS.items():
        line = _Line(what, _Cell(say(ours)), None if theirs is None else _Cell(say(theirs)))
        if line.differs or what != "unknown to" or line.predicted.words != "none":
            yield line


def _words(t: TransactionRun) -> str:
    parts = [t.outcome, f"read version {t.read_version}"]
    if t.version is not None:
        level = "" if t.isolation_level is None else f" at level {t.isolation_level}"
        parts += [f"wrote version {t.version}", f"logged as {t.operation}{level}"]
    return ", ".join([*parts, *(["blind"] if t.blind else [])])


def _orders(judged: Judged) -> str:
    return ", ".join(judged.serial.orders) or "none"


def _levels(word: str, judged: Judged) -> str:
    return ", ".join(name for name, v in judged.levels.items() if str(v) == word) or "none"


_JUDGEMENTS: Mapping[str, Callable[[Judged], str]] = {
    "serial orders": _orders,
    "allowed by": partial(_levels, "allowed"),
    "forbidden by": partial(_levels, "forbidden"),
    "unknown to": partial(_levels, "unknown"),
}


def _rows_line(what: str, ours: Rows | None, theirs: Rows | None, ran: Judged | None) -> _Line:
    if ran is None:
        return _Line(what, _cell(ours, ours), None)
    return _Line(what, _cell(ours, theirs), _cell(theirs, ours))


def _cell(rows: Rows | None, other: Rows | None) -> _Cell:
    """Rows, those that the other side lacks marked: of two like rows against one, the second."""
    if not rows:
        return _Cell("nothing" if rows is None else "no rows")
    left = Counter(other or ())
    shown = []
    for row in sort_rows(rows):
        shown.append((show_row(row), left[row] > 0))
        left[row] -= 1
    return _Cell("", tuple(shown))
