"""INSERT and MERGE in DuckDB: several steps each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlglot import expressions as exp

from isolitmus.checker.execution.duck_tables import defaults
from isolitmus.checker.execution.duckdb_dialect import duck_text
from isolitmus.model.sql.casting import NULL_PARTITIONS
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql import statement as st

__all__ = ["DuckStep", "inserted", "merged", "nulls_of_partitions"]


class DuckStep(NamedTuple):
    """One statement of DuckDB's, and what it is for: to ``plan`` is to compute before the first row what
    Spark computes then, to ``collect`` to put the rows that come into a table of their own, to ``check``
    to fail where Spark fails, and to ``write`` to change the table.
    """

    does: Literal["plan", "collect", "check", "write"]
    sql: str


def inserted(
    statement: st.Insert, tree: exp.Insert, schema: Schema, *, listed: bool
) -> list[DuckStep]:
    """An INSERT; one that replaces collects its rows first, since they may come from what goes. Columns
    that it does not list are ``listed`` for it, unless others alter them: then they go by position.
    """
    into = tree.this
    named = into.expressions if isinstance(into, exp.Schema) else []
    spec = (into.this if isinstance(into, exp.Schema) else into).args.get("partition")
    parts = spec.expressions if spec is not None else []
    fixed = {  # a column that is only named has its values from the rows
        part.this.name.lower(): duck_text(part.expression) for part in parts if part.expression
    }
    open_ = [c.name for c in schema.columns if c.name and c.name.lower() not in fixed]
    given = [n.name for n in named] or (open_ if listed or fixed else [])
    names = ", ".join(f'"{c}"' for c in [*given, *fixed])
    columns = f"({names})" if names else ""
    query = duck_text(tree.expression)
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
        where = duck_text(condition) if condition else " AND ".join(same)
        outside = f"FROM replacement WHERE ({where}) IS NOT TRUE"
        check = [DuckStep("check", f"SELECT error('a row outside') {outside}")]
    rows = f'SELECT * FROM "{schema.name}" LIMIT 0'
    return [
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {rows}"),
        *(DuckStep("collect", sql) for sql in defaults(schema, "replacement")),
        DuckStep("collect", f"INSERT INTO replacement {columns} {query}"),
        *nulls_of_partitions(schema, "replacement"),
        *check,
        DuckStep("write", f'DELETE FROM "{schema.name}" WHERE {where}'),
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def nulls_of_partitions(schema: Schema, table: str | None = None) -> list[DuckStep]:
    """What makes NULL of the texts that are NULL in a partition column; ``table`` has the rows, if it is not the
    schema's.
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


def merged(statement: st.Merge, tree: exp.Merge, schema: Schema) -> list[DuckStep]:
    """A MERGE: a check, then a table for each clause with what it does, by the rows of the target, then
    its doing. DuckDB's own computes the values of a clause for rows that it is not about, too, which
    may fail. Where several rows of the source match one of the target, Spark fails, unless the
    one clause for those is a DELETE without a condition.
    """
    parts = (tree.args[part] for part in ("this", "using", "on"))
    target, source, on = map(duck_text, parts)
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
        holds = "TRUE" if guard is None else duck_text(guard)
        where = " AND ".join([*earlier[kind], f"({holds})"])
        rows = f"{froms[kind]} {'WHERE' if kind == 'matched' else 'AND'} {where}"
        earlier[kind].append(f"({holds}) IS NOT TRUE")
        taken = f'CREATE OR REPLACE TEMP TABLE "clause {k}" AS SELECT'
        if kind == "not matched":
            starred = isinstance(then.this, exp.Star)
            values = "*" if starred else ", ".join(map(duck_text, then.expression.expressions))
            columns = "" if starred else duck_text(then.this)
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
            # in the order of the text, which need not be that of `sets`
            changed = [f'"{assignment.this.name}"' for assignment in then.expressions]
            given = [duck_text(assignment.expression) for assignment in then.expressions]
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
