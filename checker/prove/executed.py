"""The vocabulary of ``proving.tables`` read of one execution: whether a premise holds there.

A premise is a formula for a solver. Here the same formula is computed: quantifiers range over what there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.delta.metadata_changes import item, with_definitions
from isolitmus.checker.prove.domain import FILE, PREDICATE, ROW, TRANSACTION, VERSION
from isolitmus.model.delta.table import widened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.prove.premises import Premise
    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.execution import Execution

__all__ = ["violated_premises"]


def violated_premises(done: Execution, premises: Sequence[Premise]) -> tuple[Premise, ...]:
    """The premises that do not hold in what took effect in an execution on one table.

    >>> from isolitmus.checker.prove.premises import PREMISES
    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> [premise.name for premise in violated_premises(execute(litmus("set-from-subquery")), PREMISES)]
    ['read-files', 'read-predicates']
    """
    tables: Any = _Executed(done)
    return tuple(
        premise
        for premise in premises
        if not premise.formula(tables) or (premise.name == "snapshot" and not tables.one_version())
    )


class _Logic:
    """The connectives, of truth values."""

    @staticmethod
    def And(*parts: bool) -> bool:  # noqa: N802 as Z3 has it
        return all(parts)

    @staticmethod
    def Or(*parts: bool) -> bool:  # noqa: N802
        return any(parts)

    @staticmethod
    def Not(part: bool) -> bool:  # noqa: N802
        return not part

    @staticmethod
    def Implies(given: bool, claim: bool) -> bool:  # noqa: N802
        return not given or claim


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Quantifiers over what there is in an execution."""

    members: Mapping[str, Sequence[Any]]

    def forall(self, sorts: Sequence[str], claim: Callable[..., bool]) -> bool:
        return all(claim(*choice) for choice in self.choices(sorts))

    def exists(self, sorts: Sequence[str], claim: Callable[..., bool]) -> bool:
        return any(claim(*choice) for choice in self.choices(sorts))

    def choices(self, sorts: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        return product(*(self.members[sort] for sort in sorts))


class _Executed:
    """The vocabulary of ``proving.tables``, of one execution: transactions are positions, predicates those
    of a transaction's reads, rows go by their ids, files by their paths.
    """

    z3 = _Logic

    def __init__(self, done: Execution) -> None:
        self.events = with_definitions([e for e in done.events if not e.aborted])
        self.frame = delta_frame(self.events, reasons=False)
        footprints = [e.effect.footprint for e in self.events if e.effect.footprint is not None]
        width = max((len(f.schema.columns) for f in footprints), default=0)
        stored = [
            [(f.path, row) for state in version.values() for f in state.files for row in f.rows]
            for version in done.states
        ]
        self.rows = [{row.id: widened(row.values, width) for _, row in rows} for rows in stored]
        self.files = [{(path, row.id) for path, row in rows} for rows in stored]
        self.written = [{w.id: w for w in event.effect.writes} for event in self.events]
        self.items = {item(table) for table in done.states[-1]}
        reads = [len(event.effect.reads) for event in self.events]
        self.domain = _Ranges(
            {
                TRANSACTION: range(len(self.events)),
                PREDICATE: range(max(reads, default=0)),
                ROW: sorted(set().union(*self.rows, *self.written)),
                FILE: sorted({path for version in self.files for path, _ in version}),
                VERSION: range(len(done.states)),
            }
        )

    def one_version(self) -> bool:
        """Whether every transaction reads one version: its formula knows of one only."""
        return all(
            e.seen_by(read) == e.read_version for e in self.events for read in e.effect.reads
        )

    def footprint(self, i: int) -> Footprint | None:
        return self.events[i].effect.footprint

    def writer(self, i: int) -> bool:
        return self.events[i].version is not None

    def version(self, i: int) -> int:
        version = self.events[i].version
        return -1 if version is None else version

    def read(self, i: int) -> int:
        return self.events[i].read_version

    def members(self, name: str) -> Callable[[int], bool]:
        return lambda i: bool(self.frame.sets[name] >> i & 1)

    def relation(self, name: str) -> Callable[[int, int], bool]:
        return lambda i, j: bool(self.frame.relations[name].rows[i] >> j & 1)

    def definition(self, x: str) -> bool:
        return x in self.items

    def writes(self, i: int, x: str) -> bool:
        return self.writer(i) and x in self.written[i]

    def creates(self, i: int, x: str) -> bool:
        footprint = self.footprint(i)
        new = self.writes(i, x) and self.written[i][x].before is None
        return new and not (footprint is not None and footprint.settings.large)

    def matches(self, j: int, p: int, x: str, n: int) -> bool:
        if p >= len(self.events[j].effect.reads):
            return False
        read = self.events[j].effect.reads[p]
        used = n == self.read(j) and any(row.id == x for row in read.matched)
        return used or (x in self.rows[n] and read.matches(self.rows[n][x]))

    def holds(self, f: str, x: str, n: int) -> bool:
        return (f, x) in self.files[n]

    def read_file(self, j: int, f: str) -> bool:
        footprint = self.footprint(j)
        return footprint is not None and (footprint.whole_table or f in footprint.files)

    def removes(self, i: int, f: str) -> bool:
        footprint = self.footprint(i)
        return footprint is not None and f in footprint.removes

    def there(self, x: str, n: int) -> bool:
        return x in self.rows[n] if 0 <= n < len(self.rows) else False

    def reads_all(self, r: int, p: int, i: int) -> bool:
        alike = (self.matches(r, p, x, self.version(i)) for x in self.rows[self.version(i)])
        there = p < len(self.events[r].effect.reads)
        return there and not self.writer(r) and self.read(r) == self.version(i) and all(alike)
