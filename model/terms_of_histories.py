"""The terms of histories: of transactions, of what they did one by one, of orders, and of logs, whoever keeps them."""

from __future__ import annotations

from isolitmus.model.term import Term

__all__ = ["OF_HISTORIES"]

OF_HISTORIES = (
    Term("so", "histories", "session order between transactions", verb="comes before"),
    Term(
        "wr",
        "histories",
        "the second transaction read what the first wrote, item or predicate (Adya)",
        verb="is read by",
    ),
    Term(
        "ww",
        "histories",
        "the second transaction wrote the version after the first one's (Adya)",
        verb="is overwritten by",
    ),
    Term(
        "rw",
        "histories",
        "the second transaction overwrote what the first read, item or predicate (Adya)",
        verb="does not see",
    ),
    Term(
        "intermediate",
        "histories",
        "the second transaction read a version that the first, which committed, overwrote itself",
        verb="is read halfway by",
    ),
    Term(
        "wr-item",
        "items",
        "the second transaction read a version of an item that the first wrote",
        verb="is read by",
    ),
    Term(
        "wr-predicate",
        "items",
        "the second transaction read by a predicate what the first made match, or match no more",
        verb="is read by",
    ),
    Term(
        "rw-item",
        "items",
        "the second transaction overwrote a version of an item that the first read",
        verb="does not see",
    ),
    Term(
        "rw-predicate",
        "items",
        "the second transaction made match, or match no more, what the first read by a predicate",
        verb="does not see",
    ),
    Term(
        "rt",
        "times",
        "the first transaction had ended when the second began, in real time",
        verb="ends before the start of",
    ),
    Term(
        "rf", "reads", "from a transaction to a read that took its value from it", verb="is read by"
    ),
    Term(
        "po",
        "reads",
        "from an operation to the later ones of its transaction: from reads to reads, where writes are no nodes",
        verb="comes before",
    ),
    Term(
        "in",
        "reads",
        "from a read, or a write that is a node, to the transaction that it is in",
        verb="is an operation of",
    ),
    Term(
        "rival",
        "reads",
        "from another transaction that wrote what a read read, to the read",
        verb="also wrote for",
    ),
    Term(
        "fr",
        "operations",
        "from a read to another transaction, which overwrote what it read: the pairs of rw, read by read",
        verb="does not see",
    ),
    Term(
        "wr-read",
        "operations",
        "from a transaction to a read that found what it wrote: the pairs of wr, read by read",
        verb="is read by",
    ),
    Term(
        "loc",
        "operations",
        "both operations are on one object; a read by predicate and a write if it saw what was written or that changes what"
        " matches, two reads by predicate if it is one predicate",
        verb="is on the same object as",
    ),
    Term(
        "time",
        "moments",
        "the first came before the second in real time: operations, and transactions where they ended",
        verb="comes in time before",
    ),
    Term(
        "co",
        "orders",
        "a total order of the committed transactions that nobody observed (bound by a binder)",
        verb="comes before",
    ),
    Term("log", "logs", "the order of the table's versions", verb="commits before"),
    Term(
        "vis",
        "logs",
        "the first committed at or before the version that the second read; where a binder binds it,"
        " the first is in the prefix of co that the second sees",
        verb="is visible to",
    ),
    Term(
        "unseen",
        "logs",
        "the first committed to the second's table, after the version that the second read, and"
        " before the second",
        verb="is not seen by",
    ),
    Term(
        "Writer",
        "histories",
        "transactions that wrote, or were recorded as if they had",
        inside="{} writes",
        outside="{} does not write",
    ),
    Term(
        "Reader",
        "histories",
        "transactions that only read",
        inside="{} only reads",
        outside="{} does not only read",
    ),
    Term(
        "Aborted",
        "histories",
        "transactions that did not commit",
        inside="{} aborted",
        outside="{} did not abort",
    ),
    Term(
        "Initial",
        "reads",
        "the transaction that wrote what was there before",
        inside="{} is what was there before",
        outside="{} is not what was there before",
    ),
    Term(
        "ItemRead",
        "operations",
        "reads of an item, which are nodes",
        inside="{} is a read of an item",
        outside="{} is no read of an item",
    ),
    Term(
        "PredicateRead",
        "operations",
        "reads by predicate, which are nodes, one for each object",
        inside="{} is a read by predicate",
        outside="{} is no read by predicate",
    ),
    Term(
        "Write",
        "operations",
        "writes, which are nodes",
        inside="{} is a write",
        outside="{} is no write",
    ),
)
