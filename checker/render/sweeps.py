"""The page of a sweep's tables: what was counted, how it grows, who is stopped needlessly, the smallest of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.page_parts import figure, render_template
from isolitmus.checker.render.plots import PlotLine, Scale, line_plot
from isolitmus.model.verdict import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.colours import Theme
    from isolitmus.checker.render.page_parts import Graph, Made
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["CountedPair", "FoundKind", "Stops", "SweepPage", "growth_svg", "sweep_page"]

SHOWN = 60
"""So many kinds stand on the page as pictures."""


class CountedPair(NamedTuple):
    """What was counted of a protocol and a level at one size."""

    size: int
    """How many transactions each candidate has."""
    candidates: int
    """How many were counted."""
    protocol: str
    """Its name."""
    level: str
    """Its name."""
    admitted: int
    """How many the protocol admits."""
    forbidden: int
    """How many of these the level forbids."""
    unexplained: int
    """How many of these have a version that no serial order gives."""
    not_log_order: int
    """How many of these end as the order of the log does not."""

    @property
    def share(self) -> float:
        """How much of what is admitted is forbidden, from 0 to 1."""
        return self.forbidden / self.admitted if self.admitted else 0.0


class Stops(NamedTuple):
    """How often a protocol stops one statement for another."""

    protocol: str
    """Its name."""
    level: str
    """The name of what is wanted."""
    loser: int
    """The statement that is stopped, by its number."""
    winner: int
    """The one that stops it."""
    stopped: int
    """In how many candidates that is the first stop."""
    needless: int
    """How many of these the level allows with all transactions committed."""


class FoundKind(NamedTuple):
    """What a protocol admits and a level forbids, of one kind."""

    size: int
    """How many transactions each has."""
    protocol: str
    """Its name."""
    level: str
    """Its name."""
    axiom: str
    """What is broken."""
    relations: Sequence[str]
    """Those of the dependencies that break it."""
    candidates: int
    """How many are of the kind."""
    litmus: str
    """The smallest as a litmus file."""


@dataclass(frozen=True, slots=True)
class SweepPage:
    """What stands on the page."""

    title: str
    """Of the scope."""
    source: str
    """Where the scope comes from."""
    statements: Sequence[str]
    """By number."""
    counts: Sequence[CountedPair]
    """By size, protocol and level."""
    stops: Sequence[Stops]
    """Empty if the tables do not say."""
    kinds: Sequence[FoundKind]
    """Empty if none are kept."""

    def to_json(self) -> dict[str, object]:
        """What it says, as docs/interface.md, 6, has it."""
        return {
            "scope": self.title,
            "statements": list(self.statements),
            "counts": [one._asdict() for one in self.counts],
            "stops": [one._asdict() for one in self.stops],
            "findings": [one._asdict() for one in self.kinds],
        }


class _Picture(NamedTuple):
    kind: FoundKind
    transactions: Mapping[str, str]
    timeline: str
    graph: Graph | None


def sweep_page(
    page: SweepPage, tests: Sequence[Litmus], specs: Mapping[str, Spec], made: Made
) -> str:
    """The page: no script, nothing loaded from anywhere. ``tests`` are those of the kinds, in their order, ``specs``
    the protocols and levels by name.

    >>> from isolitmus.checker.render.page_parts import Made
    >>> one = CountedPair(2, 196, "p", "l", 102, 8, 0, 8)
    >>> html = sweep_page(SweepPage("<t>", "s", ["A"], [one], [], []), [], {}, Made("isolitmus 1", "today", "x"))
    >>> "&lt;t&gt;" in html, "7.84 %" in html
    (True, True)
    """
    protocols = dict.fromkeys(one.protocol for one in page.counts)
    shown = list(zip(page.kinds, tests, strict=True))[:SHOWN]
    return render_template(
        "sweep.html.j2",
        page=page,
        made=made,
        plots={p: growth_svg(p, [one for one in page.counts if one.protocol == p]) for p in protocols},
        sizes=sorted({one.size for one in page.counts}),
        maps=list(_maps(page.stops)),
        needless=sorted(page.stops, key=lambda one: -one.needless)[:10],
        pictures=[_picture(kind, test, specs) for kind, test in shown],
    )  # fmt: skip


def _maps(
    stops: Sequence[Stops],
) -> Iterator[tuple[str, str, list[int], dict[tuple[int, int], Stops]]]:
    """A protocol, a level, the statements, and the cells."""
    for protocol, level in dict.fromkeys((one.protocol, one.level) for one in stops):
        cells = {
            (one.loser, one.winner): one
            for one in stops
            if (one.protocol, one.level) == (protocol, level)
        }
        yield protocol, level, sorted({k for pair in cells for k in pair}), cells


def _picture(kind: FoundKind, test: Litmus, specs: Mapping[str, Spec]) -> _Picture:
    sql = {name: statement.sql for name, statement in test.transactions.items()}
    judged = run(test, specs[kind.protocol])
    said = check(test, specs[kind.level]).levels[kind.level]
    drawn = figure(sql, [], said.violations[0]) if isinstance(said, Forbidden) else None
    return _Picture(kind, sql, judged.timeline.to_svg(), drawn)


def growth_svg(protocol: str, counts: Sequence[CountedPair], theme: Theme = "auto") -> str:
    """What part of what a protocol admits each level forbids, by the number of transactions: a line for each level.

    >>> few = [CountedPair(n, 9, "p", "l", 100, 4 * n, 0, 0) for n in (2, 3)]
    >>> growth_svg("p", few).count("<circle")
    2
    """
    sizes = sorted({one.size for one in counts})
    most = max((one.share for one in counts), default=0.0) or 1.0
    step = 1 / max(len(sizes) - 1, 1)
    lines = [
        PlotLine(
            level,
            [
                (step * sizes.index(one.size), one.share / most)
                for one in sorted(counts)
                if one.level == level
            ],
        )
        for level in dict.fromkeys(one.level for one in counts)
    ]
    said = "; ".join(
        f"{one.level}, {one.size} transactions: {one.forbidden:,} of {one.admitted:,}"
        for one in counts
    )
    title = f"What levels forbid of what {protocol} admits, by the number of transactions"
    across = Scale("transactions", [(step * k, str(size)) for k, size in enumerate(sizes)])
    up = Scale("", [(part, f"{100 * most * part:.3g} %") for part in (0.0, 0.5, 1.0)])
    return line_plot(title, said, across, up, lines, theme=theme)
