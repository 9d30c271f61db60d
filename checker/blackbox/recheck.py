"""Whether the steps of a cycle hold: each looked up in the history anew, by the definitions and nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.model.blackbox_history import ABORTED, INITIAL
from isolitmus.model.list_history import ListHistory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.blackbox.precedence import Precedence
    from isolitmus.model.blackbox_history import RegisterHistory

__all__ = ["confirmed"]

BEFORE_A_MISS = {
    "serializable": {"so", "wr", "ww", "rw"},
    "snapshot-isolation": {"so", "wr", "ww"},
    "prefix-consistency": {"so", "wr"},
    "strict-serializable": {"so", "wr", "ww", "rw", "rt"},
    "strong-snapshot-isolation": {"so", "wr", "ww", "rt"},
}
"""After which steps an anti-dependency may follow on a forbidden cycle."""
STEPS = {
    "read-committed": {"wr", "ww"},
    "read-committed-biswas-enea": {"so", "wr", "co"},
    "read-atomic": {"so", "wr", "co"},
    "causal": {"so", "wr", "co"},
    **{level: {"so", "wr", "ww", "rw"} | kinds for level, kinds in BEFORE_A_MISS.items()},
}
"""Of which steps a forbidden cycle may be."""


def confirmed(
    history: RegisterHistory | ListHistory,
    level: str,
    cycle: Sequence[Precedence],
    given: Mapping[int, int] | None = None,
) -> bool:
    """Whether the steps follow each other round a circle that the level forbids, and each one holds. Of reads whose
    value several wrote, ``given`` says who is supposed to have been the one.
    """
    return _Confirming(history, level, given or {}).circle(cycle)


class _Confirming:
    def __init__(
        self, history: RegisterHistory | ListHistory, level: str, given: Mapping[int, int]
    ) -> None:
        self.lists = history if isinstance(history, ListHistory) else None
        self.history = history.registers
        self.level, self.given = level, given
        history = self.history
        self.initial = len(history.session)
        self.owners = [-1] * len(history.key)
        for number in range(self.initial):
            for one in self.of(number):
                self.owners[one] = number
        self.held: dict[int, bool] = {}

    def of(self, number: int) -> range:
        """The operations of a transaction."""
        return range(int(self.history.first[number]), int(self.history.first[number + 1]))

    def circle(self, cycle: Sequence[Precedence], supposed: int = 0) -> bool:
        """The first so many steps are supposed."""
        return (
            len(cycle) > 0
            and self.links(cycle)
            and all(self.holds(step) for step in cycle[supposed:])
        )

    def links(self, cycle: Sequence[Precedence]) -> bool:
        """Whether each step begins where the one before ends, and the kinds are those that the level looks at."""
        before = BEFORE_A_MISS.get(self.level, set())
        return all(
            earlier.target == later.source
            and later.kind in STEPS[self.level]
            and (later.kind != "rw" or earlier.kind in before)
            for earlier, later in zip((cycle[-1], *cycle[:-1]), cycle, strict=True)
        )

    def holds(self, step: Precedence) -> bool:
        """Whether a step is as it says; each is looked at once."""
        if id(step) not in self.held:
            self.held[id(step)] = self._holds(step)
        return self.held[id(step)]

    def _holds(self, step: Precedence) -> bool:
        if not self.there(step.source) or not self.there(step.target):
            return False
        match step.kind:
            case "so":
                session = self.history.session
                return step.source == self.initial or (
                    step.target != self.initial
                    and session[step.source] == session[step.target]
                    and step.source < step.target
                )
            case "rt":
                return self.had_ended(step.source, step.target)
            case "wr":
                return self.reads(step.target, step.read, step.source)
            case "co":
                return self.by_axiom(step)
            case "rw":
                return self.misses(step)
        return self.ordered(step)

    def there(self, number: int) -> bool:
        return number == self.initial or bool(self.history.status[number] != ABORTED)

    def had_ended(self, first: int, second: int) -> bool:
        """Whether a transaction had ended when another began."""
        started, ended = self.history.started, self.history.ended
        return (
            self.initial not in (first, second)
            and started is not None
            and ended is not None
            and bool(ended[first] < started[second])
        )

    def left(self, number: int, key: int) -> int | None:
        """What a transaction left of a key."""
        if number == self.initial:
            return INITIAL
        history = self.history
        for one in reversed(self.of(number)):
            if history.is_write[one] and history.key[one] == key:
                return int(history.value[one])
        return None

    def reads(self, reader: int, read: int | None, writer: int) -> bool:
        """Whether a transaction's read is of what another one left, and not of its own."""
        if read is None or reader == writer or self.owners[read] != reader:
            return False
        history, key = self.history, int(self.history.key[read])
        own = any(
            history.is_write[one] and history.key[one] == key
            for one in self.of(reader)
            if one < read
        )
        return (
            not own
            and not bool(history.is_write[read])
            and self.left(writer, key) == int(history.value[read])
            and (self.alone(reader, read, writer) or self.given.get(read) == writer)
        )

    def alone(self, reader: int, read: int, writer: int) -> bool:
        """Whether nobody else may have left what a transaction read."""
        history, key, value = (
            self.history,
            int(self.history.key[read]),
            int(self.history.value[read]),
        )
        same = history.is_write & (history.key == key) & (history.value == value)
        others = {self.owners[one] for one in np.flatnonzero(same).tolist()} - {reader, writer}
        return not any(
            self.there(other) and self.left(other, key) == value for other in others
        ) and (value != INITIAL or writer == self.initial)

    def by_axiom(self, step: Precedence) -> bool:
        if step.read is None or not step.because:
            return False
        reader, key = self.owners[step.read], int(self.history.key[step.read])
        path = step.because
        linked = all(a.target == b.source for a, b in pairwise(path))
        kinds = {one.kind for one in path}
        if self.level == "read-committed-biswas-enea":
            first = path[0].read
            visible = kinds == {"wr"} and len(path) == 1 and first is not None and first < step.read
        elif self.level == "read-atomic":
            visible = kinds == {"so"} or (kinds == {"wr"} and len(path) == 1)
        else:
            visible = kinds <= {"so", "wr"}
        return (
            visible
            and linked
            and path[0].source == step.source != step.target
            and path[-1].target == reader
            and all(self.holds(one) for one in path)
            and self.left(step.source, key) is not None
            and self.reads(reader, step.read, step.target)
        )

    def misses(self, step: Precedence) -> bool:
        """A read of a version that comes before what the target wrote, which is somebody else."""
        if step.read is None or len(step.because) != 1 or step.source == step.target:
            return False
        (order,) = step.because
        return (
            order.kind == "ww"
            and order.target == step.target
            and self.reads(step.source, step.read, order.source)
            and self.left(step.target, int(self.history.key[step.read])) is not None
            and self.holds(order)
        )

    def ordered(self, step: Precedence) -> bool:
        """Two versions of a key of which the other order would close a cycle, by its first step; or a list shows it."""
        if step.source == step.target:
            return False
        if step.read is not None:
            return self.shown(step.source, step.target, step.read)
        if not step.because:
            return False
        other = step.because[0]
        opposite = other.kind == "ww" and (other.source, other.target) == (step.target, step.source)
        if other.kind == "rw" and other.read is not None and other.target == step.source:
            key = int(self.history.key[other.read])
            opposite = (
                other.source != other.target
                and self.reads(other.source, other.read, step.target)
                and self.left(step.source, key) is not None
            )
        return opposite and self.circle(step.because, supposed=1)

    def shown(self, source: int, target: int, read: int) -> bool:
        """Whether a list has what the one appended, and before that nothing of what the other appended."""
        if self.lists is None or not self.there(self.owners[read]):
            return False
        history, key = self.history, self.history.key[read]
        appended = {
            int(history.value[one]): self.owners[one]
            for one in range(len(history.key))
            if history.is_write[one] and history.key[one] == key and self.there(self.owners[one])
        }
        writers = [appended.get(element) for element in self.lists.list_of(read).tolist()]
        return (
            not bool(history.is_write[read])
            and source in writers
            and target in appended.values()
            and target not in writers[: len(writers) - writers[::-1].index(source)]
        )
