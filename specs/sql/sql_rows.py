"""Resolve DELETE, UPDATE and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.sql import statement as st
from isolitmus.specs.sql.queries import REFUSED
from isolitmus.specs.sql.resolving import resolves
from isolitmus.specs.sql.row_statements import StoringReader
from isolitmus.specs.sql.source_text import NameScope, Side, only

if TYPE_CHECKING:
    from isolitmus.model.sql import expression as ex

__all__ = ["RowsReader"]


class RowsReader(StoringReader):
    """Resolves what changes rows, or takes them out, where they are."""

    @resolves(exp.Delete)
    def delete(self, node: exp.Delete) -> st.Delete:
        if node.args.get("tables"):  # what sqlglot makes of a word that is not FROM
            self.place.refuse(node.args["tables"][0], "write DELETE FROM table")
        only(self.place, node, "this", "where")
        schema, side = self.table(node.this)
        return st.Delete(self.sql, schema.name, self.command_where(side, node.args.get("where")))

    @resolves(exp.Update)
    def update(self, node: exp.Update) -> st.Update:
        only(self.place, node, "this", "expressions", "where")
        schema, side = self.table(node.this)
        scope = NameScope(self.place, (side,), self.subquery)
        sets = self.sets(schema, side, node.expressions, scope)
        where = self.command_where(side, node.args.get("where"))
        return st.Update(self.sql, schema.name, sets, where)

    def command_where(self, side: Side, node: exp.Expr | None) -> ex.Expr | None:
        queries = self.subquery if self.syntax.queried else REFUSED
        return self.where(NameScope(self.place, (side,), queries), node)

    @resolves(exp.TruncateTable)
    def truncate(self, node: exp.TruncateTable) -> st.Truncate:
        only(self.place, node, "expressions")
        schema, _ = self.table(node.expressions[0])
        return st.Truncate(self.sql, schema.name)
