"""Read a SQL statement (Spark's dialect) into the model's Statement.

sqlglot parses; what it hides in a Command (OPTIMIZE) has a rule of its own in delta.lark. Node
types and their arguments are white-listed: what is outside is refused with its place, never guessed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, LarkError, Tree
from sqlglot import expressions as exp

from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.definition import Definition
from isolitmus.model.errors import SqlError
from isolitmus.model.normal import columns
from isolitmus.specs.sql_definitions import is_definition
from isolitmus.specs.sql_expressions import Place, Scope, Side, only
from isolitmus.specs.sql_merges import MergeReader
from isolitmus.specs.sql_queries import OUTSIDE, REFUSED
from isolitmus.specs.sql_replacing import ReplacementReader, is_replacement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["read_statement"]


NUMBERED = st.Insert | st.Delete | st.Update | st.Truncate | st.Optimize | st.Vacuum | Definition
"""The statements that may write a table with identity columns."""
VERB = re.compile(r"\s*(OPTIMIZE|REORG|VACUUM)\b", re.IGNORECASE)
RETENTION = 168
"""The hours for which VACUUM keeps files if a table says nothing (delta.deletedFileRetentionDuration)."""


def read_statement(sql: str, schemas: Mapping[str, Schema], label: str = "SQL") -> st.Statement:
    """The statement, its tables and columns resolved against the schemas (by table name).

    ``label`` says in messages where the text stands. Raises SqlError with line, column and caret.

    >>> from isolitmus.model.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> read_statement("DELETE FROM t WHERE part = 0", {"t": t}).where.op
    '='
    """
    reader = _StatementReader(sql, schemas, Place(sql, label))
    statement = reader.statement()
    if not isinstance(statement, st.Read | NUMBERED) and schemas[statement.target].generates:
        reader.place.refuse(
            None, f"'{sql.split(maxsplit=1)[0]}' on a table with identity columns {OUTSIDE}"
        )
    return statement


@cache
def _delta_verbs() -> Lark:
    return Lark(Path(__file__).with_name("delta.lark").read_text("utf-8"), parser="lalr")


class _StatementReader(MergeReader, ReplacementReader):
    def statement(self) -> st.Statement:
        if VERB.match(self.sql):
            return self.verb()
        if is_definition(self.sql):
            return self.definition()
        if is_replacement(self.sql):
            return self.replacement()
        tree = self.parse(self.sql, self.place)
        match tree:
            case exp.Insert():
                return self.insert(tree)
            case exp.Delete():
                return self.delete(tree)
            case exp.Update():
                return self.update(tree)
            case exp.Merge():
                return self.merge(tree)
            case exp.TruncateTable():
                return self.truncate(tree)
            case exp.Select() | exp.Union():
                return st.Read(self.sql, self.query(tree))
        self.place.refuse(tree, f"a statement that begins '{self.sql.split()[0]}' {OUTSIDE}")

    def delete(self, node: exp.Delete) -> st.Delete:
        if node.args.get("tables"):  # what sqlglot makes of a word that is not FROM
            self.place.refuse(node.args["tables"][0], "write DELETE FROM table")
        only(self.place, node, "this", "where")
        schema, side = self.table(node.this)
        return st.Delete(self.sql, schema.name, self.command_where(side, node.args.get("where")))

    def update(self, node: exp.Update) -> st.Update:
        only(self.place, node, "this", "expressions", "where")
        schema, side = self.table(node.this)
        scope = Scope(self.place, (side,), self.subquery)
        sets = self.sets(schema, side, node.expressions, scope)
        where = self.command_where(side, node.args.get("where"))
        return st.Update(self.sql, schema.name, sets, where)

    def command_where(self, side: Side, node: exp.Expr | None) -> ex.Expr | None:
        return self.where(Scope(self.place, (side,), REFUSED), node)

    def truncate(self, node: exp.TruncateTable) -> st.Truncate:
        only(self.place, node, "expressions")
        schema, _ = self.table(node.expressions[0])
        return st.Truncate(self.sql, schema.name)

    def verb(self) -> st.Optimize | st.Vacuum:
        """OPTIMIZE, REORG and VACUUM, by the grammar of Delta's own verbs."""
        try:
            tree = _delta_verbs().parse(self.sql).children[0]
        except LarkError:
            raise SqlError(
                f"{self.place.label}: '{self.sql}' does not parse; write OPTIMIZE table"
                " [WHERE partition condition] [ZORDER BY (column, …)],"
                " REORG TABLE table [WHERE partition condition] APPLY (PURGE),"
                f" or VACUUM table [FULL | LITE] [RETAIN hours HOURS], for at least {RETENTION}"
            ) from None
        assert isinstance(tree, Tree)
        parts = {str(part.data): part for part in tree.children if isinstance(part, Tree)}
        name = _name(parts["table"])
        schema, side = self.table(exp.to_table(name, dialect="databricks"))
        if tree.data == "vacuum":
            return self.vacuum(
                schema, [int(part) for part in tree.children if isinstance(part, str)]
            )
        where = None
        if "where" in parts:
            rest = str(parts["where"].children[0])
            parsed = self.parse(f"SELECT * FROM {name} WHERE {rest}", self.place)
            where = self.where(self.scope(side), parsed.args.get("where"))
        if any(c.index not in schema.partition_indexes for c in columns(where or ex.TRUE)):
            verb = str(tree.data).upper()
            self.place.refuse(None, f"{verb} takes a condition on partition columns only")
        if tree.data == "reorg":
            return st.Optimize(self.sql, schema.name, where, "vector")
        if "zorder" not in parts:
            return st.Optimize(self.sql, schema.name, where)
        for column in parts["zorder"].children:
            index = schema.index(_name(column))
            if index is None or index in schema.partition_indexes:
                self.place.refuse(
                    None, f"ZORDER BY takes columns of {schema.name} that do not partition it"
                )
        if schema.rows_per_file not in (None, 1):
            self.place.refuse(None, "which rows share a file after ZORDER BY is not modelled")
        return st.Optimize(self.sql, schema.name, where, "all")

    def vacuum(self, schema: Schema, hours: list[int]) -> st.Vacuum:
        if any(number < RETENTION for number in hours):
            self.place.refuse(
                None,
                f"VACUUM RETAIN {hours[0]} HOURS removes files that others may be about to commit, which"
                f" no check of theirs finds out; what is modelled retains {RETENTION} hours or more",
            )
        return st.Vacuum(self.sql, schema.name)


def _name(part: object) -> str:
    """The name in a part of Delta's grammar."""
    assert isinstance(part, Tree)
    return str(part.children[0]).strip("`")
