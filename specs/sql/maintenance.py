"""Parser of OPTIMIZE, REORG and VACUUM by a grammar of their own, ``delta.lark``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, LarkError, Token, Tree
from sqlglot import expressions as exp

from isolitmus.model.errors import SqlError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in
from isolitmus.specs.sql.queries import QueryReader
from isolitmus.specs.sql.syntax import resolves
from isolitmus.specs.sql.unsupported_pairs import features_of

if TYPE_CHECKING:
    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.sql.syntax import Syntax

RETENTION = 168
"""Default retention of files by VACUUM in hours (delta.deletedFileRetentionDuration)."""


@cache
def _grammar() -> Lark:
    return Lark(Path(__file__).with_name("delta.lark").read_text("utf-8"), parser="lalr")


def verb_condition(syntax: Syntax) -> tuple[str, exp.Expr] | None:
    """Return the table and the condition of OPTIMIZE or REORG; None for others or without a
    condition.
    """
    try:
        parts = _parts(_grammar().parse(syntax.text).children[0])
    except LarkError:
        return None
    return (_name(parts["table"]), _condition(syntax, parts["where"])) if "where" in parts else None


def _parts(tree: object) -> dict[str, Tree[Token]]:
    assert isinstance(tree, Tree)
    return {str(part.data): part for part in tree.children if isinstance(part, Tree)}


def _condition(syntax: Syntax, where: Tree[Token]) -> exp.Expr:
    rest = where.children[0]
    assert isinstance(rest, Token)
    return syntax.tree(rest.start_pos or 0, rest.end_pos)


class VerbReader(QueryReader):
    """Parser of these statements, on the table that they name."""

    @resolves("OPTIMIZE", "REORG", "VACUUM")
    def verb(self) -> st.Optimize | st.Vacuum | df.Definition:
        """Return an OPTIMIZE, REORG or VACUUM statement."""
        try:
            tree = _grammar().parse(self.text).children[0]
        except LarkError:
            raise SqlError(
                f"{self.place.label}: '{self.sql}' does not parse; write OPTIMIZE table"
                " [WHERE partition condition] [ZORDER BY (column, …)],"
                " REORG TABLE table [WHERE partition condition] APPLY (PURGE),"
                f" or VACUUM table [FULL | LITE] [RETAIN hours HOURS], for at least {RETENTION}"
            ) from None
        assert isinstance(tree, Tree)
        parts = _parts(tree)
        name = _name(parts["table"])
        schema, side = self.table(exp.to_table(name, dialect="databricks"))
        if tree.data == "upgrade":
            key, version = (str(part) for part in tree.children if isinstance(part, Token))
            if key.upper() != "ICEBERG_COMPAT_VERSION":
                self.place.refuse(None, f"UPGRADE UNIFORM takes ICEBERG_COMPAT_VERSION, not {key}")
            return df.Definition(self.sql, schema.name, df.UpgradeUniform(int(version)))
        if tree.data == "vacuum":
            return self.vacuum(
                schema, [int(part) for part in tree.children if isinstance(part, str)]
            )
        where = None
        if "where" in parts:
            where = self.condition(self.scope(side), _condition(self.syntax, parts["where"]))
        if any(c.index not in schema.partition_indexes for c in columns_in(where or ex.TRUE)):
            verb = str(tree.data).upper()
            self.place.refuse(None, f"{verb} takes a condition on partition columns only")
        if tree.data == "reorg":
            return st.Optimize(self.sql, schema.name, where, "vector")
        if "zorder" not in parts:
            return st.Optimize(self.sql, schema.name, where)
        names = tuple(map(_name, parts["zorder"].children))
        for name in names:
            index = schema.index(name)
            if index is None or index in schema.partition_indexes:
                self.place.refuse(
                    None, f"ZORDER BY takes columns of {schema.name} that do not partition it"
                )
        self.apart(features_of(schema=schema) | {"ZORDER BY"})
        return st.Optimize(self.sql, schema.name, where, "all", names)

    def vacuum(self, schema: Schema, hours: list[int]) -> st.Vacuum:
        """Return the VACUUM; refuse a retention below the supported minimum."""
        if any(number < RETENTION for number in hours):
            self.place.refuse(
                None,
                f"VACUUM RETAIN {hours[0]} HOURS removes files that other transactions may be about"
                " to commit, which no conflict check detects; what is modelled retains"
                f" {RETENTION} hours or more",
            )
        return st.Vacuum(self.sql, schema.name)


def _name(part: object) -> str:
    """Return the name in a part of the grammar's tree, without the database."""
    assert isinstance(part, Tree)
    return str(part.children[-1]).strip("`")
