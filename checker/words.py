"""Verdicts in words: a violation is a chain of "because" that ends with what is impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.verdict import Allowed, Forbidden

if TYPE_CHECKING:
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict, Violation

__all__ = ["because", "explain", "serial_words"]


def because(violation: Violation) -> list[str]:
    """The violation as sentences without their full stops, one for each edge, and the conclusion.

    >>> from isolitmus.model.frame import Edge
    >>> from isolitmus.model.verdict import Violation
    >>> edges = (Edge("a", "b", "log", "it is earlier in the log"), Edge("b", "a", "rw", "b missed it"))
    >>> for line in because(Violation("log-order", "acyclic", edges)): print(line)
    a before b, because it is earlier in the log
    b before a, because b missed it
    so a would have to come before itself: no order has that
    """
    edges = violation.cycle
    if violation.kind == "empty":
        return [f"{violation.axiom}, because {'; and '.join(edge.why for edge in edges)}"]
    lines = [f"{e.source} before {e.target}, because {e.why}" for e in edges]
    first = edges[0].source
    return [*lines, f"so {first} would have to come before itself: no order has that"]


def explain(verdict: Verdict, spec: Spec) -> list[str]:
    """What a spec says, and why, in lines for a person."""
    match verdict:
        case Forbidden(violations):
            lines = []
            for violation in violations:
                lines.append(f"{spec.title} forbids it ({violation.axiom}):")
                lines += [f"  {line}" for line in because(violation)]
            return lines
        case Allowed(witness):
            order = f", for example in the order {' '.join(witness)}" if witness else ""
            return [f"{spec.title} allows it{order}."]
        case _:
            return [f"{spec.title}: {verdict}."]


def serial_words(orders: tuple[str, ...], unexplained: tuple[int, ...]) -> str:
    """The serial explanation of a run in one sentence.

    >>> serial_words(("delete insert",), ())
    'One serial order of the writers gives the table: delete insert.'
    >>> serial_words((), (3,))
    'No serial order of the writers gives the table: at version 3 none does.'
    """
    versions = " and ".join(map(str, unexplained))
    if not orders:
        return f"No serial order of the writers gives the table: at version {versions} none does."
    count = "One serial order" if len(orders) == 1 else f"{len(orders)} serial orders"
    verb = "gives" if len(orders) == 1 else "give"
    shown = ", ".join(order or "(no writer)" for order in orders)
    end = f", but at version {versions} none does" if unexplained else ""
    return f"{count} of the writers {verb} the table: {shown}{end}."
