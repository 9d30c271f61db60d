"""Verdicts of isolation levels on one history, and the implications between levels.

The implications give, from several verdicts on one history, the strongest levels that hold and the
weakest that fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult, count_of, first_lines
from isolitmus.model.records import Records, Tabular
from isolitmus.model.verdict import Allowed, Forbidden, Silent, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.verdict import Verdict

IMPLIES: Mapping[str, tuple[str, ...]] = {
    "log-serializable": ("serializable",),
    "serializable": ("snapshot-isolation", "update-serializable"),
    "update-serializable": ("write-serializable", "read-committed"),
    "snapshot-isolation": ("prefix-consistency",),
    "prefix-consistency": ("causal", "read-committed"),
    "causal": ("read-atomic",),
}
"""Direct implications: the levels that hold wherever the key holds, by the definitions in
specs/levels.

Each implied level forbids the cycles of a smaller relation.
"""
LISTED: Mapping[str, tuple[str, ...]] = {
    **IMPLIES,
    "strict-serializable": ("serializable", "strong-snapshot-isolation"),
    "strong-snapshot-isolation": ("snapshot-isolation",),
    "read-atomic": ("read-committed-biswas-enea",),
}
"""Implications for histories of items only in which no read observed a value that its writer
overwrote.

Source: Biswas and Enea, OOPSLA 2019.
"""
UNOBSERVED: Mapping[str, tuple[str, ...]] = {
    **LISTED,
    "read-committed-biswas-enea": ("read-committed",),
}
"""Implications for such histories in which no version order was observed either.

Adya's read committed then depends on reads only. Where a version order was observed, Adya's level
depends on it and the levels of Biswas and Enea do not.
"""


@dataclass(frozen=True, slots=True)
class StrongestAndWeakest:
    """Position of a history among isolation levels."""

    strongest: tuple[str, ...]
    """Levels that hold, without those implied by another level that holds."""
    weakest: tuple[str, ...]
    """Levels that fail, without those that imply another level that fails."""


def find_standing(
    verdicts: Mapping[str, str], implies: Mapping[str, tuple[str, ...]]
) -> StrongestAndWeakest:
    """Return the strongest levels that hold and the weakest levels that fail.

    Parameters
    ----------
    verdicts : mapping of str to str
        Verdict of each level; only "allowed" and "forbidden" count.
    implies : mapping of str to tuple of str
        Direct implications between levels, such as `IMPLIES`.

    Examples
    --------
    >>> said = {"causal": "allowed", "serializable": "forbidden", "snapshot-isolation": "forbidden"}
    >>> find_standing(said, IMPLIES)
    StrongestAndWeakest(strongest=('causal',), weakest=('snapshot-isolation',))
    """
    weaker = {name: implied_levels(name, implies) for name in verdicts}
    holds = [name for name, verdict in verdicts.items() if verdict == "allowed"]
    fails = [name for name, verdict in verdicts.items() if verdict == "forbidden"]
    wrong = [(name, weak) for name in holds for weak in fails if weak in weaker[name]]
    assert not wrong, f"{wrong[0][0]} holds, and {wrong[0][1]} does not, which it implies"
    return StrongestAndWeakest(
        tuple(name for name in holds if not any(name in weaker[other] for other in holds)),
        tuple(name for name in fails if not weaker[name] & {*fails}),
    )


def implied_levels(name: str, implies: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return all levels that a level implies, directly or through others.

    >>> sorted(implied_levels("prefix-consistency", IMPLIES))
    ['causal', 'read-atomic', 'read-committed']
    """
    found: set[str] = set()
    todo = [*implies.get(name, ())]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += implies.get(one, ())
    return found


@dataclass(frozen=True, slots=True)
class HistoryVerdicts(PageResult, GraphResult, Tabular):
    """Verdicts of isolation levels on one history."""

    name: str
    """Name or label of the history."""
    transactions: int
    """Number of transactions; for a table log, of commits."""
    operations: int
    """Number of reads and writes of rows; for a table log, of files added and removed."""
    levels: Mapping[str, Verdict]
    """Verdict of each level."""
    seconds: float
    """Duration of the check."""
    assumptions: tuple[str, ...] = ()
    """Assumptions about what the history does not record."""
    explained: Mapping[str, Explanation] = field(default_factory=dict)
    """Serial explanation of the results, by level that forbids a history on tables for its
    conflicts.
    """
    of: Litmus | HistoryTest | None = None
    """Judged test; None for the log of a table and for recorded histories."""
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: IMPLIES)
    """Direct implications between levels."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Title of each level."""

    @property
    def counted(self) -> str:
        """Size of the history, in words."""
        operations = count_of(self.operations, "read or write", "reads and writes")
        return f"{count_of(self.transactions, 'transaction')}, {operations}"

    @property
    def standing(self) -> StrongestAndWeakest:
        """Strongest levels that hold and weakest levels that fail."""
        return find_standing(
            {name: str(verdict) for name, verdict in self.levels.items()}, self.implies
        )

    @property
    def graph(self) -> DependencyGraph:
        """Dependency graph with the first violation highlighted; for a table log, the violation
        only.
        """
        from isolitmus.checker.execution.dependency_graph import graph
        from isolitmus.model.dependency_graph import DependencyGraph

        of = DependencyGraph({}) if self.of is None else graph(self.of)
        broken = (v.violations[0] for v in self.levels.values() if isinstance(v, Forbidden))
        first = next(broken, None)
        return of if first is None else of.around(first.cycle)

    @property
    def records(self) -> Records:
        """Verdicts as a table with one row per level.

        Column ``axiom`` is the first violated axiom, column ``serial`` a serial order that
        satisfies the level.
        """
        rows = []
        for level, verdict in self.levels.items():
            broken = verdict.violations[0].axiom if isinstance(verdict, Forbidden) else None
            order = " ".join(verdict.witness) if isinstance(verdict, Allowed) else None
            rows.append((self.name, level, str(verdict), broken, order))
        return Records(("history", "level", "verdict", "axiom", "serial"), tuple(rows))

    def __repr__(self) -> str:
        """Return the verdicts, one level a line."""
        said = (f"{level}: {verdict!r}".splitlines() for level, verdict in self.levels.items())
        lines = (f"  {line}" for lines in said for line in lines)
        return first_lines([f"{self.name}: {self.counted}", *lines], 40)

    def to_json(self, history: str) -> dict[str, object]:
        """Return the verdicts in the format of docs/interface.md, 6; ``history`` is the name of the
        file.
        """
        return {
            "history": history,
            "transactions": self.transactions,
            "operations": self.operations,
            "levels": {
                name: _verdict_json(verdict, self.explained.get(name))
                for name, verdict in self.levels.items()
            },
            "strongest": list(self.standing.strongest),
            "weakest": list(self.standing.weakest),
            "assumptions": list(self.assumptions),
            "seconds": round(self.seconds, 3),
        }


def _verdict_json(verdict: Verdict, explained: Explanation | None) -> dict[str, object]:
    """Return the JSON object of a verdict and its explanation."""
    reason = {"reason": verdict.reason} if isinstance(verdict, Unknown) else {}
    return reason | {
        "verdict": str(verdict),
        "anomalies": list(anomaly_names(verdict)),
        "violation": verdict.violations[0].to_json() if isinstance(verdict, Forbidden) else None,
        "silence": verdict.silences[0].to_json() if isinstance(verdict, Silent) else None,
        "serial": (
            " ".join(verdict.witness) if isinstance(verdict, Allowed) and verdict.witness else None
        ),
        "alone": (
            [" ".join(order) for order in verdict.alone] if isinstance(verdict, Allowed) else []
        ),
        "explained": None if explained is None else explained.to_json(),
    }
