"""Litmus tests against engines and protocols, as a table in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["markdown"]


def markdown(cells: Mapping[tuple[str, str], str]) -> Iterator[str]:
    r"""The lines of a table: a row for each first part of the keys, a column for each second one.

    >>> print(*markdown({("reorder", "model"): "aborted", ("skew", "delta"): "anomaly"}), sep="\n")
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
