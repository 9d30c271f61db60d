"""Sweep of the abstract search space: exact number of histories that each level admits.

Histories have n transactions over k keys, as in ``checker.universes.abstract``: each transaction
does something, and reads and writes each key at most once, reads first. Transactions and keys have
names: two histories that differ only in these count as two. Sessions are runs of consecutive
transactions. They vary if a level uses them, as does the set of aborted transactions. The order of
reads counts if a level uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.universes.abstract import (
    KEYS,
    TIMES,
    Variation,
    available_names,
    observes_versions,
)
from isolitmus.checker.universes.abstract_enumeration import history_batches
from isolitmus.checker.universes.abstract_solver import watch_histories
from isolitmus.checker.universes.exercised_names import NONE_OPEN, ExerciseRecord, Unexercised
from isolitmus.model.budget import Budget
from isolitmus.model.display import TextResult, count_of
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.files.spec_catalogue import level as named
from isolitmus.specs.files.spec_catalogue import levels as shipped_levels
from isolitmus.specs.files.spec_catalogue import spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import SpecLike

MOST = 5
"""Maximal number of transactions; with six over two keys there are too many histories to count."""


@dataclass(frozen=True, slots=True, repr=False)
class AbstractSweep(TextResult, Tabular):
    """Numbers of histories that each level admits."""

    transactions: int
    """Number of transactions of each history."""
    keys: int
    """Number of keys."""
    vary: Variation
    """Variation of sessions and aborts."""
    histories: int
    """Number of histories; if the sweep was ended, of those counted."""
    admitted: dict[str, int]
    """Number of these histories that each level admits, by name of the level."""
    seconds: float
    ended: str | None = None
    """Reason why the sweep ended before all were counted; None if it did not."""
    listed: Mapping[str, tuple[History, ...]] = field(default_factory=dict)
    """First histories that each level admits, by name of the level, if they were asked for."""
    unexercised: Unexercised = NONE_OPEN
    """Parts of the levels that no history made non-empty."""

    @property
    def records(self) -> Records:
        """Number of admitted histories, one row per level."""
        whole = (self.transactions, self.keys, self.histories)
        return Records(
            ("transactions", "keys", "histories", "level", "admitted"),
            tuple((*whole, level, number) for level, number in self.admitted.items()),
        )

    def to_json(self) -> dict[str, object]:
        """Return the counts in the format of docs/interface.md, 6."""
        listed = [
            {"level": level, "history": history.to_table()}
            for level, histories in self.listed.items()
            for history in histories
        ]
        return {
            "scope": "abstract",
            "transactions": self.transactions,
            "keys": self.keys,
            "sessions": self.vary.sessions,
            "aborts": self.vary.aborts,
            "histories": self.histories,
            "levels": self.admitted,
            **self.unexercised.to_json(),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
            **({"listed": listed} if listed else {}),
        }


def askable_levels() -> list[Spec]:
    """Return the shipped levels that apply to histories without a table.

    Examples
    --------
    >>> "serializable" in [level.name for level in askable_levels()]
    True
    """
    found = map(named, shipped_levels())
    return [
        level
        for level in found
        if level.needs <= available_names(level) - TIMES and not observes_versions(level)
    ]


def sweep_abstract(
    levels: Sequence[SpecLike],
    transactions: int,
    keys: int = 2,
    *,
    sessions: bool = True,
    aborts: bool = True,
    most_listed: int = 0,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> AbstractSweep:
    """Count the histories of n transactions over k keys, and those that each level admits.

    Parameters
    ----------
    levels : sequence of SpecLike
        Specs, names or paths.
    transactions : int
        Number of transactions, 1 to MOST.
    keys : int
        Number of keys.
    sessions, aborts : bool
        Whether these may vary; they do if a level uses them.
    most_listed : int
        Maximum number of histories that are listed for each level.
    budget : Budget, optional
        Limits of time and memory. Once spent, the result has what was counted until then.
    progress : callable, optional
        Called with the number of histories counted so far.

    Returns
    -------
    AbstractSweep
        Counts by level.

    Raises
    ------
    IsolitmusError
        For a level that does not apply to such histories, or too many transactions or keys.

    Examples
    --------
    >>> done = sweep_abstract(["serializable", "snapshot-isolation"], 2, aborts=False)
    >>> done.histories, done.admitted
    (1188, {'serializable': 625, 'snapshot-isolation': 633})
    """
    if not 1 <= transactions <= MOST:
        raise IsolitmusError(
            f"{count_of(transactions, 'transaction')} requested; search space 'abstract' supports 1"
            f" to {MOST}"
        )
    if not 1 <= keys <= len(KEYS):
        raise IsolitmusError(f"{count_of(keys, 'key')} requested; 1 to {len(KEYS)} are supported")
    asked = [spec(level) for level in levels]
    for level in asked:
        lacking = sorted(level.needs - (available_names(level) - TIMES))
        if lacking:
            raise IsolitmusError(
                f"{level.name} needs {', '.join(lacking)}, which the counted histories do not have"
            )
        if observes_versions(level):
            raise IsolitmusError(
                f"{level.name} needs an observed version order, which counted histories do not"
                " have; 'with ww from versions' takes any"
            )
    needs = frozenset[str]().union(*(level.needs for level in asked))
    vary = Variation(sessions and "so" in needs, aborts and "Aborted" in needs)
    start, budget = monotonic(), budget or Budget()
    histories, admitted, ended = 0, dict.fromkeys((level.name for level in asked), 0), None
    said: dict[str, NDArray[np.bool_]] = {}
    listed: dict[str, list[History]] = {name: [] for name in admitted if most_listed}
    try:
        for batch in history_batches(transactions, vary, *asked, keys=keys):
            ways = batch.arrangements(keys)
            budget.check()
            for level in asked:
                found = batch.admits(level)[:, 0]
                said[level.name] = found | said[level.name] if level.name in said else found
            if batch.more:
                continue
            once = batch.once() if "po" in needs else batch.valid
            histories += ways * int(once.sum())
            for name, found in said.items():
                admitted[name] += ways * int((found & once).sum())
                if most_listed:
                    left = most_listed - len(listed[name])
                    listed[name] += [
                        batch.history(int(k) * batch.choices, observed=False)
                        for k in (found & once).nonzero()[0][:left]
                    ]
            said = {}
            if progress is not None:
                progress(histories)
    except (Limit, MemoryError) as end:
        ended = str(end) or "memory was used up"
    kept = {name: tuple(some) for name, some in listed.items() if some}
    unexercised = NONE_OPEN if ended else _unexercised(asked, transactions, keys, vary, budget)
    return AbstractSweep(
        transactions, keys, vary, histories, admitted, monotonic() - start, ended, kept,
        unexercised,
    )  # fmt: skip


def _unexercised(
    levels: Sequence[Spec], n: int, keys: int, vary: Variation, budget: Budget
) -> Unexercised:
    """Return the parts of the levels that no history of n transactions makes non-empty."""
    record = ExerciseRecord(*levels)
    try:
        watch_histories(record, levels, [n], vary, budget, keys=keys)
    except (Limit, MemoryError):
        return record.result(unknown=True)
    return record.result()
