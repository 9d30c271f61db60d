"""What a spec says of a frame: allowed, forbidden, unknown, or not a question for this frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

if TYPE_CHECKING:
    from isolitmus.model.frame import Edge

__all__ = ["Allowed", "Forbidden", "Needs", "Unknown", "Verdict", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken axiom and the shortest cycle (or chain, where the axiom is ``empty``) that breaks it.

    ``supposing`` is what nobody observed and this violation takes to be so, a clause each.
    """

    axiom: str
    kind: str
    cycle: tuple[Edge, ...]
    supposing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allowed:
    """Every axiom holds; the witness is an order of the nodes that respects the acyclic axioms."""

    witness: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "allowed"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """At least one axiom is broken; violations in the order of the spec's text.

    Of a history that leaves something open there is one violation for each way in which it may have
    been, and ``others`` counts the ways that are forbidden, too, and not shown.
    """

    violations: tuple[Violation, ...]
    others: int = 0

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "forbidden"


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


Verdict = Allowed | Forbidden | Unknown | Needs
