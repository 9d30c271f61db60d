"""Read CREATE OR REPLACE TABLE and REPLACE TABLE, on a table that is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model import definition as df
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.specs.sql_queries import OUTSIDE, QueryReader, items_of

if TYPE_CHECKING:
    from isolitmus.model.schema import Schema

__all__ = ["ReplacementReader", "is_replacement"]

BEGINS = re.compile(r"\s*(?:(?:CREATE|REPLACE|VACUUM|CONVERT)\s|CLONE\b)", re.IGNORECASE)
FORM = re.compile(
    r"\s*(?P<create>CREATE\s+OR\s+)?REPLACE\s+TABLE\s+`?(?P<table>\w+)`?"
    r"\s*(?:\((?P<columns>[^()]*)\))?\s*USING\s+DELTA\b"
    r"\s*(?:PARTITIONED\s+BY\s*\((?P<parts>[^()]*)\))?\s*(?:AS\b(?P<query>.*\S))?\s*",
    re.IGNORECASE | re.DOTALL,
)
CLONE = re.compile(r"\bCLONE\b", re.IGNORECASE)
WRITTEN = (
    "write [CREATE OR] REPLACE TABLE table (name TYPE, …) USING delta [PARTITIONED BY (…)],"
    " or, in the place of its columns, AS SELECT … at the end"
)


def is_replacement(sql: str) -> bool:
    """Whether a statement begins like one that makes or clones a table, or is about its files.

    >>> is_replacement("create or replace table t (id INT) using delta"), is_replacement("SELECT 1")
    (True, False)
    """
    return BEGINS.match(sql) is not None


class ReplacementReader(QueryReader):
    """Reads them; what else makes a table is refused by name."""

    def replacement(self) -> df.Replace:
        found = FORM.fullmatch(self.sql)
        if CLONE.search(self.sql):
            self.place.refuse(None, f"CLONE {OUTSIDE}: it makes a table")
        if found is None:
            words = self.sql.split()
            if words[0].upper() == "CREATE" and words[1:2] and words[1].upper() == "TABLE":
                self.place.refuse(None, f"CREATE TABLE {OUTSIDE}: the tables are there already")
            if words[0].upper() in ("VACUUM", "CONVERT"):
                self.place.refuse(None, f"{words[0].upper()} {OUTSIDE}")
            self.place.refuse(None, WRITTEN)
        schema, _ = self.table(exp.to_table(found["table"], dialect="databricks"))
        parts = tuple(p.strip(" \n\t`") for p in (found["parts"] or "").split(",") if p.strip())
        self.same(
            schema,
            "partitioned by",
            tuple(map(str.lower, parts)),
            tuple(map(str.lower, schema.partitioned_by)),
        )
        query = None
        if found["query"] is not None and found["columns"] is None:
            query = self.selected(schema, found.start("query"))
        elif found["query"] is None and found["columns"] is not None:
            declared = tuple(" ".join(c.split()).lower() for c in found["columns"].split(","))
            self.same(schema, "its columns are", declared, _columns(schema))
        else:
            self.place.refuse(None, WRITTEN)
        return df.Replace(self.sql, schema.name, query, create=found["create"] is not None)

    def same(
        self, schema: Schema, what: str, said: tuple[str, ...], wanted: tuple[str, ...]
    ) -> None:
        """Refuse a table that would be another one than before."""
        if said != wanted:
            self.place.refuse(
                None,
                f"{what} ({', '.join(said)}); a table that is replaced by one with another schema"
                f" is not modelled: {schema.name} has ({', '.join(wanted)})",
            )

    def selected(self, schema: Schema, start: int) -> st.Query:
        """The query, whose columns, by name and type, are those of the table."""
        blank = re.sub(r"\S", " ", self.sql[:start])
        tree = self.parse(blank + self.sql[start:], self.place)
        if not isinstance(tree, exp.Select | exp.Union):
            self.place.refuse(tree, "AS takes a SELECT, which names the columns")
        selects = tree.find_all(exp.Select)
        if any(isinstance(item, exp.Star) for select in selects for item in select.expressions):
            self.place.refuse(tree, "SELECT * as the columns of a new table is not modelled")
        query = self.query(tree)
        names = [name.lower() for name in tree.named_selects]
        for branch in query:
            items = items_of(branch)
            for item in items:
                if isinstance(item, ex.Const) and item.value is None:
                    self.place.refuse(tree, "NULL as a column of a new table has no type")
            types = [item.type.lower() for item in items]
            said = tuple(f"{n} {t}" for n, t in zip(names, types, strict=True))
            self.same(schema, "its columns are", said, _columns(schema))
        return query


def _columns(schema: Schema) -> tuple[str, ...]:
    return tuple(f"{c.name} {c.type}".lower() for c in schema.columns)
