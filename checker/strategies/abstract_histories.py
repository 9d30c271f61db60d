"""Abstract histories for Hypothesis: arbitrary ones, or those between two levels.

Histories that one level admits and another forbids are drawn without rejection. A history grows
operation by operation, and an operation stays if the levels still admit and forbid as required.
If no history that grew from the empty one is forbidden, the same operations grow around the
smallest forbidden history, which a solver finds. A failing example shrinks to that.
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

MOVES = 5
"""Maximal number of moves drawn per transaction."""
SECONDS = 60.0
"""Time limit in seconds of the search for the smallest history."""


@st.composite
def any_histories(
    draw: DrawFn, *, least: int, most: int, keys: str, predicates: bool, observed: bool
) -> History:
    """Draw a history of committed transactions, whatever levels say."""
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
    """Levels that must admit and forbid the drawn histories."""

    level: Spec
    """Level that admits the histories."""
    forbidden_by: Spec | None
    """Level that forbids them; None if none has to."""

    def admitted(self, history: History) -> bool:
        """Return whether `level` admits the history."""
        return isinstance(_judged(history, self.level), Allowed)

    def forbidden(self, history: History) -> bool:
        """Return whether `forbidden_by` forbids the history; True if there is no such level."""
        other = self.forbidden_by
        return other is None or isinstance(_judged(history, other), Forbidden)

    def both(self, history: History) -> bool:
        """Return whether the history is admitted and forbidden as required."""
        return self.admitted(history) and self.forbidden(history)


class _Move(NamedTuple):
    """One more operation for a history, as numbers that the existing history interprets."""

    kind: str
    """"read", "write", or "session" (the transaction continues a session)."""
    transaction: int
    """Index of the transaction, from 0; an index beyond the last makes a new one."""
    key: str
    """Object that is read or written."""
    other: int
    """Choice of the writer whose version is read, or of the session to continue."""


def grown_histories(
    of: HistoryConstraints, *, least: int, most: int, keys: str
) -> st.SearchStrategy[History]:
    """Return a strategy for histories of committed transactions that meet the constraints.

    Parameters
    ----------
    of : HistoryConstraints
        Levels that must admit and forbid the histories.
    least, most : int
        Least and greatest number of transactions.
    keys : str
        Names of the objects, one character each.

    Raises
    ------
    IsolitmusError
        If no history of this size meets the constraints.
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
    """Return a strategy for histories that grow from the empty history, or around the core."""
    alone = [_Move("read", k, keys[0], 0) for k in range(least)]
    drawn = draw(moves)
    free = _after(drawn, History(()), of.admitted)
    if core is None or (len(free.transactions) >= least and of.forbidden(free)):
        return _filled(free, alone, of.admitted)
    numbers = draw(st.permutations([t.number for t in core.transactions]))
    names = draw(st.permutations(keys))
    return _filled(_after(drawn, _renamed(core, numbers, names), of.both), alone, of.both)


def _after(moves: Iterable[_Move], history: History, holds: Callable[[History], bool]) -> History:
    """Return the history with each of the moves after which `holds` still holds."""
    for move in moves:
        try:
            longer = _moved(history, move)
        except HistoryError:  # a second read or write of a key
            continue
        if longer is not None and holds(longer):
            history = longer
    return history


def _filled(history: History, alone: Sequence[_Move], holds: Callable[[History], bool]) -> History:
    """Return the history with read-only transactions added until it has enough."""
    return _after(alone[len(history.transactions) :], history, holds)


def _moved(history: History, move: _Move) -> History | None:
    """Return the history after a move; None if the move is not applicable or already made."""
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
    """Return the history with a transaction moved to the end of another one's session.

    None if the transaction does not exist or shares its session.
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
    """Raise if a level needs something that drawn histories do not have.

    Such a level admits only the empty history.
    """
    lacking = sorted(
        {name for spec in specs for name in spec.needs - (available_names(spec) - TIMES)}
    )
    if lacking:
        who = f"{' and '.join(spec.name for spec in specs)} need{'s' * (len(specs) == 1)}"
        raise IsolitmusError(f"{who} {', '.join(lacking)}, which drawn histories do not have")


def _core(level: Spec, forbidden_by: Spec, most: int) -> History:
    """Return the smallest history that one level admits and another forbids."""
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
    """Return the distinct objects of the history, sorted."""
    operations = (op for t in history.transactions for op in t.operations)
    return sorted({op.version.object for op in operations if not isinstance(op, PredicateRead)})


def _renamed(history: History, numbers: Sequence[int], names: Sequence[str]) -> History:
    """Return the history with its transactions renumbered and its keys renamed."""
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
