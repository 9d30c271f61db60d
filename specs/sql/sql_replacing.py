"""Read CREATE TABLE and REPLACE TABLE in their forms, SHALLOW CLONE and CONVERT: what makes a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.delta.header import FEATURES, SUPPORTED
from isolitmus.model.sql import definition as df
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.query import items_of
from isolitmus.specs.sql.definitions import INIT, DefinitionReader, property_pairs
from isolitmus.specs.sql.features import features
from isolitmus.specs.sql.parameters import bound
from isolitmus.specs.sql.resolving import resolves

if TYPE_CHECKING:
    from isolitmus.model.schema import Column, Schema
    from isolitmus.specs.sql.syntax import Syntax

__all__ = ["MakingReader", "selected"]

HEAD = (
    r"\s*(?P<how>CREATE(?:\s+OR\s+REPLACE)?|REPLACE)\s+TABLE\s+(?P<unless>IF\s+NOT\s+EXISTS\s+)?"
    r"`?(?P<table>\w+)`?"
)
FORM = re.compile(
    HEAD + r"\s*(?:\((?P<columns>[^()]*)\))?\s*USING\s+DELTA\b"
    r"\s*(?:PARTITIONED\s+BY\s*\((?P<parts>[^()]*)\))?"
    r"\s*(?:TBLPROPERTIES\s*\((?P<properties>[^()]*)\))?\s*(?:AS\b(?P<query>.*\S))?\s*",
    re.IGNORECASE | re.DOTALL,
)
CLONE = re.compile(
    HEAD
    + r"\s+SHALLOW\s+CLONE\s+`?(?P<source>\w+)`?(?:\s+VERSION\s+AS\s+OF\s+(?P<version>\S+))?\s*",
    re.IGNORECASE,
)
CLONES = re.compile(r"\bCLONE\b", re.IGNORECASE)
CONVERT = re.compile(
    r"\s*CONVERT\s+TO\s+DELTA\s+`?(?P<table>\w+)`?"
    r"(?:\s+PARTITIONED\s+BY\s*\((?P<parts>[^()]*)\))?\s*",
    re.IGNORECASE,
)
WRITTEN = (
    "write CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table (name TYPE, …) USING delta"
    " [PARTITIONED BY (…)] [TBLPROPERTIES (…)], or REPLACE TABLE, and, in the place of its columns,"
    " AS SELECT … at the end"
)
CLONED = (
    "write CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table SHALLOW CLONE table"
    " [VERSION AS OF {init[n]}]; other clones Delta on Spark does not make"
)
HOW: dict[tuple[str, bool], df.How] = {
    ("create", False): "create",
    ("create", True): "create if not exists",
    ("create or replace", False): "create or replace",
    ("replace", False): "replace",
}


RESERVED = ("comment", "external", "is_managed_location", "location", "owner", "provider")
"""The properties that Spark does not let one set in this way (AstBuilder.scala, cleanTableProperties)."""


def selected(syntax: Syntax) -> exp.Expr:
    """The query of which a statement makes a table.

    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> selected(Syntax("CREATE TABLE t USING delta AS SELECT 1 AS id")).sql()
    'SELECT 1 AS id'
    """
    found = FORM.fullmatch(syntax.text)
    assert found is not None
    return syntax.tree(found.start("query"))


class MakingReader(DefinitionReader):
    """Reads them; what else makes a table is refused by name."""

    @resolves("CREATE", "REPLACE", "CLONE")
    def making(self) -> df.Replace | df.Create | df.Clone:
        if CLONES.search(self.text):
            return self.clone()
        found = FORM.fullmatch(self.text)
        how = None if found is None else _how(found)
        if found is None or how is None:
            self.outside(WRITTEN)
        schema = self.named(found["table"])
        parts = tuple(p.strip(" \n\t`") for p in (found["parts"] or "").split(",") if p.strip())
        self.same(
            schema,
            "partitioned by",
            tuple(map(str.lower, parts)),
            tuple(map(str.lower, schema.partitioned_by)),
        )
        query = None
        if found["query"] is not None and found["columns"] is None:
            query = self.selected(schema, selected(self.syntax))
        elif found["query"] is None and found["columns"] is not None:
            declared = tuple(" ".join(c.split()).lower() for c in found["columns"].split(","))
            self.same(schema, "its columns are", declared, _columns(schema))
        else:
            self.outside(WRITTEN)
        given = self.given(found["properties"])
        if how.endswith("replace"):
            create = how == "create or replace"
            return df.Replace(self.sql, schema.name, query, create=create, properties=given)
        unless = how == "create if not exists"
        return df.Create(self.sql, schema.name, query, if_not_exists=unless, properties=given)

    @resolves("CONVERT")
    def conversion(self) -> df.Convert:
        found = CONVERT.fullmatch(self.text)
        if found is None:
            self.outside("write CONVERT TO DELTA table [PARTITIONED BY (name TYPE, …)]")
        schema = self.named(found["table"])
        if not schema.parquet:
            self.outside(
                f"CONVERT TO DELTA takes a table with the key parquet; {schema.name} has none"
            )
        if found["parts"] is not None:
            types = [_declared(schema.columns[i]) for i in schema.partition_indexes]
            said = tuple(" ".join(c.split()).lower() for c in found["parts"].split(","))
            self.same(schema, "partitioned by", said, tuple(types))
        return df.Convert(self.sql, schema.name)

    def clone(self) -> df.Clone:
        found = CLONE.fullmatch(self.text)
        how = None if found is None else _how(found)
        if found is None or how is None:
            self.outside(CLONED)
        schema, source = self.named(found["table"]), self.named(found["source"])
        version = INIT.fullmatch(found["version"] or "")
        if found["version"] is not None and version is None:
            self.outside(
                "a clone is of VERSION AS OF {init[n]}, what the n-th init statement has left"
            )
        for table in (schema, source):
            self.apart(features(schema=table) | {"SHALLOW CLONE"}, table=table.name)
        self.same(schema, "its columns are", _columns(source), _columns(schema))
        parts = tuple(map(str.lower, source.partitioned_by))
        self.same(schema, "partitioned by", parts, tuple(map(str.lower, schema.partitioned_by)))
        number = None if version is None else int(version[1])
        return df.Clone(self.sql, schema.name, source.name, number, how)

    def given(self, body: str | None) -> dict[str, str]:
        """The properties that a table is made with; features are asked for in this way, too."""
        pairs = [] if body is None else property_pairs(bound(body, self.syntax.values))
        if pairs is None:
            self.outside("TBLPROPERTIES takes 'key' = 'value', …")
        given = dict(pairs)
        for key, value in given.items():
            if key.lower() in RESERVED:
                self.outside(f"the property '{key}' is reserved in Spark")
            asked = key.startswith(SUPPORTED) and value == "supported"
            if not asked or key.removeprefix(SUPPORTED) not in FEATURES:
                self.modelled(key, value, made=True)
        return given

    def same(
        self, schema: Schema, what: str, said: tuple[str, ...], wanted: tuple[str, ...]
    ) -> None:
        """Refuse a table that would be another one than is declared."""
        if said != wanted:
            self.outside(
                f"{what} ({', '.join(said)}); a table that is made or replaced is modelled as it is"
                f" declared: {schema.name} has ({', '.join(wanted)})",
            )

    def selected(self, schema: Schema, tree: exp.Expr) -> qu.Query:
        """The query, whose columns, by name and type, are those of the table."""
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


def _how(found: re.Match[str]) -> df.How | None:
    verb = " ".join(found["how"].lower().split())
    return HOW.get((verb, found["unless"] is not None))


def _columns(schema: Schema) -> tuple[str, ...]:
    return tuple(map(_declared, schema.columns))


def _declared(column: Column) -> str:
    return f"{column.name} {column.type}".lower()
