"""Small workloads as a user writes them, each beside a form that needs no door.

Each statement is drawn in two forms at once. As written, it names tables by one to three parts,
with USE and backquotes, and reads them through temporary views and WITH. The expanded form has one
unique name for each table, views and WITH are merged into the query that reads them, and parameters
are values. The drawer resolves names and views itself and shares no code with the readers of
workloads: it is their oracle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("id", "part", "x")
PARAMETERS = ("p", "q")
SCHEMAS = ("bronze", "silver")
SMALL = (None, 0, 1, 2)
Values = Mapping[str, "int | None"]


class NotExpandable(Exception):
    """The expanded form is outside the SQL that the model executes."""


class State(NamedTuple):
    """What an expanded form depends on."""

    values: Values
    views: Views


class Text(NamedTuple):
    """Expression over the columns {id}, {part} and {x} of a row."""

    written: str
    """Text as written, with parameters."""
    expanded: Callable[[State], str]
    """Text in which parameters are values."""

    @classmethod
    def of(cls, template: str) -> Text:
        """Return an expression with parameters {p} and {q}, which is the same in both forms."""
        return cls(
            fill(template, {name: f":{name}" for name in PARAMETERS}),
            lambda state: (
                "CAST(NULL AS INT)"
                if template == "NULL"
                else fill(template, literals(state.values))
            ),
        )


class Branch(NamedTuple):
    """Query of one table, without joins: SELECT columns FROM table WHERE conditions."""

    table: str
    """Expanded name."""
    columns: tuple[str, ...] = ("{id}", "{part}", "{x}")
    """Expressions over the columns of the table."""
    where: tuple[str, ...] = ()
    """Conditions on the columns of the table."""

    def lifted(self, expression: str) -> str:
        """Return an expression over the columns of the query as one over those of the table."""
        inner = {
            name: text if re.fullmatch(r"\{\w+\}|\d+", text) else f"({text})"
            for name, text in zip(COLUMNS, self.columns, strict=True)
        }
        return fill(expression, inner)

    def then(self, items: tuple[str, ...], where: tuple[str, ...]) -> Branch:
        """Return the query that reads the rows of this one."""
        return Branch(
            self.table,
            tuple(map(self.lifted, items)),
            (*self.where, *map(self.lifted, where)),
        )

    def sql(self, items: tuple[str, ...], alias: str) -> str:
        """Return a query with expressions over the columns of the branch."""
        columns = {name: f"{alias}.{name}" for name in COLUMNS}
        where = " AND ".join(f"({one})" for one in self.where)
        shown = ", ".join(map(self.lifted, items))
        text = f"SELECT {shown} FROM {self.table} AS {alias}{f' WHERE {where}' if where else ''}"
        return fill(text, columns)


Expansion = Callable[[State], tuple[Branch, ...]]
Views = dict[str, Expansion]


class Relation(NamedTuple):
    """Item of FROM."""

    written: str
    branches: Expansion


class Table(NamedTuple):
    """Declared table."""

    schema: str | None
    last: str
    name: str
    """Unique name of one part."""
    partitioned: bool

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.last}" if self.schema else self.last

    @property
    def ddl(self) -> str:
        parts = " PARTITIONED BY (part)" if self.partitioned else ""
        return f"CREATE TABLE {self.full} (id INT, part INT, x INT) USING delta{parts}"


@dataclass
class Written:
    """Statement that writes."""

    target: str
    """Unique name of its table."""
    text: str
    """Its text as written."""
    expanded: Callable[[Values], str]
    """Its text without views and parameters."""


@dataclass
class DrawnJob:
    """Statements of a job, in order."""

    texts: list[str] = field(default_factory=list)
    writers: list[Written] = field(default_factory=list)


@dataclass
class DrawnWorkload:
    """Tables and jobs."""

    tables: list[Table]
    jobs: dict[str, DrawnJob]
    as_folder: bool

    @property
    def toml(self) -> str:
        """The workload as the text of a workload file."""
        text = f"ddl = {json.dumps([table.ddl for table in self.tables])}\n"
        for name, job in self.jobs.items():
            used = ", ".join(f'{p} = "INT"' for p in _parameters(job))
            text += f"[jobs.{name}]\nsql = {json.dumps(job.texts)}\nparameters = {{ {used} }}\n"
        return text

    def save(self, folder: Path) -> None:
        """Write the workload as a folder of SQL files."""
        ddl = ";\n".join(table.ddl for table in self.tables)
        (folder / "tables.sql").write_text(f"{ddl};\n", "utf-8")
        for name, job in self.jobs.items():
            head = "".join(f"-- :{p} INT\n" for p in _parameters(job))
            text = head + "".join(f"{one};\n" for one in job.texts)
            (folder / f"{name}.sql").write_text(text, "utf-8")

    def __str__(self) -> str:
        return self.toml


def _parameters(job: DrawnJob) -> list[str]:
    """Return the parameters that a statement uses, itself or in a view that it reads."""
    plain = dict.fromkeys(PARAMETERS, 1)
    return [
        p
        for p in PARAMETERS
        if any(one.expanded(plain) != one.expanded({**plain, p: None}) for one in job.writers)
        or any(f":{p}" in one.text for one in job.writers)
    ]


def literals(values: Values) -> dict[str, str]:
    """Return values as SQL."""
    return {p: "CAST(NULL AS INT)" if v is None else str(v) for p, v in values.items()}


def fill(template: str, texts: Mapping[str, str]) -> str:
    """Replace some of the places in a template."""
    return re.sub(r"\{(\w+)\}", lambda place: texts.get(place[1], place[0]), template)


class Drawer:
    """Drawer of one workload."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.tables = self._tables()
        self.used: str | None = None
        self.views: Views = {}
        self.ctes: Views = {}
        """Queries of WITH in whose scope the drawer is."""
        self.aliases = 0
        self.in_subquery = False

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _tables(self) -> list[Table]:
        pick = self.random.random
        twins = [Table(schema, "e", f"e_of_{schema}", pick() < 0.7) for schema in SCHEMAS]
        third = Table(self.random.choice((None, "bronze")), "s", "s_alone", pick() < 0.3)
        return self.random.choice(([*twins, third], [*twins], [*twins, third], [twins[0], third]))

    def workload(self) -> DrawnWorkload:
        jobs = {name: self.job() for name in ("a", "b", "c")[: 3 if self.chance(0.15) else 2]}
        return DrawnWorkload(self.tables, jobs, self.chance(0.5))

    def job(self) -> DrawnJob:
        """Draw a session: USE, views, and one or two statements that write."""
        job = DrawnJob()
        self.used, self.views = None, {}
        if self.chance(0.35):
            schemas = sorted({table.schema for table in self.tables if table.schema})
            self.used = self.random.choice(schemas)
            job.texts.append(self.random.choice((f"USE {self.used}", f"USE SCHEMA `{self.used}`")))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            job.texts.append(self.view())
        for k in range(1 + self.chance(0.15)):
            if k and self.chance(0.6):
                job.texts.append(self.view(again=True))
            job.writers.append(self.statement())
            job.texts.append(job.writers[-1].text)
        return job

    # Relations

    def spelled(self, table: Table) -> str:
        """Return a name of a table that no view and no query of WITH has."""
        if table.schema is None:
            names = ["spark_catalog.default.s", "default.s"]
            parts = None
        else:
            parts = (table.schema, table.last)
            names = [
                table.full,
                table.full,
                f"`{parts[0]}`.`{parts[1]}`",
                table.full.upper(),
                f"spark_catalog.{table.full}",
            ]
        twins = sum(one.last == table.last for one in self.tables)
        alone = self.used == table.schema or (self.used is None and twins == 1)
        if alone and table.last not in {*self.views, *self.ctes}:
            names += [table.last] * 4 + [f"`{table.last}`"]
        return self.random.choice(names)

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def relation(self, *, views: bool = True) -> Relation:
        """Draw a query of WITH, a view, or a table."""
        if self.ctes and self.chance(0.7):
            name = self.random.choice(sorted(self.ctes))
            return Relation(name, self.ctes[name])
        visible = sorted({*self.views} - {*self.ctes})
        if views and visible and self.chance(0.6):
            name = self.random.choice(visible)
            spelling = self.random.choice((name, f"`{name}`", name.upper()))
            return Relation(spelling, lambda state: state.views[name](state))
        table = self.random.choice(self.tables)
        return Relation(self.spelled(table), lambda _: (Branch(table.name),))

    def query(self, *, views: bool = True, simple: bool = False) -> Relation:
        """Draw a query with the columns id, part, x, perhaps a union of two."""
        source = self.relation(views=views)
        items = [
            Text.of(text)
            for text in self.random.choice(
                (
                    *[("{id}", "{part}", "{x}")] * 6,
                    ("{id}", "{part}", "{x} + 1"),
                    ("{x}", "{part}", "{id}"),
                    ("{id}", "{x}", "{part}"),
                    ("{id}", "{p}", "{x}"),
                    ("{id}", "coalesce({part}, 0)", "{x}"),
                )
            )
        ]
        where = [] if self.chance(0.4) else [self.condition(simple=simple)]
        columns = {name: name for name in COLUMNS}
        alias = self.alias()
        if any("EXISTS" in one.written for one in where):
            columns = {name: f"{alias}.{name}" for name in COLUMNS}
        shown = ", ".join(
            f"{fill(text.written, columns)} AS {name}" if text.written != f"{{{name}}}" else name
            for text, name in zip(items, COLUMNS, strict=True)
        )
        if shown == "id, part, x" and self.chance(0.3):
            shown = "*"
        text = f"SELECT {shown} FROM {source.written} AS {alias}"
        text += f" WHERE {fill(where[0].written, columns)}" if where else ""

        def branches(state: State) -> tuple[Branch, ...]:
            shown_columns = tuple(one.expanded(state) for one in items)
            conditions = tuple(one.expanded(state) for one in where)
            return tuple(one.then(shown_columns, conditions) for one in source.branches(state))

        if not simple and self.chance(0.1):
            other = self.query(views=views, simple=True)
            return Relation(
                f"{text} UNION ALL {other.written}",
                lambda state: (*branches(state), *other.branches(state)),
            )
        return Relation(text, branches)

    def view(self, *, again: bool = False) -> str:
        """Draw the definition of a view; one that is redefined reads tables."""
        again = (again or self.chance(0.3)) and bool(self.views)
        name = self.random.choice(
            sorted(self.views) if again else ("v", "w", "v", "w", "v", "w", "v", "e")
        )
        again = name in self.views
        defined = self.views
        self.views = {} if again else defined
        drawn = self.query()
        self.views = {**defined, name: drawn.branches}
        temporary = self.random.choice(("TEMPORARY VIEW", "TEMP VIEW"))
        return f"CREATE OR REPLACE {temporary} {name} AS {drawn.written}"

    # Conditions and values

    def condition(self, *, simple: bool = False, subquery: float = 0.3) -> Text:
        """Draw a condition on a row."""
        if not simple and not self.in_subquery and self.chance(subquery):
            return self.condition_with_subquery()
        if self.chance(0.15):
            return Text(
                "{part} <=> :p",
                lambda state: (
                    "{part} IS NULL"
                    if state.values["p"] is None
                    else f"{{part}} = {state.values['p']}"
                ),
            )
        if self.chance(0.15):
            left, right = self.condition(simple=True), self.condition(simple=True)
            word = self.random.choice((" AND ", " OR "))
            return Text(
                f"({left.written}{word}{right.written})",
                lambda state: f"({left.expanded(state)}{word}{right.expanded(state)})",
            )
        return Text.of(
            self.random.choice(
                (
                    "{part} = {p}",
                    "{part} = {p}",
                    "{part} IS NULL",
                    "{part} IS NULL",
                    "{part} IS NOT NULL",
                    "{part} = coalesce({p}, {part})",
                    "{part} = coalesce({p}, 0)",
                    "{part} = {q}",
                    "{id} = {q}",
                    "{x} > {q}",
                    "{x} = 1",
                    "{x} IS NULL",
                    "{part} = 1",
                    "{part} <> {p}",
                    "NOT {part} = {p}",
                    "({part} = {p} OR {part} IS NULL)",
                    "({p} IS NULL OR {part} = {p})",
                    "{part} IN ({p}, 1)",
                    "{part} NOT IN ({p}, {q})",
                    "{part} < {p}",
                    "{id} % 2 = 1",
                )
            )
        )

    def inner(self) -> tuple[str, Callable[[State, str], str], str]:
        """Draw the FROM and WHERE of a subquery: its text, how it expands, its alias."""
        self.in_subquery = True
        head = ""
        if self.chance(0.15):
            body = self.query(simple=True)
            name = self.random.choice(("c", "e"))
            head, source = f"WITH {name} AS ({body.written}) ", Relation(name, body.branches)
        elif self.chance(0.15):
            body = self.query(simple=True)
            source = Relation(f"({body.written})", body.branches)
        else:
            source = self.relation()
        where = [] if self.chance(0.5) else [self.condition(simple=True)]
        self.in_subquery = False
        alias = self.alias()
        names = {name: f"{alias}.{name}" for name in COLUMNS}
        text = f"FROM {source.written} AS {alias}"
        text += f" WHERE {fill(where[0].written, names)}" if where else ""

        def expanded(state: State, item: str, more: str = "") -> str:
            branches = source.branches(state)
            if len(branches) != 1:
                raise NotExpandable("UNION ALL in a subquery")
            conditions = tuple(one.expanded(state) for one in where)
            branch = branches[0].then(("{id}", "{part}", "{x}"), conditions)
            if more:
                branch = branch._replace(where=(*branch.where, branch.lifted(more)))
            sql = branch.sql((item,), alias)
            if sql.count("SELECT") > 1:
                raise NotExpandable("a subquery in a subquery")
            return sql

        return head, text, alias, bool(where), expanded

    def scalar(self) -> Text:
        """Draw a subquery with one value."""
        head, text, alias, _, expanded = self.inner()
        item = self.random.choice(("max({x})", "count(*)", "min({id})"))
        shown = fill(item, {name: f"{alias}.{name}" for name in COLUMNS})
        return Text(
            f"({head}SELECT {shown} {text})",
            lambda state: f"({expanded(state, item)})",
        )

    def condition_with_subquery(self) -> Text:
        """Draw IN, EXISTS, or a comparison with a subquery."""
        form = self.random.random()
        if form < 0.35:
            column = self.random.choice(("{x}", "{id}"))
            word = self.random.choice((">", "=", "<="))
            value = self.scalar()
            return Text(
                f"{column} {word} {value.written}",
                lambda state: f"{column} {word} {value.expanded(state)}",
            )
        head, text, alias, has_where, expanded = self.inner()
        if form < 0.7:
            column = self.random.choice(("id", "x", "part"))
            negated = self.random.choice(("", "", "NOT "))
            return Text(
                f"{{{column}}} {negated}IN ({head}SELECT {alias}.{column} {text})",
                lambda state: f"{{{column}}} {negated}IN ({expanded(state, f'{{{column}}}')})",
            )
        negated = self.random.choice(("", "NOT "))
        meets = " AND " if has_where else " WHERE "
        return Text(
            f"{negated}EXISTS ({head}SELECT 1 {text}{meets}{alias}.id = {{id}})",
            lambda state: f"{negated}EXISTS ({expanded(state, '1', '{id} = <id>')})".replace(
                "<id>", "{id}"
            ),
        )

    def value(self, column: str) -> Text:
        """Draw a value for a column, perhaps of a subquery."""
        kind = self.random.random()
        if kind < 0.15 and column == "x":
            return self.scalar()
        return Text.of(
            self.random.choice(
                (
                    *[f"{{{column}}}"] * 4,
                    "{p}",
                    "{q}",
                    "1",
                    "0",
                    "NULL",
                    f"coalesce({{{column}}}, {{p}})",
                )
            )
        )

    # Statements

    def finished(self, target: Table, text: str, expanded: Callable[[State], str]) -> Written:
        views = dict(self.views)
        self.ctes = {}
        return Written(target.name, text, lambda values: expanded(State(values, views)))

    def statement(self) -> Written:
        """Draw a statement that writes."""
        draw = self.random.choice(
            (
                self.insert_values,
                self.insert_query,
                self.insert_query,
                self.insert_query,
                self.insert_total,
                self.insert_groups,
                self.delete,
                self.delete,
                self.update,
                self.update,
                self.merge,
                self.merge,
                self.maintain,
            )
        )
        return draw(self.random.choice(self.tables))

    def insert_values(self, target: Table) -> Written:
        rows = [
            [Text.of(self.random.choice(("{p}", "{q}", "0", "1", "NULL"))) for _ in COLUMNS]
            for _ in range(self.random.choice((1, 1, 2)))
        ]

        def joined(texts: list[list[str]]) -> str:
            return ", ".join(f"({', '.join(row)})" for row in texts)

        text = joined([[one.written for one in row] for row in rows])
        return self.finished(
            target,
            f"INSERT INTO {self.spelled(target)} VALUES {text}",
            lambda state: (
                f"INSERT INTO {target.name} VALUES "
                + joined([[one.expanded(state) for one in row] for row in rows])
            ),
        )

    def source(self) -> tuple[str, str, Relation]:
        """Draw what an INSERT reads, with a WITH that stands before or behind INTO."""
        if not self.chance(0.3):
            if self.chance(0.15):
                body = self.query()
                return "", "", Relation(f"({body.written})", body.branches)
            return "", "", self.relation()
        body = self.query()
        name = self.random.choice(("c", "c", "e", "v"))
        text = f"WITH {name} AS ({body.written}) "
        self.ctes = {name: body.branches}
        source = self.relation()
        before = self.chance(0.5)
        return text if before else "", "" if before else text, source

    def select(self, source: Relation, items: list[Text], where: list[Text]) -> str:
        """Return a query as written."""
        alias = self.alias()
        names = {name: name for name in COLUMNS}
        if any("SELECT" in one.written for one in (*items, *where)):
            names = {name: f"{alias}.{name}" for name in COLUMNS}
        text = f"SELECT {', '.join(fill(one.written, names) for one in items)}"
        text += f" FROM {source.written} AS {alias}"
        return text + (f" WHERE {fill(where[0].written, names)}" if where else "")

    def insert_query(self, target: Table) -> Written:
        before, behind, source = self.source()
        items = [self.value(column) for column in COLUMNS]
        where = [] if self.chance(0.4) else [self.condition()]
        verb = "INSERT OVERWRITE" if self.chance(0.15) else "INSERT INTO"
        text = f"{before}{verb} {self.spelled(target)} {behind}{self.select(source, items, where)}"
        alias = self.alias()

        def expanded(state: State) -> str:
            conditions = tuple(one.expanded(state) for one in where)
            shown = tuple(one.expanded(state) for one in items)
            queries = [
                branch.then(("{id}", "{part}", "{x}"), conditions).sql(shown, alias)
                for branch in source.branches(state)
            ]
            return f"{verb} {target.name} {' UNION ALL '.join(queries)}"

        return self.finished(target, text, expanded)

    def insert_total(self, target: Table) -> Written:
        before, behind, source = self.source()
        where = [] if self.chance(0.3) else [self.condition()]
        items = [Text.of(one) for one in ("count(*)", self.random.choice(("{p}", "0")), "max({x})")]
        text = (
            f"{before}INSERT INTO {self.spelled(target)} {behind}"
            f"{self.select(source, items, where)}"
        )
        alias = self.alias()

        def expanded(state: State) -> str:
            branches = source.branches(state)
            if len(branches) != 1:
                raise NotExpandable("UNION ALL below an aggregate")
            branch = branches[0].then(
                ("{id}", "{part}", "{x}"), tuple(one.expanded(state) for one in where)
            )
            shown = tuple(one.expanded(state) for one in items)
            return f"INSERT INTO {target.name} {branch.sql(shown, alias)}"

        return self.finished(target, text, expanded)

    def insert_groups(self, target: Table) -> Written:
        """Draw GROUP BY with HAVING, which becomes a condition on a derived table."""
        source = self.relation()
        where = [] if self.chance(0.6) else [self.condition(simple=True)]
        least = self.scalar() if self.chance(0.6) else Text.of(self.random.choice(("1", "{q}")))
        items = [Text.of(one) for one in ("{id}", "max({part})", "count(*)")]
        text = self.select(source, items, where)
        text = (
            f"INSERT INTO {self.spelled(target)} {text} GROUP BY id HAVING count(*) >"
            f" {least.written}"
        )
        alias = self.alias()

        def expanded(state: State) -> str:
            branches = source.branches(state)
            if len(branches) != 1 or branches[0].columns[0] != "{id}":
                raise NotExpandable("GROUP BY of an expression")
            branch = branches[0].then(
                ("{id}", "{part}", "{x}"), tuple(one.expanded(state) for one in where)
            )
            if "SELECT" in "".join(branch.where):
                raise NotExpandable("a subquery in a derived table")
            groups = branch.sql(("{id} AS id", "max({part}) AS part", "count(*) AS x"), alias)
            return (
                f"INSERT INTO {target.name} SELECT g.id, g.part, g.x FROM ({groups} GROUP BY"
                f" {alias}.id) AS g WHERE g.x > {least.expanded(state)}"
            )

        return self.finished(target, text, expanded)

    def delete(self, target: Table) -> Written:
        where = self.condition(subquery=0.05)  # Delta rejects these
        names = {name: f"o.{name}" for name in COLUMNS}
        return self.finished(
            target,
            f"DELETE FROM {self.spelled(target)} AS o WHERE {fill(where.written, names)}",
            lambda state: (
                f"DELETE FROM {target.name} AS o WHERE {fill(where.expanded(state), names)}"
            ),
        )

    def update(self, target: Table) -> Written:
        where = self.condition(subquery=0.05)
        column = self.random.choice(("x", "x", "part"))
        value = self.value(column)
        names = {name: f"o.{name}" for name in COLUMNS}
        return self.finished(
            target,
            f"UPDATE {self.spelled(target)} AS o SET {column} = {fill(value.written, names)}"
            f" WHERE {fill(where.written, names)}",
            lambda state: (
                f"UPDATE {target.name} AS o SET {column} = {fill(value.expanded(state), names)}"
                f" WHERE {fill(where.expanded(state), names)}"
            ),
        )

    def merge(self, target: Table) -> Written:
        if self.chance(0.5):
            body = self.query()
            source = Relation(f"({body.written})", body.branches)
        else:
            source = self.relation()
        meets = self.random.choice(
            (
                "t.id = s.id",
                "t.id = s.id",
                "t.id = s.id AND t.part = s.part",
                "t.id = s.id AND t.part = {p}",
                "t.id = s.id AND t.part <=> s.part",
                "t.id = s.id AND t.part IS NULL",
            )
        )
        clauses = self.random.choice(
            (
                "WHEN NOT MATCHED THEN INSERT *",
                "WHEN MATCHED THEN UPDATE SET x = s.x",
                "WHEN MATCHED THEN UPDATE SET x = {p} WHEN NOT MATCHED THEN INSERT *",
                "WHEN MATCHED AND s.x > {q} THEN DELETE",
                "WHEN MATCHED AND t.part IS NULL THEN DELETE",
                "WHEN NOT MATCHED AND s.part IS NULL THEN INSERT *",
            )
        )
        tail = Text.of(f"ON {meets} {clauses}")
        alias = self.alias()

        def expanded(state: State) -> str:
            branches = source.branches(state)
            if len(branches) != 1:
                raise NotExpandable("UNION ALL in the source of MERGE")
            branch = branches[0]
            items = tuple(f"{{{name}}} AS {name}" for name in COLUMNS)
            text = (
                branch.table if branch == Branch(branch.table) else f"({branch.sql(items, alias)})"
            )
            return f"MERGE INTO {target.name} AS t USING {text} AS s {tail.expanded(state)}"

        return self.finished(
            target,
            f"MERGE INTO {self.spelled(target)} AS t USING {source.written} AS s {tail.written}",
            expanded,
        )

    def maintain(self, target: Table) -> Written:
        verb = self.random.choice(("OPTIMIZE", "TRUNCATE TABLE"))
        return self.finished(
            target, f"{verb} {self.spelled(target)}", lambda _: f"{verb} {target.name}"
        )


def draw_workload(seed: int) -> DrawnWorkload:
    """Return a drawn workload whose expanded form can be written, always the same for a seed."""
    for attempt in range(1_000):
        drawn = Drawer(seed * 1_000 + attempt).workload()
        try:
            for value in (None, 1):
                for job in drawn.jobs.values():
                    for one in job.writers:
                        one.expanded(dict.fromkeys(PARAMETERS, value))
        except NotExpandable:
            continue
        return drawn
    raise AssertionError(seed)
