"""Parser of statements that create a table: CREATE, REPLACE, SHALLOW CLONE and CONVERT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.delta.header import FEATURES, SUPPORTED
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as df
from isolitmus.model.sql.query import items_of
from isolitmus.specs.sql.definitions import (
    INIT,
    RESERVED,
    TABLE,
    DefinitionReader,
    listed_columns,
    property_pairs,
)
from isolitmus.specs.sql.parameters import bind_text
from isolitmus.specs.sql.syntax import resolves
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, features_of

if TYPE_CHECKING:
    from isolitmus.model.sql.schema import Column, Schema
    from isolitmus.specs.sql.syntax import Syntax

HEAD = (
    r"\s*(?P<how>CREATE(?:\s+OR\s+REPLACE)?|REPLACE)\s+TABLE\s+(?P<unless>IF\s+NOT\s+EXISTS\s++)?"
    + TABLE
)
CLAUSES = (
    r"PARTITIONED\s+BY\s*\((?P<parts>[^()]*)\)",
    r"TBLPROPERTIES\s*\((?P<properties>[^()]*)\)",
    r"COMMENT\s+(?P<comment>'[^']*'|\"[^\"]*\")",
    r"LOCATION\s+(?P<location>'[^']*'|\"[^\"]*\")",
)
ANY_CLAUSE = "|".join(re.sub(r"\?P<\w+>", "?:", one) for one in CLAUSES)
COLUMNS = r"\s*+(?:\((?P<columns>(?:[^()]|\([\d\s,]*\))*)\))?"
FORM = re.compile(
    HEAD + COLUMNS + r"\s*+USING\s+DELTA\b"
    rf"(?P<clauses>(?:\s*+(?:{ANY_CLAUSE}))*+)"
    r"\s*+(?:AS\b(?P<query>.*\S))?\s*",
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
WRITE_CREATE = (
    "write CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table (name TYPE, …) USING delta [PARTITIONED"
    " BY (…)] [TBLPROPERTIES (…)] [COMMENT '…'], or REPLACE TABLE, and, in the place of its"
    " columns, AS SELECT … at the end"
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


def creation_query(text: str) -> tuple[str, str] | None:
    """Return the text of CREATE OR REPLACE TABLE … AS up to its query, and its table.

    None for another statement.

    Examples
    --------
    >>> creation_query("CREATE OR REPLACE TABLE shop.t USING delta AS SELECT 1 AS id")
    ('CREATE OR REPLACE TABLE shop.t USING delta AS', 't')
    >>> creation_query("REPLACE TABLE t (id INT) USING delta") is None
    True
    """
    found = FORM.fullmatch(text)
    if found is None or found["query"] is None or not found["how"].upper().endswith("REPLACE"):
        return None
    return text[: found.start("query")], found["table"]


def without_location(text: str) -> tuple[str, str]:
    """Return a CREATE TABLE without its LOCATION, and that clause; it is empty if there is none.

    Examples
    --------
    >>> create = "CREATE OR REPLACE TABLE t USING delta LOCATION '/lake/t' AS SELECT 1 AS id"
    >>> without_location(create)
    ('CREATE OR REPLACE TABLE t USING delta AS SELECT 1 AS id', "LOCATION '/lake/t'")
    """
    found = FORM.fullmatch(text)
    if found is None:
        return text, ""
    start, end = found.span("clauses")
    clause = re.search(rf"(?<!\s)\s*+({CLAUSES[-1]})", text[start:end], re.IGNORECASE)
    if clause is None:
        return text, ""
    return text[: start + clause.start()] + text[start + clause.end() :], clause[1]


def select_of(syntax: Syntax) -> exp.Expr:
    """Return the query in a CREATE TABLE … AS SELECT.

    Examples
    --------
    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> select_of(Syntax("CREATE TABLE t USING delta AS SELECT 1 AS id")).sql()
    'SELECT 1 AS id'
    """
    found = FORM.fullmatch(syntax.text)
    assert found is not None
    return syntax.tree(found.start("query"))


class TableCreationReader(DefinitionReader):
    """Parser of CREATE, REPLACE, CLONE and CONVERT; other statements that create a table are
    refused.
    """

    @resolves("CREATE", "REPLACE", "CLONE")
    def making(self) -> df.Replace | df.Create | df.Clone:
        """Return the CREATE, REPLACE or CLONE; refuse a table that differs from its declaration."""
        if CLONES.search(self.text):
            return self.clone()
        found = FORM.fullmatch(self.text)
        how = None if found is None else _how(found)
        if found is None or how is None:
            if _lacks_format(self.text):
                self.outside(
                    "it names no format; add USING delta after the table's name and columns"
                )
            self.outside(WRITE_CREATE)
        schema = self.named(found["table"])
        clauses = self.clauses(found["clauses"])
        if "location" in clauses:
            self.outside(f"LOCATION {OUTSIDE}: a test has its tables in folders of its own")
        written = clauses.get("parts", "").split(",")
        parts = tuple(p.strip(" \n\t`") for p in written if p.strip())
        self.same(
            schema,
            "partitioned by",
            tuple(map(str.lower, parts)),
            tuple(map(str.lower, schema.partitioned_by)),
        )
        query = None
        if found["query"] is not None and found["columns"] is None:
            query = self.selected(schema, select_of(self.syntax))
        elif found["query"] is None and found["columns"] is not None:
            columns = listed_columns(found["columns"])
            declared = tuple(" ".join(c.replace("`", "").split()).lower() for c in columns)
            self.same(schema, "its columns are", declared, _columns(schema))
        else:
            self.outside(WRITE_CREATE)
        given = self.given(clauses.get("properties"))
        text = clauses["comment"][1:-1] if "comment" in clauses else None
        if how.endswith("replace"):
            create = how == "create or replace"
            return df.Replace(
                self.sql, schema.name, query, create=create, properties=given, comment=text
            )
        unless = how == "create if not exists"
        return df.Create(
            self.sql, schema.name, query, if_not_exists=unless, properties=given, comment=text
        )

    def clauses(self, text: str) -> dict[str, str]:
        """Return the contents of the clauses between USING and AS; refuse one that is repeated."""
        given: dict[str, str] = {}
        for pattern in CLAUSES:
            every = list(re.finditer(pattern, text, re.IGNORECASE))
            if len(every) > 1:
                self.outside(f"'{every[1][0]}' is written twice")
            given |= {k: v for one in every for k, v in one.groupdict().items()}
        return given

    @resolves("CONVERT")
    def conversion(self) -> df.Convert:
        """Return the CONVERT TO DELTA of a Parquet table, with its partition columns checked."""
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
        """Return the CLONE; refuse a source with other columns or partitions than the target."""
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
            self.apart(features_of(schema=table) | {"SHALLOW CLONE"}, table=table.name)
        self.same(schema, "its columns are", _columns(source), _columns(schema))
        parts = tuple(map(str.lower, source.partitioned_by))
        self.same(schema, "partitioned by", parts, tuple(map(str.lower, schema.partitioned_by)))
        number = None if version is None else int(version[1])
        return df.Clone(self.sql, schema.name, source.name, number, how)

    def given(self, body: str | None) -> dict[str, str]:
        """Return the properties of a new table, including requested features."""
        pairs = [] if body is None else property_pairs(bind_text(body, self.syntax.values))
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
        """Refuse a table that differs from its declaration."""
        if said != wanted:
            self.outside(
                f"{what} ({', '.join(said)}); a table that is created or replaced is modelled only"
                f" as declared: {schema.name} has ({', '.join(wanted)})",
            )

    def selected(self, schema: Schema, tree: exp.Expr) -> qu.Query:
        """Return the query, whose columns must have the names and types of the table's."""
        if not isinstance(tree, exp.Select | exp.Union):
            self.place.refuse(tree, "AS takes a SELECT, which names the columns")
        selects = tree.find_all(exp.Select)
        if any(isinstance(item, exp.Star) for select in selects for item in select.expressions):
            self.place.refuse(tree, "SELECT * as the columns of a new table is not modelled")
        if tree.find(exp.Join):
            self.place.refuse(tree, f"a join as the query of a new table {OUTSIDE}")
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


def _lacks_format(text: str) -> bool:
    """Return whether a CREATE TABLE is supported with USING delta, and lacks only that."""
    begun = re.match(HEAD + COLUMNS, text, re.IGNORECASE | re.DOTALL)
    if begun is None:
        return False
    return FORM.fullmatch(f"{text[: begun.end()]} USING delta {text[begun.end() :]}") is not None


def _how(found: re.Match[str]) -> df.How | None:
    verb = " ".join(found["how"].lower().split())
    return HOW.get((verb, found["unless"] is not None))


def _columns(schema: Schema) -> tuple[str, ...]:
    return tuple(map(_declared, schema.columns))


def _declared(column: Column) -> str:
    return f"{column.name} {column.type}".lower()
