"""Report of a demo: an HTML page with each history that was found and its explanation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, zip_longest
from typing import TYPE_CHECKING

from isolitmus.checker.execution.dependency_graph import dependency_edges
from isolitmus.checker.execution.serial_orders import is_serial_order, writers
from isolitmus.checker.render.page_parts import GraphFigure, figure, render_template
from isolitmus.checker.render.run_panels import (
    ShownTable,
    at_every_version,
    column_names,
    column_rows,
    decision_words,
    panel_svg,
)
from isolitmus.checker.render.verdicts import axiom_lines, serial_words
from isolitmus.model.vocabulary import BASE
from isolitmus.specs.files.spec_catalogue import protocol, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.sql.values import Rows

TRIED = 4
"""Maximum number of writers for which the table of every serial order is shown."""


@dataclass(frozen=True, slots=True)
class DemoRun:
    """History under one protocol: the model's prediction, an engine's run, and differences.

    The engine's run is None if it was not run.
    """

    predicted: RunResult
    observed: RunResult | None
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoAdvice:
    """Remedy for a history."""

    title: str
    """Title in a few words."""
    how: str
    """Description in a sentence or two."""
    sql: str
    """SQL statement; empty if there is none."""
    helps: bool
    """True if it helps."""
    checked: str
    """Result of checking it."""
    cost: str
    """Outcome of the history with it."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """History that was found, with an explanation."""

    separation: Separation
    """Result of `separate` that contains it."""
    replays: tuple[DemoRun, ...]
    """Its runs under protocols, predicted and observed."""
    title: str
    """Title: the event."""
    promise: str
    """Promise that it violates."""
    matters: str
    """Consequence of the violation."""
    advice: tuple[DemoAdvice, ...] = ()
    """Remedies."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """Content of a cell: words, or rows, with those marked that the other side lacks."""

    words: str
    table: ShownTable | None = None


@dataclass(frozen=True, slots=True)
class _ComparisonLine:
    """Line of the comparison.

    ``observed`` is None if nothing was run; ``verdict`` says whether the line is about levels.
    """

    label: str
    predicted: _Cell
    observed: _Cell | None
    verdict: bool = False

    @property
    def differs(self) -> bool:
        return self.observed is not None and self.observed != self.predicted


@dataclass(frozen=True, slots=True)
class _Step:
    """Step of the schedule in words; if it made a version, the tables, with changes marked."""

    name: str
    words: str
    version: int | None
    tables: tuple[ShownTable, ...]


@dataclass(frozen=True, slots=True)
class _Trial:
    """Tables that a serial order produces (None: it fails), with differences marked."""

    order: tuple[str, ...]
    tables: tuple[ShownTable, ...] | None
    same: bool


BEFORE = {
    "before": "does what it does outside the transaction",
    "park-init": "is planned; its snapshot is not yet taken",
}


def demo_page(findings: Sequence[Demonstration], headline: str, made: PageOrigin) -> str:
    """Return the page, without scripts or external resources, and with every text escaped."""
    replays = [replay for finding in findings for replay in finding.replays]
    return render_template(
        "report.html.j2",
        findings=findings,
        hero=_hero(findings),
        headline=headline,
        made=made,
        replayed=any(replay.observed for replay in replays),
        differing=any(replay.differences for replay in replays),
        assumptions=dict.fromkeys(a for f in findings for a in f.separation.assumptions),
        terms=BASE,
        dependencies=("wr", "ww", "rw", "log", "so"),
        spec=spec,
        protocol=protocol,
        admitted=_admitted,
        at_end=_at_end,
        at_start=_at_start,
        axioms=axiom_lines,
        decision=decision_words,
        graph=_graph,
        lines=_lines,
        panel=panel_svg,
        serial_words=serial_words,
        steps=_steps,
        trials=_trials,
    )


def _hero(findings: Sequence[Demonstration]) -> Demonstration | None:
    """Return the first history of the page: one that no serial order explains, if there is one."""
    shown = [finding for finding in findings if finding.replays]
    unexplained = (f for f in shown if not f.separation.serial or not f.separation.serial.orders)
    return next(unexplained, next(iter(shown), None))


def _at_start(judged: RunResult) -> list[ShownTable]:
    """Return the initial tables."""
    names = column_names(judged.litmus, (), judged.executor)
    return [column_rows(t, names[t], rows) for t, rows in judged.run.versions[0].items()]


def _admitted(finding: Demonstration) -> RunResult:
    """Return the run under the protocol that admits the history."""
    predicted = [replay.predicted for replay in finding.replays]
    return next((p for p in predicted if p.run.protocol == finding.separation.a), predicted[0])


def _at_end(judged: RunResult) -> list[ShownTable]:
    """Return the final tables."""
    names = column_names(judged.litmus, writers(judged.litmus, judged.run), judged.executor)
    return [column_rows(t, names[t], rows) for t, rows in judged.run.tables.items()]


def _graph(finding: Demonstration) -> GraphFigure:
    """Return the dependency graph of the history as it was found, with a thick cycle."""
    shown = _admitted(finding)
    assert shown.frame is not None
    nodes = {name: shown.litmus.transactions[name].sql for name in shown.frame.nodes}
    return figure(nodes, dependency_edges(shown.frame), finding.separation.violation)


def _steps(judged: RunResult) -> Iterator[_Step]:
    """Yield the steps of the executed schedule."""
    run = judged.run
    versions = list(at_every_version(judged.litmus, run, judged.executor))
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
        tables = () if version is None else versions[version]
        yield _Step(step.transaction, ", then ".join(words), version, tables)


def _end(done: TransactionRun) -> str:
    """Return the last step of a transaction in words."""
    match done.outcome:
        case "committed":
            return "ends" if done.version is None else f"commits version {done.version}"
        case "no-op":
            return "ends: nothing to commit"
        case "unknown":
            return "ends; its outcome is unknown"
        case "silent":
            return "tries to commit, on which the protocol is silent: the run ends"
        case outcome if outcome.startswith("error:"):
            return f"fails with {outcome.removeprefix('error:')}"
        case outcome:
            return f"tries to commit and aborts with {outcome}"


def _trials(judged: RunResult) -> list[_Trial]:
    """Return the tables that each serial order of the writers produces."""
    names = writers(judged.litmus, judged.run)
    if len(names) > TRIED:
        return []
    executor = judged.executor
    seen = judged.run.tables
    found = []
    for order in permutations(names):
        given, called = executor.after(order), column_names(judged.litmus, order, executor)
        tables = (
            None
            if given is None
            else tuple(column_rows(t, called[t], rows, seen.get(t)) for t, rows in given.items())
        )
        found.append(_Trial(order, tables, is_serial_order(executor, order, seen)))
    return found


def _lines(replay: DemoRun) -> Iterator[_ComparisonLine]:
    """Yield the lines that compare prediction and observation."""
    ours, theirs = replay.predicted, replay.observed
    seen = None if theirs is None else theirs.run
    for name, t in ours.run.transactions.items():
        other = None if seen is None else seen.transactions[name]
        yield _ComparisonLine(
            name, _Cell(_words(t)), None if other is None else _Cell(_words(other))
        )
        if t.rows is not None:
            rows = other.rows if other else None
            yield _rows_line(f"{name} read", ("", ()), t.rows, rows, theirs)
    versions = zip_longest(ours.run.versions, () if seen is None else seen.versions)
    for k, (predicted, observed) in enumerate(versions):
        names = column_names(ours.litmus, writers(ours.litmus, ours.run, k), ours.executor)
        for table in ours.litmus.tables:
            a = None if predicted is None else predicted.get(table)
            b = None if observed is None else observed.get(table)
            if a is not None or b is not None:
                at = f"{table} at version {k}"
                yield _rows_line(at, (table, names[table]), a, b, theirs)
    for what, say in _JUDGEMENTS.items():
        line = _ComparisonLine(
            what,
            _Cell(say(ours)),
            None if theirs is None else _Cell(say(theirs)),
            verdict=what != "serial orders",
        )
        if line.differs or what not in RARE or line.predicted.words != "none":
            yield line


def _words(t: TransactionRun) -> str:
    """Return outcome, versions, operation, level and blindness of a transaction in words."""
    parts = [t.outcome, f"read version {t.read_version}"]
    if t.version is not None:
        level = "" if t.isolation_level is None else f" at level {t.isolation_level}"
        parts += [f"wrote version {t.version}", f"logged as {t.operation}{level}"]
    return ", ".join([*parts, *(["blind"] if t.blind else [])])


def _orders(judged: RunResult) -> str:
    return ", ".join(judged.serial.orders) or "none"


def _levels(word: str, judged: RunResult) -> str:
    return ", ".join(name for name, v in judged.levels.items() if str(v) == word) or "none"


def _by_conflicts(judged: RunResult) -> str:
    """Return the levels that forbid a run although a serial order explains reads and table."""
    return ", ".join(name for name, one in judged.explained.items() if one.reads) or "none"


_JUDGEMENTS: Mapping[str, Callable[[RunResult], str]] = {
    "serial orders": _orders,
    "allowed by": partial(_levels, "allowed"),
    "forbidden by": partial(_levels, "forbidden"),
    "forbidden only by conflicts by": _by_conflicts,
    "silent on it": partial(_levels, "silent"),
    "unknown to": partial(_levels, "unknown"),
}


RARE = ("forbidden only by conflicts by", "silent on it", "unknown to")
"""Items that are shown only if they apply."""


def _rows_line(
    what: str,
    called: tuple[str, Sequence[str]],
    ours: Rows | None,
    theirs: Rows | None,
    ran: RunResult | None,
) -> _ComparisonLine:
    if ran is None:
        return _ComparisonLine(what, _cell(called, ours, ours), None)
    return _ComparisonLine(what, _cell(called, ours, theirs), _cell(called, theirs, ours))


def _cell(called: tuple[str, Sequence[str]], rows: Rows | None, other: Rows | None) -> _Cell:
    """Return rows with those marked that the other side lacks.

    Of duplicates, the surplus is marked.
    """
    if not rows:
        return _Cell("nothing" if rows is None else "no rows")
    table = column_rows(*called, rows, other or ())
    return _Cell("", replace(table, rows=tuple(r for r in table.rows if r.mark != "missing")))
