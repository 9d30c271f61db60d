"""Abstract histories for Hypothesis: any, or those that a level admits and another forbids.

The latter are drawn without rejecting any: they grow, operation by operation, and one stays if the
levels still say what was asked. Where nothing that grew from nothing is forbidden, the same
operations grow around the smallest history that is, which a solver finds; so what fails shrinks to
that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.universes.abstract import TIMES, available_names
from isolitmus.checker.universes.abstract_solver import search
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import HistoryError, IsolitmusError
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL, ItemRead, PredicateRead, Transaction, Version, Write
from isolitmus.model.spec_algebra import with_silences_as_axioms, without_silences
from isolitmus.model.verdict import Allowed, Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hypothesis.strategies import DrawFn

    from isolitmus.model.operations import Operation
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

__all__ = ["HistoryConstraints", "any_histories", "grown_histories"]

MOVES = 5
"""So many moves are drawn for each transaction, at most."""
SECONDS = 60.0
"""How long the smallest history is looked for."""


@st.composite
def any_histories(
    draw: DrawFn, *, least: int, most: int, keys: str, predicates: bool, observed: bool
) -> History:
    """Histories of committed transactions, whatever levels say; see ``strategies.histories``."""
    numbers = list(range(1, draw(st.integers(least, most)) + 1))
    writes = {n: sorted(draw(st.sets(st.sampled_from(keys)))) for n in numbers}
    versions = {key: [0, *(n for n in numbers if key in writes[n])] for key in keys}
    matching = {
        f"{key}{n}": draw(st.booleans()) for key in keys for n in versions[key] if predicates
    }
    table: dict[str, object] = {}
    for n in numbers:
        seen = {key: st.sampled_from([v for v in versions[key] if v != n]) for key in keys}
        words = [
            f"r({key}{draw(seen[key])})"
            for key in draw(st.lists(st.sampled_from(keys), max_size=len(keys) + 1))
        ]
        if predicates and draw(st.booleans()):
            there = {f"{key}{draw(seen[key])}": None for key in keys}
            named = [[v for v in matching if v in there], [v for v in matching if v not in there]]
            stars = [", ".join(v + "*" * matching[v] for v in some) for some in named]
            at = draw(st.integers(0, len(words)))
            words.insert(at, f"r(P: {' | '.join(text for text in stars if text)})")
        table[f"T{n}"] = " ".join(words + [f"w({key}{n})" for key in writes[n]])
    cut = draw(st.integers(0, len(numbers)))
    order = draw(st.permutations(numbers))
    sessions = [" ".join(f"T{n}" for n in part) for part in (order[:cut], order[cut:]) if part]
    chains = [
        " < ".join(f"{key}{n}" for n in draw(st.permutations(versions[key][1:])))
        for key in keys
        if observed and len(versions[key]) > 2 and draw(st.booleans())
    ]
    return History.from_table(
        table | {"sessions": draw(st.sampled_from([[], sessions])), "order": chains}
    )


class HistoryConstraints(NamedTuple):
    """What is asked of drawn histories."""

    level: Spec
    """What admits them."""
    forbidden_by: Spec | None
    """What forbids them; None: nothing need."""

    def admitted(self, history: History) -> bool:
        """Whether the one admits it."""
        return isinstance(_judged(history, self.level), Allowed)

    def forbidden(self, history: History) -> bool:
        """Whether the other forbids it, if there is one."""
        other = self.forbidden_by
        return other is None or isinstance(_judged(history, other), Forbidden)

    def both(self, history: History) -> bool:
        """Whether both say so."""
        return self.admitted(history) and self.forbidden(history)


class _Move(NamedTuple):
    """Something that a transaction may do besides, in numbers, to which what is there gives a
    meaning.
    """

    kind: str
    """read, write, or session: it continues one."""
    transaction: int
    """Which, from 0; one beyond the last is new."""
    key: str
    """Of what it reads or writes."""
    other: int
    """Whose version it reads, whose session it continues."""


def grown_histories(
    of: HistoryConstraints, *, least: int, most: int, keys: str
) -> st.SearchStrategy[History]:
    """Histories of committed transactions of which holds what is asked. IsolitmusError if there is
    none of this size.
    """
    _refuse_what_lacks(of.level, *([] if of.forbidden_by is None else [of.forbidden_by]))
    moves = st.builds(
        _Move,
        st.sampled_from(["read", "write", "session"]),
        st.integers(0, most - 1),
        st.sampled_from(keys),
        st.integers(0, most),
    )
    core = None if of.forbidden_by is None else _core(of.level, of.forbidden_by, most)
    if core is not None and len(_keys(core)) > len(keys):
        raise IsolitmusError(
            "the smallest history that is between the levels has"
            f" {count_of(len(_keys(core)), 'key')}; at most {len(keys)} were asked for"
        )
    return _grown(of, st.lists(moves, max_size=MOVES * most), core, least=least, keys=keys)


@st.composite
def _grown(
    draw: DrawFn,
    of: HistoryConstraints,
    moves: st.SearchStrategy[list[_Move]],
    core: History | None,
    *,
    least: int,
    keys: str,
) -> History:
    alone = [_Move("read", k, keys[0], 0) for k in range(least)]
    drawn = draw(moves)
    free = _after(drawn, History(()), of.admitted)
    if core is None or (len(free.transactions) >= least and of.forbidden(free)):
        return _filled(free, alone, of.admitted)
    numbers = draw(st.permutations([t.number for t in core.transactions]))
    names = draw(st.permutations(keys))
    return _filled(_after(drawn, _renamed(core, numbers, names), of.both), alone, of.both)


def _after(moves: Iterable[_Move], history: History, holds: Callable[[History], bool]) -> History:
    """The history with those of the moves that leave what holds."""
    for move in moves:
        try:
            longer = _moved(history, move)
        except HistoryError:  # a second read of a key, or such a write
            continue
        if longer is not None and holds(longer):
            history = longer
    return history


def _filled(history: History, alone: Sequence[_Move], holds: Callable[[History], bool]) -> History:
    """The history with more that only read, if there are too few."""
    return _after(alone[len(history.transactions) :], history, holds)


def _moved(history: History, move: _Move) -> History | None:
    """The history with a move; None if it has no meaning there, or is there already."""
    there = {t.number: t for t in history.transactions}
    number = min(move.transaction, len(there)) + 1
    if move.kind == "session":
        return _continued(history, number, move.other)
    old = there.get(number, Transaction(number, ()))
    if old.status != "committed":
        return None
    writers = [n for n, t in there.items() if Version(move.key, n) in t.writes]
    if move.kind == "write":
        if number in writers:
            return None
        operations: tuple[Operation, ...] = (*old.operations, Write(Version(move.key, number)))
    else:
        seen = [INITIAL, *(n for n in writers if n != number)]
        read = ItemRead(Version(move.key, seen[move.other % len(seen)]))
        if any(isinstance(op, ItemRead) and op.version.object == move.key for op in old.operations):
            return None
        first = len(old.operations) - len(old.writes)
        operations = (*old.operations[:first], read, *old.operations[first:])
    there[number] = replace(old, operations=operations)
    return History(tuple(there[n] for n in sorted(there)), history.sessions, history.order)


def _continued(history: History, number: int, other: int) -> History | None:
    """The history in which a transaction, of a session of its own, comes last in that of
    another.
    """
    numbers = [t.number for t in history.transactions]
    if number not in numbers or other + 1 not in numbers or number == other + 1:
        return None
    sessions = [list(s) for s in history.sessions]
    sessions += [[n] for n in numbers if all(n not in s for s in sessions)]
    if [number] not in sessions:
        return None
    sessions.remove([number])
    next(s for s in sessions if other + 1 in s).append(number)
    return History(history.transactions, tuple(map(tuple, sessions)), history.order)


def _refuse_what_lacks(*specs: Spec) -> None:
    """A level that needs what drawn histories do not have admits none but the empty one."""
    lacking = sorted(
        {name for spec in specs for name in spec.needs - (available_names(spec) - TIMES)}
    )
    if lacking:
        who = f"{' and '.join(spec.name for spec in specs)} need{'s' * (len(specs) == 1)}"
        raise IsolitmusError(f"{who} {', '.join(lacking)}, which drawn histories do not have")


def _core(level: Spec, forbidden_by: Spec, most: int) -> History:
    """The smallest history that one level admits and another forbids."""
    for n in range(1, most + 1):
        found, _ = search(
            with_silences_as_axioms(level),
            without_silences(forbidden_by),
            n,
            budget=Budget(SECONDS),
        )
        if found is not None:
            return found
    raise IsolitmusError(
        f"no history is known that {level.name} admits and {forbidden_by.name} forbids, with at"
        f" most {count_of(most, 'transaction')}"
    )


def _keys(history: History) -> list[str]:
    """The objects that it names, each once."""
    operations = (op for t in history.transactions for op in t.operations)
    return sorted({op.version.object for op in operations if not isinstance(op, PredicateRead)})


def _renamed(history: History, numbers: Sequence[int], names: Sequence[str]) -> History:
    """The history with its transactions numbered anew, and its keys called anew."""
    number = dict(zip((t.number for t in history.transactions), numbers, strict=True))
    name = dict(zip(_keys(history), names, strict=False))

    def version(old: Version) -> Version:
        return Version(name[old.object], number.get(old.writer, INITIAL))

    def operation(old: Operation) -> Operation:
        assert not isinstance(old, PredicateRead)
        return replace(old, version=version(old.version))

    transactions = [
        replace(t, number=number[t.number], operations=tuple(map(operation, t.operations)))
        for t in history.transactions
    ]
    return History(
        tuple(sorted(transactions, key=lambda t: t.number)),
        tuple(tuple(number[n] for n in session) for session in history.sessions),
        tuple((version(a), version(b)) for a, b in history.order),
    )


def _judged(history: History, level: Spec) -> Verdict:
    return check_history(history, level)
