"""Runs of one litmus test side by side: outcomes and final tables, with differences marked.

A panel has the width of every picture: several side by side fit a wide page, one fits a phone. Rows
are shown under the names of their columns, and marked if another table does not have them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.serial_orders import writers
from isolitmus.checker.render.text_pictures import outcome_words
from isolitmus.checker.render.timeline import (
    LINE,
    WIDTH,
    coordinate,
    label,
    lanes,
    lines_of,
    svg,
    text_width,
)
from isolitmus.model.run import SILENT, TOOK_EFFECT
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.files.spec_catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.checker.execution.serial_orders import ModelExecutor
    from isolitmus.checker.render.colours import Theme
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.sql.values import Row, Rows

Mark = Literal["", "extra", "missing"]
"""State of a row: in both tables, only in the shown one, or only in the other one."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """Values of a row, as texts."""

    values: tuple[str, ...]
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Table with the names of its columns."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[ShownRow, ...]

    @property
    def marked(self) -> bool:
        """True if some row is in only one of the two tables."""
        return any(row.mark for row in self.rows)


def column_rows(
    name: str, columns: Sequence[str], rows: Rows, other: Rows | None = None
) -> ShownTable:
    """Return the rows of a table, marked by comparison with the rows ``other`` that it should have.

    Of two equal rows against one, the second is extra.

    >>> table = column_rows("t", ["id"], ((1,), (2,)), ((2,), (None,)))
    >>> [(row.values, row.mark) for row in table.rows]
    [(('NULL',), 'missing'), (('1',), 'extra'), (('2',), '')]
    """
    left = Counter(rows if other is None else other)
    marked: list[tuple[Row, Mark]] = []
    for row in rows:
        marked.append((row, "" if left[row] > 0 else "extra"))
        left[row] -= 1
    gone = (+left).elements()
    marked += [(row, "missing") for row in gone]
    place = {row: k for k, row in enumerate(sort_rows([row for row, _ in marked]))}
    marked.sort(key=lambda each: place[each[0]])
    shown = tuple(ShownRow(tuple(map(_text, row)), mark) for row, mark in marked)
    return ShownTable(name, tuple(columns), shown)


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)


def against_the_log(judged: RunResult) -> tuple[ShownTable, ...]:
    """Return the final tables of a run, compared with those of the serial order of the log.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> (table,) = against_the_log(run(litmus("reorder"), protocol("delta-write-serializable")))
    >>> [row.values for row in table.rows if row.mark == "extra"]
    [('100', '0')]
    """
    if judged.litmus.raw:
        return ()
    order = writers(judged.litmus, judged.run)
    promised = judged.executor.after(order) or {}
    names = column_names(judged.litmus, order, judged.executor)
    return tuple(
        column_rows(name, names[name], rows, promised.get(name))
        for name, rows in judged.run.tables.items()
    )


def at_every_version(
    litmus: Litmus, run: Run, executor: ModelExecutor
) -> Iterator[tuple[ShownTable, ...]]:
    """Yield the tables at every version, with changes from the version before marked."""
    before: Mapping[str, Rows] | None = None
    for k, tables in enumerate(run.versions):
        names = column_names(litmus, writers(litmus, run, k), executor)
        yield tuple(
            column_rows(name, names[name], rows, None if before is None else before.get(name))
            for name, rows in tables.items()
        )
        before = tables


def column_names(
    litmus: Litmus, order: tuple[str, ...], executor: ModelExecutor
) -> dict[str, list[str]]:
    """Return the column names of each table after these transactions, in serial order."""
    state = {} if litmus.raw else executor.state(order) or {}
    headers = {name: table.header for name, table in state.items()}
    found = {}
    for name, schema in litmus.tables.items():
        header = headers.get(name)
        written = schema.columns if header is None else header.metadata.columns
        found[name] = [column.name for column in written if column.name]
    return found


GAP = 48
"""Distance between two panels."""
ROW = 20
SHOWN = 8
"""Maximum number of rows of a table that are drawn; further rows are counted."""
CELL = 14
"""Maximum number of characters of a value that are drawn."""
SIGN = 78
"""Width at the right of a table for the sign of a marked row."""


def side_by_side_svg(runs: Sequence[RunResult], theme: Theme = "auto") -> str:
    """Return a picture of a litmus test under several protocols, with one panel per run.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> names = ("delta-serializable", "delta-write-serializable")
    >>> picture = side_by_side_svg([run(litmus("reorder"), protocol(name)) for name in names])
    >>> "aborts delete" in picture, "commits both" in picture
    (True, True)
    """
    width = len(runs) * (WIDTH + GAP) - GAP
    parts, top = _statements(runs[0], width)
    bottom = top
    for k, judged in enumerate(runs):
        x = k * (WIDTH + GAP)
        panel, end = _panel(judged)
        parts.append(f'<g transform="translate({x} {coordinate(top)})">{"".join(panel)}</g>')
        bottom = max(bottom, top + end)
    parts += [
        f'<path class="rule" d="M{coordinate(x)} {coordinate(top + 6)}V{coordinate(bottom)}"/>'
        for x in (k * (WIDTH + GAP) - GAP / 2 for k in range(1, len(runs)))
    ]
    return svg(_title(runs), _description(runs), (0, 0, width, bottom), parts, theme)


def panel_svg(judged: RunResult, theme: Theme = "auto") -> str:
    """Return a picture of one run: the protocol's decision, final tables and serial order."""
    parts, bottom = _panel(judged)
    return svg(_title([judged]), _description([judged]), (0, 0, WIDTH, bottom), parts, theme)


def decision_words(judged: RunResult) -> str:
    """Return the protocol's decision about the transactions, in a few words.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> decision_words(run(litmus("reorder"), protocol("delta-serializable")))
    'aborts delete with ConcurrentAppendException'
    """
    done = judged.run.transactions
    refused = [(n, t.outcome) for n, t in done.items() if t.outcome not in TOOK_EFFECT]
    silent = [name for name, outcome in refused if outcome == SILENT]
    if silent:
        return f"is silent on {silent[0]}"
    if not refused:
        return {1: "commits it", 2: "commits both"}.get(len(done), f"commits all {len(done)}")
    return f"aborts {'; '.join(f'{name} with {outcome}' for name, outcome in refused)}"


def conclusion_words(judged: RunResult) -> tuple[str, str]:
    """Return the serial order that produces the tables, in words, and its quality.

    ``good``: the order of the log; ``other``: another order; ``bad``: none.
    """
    serial = judged.serial
    log = " ".join(writers(judged.litmus, judged.run))
    if not serial.orders:
        return "No serial order of the statements produces this table.", "bad"
    if serial.unexplained:
        version = serial.unexplained[0]
        return f"No serial order of the statements produces the table at version {version}.", "bad"
    if log not in serial.orders:
        return (
            (
                f"{_in_turn(serial.orders[0])} produces this table; {_in_turn(log)}, the order of"
                " the log, does not."
            ),
            "other",
        )
    return (
        f"{_in_turn(log) or 'Nothing'}{'' if ' ' in log else ' alone'} produces this table.",
        "good",
    )


def _in_turn(order: str) -> str:
    return ", then ".join(order.split())


def _title(runs: Sequence[RunResult]) -> str:
    return " beside ".join(protocol(one.run.protocol).title for one in runs)


def _description(runs: Sequence[RunResult]) -> str:
    """Return the whole picture in words."""
    litmus = runs[0].litmus
    statements = [f"{name}: {s.sql}" for name, s in litmus.transactions.items()]
    said = [
        f"{protocol(one.run.protocol).title} {decision_words(one)}. "
        + " ".join(f"{table.name} at the end: {_rows(table)}." for table in against_the_log(one))
        + ("" if one.litmus.raw else f" {conclusion_words(one)[0]}")
        for one in runs
    ]
    return " ".join([*(f"{line}." for line in statements), f"Schedule: {litmus.schedule}.", *said])


def _rows(table: ShownTable) -> str:
    words = {"": "", "extra": " (marked)", "missing": " (marked as missing)"}
    return "; ".join(f"{', '.join(row.values)}{words[row.mark]}" for row in table.rows) or "no rows"


def _statements(judged: RunResult, width: float) -> tuple[list[str], float]:
    """Return the name and the statement of each transaction as parts, and their lower end."""
    transactions = judged.litmus.transactions
    indent = max(text_width(name, 14) for name in transactions) + 14
    parts: list[str] = []
    y = 0.0
    for name, statement in transactions.items():
        parts.append(label(2, y + 13, name, "name"))
        for line in lines_of(statement.sql, width - indent, 12):
            parts.append(label(indent, y + 13, line, "statement"))
            y += LINE
        y += 3
    return parts, y + 8


def _panel(judged: RunResult) -> tuple[list[str], float]:
    """Return the parts of a panel whose top is 0, and its lower end."""
    parts = [label(2, 20, protocol(judged.run.protocol).title, "heading")]
    y = 22.0
    for line in lines_of(decision_words(judged), WIDTH - 4, 12):
        y += LINE
        parts.append(label(2, y, line, "decision"))
    done = judged.run.transactions
    fates = {
        name: (
            outcome_words(judged.run, name)
            if t.outcome in TOOK_EFFECT
            else str(t)
            if t.outcome == SILENT
            else f"reads version {t.read_version}, aborts"
        )
        for name, t in done.items()
    }
    drawn, y = lanes(judged.litmus.schedule, judged.run, fates, y + 10)
    parts += drawn
    tables = against_the_log(judged)
    for table in tables:
        drawn, y = _table(table, y + 8)
        parts += drawn
    if judged.litmus.raw:
        return parts, y
    words, how = conclusion_words(judged)
    sign = {"good": "✓", "other": "↷", "bad": "✕"}[how]
    y += 6
    for line in lines_of(f"{sign} {words}", WIDTH - 4, 13):
        y += LINE
        parts.append(label(2, y, line, f"conclusion {how}"))
    if any(table.marked for table in tables):
        for line in lines_of(_marked(judged), WIDTH - 4, 12):
            y += LINE
            parts.append(label(2, y, line, "fate"))
    return parts, y + 4


def _marked(judged: RunResult) -> str:
    """Return the caption that explains the marks of a panel."""
    log = " ".join(writers(judged.litmus, judged.run))
    return f"Marked: differs from the table of {_in_turn(log)}, the order of the log."


def _table(table: ShownTable, y: float) -> tuple[list[str], float]:
    """Return the name of the table, its columns and rows as parts, and their lower end."""
    rows = table.rows[:SHOWN]
    places, right = _columns(table)
    parts = [label(2, y + 13, f"{table.name} at the end", "fate")]
    y += LINE + 2
    parts += [label(x, y + 13, table.columns[k], "column") for k, x in enumerate(places)]
    y += ROW
    parts.append(f'<path class="axis" d="M2 {coordinate(y)}H{coordinate(right)}"/>')
    for row in rows:
        if row.mark:
            place = (
                f'x="2" y="{coordinate(y + 1.5)}" width="{coordinate(right - 2)}"'
                f' height="{ROW - 2}"'
            )
            parts.append(f'<rect class="marked" {place} rx="3"/>')
            sign = {"extra": "≠", "missing": "≠ missing"}[row.mark]
            parts.append(label(right + 8, y + 14.5, sign, "sign"))
        style = f"cell {row.mark}".strip()
        parts += [
            label(x, y + 14.5, _cut(value), style)
            for x, value in zip(places, row.values, strict=False)
        ]
        y += ROW
    more = len(table.rows) - len(rows)
    if more or not rows:
        parts.append(label(10, y + 14.5, f"and {more} more" if more else "no rows", "fate"))
        y += ROW
    return parts, y


def _columns(table: ShownTable) -> tuple[list[float], float]:
    """Return the left ends of the columns that fit, and the right end of the last one."""
    x, places = 10.0, []
    for k, name in enumerate(table.columns):
        texts = [name, *(_cut(row.values[k]) for row in table.rows[:SHOWN] if k < len(row.values))]
        end = x + max(text_width(text, 12) for text in texts) + 18
        if end > WIDTH - SIGN:
            break
        places.append(x)
        x = end
    return places, max(x, 120.0)


def _cut(text: str) -> str:
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"
