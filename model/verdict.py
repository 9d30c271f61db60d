"""Verdict of a spec on a frame: allowed, forbidden, silent, unknown, or not applicable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from isolitmus.model.display import ReadableRepr, first_lines

if TYPE_CHECKING:
    from isolitmus.model.reason import Edge, Reason


@dataclass(frozen=True, slots=True)
class Violation(ReadableRepr):
    """Violated axiom, with the shortest cycle (or chain, if the axiom is ``empty``) that violates
    it.

    With kind ``silent``, it is a silence and the chain that is left unspecified; with kind
    ``form``, a form of a level that no order has. ``supposing`` lists unobserved facts that this
    violation assumes.
    """

    axiom: str
    kind: str
    cycle: tuple[Edge, ...]
    supposing: tuple[Reason, ...] = ()

    def lines(self) -> list[str]:
        """Return the axiom, the assumptions, and the edges with their reasons as lines."""
        if self.kind == "silent":
            return [f"{self.axiom} is left unsaid:", *(f"  {edge}" for edge in self.cycle)]
        given = f", if {' and '.join(map(str, self.supposing))}" if self.supposing else ""
        colon = ":" if self.cycle else ""
        return [f"not {self.axiom}{given}{colon}", *(f"  {edge}" for edge in self.cycle)]

    def to_json(self) -> dict[str, object]:
        """Return the violation as a JSON object (docs/interface.md, 6)."""
        return {
            "axiom": self.axiom,
            "supposing": [str(one) for one in self.supposing],
            "cycle": [
                {"from": e.source, "to": e.target, "kind": e.kind, "why": e.why} for e in self.cycle
            ],
        }

    def __repr__(self) -> str:
        return first_lines(self.lines())


@dataclass(frozen=True, slots=True)
class Allowed(ReadableRepr):
    """Verdict that every axiom holds.

    The witness is an order of the nodes that the acyclic axioms constrain, and respects these
    axioms. A node may be constrained by axioms of its own only (a reader at update-serializable);
    ``alone`` then contains an order for it, which may differ from that of other nodes.
    """

    witness: tuple[str, ...] = ()
    alone: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "allowed"

    def __repr__(self) -> str:
        orders = [" ".join(order) for order in (self.witness, *self.alone) if order]
        return f"{self}, in the order {'; '.join(orders)}" if orders else str(self)


@dataclass(frozen=True, slots=True)
class Forbidden(ReadableRepr):
    """Verdict that at least one axiom is violated; violations are in the order of the spec's text.

    If a history leaves something open, there is one violation for each possibility. ``others``
    counts further forbidden possibilities that are not shown; None if they were not counted.
    """

    violations: tuple[Violation, ...]
    others: int | None = 0

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "forbidden"

    def __repr__(self) -> str:
        return first_lines(
            [str(self), *(f"  {line}" for v in self.violations for line in v.lines())]
        )


@dataclass(frozen=True, slots=True)
class Silent(ReadableRepr):
    """Verdict that every axiom holds, but the source leaves some transactions unspecified.

    It is neither allowed nor forbidden. There is one entry for each silence of the text.
    """

    silences: tuple[Violation, ...]

    def __bool__(self) -> Never:
        raise TypeError(f"what is silent ({self.silences[0].axiom}) is neither true nor false")

    def __str__(self) -> str:
        return "silent"

    def __repr__(self) -> str:
        return first_lines([str(self), *(f"  {line}" for v in self.silences for line in v.lines())])


@dataclass(frozen=True, slots=True)
class Unknown:
    """Verdict without an answer: a limit was reached, or the observations do not determine the
    frame.
    """

    reason: str

    def __bool__(self) -> Never:
        raise TypeError(f"an unknown verdict is neither true nor false: {self.reason}")

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Needs:
    """Verdict that the spec uses names that the frame does not have."""

    names: tuple[str, ...]

    def __bool__(self) -> Never:
        raise TypeError(f"{self} is not a verdict")

    def __str__(self) -> str:
        return f"needs {', '.join(self.names)}"


Verdict = Allowed | Forbidden | Silent | Unknown | Needs
