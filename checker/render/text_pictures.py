"""Pictures in text: litmus tests, timelines, denotations, and tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.checker.execution.denotation import Denotation
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule


def assumption_lines(assumed: Iterable[str]) -> Iterator[str]:
    r"""Yield assumptions as a list, one sentence each.

    >>> print(*assumption_lines(["at most 3 keys"]), sep="\n")
    Assumptions:
    - at most 3 keys
    """
    yield "Assumptions:"
    yield from (f"- {one}" for one in assumed)


def run_lines(litmus: Litmus) -> list[str]:
    r"""Return the tables of a litmus test, their initial content, and its transactions.

    >>> from isolitmus.specs import litmus
    >>> print(*run_lines(litmus("reorder")), sep="\n")
    t(id INT, part INT), partitioned by part
      INSERT INTO t VALUES (1, 0), (2, 1)
    <BLANKLINE>
    delete  DELETE FROM t WHERE part = 0
    insert  INSERT INTO t VALUES (100, 0)
    """
    from isolitmus.model.sql.values import show_row

    lines: list[str] = []
    for schema in litmus.tables.values():
        columns = ", ".join(schema.partitioned_by)
        line = f"{schema.name}({schema.ddl()}){columns and f', partitioned by {columns}'}"
        rows = f", Parquet at the start: {' '.join(map(show_row, schema.parquet))}"
        gone = rows if schema.parquet else ", not there at the start"
        lines.append(line if schema.exists else f"{line}{gone}")
    lines += [f"  {statement.sql}" for statement in litmus.init]
    width = max(map(len, litmus.transactions))
    lines.append("")
    for name, statement in litmus.transactions.items():
        lines.append(f"{name:<{width}}  {statement.sql}")
        read = litmus.client(name).let
        lines += [f"{'':<{width}}  with :{each} from {query.sql}" for each, query in read.items()]
    return lines


def timeline(schedule: Schedule, run: Run | None = None) -> str:
    """Return a line for each transaction, time to the right; with a run, also its outcome.

    >>> from isolitmus.model.schedule import Schedule
    >>> print(timeline(Schedule.parse("a.start b a.commit", ["a", "b"])))
    a  ├───────┤
    b      ●
    """
    names = list(dict.fromkeys(step.transaction for step in schedule.steps))
    width = max(map(len, names))
    lines: list[str] = []
    for name in names:
        at = [k for k, step in enumerate(schedule.steps) if step.transaction == name]
        start, end = 4 * at[0], 4 * at[-1]
        bar = "●" if start == end else f"├{'─' * (end - start - 1)}┤"
        line = f"{name:<{width}}  {' ' * start}{bar}"
        if run is not None:
            line = f"{line:<{width + 4 * len(schedule.steps) + 2}}{outcome_words(run, name)}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def outcome_words(run: Run, name: str) -> str:
    """Return the outcome of a transaction: versions read and made, or why it did not commit."""
    return str(run.transactions[name])


def denotations(values: Iterable[Denotation]) -> list[str]:
    """Return a line for each let, axiom and label of a spec with its value.

    >>> from isolitmus.checker.execution.denotation import Denotation
    >>> both = Denotation("let", "both", (("a", "b"), ("b", "a")))
    >>> for line in denotations([both, Denotation("show", "S", ())]):
    ...     print(line)
    let both  a → b, b → a
    show S    nothing
    """
    lines = [(f"{v.statement} {v.name}", ", ".join(map(" → ".join, v.items))) for v in values]
    width = max((len(what) for what, _ in lines), default=0)
    return [f"{what:<{width}}  {items or 'nothing'}" for what, items in lines]


def markdown_grid(cells: Mapping[tuple[str, str], str]) -> Iterator[str]:
    r"""Yield the lines of a table: a row per first part of the keys, a column per second part.

    >>> cells = {("reorder", "model"): "aborted", ("skew", "delta"): "anomaly"}
    >>> print(*markdown_grid(cells), sep="\n")
    | litmus test | model | delta |
    |---|---|---|
    | `reorder` | aborted |  |
    | `skew` |  | anomaly |
    """
    rows = dict.fromkeys(row for row, _ in cells)
    columns = dict.fromkeys(column for _, column in cells)
    yield f"| litmus test | {' | '.join(columns)} |"
    yield f"|---{'|---' * len(columns)}|"
    for row in rows:
        found = " | ".join(cells.get((row, column), "") for column in columns)
        name = row.replace("|", "\\|")
        yield f"| `{name}` | {found} |"
