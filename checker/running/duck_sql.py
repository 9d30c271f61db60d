"""What Spark's statements are in DuckDB: steps, made by sqlglot from the tree of the author's text.

INSERT OVERWRITE becomes delete and insert, and OPTIMIZE and VACUUM, which change no row, are nothing. Where DuckDB
is known to differ from Spark, the SQL reader has refused the statement already (docs/ARCHITECTURE.md, 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlglot import expressions as exp

from isolitmus.checker.running.duck_functions import as_spark_computes
from isolitmus.checker.running.duck_planned import COMPUTED, conjunct_trees, planned, staged
from isolitmus.model import definition as df
from isolitmus.model import statement as st
from isolitmus.model.failing import RANGES
from isolitmus.model.raw import Raw
from isolitmus.model.values import literal
from isolitmus.specs.placeholders import aliased, marked_version
from isolitmus.specs.sql import syntax_of
from isolitmus.specs.sql_definitions import checked
from isolitmus.specs.sql_replacing import selected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Column, Schema

__all__ = [
    "DuckStep",
    "after_init",
    "constraint_condition",
    "create_table",
    "duck_text",
    "filled",
    "resumed",
    "sequences",
    "translate",
    "translated",
]


FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
}
"""What DuckDB computes: of ``x + 1 < 5`` it makes ``x < 4``, which never fails."""


class DuckStep(NamedTuple):
    """One statement of DuckDB's, and what it is for: to ``plan`` is to compute before the first row what
    Spark computes then, to ``collect`` to put the rows that come into a table of their own, to ``check``
    to fail where Spark fails, and to ``write`` to change the table.
    """

    does: Literal["plan", "collect", "check", "write"]
    sql: str


def translate(
    statement: st.Statement, schemas: Mapping[str, Schema], *, widens: bool = False
) -> list[DuckStep]:
    """The steps that do to the rows what a statement does; ``widens``: others alter its columns."""
    if isinstance(statement, st.Optimize | st.Vacuum | st.Read):
        return []
    if isinstance(statement, st.Block):
        return [
            step for one in statement.statements for step in translate(one, schemas, widens=widens)
        ]
    if isinstance(statement, df.Definition):
        return _definition(statement)
    if isinstance(statement, df.Restore):
        table, earlier = statement.target, after_init(statement.target, statement.version)
        return [
            DuckStep("write", f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM "{earlier}"')
        ]
    if isinstance(statement, df.Replace):
        return _replacement(statement, schemas)
    if isinstance(statement, df.Create):
        return _creation(statement, schemas)
    if isinstance(statement, df.Convert):
        return [DuckStep("write", _conversion(schemas[statement.target]))]
    if isinstance(statement, df.Clone):
        return _clone(statement)
    if isinstance(statement, st.Truncate):
        return [DuckStep("write", f'DELETE FROM "{statement.target}"')]
    tree = _tree(syntax_of(statement).tree(), schemas)
    schema = _target(statement, schemas)
    match statement, tree:
        case st.Update(), exp.Update():
            _unqualified(tree)
            return [*_first(tree, schema, schemas), DuckStep("write", _sql(tree))]
        case st.Merge(), exp.Merge():
            return [*_first(tree, schema, schemas), *_merge(statement, tree, schema)]
        case st.Insert(), exp.Insert():
            grows = statement.options.grows
            into = f'ALTER TABLE "{schema.name}" ADD COLUMN IF NOT EXISTS'
            comes = [DuckStep("write", f'{into} "{c.name}" {c.type}') for c in grows or ()]
            if statement.options.makes:
                comes.append(DuckStep("write", create_table(schema, "CREATE TABLE IF NOT EXISTS")))
            listed = grows is not None or not widens
            first = _first(tree, schema, schemas)
            return [*first, *comes, *_insert(statement, tree, schema, listed=listed)]
    return [*_first(tree, None, schemas), DuckStep("write", _sql(tree))]


def _target(
    statement: st.Delete | st.Insert | st.Merge | st.Update | Raw, schemas: Mapping[str, Schema]
) -> Schema:
    """The table that a statement writes, with the columns on which it was resolved."""
    known = None if isinstance(statement, Raw) else statement.origin
    return (schemas if known is None else known.tables)[statement.target]


def translated(tree: exp.Expr, schemas: Mapping[str, Schema]) -> str:
    """A query."""
    return _sql(_tree(tree, schemas))


def duck_text(tree: exp.Expr) -> str:
    """A statement that DuckDB understands as it is, with arithmetic as Spark computes it."""
    return _sql(tree)


def constraint_condition(definition: df.Definition) -> str:
    """The condition of a constraint, as DuckDB has it."""
    return _sql(checked(syntax_of(definition)))


def create_table(schema: Schema, verb: str = "CREATE OR REPLACE TABLE") -> str:
    """What makes the table as it is declared, empty."""
    return f'{verb} "{schema.name}" ({_columns(schema)})'


def filled(schema: Schema) -> list[str]:
    """What puts the rows into a table that it holds from the start."""
    rows = [f"({', '.join(map(literal, r.values))})" for file in schema.held for r in file.rows]
    return [f'INSERT INTO "{schema.name}" VALUES {", ".join(rows)}'] if rows else []


def sequences(schema: Schema) -> list[str]:
    """For each identity column of a table that was just made, a sequence of its values."""
    made = [
        _sequence(schema.name, column, column.identity.start)
        for column in schema.columns
        if column.identity is not None
    ]
    return [*made, *_defaults(schema, schema.name)]


def resumed(table: str, column: Column, value: int) -> list[str]:
    """What has an identity column go on with a value."""
    alter = f'ALTER TABLE "{table}" ALTER "{column.name}"'
    return [
        f"{alter} DROP DEFAULT",
        _sequence(table, column, value),
        _default(table, table, column),
    ]


def _sequence(table: str, column: Column, first: int) -> str:
    low, high = RANGES["BIGINT"]
    assert column.identity is not None
    return (
        f'CREATE OR REPLACE SEQUENCE "{table}.{column.name}" MINVALUE {low} MAXVALUE {high}'
        f" START WITH {first} INCREMENT BY {column.identity.step}"
    )


def after_init(table: str, number: int) -> str:
    """What a copy of the table after that many init statements is called."""
    return f"{table.lower()} after init {number}"


def _tree(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """The author's tree; a table at the version of an init statement is a table of its own, and one
    by another path is the table.
    """
    tree = tree.copy()
    given = tree.args.get("with_")
    if isinstance(tree, exp.Insert) and given is not None:
        tree.set("with_", None)
        first = tree.expression
        while isinstance(first, exp.Union):
            first = first.this
        first.set("with_", given)
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for values in list(tree.find_all(exp.Values)):
        _numbered(values)
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = aliased(table, schemas) or table.name
            table.set("this", exp.to_identifier(name))
            table.set("db", None)
            table.set("catalog", None)
        if table.args.get("version"):
            name = after_init(table.name.lower(), marked_version(table) or 0)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(name), alias=alias))
    staged(tree, schemas)
    return _staged(tree, schemas)


def _numbered(values: exp.Values) -> None:
    """Names for the columns of a FROM VALUES without any: Spark counts them from 1, DuckDB from 0."""
    alias = values.args.get("alias")
    rows = values.expressions
    if isinstance(values.parent, exp.Insert) or (alias is not None and alias.args.get("columns")):
        return
    width = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
    names = [exp.to_identifier(f"col{k + 1}") for k in range(width)]
    name = alias.this if alias is not None and alias.this else exp.to_identifier("given")
    values.set("alias", exp.TableAlias(this=name, columns=names))


def _definition(statement: df.Definition) -> list[DuckStep]:
    """The columns that come, go and change their names: what else it does no later statement sees in
    its rows.
    """
    alter = f'ALTER TABLE "{statement.target}"'
    match statement.change:
        case df.AddColumns(columns):
            return [DuckStep("write", f'{alter} ADD COLUMN "{c.name}" {c.type}') for c in columns]
        case df.DropColumn(name):
            return [DuckStep("write", f'{alter} DROP COLUMN "{name}"')]
        case df.RenameColumn(name, other):
            return [DuckStep("write", f'{alter} RENAME COLUMN "{name}" TO "{other}"')]
    return []


def _replacement(statement: df.Replace, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """A table made anew; its rows are collected first, since they may come from what goes."""
    schema = schemas[statement.target]
    there = [] if statement.create else [DuckStep("check", f'FROM "{schema.name}" LIMIT 0')]
    made = DuckStep("write", create_table(schema))
    if statement.query is None:
        return [*there, made]
    query = translated(selected(syntax_of(statement)), schemas)
    return [
        *there,
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {query}"),
        made,
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def _creation(statement: df.Create, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """A table made if it is not there; in one statement, for which it is there or not."""
    schema = schemas[statement.target]
    made = f'CREATE TABLE {"IF NOT EXISTS" if statement.if_not_exists else ""} "{schema.name}"'
    if statement.query is None:
        return [DuckStep("write", f"{made} ({_columns(schema)})")]
    query = translated(selected(syntax_of(statement)), schemas)
    return [DuckStep("write", f"{made} AS {_as_declared(query, schema)}")]


def _conversion(schema: Schema) -> str:
    """A table made of the rows that are there, if it has not been made."""
    rows = (f"({', '.join(map(literal, row))})" for row in schema.parquet)
    query = _as_declared(f"VALUES {', '.join(rows)}", schema)
    return f'CREATE TABLE IF NOT EXISTS "{schema.name}" AS {query}'


def _as_declared(query: str, schema: Schema) -> str:
    """A query whose columns have the names and types of a table's."""
    names = ", ".join(f'"{column.name}"' for column in schema.columns)
    casts = ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in schema.columns)
    return f"SELECT {casts} FROM ({query}) AS given ({names})"


def _clone(statement: df.Clone) -> list[DuckStep]:
    """A copy of a table; a table with rows is not replaced by one."""
    target, version = statement.target, statement.version
    source = statement.source if version is None else after_init(statement.source, version)
    rows = f'SELECT * FROM "{source}"'
    match statement.how:
        case "create":
            return [DuckStep("write", f'CREATE TABLE "{target}" AS {rows}')]
        case "create if not exists":
            return [DuckStep("write", f'CREATE TABLE IF NOT EXISTS "{target}" AS {rows}')]
        case "create or replace":
            made = f'CREATE TABLE IF NOT EXISTS "{target}" AS {rows} LIMIT 0'
            there = DuckStep("write", made)
        case "replace":
            there = DuckStep("check", f'FROM "{target}" LIMIT 0')
    empty = DuckStep("check", f"SELECT error('not empty') FROM \"{target}\"")
    return [there, empty, DuckStep("write", f'CREATE OR REPLACE TABLE "{target}" AS {rows}')]


def _insert(
    statement: st.Insert, tree: exp.Insert, schema: Schema, *, listed: bool
) -> list[DuckStep]:
    """An INSERT; one that replaces collects its rows first, since they may come from what goes. Columns
    that it does not list are ``listed`` for it, unless others alter them: then they go by position.
    """
    into = tree.this
    named = into.expressions if isinstance(into, exp.Schema) else []
    spec = (into.this if isinstance(into, exp.Schema) else into).args.get("partition")
    parts = spec.expressions if spec is not None else []
    fixed = {part.this.name.lower(): _sql(part.expression) for part in parts}
    open_ = [c.name for c in schema.columns if c.name and c.name.lower() not in fixed]
    given = [n.name for n in named] or (open_ if listed or fixed else [])
    names = ", ".join(f'"{c}"' for c in [*given, *fixed])
    columns = f"({names})" if names else ""
    query = _sql(tree.expression)
    if fixed:
        query = f"SELECT *, {', '.join(fixed.values())} FROM ({query}) AS given"
    condition = tree.args.get("where")
    if not (tree.args.get("overwrite") or condition):
        if tree.expression.find(exp.Table) is None:
            return [DuckStep("write", f'INSERT INTO "{schema.name}" {columns} {query}')]
        return [  # of branches that read what they write, DuckDB inserts one before it reads the next
            DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE addition AS {query}"),
            DuckStep("write", f'INSERT INTO "{schema.name}" {columns} FROM addition'),
        ]
    check: list[DuckStep] = []
    where, using = "TRUE", statement.options.using
    if statement.options.dynamic and schema.partitioned_by:
        same = (
            f'g."{c}" IS NOT DISTINCT FROM "{schema.name}"."{c}"' for c in schema.partitioned_by
        )
        where = f"EXISTS (SELECT 1 FROM replacement AS g WHERE {' AND '.join(same)})"
    elif using:
        names_ = [schema.columns[index].name for index in using]
        same = (f'g."{name}" = "{schema.name}"."{name}"' for name in names_)
        where = f"EXISTS (SELECT 1 FROM replacement AS g WHERE {' AND '.join(same)})"
    elif condition or fixed:
        same = (f'"{name}" = {value}' for name, value in fixed.items())
        where = _sql(condition) if condition else " AND ".join(same)
        outside = f"FROM replacement WHERE ({where}) IS NOT TRUE"
        check = [DuckStep("check", f"SELECT error('a row outside') {outside}")]
    rows = f'SELECT * FROM "{schema.name}" LIMIT 0'
    return [
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {rows}"),
        *(DuckStep("collect", sql) for sql in _defaults(schema, "replacement")),
        DuckStep("collect", f"INSERT INTO replacement {columns} {query}"),
        *check,
        DuckStep("write", f'DELETE FROM "{schema.name}" WHERE {where}'),
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def _merge(statement: st.Merge, tree: exp.Merge, schema: Schema) -> list[DuckStep]:
    """A MERGE: a check, then a table for each clause with what it does, by the rows of the target, then
    its doing. DuckDB's own computes the values of a clause for rows that it is not about, too, which
    may fail. Where several rows of the source match one of the target, Spark fails, unless the
    one clause for those is a DELETE without a condition.
    """
    parts = (tree.args[part] for part in ("this", "using", "on"))
    target, source, on = map(_sql, parts)
    name, other = (f'"{tree.args[part].alias_or_name}"' for part in ("this", "using"))
    matches = f"(SELECT count(*) FROM {source} WHERE {on})"
    froms = {
        "matched": f"{target} JOIN {source} ON {on}",
        "by source": f"{target} WHERE {matches} = 0",
        "not matched": f"{source} WHERE NOT EXISTS (SELECT 1 FROM {target} WHERE {on})",
    }
    before: list[DuckStep] = []
    after: list[DuckStep] = []
    earlier: dict[str, list[str]] = {kind: [] for kind in froms}
    sets = {"matched": iter(statement.matched), "by source": iter(statement.by_source)}
    for k, when in enumerate(tree.args["whens"].expressions):
        kind = "by source" if when.args.get("source") else "not matched"
        kind = "matched" if when.args["matched"] else kind
        then, guard = when.args["then"], when.args.get("condition")
        holds = "TRUE" if guard is None else _sql(guard)
        where = " AND ".join([*earlier[kind], f"({holds})"])
        rows = f"{froms[kind]} {'WHERE' if kind == 'matched' else 'AND'} {where}"
        earlier[kind].append(f"({holds}) IS NOT TRUE")
        taken = f'CREATE OR REPLACE TEMP TABLE "clause {k}" AS SELECT'
        if kind == "not matched":
            starred = isinstance(then.this, exp.Star)
            values = "*" if starred else ", ".join(map(_sql, then.expression.expressions))
            columns = "" if starred or then.this is None else _sql(then.this)
            order = "BY NAME" if starred else columns
            before.append(DuckStep("collect", f"{taken} {values} FROM {rows}"))
            after.append(
                DuckStep("write", f'INSERT INTO "{schema.name}" {order} FROM "clause {k}"')
            )
            continue
        clause = next(sets[kind])
        changed = [f'"{schema.columns[index].name}"' for index, _ in clause.sets]
        if clause.action == "delete" or isinstance(then.expressions[0], exp.Star):
            given = [f"{other}.{column}" for column in changed]
        else:
            given = [_sql(assignment.expression) for assignment in then.expressions]
        values = "".join(f', {v} AS "{k}"' for k, v in enumerate(given))
        before.append(DuckStep("collect", f"{taken} {name}.rowid AS row{values} FROM {rows}"))
        at = f'"{schema.name}".rowid'
        if clause.action == "delete":
            gone = f'WHERE rowid IN (SELECT row FROM "clause {k}")'
            after.append(DuckStep("write", f'DELETE FROM "{schema.name}" {gone}'))
        else:
            each = ", ".join(f'{column} = g."{k}"' for k, column in enumerate(changed))
            rows = f'FROM "clause {k}" AS g WHERE {at} = g.row'
            after.append(DuckStep("write", f'UPDATE "{schema.name}" SET {each} {rows}'))
    rewrites = bool(statement.matched or statement.by_source)
    if rewrites and [(c.action, c.condition) for c in statement.matched] != [("delete", None)]:
        several = f"SELECT error('several rows match one') FROM {target} WHERE {matches} > 1"
        before.insert(0, DuckStep("check", several))
    return [*before, *after]


def _unqualified(update: exp.Update) -> None:
    """SET names columns of its table alone."""
    for assignment in update.expressions:
        if isinstance(assignment, exp.EQ):
            assignment.this.set("table", None)


def _defaults(schema: Schema, table: str) -> list[str]:
    """That a table takes the values of identity columns from the sequences."""
    return [
        _default(table, schema.name, column)
        for column in schema.columns
        if column.identity is not None
    ]


def _default(table: str, source: str, column: Column) -> str:
    sequence = f'"{source}.{column.name}"'
    return f'ALTER TABLE "{table}" ALTER "{column.name}" SET DEFAULT nextval(\'{sequence}\')'


def _columns(schema: Schema) -> str:
    return ", ".join(map(_column, schema.columns))


def _column(column: Column) -> str:
    return f'"{column.name}" {column.type}'


def _first(tree: exp.Expr, target: Schema | None, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """What is run before a statement."""
    return [DuckStep("plan", _sql(before)) for before in planned(tree, target, schemas)]


def _sql(tree: exp.Expr) -> str:
    root = tree.copy()
    for node in reversed(list(root.walk())):
        computed = _computed(node)
        if node is root:
            root = computed
        elif computed is not node:
            node.replace(computed)
    return root.sql(dialect="duckdb", identify=True)  # a column may be called desc or end


def _computed(node: exp.Expr) -> exp.Expr:
    """Arithmetic as functions, and what else DuckDB computes otherwise."""
    found = node
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        found = node.copy()
        if node.this.is_int:
            value = -int(node.this.this)
            narrow = next(name for name, (low, _) in RANGES.items() if low <= value)
            found = exp.cast(exp.Literal.number(value), narrow)  # DuckDB's -2147483648 is a BIGINT
    elif isinstance(node, exp.Neg):
        zero = exp.Literal.number(0)
        found = exp.Anonymous(this="subtract", expressions=[zero, node.this])
    elif type(node) in FUNCTIONS and not isinstance(node.expression, exp.Interval):
        parts = [node.this, node.expression]
        found = exp.Anonymous(this=FUNCTIONS[type(node)], expressions=parts)
    elif isinstance(node, exp.Mod):
        found = _remainder(node.this, node.expression)
    if found is not node:
        found.meta.update(node.meta)
    return as_spark_computes(found)


def _remainder(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """What is left where there is something to divide by; DuckDB computes both sides first, and fails by -1 where
    the quotient would be too large.
    """

    def by(number: int) -> exp.Expr:
        return exp.EQ(this=exp.paren(right.copy()), expression=exp.Literal.number(number))

    fails = exp.Anonymous(this="error", expressions=[exp.Literal.string("a remainder by zero")])
    known = exp.Is(this=exp.paren(left.copy()), expression=exp.null()).not_()
    found = exp.Case(default=exp.Mod(this=left.copy(), expression=right.copy()))
    found = found.when(exp.Is(this=exp.paren(right.copy()), expression=exp.null()), exp.null())
    found = found.when(by(0), exp.Case().when(known, fails))
    return exp.paren(found.when(by(-1), exp.Sub(this=left.copy(), expression=left.copy())))


def _staged(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """Of conditions with arithmetic, what they say of partitions first: of other partitions no row is read."""
    for where in tree.find_all(exp.Where):
        of = where.parent
        assert of is not None
        source = of.args["from_"] if isinstance(of, exp.Select) and of.args.get("from_") else of
        name = source.this.name.lower() if isinstance(source.this, exp.Table) else ""
        parts = {
            p.lower() for n, s in schemas.items() if n.lower() == name for p in s.partitioned_by
        }
        if not where.this.find(*COMPUTED):
            continue
        early: list[exp.Expr] = []
        late: list[exp.Expr] = []
        for part in conjunct_trees(where.this):
            names = {column.name.lower() for column in part.find_all(exp.Column)}
            (early if names <= parts and not part.find(exp.Select) else late).append(part)
        if early and late:
            then = exp.Case(default=exp.false()).when(exp.and_(*early), exp.and_(*late))
            where.set("this", then)
    return tree
