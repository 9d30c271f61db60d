"""Repairs of a protocol as text: the violation, a table of repairs, each one, the histories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.verdicts import because
from isolitmus.checker.search.repair_front import MOST_CLAUSES, MOST_NAMES, MOST_TERMS
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.search.repair_result import RuleRepair, RuleRepairs
    from isolitmus.model.litmus import Litmus

HEADER = ("#", "rank", "names", "needless aborts", "removed aborts", "also abort the loser of")


def rule_repair_lines(repairs: RuleRepairs) -> Iterator[str]:
    """Yield the answer, the violation, the repairs with what they need, and the bound."""
    yield from _answer(repairs)
    if repairs.front:
        yield from _table(repairs)
        histories = _NumberedHistories()
        for number, one in enumerate(repairs.front, 1):
            yield ""
            yield from _details(number, one, histories)
        yield ""
        yield from _needs(repairs)
        yield from _others(repairs, histories)
        yield from histories.lines()
    yield ""
    if repairs.ended is not None:
        yield f"Ended early: {repairs.ended}."
    yield f"Search: {repairs.bound}; {repairs.seconds:.1f} s."


def _answer(repairs: RuleRepairs) -> Iterator[str]:
    """Yield the answer and the smallest violation."""
    rule, level = repairs.protocol, repairs.level
    forbids = f"{level} forbids" + (" or no serial order explains" * repairs.explained)
    if repairs.outcome == "holds":
        yield (
            f"Nothing to repair: no counterexample in {repairs.bound}: {rule} admits nothing that"
            f" {forbids}."
        )
        if repairs.beside is not None:
            test = repairs.beside.test
            yield (
                f"Outside the search: {rule} admits and {level} forbids {test.name} of the"
                " catalogue:"
            )
            for line in because(repairs.beside.forbidden.violations[0]):
                yield f"  {line}"
        return
    if repairs.hole is None:
        yield f"Unknown whether {rule} admits anything that {forbids}: {repairs.ended}."
        return
    yield (
        f"{rule} does not keep {level}: of {repairs.admitted:,} candidates that it admits,"
        f" {forbids} {repairs.bad:,}."
    )
    if repairs.outcome == "impossible":
        yield (
            "No rule repairs it: in this history no commit is concurrent with another, so even a"
            " rule that aborts every concurrent commit admits it."
        )
    elif not repairs.front:
        yield f"No repair was found: {repairs.ended or 'none within the limits of a rule'}."
    yield ""
    yield "Smallest violation:"
    yield from _picture(repairs.hole)


def _picture(test: Litmus) -> Iterator[str]:
    """Yield the statements and the schedule of a history, indented."""
    for line in (*run_lines(test), "", *timeline(test.schedule).split("\n")):
        yield f"  {line}".rstrip()


def _table(repairs: RuleRepairs) -> Iterator[str]:
    """Yield the front as a table, with its legend."""
    yield ""
    yield (
        f"Repairs of up to {MOST_CLAUSES} clauses with up to {MOST_TERMS} terms and {MOST_NAMES}"
        " names: no other one (for a proved one, no proved one) has fewer needless aborts with"
        " needs of no higher rank and no more names."
    )
    rows = [HEADER]
    for number, one in enumerate(repairs.front, 1):
        removed = "-" if one.saved is None else f"{one.saved:,} of {repairs.excused:,}"
        names = f"{one.cover.size}", f"{one.cover.needless:,}", removed
        rule = " | ".join(clause.text for clause in one.cover.clauses)
        rows.append((f"{number}", f"{one.cover.rank}", *names, rule))
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER) - 1)]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=True))
        yield f"  {'  '.join(cells)}  {row[-1]}"
    yield "rank: highest rank of what the checker needs, see below; names: relations and sets used"
    yield (
        f"needless aborts: admitted candidates that {repairs.level} allows and the repair aborts,"
        f" of {repairs.admitted - repairs.bad:,}"
    )
    if repairs.released is not None:
        yield (
            f"removed aborts: aborts of {repairs.released} for nothing that the repair still"
            " avoids, of those that the protocol avoids"
        )


class _NumberedHistories:
    """Histories that a text names, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, Litmus]] = {}

    def name(self, test: Litmus) -> str:
        """Return the name of a history, such as `h1`."""
        key = "\n".join((str(test.schedule), *(s.sql for s in test.transactions.values())))
        return self._names.setdefault(key, (f"h{len(self._names) + 1}", test))[0]

    def lines(self) -> Iterator[str]:
        """Yield each history: its schedule, then its statements."""
        if self._names:
            yield ""
            yield "Histories:"
        for name, test in self._names.values():
            yield f"  {name}: {test.schedule}"
            width = max(map(len, test.transactions))
            for transaction, statement in test.transactions.items():
                yield f"    {transaction.ljust(width)}  {statement.sql}"


def _details(number: int, one: RuleRepair, histories: _NumberedHistories) -> Iterator[str]:
    """Yield one repair: clauses in cat and in words, proof or bound, why each part is needed."""
    yield f"{number}. {one.spec.name}"
    for axiom, clause in zip(
        one.spec.axioms[-len(one.cover.clauses) :], one.cover.clauses, strict=True
    ):
        yield f"   empty {clause.text} as {axiom.name}"
        yield f"     aborts if {clause.words}"
    costs = dict.fromkeys(cost.name for c in one.cover.clauses for t in c.terms for cost in t.costs)
    yield f"   needs: {', '.join(costs) or 'actions'}"
    if one.proved_for is not None:
        yield f"   proved for any number of transactions: {one.proved_for}"
    else:
        yield "   not proved: no counterexample among the candidates checked"
    for part in one.needed:
        name = histories.name(part.litmus)
        effect = "is admitted" if part.reason == "violation" else "aborts for nothing"
        yield f"   without {part.without}: {name} {effect}"
    for name, other in one.equal_here:
        yield f"   in this search space {other} does the same as {name}"


def _needs(repairs: RuleRepairs) -> Iterator[str]:
    """Yield the legend of the needs."""
    costs = {
        cost
        for one in (*(r.cover for r in repairs.front), *repairs.alone)
        for clause in one.clauses
        for term in clause.terms
        for cost in term.costs
    }
    yield "What a commit checker needs:"
    for cost in sorted(costs):
        yield f"  rank {cost.rank}, {cost.name}: {cost.sentence}"


def _others(repairs: RuleRepairs, histories: _NumberedHistories) -> Iterator[str]:
    """Yield repairs by one relation, and a pair of histories that no term tells apart."""
    if repairs.alone:
        yield ""
        yield "Single relations that repair it, with needless aborts and rank:"
        for cover in repairs.alone:
            names = f"{count_of(cover.needless, 'needless abort')}, rank {cover.rank}"
            yield f"  {cover.clauses[0].text}: {names}"
    if repairs.indistinct is not None:
        bad, good = map(histories.name, repairs.indistinct)
        yield ""
        yield (
            f"No term tells {bad}, a violation, from {good}, which {repairs.level} allows: every"
            f" repair aborts {good} for nothing."
        )
