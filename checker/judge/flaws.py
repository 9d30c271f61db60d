"""Reads that no order of transactions explains: a history that has one is allowed by no level.

This is the one rule that stands in no level's text, for it is about what a history is. A transaction reads what somebody wrote, and
of what it wrote itself the newest: for Adya, Liskov and O'Neil (ICDE 2000, section 4) each history is so, whatever its
levels say; Biswas and Enea (OOPSLA 2019) suppose it of theirs; Cerone, Bernardi and Gotsman (CONCUR 2015) have it as the axioms
INT and EXT of their weakest model, Crooks and others (PODC 2017) as the read states of an operation. What was aborted, and what
its writer overwrote, somebody did write: that is a matter of the levels' texts.

Choices. It holds of transactions that committed: one that did not may have read anything. What is read after an own write and is
something else is an own write missed, whoever wrote what was read, as in recorded histories (``checker.blackbox.read_from``). Of a
read by predicate only the versions that it names count: of the others nobody says whether it saw an own one. Before and after are
those of one transaction; who read before another wrote, in real time, is a matter of the levels that look at time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.operations import INITIAL, Write, read_versions
from isolitmus.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.operations import Transaction, Version
    from isolitmus.model.recorded import Recorded

__all__ = ["FLAWS", "flaws_of"]

FLAWS = {
    "thin-air-read": "thin-air read",
    "aborted-read": "aborted read (G1a)",
    "intermediate-read": "intermediate read (G1b)",
    "future-read": "future read",
    "lost-own-write": "own write missed",
    "dirty-write": "dirty write (G0)",
    "lost-append": "lost append",
    "duplicate-element": "duplicate element",
    "incompatible-order": "incompatible orders",
}
"""By kind of flaw, its name: of recorded lists all of them, of registers the first five, of written histories the first, and
those about own writes.
"""


def flaws_of(history: Recorded) -> Iterator[tuple[str, Transaction, Reason]]:
    """Of each such read its kind, the transaction that has it, and why nothing explains it; in the order of operations.

    >>> from isolitmus.model.history import History
    >>> for kind, _, why in flaws_of(History.parse("r1(z3) r1(x1) w1(x1) r1(x0)")): print(kind, "-", why)
    thin-air-read - r(z3) of T1 reads z3, and there is no T3
    future-read - r(x1) of T1 reads x1 before its own w(x1)
    lost-own-write - r(x0) of T1 reads x0 after its own w(x1), which it would have seen
    """
    written = {t.number: {*t.written} for t in history.transactions}
    for transaction in history.transactions:
        own: dict[str, Version] = {}
        for operation in transaction.operations:
            if isinstance(operation, Write):
                own[operation.version.object] = operation.version
                continue
            for version in read_versions(operation):
                nouns = {"read": str(operation), "reader": transaction.name, "version": version}
                last, writer = own.get(version.object), version.writer
                if last is not None:
                    if version != last:
                        why = Reason.of("lost own write", write=f"w({last})", **nouns)
                        yield "lost-own-write", transaction, why
                elif version in written.get(writer, ()):
                    if writer == transaction.number:
                        why = Reason.of("future read", write=f"w({version})", **nouns)
                        yield "future-read", transaction, why
                elif writer != INITIAL:
                    there = writer in written
                    why = Reason.of("thin air", writer=f"T{writer}", there=there, **nouns)
                    yield "thin-air-read", transaction, why
