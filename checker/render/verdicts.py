"""Verdicts, axioms and checks in words.

Verdicts in words: a violation is a chain of "because" that ends with what is impossible.

What a spec demands, an axiom a line, in words.

What ``check`` says of one history: each level that was asked, or where it stands among all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.serial_orders import NAMED_FORMS
from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.model.verdict import Allowed, Forbidden, Silent, Unknown
from isolitmus.specs.files.catalogue import spec as named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks.history_check import HistoryVerdicts
    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.reason import Edge
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict, Violation
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = [
    "assumption_words",
    "axiom_lines",
    "because",
    "check_lines",
    "other_ways",
    "refusal_words",
    "serial_words",
    "titled_words",
    "verdict_words",
    "view_words",
]


def because(violation: Violation) -> list[str]:
    """The violation as sentences without their full stops, one for each edge, and the conclusion.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> edges = (Edge("a", "b", "log", "it is earlier in the log"), Edge("b", "a", "rw", "b missed it"))
    >>> for line in because(Violation("log-order", "acyclic", edges)): print(line)
    a before b, because it is earlier in the log
    b before a, because b missed it
    so a would have to come before itself: no order has that
    >>> dirty = (Edge("a", "b", "wr", "b read what a wrote; a aborted"),)
    >>> for line in because(Violation("no-aborted-read", "empty", dirty)): print(line)
    a leads to b, because b read what a wrote; a aborted
    so a and b cannot both be there: no-aborted-read refuses that
    """
    edges = violation.cycle
    if violation.kind == "form":
        return [f"it is not so that {NAMED_FORMS[violation.axiom].asks}"]
    if not edges:
        return [f"so {violation.axiom} is broken"]
    if violation.kind == "flaw":
        return [*(edge.why for edge in edges), "so no order of the transactions explains it"]
    if violation.kind == "empty":
        ends = " and ".join(dict.fromkeys((edges[0].source, edges[-1].target)))
        both = " both" if edges[0].source != edges[-1].target else ""
        return [
            *(_sentence(edge, "leads to") for edge in edges),
            f"so {ends} cannot{both} be there: {violation.axiom} refuses that",
        ]
    first = edges[0].source
    conclusion = f"so {first} would have to come before itself: no order has that"
    return [*(_sentence(edge, "before") for edge in edges), conclusion]


def assumption_words(violation: Violation) -> str:
    """What a violation supposes, after a comma or a verb; nothing if it supposes nothing."""
    return f" if {' and '.join(map(str, violation.supposing))}" if violation.supposing else ""


def other_ways(verdict: Forbidden) -> list[str]:
    """That what is not shown is forbidden, too; no line if everything is shown."""
    if verdict.others == 0:
        return []
    many = "every other way" if verdict.others is None else f"all {verdict.others} other ways"
    ways = "the other way" if verdict.others == 1 else many
    return [f"In {ways} in which it may have been it is forbidden, too."]


def refusal_words(violation: Violation) -> list[str]:
    """Why a transaction could not commit, or why nobody says whether it could, from the violation that its commit
    would have been.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> edges = (Edge("a", "b", "unseen", "b read version 0, before a became version 1"),)
    >>> for line in refusal_words(Violation("Conflict", "empty", edges)): print(line)
    a stops b, because b read version 0, before a became version 1
    so b cannot commit: Conflict
    >>> for line in refusal_words(Violation("restore", "silent", edges)): print(line)
    a stands beside b, because b read version 0, before a became version 1
    so what becomes of b is not said (restore), and the run ends
    """
    edges = violation.cycle
    if violation.kind == "silent":
        return [
            *(_sentence(edge, "stands beside") for edge in edges),
            f"so what becomes of {edges[-1].target} is not said ({violation.axiom}), and the run ends",
        ]
    return [
        *(_sentence(edge, "stops") for edge in edges),
        f"so {edges[-1].target} cannot commit: {violation.axiom}",
    ]


def verdict_words(
    verdict: Verdict, spec: SpecLike, explained: Explanation | None = None
) -> list[str]:
    """What a spec says, and why, in lines for a person; ``explained`` is what a serial order explains of
    what it forbids.
    """
    return titled_words(verdict, named(spec).title, explained)


def titled_words(verdict: Verdict, title: str, explained: Explanation | None = None) -> list[str]:
    """The same of what has a title.

    >>> titled_words(Allowed(("T2", "T1")), "Serializable")
    ['Serializable allows it, for example in the order T2 T1.']
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
                lines += [f"  {_sentence(edge, 'stands beside')}" for edge in silence.cycle]
            return [*lines, "  so it is neither allowed nor forbidden"]
        case Allowed():
            return [f"{title} allows it{order_words(verdict)}."]
        case Unknown(reason):
            return [f"{title}: unknown, because {reason}."]
        case _:
            return [f"{title} {verdict}."]


def order_words(verdict: Allowed) -> str:
    """The order that allows it, and that of each who has one alone.

    >>> order_words(Allowed(("T1", "T2"), (("T1", "T3", "T2"), ("T2", "T4", "T1"))))
    ', for example in the order T1 T2, and for each of the others in one of its own: T1 T3 T2; T2 T4 T1'
    """
    order = f", for example in the order {' '.join(verdict.witness)}" if verdict.witness else ""
    own = "; ".join(map(" ".join, verdict.alone))
    return f"{order}, and for each of the others in one of its own: {own}" if own else order


MOST_ORDERS = 6
"""So many serial orders are said in one sentence."""


def serial_words(orders: tuple[str, ...], unexplained: tuple[int, ...]) -> str:
    """The serial explanation of a run in one sentence.

    >>> serial_words(("delete insert",), ())
    'One serial order of the writers gives the table: delete insert.'
    >>> serial_words((), (3,))
    'No serial order of the writers gives the table: at version 3 none does.'
    """
    if not orders and not unexplained:
        return "Raw transactions have no rows: no serial order was looked for."
    versions = " and ".join(map(str, unexplained))
    if not orders:
        return f"No serial order of the writers gives the table: at version {versions} none does."
    count = "One serial order" if len(orders) == 1 else f"{len(orders)} serial orders"
    verb = "gives" if len(orders) == 1 else "give"
    shown = ", ".join(order or "(no writer)" for order in orders[:MOST_ORDERS])
    verb += " the table, among them" if len(orders) > MOST_ORDERS else " the table"
    end = f", but at version {versions} none does" if unexplained else ""
    return f"{count} of the writers {verb}: {shown}{end}."


def view_words(explained: Explanation) -> str:
    """Beside a verdict by conflicts, what a serial order explains of the history, in one sentence.

    >>> from isolitmus.checker.execution.serial_orders import Explanation
    >>> view_words(Explanation("write-serializable", (("a", "b"),), reads=True, versions=True))
    'Forbidden for its conflicts; the serial order a b explains every read of the writers and every \
version of the table (write-serializable-view).'
    >>> view_words(Explanation("serializable", (("a", "b"),)))
    'Forbidden for its conflicts; no serial order explains every read, a b gives the last table \
(serializable-state).'
    >>> view_words(Explanation("log-serializable", ()))
    'Forbidden for its conflicts, and the order of the log gives another table.'
    """
    e = explained
    log = e.level == "log-serializable"
    if not e.orders:
        none = "the order of the log gives another" if log else "no serial order gives the last"
        return f"Forbidden for its conflicts, and {none} table."
    shown = " or ".join(" ".join(order) for order in e.orders)
    table = "every version of the table" if e.versions else "the last table"
    named = "" if e.name is None else f" ({e.name})"
    if not e.reads and log:
        return (
            f"Forbidden for its conflicts; the order of the log gives {table}, and does not explain"
            f" every read{named}."
        )
    if not e.reads:
        return (
            f"Forbidden for its conflicts; no serial order explains every read, {shown} gives"
            f" {table}{named}."
        )
    of = " of the writers" if e.level == "write-serializable" else ""
    alone = ", each reader's in one of them," if len(e.orders) > 1 else ""
    order = "order of the log" if log else "serial order"
    explains = (
        f"{order} {shown} explains" if len(e.orders) == 1 else f"serial orders {shown} explain"
    )
    return f"Forbidden for its conflicts; the {explains} every read{of}{alone} and {table}{named}."


def _sentence(edge: Edge, verb: str) -> str:
    reason = edge.why or f"that is in {edge.kind}"
    return f"{edge.source} {verb} {edge.target}, because {reason}"


DEMANDS = {
    "acyclic": "no cycle in",
    "irreflexive": "nothing related to itself by",
    "empty": "nothing related by",
}


def axiom_lines(spec: Spec) -> Iterator[str]:
    """Each axiom, then each silence.

    >>> from isolitmus.specs import level
    >>> print(*axiom_lines(level("pl-3")), sep="; ")
    no-aborted-read: nothing related by ([Aborted] ; wr); serial-order: no cycle in ((wr | ww) | rw)
    """
    for axiom in spec.axioms:
        yield f"{axiom.name}: {DEMANDS[axiom.test]} {axiom.expr}"
    for one in spec.silences:
        yield f"{one.name}: nothing is said of what is related by {one.expr}"


def check_lines(checked: HistoryVerdicts, *, every: bool = False) -> Iterator[str]:
    """The verdicts and why; ``every``: the strongest levels that hold, the weakest that fail, and why these do.

    >>> from isolitmus.checker import check
    >>> from isolitmus.model import History
    >>> from isolitmus.specs import level
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)")
    >>> names = "causal", "snapshot-isolation", "serializable"
    >>> for line in check_lines(check(skew, [level(name) for name in names]), every=True): print(line)
    The strongest level that holds is snapshot-isolation; so does causal.
    The weakest level that fails is serializable (write skew (G2-item)).
    Serializable forbids it (serial-order):
      T1 before T2, because T1 read y0 and T2 wrote the next version y2
      T2 before T1, because T2 read x0 and T1 wrote the next version x1
      so T1 would have to come before itself: no order has that
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
        yield f"Assumed, because the history does not say: {'; '.join(checked.assumptions)}."


def _standing(checked: HistoryVerdicts) -> Iterator[str]:
    verdicts = {name: str(verdict) for name, verdict in checked.levels.items()}
    standing = checked.standing
    for word, verdict, extreme, all_of in (
        ("strongest", "allowed", standing.strongest, "hold"),
        ("weakest", "forbidden", standing.weakest, "fail"),
    ):
        others = [
            name for name, said in verdicts.items() if said == verdict and name not in extreme
        ]
        if not extreme:
            yield f"No level {all_of}s that was asked."
            continue
        named = _listed([name + _called(checked, name) for name in extreme])
        one = len(extreme) == 1
        so = f"; so {'does' if len(others) == 1 else 'do'} {_listed(others)}" if others else ""
        yield (
            f"The {word} level that {all_of}s is {named}{so}."
            if one
            else f"The {word} levels that {all_of} are {named}{so}."
        )


def _called(checked: HistoryVerdicts, name: str) -> str:
    """The anomalies that a level forbids: one of them in any case."""
    found = anomaly_names(checked.levels[name])
    return f" ({' or '.join(found)})" if found else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
