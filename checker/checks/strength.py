"""Which levels are stronger than others, and what that makes of several verdicts on one history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["IMPLIES", "LISTED", "UNOBSERVED", "Standing", "below", "standing_among"]

IMPLIES: Mapping[str, tuple[str, ...]] = {
    "log-serializable": ("serializable",),
    "serializable": ("snapshot-isolation", "update-serializable"),
    "update-serializable": ("write-serializable", "read-committed"),
    "snapshot-isolation": ("prefix-consistency",),
    "prefix-consistency": ("causal", "read-committed"),
    "causal": ("read-atomic",),
}
"""Of a level those next to it that hold wherever it holds, by their texts (specs/levels): each asks for no cycle of less."""
LISTED: Mapping[str, tuple[str, ...]] = {
    **IMPLIES,
    "strict-serializable": ("serializable", "strong-snapshot-isolation"),
    "strong-snapshot-isolation": ("snapshot-isolation",),
    "read-atomic": ("read-committed-biswas-enea",),
}
"""The same of histories of items alone, of which nobody read what its writer overwrote: Biswas and Enea, OOPSLA 2019."""
UNOBSERVED: Mapping[str, tuple[str, ...]] = {
    **LISTED,
    "read-committed-biswas-enea": ("read-committed",),
}
"""The same where besides nobody observed an order of versions: Adya's read committed then looks at reads alone. Where one was
observed those of Biswas and Enea do not look at it, and his does.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a history stands among levels."""

    strongest: tuple[str, ...]
    """The levels that hold of which no stronger one is known to hold."""
    weakest: tuple[str, ...]
    """The levels that fail of which no weaker one is known to fail."""


def standing_among(verdicts: Mapping[str, str], implies: Mapping[str, tuple[str, ...]]) -> Standing:
    """The strongest that hold and the weakest that fail; a verdict that is neither is of neither.

    >>> said = {"causal": "allowed", "serializable": "forbidden", "snapshot-isolation": "forbidden"}
    >>> standing_among(said, IMPLIES)
    Standing(strongest=('causal',), weakest=('snapshot-isolation',))
    """
    weaker = {name: below(name, implies) for name in verdicts}
    holds = [name for name, verdict in verdicts.items() if verdict == "allowed"]
    fails = [name for name, verdict in verdicts.items() if verdict == "forbidden"]
    wrong = [(name, weak) for name in holds for weak in fails if weak in weaker[name]]
    assert not wrong, f"{wrong[0][0]} holds, and {wrong[0][1]} does not, which it implies"
    return Standing(
        tuple(name for name in holds if not any(name in weaker[other] for other in holds)),
        tuple(name for name in fails if not weaker[name] & {*fails}),
    )


def below(name: str, implies: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The levels that hold wherever one does.

    >>> sorted(below("prefix-consistency", IMPLIES))
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
