"""The base names that a spec may use, and what each means: the vocabulary that frames speak.

Lower case are relations, capitals are sets of nodes. A frame has some of these names, never all; a
spec that uses one which its frame lacks gets the answer "needs …" instead of a verdict.
"""

from __future__ import annotations

__all__ = ["BASE", "BINDERS", "RELATIONS", "SETS"]

RELATIONS = {
    "so": "session order between transactions",
    "wr": "the second transaction read what the first wrote, item or predicate (Adya)",
    "ww": "the second transaction wrote the version after the first one's (Adya)",
    "rw": "the second transaction overwrote what the first read, item or predicate (Adya)",
    "rf": "from a transaction to a read that took its value from it",
    "po": "from a read to the later reads of its transaction",
    "in": "from a read to the transaction that it is in",
    "rival": "from another transaction that wrote what a read read, to the read",
    "co": "a total order of the transactions that nobody observed (bound by a binder)",
    "log": "the order of the table's versions",
    "vis": "the first committed at or before the version that the second read",
    "unseen": "the first committed to the second's table, after the version that the second read, and"
    " before the second",
    "protocol-clashes": "the first took a table feature away that the second had seen, or, where the"
    " second asks for it, added one that must fail others",
    "metadata-clashes": "the first changed the table's metadata in a way that the second, which had"
    " not seen it, cannot take over",
    "same-domain": "both set one domain of the table's metadata, row tracking's apart",
    "writes-read-app": "the first set an application id that the second had looked up",
    "adds-meets-reads": "a file that the first added could hold what the second read",
    "removes-meets-reads": "the first removed a file that the second read, or any, where the second"
    " is marked as reading the whole table",
    "removes-meets-removes": "both removed one file",
    "adds-could-match": "a file that the first added could hold, by its partition and statistics, what"
    " the second's own condition asks for: nothing, if it has none",
    "removes-could-match": "the first removed a file, there when the second began, that could hold what"
    " its own condition asks for: any, if it has none",
}

SETS = {
    "Writer": "transactions that wrote, or were recorded as if they had",
    "Reader": "transactions that only read",
    "Aborted": "transactions that did not commit",
    "Blind": "commits that say of themselves that they read nothing and only added files",
    "NoData": "transactions without a file action that changes data, also those without any",
    "ChangesData": "transactions whose operation may change data (all DML; not OPTIMIZE)",
    "Empty": "transactions with nothing to record: no action at all",
    "Vectors": "transactions on a table whose rows are deleted by marking them in vectors",
    "Partitioned": "transactions on a table that has partitions",
    "Ordering": "compactions that put the rows in an order besides (ZORDER BY)",
    "Meta": "transactions that write the table's metadata, changed or not",
    "Protocol": "transactions that write the table's protocol, changed or not",
    "Marked": "transactions with an action that is about no file: metadata, protocol, an application"
    " id, a domain other than row tracking's",
    "Large": "commits that try the next version only (commitLarge: RESTORE, CLONE, CONVERT)",
    "Backfill": "commits whose operation gives or takes the row ids of row tracking",
    "Default": "transactions on a table whose metadata says no isolation level: a statement made or"
    " replaced it",
}

BASE = frozenset(RELATIONS) | frozenset(SETS)

BINDERS = {"versions": "ww", "linearisations": "co"}
"""``with NAME from SOURCE``: the sources of orders that nobody observed, and the name each binds."""
