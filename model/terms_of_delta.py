"""The terms of commits as Delta has them: actions, files, footprints, kinds of statements."""

from __future__ import annotations

from isolitmus.model.term import Term

__all__ = ["OF_DELTA"]

OF_DELTA = (
    Term(
        "protocol-clashes",
        "delta",
        "the first took a table feature away that the second had seen, or, where the"
        " second asks for it, added one that must fail others",
        verb="changes the protocol under",
    ),
    Term(
        "metadata-clashes",
        "delta",
        "the first changed the table's metadata in a way that the second, which had"
        " not seen it, cannot take over",
        verb="changes the metadata under",
    ),
    Term(
        "same-domain",
        "delta",
        "both set one domain of the table's metadata, row tracking's apart",
        verb="sets the domain of",
    ),
    Term(
        "writes-read-app",
        "delta",
        "the first set an application id that the second had looked up",
        verb="sets the application id read by",
    ),
    Term(
        "adds-meets-reads",
        "delta",
        "a file that the first added could hold what the second read",
        verb="adds to what is read by",
    ),
    Term(
        "removes-meets-reads",
        "delta",
        "the first removed a file that the second read, or any, where the second"
        " is marked as reading the whole table",
        verb="removes a file read by",
    ),
    Term(
        "removes-meets-removes", "delta", "both removed one file", verb="removes a file removed by"
    ),
    Term(
        "adds-could-match",
        "delta-rs",
        "a file that the first added could hold, by its partition and statistics, what"
        " the second's own condition asks for: nothing, if it has none",
        verb="adds what could match the condition of",
    ),
    Term(
        "removes-could-match",
        "delta-rs",
        "the first removed a file, there when the second began, that could hold what"
        " its own condition asks for: any, if it has none",
        verb="removes what could match the condition of",
    ),
    Term(
        "RsSerializable",
        "delta-rs",
        "transactions of delta-rs on a table that declares an isolation level which delta-rs takes for"
        " Serializable: any that it does not read",
        inside="{}'s table declares a level that delta-rs takes for Serializable",
        outside="{}'s table declares no level that delta-rs takes for Serializable",
    ),
    Term(
        "RsWriteSerializable",
        "delta-rs",
        "transactions of delta-rs on a table whose property delta.isolationLevel is spelled writeSerializable",
        inside="{}'s table declares writeSerializable",
        outside="{}'s table does not declare writeSerializable",
    ),
    Term(
        "RsSnapshotIsolation",
        "delta-rs",
        "transactions of delta-rs on a table whose property delta.isolationLevel is spelled snapshotIsolation",
        inside="{}'s table declares snapshotIsolation",
        outside="{}'s table does not declare snapshotIsolation",
    ),
    Term(
        "Blind",
        "delta",
        "commits that say of themselves that they read nothing and only added files",
        inside="{} is a blind append",
        outside="{} is no blind append",
    ),
    Term(
        "NoData",
        "delta",
        "transactions without a file action that changes data, also those without any",
        inside="{} changes no data",
        outside="{} changes data",
    ),
    Term(
        "ChangesData",
        "delta",
        "transactions whose operation may change data (all DML; not OPTIMIZE)",
        inside="{} is of a kind that changes data",
        outside="{} is not of a kind that changes data",
    ),
    Term(
        "Empty",
        "delta",
        "transactions with nothing to record: no action at all",
        inside="{} has nothing to record",
        outside="{} has something to record",
    ),
    Term(
        "Vectors",
        "delta",
        "transactions on a table whose rows are deleted by marking them in vectors",
        inside="{}'s table has deletion vectors",
        outside="{}'s table has no deletion vectors",
    ),
    Term(
        "Partitioned",
        "delta",
        "transactions on a table that has partitions",
        inside="{}'s table has partitions",
        outside="{}'s table has no partitions",
    ),
    Term(
        "Ordering",
        "delta",
        "compactions that put the rows in an order besides (ZORDER BY)",
        inside="{} orders the rows",
        outside="{} does not order the rows",
    ),
    Term(
        "Meta",
        "delta",
        "transactions that write the table's metadata, changed or not",
        inside="{} writes the metadata",
        outside="{} does not write the metadata",
    ),
    Term(
        "Protocol",
        "delta",
        "transactions that write the table's protocol, changed or not",
        inside="{} writes the protocol",
        outside="{} does not write the protocol",
    ),
    Term(
        "Marked",
        "delta",
        "transactions with an action that is about no file: metadata, protocol, an application"
        " id, a domain other than row tracking's",
        inside="{} has an action that is about no file",
        outside="{} has actions on files only",
    ),
    Term(
        "Large",
        "delta",
        "commits that try the next version only (commitLarge: RESTORE, CLONE, CONVERT)",
        inside="{} tries the next version only",
        outside="{} tries further versions",
    ),
    Term(
        "Backfill",
        "delta",
        "commits whose operation gives or takes the row ids of row tracking",
        inside="{} is a backfill of row tracking",
        outside="{} is no backfill of row tracking",
    ),
    Term(
        "Default",
        "delta",
        "transactions on a table that is Serializable whatever the protocol: a statement made or"
        " replaced it, or set its isolation level",
        inside="{}'s table is Serializable, whatever the protocol",
        outside="{}'s table has the protocol's isolation level",
    ),
    Term(
        "SetSerializable",
        "delta",
        "transactions on a table whose property delta.isolationLevel is Serializable",
        inside="{}'s table is set to Serializable",
        outside="{}'s table is not set to Serializable",
    ),
    Term(
        "SetWriteSerializable",
        "delta",
        "transactions on a table whose property delta.isolationLevel is WriteSerializable",
        inside="{}'s table is set to WriteSerializable",
        outside="{}'s table is not set to WriteSerializable",
    ),
    Term(
        "Identity",
        "delta",
        "transactions on a table that has identity columns",
        inside="{}'s table has identity columns",
        outside="{}'s table has no identity columns",
    ),
    Term(
        "Clustered",
        "delta",
        "transactions on a table that is clustered and does not say no to deletion vectors",
        inside="{}'s table is clustered",
        outside="{}'s table is not clustered",
    ),
    Term(
        "Merging",
        "delta",
        "transactions that are a MERGE",
        inside="{} is a MERGE",
        outside="{} is no MERGE",
    ),
    Term(
        "Deleting",
        "delta",
        "transactions that are a DELETE",
        inside="{} is a DELETE",
        outside="{} is no DELETE",
    ),
    Term(
        "Compacting",
        "delta",
        "transactions that rewrite files and change no row (OPTIMIZE, REORG … APPLY (PURGE))",
        inside="{} is a compaction",
        outside="{} is no compaction",
    ),
    Term(
        "Purging",
        "delta",
        "transactions that rewrite the files that have deletion vectors (REORG … APPLY (PURGE))",
        inside="{} is a REORG",
        outside="{} is no REORG",
    ),
    Term(
        "Vacuuming",
        "delta",
        "transactions that are a VACUUM",
        inside="{} is a VACUUM",
        outside="{} is no VACUUM",
    ),
    Term(
        "Creating",
        "delta",
        "transactions that make their table, or put another in its place (CREATE, REPLACE)",
        inside="{} makes its table",
        outside="{} does not make its table",
    ),
    Term(
        "Complex",
        "delta",
        "transactions with a complex condition: with a subquery, a structure, an array or a map, or one that is not"
        " deterministic",
        inside="{} has a complex condition",
        outside="{} has no complex condition",
    ),
    Term(
        "Unfiltered",
        "delta",
        "MERGEs whose ON says nothing of the target alone",
        inside="{} is a MERGE whose ON says nothing of the target alone",
        outside="{} is no MERGE whose ON says nothing of the target alone",
    ),
)
