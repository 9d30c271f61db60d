"""A litmus test of which the model says several runs: what is so in all of them, and what is possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import Judged
from isolitmus.model.run import TOOK_EFFECT, same_bag
from isolitmus.model.sql.failing import UNNAMED
from isolitmus.model.sql.values import show_row, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run, SeveralRuns, TransactionRun

__all__ = ["Several"]


@dataclass(frozen=True)
class Several:
    """All runs that a test may end in, and the one that an engine's ended in, if it was carried out."""

    litmus: Litmus
    several: SeveralRuns
    seen: Run | None

    @property
    def run(self) -> Run:
        """The run that was seen; else one of those that may be, to name who says so."""
        return self.several.runs[0] if self.seen is None else self.seen

    @property
    def word(self) -> str:
        """No word tells which it is."""
        return "unknown"

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """Where it is not as expected, and where what was seen is none of those that may be."""
        if self.seen is None:
            return min((Judged(self.litmus, run).differences for run in self.several.runs), key=len)
        judged = Judged(self.litmus, self.seen)
        apart = () if judged.apart else self._none()
        return judged.differences + apart

    def _none(self) -> tuple[str, ...]:
        """Where the run that was seen differs from that of the possible ones which is most like it."""
        assert self.seen is not None
        return min((run_differences(one, self.seen) for one in self.several.runs), key=len)

    @property
    def end(self) -> str:
        """``not met``; ``met`` if what is expected holds of all that may be, or of what was seen; else ``possible``,
        or ``predicted`` of what was seen.
        """
        if self.differences:
            return "not met"
        runs = self.several.runs if self.seen is None else (self.seen,)
        if all(Judged(self.litmus, run).expected == "met" for run in runs):
            return "met"
        return "possible" if self.seen is None else "predicted"

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """How each transaction may end, in words: one way, if that is certain."""
        runs = self.several.runs
        return {
            name: tuple(sorted({_ending(run.transactions[name]) for run in runs}, key=_rank))
            for name in runs[0].transactions
        }

    @property
    def lines(self) -> Iterator[str]:
        """How each transaction ends or may end, and which tables are certain."""
        runs = self.several.runs
        ends = self.ends
        width = max(map(len, ends))
        for name, ways in ends.items():
            if len(ways) > 1:
                yield f"{name:<{width}}  possible: {', '.join(ways[:-1])} or {ways[-1]}"
            else:
                yield f"{name:<{width}}  {ways[0]}"
        for table, rows in runs[0].tables.items():
            same = all(table in run.tables and same_bag(run.tables[table], rows) for run in runs)
            shown = " ".join(map(show_row, rows)) or "no rows"
            yield f"{table} at the end: {shown if same else 'not known'}"
        yield f"because {self.several.problem}"
        if self.seen is not None and not self._none():
            yield "seen was one of them:"
            for name, done in self.seen.transactions.items():
                yield f"  {name:<{width}}  {done}"
        match self.end:
            case "not met":
                yield "NOT as expected:"
                yield from (f"  {difference}" for difference in self.differences)
            case "met":
                yield "as expected"

    def to_json(self) -> dict[str, object]:
        """The possible runs as docs/interface.md, 6, has them."""
        first = self.run
        return {
            "engine": first.engine,
            "engine_version": first.engine_version,
            "protocol": first.protocol,
            "possible": [
                {
                    "outcomes": {name: t.outcome for name, t in run.transactions.items()},
                    "tables": {name: to_json(rows) for name, rows in run.tables.items()},
                }
                for run in self.several.runs
            ],
            "why": self.several.problem,
            "seen": None
            if self.seen is None
            else {name: t.outcome for name, t in self.seen.transactions.items()},
            "expected": {"met": "met", "not met": "not met"}.get(self.end, "none"),
            "differences": list(self.differences),
        }


def _ending(done: TransactionRun) -> str:
    if done.outcome == "committed":
        return "committed" if done.version is None else f"committed as version {done.version}"
    return "an error of its own" if done.outcome == f"error:{UNNAMED}" else done.outcome


def _rank(ending: str) -> tuple[bool, bool, str]:
    """First what takes effect, last what fails."""
    return not ending.startswith(TOOK_EFFECT), "error" in ending, ending
