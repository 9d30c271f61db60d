"""Vocabulary of frames: base names that a spec may use, with their meaning and wording.

Relations are in lower case, sets of nodes are capitalized. A frame has some of these names, never
all. A spec that uses a name which its frame lacks gets the answer "needs …" instead of a verdict. A
format may have terms of its own in addition (``model.format``).

``OF_HISTORIES`` are the terms of histories: transactions, their operations, orders, and logs of any
format. ``OF_DELTA`` are the terms of commits in Delta: actions, files, footprints, and kinds of
statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Of = Literal[
    "histories", "reads", "operations", "moments", "items", "times", "orders", "logs", "delta",
    "delta-rows", "delta-rs",
]  # fmt: skip
"""Group that a name belongs to.

* ``histories``: available in all histories.
* ``reads``: if reads are nodes; ``operations``: if all operations are nodes.
* ``moments``: if the history states the time of every operation.
* ``items``: if item reads and predicate reads are distinguished.
* ``times``: if the history states when transactions began and ended.
* ``orders``: orders that a binder binds.
* ``logs``: if commits become versions.
* ``delta``: commits of Delta; ``delta-rows``: commits of Delta below the level of files, if an
  execution determines them; ``delta-rs``: read sets as delta-rs tracks them.
"""

EVERYWHERE: tuple[Of, ...] = (
    "histories", "reads", "operations", "moments", "items", "times", "orders", "logs",
)  # fmt: skip
"""Groups that do not belong to a single table format."""


SET_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*", re.ASCII)
"""Pattern of the name of a set (``specs/language/cat.lark``)."""


@dataclass(frozen=True, slots=True)
class Term:
    """Base name of specs. ValueError if it lacks the wording of its kind.

    Examples
    --------
    >>> from isolitmus.model.vocabulary import RELATIONS, SETS
    >>> RELATIONS["rw"].verb, SETS["Blind"].member("a"), SETS["Blind"].member("a", inside=False)
    ('does not see', 'a is a blind append', 'a is not a blind append')
    >>> Term("waits", "locking", "the first waits for a lock of the second", verb="waits for").kind
    'relation'
    """

    name: str
    """Name in specs and frames; a set is capitalized."""
    of: str
    """Group that it belongs to: see ``Of``, or the name of the only format that has it."""
    meaning: str
    """Definition of the pairs, or of the members."""
    verb: str = ""
    """Verb of a relation, for reading an edge aloud."""
    inside: str = ""
    """Statement about a transaction in the set, with ``{}`` for the transaction."""
    outside: str = ""
    """Statement about a transaction outside the set, with ``{}`` for the transaction."""
    refines: str = ""
    """Relation of which it has some of the pairs, if it is defined by that."""

    def __post_init__(self) -> None:
        words = (self.verb,) if self.kind == "relation" else (self.inside, self.outside)
        if not all((self.meaning, *words)):
            wanted = "a verb" if self.kind == "relation" else "what is said inside and outside it"
            raise ValueError(f"the {self.kind} {self.name} needs a meaning and {wanted}")

    @property
    def kind(self) -> Literal["relation", "set"]:
        """Kind of the term; capitalized names are sets, as in every spec."""
        return "set" if self.name[0].isupper() else "relation"

    def member(self, node: str, *, inside: bool = True) -> str:
        """Return the statement that a transaction is in this set, or is not."""
        return (self.inside if inside else self.outside).format(node)


def named_set(name: str) -> Term:
    """Return the term of a set that a history names.

    Examples
    --------
    >>> named_set("Trusted").member("T1", inside=False)
    'T1 is not in Trusted'
    """
    words = f"{{}} is in {name}", f"{{}} is not in {name}"
    return Term(name, "history", "transactions that the history names", "", *words)


OF_DELTA = (
    Term(
        "protocol-clashes",
        "delta",
        "the first dropped a table feature that the second had seen, or, if a conf of the"
        " second requires it, added one that must abort others",
        verb="changes the protocol under",
    ),
    Term(
        "metadata-clashes",
        "delta",
        "the first changed the table's metadata in a way that the second, which had"
        " not seen it, cannot adopt",
        verb="changes the metadata under",
    ),
    Term(
        "same-domain",
        "delta",
        "both set one metadata domain of the table, other than that of row tracking",
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
        "a file that the first added could contain rows in the read set of the second",
        verb="adds to what is read by",
    ),
    Term(
        "removes-meets-reads",
        "delta",
        "the first removed a file that the second read, or any file, if the second"
        " is marked as reading the whole table",
        verb="removes a file read by",
    ),
    Term(
        "removes-meets-removes", "delta", "both removed one file", verb="removes a file removed by"
    ),
    Term(
        "adds-could-match",
        "delta-rs",
        "a file that the first added could contain, by its partition and statistics, rows that"
        " match the condition of the second; without a condition none match",
        verb="adds what could match the condition of",
    ),
    Term(
        "removes-could-match",
        "delta-rs",
        "the first removed a file, in the table when the second began, that could contain rows"
        " that match the condition of the second; without a condition any file does",
        verb="removes what could match the condition of",
    ),
    Term(
        "RsSerializable",
        "delta-rs",
        "transactions of delta-rs on a table that declares an isolation level which delta-rs treats"
        " as Serializable: any that it does not recognize",
        inside="{}'s table declares a level that delta-rs takes for Serializable",
        outside="{}'s table declares no level that delta-rs takes for Serializable",
    ),
    Term(
        "RsWriteSerializable",
        "delta-rs",
        "transactions of delta-rs on a table whose property delta.isolationLevel is spelled"
        " writeSerializable",
        inside="{}'s table declares writeSerializable",
        outside="{}'s table does not declare writeSerializable",
    ),
    Term(
        "RsSnapshotIsolation",
        "delta-rs",
        "transactions of delta-rs on a table whose property delta.isolationLevel is spelled"
        " snapshotIsolation",
        inside="{}'s table declares snapshotIsolation",
        outside="{}'s table does not declare snapshotIsolation",
    ),
    Term(
        "Blind",
        "delta",
        "commits that are marked as having read nothing and only added files",
        inside="{} is a blind append",
        outside="{} is not a blind append",
    ),
    Term(
        "NoData",
        "delta",
        "transactions without a file action that changes data, including those without"
        " file actions",
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
        "transactions on a table with deletion vectors enabled",
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
        "compactions that also order the rows (ZORDER BY)",
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
        "transactions with an action that concerns no file: metadata, protocol, an application"
        " id, a metadata domain other than that of row tracking",
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
        "commits whose operation assigns or removes the row ids of row tracking",
        inside="{} is a backfill of row tracking",
        outside="{} is not a backfill of row tracking",
    ),
    Term(
        "Default",
        "delta",
        "transactions on a table that is Serializable under every protocol: a statement created or"
        " replaced it, or set its isolation level",
        inside="{}'s table is Serializable under every protocol",
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
        "transactions on a clustered table on which deletion vectors are not disabled",
        inside="{}'s table is clustered",
        outside="{}'s table is not clustered",
    ),
    Term(
        "Merging",
        "delta",
        "transactions that are a MERGE",
        inside="{} is a MERGE",
        outside="{} is not a MERGE",
    ),
    Term(
        "Deleting",
        "delta",
        "transactions that are a DELETE",
        inside="{} is a DELETE",
        outside="{} is not a DELETE",
    ),
    Term(
        "Updating",
        "delta",
        "transactions that are an UPDATE",
        inside="{} is an UPDATE",
        outside="{} is not an UPDATE",
    ),
    Term(
        "Appending",
        "delta",
        "transactions that are an INSERT without OVERWRITE",
        inside="{} appends",
        outside="{} does not append",
    ),
    Term(
        "Overwriting",
        "delta",
        "transactions that are an INSERT OVERWRITE or INSERT REPLACE",
        inside="{} overwrites",
        outside="{} does not overwrite",
    ),
    Term(
        "InsertsUnmatched",
        "delta",
        "MERGEs with a clause WHEN NOT MATCHED",
        inside="{} has a clause WHEN NOT MATCHED",
        outside="{} has no clause WHEN NOT MATCHED",
    ),
    Term(
        "BySource",
        "delta",
        "MERGEs with a clause WHEN NOT MATCHED BY SOURCE",
        inside="{} has a clause WHEN NOT MATCHED BY SOURCE",
        outside="{} has no clause WHEN NOT MATCHED BY SOURCE",
    ),
    Term(
        "ReadsTarget",
        "delta",
        "transactions whose source, query or subquery reads the table that they change",
        inside="{} has a source or subquery that reads its target",
        outside="{} has no source or subquery that reads its target",
    ),
    Term(
        "AppendOnly",
        "delta",
        "transactions that remove no file",
        inside="{} removes no file",
        outside="{} removes a file",
    ),
    Term(
        "Tracked",
        "delta",
        "transactions on a table with row tracking enabled",
        inside="{}'s table tracks rows",
        outside="{}'s table does not track rows",
    ),
    Term(
        "Compacting",
        "delta",
        "transactions that rewrite files and change no row (OPTIMIZE, REORG … APPLY (PURGE))",
        inside="{} is a compaction",
        outside="{} is not a compaction",
    ),
    Term(
        "Purging",
        "delta",
        "transactions that rewrite the files that have deletion vectors (REORG … APPLY (PURGE))",
        inside="{} is a REORG",
        outside="{} is not a REORG",
    ),
    Term(
        "Vacuuming",
        "delta",
        "transactions that are a VACUUM",
        inside="{} is a VACUUM",
        outside="{} is not a VACUUM",
    ),
    Term(
        "Creating",
        "delta",
        "transactions that create or replace their table (CREATE, REPLACE)",
        inside="{} makes its table",
        outside="{} does not make its table",
    ),
    Term(
        "Complex",
        "delta",
        "transactions with a complex condition: with a subquery, a structure, an array or a map, or"
        " a non-deterministic one",
        inside="{} has a complex condition",
        outside="{} has no complex condition",
    ),
    Term(
        "Unfiltered",
        "delta",
        "MERGEs whose ON has no condition on the target alone",
        inside="{} is a MERGE whose ON says nothing of the target alone",
        outside="{} is not a MERGE whose ON says nothing of the target alone",
    ),
)


def _below_files(name: str, meaning: str, *, verb: str, refines: str = "") -> Term:
    return Term(name, "delta-rows", meaning, verb=verb, refines=refines)


OF_ROWS = (
    _below_files(
        "merges-vectors",
        "both gave some file a deletion vector, and no position of it was deleted by both: a merged"
        " file of the two",
        verb="merges vectors with",
    ),
    _below_files(
        "adds-meets-reads-unmerged",
        "adds-meets-reads without the merged files of the two",
        verb="adds, apart from merged files, to what is read by",
        refines="adds-meets-reads",
    ),
    _below_files(
        "removes-meets-reads-unmerged",
        "removes-meets-reads without the merged files of the two, and without those that the second"
        " has merged with an earlier unseen commit: it forgets that it read them",
        verb="removes, apart from merged files, a file read by",
        refines="removes-meets-reads",
    ),
    _below_files(
        "removes-meets-removes-unmerged",
        "removes-meets-removes without the merged files of the two",
        verb="removes, apart from merged files, a file removed by",
        refines="removes-meets-removes",
    ),
    _below_files(
        "removes-meets-reads-unmoved",
        "removes-meets-reads without the files that the second compacts and to which the first gave"
        " a deletion vector (moved files), or an earlier unseen commit did; none is moved if the"
        " first deleted no row of them, or one that the second had not copied",
        verb="removes, apart from moved files, a file read by",
        refines="removes-meets-reads",
    ),
    _below_files(
        "removes-meets-removes-unmoved",
        "removes-meets-removes without the moved files of the two",
        verb="removes, apart from moved files, a file removed by",
        refines="removes-meets-removes",
    ),
    _below_files(
        "adds-could-match-reads",
        "adds-meets-reads without the added files whose statistics exclude every recorded read of"
        " the second",
        verb="adds a file that could match what is read by",
        refines="adds-meets-reads",
    ),
    _below_files(
        "adds-could-match-reads-unmerged",
        "adds-could-match-reads without the merged files of the two",
        verb="adds, apart from merged files, a file that could match what is read by",
        refines="adds-could-match-reads",
    ),
    _below_files(
        "adds-match-reads",
        "adds-could-match-reads, and some row of these files satisfies a recorded read of the"
        " second",
        verb="adds a file with a row that matches what is read by",
        refines="adds-could-match-reads",
    ),
    _below_files(
        "adds-match-reads-unmerged",
        "adds-match-reads without the merged files of the two",
        verb="adds, apart from merged files, a file with a row that matches what is read by",
        refines="adds-match-reads",
    ),
    _below_files(
        "removes-could-match-reads",
        "the first removed a file that could, by its partition and statistics, contain rows that a"
        " recorded read of the second matches",
        verb="removes a file that could match what is read by",
    ),
    _below_files(
        "added-rows-match-reads",
        "the first inserted or changed a row that then satisfies a recorded read of the second",
        verb="writes a row that matches what is read by",
    ),
    _below_files(
        "removed-rows-match-reads",
        "the first deleted or changed a row that before satisfied a recorded read of the second",
        verb="removes a row that matches what is read by",
    ),
    _below_files(
        "removes-removed-row",
        "both deleted or changed one position: a row as it stands in one file",
        verb="removes a row removed by",
    ),
    _below_files(
        "removes-read-row",
        "the first deleted or changed a position of a file that the second read, and its row"
        " satisfies a recorded read of the second",
        verb="removes a row read by",
    ),
    _below_files(
        "moves-removed-row",
        "the first copied into another file a position that the second deleted or changed",
        verb="moves a row removed by",
    ),
    _below_files(
        "removes-moved-row",
        "the first deleted or changed a position that the second copied into another file",
        verb="removes a row moved by",
    ),
    _below_files(
        "moves-read-row",
        "the first copied into another file a position of a file that the second read, and its row"
        " satisfies a recorded read of the second",
        verb="moves a row read by",
    ),
    _below_files(
        "changes-changed-row",
        "both deleted or changed one row, wherever it stood: row tracking knows it by its row id",
        verb="changes a row changed by",
    ),
    _below_files(
        "same-merge-key",
        "both are a MERGE whose ON equates the same target columns with its source, and both"
        " sources have one key",
        verb="has a merge key of",
    ),
    _below_files(
        "ww-later",
        "the second wrote some version of a row after the first one's; ww is the next one only",
        verb="is overwritten, perhaps later, by",
    ),
    _below_files(
        "wr-earlier",
        "the second read a version of a row that the first wrote, or a later one than that",
        verb="wrote at or before what is read by",
    ),
    _below_files(
        "rw-later",
        "the second wrote some version of a row after the one that the first read",
        verb="does not see, perhaps later, the writes of",
    ),
)
"""Relations below the level of files: what a commit checker can know besides files."""


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
        "the second transaction read by a predicate a row that the first made match, or"
        " no longer match",
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
        "the second transaction made a row match, or no longer match, a predicate that"
        " the first read",
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
        "from an operation to later operations of its transaction: from reads to reads, if writes"
        " are not nodes",
        verb="comes before",
    ),
    Term(
        "in",
        "reads",
        "from a read, or a write that is a node, to its transaction",
        verb="is an operation of",
    ),
    Term(
        "rival",
        "reads",
        "from another transaction that wrote the object that a read read, to the read",
        verb="also wrote for",
    ),
    Term(
        "fr",
        "operations",
        "from a read to another transaction that overwrote the version read: the pairs of rw, for"
        " each read",
        verb="does not see",
    ),
    Term(
        "wr-read",
        "operations",
        "from a transaction to a read that found its write: the pairs of wr, for each read",
        verb="is read by",
    ),
    Term(
        "loc",
        "operations",
        "both operations are on one object; a predicate read and a write if the read saw the write"
        " or the write changes what matches, two predicate reads if they have the same predicate",
        verb="is on the same object as",
    ),
    Term(
        "time",
        "moments",
        "the first came before the second in real time: operations, and the ends of transactions",
        verb="comes in time before",
    ),
    Term(
        "co",
        "orders",
        "a total order of the committed transactions that was not observed (bound by a binder)",
        verb="comes before",
    ),
    Term("log", "logs", "the order of the table's versions", verb="commits before"),
    Term(
        "vis",
        "logs",
        "the first committed at or before the version that the second read; if a binder binds"
        " it, the first is in the prefix of co that the second sees",
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
        "transactions that wrote, or were recorded as writers",
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
        "the transaction that wrote the initial state",
        inside="{} is what was there before",
        outside="{} is not what was there before",
    ),
    Term(
        "ItemRead",
        "operations",
        "reads of an item, which are nodes",
        inside="{} is a read of an item",
        outside="{} is not a read of an item",
    ),
    Term(
        "PredicateRead",
        "operations",
        "reads by predicate, which are nodes, one for each object",
        inside="{} is a read by predicate",
        outside="{} is not a read by predicate",
    ),
    Term(
        "Write",
        "operations",
        "writes, which are nodes",
        inside="{} is a write",
        outside="{} is not a write",
    ),
)


TERMS = (*OF_HISTORIES, *OF_DELTA, *OF_ROWS)
"""All base names; each kind is in the order in which a frame shows it."""

RELATIONS = {term.name: term for term in TERMS if term.kind == "relation"}
SETS = {term.name: term for term in TERMS if term.kind == "set"}
BASE = RELATIONS | SETS


def relations_of(*of: Of) -> tuple[str, ...]:
    """Return the relations of these groups, in the order of the vocabulary.

    Examples
    --------
    >>> relations_of("histories", "logs")
    ('so', 'wr', 'ww', 'rw', 'intermediate', 'log', 'vis', 'unseen')
    """
    return tuple(name for name, term in RELATIONS.items() if term.of in of)


def sets_of(*of: Of) -> tuple[str, ...]:
    """Return the sets of these groups, in the order of the vocabulary.

    Examples
    --------
    >>> sets_of("histories")
    ('Writer', 'Reader', 'Aborted')
    """
    return tuple(name for name, term in SETS.items() if term.of in of)


def terms_of(*terms: str | Term) -> Mapping[str, Term]:
    """Return terms by name.

    Parameters
    ----------
    *terms : str or Term
        Names of the vocabulary, and terms that only one format has.

    Raises
    ------
    ValueError
        If the vocabulary does not have a name, or if a term has the name of another one.

    Examples
    --------
    >>> from isolitmus.model.vocabulary import Term
    >>> own = Term("waits", "locking", "the first waits for a lock of the second", verb="waits for")
    >>> [(name, term.of) for name, term in terms_of("ww", "Writer", own).items()]
    [('ww', 'histories'), ('Writer', 'histories'), ('waits', 'locking')]
    >>> terms_of("wait")
    Traceback (most recent call last):
    ValueError: the vocabulary has no 'wait'; a format's own needs its Term
    """
    found: dict[str, Term] = {}
    for term in terms:
        one = BASE.get(term) if isinstance(term, str) else term
        if one is None:
            raise ValueError(f"the vocabulary has no '{term}'; a format's own needs its Term")
        if found.setdefault(one.name, BASE.get(one.name, one)) != one:
            raise ValueError(f"'{one.name}' means something else already")
    return found


BINDERS = {"versions": "ww", "co": "ww", "linearisations": "co", "snapshots": "vis"}
"""Name that each source binds in ``with NAME from SOURCE``."""

APART = {name: name.partition("-")[0] for name in relations_of("items")}
"""Relation that covers items and predicates, for each relation that covers only one of them."""

BY_VERSIONS = frozenset(
    {"ww", "rw", "fr", *(name for name, whole in APART.items() if whole == "rw")}
)
"""Relations that depend on the version order, whatever was read."""
