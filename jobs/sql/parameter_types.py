"""Type inference of undeclared parameters, from the columns that they are compared with or put
into.

``day = :day`` compares parameter and column, ``INSERT INTO t VALUES (:day)`` puts one into the
other. ``CAST(:day AS DATE)`` determines the type: a text that is not a date makes the statement
fail, and it then writes nothing. In the rows of ``(SELECT :day AS day) AS s`` a parameter is the
column ``s.day``, and has the type of what that is compared with.

A parameter that meets no column itself has the type that its function expects
(``last_day(:day)``), that of the other operand (``amount - :n``), or that of the column that the
whole is compared with or put into (``id = :n + 1``), in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.sql.types import is_number, type_named
from isolitmus.specs.sql.functions import SIGNATURES
from isolitmus.specs.sql.maintenance import verb_condition
from isolitmus.specs.sql.run_constants import constant_type
from isolitmus.specs.sql.syntax import well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.sql.schema import Column, Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.syntax import Syntax


def column_contents(node: exp.Expr) -> dict[str, list[exp.Expr]]:
    """Return the expressions in each column (in lower case) of a nested query or of VALUES.

    Examples
    --------
    >>> import sqlglot
    >>> query = "SELECT * FROM (SELECT :n AS id, max(x) AS x FROM s)"
    >>> made = sqlglot.parse_one(query).find(exp.Subquery)
    >>> {name: [one.sql() for one in items] for name, items in column_contents(made).items()}
    {'id': [':n'], 'x': ['MAX(x)']}
    """
    if isinstance(node, exp.Values):
        rows = zip(*(row.expressions for row in node.expressions), strict=False)
        return {
            name.lower(): list(values)
            for name, values in zip(node.alias_column_names, rows, strict=False)
        }
    select = node.this
    if not isinstance(select, exp.Select):
        return {}
    found: dict[str, list[exp.Expr]] = {}
    for item in select.expressions:
        if item.is_star:
            source = select.args.get("from_")
            found |= column_contents(source.this) if source is not None else {}
        else:
            found[item.alias_or_name.lower()] = [item.unalias()]
    return found


def single_row(node: exp.Expr) -> dict[str, exp.Expr] | None:
    """Return the values, by name, of a source that always has exactly one row; None for others.

    Examples
    --------
    >>> import sqlglot
    >>> made = sqlglot.parse_one("SELECT * FROM (SELECT :n AS id)").find(exp.Subquery)
    >>> single_row(made), single_row(sqlglot.parse_one("SELECT * FROM t").find(exp.Table))
    ({'id': Placeholder(this=n)}, None)
    """
    select = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(select, exp.Select) or set(_given(select)) != {"expressions"}:
        return None
    return {name: items[0] for name, items in column_contents(node).items()}


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def merge_assignments(
    clause: exp.Expr, starred: Iterable[str], source: str
) -> list[tuple[str, exp.Expr]]:
    """Return the value of each column in a MERGE's INSERT or UPDATE SET.

    `starred` are the columns of `source` that ``*`` stands for.

    Examples
    --------
    >>> import sqlglot
    >>> merge = "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT "
    >>> for what in ("*", "(id) VALUES (s.id + 1)"):
    ...     clause = sqlglot.parse_one(merge + what).find(exp.Insert)
    ...     found = merge_assignments(clause, ["id", "x"], "s")
    ...     print([(name, value.sql()) for name, value in found])
    [('id', 's.id'), ('x', 's.x')]
    [('id', 's.id + 1')]
    """
    if not isinstance(clause.this, exp.Tuple):
        return [(name, exp.column(name, table=source)) for name in starred]
    names = [column.name for column in clause.this.expressions]
    return list(zip(names, clause.expression.expressions, strict=False))


COMPARES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def infer_types(statements: Iterable[Syntax], schemas: Mapping[str, Schema]) -> dict[str, Type]:
    """Return the types of parameters that meet columns of only one type, or are operands of which
    only one type is expected.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> tables = {"t": Schema("t", (Column("id", "BIGINT"), Column("day", "DATE")))}
    >>> insert = "INSERT INTO t SELECT :n, day FROM t WHERE day >= :first AND id + :k > 0"
    >>> infer_types([Syntax(insert)], tables)
    {'first': 'DATE', 'k': 'BIGINT', 'n': 'BIGINT'}
    >>> source = "(SELECT :n AS id) s ON t.id = s.id"
    >>> merge = f"MERGE INTO t USING {source} WHEN NOT MATCHED THEN INSERT *"
    >>> infer_types([Syntax(merge)], tables)
    {'n': 'BIGINT'}
    >>> infer_types([Syntax("DELETE FROM t WHERE day < date_sub(CAST(:day AS DATE), 7)")], tables)
    {'day': 'DATE'}
    >>> infer_types([Syntax("OPTIMIZE t WHERE day BETWEEN :first AND :last")], tables)
    {'first': 'DATE', 'last': 'DATE'}
    >>> delete = "DELETE FROM t WHERE day < add_months(:day, -:m) AND id - :n > 0 AND id = :k + 2"
    >>> infer_types([Syntax(delete)], tables)
    {'k': 'BIGINT', 'day': 'DATE', 'm': 'INT', 'n': 'BIGINT'}
    """
    met: dict[str, set[Type]] = {}
    operands: dict[str, set[Type]] = {}
    parts: dict[str, set[Type]] = {}
    for syntax in statements:
        with well_formed(syntax.text, syntax.label):
            tree, tables = _conditioned(syntax, schemas)
            made = _made(tree)
            for cast in tree.find_all(exp.Cast):
                named = type_named(cast.to.sql("databricks"))
                if isinstance(cast.this, exp.Placeholder) and named is not None:
                    met.setdefault(cast.this.name, set()).add(named)
            for value, column in _meetings(tree, tables, made):
                for parameter in _parameters(value, made):
                    for found in _columns(column, tables):
                        met.setdefault(parameter, set()).add(found.type)
                for found in _columns(column, tables):
                    for parameter, type_ in _parts(value, found.type):
                        parts.setdefault(parameter, set()).add(type_)
            for parameter, type_ in _expected(tree, tables):
                operands.setdefault(parameter, set()).add(type_)
    every = parts | operands | met
    return {parameter: types.pop() for parameter, types in every.items() if len(types) == 1}


def _conditioned(
    syntax: Syntax, schemas: Mapping[str, Schema]
) -> tuple[exp.Expr, dict[str, Schema]]:
    """Return the tree in which parameters meet columns, and the tables of these columns.

    For OPTIMIZE and REORG, the tree is the condition.
    """
    verb = verb_condition(syntax)
    if verb is None:
        tree = syntax.tree()
        return tree, _tables(tree, schemas)
    name, condition = verb
    return condition, _tables(exp.to_table(name, dialect="databricks"), schemas)


def _tables(tree: exp.Expr, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the tables of a statement, by their names or aliases in it."""
    known = {name.lower(): schema for name, schema in schemas.items()}
    return {
        node.alias_or_name.lower(): known[node.name.lower()]
        for node in tree.find_all(exp.Table)
        if node.name.lower() in known
    }


Contents = dict[str, dict[str, list[exp.Expr]]]
"""Expressions in a column, by the name of the nested query or VALUES and that of the column."""


def _made(tree: exp.Expr) -> Contents:
    named = [node for node in tree.find_all(exp.Subquery, exp.Values, exp.CTE) if node.alias]
    return {node.alias.lower(): column_contents(node) for node in named}


def _parameters(value: exp.Expr, made: Contents) -> Iterator[str]:
    """Yield the parameters that a value may be: itself, or a column of a nested query."""
    if isinstance(value, exp.Placeholder):
        yield value.name
    elif isinstance(value, exp.Coalesce | exp.Greatest | exp.Least):
        for one in (value.this, *value.expressions):
            yield from _parameters(one, made)
    elif isinstance(value, exp.Column):
        for name, items in made.items():
            if value.table.lower() in ("", name):
                inside = items.get(value.name.lower(), ())
                yield from (one.name for one in inside if isinstance(one, exp.Placeholder))


SUMS = (exp.Add, exp.Sub)
"""Arithmetic of operands with one type; a factor may be a fraction."""
EXPECTED: Mapping[type[exp.Expr], Mapping[str, Type]] = {
    **{function: signature.operands for function, signature in SIGNATURES.items()},
    exp.AddMonths: {"this": "DATE", "expression": "INT"},
    exp.DateTrunc: {"this": "DATE"},
    exp.LastDay: {"this": "DATE"},
    exp.NextDay: {"this": "DATE"},
    exp.TimestampTrunc: {"this": "TIMESTAMP"},
    exp.TsOrDsToDate: {"this": "DATE"},
}
"""Types of the operands of functions, by sqlglot's argument names."""


def _bare(node: object) -> exp.Expr | None:
    """Return an operand without parentheses and signs; sqlglot writes ``- n`` also as n * -1."""
    minus = exp.Neg(this=exp.Literal.number(1))
    while isinstance(node, exp.Paren | exp.Neg | exp.Mul):
        if isinstance(node, exp.Mul) and node.expression != minus:
            return node
        node = node.this
    return node if isinstance(node, exp.Expr) else None


def _expected(tree: exp.Expr, tables: Mapping[str, Schema]) -> Iterator[tuple[str, Type]]:
    """Yield parameters with the type that their function or the other operand demands."""
    for node in tree.walk(bfs=False):
        for key, type_ in EXPECTED.get(type(node), {}).items():
            part = _bare(node.args.get(key))
            if isinstance(part, exp.Placeholder):
                formatted = isinstance(node, exp.TsOrDsToDate) and node.args.get("format")
                yield part.name, "STRING" if formatted else type_
        if isinstance(node, (*SUMS, *COMPARES)):
            sides = _bare(node.this), _bare(node.expression)
            for one, other in (sides, sides[::-1]):
                if not isinstance(one, exp.Placeholder) or other is None:
                    continue
                for given in _operand_types(other, tables):
                    if is_number(given) or isinstance(node, COMPARES):
                        yield one.name, given
                    elif given == "DATE" and one is sides[1]:
                        yield one.name, "INT"


def _operand_types(node: exp.Expr, tables: Mapping[str, Schema]) -> Iterator[Type]:
    """Yield the types that an operand may have: of a column, or of arithmetic with one."""
    if isinstance(node, exp.Column):
        yield from (column.type for column in _columns(node, tables))
    elif (found := constant_type(node, {})) is not None:
        yield found
    elif isinstance(node, SUMS):
        for part in (_bare(node.this), _bare(node.expression)):
            if part is not None and not isinstance(part, exp.Literal):
                yield from _operand_types(part, tables)
    elif type(node) in SIGNATURES:
        yield SIGNATURES[type(node)].gives


def _parts(value: exp.Expr, type_: Type) -> Iterator[tuple[str, Type]]:
    """Yield the parameters in arithmetic, with the types that give the whole this type."""
    found = _bare(value)
    if isinstance(found, exp.Placeholder) and found is not value:
        yield found.name, type_
    elif isinstance(found, SUMS) and is_number(type_):
        for part in (found.this, found.expression):
            if isinstance(part, exp.Placeholder):
                yield part.name, type_
            yield from _parts(part, type_)
    elif isinstance(found, SUMS) and isinstance(found.this, exp.Placeholder):
        days = isinstance(found.expression, exp.Literal | exp.Interval)
        if type_ == "DATE" and days:
            yield found.this.name, type_


def _meetings(
    tree: exp.Expr, tables: Mapping[str, Schema], made: Contents
) -> Iterator[tuple[exp.Expr, exp.Column]]:
    """Yield values, each with a column that it is compared with or put into."""
    for node in tree.walk(bfs=False):
        match node:
            case exp.Between(this=exp.Column() as column):
                yield from _paired([node.args["low"], node.args["high"]], [column] * 2)
            case exp.In(this=exp.Column() as column, expressions=values):
                yield from _paired(values, [column] * len(values))
            case exp.Insert() if not isinstance(node.parent, exp.When):
                yield from _inserted(node, tables)
            case exp.Merge(this=exp.Table() as into):
                source = node.args["using"].alias.lower()
                for clause in (when.args["then"] for when in node.args["whens"].expressions):
                    starred = isinstance(next(iter(clause.expressions), None), exp.Star)
                    if starred or isinstance(clause, exp.Insert):
                        for name, value in merge_assignments(clause, made.get(source, ()), source):
                            yield value, exp.column(name, table=into.alias_or_name)
            case _ if isinstance(node, COMPARES):
                left, right = node.this, node.expression
                yield from _paired([left, right], [right, left])


def _paired(
    values: Iterable[exp.Expr], columns: Iterable[exp.Expr]
) -> Iterator[tuple[exp.Expr, exp.Column]]:
    for value, column in zip(values, columns, strict=False):
        if isinstance(column, exp.Column):
            yield value, column


def _columns(node: exp.Column, tables: Mapping[str, Schema]) -> Iterator[Column]:
    """Yield the columns that a name may denote."""
    for name, schema in tables.items():
        index = schema.index(node.name)
        if index is not None and node.table.lower() in ("", name):
            yield schema.columns[index]


def _inserted(
    node: exp.Insert, tables: Mapping[str, Schema]
) -> Iterator[tuple[exp.Expr, exp.Column]]:
    """Yield values of VALUES or SELECT, each with the column at its position."""
    into, source = node.this, node.expression
    listed = into.expressions if isinstance(into, exp.Schema) else None
    table = into.this if isinstance(into, exp.Schema) else into
    schema = tables.get(table.alias_or_name.lower()) if isinstance(table, exp.Table) else None
    if schema is None:
        return
    if node.args.get("by_name"):
        named = [one for one in source.expressions if not one.is_star]
        columns = [exp.column(one.alias_or_name, table=table.alias_or_name) for one in named]
        yield from _paired([one.unalias() for one in named], columns)
        return
    names = [one.name for one in listed] if listed else [column.name for column in schema.columns]
    columns = [exp.column(name, table=table.alias_or_name) for name in names]
    rows = source.expressions if isinstance(source, exp.Values) else [source]
    for row in rows:
        values = [one.unalias() for one in row.expressions]
        stars = (k for k, one in enumerate(values) if one.is_star)
        yield from _paired(values[: next(stars, len(values))], columns)
