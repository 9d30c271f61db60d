"""Read a SQL statement (Spark's dialect) into the model's Statement.

sqlglot parses; what it hides in a Command (OPTIMIZE) has a rule of its own in delta.lark. Node
types and their arguments are white-listed: what is outside is refused with its place, never guessed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, LarkError
from sqlglot import expressions as exp

from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.errors import SqlError
from isolitmus.specs.sql_definitions import DefinitionReader, is_definition
from isolitmus.specs.sql_expressions import Place, only
from isolitmus.specs.sql_merges import MergeReader
from isolitmus.specs.sql_queries import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["read_statement"]


def read_statement(sql: str, schemas: Mapping[str, Schema], label: str = "SQL") -> st.Statement:
    """The statement, its tables and columns resolved against the schemas (by table name).

    ``label`` says in messages where the text stands. Raises SqlError with line, column and caret.

    >>> from isolitmus.model.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> read_statement("DELETE FROM t WHERE part = 0", {"t": t}).where.op
    '='
    """
    return _StatementReader(sql, schemas, Place(sql, label)).statement()


@cache
def _delta_verbs() -> Lark:
    return Lark(Path(__file__).with_name("delta.lark").read_text("utf-8"), parser="lalr")


class _StatementReader(MergeReader, DefinitionReader):
    def statement(self) -> st.Statement:
        if self.sql.lstrip()[:8].upper() == "OPTIMIZE":
            return self.optimize()
        if is_definition(self.sql):
            return self.definition()
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
            case exp.Select() | exp.Union():
                return st.Read(self.sql, self.query(tree))
        self.place.refuse(tree, f"a statement that begins '{self.sql.split()[0]}' {OUTSIDE}")

    def delete(self, node: exp.Delete) -> st.Delete:
        if node.args.get("tables"):  # what sqlglot makes of a word that is not FROM
            self.place.refuse(node.args["tables"][0], "write DELETE FROM table")
        only(self.place, node, "this", "where")
        schema, side = self.table(node.this)
        return st.Delete(self.sql, schema.name, self.where(side, node.args.get("where")))

    def update(self, node: exp.Update) -> st.Update:
        only(self.place, node, "this", "expressions", "where")
        schema, side = self.table(node.this)
        sets = self.sets(schema, side, node.expressions, self.scope(side))
        return st.Update(self.sql, schema.name, sets, self.where(side, node.args.get("where")))

    def optimize(self) -> st.Optimize:
        try:
            tree = _delta_verbs().parse(self.sql)
        except LarkError:
            raise SqlError(
                f"{self.place.label}: '{self.sql}' does not parse; write OPTIMIZE table [WHERE partition condition]"
            ) from None
        name = str(tree.children[0].children[0]).strip("`")  # type: ignore[union-attr]
        schema, side = self.table(exp.to_table(name, dialect="databricks"))
        if len(tree.children) == 1:
            return st.Optimize(self.sql, schema.name, None)
        rest = str(tree.children[1].children[0])  # type: ignore[union-attr]
        parsed = self.parse(f"SELECT * FROM {name} WHERE {rest}", self.place)
        where = self.where(side, parsed.args.get("where"))
        named = {e.index for e in ex.walk(where) if isinstance(e, ex.ColumnRef)} if where else set()
        if not named <= set(schema.partition_indexes):
            self.place.refuse(None, "OPTIMIZE takes a condition on partition columns only")
        return st.Optimize(self.sql, schema.name, where)
