"""Premises about rows, statistics and positions, for proofs of rules below the level of files.

They relate the relations of ``checker.delta.row_overlaps`` to rows. With deletion vectors a row
stays in its path until it is changed: whoever first does removes that path, unless another commit
has removed it for good meanwhile. (An UPDATE then puts the row into another path.) So a commit that
changes a row of a merged file is the one that the loser was merged with, and the row is one of
those that it newly deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.prove.formula_semantics import (
    FILE,
    PREDICATE,
    ROW,
    TRANSACTION,
    VERSION,
    Z3Expr,
)
from isolitmus.checker.prove.premises import Premise, matches_row, only_moves, tracked_read

if TYPE_CHECKING:
    from isolitmus.checker.prove.formula_semantics import TableVocabulary

T = TRANSACTION
SCOPE = "with tracked reads only"
OUTSIDE = "has an untracked read"

BY_ROWS = ("adds-could-match-reads", "adds-match-reads", "added-rows-match-reads")
"""Relations that hold if the first wrote a row that matches a read of the second."""
IN_NEW_FILES = (
    "adds-meets-reads-unmerged",
    "adds-could-match-reads-unmerged",
    "adds-match-reads-unmerged",
)
"""The same, if the row is not in a merged file."""


def _written_rows(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a written row that matches a tracked read meets the relations."""

    def meets(i: Z3Expr, j: Z3Expr, p: Z3Expr, x: Z3Expr) -> Z3Expr:
        written = t.z3.And(t.writes(i, x), t.matches(j, p, x, t.version(i)))
        restored = t.z3.And(t.members("Large")(i), t.relation("merges-vectors")(i, j))
        every = [t.relation(name)(i, j) for name in BY_ROWS]
        every += [t.z3.Or(t.relation(name)(i, j), restored) for name in IN_NEW_FILES]
        return t.z3.Implies(t.z3.And(tracked_read(t, j, x), i != j, written), t.z3.And(*every))

    return t.domain.forall((T, T, PREDICATE, ROW), meets)


def _first_change(t: TableVocabulary, i: Z3Expr, j: Z3Expr, p: Z3Expr, x: Z3Expr) -> Z3Expr:
    """Return the formula that i is the first to change a row that j, by a tracked read, had
    read.
    """
    read = t.z3.And(tracked_read(t, j, x), t.matches(j, p, x, t.read(j)))
    return t.z3.And(read, i != j, t.first(i, x, t.read(j)))


def _removed_rows(t: TableVocabulary) -> Z3Expr:
    """Return the formula that the first change of a row that was read meets the relation."""
    return t.domain.forall(
        (T, T, PREDICATE, ROW),
        lambda i, j, p, x: t.z3.Implies(
            _first_change(t, i, j, p, x), t.relation("removed-rows-match-reads")(i, j)
        ),
    )


def _removed_positions(t: TableVocabulary) -> Z3Expr:
    """Return the formula that such a change, of a file that was read, meets removes-read-row."""
    return t.domain.forall(
        (T, T, PREDICATE, ROW, FILE),
        lambda i, j, p, x, f: t.z3.Implies(
            t.z3.And(
                _first_change(t, i, j, p, x),
                t.holds(f, x, t.read(j)),
                t.z3.Or(t.read_file(j, f), t.removes(j, f)),
                t.removes(i, f),
            ),
            t.relation("removes-read-row")(i, j),
        ),
    )


def _vectors(t: TableVocabulary) -> Z3Expr:
    """Return the formula that whoever first changes a row removes its file, or it was moved."""

    def removed(f: Z3Expr, x: Z3Expr, n: Z3Expr, i: Z3Expr) -> Z3Expr:
        def by(k: Z3Expr) -> Z3Expr:
            within = t.z3.And(n < t.version(k), t.version(k) <= t.version(i))
            again = t.z3.Or(k == i, t.z3.Not(t.marks(k, f)))
            return t.z3.And(t.writer(k), t.removes(k, f), within, again)

        changed = t.z3.And(t.holds(f, x, n), t.first(i, x, n), n < t.version(i))
        return t.z3.Implies(changed, t.domain.exists((T,), by))

    return t.domain.forall((FILE, ROW, VERSION, T), removed)


def _merged_files(t: TableVocabulary) -> Z3Expr:
    """Return the formula that a file removed by both is merged, or meets the relations; that a
    merged one was marked by both.
    """

    def either(i: Z3Expr, j: Z3Expr, f: Z3Expr) -> Z3Expr:
        z3 = t.z3
        merged = t.merges(i, j, f)
        marked = z3.And(t.marks(i, f), t.marks(j, f), t.relation("merges-vectors")(i, j))
        both = t.relation("removes-meets-removes-unmerged")(i, j)
        read = t.relation("removes-meets-reads-unmerged")(i, j)
        removed = z3.And(t.removes(i, f), t.removes(j, f))
        only_read = z3.And(t.removes(i, f), t.read_file(j, f), z3.Not(t.removes(j, f)))
        return z3.Implies(
            i != j,
            z3.And(
                z3.Implies(merged, marked),
                z3.Implies(removed, z3.Or(merged, both)),
                z3.Implies(only_read, read),
            ),
        )

    return t.domain.forall((T, T, FILE), either)


def _moved_files(t: TableVocabulary) -> Z3Expr:
    """Return the formula that moved files are those of a loser that changes no data."""

    def either(i: Z3Expr, j: Z3Expr, f: Z3Expr) -> Z3Expr:
        met = t.z3.And(i != j, t.removes(i, f), t.z3.Or(t.read_file(j, f), t.removes(j, f)))
        unmoved = (
            t.relation("removes-meets-reads-unmoved")(i, j),
            t.relation("removes-meets-removes-unmoved")(i, j),
        )
        compacts = t.z3.And(t.members("NoData")(j), t.z3.Not(t.members("Marked")(j)))
        return t.z3.Implies(met, t.z3.Or(*unmoved, compacts))

    return t.domain.forall((T, T, FILE), either)


def _compactions(t: TableVocabulary) -> Z3Expr:
    """Return the formula that compactions whose files no unseen RESTORE replaced read and write no
    row.
    """

    def neither(j: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        def replaced(k: Z3Expr) -> Z3Expr:
            both = t.z3.And(t.relation("unseen")(k, j), t.relation("removes-meets-removes")(k, j))
            return t.z3.And(t.members("Large")(k), both)

        nothing = t.z3.And(t.z3.Not(matches_row(t, j, p, x, n)), t.z3.Not(t.writes(j, x)))
        moves = t.z3.And(t.writer(j), only_moves(t, j))
        return t.z3.Implies(moves, t.z3.Or(nothing, t.domain.exists((T,), replaced)))

    return t.domain.forall((T, PREDICATE, ROW, VERSION), neither)


COMPACTIONS = Premise(
    "compactions",
    "a commit all of whose file actions have dataChange=false only moves rows, unless a RESTORE"
    " that it has not seen replaced one of its files: it may drop the rows that came back",
    _compactions,
    "which only move rows if marked dataChange=false",
    "is marked dataChange=false, but does not only move rows",
)
"""Premise of rules by which a compaction moves files that are not as it had read them."""
ROW_LEVEL_PREMISES = (
    Premise(
        "written-rows",
        "a file with a new or changed row that matches a read of a writer (not a RESTORE) is no"
        " merged file, unless a RESTORE brought the row back, and neither its statistics nor its"
        " rows exclude the read as it was recorded",
        _written_rows,
        SCOPE,
        OUTSIDE,
    ),
    Premise(
        "removed-rows",
        "a row that a writer (not a RESTORE) read satisfies that read as it was recorded, when"
        " another commit first deletes or changes it",
        _removed_rows,
        SCOPE,
        OUTSIDE,
    ),
    Premise(
        "removed-positions",
        "such a row stands in a file that the writer recorded as read",
        _removed_positions,
        SCOPE,
        OUTSIDE,
    ),
    Premise(
        "vectors",
        "a row stays in its path until a commit changes it: the first one that does removes that"
        " path, unless another commit has removed it since, without a deletion vector",
        _vectors,
    ),
    Premise(
        "merged-files",
        "a file that both commits removed is merged only if both gave it a deletion vector",
        _merged_files,
    ),
    Premise("moved-files", "a loser that moves files changes no data", _moved_files),
)
"""Premises of rules that look below the level of files."""
