"""Premises of the proofs, and the check whether they hold in an execution.

The premises connect the footprints of commits with changes of rows. Each is a formula with its
sentence. A proof lists those that it uses, and fails without any of them. They concern one table,
whose definition (columns and constraints) counts as a row in no file. Tables that generate identity
values are outside, since even a blind append reads the next value.

In an execution the same formula is evaluated directly: quantifiers range over the finite sets that
occur there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.delta.frame import delta_frame, overlaps
from isolitmus.checker.delta.metadata_changes import add_definition_reads, definition_item
from isolitmus.checker.delta.row_overlaps import add_unseen_deletions, marked_files
from isolitmus.checker.prove.formula_semantics import (
    FILE,
    PREDICATE,
    ROW,
    TRANSACTION,
    VERSION,
    Z3Expr,
)
from isolitmus.model.delta.table import widen_row
from isolitmus.model.errors import UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.prove.formula_semantics import TableVocabulary
    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.execution import Execution

T = TRANSACTION


@dataclass(frozen=True, slots=True)
class Premise:
    """Assumption about all histories over tables."""

    name: str
    """Name by which lemmas refer to it."""
    sentence: str
    """Statement as text."""
    formula: Callable[[TableVocabulary], Z3Expr]
    """Statement as a formula."""
    scope: str = ""
    """Words for a theorem's headline, if it restricts statements and does not define a table."""
    outside: str = ""
    """Reason why other statements are excluded."""


def _snapshot(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall((T,), lambda j: t.z3.Implies(t.writer(j), t.read(j) < t.version(j)))


def _put_if_absent(t: TableVocabulary) -> Z3Expr:
    """Return the formula that two writers have different versions."""
    return t.domain.forall(
        (T, T),
        lambda i, j: t.z3.Implies(
            t.z3.And(t.writer(i), t.writer(j), i != j), t.version(i) != t.version(j)
        ),
    )


def _sessions(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall((T, T), lambda i, j: t.z3.Not(t.relation("so")(i, j)))


def _committed(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T,), lambda i: t.z3.Implies(t.writer(i), t.z3.Not(t.members("Aborted")(i)))
    )


def tracked_read(t: TableVocabulary, j: Z3Expr, x: Z3Expr) -> Z3Expr:
    """Return the formula that a row, if a writer read it, must be recorded as read."""
    return t.z3.And(t.writer(j), t.z3.Not(t.members("Large")(j)), t.z3.Not(t.definition(x)))


def _read_files(t: TableVocabulary) -> Z3Expr:
    """Return the formula that the file of a tracked row is removed or recorded as read."""
    return t.domain.forall(
        (T, PREDICATE, ROW),
        lambda j, p, x: t.z3.Implies(
            t.z3.And(tracked_read(t, j, x), t.matches(j, p, x, t.read(j))),
            t.domain.exists(
                (FILE,),
                lambda f: t.z3.And(
                    t.holds(f, x, t.read(j)), t.z3.Or(t.read_file(j, f), t.removes(j, f))
                ),
            ),
        ),
    )


def _read_predicates(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a write that matches a tracked read makes adds-meets-reads hold."""
    return t.domain.forall(
        (T, T, PREDICATE, ROW),
        lambda i, j, p, x: t.z3.Implies(
            t.z3.And(
                tracked_read(t, j, x), i != j, t.writes(i, x), t.matches(j, p, x, t.version(i))
            ),
            t.relation("adds-meets-reads")(i, j),
        ),
    )


def _files(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a row of a file changes only when or after the file is removed."""
    return t.domain.forall(
        (FILE, ROW, VERSION, T),
        lambda f, x, n, i: t.z3.Implies(
            t.z3.And(t.holds(f, x, n), t.writes(i, x), n < t.version(i)),
            t.domain.exists(
                (T,),
                lambda k: t.z3.And(
                    t.writer(k), t.removes(k, f), n < t.version(k), t.version(k) <= t.version(i)
                ),
            ),
        ),
    )


def _rows(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a row begins to match a predicate only by a write."""
    return t.domain.forall(
        (T, PREDICATE, ROW, VERSION),
        lambda j, p, x, n: t.z3.Implies(
            t.z3.And(t.read(j) < n, t.matches(j, p, x, n), t.z3.Not(t.matches(j, p, x, t.read(j)))),
            t.domain.exists(
                (T,),
                lambda k: t.z3.And(
                    t.writes(k, x),
                    t.read(j) < t.version(k),
                    t.version(k) <= n,
                    t.matches(j, p, x, t.version(k)),
                ),
            ),
        ),
    )


def _read_before_written(t: TableVocabulary) -> Z3Expr:
    """Return the formula that only creators of a row and RESTORE write it without reading it."""
    return t.domain.forall(
        (T, ROW),
        lambda j, x: t.z3.Implies(
            t.z3.And(t.writes(j, x), t.z3.Not(t.creates(j, x)), t.z3.Not(t.members("Large")(j))),
            t.domain.exists((PREDICATE,), lambda p: t.matches(j, p, x, t.read(j))),
        ),
    )


def _born_once(t: TableVocabulary) -> Z3Expr:
    """Return the formula that the creator of a row has a lower version than its other writers."""
    return t.domain.forall(
        (T, T, ROW),
        lambda i, j, x: t.z3.Implies(
            t.z3.And(t.creates(i, x), t.writes(j, x), i != j), t.version(i) < t.version(j)
        ),
    )


def _no_restores(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall((T,), lambda i: t.z3.Not(t.members("Large")(i)))


def _blind(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a blind append is no RESTORE, and reads no row."""
    return t.domain.forall(
        (T, PREDICATE, ROW, VERSION),
        lambda j, p, x, n: t.z3.Implies(
            t.members("Blind")(j),
            t.z3.Not(t.z3.Or(matches_row(t, j, p, x, n), t.members("Large")(j))),
        ),
    )


def _compactions(t: TableVocabulary) -> Z3Expr:
    """Return the formula that commits with dataChange=false throughout read and write no row."""
    return _apart_from_rows(t, lambda j: only_moves(t, j))


def only_moves(t: TableVocabulary, j: Z3Expr) -> Z3Expr:
    """Return the formula that the file actions of j have dataChange=false throughout."""
    other = t.z3.Or(t.members("Marked")(j), t.members("Empty")(j))
    return t.z3.And(t.members("NoData")(j), t.z3.Not(other))


def _backfills(t: TableVocabulary) -> Z3Expr:
    return _apart_from_rows(t, t.members("Backfill"))


def _apart_from_rows(t: TableVocabulary, who: Callable[[Z3Expr], Z3Expr]) -> Z3Expr:
    """Return the formula that these writers read and write no row."""

    def neither(j: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        nothing = t.z3.And(t.z3.Not(matches_row(t, j, p, x, n)), t.z3.Not(t.writes(j, x)))
        return t.z3.Implies(t.z3.And(t.writer(j), who(j)), nothing)

    return t.domain.forall((T, PREDICATE, ROW, VERSION), neither)


def matches_row(t: TableVocabulary, j: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
    return t.z3.And(t.matches(j, p, x, n), t.z3.Not(t.definition(x)))


def _definitions(t: TableVocabulary) -> Z3Expr:
    """Return the formula that an unseen change of the table's definition is a metadata clash."""
    return t.domain.forall(
        (T, T, ROW),
        lambda i, j, x: t.z3.Implies(
            t.z3.And(t.definition(x), t.writes(i, x), t.relation("unseen")(i, j)),
            t.relation("metadata-clashes")(i, j),
        ),
    )


def _metadata(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a transaction that changes the table's definition writes metadata."""
    return t.domain.forall(
        (T, ROW),
        lambda i, x: t.z3.Implies(t.z3.And(t.definition(x), t.writes(i, x)), t.members("Meta")(i)),
    )


def _gapless(t: TableVocabulary) -> Z3Expr:
    """Return the formula that some writer has the version after each one that the log continues."""
    return t.domain.forall(
        (T, T),
        lambda i, j: t.z3.Implies(
            t.relation("log")(i, j),
            t.domain.exists(
                (T,), lambda k: t.z3.And(t.writer(k), t.version(k) == t.version(i) + 1)
            ),
        ),
    )


def _something_written(t: TableVocabulary) -> Z3Expr:
    """Return the formula that each writer writes a row that exists before or after its commit."""
    return t.domain.forall(
        (T,),
        lambda i: t.z3.Implies(
            t.writer(i),
            t.domain.exists(
                (ROW,),
                lambda x: t.z3.And(
                    t.writes(i, x),
                    t.z3.Or(t.there(x, t.version(i) - 1), t.there(x, t.version(i))),
                ),
            ),
        ),
    )


def _readers(t: TableVocabulary) -> Z3Expr:
    """Return the formula that some transaction reads all of the version of each writer."""
    return t.domain.forall(
        (T,),
        lambda i: t.z3.Implies(
            t.writer(i), t.domain.exists((T, PREDICATE), lambda r, p: t.reads_all(r, p, i))
        ),
    )


PREMISES = (
    Premise(
        "snapshot",
        "each transaction reads one version of the table, and commits a later one",
        _snapshot,
        "each of which reads one version",
        "reads a version other than its snapshot",
    ),
    Premise(
        "put-if-absent", "each version of the log is written once (put if absent)", _put_if_absent
    ),
    Premise(
        "sessions",
        "each transaction is one statement in its own session",
        _sessions,
        "each in a session of its own",
        "shares a session",
    ),
    Premise(
        "committed", "each row of a version was written by a transaction that committed", _committed
    ),
    Premise(
        "definitions",
        "a writer cannot resolve a concurrent change of the table's columns or constraints",
        _definitions,
    ),
    Premise("metadata", "a transaction that changes them writes the table's metadata", _metadata),
    Premise(
        "read-files",
        "all reads are tracked: a row that a writer (not a RESTORE) read lies in a file that it"
        " removes or recorded as read (the read of the next identity value is not tracked)",
        _read_files,
        "with tracked reads only",
        "has an untracked read",
    ),
    Premise(
        "read-predicates",
        "a file with a row that matches a read of a writer (not a RESTORE) matches a predicate that"
        " the writer recorded",
        _read_predicates,
        "with tracked reads only",
        "has an untracked read",
    ),
    Premise("files", "files are immutable: a row changes only when its file is removed", _files),
    Premise("rows", "a row begins to match a predicate only when it is written", _rows),
    Premise(
        "read-before-written",
        "a transaction that changes, deletes or (other than by RESTORE) re-adds a row has read it:"
        " no blind overwrites",
        _read_before_written,
        "which have read what they change",
        "writes a row that it has not read",
    ),
    Premise(
        "no-restores",
        "no transaction is a RESTORE",
        _no_restores,
        "none of them a RESTORE",
        "restores",
    ),
    Premise("born-once", "an insert creates a new row", _born_once),
    Premise(
        "blind",
        "a commit marked as a blind append is not a RESTORE, and reads no row and no identity value"
        " of the table (a raw transaction can set the mark falsely)",
        _blind,
        "whose blind appends read nothing",
        "is marked as a blind append, but reads",
    ),
    Premise(
        "compactions",
        "a commit all of whose file actions have dataChange=false only moves rows: it reads and"
        " writes none (a raw transaction or write can set dataChange=false falsely; a commit"
        " without actions is not recorded)",
        _compactions,
        "which only move rows if marked dataChange=false",
        "is marked dataChange=false, but does not only move rows",
    ),
    Premise(
        "backfills",
        "a row tracking backfill sets or removes row ids only: it reads and writes no row (a raw"
        " transaction can set this operation falsely)",
        _backfills,
    ),
)

EVERY_VERSION_READ = (
    Premise("gapless", "the versions of the log have no gaps", _gapless),
    Premise(
        "something-written",
        "every writer adds, changes or removes a row",
        _something_written,
        outside="has a writer that changes no row",
    ),
    Premise(
        "readers",
        "for each version, some transaction reads the whole table",
        _readers,
        "with a reader of the whole table at each version",
        "has a version without a reader",
    ),
)
"""Additional premises if every version is read."""


def find_violated_premises(done: Execution, premises: Sequence[Premise]) -> tuple[Premise, ...]:
    """Return the premises violated by what took effect in an execution on one table.

    Examples
    --------
    >>> from isolitmus.checker.prove.premises import PREMISES
    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> done = execute(litmus("set-from-subquery"))
    >>> [premise.name for premise in find_violated_premises(done, PREMISES)]
    ['read-files', 'read-predicates']
    """
    tables: Any = _Executed(done)
    return tuple(
        premise
        for premise in premises
        if not premise.formula(tables) or (premise.name == "snapshot" and not tables.one_version())
    )


class _Logic:
    """Connectives on truth values, in place of Z3's."""

    @staticmethod
    def And(*parts: bool) -> bool:  # noqa: N802 named as in Z3
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
    """Quantifiers over the finite sets of an execution."""

    members: Mapping[str, Sequence[Any]]

    def forall(self, sorts: Sequence[str], claim: Callable[..., bool]) -> bool:
        return all(claim(*choice) for choice in self.choices(sorts))

    def exists(self, sorts: Sequence[str], claim: Callable[..., bool]) -> bool:
        return any(claim(*choice) for choice in self.choices(sorts))

    def choices(self, sorts: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        return product(*(self.members[sort] for sort in sorts))


class _Executed:
    """Vocabulary of ``prove.formula_semantics`` for one execution.

    Transactions are indices of events, predicates indices of a transaction's reads. Rows are named
    by their ids, files by their paths.
    """

    z3 = _Logic

    def __init__(self, done: Execution) -> None:
        took_effect = [event for event in done.events if not event.aborted]
        self.events = add_unseen_deletions(add_definition_reads(took_effect))
        self.frame = delta_frame(self.events, reasons=False)
        footprints = [e.effect.footprint for e in self.events if e.effect.footprint is not None]
        width = max((len(f.schema.columns) for f in footprints), default=0)
        stored = [
            [(f.path, row) for state in version.values() for f in state.files for row in f.rows]
            for version in done.states
        ]
        self.rows = [{row.id: widen_row(row.values, width) for _, row in rows} for rows in stored]
        self.files = [{(path, row.id) for path, row in rows} for rows in stored]
        self.written = [{w.id: w for w in event.effect.writes} for event in self.events]
        self.merged = {(i, j): pair.merged.now for i, j, pair in overlaps(self.events)}
        self.items = {definition_item(table) for table in done.states[-1]}
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
        """Return whether every transaction reads one version, as the formulas assume."""
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
        """Return the pairs of a relation; none if the execution leaves some undetermined."""
        try:
            rows = self.frame.relations[name].rows
        except UndeterminedError:
            return lambda _i, _j: False
        return lambda i, j: bool(rows[i] >> j & 1)

    def definition(self, x: str) -> bool:
        return x in self.items

    def writes(self, i: int, x: str) -> bool:
        return self.writer(i) and x in self.written[i]

    def creates(self, i: int, x: str) -> bool:
        footprint = self.footprint(i)
        new = self.writes(i, x) and self.written[i][x].before is None
        return new and not (footprint is not None and footprint.settings.large)

    def matches(self, j: int, p: int, x: str, n: int) -> bool:
        """Return whether read p of j matches row x of version n, or recorded it at its snapshot."""
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

    def marks(self, i: int, f: str) -> bool:
        return f in marked_files(self.events[i].effect)

    def merges(self, i: int, j: int, f: str) -> bool:
        return f in self.merged.get((i, j), ())

    def first(self, k: int, x: str, n: int) -> bool:
        """Return whether k is the first to write row x after version n."""
        earlier = (m for m in range(len(self.events)) if n < self.version(m) < self.version(k))
        return (
            self.writes(k, x)
            and n < self.version(k)
            and not any(self.writes(m, x) for m in earlier)
        )

    def there(self, x: str, n: int) -> bool:
        return x in self.rows[n] if 0 <= n < len(self.rows) else False

    def reads_all(self, r: int, p: int, i: int) -> bool:
        alike = (self.matches(r, p, x, self.version(i)) for x in self.rows[self.version(i)])
        there = p < len(self.events[r].effect.reads)
        return there and not self.writer(r) and self.read(r) == self.version(i) and all(alike)
