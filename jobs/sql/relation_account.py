"""Account of the relations of a statement: its text as written against the statement as modelled.

Each relation that the text names is one of these:

* the table that the statement writes to;
* a declared table. The transaction records each scan of its own table (OptimisticTransaction,
  filterFiles; PrepareDeltaScan), so the model has to have the same number of scans. Scans of other
  tables are recorded by no transaction of this table, but the result depends on them, so the
  statement is said to read them;
* a view, a query of WITH or a function, which leads to relations that are counted in its place;
* a relation without DDL, which is assumed to be no declared table (`UndeclaredSource` says so);
* an older version, or the changes, of a declared table. No transaction records these, also not of
  its own table (PrepareDeltaScan.scala, line 79: time travel is not prepared in the transaction;
  CDCReader has an index of its own). The result depends on them, unless the version is the same in
  each run.

Everything else may read the own table, and is an error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.jobs.sql.relations import (
    FORMATS,
    find_scans,
    name_of_node,
    target_node,
    text_tree,
    with_schema,
)
from isolitmus.model.sql.expression import Subquery
from isolitmus.model.sql.query import Origin, Select
from isolitmus.model.sql.statement import Create, Delete, Insert, Merge, Read, Replace, Update

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.jobs.sql.relations import (
        DefinedRelation,
        RelationName,
        RelationScans,
        SqlSession,
    )
    from isolitmus.model.sql.statement import Statement

WITH_QUERIES = (Create, Delete, Insert, Merge, Read, Replace, Update)
"""Statements that may have a query; the grammar of the others has one table, and no relation."""


class RelationAccount(NamedTuple):
    """Tables and definitions that relations are resolved with."""

    tables: Mapping[str, RelationName]
    """Full name of each declared table, by its name in the workload."""
    locations: Mapping[str, str] = {}
    """Folder of each table that has a LOCATION, by its name in the workload."""
    elsewhere: tuple[DefinedRelation, ...] = ()
    """Views and functions that statements of any session see."""

    @property
    def key(self) -> tuple[object, ...]:
        """All that an account depends on, as plain values."""
        defined = tuple((*one.name.parts, one.kind, one.text) for one in self.elsewhere)
        names = tuple((table, *full.parts) for table, full in self.tables.items())
        return names, tuple(self.locations.items()), defined

    def close(
        self, text: str, statement: Statement, session: SqlSession, covered: Iterable[str]
    ) -> tuple[frozenset[str], str]:
        """Return the tables that a statement reads beside the scans that are modelled, and what is
        wrong.

        Parameters
        ----------
        text : str
            The statement as written.
        statement : Statement
            The statement as modelled, after all rewriting.
        session : SqlSession
            What the statements before it define.
        covered : iterable of str
            Tables whose rows are those of uninterpreted sources of the statement.

        Returns
        -------
        tables : frozenset of str
            Declared tables of which any row may matter, and no transaction records that.
        problem : str
            Why it may read its own table otherwise than the model says; empty if it does not.
        """
        if not isinstance(statement, WITH_QUERIES):
            return frozenset(), ""
        scans = find_scans(text, session, self.elsewhere)
        own = None if isinstance(statement, Read) else statement.target
        if scans.problems:
            return frozenset(), scans.problems[0]
        modelled = modelled_scans(statement)
        others = {
            table
            for table in self.named_tables(scans) - {own, *covered}
            if self._scanned(scans, table) != (modelled[table], False)
        }
        if own is not None and any(name.may_be(self.tables[own]) for name in scans.others):
            others.add(own)
        problem = "" if own is None else self._own_problem(text, own, scans, session)
        if own is not None and not problem:
            count = self._scanned(scans, own)[0]
            whole = _reads_whole(statement) and (own in covered or modelled[own])
            if count != modelled[own] and not whole:
                problem = (
                    f"the text reads {own} {_times(count)}, but is understood to read it"
                    f" {_times(modelled[own])}"
                )
        return frozenset(others), problem

    def _scanned(self, scans: RelationScans, table: str) -> tuple[int, bool]:
        """Return how often the newest version of a table is read, and whether it may be read
        otherwise.
        """
        full = self.tables[table]
        count = sum(number for name, number in scans.counts.items() if name.may_be(full))
        otherwise = any(name.may_be(full) for name in scans.others)
        return count, otherwise or self._at_location(table, scans) or bool(scans.words[full.last])

    def named_tables(self, scans: RelationScans) -> set[str]:
        """Return the declared tables that may be among what is read."""
        names = {*scans.counts, *scans.others}
        return {
            table
            for table, full in self.tables.items()
            if any(name.may_be(full) for name in names)
            or scans.words[full.last]
            or self._at_location(table, scans)
        }

    def read_by(self, text: str, session: SqlSession) -> frozenset[str]:
        """Return the declared tables that a text may read; all of them if that is not known."""
        scans = find_scans(text, session, self.elsewhere)
        return frozenset(self.tables if scans.problems else self.named_tables(scans))

    def named_in(self, text: str, session: SqlSession) -> frozenset[str] | None:
        """Return the declared tables that a statement may read or write, and ``*.x`` if a name may
        be that of an undeclared table ``x``; None if it may be others.

        It may if it does not parse, or names a relation that is not declared, or a path.
        """
        scans = find_scans(text, session, self.elsewhere)
        tree = text_tree(text)
        names = {*scans.counts, *scans.others}
        target = None if tree is None else target_node(tree)
        if tree is None or scans.problems or scans.paths:
            return None
        if target is not None:
            written = name_of_node(target)
            if written is None:
                return None
            names.add(with_schema(written, session.used))
        declared = [*self.tables.values()]
        if not all(any(name.may_be(full) for full in declared) for name in names):
            return None
        # a placeholder may be the schema of a declared table, or another one
        others = {name.last for name in names if not any(map(name.agrees, declared))}
        if any("$" in last for last in others):
            return None
        scans.counts.update(names)
        tables = frozenset(self.named_tables(scans)).union(f"*.{last}" for last in others)
        # a statement that names no table may have one that is none for the parser: DROP SCHEMA
        return tables if tables or isinstance(tree, exp.Query) else None

    def undeclared_target(self, text: str, session: SqlSession) -> str:
        """Return ``*.x`` if a statement changes rows of a table ``x`` that is none of the declared
        ones; empty if it may be one.
        """
        tree = text_tree(text)
        target = None if isinstance(tree, exp.Create) else target_node(tree)
        written = None if target is None else name_of_node(target)
        if find_scans(text, session, self.elsewhere).problems:
            return ""
        if written is None or (len(written.parts) == 2 and written.parts[0] in FORMATS):
            return ""
        full = with_schema(written, session.used)
        may_be = len(full.parts) == 1 and session.definitions.get(full.last) is not None
        may_be |= any(full.may_be(one) for one in self.tables.values())
        return "" if may_be else f"*.{full.last}"

    def _at_location(self, table: str, scans: RelationScans) -> bool:
        """Return whether a path that is read may be in the folder of a table, or around it."""
        folder = _folder(self.locations.get(table, ""))
        if not folder:
            return False
        paths = map(_folder, scans.paths)
        return any(
            path == folder
            or path.startswith(f"{folder}/")
            or folder.startswith(f"{path}/")
            or "$" in path + folder
            for path in paths
            if path
        )

    def _own_problem(self, text: str, own: str, scans: RelationScans, session: SqlSession) -> str:
        """Return how a statement may read its own table otherwise than by plain scans."""
        full = self.tables[own]
        if self._at_location(own, scans):
            return f"the text may read {own} by the path of its LOCATION"
        parsed = target_node(text_tree(text)) is not None
        if scans.words[full.last] > (0 if parsed else 1):  # one is the word of the target itself
            return f"the text has '{full.last}' where neither a relation nor a column is understood"
        cached = (find_scans(one.text, one.session, self.elsewhere) for one in session.cached)
        if self._scanned(scans, own)[0] and any(
            one.problems or self._scanned(one, own) != (0, False) for one in cached
        ):
            return f"the text reads {own}, of which CACHE TABLE may keep an older state"
        return ""


def _reads_whole(statement: Statement) -> bool:
    """Return whether a statement replaces its whole table, so that it reads all of it."""
    return isinstance(statement, Replace) or (
        isinstance(statement, Insert)
        and statement.overwrite
        and statement.where is None
        and not statement.options.dynamic
    )


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _folder(path: str) -> str:
    """Return a path in lower case without its scheme and its last slash."""
    plain = path.strip("'\"` ").lower().rstrip("/")
    scheme, separator, rest = plain.partition(":")
    return "/" + rest.lstrip("/") if separator and "/" not in scheme else plain


def modelled_scans(statement: Statement) -> Counter[str]:
    """Return the number of scans of each table that a transaction of its own table records.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> tables = {"t": Schema("t", (Column("id", "INT"),))}
    >>> sql = "INSERT INTO t SELECT id FROM t WHERE id > (SELECT max(id) FROM t)"
    >>> modelled_scans(read_statement(sql, tables))
    Counter({'t': 2})
    """
    return Counter(_scanned(statement))


def _scanned(part: object) -> Iterator[str]:
    """Yield the tables of the scans in a part of a statement."""
    if isinstance(part, tuple):
        for one in part:
            yield from _scanned(one)
    elif is_dataclass(part) and not isinstance(part, Origin | type):
        if isinstance(part, Subquery) or (isinstance(part, Select) and part.seen):
            yield part.table
        for field in fields(part):
            yield from _scanned(getattr(part, field.name))
