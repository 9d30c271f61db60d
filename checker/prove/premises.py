"""What links the footprints of commits with what happens to rows: the premises of the proofs.

Each is a formula and its sentence. A proof lists those that it needs, and fails without any of them. They
are said of one table, and of its definition (columns and constraints) as of a row that lies in no file.
A table that generates identity values is outside: even a blind append reads what comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.prove.domain import FILE, PREDICATE, ROW, TRANSACTION, VERSION, Z3Expr

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.prove.tables import TableVocabulary

__all__ = ["EVERY_VERSION_READ", "PREMISES", "Premise"]

T = TRANSACTION


@dataclass(frozen=True, slots=True)
class Premise:
    """What is assumed of all histories over tables."""

    name: str
    """What lemmas call it."""
    sentence: str
    """What it says."""
    formula: Callable[[TableVocabulary], Z3Expr]
    """What it says, to be proved from."""
    scope: str = ""
    """Where it says what kind of statements are meant, not what a table is: the words in a theorem's headline."""
    outside: str = ""
    """And what is wrong with statements that are not meant."""


def _snapshot(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall((T,), lambda j: t.z3.Implies(t.writer(j), t.read(j) < t.version(j)))


def _put_if_absent(t: TableVocabulary) -> Z3Expr:
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


def _tracked(t: TableVocabulary, j: Z3Expr, x: Z3Expr) -> Z3Expr:
    """It is a row that a writer who read it must have recorded as read."""
    return t.z3.And(t.writer(j), t.z3.Not(t.members("Large")(j)), t.z3.Not(t.definition(x)))


def _read_files(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, PREDICATE, ROW),
        lambda j, p, x: t.z3.Implies(
            t.z3.And(_tracked(t, j, x), t.matches(j, p, x, t.read(j))),
            t.domain.exists(
                (FILE,),
                lambda f: t.z3.And(
                    t.holds(f, x, t.read(j)), t.z3.Or(t.read_file(j, f), t.removes(j, f))
                ),
            ),
        ),
    )


def _read_predicates(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, T, PREDICATE, ROW),
        lambda i, j, p, x: t.z3.Implies(
            t.z3.And(_tracked(t, j, x), i != j, t.writes(i, x), t.matches(j, p, x, t.version(i))),
            t.relation("adds-meets-reads")(i, j),
        ),
    )


def _files(t: TableVocabulary) -> Z3Expr:
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
    return t.domain.forall(
        (T, ROW),
        lambda j, x: t.z3.Implies(
            t.z3.And(t.writes(j, x), t.z3.Not(t.creates(j, x)), t.z3.Not(t.members("Large")(j))),
            t.domain.exists((PREDICATE,), lambda p: t.matches(j, p, x, t.read(j))),
        ),
    )


def _born_once(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, T, ROW),
        lambda i, j, x: t.z3.Implies(
            t.z3.And(t.creates(i, x), t.writes(j, x), i != j), t.version(i) < t.version(j)
        ),
    )


def _no_restores(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall((T,), lambda i: t.z3.Not(t.members("Large")(i)))


def _blind(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, PREDICATE, ROW, VERSION),
        lambda j, p, x, n: t.z3.Implies(
            t.members("Blind")(j),
            t.z3.Not(t.z3.Or(_matches_row(t, j, p, x, n), t.members("Large")(j))),
        ),
    )


def _compactions(t: TableVocabulary) -> Z3Expr:
    def only_moves(j: Z3Expr) -> Z3Expr:
        other = t.z3.Or(t.members("Marked")(j), t.members("Empty")(j))
        return t.z3.And(t.members("NoData")(j), t.z3.Not(other))

    return _apart_from_rows(t, only_moves)


def _backfills(t: TableVocabulary) -> Z3Expr:
    return _apart_from_rows(t, t.members("Backfill"))


def _apart_from_rows(t: TableVocabulary, who: Callable[[Z3Expr], Z3Expr]) -> Z3Expr:
    """That these writers read no row and write none."""

    def neither(j: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        nothing = t.z3.And(t.z3.Not(_matches_row(t, j, p, x, n)), t.z3.Not(t.writes(j, x)))
        return t.z3.Implies(t.z3.And(t.writer(j), who(j)), nothing)

    return t.domain.forall((T, PREDICATE, ROW, VERSION), neither)


def _matches_row(t: TableVocabulary, j: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
    return t.z3.And(t.matches(j, p, x, n), t.z3.Not(t.definition(x)))


def _definitions(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, T, ROW),
        lambda i, j, x: t.z3.Implies(
            t.z3.And(t.definition(x), t.writes(i, x), t.relation("unseen")(i, j)),
            t.relation("metadata-clashes")(i, j),
        ),
    )


def _metadata(t: TableVocabulary) -> Z3Expr:
    return t.domain.forall(
        (T, ROW),
        lambda i, x: t.z3.Implies(t.z3.And(t.definition(x), t.writes(i, x)), t.members("Meta")(i)),
    )


def _gapless(t: TableVocabulary) -> Z3Expr:
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
    return t.domain.forall(
        (T,),
        lambda i: t.z3.Implies(
            t.writer(i), t.domain.exists((T, PREDICATE), lambda r, p: t.reads_all(r, p, i))
        ),
    )


PREMISES = (
    Premise(
        "snapshot",
        "a transaction reads one version of the table, and commits a later one",
        _snapshot,
        "each of which reads one version",
        "reads another version than its own",
    ),
    Premise(
        "put-if-absent", "a version of the log is written once (put if absent)", _put_if_absent
    ),
    Premise(
        "sessions",
        "each transaction is one statement in a session of its own",
        _sessions,
        "each in a session of its own",
        "shares a session",
    ),
    Premise(
        "committed", "what a version holds was written by transactions that committed", _committed
    ),
    Premise(
        "definitions",
        "who had not seen that the table's columns or constraints were changed cannot take it over",
        _definitions,
    ),
    Premise("metadata", "who changes them writes the table's metadata", _metadata),
    Premise(
        "read-files",
        "a row that a writer read, unless it is a RESTORE, lies in a file that it recorded as read or"
        " removes: all its reads are tracked (that of the next identity value is not)",
        _read_files,
        "whose reads are all tracked",
        "has a read that is not tracked",
    ),
    Premise(
        "read-predicates",
        "a file with a row that matches what a writer reads, unless it is a RESTORE, meets a predicate"
        " that it recorded",
        _read_predicates,
        "whose reads are all tracked",
        "has a read that is not tracked",
    ),
    Premise(
        "files", "files are immutable: a row is changed only after its file was removed", _files
    ),
    Premise("rows", "a row begins to match a predicate only by being written", _rows),
    Premise(
        "read-before-written",
        "whoever changes or deletes a row, or puts it back without a RESTORE, has read it (no blind"
        " overwrites)",
        _read_before_written,
        "which have read what they change",
        "writes what it has not read",
    ),
    Premise(
        "no-restores",
        "nobody puts rows back by a RESTORE",
        _no_restores,
        "none of them a RESTORE",
        "restores",
    ),
    Premise("born-once", "the row that an insert creates is new", _born_once),
    Premise(
        "blind",
        "what says that it is a blind append is no RESTORE and reads no row of the table, nor an identity"
        " value (raw transactions apart, which may say so untruly)",
        _blind,
        "which read nothing where they append blindly",
        "reads where it appends blindly",
    ),
    Premise(
        "compactions",
        "a commit with file actions that change no data, and with no others, only moves rows: it reads and"
        " writes none (raw transactions and writes apart that say dataChange=false untruly; and what has"
        " no action is not recorded)",
        _compactions,
        "which only move rows where they change no data",
        "is recorded as changing no data, and does not only move rows",
    ),
    Premise(
        "backfills",
        "a row tracking backfill gives or takes the ids of rows: it reads and writes none (raw transactions"
        " apart, which may call themselves one untruly)",
        _backfills,
    ),
)

EVERY_VERSION_READ = (
    Premise("gapless", "the versions of the log have no gaps", _gapless),
    Premise(
        "something-written",
        "every writer puts in, changes or takes out a row",
        _something_written,
        outside="has a writer of no row",
    ),
    Premise(
        "readers",
        "of every version somebody reads the whole table",
        _readers,
        "with a reader of all of every version",
        "has a version that nobody reads",
    ),
)
"""What is assumed on top if every version is read."""
