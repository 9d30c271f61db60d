"""A forbidden part of a history of which nothing can be left out: what an explanation is about.

What a level forbids of a part it forbids of the whole, if a read goes with any write of its key and value: an order that
explains the whole explains the part, when the rest is taken out of it. So parts are tried by the judge itself
(Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, TSE 2002): first without transactions, then
without operations.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.judgement import judge_recorded
from isolitmus.model.display import Readable
from isolitmus.model.errors import Limit
from isolitmus.model.list_history import ListHistory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.judgement import JudgedRecord
    from isolitmus.checker.blackbox.precedence import Precedence
    from isolitmus.model.blackbox_history import RegisterHistory
    from isolitmus.model.budget import Budget

__all__ = ["Core", "part_of", "shrunk"]


@dataclass(frozen=True, slots=True)
class Core(Readable):
    """Some operations of a history as a history, whose transactions keep their names."""

    history: RegisterHistory
    """The part, with transactions that have an operation."""
    numbers: tuple[int, ...]
    """Of each transaction its number in the whole, from 1."""
    lists: ListHistory | None = None
    """Where whole lists are looked at, these of the part."""

    @property
    def judged(self) -> RegisterHistory | ListHistory:
        """What a level is asked of."""
        return self.lists or self.history

    def __repr__(self) -> str:
        return f"{', '.join(f'T{number}' for number in self.numbers)}: {self.history!r}"


def part_of(whole: RegisterHistory | ListHistory, kept: NDArray[np.bool_]) -> Core:
    """These operations, but for reads of a key and value that an operation which is left out wrote; of a list that
    value is the last, and others are left out of it.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([True, True, False, True]), np.array([0, 1, 0, 1]), np.array([7, 8, 7, 9]), np.arange(1, 5),
    ... )
    >>> part_of(history, np.array([False, True, True, True]))
    T1, T2: 2 transactions in 2 sessions, 2 operations on 2 keys
    """
    history = whole.registers
    elements = whole.seen if isinstance(whole, ListHistory) else history.value[:0]
    lengths = np.diff(whole.seen_first) if isinstance(whole, ListHistory) else 0
    read = np.repeat(np.arange(len(kept)), lengths)
    code = np.unique(np.append(history.value, elements), return_inverse=True)[1]
    key = np.append(history.key, history.key[read]).astype(np.int64)
    cell = key * (int(code.max(initial=0)) + 1) + code
    gone = np.isin(cell, cell[: len(kept)][history.is_write & ~kept])
    kept = kept & (history.is_write | ~gone[: len(kept)])
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    many = np.bincount(owner[kept], minlength=len(history.session))
    there = np.flatnonzero(many)
    part = replace(
        history,
        session=history.session[there],
        status=history.status[there],
        first=np.append(0, np.cumsum(many[there])),
        is_write=history.is_write[kept],
        key=history.key[kept],
        value=history.value[kept],
        line=history.line[kept],
        started=None if history.started is None else history.started[there],
        ended=None if history.ended is None else history.ended[there],
    )
    numbers = tuple((there + 1).tolist())
    if not isinstance(whole, ListHistory):
        return Core(part, numbers)
    stays = kept[read] & ~gone[len(kept) :]
    lengths = np.bincount(read[stays], minlength=len(kept))[kept]
    lists = ListHistory(part, np.append(0, np.cumsum(lengths)), whole.seen[stays])
    return Core(part, numbers, lists)


def shrunk(judged: JudgedRecord, budget: Budget) -> Core:
    """A part that the level forbids, and no longer does without one of its operations; what there is of it once
    the ``budget`` is spent. Of a history without flaws that is forbidden.
    """
    whole, history = judged.lists or judged.history, judged.history
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    base = part_of(whole, np.ones(len(owner), bool))
    if judged.cycle:
        named, reads = _named(judged.cycle)
        named |= {int(owner[read]) for read in reads}
        part = part_of(whole, _with_writers(history, owner, np.isin(owner, [*named])))
        if judge_recorded(part.judged, judged.level).verdict == "forbidden":
            base = part
    owner = np.repeat(np.arange(len(base.numbers)), np.diff(base.history.first))
    shrinking = _Shrinking(base.judged, judged.level, budget, np.ones(len(owner), bool))
    with suppress(Limit):
        numbers = np.unique(owner).tolist()
        shrinking.leave_out([np.flatnonzero(owner == number) for number in numbers])
        shrinking.leave_out([np.array([one]) for one in np.flatnonzero(shrinking.kept).tolist()])
    part = part_of(base.judged, shrinking.kept)
    return replace(part, numbers=tuple(base.numbers[number - 1] for number in part.numbers))


def _with_writers(
    history: RegisterHistory, owner: NDArray[np.int64], kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Operations, and all writes to a key of whoever wrote a value that they read of it."""
    code = np.unique(history.value, return_inverse=True)[1]
    key = history.key.astype(np.int64)
    cell = key * (int(code.max(initial=0)) + 1) + code
    group = owner * len(history.keys) + key
    wrote = history.is_write & np.isin(cell, cell[kept & ~history.is_write])
    found: NDArray[np.bool_] = kept | (history.is_write & np.isin(group, group[wrote]))
    return found


def _named(steps: Iterable[Precedence]) -> tuple[set[int], set[int]]:
    """The transactions of steps, and of those that they follow from, and the reads of these."""
    named: set[int] = set()
    reads: set[int] = set()
    seen: set[int] = set()
    todo = [*steps]
    while todo:
        step = todo.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        named |= {step.source, step.target}
        reads |= set() if step.read is None else {step.read}
        todo += step.because
    return named, reads


@dataclass(slots=True)
class _Shrinking:
    """The operations that are left."""

    history: RegisterHistory | ListHistory
    level: str
    budget: Budget
    kept: NDArray[np.bool_]

    def leave_out(self, groups: Sequence[NDArray[np.int64]]) -> None:
        """Groups of operations, until each that is left is needed: halves are tried before single ones."""
        left = [*groups]
        size = max(1, len(left) // 2)
        while True:
            before, at = len(left), 0
            while at < len(left) > 1:
                less = self.kept.copy()
                less[np.concatenate(left[at : at + size])] = False
                if self.forbidden(less):
                    self.kept = less
                    del left[at : at + size]
                else:
                    at += size
            if size == 1 and len(left) == before:
                return
            size = max(1, size // 2)

    def forbidden(self, kept: NDArray[np.bool_]) -> bool:
        """Whether the level forbids a part."""
        self.budget.check()
        part = part_of(self.history, kept).judged
        return judge_recorded(part, self.level, budget=self.budget).verdict == "forbidden"
