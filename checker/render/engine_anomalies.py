"""Page and table of engines and anomalies, in Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.search.engine_anomalies import AnomalyCell
    from isolitmus.model.anomaly import Anomaly, EngineLevel


def anomaly_page(cells: Sequence[AnomalyCell]) -> str:
    """Return the page: the table, and the evidence of each cell by anomaly."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.anomaly.name for cell in cells))
    sections = [
        (column[0].anomaly, column)
        for name in columns
        for column in [[cell for cell in cells if cell.anomaly.name == name]]
    ]
    return render_template(
        "engine_anomalies.j2",
        table=anomaly_table_text(cells),
        sections=sections,
        releases=", ".join(dict.fromkeys(_release(row) for row in rows if row.engine)),
        texts="; ".join(dict.fromkeys(row.text for row in rows if row.text)),
        title=_title,
        words=_words,
    )


def anomaly_table_text(cells: Sequence[AnomalyCell], page: str | None = "") -> str:
    """Return the table of engines and anomalies in Markdown.

    Parameters
    ----------
    cells : sequence of AnomalyCell
        Cells, row by row.
    page : str, optional
        Path of the page with the evidence, to which the cells lead; None for cells without links.
    """
    columns: dict[str, Anomaly] = {cell.anomaly.name: cell.anomaly for cell in cells}
    rows: dict[EngineLevel, list[str]] = {}
    for cell in cells:
        answer: str = "–" if cell.answer == "not asked" else cell.answer
        if cell.row.text and page is not None:
            answer = f"*{answer}*"
        if page is not None and cell.answer != "not asked":
            answer = f"[{answer}]({page}#{_anchor(cell.anomaly)})"
        rows.setdefault(cell.row, []).append(answer)
    head = ["engine and level", *(anomaly.heading for anomaly in columns.values())]
    lines = [
        head,
        ["---"] * len(head),
        *([_title(row, plain=page is None), *shown] for row, shown in rows.items()),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _release(row: EngineLevel) -> str:
    return f"{row.title.partition(',')[0]} ({row.release})"


def _title(row: EngineLevel, *, plain: bool = False) -> str:
    if not row.text:
        return row.title
    return f"{row.title}, by its text" if plain else f"*{row.title}*"


def _words(cell: AnomalyCell) -> str:
    if cell.answer == "not asked":
        return "–"
    return f"if {cell.condition}" if cell.condition else cell.answer


def _anchor(anomaly: Anomaly) -> str:
    """Return the anchor of an anomaly's section, as GitHub and MkDocs form it."""
    return re.sub(r"[^\w\- ]", "", anomaly.title.lower()).replace(" ", "-")
