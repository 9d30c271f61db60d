"""The report of a demo in Markdown: for each history that was found, everything one needs to judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from isolitmus.checker.draw import timeline
from isolitmus.checker.separation import ASSUMPTIONS
from isolitmus.checker.words import because, serial_words
from isolitmus.model.values import show_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.runs import Judged
    from isolitmus.checker.separation import Separation
    from isolitmus.model.values import Rows

__all__ = ["Finding", "Replay", "report"]


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
    """A history that was found, with its replays."""

    separation: Separation
    replays: tuple[Replay, ...]


def report(findings: Sequence[Finding], headline: str) -> str:
    """The Markdown text."""
    environment = Environment(
        loader=PackageLoader("isolitmus.checker", "."),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # Markdown, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["rows"] = _rows
    return environment.get_template("report.md.j2").render(
        findings=[(finding, _graph(finding)) for finding in findings],
        headline=headline,
        assumptions=ASSUMPTIONS,
        because=because,
        serial_words=serial_words,
        timeline=timeline,
    )


def _graph(finding: Finding) -> str:
    """The dependency graph of the history as it was found, the cycle thick."""
    found = finding.separation
    admitted = [r.predicted for r in finding.replays if r.predicted.run.protocol == found.a]
    if found.violation is None or not admitted:
        return ""
    return admitted[0].to_mermaid(found.violation.cycle)


def _rows(rows: Rows | None) -> str:
    return "—" if rows is None else (" ".join(map(show_row, rows)) or "no rows")
