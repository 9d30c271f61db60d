"""What links the footprints of commits with what happens to rows: the premises of the proofs.

Each is a formula and its sentence. A proof lists those that it needs, and fails without any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.proving.domain import FILE, PREDICATE, ROW, TRANSACTION, VERSION, Term

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.proving.tables import Tables

__all__ = ["EVERY_VERSION_READ", "PREMISES", "Premise"]

T = TRANSACTION


@dataclass(frozen=True, slots=True)
class Premise:
    """What is assumed of all histories over tables: a name, a sentence, a formula."""

    name: str
    sentence: str
    formula: Callable[[Tables], Term]


def _snapshot(t: Tables) -> Term:
    return t.domain.forall((T,), lambda j: t.z3.Implies(t.writer(j), t.read(j) < t.version(j)))


def _put_if_absent(t: Tables) -> Term:
    return t.domain.forall(
        (T, T),
        lambda i, j: t.z3.Implies(
            t.z3.And(t.writer(i), t.writer(j), i != j), t.version(i) != t.version(j)
        ),
    )


def _sessions(t: Tables) -> Term:
    return t.domain.forall((T, T), lambda i, j: t.z3.Not(t.relation("so")(i, j)))


def _committed(t: Tables) -> Term:
    return t.domain.forall(
        (T,), lambda i: t.z3.Implies(t.writer(i), t.z3.Not(t.members("Aborted")(i)))
    )


def _read_files(t: Tables) -> Term:
    return t.domain.forall(
        (T, PREDICATE, ROW),
        lambda j, p, x: t.z3.Implies(
            t.z3.And(t.writer(j), t.matches(j, p, x, t.read(j))),
            t.domain.exists(
                (FILE,), lambda f: t.z3.And(t.holds(f, x, t.read(j)), t.read_file(j, f))
            ),
        ),
    )


def _read_predicates(t: Tables) -> Term:
    return t.domain.forall(
        (T, T, PREDICATE, ROW),
        lambda i, j, p, x: t.z3.Implies(
            t.z3.And(t.writer(j), i != j, t.writes(i, x), t.matches(j, p, x, t.version(i))),
            t.relation("adds-meets-reads")(i, j),
        ),
    )


def _files(t: Tables) -> Term:
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


def _rows(t: Tables) -> Term:
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


def _read_before_written(t: Tables) -> Term:
    return t.domain.forall(
        (T, ROW),
        lambda j, x: t.z3.Implies(
            t.z3.And(t.writes(j, x), t.z3.Not(t.creates(j, x))),
            t.domain.exists((PREDICATE,), lambda p: t.matches(j, p, x, t.read(j))),
        ),
    )


def _born_once(t: Tables) -> Term:
    return t.domain.forall(
        (T, T, ROW),
        lambda i, j, x: t.z3.Implies(
            t.z3.And(t.creates(i, x), t.writes(j, x), i != j), t.version(i) < t.version(j)
        ),
    )


def _blind(t: Tables) -> Term:
    return t.domain.forall(
        (T, PREDICATE, ROW, VERSION),
        lambda j, p, x, n: t.z3.Implies(t.members("Blind")(j), t.z3.Not(t.matches(j, p, x, n))),
    )


def _compactions(t: Tables) -> Term:
    def moves(j: Term, p: Term, x: Term, n: Term) -> Term:
        rows_only_move = t.z3.And(t.z3.Not(t.matches(j, p, x, n)), t.z3.Not(t.writes(j, x)))
        unchanged = t.z3.And(t.members("NoData")(j), t.z3.Not(t.members("Empty")(j)))
        return t.z3.Implies(t.z3.And(t.writer(j), unchanged), rows_only_move)

    return t.domain.forall((T, PREDICATE, ROW, VERSION), moves)


def _gapless(t: Tables) -> Term:
    return t.domain.forall(
        (T, T),
        lambda i, j: t.z3.Implies(
            t.relation("log")(i, j),
            t.domain.exists(
                (T,), lambda k: t.z3.And(t.writer(k), t.version(k) == t.version(i) + 1)
            ),
        ),
    )


def _something_written(t: Tables) -> Term:
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


def _readers(t: Tables) -> Term:
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
    ),
    Premise(
        "put-if-absent", "a version of the log is written once (put if absent)", _put_if_absent
    ),
    Premise("sessions", "each transaction is one statement in a session of its own", _sessions),
    Premise(
        "committed", "what a version holds was written by transactions that committed", _committed
    ),
    Premise(
        "read-files",
        "a row that a writer read lies in a file that it recorded as read: all its reads are tracked",
        _read_files,
    ),
    Premise(
        "read-predicates",
        "a file with a row that matches what a writer reads meets a predicate that it recorded",
        _read_predicates,
    ),
    Premise(
        "files", "files are immutable: a row is changed only after its file was removed", _files
    ),
    Premise("rows", "a row begins to match a predicate only by being written", _rows),
    Premise(
        "read-before-written",
        "whoever changes or deletes a row has read it (no blind overwrites)",
        _read_before_written,
    ),
    Premise("born-once", "the row that an insert creates is new", _born_once),
    Premise("blind", "what says that it is a blind append reads no row of the table", _blind),
    Premise(
        "compactions",
        "a commit whose file actions change no data only moves rows: it reads and writes none",
        _compactions,
    ),
)

EVERY_VERSION_READ = (
    Premise("gapless", "the versions of the log have no gaps", _gapless),
    Premise(
        "something-written", "every writer puts in, changes or takes out a row", _something_written
    ),
    Premise("readers", "of every version somebody reads the whole table", _readers),
)
"""What is assumed on top if every version is read."""
