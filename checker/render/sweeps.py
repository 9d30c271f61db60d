"""Sweeps as text, and the page of a sweep's tables.

The page shows counts, growth, needless aborts, and the smallest candidate of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.page_parts import figure, render_template
from isolitmus.checker.render.plots import PlotLine, Scale, line_plot
from isolitmus.model.display import count_of
from isolitmus.model.verdict import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.colours import Theme
    from isolitmus.checker.render.page_parts import GraphFigure, PageOrigin
    from isolitmus.checker.sweeps.abstract_sweep import AbstractSweep
    from isolitmus.checker.sweeps.listed_candidates import ListedCandidates
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

SHOWN = 60
"""Maximum number of kinds that are shown as pictures."""


class CountedPair(NamedTuple):
    """Counts for a protocol and a level at one size."""

    size: int
    """Number of transactions of each candidate."""
    candidates: int
    """Number of candidates."""
    protocol: str
    level: str
    admitted: int
    """Number of candidates that the protocol admits."""
    forbidden: int
    """Number of these that the level forbids."""
    unexplained: int
    """Number of these with a version that no serial order produces."""
    not_log_order: int
    """Number of these whose final table differs from that of the log's order."""

    @property
    def share(self) -> float:
        """Forbidden part of the admitted candidates, from 0 to 1."""
        return self.forbidden / self.admitted if self.admitted else 0.0


class Stops(NamedTuple):
    """Number of aborts of one statement that conflict with another, under a protocol."""

    protocol: str
    """Name of the protocol."""
    level: str
    """Name of the wanted level."""
    loser: int
    """Number of the statement that aborts."""
    winner: int
    """Number of the winning statement."""
    stopped: int
    """Number of candidates in which this abort is the first."""
    needless: int
    """Number of these that the level allows with all transactions committed."""


class FoundKind(NamedTuple):
    """Kind of candidates that a protocol admits and a level forbids."""

    size: int
    """Number of transactions of each candidate."""
    protocol: str
    level: str
    axiom: str
    """Violated axiom."""
    relations: Sequence[str]
    """Relations of the dependencies that violate it."""
    candidates: int
    """Number of candidates of the kind."""
    litmus: str
    """Smallest candidate, as a litmus file."""


@dataclass(frozen=True, slots=True)
class SweepPage:
    """Content of the page."""

    title: str
    """Title of the scope."""
    source: str
    """Source of the scope."""
    statements: Sequence[str]
    """Statements by number."""
    counts: Sequence[CountedPair]
    """Counts by size, protocol and level."""
    stops: Sequence[Stops]
    """Aborts; empty if the tables do not record them."""
    kinds: Sequence[FoundKind]
    """Kinds; empty if none were kept."""

    def to_json(self) -> dict[str, object]:
        """Return the content in the format of docs/interface.md, 6."""
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
    graph: GraphFigure | None


def sweep_page(
    page: SweepPage, tests: Sequence[Litmus], specs: Mapping[str, Spec], made: PageOrigin
) -> str:
    """Return the page, without scripts or external resources.

    ``tests`` are those of the kinds, in their order; ``specs`` are the protocols and levels by
    name.

    >>> from isolitmus.checker.render.page_parts import PageOrigin
    >>> one = CountedPair(2, 196, "p", "l", 102, 8, 0, 8)
    >>> made = PageOrigin("isolitmus 1", "today", "x")
    >>> html = sweep_page(SweepPage("<t>", "s", ["A"], [one], [], []), [], {}, made)
    >>> "&lt;t&gt;" in html, "7.84 %" in html
    (True, True)
    """
    protocols = dict.fromkeys(one.protocol for one in page.counts)
    shown = list(zip(page.kinds, tests, strict=True))[:SHOWN]
    return render_template(
        "sweep.html.j2",
        page=page,
        made=made,
        plots={
            p: growth_svg(p, [one for one in page.counts if one.protocol == p]) for p in protocols
        },
        sizes=sorted({one.size for one in page.counts}),
        maps=list(_maps(page.stops)),
        needless=sorted(page.stops, key=lambda one: -one.needless)[:10],
        pictures=[_picture(kind, test, specs) for kind, test in shown],
    )  # fmt: skip


def _maps(
    stops: Sequence[Stops],
) -> Iterator[tuple[str, str, list[int], dict[tuple[int, int], Stops]]]:
    """Yield a protocol, a level, the statements, and the cells of each map of aborts."""
    for protocol, level in dict.fromkeys((one.protocol, one.level) for one in stops):
        cells = {
            (one.loser, one.winner): one
            for one in stops
            if (one.protocol, one.level) == (protocol, level)
        }
        yield protocol, level, sorted({k for pair in cells for k in pair}), cells


def _picture(kind: FoundKind, test: Litmus, specs: Mapping[str, Spec]) -> _Picture:
    """Return the pictures of the smallest candidate of a kind: timeline and dependency graph."""
    sql = {name: statement.sql for name, statement in test.transactions.items()}
    judged = run(test, specs[kind.protocol])
    said = check(test, specs[kind.level]).levels[kind.level]
    drawn = figure(sql, [], said.violations[0]) if isinstance(said, Forbidden) else None
    return _Picture(kind, sql, judged.timeline.to_svg(), drawn)


def growth_svg(protocol: str, counts: Sequence[CountedPair], theme: Theme = "auto") -> str:
    """Plot the part of admitted candidates that each level forbids, by number of transactions.

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
    title = (
        f"Part of the candidates admitted by {protocol} that each level forbids, by number of"
        " transactions"
    )
    across = Scale("transactions", [(step * k, str(size)) for k, size in enumerate(sizes)])
    up = Scale("", [(part, f"{100 * most * part:.3g} %") for part in (0.0, 0.5, 1.0)])
    return line_plot(title, said, across, up, lines, theme=theme)


GIVEN = {
    "log-serializable": "their final table equals that of the log order",
    "write-serializable": (
        "each of their versions equals the table of some serial order of the writers"
    ),
}
"""Words for the histories that a level forbids only because of their conflicts."""


def sweep_lines(done: Sweep) -> Iterator[str]:
    """Yield the number of candidates that each protocol admits, with the verdicts on these."""
    whole = (
        f"{count_of(done.candidates, 'candidate')} with"
        f" {count_of(done.transactions, 'transaction')}"
    )
    if done.ended is not None:
        whole = f"unknown: {done.ended}; {done.counted:,} of {whole} counted"
    yield f"{done.scope}: {whole}, in {done.seconds:.1f} s"
    for name, counts in done.protocols.items():
        silent = (
            f" is undefined on {count_of(counts.silent, 'candidate')} and" if counts.silent else ""
        )
        most = "at most " if name in done.at_most else ""
        yield f"  {name}{silent} admits {most}{count_of(counts.admitted, 'candidate')}. Of these:"
        width = max(map(len, counts.forbidden), default=0)
        for level, number in counts.forbidden.items():
            share = _share(number, counts.admitted)
            yield f"    {number:>9,} are forbidden by {level:<{width if share else 0}}{share}"
        yield f"    {counts.not_log_order:>9,} end with a table that the log order does not produce"
        yield (
            f"    {counts.unexplained:>9,} reach a table state that no serial order of the writers"
            " produces"
        )
        for level, number in counts.for_conflicts_alone.items():
            if number:
                alone = f"forbidden by {level} only because of their conflicts"
                yield f"    {number:>9,} are {alone}: {GIVEN[level]}"
    if done.failure is not None:
        yield (
            f"  {count_of(done.failed, 'candidate')} not admitted because a statement fails, first"
            f" '{done.failure.sql}' with {done.failure.exception} ({done.failure.why})"
        )
    yield from (f"  {line}" for line in done.unexercised.lines())


def listed_lines(listed: Sequence[ListedCandidates]) -> Iterator[str]:
    """Yield the first candidates of each count: the tables, the statements, the schedule."""
    for each in listed:
        first = "all of" if len(each.tests) == each.number else f"{len(each.tests):,} of"
        yield (
            f"  {each.protocol} admits, {each.what}: {first} {count_of(each.number, 'candidate')}"
        )
        for number, test in enumerate(each.tests, 1):
            yield f"    {number}. {test.schedule}"
            yield f"       at first: {'; '.join(statement.sql for statement in test.init)}"
            for name, statement in test.transactions.items():
                yield f"       {name}: {statement.sql}"
    ended = next((each.ended for each in listed if each.ended is not None), None)
    if ended is not None:
        yield f"  {ended}; there may be more to list"


def abstract_lines(done: AbstractSweep) -> Iterator[str]:
    """Yield the number of histories, and the number that each level admits."""
    whole = f"of {count_of(done.transactions, 'transaction')} over {count_of(done.keys, 'key')}"
    varied = [
        word
        for word, varies in (("sessions", done.vary.sessions), ("aborts", done.vary.aborts))
        if varies
    ]
    whole += f", with {' and '.join(varied)}" if varied else ""
    found = f"{done.histories:,} histories {whole}"
    if done.ended is not None:
        found = f"unknown: {done.ended}; {done.histories:,} of the histories {whole} counted"
    yield f"Search space 'abstract': {found}, in {done.seconds:.1f} s"
    width = max((len(f"{number:,}") for number in done.admitted.values()), default=0)
    for level, number in done.admitted.items():
        share = f"{100 * number / done.histories:.2f} %" if done.histories else "none counted"
        yield f"  {number:>{width},} are admitted by {level}  ({share})"
    yield from (f"  {line}" for line in done.unexercised.lines())
    for level, histories in done.listed.items():
        yield f"  Admitted by {level}, the first {len(histories):,}:"
        yield from (f"    {_history_words(history)}" for history in histories)


def _history_words(history: History) -> str:
    """Return a history on one line: its transactions, and the sessions of several."""
    texts = (
        f"{t.name}{'' if t.status == 'committed' else f' ({t.status})'}: {t}"
        for t in history.transactions
    )
    sessions = (" ".join(f"T{n}" for n in one) for one in history.sessions if len(one) > 1)
    return "; ".join([*texts, *(f"session {one}" for one in sessions)])


def _share(number: int, of: int) -> str:
    return f"  ({100 * number / of:.2f} %)" if number else ""
