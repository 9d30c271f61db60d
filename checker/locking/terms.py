"""What frames of scans have besides what any frame has."""

from __future__ import annotations

from isolitmus.model.term import Term

__all__ = ["AGAIN", "BEFORE", "MISSES", "OWN", "SAME", "SCAN", "TORN", "UNDER"]

AGAIN, BEFORE, MISSES, SAME, SCAN, TORN, UNDER = (
    "again", "before", "misses", "same", "scan", "Torn", "under",
)  # fmt: skip
FORM = "locking"
OWN = (
    Term(
        BEFORE, FORM, "from a transaction that had committed to a read that was made then",
        verb="had committed before",
    ),
    Term(SCAN, FORM, "from a read to the later reads of the same scan", verb="is read by the scan of"),
    Term(
        SAME, FORM, "from a read to the later reads of the same row in one statement",
        verb="is read once more by",
    ),
    Term(
        AGAIN, FORM, "from a read to the later reads of the same row in one transaction",
        verb="is read again by",
    ),
    Term(
        UNDER, FORM, "from a read to a transaction that wrote its row, and committed, before the reader ended",
        verb="is changed under its reader by",
    ),
    Term(
        MISSES, FORM,
        "the first moved a row that was there all the time so that a scan of the second did not come to it",
        verb="hides a row from",
    ),
    Term(
        TORN, FORM, "transactions with a statement whose scans give what was there at no one moment",
        inside="what a statement of {} read was there at no one moment",
        outside="what each statement of {} read was there at one moment",
    ),
)  # fmt: skip
