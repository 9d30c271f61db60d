"""Parser of statements that alter or restore a table: ALTER TABLE, COMMENT ON and RESTORE.

They are few and small, and sqlglot parses most of them only as a Command; therefore each has a
pattern of its own. Other alterations of columns (positions, types, defaults), and DROP FEATURE of a
feature whose removal takes several commits, are refused by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from sqlglot import expressions as exp

from isolitmus.model.delta.header import FEATURES, MAPPING_MODE, SUPPORTED
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import near
from isolitmus.model.sql import statement as df
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import NAMED_TYPES, type_named
from isolitmus.specs.sql.configuration import (
    SEVERAL,
    misspelled_property,
    retention_problem,
    unmodelled_property,
)
from isolitmus.specs.sql.parameters import bind_text, parameters
from isolitmus.specs.sql.queries import QueryReader
from isolitmus.specs.sql.syntax import resolves
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.errors import SqlProblem
    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.sql.syntax import Syntax

TABLE = r"(?:`?\w++`?\s*+\.\s*+)*+`?(?P<table>\w+)`?"
"""Name of a table, perhaps with those of its catalog and database, which are ignored."""
ALTER = re.compile(
    rf"\s*ALTER\s+TABLE\s+{TABLE}\s++(?P<rest>\S(?:.*\S)?)\s*", re.IGNORECASE | re.DOTALL
)
COMMENT = re.compile(
    rf"\s*COMMENT\s+ON\s+TABLE\s+{TABLE}\s+IS\s+(?P<text>'[^']*'|\"[^\"]*\")\s*", re.IGNORECASE
)
SET = re.compile(r"SET\s+TBLPROPERTIES\s*\((?P<body>.*)\)", re.IGNORECASE | re.DOTALL)
UNSET = re.compile(
    r"UNSET\s+TBLPROPERTIES\s+(?:IF\s+EXISTS\s*)?\((?P<body>.*)\)", re.IGNORECASE | re.DOTALL
)
COLLATION = re.compile(r"DEFAULT\s+COLLATION\s+(?P<name>\w+)", re.IGNORECASE)
"""Default collation of columns that are added later: a property, as observed on Delta 4.4.0."""
ADD = re.compile(r"ADD\s+COLUMNS?\s*(?P<body>.*)", re.IGNORECASE | re.DOTALL)
CHECK = re.compile(
    r"ADD\s+CONSTRAINT\s+`?(?P<name>\w+)`?\s+CHECK\s*\((?P<body>.*)\)", re.IGNORECASE | re.DOTALL
)
DROP = re.compile(r"DROP\s+CONSTRAINT\s+(?P<if>IF\s+EXISTS\s+)?`?(?P<name>\w+)`?", re.IGNORECASE)
LISTED = r"\s*`?\w+`?\s*(?:,\s*`?\w+`?\s*)*"
GOES = re.compile(
    rf"DROP\s+COLUMNS?(?:\s*\((?P<listed>{LISTED})\)|\s(?P<names>{LISTED}))", re.IGNORECASE
)
RENAME = re.compile(r"RENAME\s+COLUMN\s+`?(?P<name>\w+)`?\s+TO\s+`?(?P<other>\w+)`?", re.IGNORECASE)
FEATURE = re.compile(
    r"DROP\s+FEATURE\s+(['`]?)(?P<name>[\w-]+)\1(?P<history>\s+TRUNCATE\s+HISTORY)?", re.IGNORECASE
)
COLUMN = re.compile(
    r"(?:ALTER|CHANGE)\s+COLUMN\s+`?(?P<name>\w+)`?\s+COMMENT\s+(?P<text>'[^']*')", re.IGNORECASE
)
NULLS = re.compile(
    r"(?:ALTER|CHANGE)\s+(?:COLUMN\s+)?`?(?P<name>\w+)`?\s+DROP\s+NOT\s+NULL", re.IGNORECASE
)
SYNC = re.compile(
    r"(?:ALTER|CHANGE)\s+(?:COLUMN\s+)?`?(?P<name>\w+)`?\s+SYNC\s+IDENTITY", re.IGNORECASE
)
CLUSTER = re.compile(r"CLUSTER\s+BY\s*(?:(?P<none>NONE)|\((?P<body>.*)\))", re.IGNORECASE)
RESTORE = re.compile(
    rf"\s*RESTORE\s+(?:TABLE\s+)?{TABLE}\s+TO\s+VERSION\s+AS\s+OF\s++'?(?P<version>[^\s'](?:.*[^\s'])?)'?\s*",
    re.IGNORECASE,
)
EARLIER = re.compile(
    rf"\s*RESTORE\s+(?:TABLE\s+)?{TABLE}\s+TO\s+(?:VERSION|TIMESTAMP)\s+AS\s+OF\s+(?P<version>.+)",
    re.IGNORECASE | re.DOTALL,
)
INIT = re.compile(r"\{init\[([1-9][0-9]{0,3})\]\}")
TEXT = r"""(?:'([^']*)'|"([^"]*)")"""
KEY = re.compile(rf"\s*(?:{TEXT}|(\w+(?:\.\w+)*))\s*")
PAIR = re.compile(
    rf"\s*(?:{TEXT}|(\w+(?:\.\w+)*))(?:\s*=\s*|\s+)(?:{TEXT}|(true|false|[+-]?\d+(?:\.\d+)?|:\w+))\s*",
    re.IGNORECASE,
)
"""Property: a name, perhaps quoted, and a string, a number, TRUE, FALSE or a parameter.

There may be = between.
"""
DECLARED = re.compile(
    r"\s*`?(\w+)`?\s+(\w+(?:\s*\([\d\s,]*\))?)(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?\s*",
    re.IGNORECASE,
)
"""New column; its comment is metadata of the same commit."""
SIGNS = re.compile(r"'[^']*+(?:'|\Z)|\"[^\"]*+(?:\"|\Z)|[(),]")
"""Comments, in which no sign counts, and the signs that divide a list of columns."""
PLACED = re.compile(r".*\s(?:FIRST|AFTER\s+`?\w+`?)\s*", re.IGNORECASE | re.DOTALL)
NESTED = re.compile(r"\s*`?\w+`?\s*\.\s*`?\w+`?\s.*", re.DOTALL)
CHANGE = re.compile(
    r"CHANGE\s+(?:COLUMN\s+)?`?(?P<name>\w+)`?\s+`?(?P<same>\w+)`?\s+"
    r"(?P<type>\w+(?:\s*\([\d\s,]*\))?)\s+COMMENT\s+(?P<text>'[^']*')",
    re.IGNORECASE,
)
"""Hive's form of a comment, which repeats the column and its type."""
WRITE_ALTER = (
    "write ALTER TABLE table …, COMMENT ON TABLE table IS 'text'"
    " or RESTORE TABLE table TO VERSION AS OF {init[n]}"
)
FORMS = (
    "SET TBLPROPERTIES, UNSET TBLPROPERTIES, ADD COLUMNS, ADD CONSTRAINT … CHECK, DROP CONSTRAINT,"
    " DROP COLUMN, RENAME COLUMN, DROP FEATURE, ALTER COLUMN … COMMENT, ALTER COLUMN … DROP NOT"
    " NULL, ALTER COLUMN … SYNC IDENTITY, CLUSTER BY"
)
RESERVED = ("comment", "external", "is_managed_location", "location", "owner", "provider")
"""Properties that Spark does not allow in TBLPROPERTIES (AstBuilder.scala, cleanTableProperties).
"""


def check_condition(syntax: Syntax) -> exp.Expr:
    """Return the condition of ADD CONSTRAINT.

    Examples
    --------
    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> check_condition(Syntax("ALTER TABLE t ADD CONSTRAINT few CHECK (id < 9)")).sql()
    'id < 9'
    """
    found = ALTER.fullmatch(syntax.text)
    assert found is not None
    added = CHECK.fullmatch(found["rest"])
    assert added is not None
    start, end = (found.start("rest") + place for place in added.span("body"))
    return syntax.tree(start, end)


def listed_columns(body: str) -> list[str]:
    """Return the parts of a list of columns: no comma of a type or a comment divides it.

    Examples
    --------
    >>> listed_columns("a INT COMMENT 'x, y', b DECIMAL(5, 2)")
    ["a INT COMMENT 'x, y'", ' b DECIMAL(5, 2)']
    """
    parts, start, depth = [], 0, 0
    for sign in SIGNS.finditer(body):
        depth = max(0, depth + (sign[0] == "(") - (sign[0] == ")"))
        if sign[0] == "," and not depth:
            parts.append(body[start : sign.start()])
            start = sign.end()
    return [*parts, body[start:]]


def property_pairs(body: str) -> list[tuple[str, str]] | None:
    """Return the properties in the parentheses of TBLPROPERTIES, or None if they do not parse.

    Examples
    --------
    >>> property_pairs("'delta.enableDeletionVectors' = true, team 'us'")
    [('delta.enableDeletionVectors', 'true'), ('team', 'us')]
    >>> property_pairs("'delta.appendOnly' = perhaps") is None
    True
    """
    pairs = []
    for part in body.split(","):
        found = PAIR.fullmatch(part)
        if found is None:
            return None
        one, other, bare, text, quoted, plain = found.groups()
        key = next(name for name in (one, other, bare) if name is not None)
        written = text if text is not None else quoted
        if written is None:
            written = plain if plain.startswith(":") else plain.lower()
        pairs.append((key, written))
    return pairs


class DefinitionReader(QueryReader):
    """Parser of ALTER TABLE, COMMENT ON and RESTORE, on the table that they name."""

    @resolves("RESTORE")
    def restore(self) -> df.Restore:
        """Return the RESTORE of a table to the state after an init statement."""
        found = RESTORE.fullmatch(self.text)
        if found is None:
            self.outside(WRITE_ALTER)
        version = INIT.fullmatch(found["version"])
        if version is None:
            self.outside("expected RESTORE … TO {init[n]}, the state after the n-th init statement")
        return df.Restore(self.sql, self.named(found["table"]).name, int(version[1]))

    @resolves("COMMENT")
    def comment(self) -> df.Definition:
        """Return the COMMENT ON a table as a change of its property `comment`."""
        found = COMMENT.fullmatch(self.text)
        if found is None:
            self.outside(WRITE_ALTER)
        schema = self.named(found["table"])
        return df.Definition(
            self.sql, schema.name, df.SetProperties({"comment": found["text"][1:-1]})
        )

    @resolves("ALTER")
    def alter(self) -> df.Definition:
        """Return the ALTER TABLE of a declared table."""
        found = ALTER.fullmatch(self.text)
        if found is None:
            self.outside(WRITE_ALTER)
        schema = self.named(found["table"])
        return df.Definition(self.sql, schema.name, self.change(schema, found["rest"]))

    def named(self, table: str) -> Schema:
        schema, _ = self.table(exp.to_table(table, dialect="databricks"))
        return schema

    def outside(self, problem: str, kind: SqlProblem = "outside") -> NoReturn:
        self.place.refuse(None, problem, kind)

    def change(self, schema: Schema, rest: str) -> df.Change:
        """Return the change after the table's name in ALTER TABLE; refuse unsupported ones."""
        if found := SET.fullmatch(rest):
            body = bind_text(found["body"], self.syntax.values)
            pairs = property_pairs(body)
            if pairs is None:
                self.outside("SET TBLPROPERTIES takes 'key' = 'value', …")
            given = dict(self.modelled(key, value) for key, value in pairs)
            self.unreserved(given)
            if why := retention_problem(given):
                self.outside(f"{why}, which Delta rejects")
            if given.get(MAPPING_MODE, "").lower() == "none":
                return self.unmapped(given, unset=False)
            return df.SetProperties(given)
        if found := UNSET.fullmatch(rest):
            keys = [KEY.fullmatch(part) for part in found["body"].split(",")]
            if not all(keys):
                self.outside("UNSET TBLPROPERTIES takes 'key', …")
            named = tuple(str(key[key.lastindex or 0]) for key in keys if key)
            self.unreserved(named)
            if LEVEL_KEY in named:
                self.outside(
                    f"whether {LEVEL_KEY} is set depends on the protocol of the run; SET"
                    f" TBLPROPERTIES ('{LEVEL_KEY}' = 'Serializable') has the effect of"
                    " unsetting it"
                )
            for why in filter(None, map(misspelled_property, named)):
                self.outside(why)
            if MAPPING_MODE in named:
                return self.unmapped(dict.fromkeys(named, ""), unset=True)
            return df.UnsetProperties(named)
        if found := COLLATION.fullmatch(rest):
            return df.SetProperties({"collation": found["name"]})
        if found := CHECK.fullmatch(rest):
            return self.check(schema, found["name"], found["body"])
        if found := DROP.fullmatch(rest):
            return df.DropConstraint(found["name"].lower(), bool(found["if"]))
        if found := GOES.fullmatch(rest):
            return self.dropped(schema, found["listed"] or found["names"])
        if found := RENAME.fullmatch(rest):
            self.known(schema, found["name"])
            if schema.index(found["other"]) is not None:
                problem = f"table {schema.name} has a column '{found['other']}' already"
                self.outside(problem, "column there")
            return df.RenameColumn(found["name"], found["other"])
        if found := FEATURE.fullmatch(rest):
            return self.feature(found["name"], history=bool(found["history"]))
        if found := COLUMN.fullmatch(rest):
            self.known(schema, found["name"])
            return df.CommentColumn(found["name"], found["text"][1:-1])
        if (found := CHANGE.fullmatch(rest)) and found["name"].lower() == found["same"].lower():
            self.same_type(schema, found["name"], found["type"])
            return df.CommentColumn(found["name"], found["text"][1:-1])
        if found := NULLS.fullmatch(rest):
            self.known(schema, found["name"])
            return df.DropNotNull(found["name"])
        if found := SYNC.fullmatch(rest):
            self.known(schema, found["name"])
            if schema.columns[schema.index(found["name"]) or 0].identity is None:
                self.outside(f"SYNC IDENTITY is for identity columns; {found['name']} is none")
            return df.SyncIdentity(found["name"])
        if found := CLUSTER.fullmatch(rest):
            names = () if found["none"] else tuple(map(str.strip, found["body"].split(",")))
            for name in names:
                self.known(schema, name)
            return df.ClusterBy(names)
        if found := ADD.fullmatch(rest):
            return self.added(schema, found["body"].strip())
        self.outside(f"ALTER TABLE … {rest.split(maxsplit=1)[0].upper()} {OUTSIDE}: {FORMS}")

    def dropped(self, schema: Schema, listed: str) -> df.DropColumns:
        """Return DROP COLUMNS of different columns of the table."""
        names = [name.strip(" \t\r\n`") for name in listed.split(",")]
        for k, name in enumerate(names):
            self.known(schema, name)
            if name.lower() in map(str.lower, names[:k]):
                self.outside(f"DROP COLUMNS names {name} twice")
        return df.DropColumns(tuple(names))

    def same_type(self, schema: Schema, name: str, type_: str) -> None:
        """Refuse CHANGE COLUMN with another type than the column has."""
        self.known(schema, name)
        column = schema.columns[schema.index(name) or 0]
        if type_named(type_) != column.type:
            self.outside(f"a change of the type of {column.name} {OUTSIDE}; it is {column.type}")

    def unreserved(self, keys: Iterable[str]) -> None:
        """Refuse a property that Spark does not let ALTER TABLE change."""
        for key in keys:
            if key.lower() in RESERVED and key.lower() != "comment":
                self.outside(f"the property '{key}' is reserved in Spark, which rejects it here")

    def unmapped(self, given: Mapping[str, str], *, unset: bool) -> df.RemoveMapping:
        """Return the removal of column mapping, which is a commit of its own.

        Delta ignores other spellings of ``none``, so they are refused.
        """
        if not unset and given[MAPPING_MODE] != "none":
            self.outside(f"'{given[MAPPING_MODE]}' is written none")
        if len(given) > 1:
            self.outside(f"{MAPPING_MODE} with other properties is not modelled: it is two commits")
        return df.RemoveMapping(unset)

    def modelled(self, key: str, value: str, *, made: bool = False) -> tuple[str, str]:
        """Return a property that has no effect on Delta, or whose effect is modelled; refuse
        others.
        """
        if key.startswith(SUPPORTED):
            return self.supported(key, value)
        why = unmodelled_property(key, value, made=made)
        if why:
            self.outside(why)
        return key, value

    def supported(self, key: str, value: str) -> tuple[str, str]:
        """Return a property that requests a feature; refuse an unknown feature."""
        name = key.removeprefix(SUPPORTED)
        if name not in FEATURES:
            self.outside(f"the feature '{name}' is not modelled{near(name, FEATURES)}")
        if name == "clustering":
            self.outside("the feature clustering comes by CLUSTER BY, not by a property")
        if value != "supported":
            self.outside(f"{key} is '{value}'; known: supported")
        return key, value

    def feature(self, name: str, *, history: bool) -> df.DropFeature:
        """Return DROP FEATURE of a known feature."""
        if name not in FEATURES:
            self.outside(f"the feature '{name}' is not modelled{near(name, FEATURES)}")
        if history and name not in SEVERAL:
            self.outside(f"{name} leaves nothing in the history: TRUNCATE HISTORY is not allowed")
        return df.DropFeature(name)

    def known(self, schema: Schema, column: str) -> None:
        """Refuse a column that the table lacks."""
        if schema.index(column) is None:
            names = [c.name for c in schema.columns]
            problem = f"table {schema.name} has no column '{column}'{near(column, names)}"
            self.outside(problem, "no column")

    def check(self, schema: Schema, name: str, body: str) -> df.AddConstraint:
        """Return the CHECK constraint with its parsed condition."""
        _, side = self.table(exp.to_table(schema.name, dialect="databricks"))
        condition = self.condition(self.scope(side), check_condition(self.syntax))
        text = bind_text(body.strip(), self.syntax.values)
        return df.AddConstraint(name.lower(), text, condition)

    def added(self, schema: Schema, body: str) -> df.AddColumns:
        """Return the columns of ADD COLUMNS; refuse unknown types and existing names."""
        if body.startswith("(") and body.endswith(")"):
            body = body[1:-1]
        columns: list[Column] = []
        for part in listed_columns(body):
            declared = DECLARED.fullmatch(part)
            if declared is None:
                if PLACED.fullmatch(part):
                    self.outside(f"the position of a new column {OUTSIDE}; omit FIRST and AFTER")
                if NESTED.fullmatch(part):
                    self.outside(f"a new field of a column {OUTSIDE}; add a column")
                self.outside(
                    f"'{part.strip()}' is not a new column; write NAME TYPE [COMMENT 'text'], …"
                )
            name, type_ = declared[1], type_named(declared[2])
            if type_ is None:
                self.outside(f"no type '{declared[2]}'{near(declared[2].upper(), NAMED_TYPES)}")
            taken = [c.name.lower() for c in (*schema.columns, *columns)]
            if name.lower() in taken:
                self.outside(f"table {schema.name} has a column '{name}' already", "column there")
            columns.append(Column(name, type_))
        return df.AddColumns(tuple(columns))


def property_parameters(text: str) -> tuple[str, ...]:
    """Return the parameters that are values of properties in ALTER TABLE; none for other texts.

    Examples
    --------
    >>> property_parameters("ALTER TABLE t SET TBLPROPERTIES ('day' = :ds)")
    ('ds',)
    """
    found = ALTER.fullmatch(text)
    body = None if found is None else SET.fullmatch(found["rest"])
    return () if body is None else parameters(body["body"])


def restored_version(table: str, version: int = 1) -> str:
    """Return the RESTORE of a table to the state after an init statement.

    Examples
    --------
    >>> restored_version("t")
    'RESTORE TABLE t TO VERSION AS OF {init[1]}'
    """
    return f"RESTORE TABLE {table} TO VERSION AS OF {{init[{version}]}}"


def with_any_version(text: str) -> str:
    """Return a RESTORE to any version or time as one to some init statement; others unchanged.

    Examples
    --------
    >>> with_any_version("RESTORE TABLE shop.t TO TIMESTAMP AS OF '2026-01-01'")
    'RESTORE TABLE t TO VERSION AS OF {init[1]}'
    """
    found = EARLIER.fullmatch(text)
    return text if found is None else restored_version(found["table"])
