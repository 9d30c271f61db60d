"""Verdicts in words: a violation is a chain of "because" that ends with what is impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.verdict import Allowed, Forbidden, Unknown

if TYPE_CHECKING:
    from isolitmus.model.frame import Edge
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict, Violation

__all__ = ["because", "explain", "given", "member", "other_ways", "refusal", "serial_words"]

MEMBERS = {
    "Aborted": ("{} aborted", "{} did not abort"),
    "Backfill": ("{} is a backfill of row tracking", "{} is no backfill of row tracking"),
    "Blind": ("{} is a blind append", "{} is no blind append"),
    "ChangesData": (
        "{} is of a kind that changes data",
        "{} is not of a kind that changes data",
    ),
    "Default": (
        "{}'s table says no isolation level",
        "{}'s table has its isolation level",
    ),
    "Empty": ("{} has nothing to record", "{} has something to record"),
    "Large": ("{} tries the next version only", "{} tries further versions"),
    "Marked": ("{} has an action that is about no file", "{} has actions on files only"),
    "Meta": ("{} writes the metadata", "{} does not write the metadata"),
    "NoData": ("{} changes no data", "{} changes data"),
    "Ordering": ("{} orders the rows", "{} does not order the rows"),
    "Partitioned": ("{}'s table has partitions", "{}'s table has no partitions"),
    "Protocol": ("{} writes the protocol", "{} does not write the protocol"),
    "Reader": ("{} only reads", "{} does not only read"),
    "Vectors": ("{}'s table has deletion vectors", "{}'s table has no deletion vectors"),
    "Writer": ("{} writes", "{} does not write"),
}
"""What it means to be in a set, and not to be in it."""


def because(violation: Violation) -> list[str]:
    """The violation as sentences without their full stops, one for each edge, and the conclusion.

    >>> from isolitmus.model.frame import Edge
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
    if not edges:
        return [f"so {violation.axiom} is broken"]
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


def given(violation: Violation) -> str:
    """What a violation supposes, after a comma or a verb; nothing if it supposes nothing."""
    return f" if {' and '.join(violation.supposing)}" if violation.supposing else ""


def other_ways(verdict: Forbidden) -> list[str]:
    """That what is not shown is forbidden, too; no line if everything is shown."""
    if not verdict.others:
        return []
    ways = "the other way" if verdict.others == 1 else f"all {verdict.others} other ways"
    return [f"In {ways} in which it may have been it is forbidden, too."]


def refusal(violation: Violation) -> list[str]:
    """Why a transaction could not commit, from the violation that its commit would have been.

    >>> from isolitmus.model.frame import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> edges = (Edge("a", "b", "unseen", "b read version 0, before a became version 1"),)
    >>> for line in refusal(Violation("Conflict", "empty", edges)): print(line)
    a stops b, because b read version 0, before a became version 1
    so b cannot commit: Conflict
    """
    edges = violation.cycle
    return [
        *(_sentence(edge, "stops") for edge in edges),
        f"so {edges[-1].target} cannot commit: {violation.axiom}",
    ]


def member(node: str, name: str, *, inside: bool) -> str:
    """That a transaction is in a base set, or is not, in words.

    >>> member("a", "Blind", inside=True), member("a", "Blind", inside=False)
    ('a is a blind append', 'a is no blind append')
    """
    return MEMBERS[name][not inside].format(node)


def explain(verdict: Verdict, spec: Spec) -> list[str]:
    """What a spec says, and why, in lines for a person."""
    match verdict:
        case Forbidden(violations):
            lines = []
            for violation in violations:
                lines.append(f"{spec.title} forbids it{given(violation)} ({violation.axiom}):")
                lines += [f"  {line}" for line in because(violation)]
            return lines + other_ways(verdict)
        case Allowed(witness):
            order = f", for example in the order {' '.join(witness)}" if witness else ""
            return [f"{spec.title} allows it{order}."]
        case Unknown(reason):
            return [f"{spec.title}: unknown, because {reason}."]
        case _:
            return [f"{spec.title} {verdict}."]


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


def _sentence(edge: Edge, verb: str) -> str:
    reason = edge.why or f"that is in {edge.kind}"
    return f"{edge.source} {verb} {edge.target}, because {reason}"
