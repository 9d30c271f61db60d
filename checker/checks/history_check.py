"""The verb ``check`` of a history or a litmus test, and the strongest levels that hold.

The verb ``check``: what levels say of a history that was recorded or written by hand.

A litmus test on a table is checked as the history that its schedule describes, every commit taken
as it stands, without any protocol; an abstract history as it is.

Which levels are stronger than others, and what that makes of several verdicts on one history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.execution.serial_orders import (
    NAMED_FORMS,
    form_verdicts,
    strongest_explanations,
)
from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.budget import Budget
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult, count_of, first_lines
from isolitmus.model.history import History
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.records import Records, Tabular
from isolitmus.model.spec import Spec
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Silent, Unknown
from isolitmus.specs.files.catalogue import litmus, spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.execution import Execution
    from isolitmus.model.verdict import Verdict
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = [
    "IMPLIES",
    "LISTED",
    "UNOBSERVED",
    "HistoryVerdicts",
    "StrongestAndWeakest",
    "check",
    "find_standing",
    "implied_levels",
]

IMPLIES: Mapping[str, tuple[str, ...]] = {
    "log-serializable": ("serializable",),
    "serializable": ("snapshot-isolation", "update-serializable"),
    "update-serializable": ("write-serializable", "read-committed"),
    "snapshot-isolation": ("prefix-consistency",),
    "prefix-consistency": ("causal", "read-committed"),
    "causal": ("read-atomic",),
}
"""Of a level those next to it that hold wherever it holds, by their texts (specs/levels): each asks
for no cycle of less.
"""
LISTED: Mapping[str, tuple[str, ...]] = {
    **IMPLIES,
    "strict-serializable": ("serializable", "strong-snapshot-isolation"),
    "strong-snapshot-isolation": ("snapshot-isolation",),
    "read-atomic": ("read-committed-biswas-enea",),
}
"""The same of histories of items alone, of which nobody read what its writer overwrote: Biswas and
Enea, OOPSLA 2019.
"""
UNOBSERVED: Mapping[str, tuple[str, ...]] = {
    **LISTED,
    "read-committed-biswas-enea": ("read-committed",),
}
"""The same where besides nobody observed an order of versions: Adya's read committed then looks at
reads alone. Where one was observed those of Biswas and Enea do not look at it, and his does.
"""


@dataclass(frozen=True, slots=True)
class StrongestAndWeakest:
    """Where a history stands among levels."""

    strongest: tuple[str, ...]
    """The levels that hold of which no stronger one is known to hold."""
    weakest: tuple[str, ...]
    """The levels that fail of which no weaker one is known to fail."""


def find_standing(
    verdicts: Mapping[str, str], implies: Mapping[str, tuple[str, ...]]
) -> StrongestAndWeakest:
    """The strongest that hold and the weakest that fail; a verdict that is neither is of neither.

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
    """The levels that hold wherever one does.

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
    """The verdicts on one history."""

    name: str
    """Of the history, or its label."""
    transactions: int
    """How many there are."""
    operations: int
    """How many reads and writes of rows."""
    levels: Mapping[str, Verdict]
    """The verdicts, by level."""
    seconds: float
    """How long it took."""
    assumptions: tuple[str, ...] = ()
    """What the history left open and was taken for granted."""
    explained: Mapping[str, Explanation] = field(default_factory=dict)
    """What a serial order explains, by the levels that forbid a history on tables for its
    conflicts.
    """
    of: Litmus | HistoryTest | None = None
    """What was judged; None: the log of a table, or what another tool recorded."""
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: IMPLIES)
    """Which levels hold where others do."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """What the levels are called."""

    @property
    def counted(self) -> str:
        """How large the history is, in words."""
        operations = count_of(self.operations, "read or write", "reads and writes")
        return f"{count_of(self.transactions, 'transaction')}, {operations}"

    @property
    def standing(self) -> StrongestAndWeakest:
        """The strongest levels that hold, and the weakest that fail."""
        return find_standing(
            {name: str(verdict) for name, verdict in self.levels.items()}, self.implies
        )

    @property
    def graph(self) -> DependencyGraph:
        """The history's graph, in which the first violation stands out; of a log that violation
        alone.
        """
        from isolitmus.checker.execution.dependency_graph import graph
        from isolitmus.model.dependency_graph import DependencyGraph

        of = DependencyGraph({}) if self.of is None else graph(self.of)
        broken = (v.violations[0] for v in self.levels.values() if isinstance(v, Forbidden))
        first = next(broken, None)
        return of if first is None else of.around(first.cycle)

    @property
    def records(self) -> Records:
        """What each level says, a row each; the axiom that it finds broken, or the order that shows
        that none is.
        """
        rows = []
        for level, verdict in self.levels.items():
            broken = verdict.violations[0].axiom if isinstance(verdict, Forbidden) else None
            order = " ".join(verdict.witness) if isinstance(verdict, Allowed) else None
            rows.append((self.name, level, str(verdict), broken, order))
        return Records(("history", "level", "verdict", "axiom", "serial"), tuple(rows))

    def __repr__(self) -> str:
        """What each level says."""
        said = (f"{level}: {verdict!r}".splitlines() for level, verdict in self.levels.items())
        lines = (f"  {line}" for lines in said for line in lines)
        return first_lines([f"{self.name}: {self.counted}", *lines], 40)

    def to_json(self, history: str) -> dict[str, object]:
        """The verdicts as docs/interface.md, 6, has them; ``history`` is the file's name."""
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


def check(
    test: Litmus | HistoryTest | History | NameOrPath,
    levels: Sequence[SpecLike] | SpecLike,
    *,
    forms: Sequence[str] = (),
    budget: Budget | None = None,
) -> HistoryVerdicts:
    """Judge a history, or a litmus test's, at each level; what is not judged once the ``budget``
    (default: three quarters of the memory that is free) is spent is unknown. ``forms``: view and
    state forms of levels, by their names (``checker.execution.serial_orders``), which need
    statements. Of a test and a level the name or the path of its file will do.

    >>> checked = check("reorder", ["serializable", "log-serializable"])
    >>> {name: str(verdict) for name, verdict in checked.levels.items()}
    {'serializable': 'allowed', 'log-serializable': 'forbidden'}
    >>> str(check("reorder", [], forms=["write-serializable-state"]).levels["write-serializable-state"])
    'allowed'
    >>> from isolitmus.model import History
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2) c1 c2")
    >>> str(check(skew, "serializable").levels["serializable"])
    'forbidden'
    """
    if isinstance(test, History):
        test = HistoryTest("history", "", "", test)
    test = litmus(test)
    if isinstance(levels, (Spec, str, PathLike)):
        levels = [levels]
    asked = [spec(level) for level in levels]
    start = monotonic()
    budget = budget or Budget()
    assumptions: tuple[str, ...] = ()
    explained: dict[str, Explanation] = {}
    if isinstance(test, HistoryTest):
        history = test.history
        verdicts = {each.name: check_history(history, each, budget=budget) for each in asked}
        verdicts |= dict.fromkeys(forms, Needs(("statements",)))
        transactions, operations = len(history.transactions), history.operations
        assumptions = history.assumptions()
    else:
        execution = execute(test)
        unread = Unknown("raw transactions have no rows")
        verdicts = {
            each.name: unread if test.raw else _judged(execution, each, budget) for each in asked
        }
        forbidden = [name for name, v in verdicts.items() if isinstance(v, Forbidden)]
        verdicts |= form_verdicts(test, execution, forms)
        if budget.spent() is None:
            explained = strongest_explanations(test, execution, forbidden)
        transactions = len(execution.events)
        operations = sum(
            len(e.effect.writes) + sum(len(read.matched) for read in e.effect.reads)
            for e in execution.events
        )
    took = monotonic() - start
    return HistoryVerdicts(
        test.name,
        transactions,
        operations,
        verdicts,
        took,
        assumptions,
        explained,
        test,
        titles={each.name: each.title for each in asked}
        | {name: NAMED_FORMS[name].title for name in forms},
    )


def _judged(execution: Execution, spec: Spec, budget: Budget) -> Verdict:
    limit = budget.spent()
    return judge_execution(execution, spec) if limit is None else Unknown(str(limit))
