"""Verdicts, violations, axioms and checks in words.

A violation is a list of edges with their reasons and a conclusion, for example a cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.checker.judge.level_forms import NAMED_FORMS
from isolitmus.model.verdict import Allowed, Forbidden, Silent, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.reason import Edge
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict, Violation
    from isolitmus.specs.files.spec_catalogue import SpecLike


def because(violation: Violation) -> list[str]:
    """Return a violation as lines: one for each edge with its reason, then the conclusion.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> log = Edge("a", "b", "log", "it is earlier in the log")
    >>> edges = (log, Edge("b", "a", "rw", "b missed it"))
    >>> for line in because(Violation("log-order", "acyclic", edges)): print(line)
    a before b, because it is earlier in the log
    b before a, because b missed it
    cycle a → b → a: no serial order satisfies these dependencies
    >>> dirty = (Edge("a", "b", "wr", "b read what a wrote; a aborted"),)
    >>> for line in because(Violation("no-aborted-read", "empty", dirty)): print(line)
    a leads to b, because b read what a wrote; a aborted
    no-aborted-read forbids an edge from a to b
    """
    edges = violation.cycle
    if violation.kind == "form":
        return [f"it does not hold that {NAMED_FORMS[violation.axiom].asks}"]
    if not edges:
        return [f"{violation.axiom} is violated"]
    if violation.kind == "flaw":
        return [*(edge.why for edge in edges), "no order of the transactions explains this read"]
    if violation.kind == "empty":
        first, last = edges[0].source, edges[-1].target
        to = (
            f"a path from {first} to {last}"
            if len(edges) > 1
            else f"an edge from {first} to {last}"
        )
        return [
            *(_sentence(edge, "leads to") for edge in edges),
            f"{violation.axiom} forbids {to}",
        ]
    cycle = " → ".join([*(edge.source for edge in edges), edges[0].source])
    conclusion = f"cycle {cycle}: no serial order satisfies these dependencies"
    return [*(_sentence(edge, "before") for edge in edges), conclusion]


def violation_text(violation: Violation) -> str:
    """Return a violation as one text."""
    return "\n".join(because(violation))


def assumption_words(violation: Violation) -> str:
    """Return the assumptions of a violation as an if-clause; empty if it has none."""
    return f" if {' and '.join(map(str, violation.supposing))}" if violation.supposing else ""


def other_ways(verdict: Forbidden) -> list[str]:
    """Return a line that the completions not shown are forbidden too; empty if all are shown."""
    if verdict.others == 0:
        return []
    if verdict.others is None:
        return ["Every other completion of the history is forbidden, too."]
    if verdict.others == 1:
        return ["The one other completion of the history is forbidden, too."]
    return [f"All {verdict.others:,} other completions of the history are forbidden, too."]


def refusal_words(violation: Violation) -> list[str]:
    """Return why a commit aborts, or why its outcome is undefined, from its violation.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> edges = (Edge("a", "b", "unseen", "b read version 0, before a became version 1"),)
    >>> for line in refusal_words(Violation("Conflict", "empty", edges)): print(line)
    b conflicts with a, because b read version 0, before a became version 1
    b aborts with Conflict
    >>> for line in refusal_words(Violation("restore", "silent", edges)): print(line)
    b overlaps a, because b read version 0, before a became version 1
    the outcome of b is undefined (restore), and the run ends
    """
    edges = violation.cycle
    if violation.kind == "silent":
        return [
            *(_conflict(edge, "overlaps") for edge in edges),
            f"the outcome of {edges[-1].target} is undefined ({violation.axiom}), and the run ends",
        ]
    return [
        *(_conflict(edge, "conflicts with") for edge in edges),
        f"{edges[-1].target} aborts with {violation.axiom}",
    ]


def verdict_words(
    verdict: Verdict, spec: SpecLike, explained: Explanation | None = None
) -> list[str]:
    """Return the verdict of a spec and its reasons as lines.

    Parameters
    ----------
    verdict : Verdict
        Verdict on a history.
    spec : Spec, str or path
        Level or protocol that gave it.
    explained : Explanation, optional
        What a serial order explains of a history that the spec forbids.

    Returns
    -------
    list of str
        Lines of text; the first says whether the spec allows the history.

    Examples
    --------
    >>> verdict_words(Allowed(("T2", "T1")), "serializable")
    ['Serializable allows it, for example in the order T2 → T1.']
    """
    from isolitmus.specs.files.spec_catalogue import spec as named

    return titled_words(verdict, named(spec).title, explained)


def titled_words(verdict: Verdict, title: str, explained: Explanation | None = None) -> list[str]:
    """Return the verdict of a spec with this title, and its reasons, as lines.

    >>> titled_words(Allowed(("T2", "T1")), "Serializable")
    ['Serializable allows it, for example in the order T2 → T1.']
    """
    match verdict:
        case Forbidden(violations):
            lines = []
            for violation in violations:
                lines.append(
                    f"{title} forbids it{assumption_words(violation)} ({violation.axiom}):"
                )
                lines += [f"  {line}" for line in because(violation)]
            beside = [] if explained is None else [view_words(explained)]
            return [*lines, *other_ways(verdict), *beside]
        case Silent(silences):
            lines = []
            for silence in silences:
                lines.append(f"{title} is silent on it ({silence.axiom}):")
                lines += [f"  {_conflict(edge, 'overlaps')}" for edge in silence.cycle]
            return [*lines, "  the history is neither allowed nor forbidden"]
        case Allowed():
            return [f"{title} allows it{order_words(verdict)}."]
        case Unknown(reason):
            return [f"{title}: unknown, because {reason}."]
        case _:
            return [f"{title} {verdict}."]


def order_words(verdict: Allowed) -> str:
    """Return the order that allows a history, and the orders of readers that have their own.

    >>> order_words(Allowed(("T1", "T2"), (("T1", "T3", "T2"), ("T2", "T4", "T1"))))
    ', for example in the order T1 → T2; each reader has its own order: T1 → T3 → T2; T2 → T4 → T1'
    """
    order = f", for example in the order {' → '.join(verdict.witness)}" if verdict.witness else ""
    own = "; ".join(map(" → ".join, verdict.alone))
    return f"{order}; each reader has its own order: {own}" if own else order


MOST_ORDERS = 6
"""Maximum number of serial orders that one sentence names."""


def serial_words(orders: tuple[str, ...], unexplained: tuple[int, ...]) -> str:
    """Return the serial orders that produce the final table of a run, as one sentence.

    Parameters
    ----------
    orders : tuple of str
        Serial orders of the writers that produce the final table, names separated by spaces.
    unexplained : tuple of int
        Versions of the table that no serial order produces.

    >>> serial_words(("delete insert",), ())
    'The final table equals that of the serial order delete → insert.'
    >>> serial_words((), (3,))
    'No serial order of the writers produces the table at version 3.'

    """
    if not orders and not unexplained:
        return "Serial orders were not searched: raw transactions have no rows."
    versions = f"version{'s' if len(unexplained) > 1 else ''} {' and '.join(map(str, unexplained))}"
    if not orders:
        return f"No serial order of the writers produces the table at {versions}."
    shown = " and of ".join(order_arrows(order) for order in orders[:MOST_ORDERS])
    order = (
        f"the serial order {shown}"
        if len(orders) == 1
        else (
            f"{len(orders)} serial orders, among them those of {shown}"
            if len(orders) > MOST_ORDERS
            else f"the serial orders {shown}"
        )
    )
    end = f", but none produces {versions}" if unexplained else ""
    return f"The final table equals that of {order}{end}."


def order_arrows(order: str) -> str:
    """Return names separated by spaces as an order with arrows.

    >>> order_arrows("a b"), order_arrows("")
    ('a → b', '(no writer)')
    """
    return order.replace(" ", " → ") or "(no writer)"


def view_words(explained: Explanation) -> str:
    """Return the serial explanation of a history that conflict serializability forbids.

    >>> from isolitmus.checker.execution.serial_orders import Explanation
    >>> one = Explanation("write-serializable", (("a", "b"),), reads=True, versions=True)
    >>> view_words(one)  # doctest: +NORMALIZE_WHITESPACE
    'Forbidden by its conflicts; but the serial order a → b explains every read of the writers and
    every version of the table (write-serializable-view).'
    >>> other = Explanation("serializable", (("a", "b"),))
    >>> view_words(other)  # doctest: +NORMALIZE_WHITESPACE
    'Forbidden by its conflicts; no serial order explains every read, but a → b produces the final
    table (serializable-state).'
    >>> view_words(Explanation("log-serializable", ()))
    'Forbidden by its conflicts, and the order of the log produces another table.'
    """
    e = explained
    log = e.level == "log-serializable"
    if not e.orders:
        if log:
            return "Forbidden by its conflicts, and the order of the log produces another table."
        return "Forbidden by its conflicts, and no serial order produces the final table."
    shown = " or ".join(" → ".join(order) for order in e.orders)
    table = "every version of the table" if e.versions else "the final table"
    named = "" if e.name is None else f" ({e.name})"
    if not e.reads and log:
        return (
            f"Forbidden by its conflicts; the order of the log produces {table}, but does not"
            f" explain every read{named}."
        )
    if not e.reads:
        return (
            f"Forbidden by its conflicts; no serial order explains every read, but {shown} produces"
            f" {table}{named}."
        )
    of = " of the writers" if e.level == "write-serializable" else ""
    alone = ", each reader's in one of them," if len(e.orders) > 1 else ""
    order = "order of the log" if log else "serial order"
    explains = (
        f"{order} {shown} explains" if len(e.orders) == 1 else f"serial orders {shown} explain"
    )
    return (
        f"Forbidden by its conflicts; but the {explains} every read{of}{alone} and {table}{named}."
    )


def _conflict(edge: Edge, verb: str) -> str:
    """Return a conflict as a sentence; the edge leads from the winning to the aborting commit."""
    reason = edge.why or f"that is in {edge.kind}"
    return f"{edge.target} {verb} {edge.source}, because {reason}"


def _sentence(edge: Edge, verb: str) -> str:
    reason = edge.why or f"that is in {edge.kind}"
    return f"{edge.source} {verb} {edge.target}, because {reason}"


DEMANDS = {
    "acyclic": "no cycle in",
    "irreflexive": "no transaction is related to itself by",
    "empty": "no edges in",
}


def axiom_lines(spec: Spec) -> Iterator[str]:
    """Yield a line for each axiom of a spec, then for each case on which it is silent.

    >>> from isolitmus.specs import level
    >>> print(*axiom_lines(level("pl-3")), sep="; ")
    no-aborted-read: no edges in ([Aborted] ; wr); serial-order: no cycle in ((wr | ww) | rw)
    """
    for axiom in spec.axioms:
        yield f"{axiom.name}: {DEMANDS[axiom.test]} {axiom.expr}"
    for one in spec.silences:
        yield f"{one.name}: silent on the edges of {one.expr}"


def check_lines(checked: HistoryVerdicts, *, every: bool = False) -> Iterator[str]:
    """Yield the verdicts on a history and their reasons.

    With `every`: the strongest levels that hold, the weakest that fail, and why those fail.

    >>> from isolitmus.checker import check
    >>> from isolitmus.model import History
    >>> from isolitmus.specs import level
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)")
    >>> names = "causal", "snapshot-isolation", "serializable"
    >>> checked = check(skew, [level(name) for name in names])
    >>> for line in check_lines(checked, every=True): print(line)
    Strongest level that holds: snapshot-isolation; causal holds, too.
    Weakest level that fails: serializable (write skew (G2-item)).
    Serializable forbids it (serial-order):
      T1 before T2, because T1 read y0 and T2 wrote the next version y2
      T2 before T1, because T2 read x0 and T1 wrote the next version x1
      cycle T1 → T2 → T1: no serial order satisfies these dependencies
    """
    shown = list(checked.levels)
    if every:
        yield from _standing(checked)
        undecided = [name for name, v in checked.levels.items() if isinstance(v, (Unknown, Silent))]
        shown = [*checked.standing.weakest, *undecided]
    for name in shown:
        yield from titled_words(
            checked.levels[name], checked.titles[name], checked.explained.get(name)
        )
    if checked.assumptions:
        yield "Assumptions, because the history does not say:"
        yield from (f"- {one}" for one in checked.assumptions)


def _standing(checked: HistoryVerdicts) -> Iterator[str]:
    """Yield sentences on the strongest levels that hold and the weakest ones that fail."""
    verdicts = {name: str(verdict) for name, verdict in checked.levels.items()}
    standing = checked.standing
    for word, verdict, extreme, all_of in (
        ("Strongest", "allowed", standing.strongest, "hold"),
        ("Weakest", "forbidden", standing.weakest, "fail"),
    ):
        others = [
            name for name, said in verdicts.items() if said == verdict and name not in extreme
        ]
        if not extreme:
            yield f"None of the levels asked {all_of}s."
            continue
        named = _listed([name + _called(checked, name) for name in extreme])
        plural = "s" if len(extreme) > 1 else ""
        verb = all_of if len(extreme) > 1 else f"{all_of}s"
        too = f"{all_of}s" if len(others) == 1 else all_of
        also = f"; {_listed(others)} {too}, too" if others else ""
        yield f"{word} level{plural} that {verb}: {named}{also}."


def _called(checked: HistoryVerdicts, name: str) -> str:
    """Return the names of the anomalies in a history that a level forbids."""
    found = anomaly_names(checked.levels[name])
    return f" ({' or '.join(found)})" if found else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
