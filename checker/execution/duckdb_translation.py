"""Translation of Spark's statements to steps in DuckDB, from sqlglot's tree of the author's text.

INSERT OVERWRITE becomes DELETE and INSERT. An INSERT or MERGE takes several steps. OPTIMIZE and
VACUUM, which change no row, only check that the table exists. Spark computes some values before the
first row, and DuckDB only with the rows: constants, their casts to the columns that they are stored
into, and uncorrelated subqueries. Those are computed in a step before the statement, so that it
fails where Spark fails. Statements for which DuckDB is known to differ from Spark have been
rejected by the SQL reader (docs/ARCHITECTURE.md, 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sqlglot import expressions as exp

from isolitmus.checker.execution.duckdb_dialect import (
    columns_of,
    create_table,
    sequence_defaults,
    to_duck_sql,
)
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.types import RANGES
from isolitmus.model.sql.values import NULL_PARTITIONS, literal
from isolitmus.specs.sql.definitions import check_condition
from isolitmus.specs.sql.parameters import marked_version, tables_by_path
from isolitmus.specs.sql.row_statements import is_default
from isolitmus.specs.sql.statements import syntax_of
from isolitmus.specs.sql.table_creations import select_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.model.sql.schema import Schema

Describe: TypeAlias = "Callable[[str], Sequence[str]]"
"""Function that returns the names of a query's columns."""


class DuckStep(NamedTuple):
    """One statement of DuckDB and its purpose.

    ``plan`` computes what Spark computes before the first row. ``collect`` puts rows into a
    temporary table. ``check`` fails where Spark fails. ``write`` changes the table.
    """

    does: Literal["plan", "collect", "check", "write"]
    sql: str


def translate_insert(
    statement: st.Insert, tree: exp.Insert, schema: Schema, *, listed: bool
) -> list[DuckStep]:
    """Return the steps of an INSERT.

    An INSERT that replaces rows collects its rows first, since they may come from the removed ones.

    Parameters
    ----------
    statement : Insert
        The resolved statement.
    tree : sqlglot Insert
        Its tree.
    schema : Schema
        The target.
    listed : bool
        Whether to list the target's columns if the statement lists none. Without a list, values are
        assigned by position, also if other transactions alter the columns.
    """
    into = tree.this
    named = into.expressions if isinstance(into, exp.Schema) else []
    spec = (into.this if isinstance(into, exp.Schema) else into).args.get("partition")
    parts = spec.expressions if spec is not None else []
    # a partition column without a value has its values from the rows
    fixed = {
        part.this.name.lower(): to_duck_sql(part.expression) for part in parts if part.expression
    }
    open_ = [c.name for c in schema.columns if c.name and c.name.lower() not in fixed]
    given = [n.name for n in named] or (open_ if listed or fixed else [])
    names = ", ".join(f'"{c}"' for c in [*given, *fixed])
    columns = "BY NAME" if tree.args.get("by_name") else f"({names})" if names else ""
    query = to_duck_sql(tree.expression)
    if fixed:
        query = f"SELECT *, {', '.join(fixed.values())} FROM ({query}) AS given"
    condition = tree.args.get("where")
    if not (tree.args.get("overwrite") or condition):
        if tree.expression.find(exp.Table) is None:
            return [DuckStep("write", f'INSERT INTO "{schema.name}" {columns} {query}')]
        # if branches read the target, DuckDB inserts the rows of one before it reads the next
        return [
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
        where = to_duck_sql(condition) if condition else " AND ".join(same)
        outside = f"FROM replacement WHERE ({where}) IS NOT TRUE"
        check = [DuckStep("check", f"SELECT error('a row outside') {outside}")]
    rows = f'SELECT * FROM "{schema.name}" LIMIT 0'
    return [
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {rows}"),
        *(DuckStep("collect", sql) for sql in sequence_defaults(schema, "replacement")),
        DuckStep("collect", f"INSERT INTO replacement {columns} {query}"),
        *nulls_of_partitions(schema, "replacement"),
        *check,
        DuckStep("write", f'DELETE FROM "{schema.name}" WHERE {where}'),
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def nulls_of_partitions(schema: Schema, table: str | None = None) -> list[DuckStep]:
    """Return the steps that replace texts by NULL that are NULL in a partition column.

    ``table`` is the table with the rows, if it is not the schema's.
    """
    texts = ", ".join(map(literal, NULL_PARTITIONS))
    return [
        DuckStep(
            "collect" if table else "write",
            f'UPDATE "{table or schema.name}" SET {column} = NULL WHERE {column} IN ({texts})',
        )
        for column in (
            f'"{schema.columns[index].name}"'
            for index in schema.partition_indexes
            if schema.columns[index].type == "STRING"
        )
    ]


def _starred(
    statement: st.Merge, source: str, schema: Schema, describe: Describe | None
) -> list[str] | None:
    """Return the columns that ``*`` means in a MERGE: those of the target, whatever the source has.

    With SCHEMA EVOLUTION they are those that the source has too: None where the statement was
    resolved on the tables that it meets, since the target then has all of the source's.
    """
    evolves = syntax_of(statement).evolves
    if describe is None:
        return None if evolves else [f'"{column.name}"' for column in schema.columns if column.name]
    given = {name.lower() for name in describe(source)}
    names = describe(f'FROM "{schema.name}"')
    return [f'"{name}"' for name in names if name.lower() in given or not evolves]


def _inserted(then: exp.Insert, stars: Sequence[str] | None) -> tuple[str, str]:
    """Return the values that a clause of a MERGE inserts, and the columns that take them."""
    if not isinstance(then.this, exp.Star):
        return ", ".join(map(to_duck_sql, then.expression.expressions)), to_duck_sql(then.this)
    values = "*" if stars is None else ", ".join(stars)
    return values, "BY NAME" if stars is None else f"({values})"


def translate_merge(
    statement: st.Merge, tree: exp.Merge, schema: Schema, describe: Describe | None = None
) -> list[DuckStep]:
    """Return the steps of a MERGE: a check, a table with the rows of each clause, then the changes.

    ``describe`` is that of `translate`. DuckDB's own MERGE also computes the values of a clause
    for rows that do not match it, which may fail. If several rows of the source match one of
    the target, Spark fails, unless the only clause for matched rows is a DELETE without a
    condition.
    """
    parts = (tree.args[part] for part in ("this", "using", "on"))
    target, source, on = map(to_duck_sql, parts)
    stars = _starred(statement, f"FROM {source}", schema, describe)
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
        holds = "TRUE" if guard is None else to_duck_sql(guard)
        where = " AND ".join([*earlier[kind], f"({holds})"])
        rows = f"{froms[kind]} {'WHERE' if kind == 'matched' else 'AND'} {where}"
        earlier[kind].append(f"({holds}) IS NOT TRUE")
        taken = f'CREATE OR REPLACE TEMP TABLE "clause {k}" AS SELECT'
        if kind == "not matched":
            values, order = _inserted(then, stars)
            before.append(DuckStep("collect", f"{taken} {values} FROM {rows}"))
            after.append(
                DuckStep("write", f'INSERT INTO "{schema.name}" {order} FROM "clause {k}"')
            )
            continue
        clause = next(sets[kind])
        changed = [f'"{schema.columns[index].name}"' for index, _ in clause.sets]
        if clause.action == "delete" or isinstance(then.expressions[0], exp.Star):
            changed = changed if stars is None or clause.action == "delete" else stars
            given = [f"{other}.{column}" for column in changed]
        else:
            # in the order of the text, which may differ from that of `sets`
            changed = [f'"{assignment.this.name}"' for assignment in then.expressions]
            given = [to_duck_sql(assignment.expression) for assignment in then.expressions]
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


COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Div, exp.Cast)
ROWS = (exp.Column, exp.Star, exp.AggFunc, exp.Query)
"""Expressions that depend on rows, and so are not constants."""

DIGITS = len(str(RANGES["INT"][1]))
"""Number of digits of the largest INT."""


def planning_steps(
    tree: exp.Expr, target: Schema | None, schemas: Mapping[str, Schema]
) -> Iterator[exp.Expr]:
    """Yield queries to run before a statement, which fail where Spark fails while planning it."""
    constants = [n.copy() for n in tree.find_all(*COMPUTED) if _constant(n) and _certain(n)]
    if target is not None:
        types = {column.name.lower(): column.type for column in target.columns}
        for name, value in _stored(tree, target, schemas):
            found = value.find_all(*COMPUTED)
            constants += [n.copy() for n in found if _constant(n) and _certain(n)]
            if types[name.lower()] in RANGES and _constant(value):
                constants.append(exp.cast(value.copy(), types[name.lower()]))
    if constants:
        yield exp.select(*constants)
    if isinstance(tree, exp.Insert | exp.Select):
        for select in _subqueries(tree):
            if select.find(*COMPUTED) and not _correlated(select, schemas):
                yield exp.Create(
                    this=exp.to_table("looked", quoted=True),
                    kind="TABLE",
                    replace=True,
                    properties=exp.Properties(expressions=[exp.TemporaryProperty()]),
                    expression=_with_named_queries(select),
                )


def _constant(node: exp.Expr) -> bool:
    """Return whether an expression is a constant worth checking.

    Every literal under ten digits fits INT.
    """
    number = node.this if isinstance(node, exp.Neg) else node
    if isinstance(number, exp.Literal) and len(number.this) < DIGITS:
        return False
    return node.find(*ROWS) is None


def _certain(node: exp.Expr) -> bool:
    """Return whether a node is computed whatever the values of conditions around it."""
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.If) and (node is not parent.this or parent.index):
            return False
        if isinstance(parent, exp.Case) and node.arg_key == "default":
            return False
        if isinstance(parent, exp.Coalesce) and node is not parent.this:
            return False
        node = parent
    return True


def _stored(
    tree: exp.Expr, target: Schema, schemas: Mapping[str, Schema]
) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the columns that a statement assigns, each with its value."""
    every = [column.name for column in target.columns if column.name]
    match tree:
        case exp.Update():
            yield from ((e.this.name, e.expression) for e in tree.expressions)
        case exp.Merge():
            for when in tree.args["whens"].expressions:
                then = when.args["then"]
                if isinstance(then, exp.Update):
                    sets = [e for e in then.expressions if isinstance(e, exp.EQ)]
                    yield from ((e.this.name, e.expression) for e in sets)
                elif isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
                    named = [n.name for n in then.this.expressions]
                    values = (_known(tree, value) for value in then.expression.expressions)
                    yield from zip(named, values, strict=False)
        case exp.Insert():
            into = tree.this
            named = [n.name for n in into.expressions] if isinstance(into, exp.Schema) else []
            table = into.this if isinstance(into, exp.Schema) else into
            spec = table.args.get("partition")
            fixed = {part.this.name.lower() for part in spec.expressions} if spec else set()
            names = named or [name for name in every if name.lower() not in fixed]
            for select in _branches(tree.expression):
                yield from zip(names, _items(select, schemas), strict=False)


def _known(merge: exp.Merge, value: exp.Expr) -> exp.Expr:
    """Return a value of an insert-only MERGE, with constants of a one-SELECT source substituted."""
    source, whens = merge.args["using"], merge.args["whens"].expressions
    select = source.this if isinstance(source, exp.Subquery) else None
    inserts = all(isinstance(when.args["then"], exp.Insert) for when in whens)
    if not inserts or not isinstance(select, exp.Select):
        return value
    items = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}

    def known(node: exp.Expr) -> exp.Expr:
        item = items.get(node.name.lower()) if isinstance(node, exp.Column) else None
        return node if item is None or item.find(*ROWS) else item.copy()

    return value.copy().transform(known)


def _branches(query: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs of a query's unions and parentheses."""
    match query:
        case exp.Union():
            yield from _branches(query.left)
            yield from _branches(query.right)
        case exp.Subquery():
            yield from _branches(query.this)
        case exp.Select():
            yield query


def _items(select: exp.Select, schemas: Mapping[str, Schema]) -> Iterator[exp.Expr]:
    """Yield the items of a SELECT; a star is repeated once per column that it stands for."""
    for item in select.expressions:
        if isinstance(item, exp.Star) and select.args.get("joins"):
            return
        if isinstance(item, exp.Star):
            schema = _schema(select, schemas)
            yield from [item] * (len(schema.shown) if schema is not None else 1)
        else:
            yield item.this if isinstance(item, exp.Alias) else item


def _schema(select: exp.Select, schemas: Mapping[str, Schema]) -> Schema | None:
    """Return the table of the FROM clause, if it is a known one."""
    source = select.args["from_"].this if select.args.get("from_") else None
    name = source.name.lower() if isinstance(source, exp.Table) else None
    return next((schema for n, schema in schemas.items() if n.lower() == name), None)


def _subqueries(tree: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs in expressions.

    The queries of FROM, JOIN and WITH become part of the query around them: Spark computes of them
    what that query needs, row by row.
    """
    for select in tree.find_all(exp.Select):
        outer = select.parent
        while isinstance(outer, exp.SetOperation | exp.Paren):
            outer = outer.parent
        if isinstance(outer, exp.Subquery):
            outer = outer.parent
        in_rows = isinstance(outer, exp.From | exp.Join | exp.CTE | exp.SetOperation)
        if not in_rows and select.find_ancestor(exp.Select) is not None:
            yield select


def _with_named_queries(select: exp.Select) -> exp.Select:
    """Return a copy of a SELECT with the queries of WITH around it, which it may name."""
    around: dict[str, exp.Expr] = {}
    inside: exp.Expr = select
    node = select.parent
    while node is not None:
        if isinstance(node, exp.With):  # a query of WITH may name those before it
            visible = node.expressions[: inside.index]
        else:
            given = node.args.get("with_")
            visible = given.expressions if given is not None and given is not inside else []
        around = {cte.alias.lower(): cte for cte in visible} | around
        inside, node = node, node.parent
    copied = select.copy()
    own = copied.args.get("with_")
    queries = [cte.copy() for cte in around.values()] + ([] if own is None else own.expressions)
    if queries:
        copied.set("with_", exp.With(expressions=queries))
    return copied


def _correlated(select: exp.Select, schemas: Mapping[str, Schema]) -> bool:
    """Return whether a subquery names columns of the enclosing query."""
    schema = _schema(select, schemas)
    own = {column.name.lower() for column in schema.columns} if schema is not None else set()
    alias = select.args["from_"].this.alias_or_name.lower() if select.args.get("from_") else ""
    return any(
        column.table.lower() != alias if column.table else column.name.lower() not in own
        for column in select.find_all(exp.Column)
    )


def stage_condition(tree: exp.Expr, schemas: Mapping[str, Schema]) -> None:
    """Evaluate the other conditions of a query before a correlated subquery that computes.

    DuckDB computes such a subquery for every row. The tree is changed in place.
    """
    for select in list(tree.find_all(exp.Select)):
        where = select.args.get("where")
        parts = conjunct_trees(where.this) if where is not None and select.args.get("from_") else []
        late = [
            part
            for part in parts
            if any(
                inner.find(*COMPUTED) and _correlated(inner, schemas)
                for inner in part.find_all(exp.Select)
            )
        ]
        early = [part for part in parts if not any(part is other for other in late)]
        if where is None or not late or not early:
            continue
        source = select.args["from_"].this
        left = exp.select(exp.Star()).from_(source.copy()).where(*early)
        kept = exp.to_identifier("rows left", quoted=True)
        rows = (
            exp.select(exp.Star()).from_(exp.Table(this=kept)).with_(kept, left, materialized=True)
        )
        source.replace(rows.subquery(source.alias_or_name))
        where.set("this", exp.and_(*late))


def conjunct_trees(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a conjunction, also those in parentheses."""
    bare = tree.unnest()
    if not isinstance(bare, exp.And):
        return [tree]
    return [*conjunct_trees(bare.left), *conjunct_trees(bare.right)]


def translate(
    statement: st.Statement, schemas: Mapping[str, Schema], describe: Describe | None = None
) -> list[DuckStep]:
    """Return the steps that change rows as a statement does.

    ``describe`` returns the columns of a query at the statement's place in an order, if other
    transactions alter columns.
    """
    if isinstance(statement, st.Read):
        return []
    if isinstance(statement, st.Optimize | st.Vacuum):  # they fail if the table does not exist
        return [DuckStep("check", f'SELECT 1 FROM "{statement.target}" LIMIT 0')]
    if isinstance(statement, st.Block):
        return [step for one in statement.statements for step in translate(one, schemas, describe)]
    if isinstance(statement, df.Definition):
        return _definition(statement)
    if isinstance(statement, df.Restore):
        table, earlier = statement.target, init_copy_name(statement.target, statement.version)
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
            return [*_first(tree, schema, schemas), DuckStep("write", to_duck_sql(tree))]
        case st.Merge(), exp.Merge():
            _inline_named_queries(tree)
            steps = translate_merge(statement, tree, schema, describe)
            return [*_first(tree, schema, schemas), *steps]
        case st.Insert(), exp.Insert():
            grows = statement.options.grows
            into = f'ALTER TABLE "{schema.name}" ADD COLUMN IF NOT EXISTS'
            comes = [DuckStep("write", f'{into} "{c.name}" {c.type}') for c in grows or ()]
            if statement.options.makes:
                comes.append(DuckStep("write", create_table(schema, "CREATE TABLE IF NOT EXISTS")))
            listed = grows is not None or describe is None
            first = _first(tree, schema, schemas)
            return [*first, *comes, *translate_insert(statement, tree, schema, listed=listed)]
    return [*_first(tree, None, schemas), DuckStep("write", to_duck_sql(tree))]


def stored_steps(
    statement: st.Statement, schemas: Mapping[str, Schema], describe: Describe | None = None
) -> list[DuckStep]:
    """Return the steps of `translate`, followed by those that store NULL in partition columns."""
    if isinstance(statement, st.Block):
        return [
            step for one in statement.statements for step in stored_steps(one, schemas, describe)
        ]
    steps = translate(statement, schemas, describe)
    if isinstance(statement, st.Insert | st.Update | st.Merge | df.Create | df.Replace):
        steps += nulls_of_partitions(schemas[statement.target])
    return steps


def _target(
    statement: st.Delete | st.Insert | st.Merge | st.Update | Raw, schemas: Mapping[str, Schema]
) -> Schema:
    """Return the table that a statement writes, with the columns on which it was resolved."""
    known = None if isinstance(statement, Raw) else statement.origin
    return (schemas if known is None else known.tables)[statement.target]


def translate_query(tree: exp.Expr, schemas: Mapping[str, Schema]) -> str:
    """Return a query as DuckDB's text."""
    return to_duck_sql(_tree(tree, schemas))


def constraint_condition(definition: df.Definition) -> str:
    """Return the condition of a constraint as DuckDB's text."""
    return to_duck_sql(check_condition(syntax_of(definition)))


def init_copy_name(table: str, number: int) -> str:
    """Return the name of the copy of a table after that number of init statements."""
    return f"{table.lower()} after init {number}"


def _tree(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """Return the author's tree with the names that DuckDB has.

    A table at the version of an init statement is a table of its own. A table named by a path is
    replaced by its name.
    """
    tree = tree.copy()
    given = tree.args.get("with_")
    if isinstance(tree, exp.Insert) and given is not None:
        tree.set("with_", None)
        first = tree.expression
        while isinstance(first, exp.Union):
            first = first.this
        first.set("with_", given)
    _drop_unused_queries(tree)
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for assignment in [e for update in tree.find_all(exp.Update) for e in update.expressions]:
        if isinstance(assignment, exp.EQ) and is_default(assignment.expression):
            assignment.set("expression", exp.null())  # tables that are executed have no defaults
    for values in list(tree.find_all(exp.Values)):
        _numbered(values)
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = tables_by_path(table, schemas) or table.name
            table.set("this", exp.to_identifier(name))
            table.set("db", None)
            table.set("catalog", None)
        if table.args.get("version"):
            name = init_copy_name(table.name.lower(), marked_version(table) or 0)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(name), alias=alias))
    stage_condition(tree, schemas)
    return _staged(tree, schemas)


def _drop_unused_queries(tree: exp.Expr) -> None:
    """Remove the queries of WITH that nothing names: Spark does not execute their subqueries."""
    named = [cte for given in tree.find_all(exp.With) for cte in given.expressions]
    while named:
        sources = {table.name.lower() for table in tree.find_all(exp.Table) if not table.db}
        unused = [cte for cte in named if cte.alias.lower() not in sources]
        if not unused:
            return
        for cte in unused:
            given = cte.parent
            cte.pop()
            if not given.expressions:
                given.pop()
        named = [cte for cte in named if cte not in unused]


def _numbered(values: exp.Values) -> None:
    """Name the columns of a VALUES clause without names: Spark counts from 1, DuckDB from 0."""
    alias = values.args.get("alias")
    rows = values.expressions
    if isinstance(values.parent, exp.Insert) or (alias is not None and alias.args.get("columns")):
        return
    width = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
    names = [exp.to_identifier(f"col{k + 1}") for k in range(width)]
    name = alias.this if alias is not None and alias.this else exp.to_identifier("given")
    values.set("alias", exp.TableAlias(this=name, columns=names))


def _definition(statement: df.Definition) -> list[DuckStep]:
    """Return the steps for added, dropped and renamed columns; other changes have none."""
    alter = f'ALTER TABLE "{statement.target}"'
    match statement.change:
        case df.AddColumns(columns):
            return [DuckStep("write", f'{alter} ADD COLUMN "{c.name}" {c.type}') for c in columns]
        case df.DropColumns(names):
            return [DuckStep("write", f'{alter} DROP COLUMN "{name}"') for name in names]
        case df.RenameColumn(name, other):
            return [DuckStep("write", f'{alter} RENAME COLUMN "{name}" TO "{other}"')]
    return []


def _replacement(statement: df.Replace, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """Return the steps of REPLACE TABLE.

    Rows are collected first, since they may come from the replaced table.
    """
    schema = schemas[statement.target]
    there = [] if statement.create else [DuckStep("check", f'FROM "{schema.name}" LIMIT 0')]
    made = DuckStep("write", create_table(schema))
    if statement.query is None:
        return [*there, made]
    query = translate_query(select_of(syntax_of(statement)), schemas)
    return [
        *there,
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {query}"),
        made,
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def _creation(statement: df.Create, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """Return the one step of CREATE TABLE, with or without IF NOT EXISTS."""
    schema = schemas[statement.target]
    made = f'CREATE TABLE {"IF NOT EXISTS" if statement.if_not_exists else ""} "{schema.name}"'
    if statement.query is None:
        return [DuckStep("write", f"{made} ({columns_of(schema)})")]
    query = translate_query(select_of(syntax_of(statement)), schemas)
    return [DuckStep("write", f"{made} AS {_as_declared(query, schema)}")]


def _conversion(schema: Schema) -> str:
    """Return the text that creates a table from existing Parquet rows, unless it exists."""
    rows = (f"({', '.join(map(literal, row))})" for row in schema.parquet)
    query = _as_declared(f"VALUES {', '.join(rows)}", schema)
    return f'CREATE TABLE IF NOT EXISTS "{schema.name}" AS {query}'


def _as_declared(query: str, schema: Schema) -> str:
    """Return a query whose columns have the names and types of a table's."""
    names = ", ".join(f'"{column.name}"' for column in schema.columns)
    casts = ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in schema.columns)
    return f"SELECT {casts} FROM ({query}) AS given ({names})"


def _clone(statement: df.Clone) -> list[DuckStep]:
    """Return the steps of CLONE; they fail if the replaced table has rows."""
    target, version = statement.target, statement.version
    source = statement.source if version is None else init_copy_name(statement.source, version)
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


def _unqualified(update: exp.Update) -> None:
    """Remove table names from the columns that SET assigns."""
    for assignment in update.expressions:
        if isinstance(assignment, exp.EQ):
            assignment.this.set("table", None)


def _inline_named_queries(tree: exp.Expr) -> None:
    """Put the queries of WITH in the places that name them, since a MERGE becomes several steps."""
    named = tree.args.get("with_")
    if named is None:
        return
    tree.set("with_", None)
    ctes = list(named.expressions)
    for k, cte in enumerate(ctes):
        parts = [tree.args["using"], tree.args["on"], tree.args["whens"], *ctes[k + 1 :]]
        places = [table for part in parts for table in part.find_all(exp.Table)]
        for table in places:
            if not table.db and table.name.lower() == cte.alias.lower():
                table.replace(cte.this.copy().subquery(table.alias or cte.alias))


def _first(tree: exp.Expr, target: Schema | None, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """Return the steps that run before a statement."""
    return [
        DuckStep("plan", to_duck_sql(before)) for before in planning_steps(tree, target, schemas)
    ]


def _staged(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """Evaluate conditions on partition columns first, in conditions with arithmetic.

    Spark reads no row of other partitions, so their rows cannot make the arithmetic fail.
    """
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
