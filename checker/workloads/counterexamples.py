"""A danger that comes about: a run that a promise forbids for its conflicts, and whether by what one sees it is kept.

Conflicts may forbid what some serial order gives all the same (docs/semantics.md, 3.2): a row that came and went unseen
leads to who missed it. So an answer has two halves: what is proved is proved of conflicts, and so of all tables; of what is
not, each counterexample says whether its tables break the promise, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.display import Readable
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from isolitmus.checker.execution.run_result import Judged
    from isolitmus.checker.workloads.cycle_patterns import Danger
    from isolitmus.model.litmus import Litmus

__all__ = ["Counterexample", "keeps"]

OF_THE_LOG = "log-serializable"
OF_WRITERS = "write-serializable"


@dataclass(frozen=True, slots=True)
class Counterexample(Readable):
    """A danger that comes about."""

    danger: Danger
    """Who takes part."""
    test: Litmus
    """The smallest test that shows it."""
    serial: tuple[str, ...]
    """The serial orders that give the table all the same; none: it is a table that no order gives."""
    explained: tuple[str, ...] = ()
    """The orders that keep the promise by what one sees: only conflicts forbid the run then."""

    def __repr__(self) -> str:
        return f"{self.danger.schedule}: {'; '.join(self.serial) or 'no serial order'}"


def keeps(promise: str, judged: Judged) -> tuple[str, ...]:
    """The serial orders by which a run keeps a promise by what one sees, though its conflicts break it: those that
    give the table; of update-serializable, if there are readers, such in which all read what they did read; of
    log-serializable the log's, if it gives every version.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> done = run(litmus("came-and-went"), protocol("delta-write-serializable"))
    >>> keeps("write-serializable", done), str(done.levels["write-serializable"])
    (('insert delete count',), 'forbidden')
    """
    reading = any(isinstance(one, Read) for one in judged.litmus.transactions.values())
    if promise == OF_WRITERS or (promise != OF_THE_LOG and not reading):
        return judged.serial.orders
    one = judged.explained.get(promise)
    if one is None or not (one.reads or (promise == OF_THE_LOG and one.versions)):
        return ()
    return tuple(map(" ".join, one.orders))
