"""What a spec says of a frame: allowed, forbidden, nothing, unknown, or not a question for this
frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from isolitmus.model.display import ReadableRepr, first_lines

if TYPE_CHECKING:
    from isolitmus.model.reason import Edge, Reason

__all__ = ["Allowed", "Forbidden", "Needs", "Silent", "Unknown", "Verdict", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation(ReadableRepr):
    """A broken axiom and the shortest cycle (or chain, where the axiom is ``empty``) that breaks
    it; or, of kind ``silent``, a silence and the chain that is left unsaid; of kind ``form``, a
    form of a level that no order has.

    ``supposing`` is what nobody observed and this violation takes to be so.
    """

    axiom: str
    kind: str
    cycle: tuple[Edge, ...]
    supposing: tuple[Reason, ...] = ()

    def lines(self) -> list[str]:
        """The axiom, what is supposed, and the edges with their reasons."""
        if self.kind == "silent":
            return [f"{self.axiom} is left unsaid:", *(f"  {edge}" for edge in self.cycle)]
        given = f", if {' and '.join(map(str, self.supposing))}" if self.supposing else ""
        colon = ":" if self.cycle else ""
        return [f"not {self.axiom}{given}{colon}", *(f"  {edge}" for edge in self.cycle)]

    def to_json(self) -> dict[str, object]:
        """The violation as docs/interface.md, 6, has it."""
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
    """Every axiom holds; the witness is an order of the nodes that the acyclic axioms are about,
    and respects these. ``alone`` has a node that they are not about, but other axioms one by one (a
    reader at update-serializable), in an order of those that suits it: each may have another.
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
    """At least one axiom is broken; violations in the order of the spec's text.

    Of a history that leaves something open there is one violation for each way in which it may have
    been, and ``others`` counts the ways that are forbidden, too, and not shown; None: they were not
    counted.
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
    """Every axiom holds, and of some transactions the source says nothing: neither allowed nor
    forbidden.

    One of them for each silence of the text.
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
    """No answer: a limit ended the work, or what was observed does not determine the frame."""

    reason: str

    def __bool__(self) -> Never:
        raise TypeError(f"an unknown verdict is neither true nor false: {self.reason}")

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Needs:
    """The spec uses names that the frame does not have."""

    names: tuple[str, ...]

    def __bool__(self) -> Never:
        raise TypeError(f"{self} is not a verdict")

    def __str__(self) -> str:
        return f"needs {', '.join(self.names)}"


Verdict = Allowed | Forbidden | Silent | Unknown | Needs
