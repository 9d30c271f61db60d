"""Recheck of verdicts on recorded histories: cycles step by step, orders by replay.

Each step of a cycle is looked up in the history anew, by the definitions and nothing else. An order
of events is replayed one transaction after another, by values and nothing else.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.events import TIMED, Events, find_time_violation
from isolitmus.histories.blackbox.precedence import operation_name, transaction_name
from isolitmus.histories.readers.blackbox_history import ABORTED, COMMITTED, INITIAL, ListHistory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy import int64
    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.precedence import Precedence
    from isolitmus.histories.blackbox.read_from import AttributedReads
    from isolitmus.histories.readers.blackbox_history import RegisterHistory

BEFORE_A_MISS = {
    "serializable": {"so", "wr", "ww", "rw"},
    "snapshot-isolation": {"so", "wr", "ww"},
    "prefix-consistency": {"so", "wr"},
    "strict-serializable": {"so", "wr", "ww", "rw", "rt"},
    "strong-snapshot-isolation": {"so", "wr", "ww", "rt"},
}
"""Kinds of steps after which an anti-dependency may follow on a forbidden cycle, by level."""
STEPS = {
    "read-committed": {"wr", "ww"},
    "read-committed-biswas-enea": {"so", "wr", "co"},
    "read-atomic": {"so", "wr", "co"},
    "causal": {"so", "wr", "co"},
    **{level: {"so", "wr", "ww", "rw"} | kinds for level, kinds in BEFORE_A_MISS.items()},
}
"""Kinds of steps of which a forbidden cycle may consist, by level."""


def confirm_cycle(
    history: RegisterHistory | ListHistory,
    level: str,
    cycle: Sequence[Precedence],
    given: Mapping[int, int] | None = None,
) -> bool:
    """Return whether the steps form a cycle that the level forbids, and each step holds.

    Parameters
    ----------
    history : RegisterHistory or ListHistory
        Recorded history.
    level : str
        Level that forbids the cycle.
    cycle : sequence of Precedence
        Steps.
    given : mapping of int to int, optional
        Assumed writer of reads whose value several transactions wrote, by operation.
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
        """Return the operations of a transaction."""
        return range(int(self.history.first[number]), int(self.history.first[number + 1]))

    def circle(self, cycle: Sequence[Precedence], supposed: int = 0) -> bool:
        """Return whether the steps form a forbidden cycle and all hold.

        The first ``supposed`` steps are assumed.
        """
        return (
            len(cycle) > 0
            and self.links(cycle)
            and all(self.holds(step) for step in cycle[supposed:])
        )

    def links(self, cycle: Sequence[Precedence]) -> bool:
        """Return whether each step begins where the last one ended, with kinds of the level."""
        before = BEFORE_A_MISS.get(self.level, set())
        return all(
            earlier.target == later.source
            and later.kind in STEPS[self.level]
            and (later.kind != "rw" or earlier.kind in before)
            for earlier, later in zip((cycle[-1], *cycle[:-1]), cycle, strict=True)
        )

    def holds(self, step: Precedence) -> bool:
        """Return whether a step holds; each step is checked once."""
        if id(step) not in self.held:
            self.held[id(step)] = self._holds(step)
        return self.held[id(step)]

    def _holds(self, step: Precedence) -> bool:
        """Return whether a step holds by the definition of its kind."""
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
        """Return whether ``first`` had ended when ``second`` began."""
        started, ended = self.history.started, self.history.ended
        return (
            self.initial not in (first, second)
            and started is not None
            and ended is not None
            and bool(ended[first] < started[second])
        )

    def left(self, number: int, key: int) -> int | None:
        """Return the value of a key that a transaction wrote last; None if it did not write it."""
        if number == self.initial:
            return INITIAL
        history = self.history
        for one in reversed(self.of(number)):
            if history.is_write[one] and history.key[one] == key:
                return int(history.value[one])
        return None

    def reads(self, reader: int, read: int | None, writer: int) -> bool:
        """Return whether a read is of another transaction's last write, and not of an own write."""
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
        """Return whether no other transaction can have written what a read returned."""
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
        """Return whether a co step holds: the reader sees the source, but read from the target."""
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
        """Return whether a read returned a version that precedes the target's, another one."""
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
        """Return whether a list shows the version order, or the first step of the cycle opposes it.

        The rest of that cycle must hold.
        """
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
        """Return whether a list shows an append of ``source`` with none of ``target`` before it."""
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


def find_misread(seen: AttributedReads, level: str, events: NDArray[int64]) -> str:
    """Return the operation or transaction that an order of events does not explain, as text.

    At serializable an event is a transaction; else event 2t is the beginning of transaction t and
    2t + 1 its end. A transaction reads what is visible when it begins, and its own writes. Its
    writes become visible to others when it ends. At snapshot isolation nobody else has written its
    keys in between. A transaction begins after its predecessors in the session ended and, at levels
    of TIMED, after all that had ended in time. Transactions that count are replayed by their
    values; ``writer`` is not used.

    Parameters
    ----------
    seen : AttributedReads
        History and the transactions that count.
    level : str
        One of ORDERED or TIMED.
    events : ndarray of int64, shape (n_events,)
        Events in order.

    Returns
    -------
    str
        Empty if the order explains all reads.
    """
    at_level = Events(level)
    each, turns = at_level.each, at_level.base == "snapshot-isolation"
    history = seen.history
    counts, sessions = seen.counts.tolist(), history.session.tolist()
    # Per transaction, its predecessor in the session; -1 if there is none.
    before: list[int] = []
    latest: dict[int, int] = {}
    for number, status in enumerate(history.status.tolist()):
        if (status == COMMITTED and not counts[number]) or (status == ABORTED and counts[number]):
            return transaction_name(history, number)
        before.append(latest.get(sessions[number], -1))
        if counts[number]:
            latest[sessions[number]] = number
    first, is_write = history.first.tolist(), history.is_write.tolist()
    key, value = history.key.tolist(), history.value.tolist()
    there: dict[int, int] = {}
    # Per key, the moment of the last write; per session, the last transaction that ended.
    when: dict[int, int] = {}
    began: dict[int, int] = {}
    last: dict[int, int] = {}
    wrote: dict[int, dict[int, int]] = {}
    for moment, event in enumerate(events.tolist()):
        number = event // each
        if number == seen.initial or not counts[number]:
            continue
        # At its beginning a transaction reads; its writes are kept apart.
        if event % each == 0:
            if last.get(sessions[number], -1) != before[number]:
                return transaction_name(history, number)
            began[number] = moment
            own = wrote[number] = {}
            for one in range(first[number], first[number + 1]):
                at = key[one]
                if is_write[one]:
                    own[at] = value[one]
                elif (own[at] if at in own else there.get(at, INITIAL)) != value[one]:
                    return operation_name(history, one)
        # At its end they become visible.
        if event % each == each - 1:
            if number not in wrote:
                return transaction_name(history, number)
            last[sessions[number]] = number
            for at, left in wrote.pop(number).items():
                if turns and when.get(at, -1) > began[number]:
                    return transaction_name(history, number)
                there[at], when[at] = left, moment
    if len(began) < sum(counts):
        return "a transaction that is missing"
    late = find_time_violation(seen, np.argsort(events), each) if level in TIMED else None
    return "" if late is None else transaction_name(history, late)


def find_misattributed_read(seen: AttributedReads) -> str:
    """Return a read that did not return its writer's last write, or its own, as text; else "".

    Only transactions that count are looked at.
    """
    history = seen.history
    writer = dict(zip(seen.read.tolist(), seen.writer.tolist(), strict=True))
    left: dict[tuple[int, int], int] = {}
    external: list[tuple[int, int, int]] = []
    rows = zip(
        seen.owner.tolist(),
        history.is_write.tolist(),
        history.key.tolist(),
        history.value.tolist(),
        strict=True,
    )
    for one, (number, is_write, key, value) in enumerate(rows):
        if not seen.counts[number]:
            continue
        if is_write:
            left[number, key] = value
        elif (number, key) not in left:
            external.append((one, key, value))
        elif left[number, key] != value:
            return operation_name(history, one)
    for one, key, value in external:
        from_ = writer.get(one)
        there = (
            INITIAL if from_ == seen.initial else left.get((-1 if from_ is None else from_, key))
        )
        if there != value:
            return operation_name(history, one)
    return ""


def find_misbuilt_list(seen: AttributedReads, level: str, events: NDArray[int64]) -> str:
    """Return a read of a list that is no prefix of what the appends build, as text; else "".

    The transactions that count append one after another, in the order of their ends in ``events``,
    of shape (n_events,).
    """
    if seen.lists is None:
        return ""
    each = Events(level).each
    history, lists = seen.history, seen.lists
    ended = np.empty(len(events), np.int64)
    ended[events] = np.arange(len(events))
    ended = ended[each - 1 :: each]
    appends = np.flatnonzero(history.is_write & seen.counts[seen.owner])
    appends = appends[np.lexsort((appends, ended[seen.owner[appends]], history.key[appends]))]
    begin = np.searchsorted(history.key[appends], np.arange(len(history.keys) + 1))
    lengths = np.where(seen.counts[seen.owner], np.diff(lists.seen_first), 0)
    read = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(read)) - (np.cumsum(lengths) - lengths)[read]
    at = begin[history.key[read]] + place
    wrong = at >= begin[history.key[read] + 1]
    wrong[~wrong] = (
        history.value[appends[at[~wrong]]] != lists.seen[(lists.seen_first[read] + place)[~wrong]]
    )
    return operation_name(history, int(read[np.argmax(wrong)])) if wrong.any() else ""
