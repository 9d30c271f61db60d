"""Hypothesis strategies for a table ``t (id INT, part INT, x INT)``: its statements, schedules and litmus tests.

Statements are drawn as SQL text of the modelled fragment, so that what a property test shrinks to is what a person can
read, save and replay on Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.checker.universes.timing import queues
from isolitmus.model.client import Client
from isolitmus.model.errors import SqlError
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.model.sql.statement import Statement

__all__ = [
    "COLUMNS",
    "any_tests",
    "predicates",
    "readable",
    "rows_of_t",
    "schedules",
    "tables",
    "transactions",
]

COLUMNS = (Column("id", "INT"), Column("part", "INT"), Column("x", "INT"))
NUMBERS = st.integers(0, 4)


def tables(*, partitioned: bool | None = None) -> SearchStrategy[Schema]:
    """The table ``t``, by default partitioned or not, with one row a file or the default layout, with
    deletion vectors or without.
    """
    choices = [("part",), ()] if partitioned is None else [("part",) if partitioned else ()]
    return st.builds(
        Schema,
        st.just("t"),
        st.just(COLUMNS),
        st.sampled_from(choices),
        st.sampled_from([{}, {"delta.enableDeletionVectors": "true"}]),
        st.sampled_from([None, 1]),
    )


@st.composite
def predicates(draw: DrawFn, *, depth: int = 2, prefix: str = "") -> str:
    """A condition on the columns of ``t``: comparisons, IN, IS NULL, AND, OR, NOT."""
    if depth and draw(st.booleans()):
        left = draw(predicates(depth=depth - 1, prefix=prefix))
        kind = draw(st.sampled_from(["AND", "OR", "NOT"]))
        if kind == "NOT":
            return f"NOT ({left})"
        return f"({left} {kind} {draw(predicates(depth=depth - 1, prefix=prefix))})"
    column = prefix + draw(st.sampled_from(["id", "part", "x"]))
    match draw(st.integers(0, 4)):
        case 0:
            return f"{column} IN ({draw(NUMBERS)}, {draw(NUMBERS)})"
        case 1:
            return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 2:
            return f"{column} + {draw(NUMBERS)} > {draw(NUMBERS)}"
        case _:
            op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            return f"{column} {op} {draw(NUMBERS)}"


def readable(sql: str, schemas: Mapping[str, Schema]) -> Statement:
    """The statement; an example whose condition is one of those that the model refuses is dropped."""
    try:
        return read_statement(sql, schemas)
    except SqlError:
        reject()


@st.composite
def rows_of_t(draw: DrawFn) -> str:
    """A row of ``t`` as VALUES has it."""
    x = draw(st.sampled_from(["0", "1", "2", "NULL"]))
    return f"({draw(NUMBERS)}, {draw(st.integers(0, 1))}, {x})"


@st.composite
def transactions(
    draw: DrawFn, *, partitioned: bool = True, readers: bool = True, tracked: bool = False
) -> str:
    """One SQL statement on ``t``, of every kind that the model knows; with ``tracked`` none whose
    reads Delta does not record.
    """
    where = f" WHERE {draw(predicates())}" if draw(st.booleans()) else ""
    part = draw(st.integers(0, 1))
    items = draw(
        st.sampled_from(
            [
                "id, part, x",
                f"id + 1, {part}, x",
                f"count(*), {part}, sum(x)",
                f"max(id), {part}, 1",
            ]
        )
    )
    select = f"SELECT {items} FROM t{where}"
    row = draw(rows_of_t())
    kinds = [
        "insert",
        "insert-select",
        "union",
        "delete",
        "update",
        "merge",
        "overwrite",
        "replace",
        "subquery",
        "partition",
        "optimize",
        "truncate",
    ]
    match draw(st.sampled_from(kinds + ["read"] * readers)):
        case "insert":
            return f"INSERT INTO t VALUES {row}, {draw(rows_of_t())}"
        case "insert-select":
            return f"INSERT INTO t {select}"
        case "union":
            return f"INSERT INTO t {select} UNION ALL SELECT {row[1:-1]}"
        case "delete":
            return f"DELETE FROM t{where}"
        case "update":
            values = ["x = id + 1", f"part = {part}", f"id = id + 1, x = {part}"]
            if not tracked:
                values.append(f"x = (SELECT max(id) FROM t WHERE part = {part})")
            sets = draw(st.sampled_from(values))
            return f"UPDATE t SET {sets}{where}"
        case "merge":
            return draw(_merges(row[1:-1].split(", "), tracked=tracked))
        case "overwrite":
            return f"INSERT OVERWRITE t {select}"
        case "subquery":
            return draw(_subqueries(part, where))
        case "replace":
            condition = draw(st.sampled_from([f"part = {part}", f"part = {part} AND id < 3"]))
            chosen = draw(st.sampled_from([f"id, {part}, x", f"count(*), {part}, 1"]))
            return f"INSERT INTO t REPLACE WHERE {condition} SELECT {chosen} FROM t{where}"
        case "partition":
            verb = draw(st.sampled_from(["OVERWRITE", "INTO"] if partitioned else ["INTO"]))
            spec = f" PARTITION (part = {part})" if partitioned else " (id, x, part)"
            return (
                f"INSERT {verb} t{spec} SELECT id, x{'' if partitioned else ', part'} FROM t{where}"
            )
        case "optimize":
            where = f" WHERE part = {part}" if partitioned and draw(st.booleans()) else ""
            if draw(st.booleans()):
                return f"REORG TABLE t{where} APPLY (PURGE)"
            return f"OPTIMIZE t{where}{draw(st.sampled_from(['', ' ZORDER BY (id)']))}"
        case "truncate":
            return "TRUNCATE TABLE t"
        case _:
            return select


@st.composite
def _subqueries(draw: DrawFn, part: int, where: str) -> str:
    inner = draw(predicates(depth=0))
    join = f" AND {where[7:]}" if where else ""
    return draw(
        st.sampled_from(
            [
                f"INSERT INTO t SELECT max(id), part, count(*) FROM t WHERE {inner} GROUP BY part",
                f"INSERT INTO t SELECT (SELECT max(id) FROM t WHERE {inner}), {part}, 1",
                f"INSERT INTO t SELECT 3, {part}, 1 WHERE (SELECT count(*) FROM t WHERE {inner}) = 0",
                f"INSERT INTO t SELECT 3, {part}, 1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = 3)",
                f"INSERT INTO t SELECT * FROM t WHERE id IN (SELECT x FROM t WHERE {inner}){join}",
                f"INSERT INTO t SELECT * FROM t WHERE id NOT IN (SELECT x FROM t WHERE {inner}){join}",
                (
                    f"INSERT INTO t SELECT id + 1, {part}, 2 FROM t WHERE"
                    f" NOT EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id + 1){join}"
                ),
                (
                    f"INSERT INTO t SELECT * FROM t WHERE EXISTS"
                    f" (SELECT 1 FROM t AS u WHERE u.id = t.x AND u.part = {part}){join}"
                ),
                f"INSERT OVERWRITE t SELECT * FROM t WHERE x < (SELECT max(x) FROM t WHERE {inner})",
            ]
        )
    )


@st.composite
def _merges(draw: DrawFn, values: Sequence[str], *, tracked: bool) -> str:
    x = "1" if values[2] == "NULL" else values[2]
    source = f"(SELECT {values[0]} AS id, {values[1]} AS part, {x} AS x) AS s"
    on = draw(st.sampled_from(["t.id = s.id", "t.id = s.id AND t.part = 0", "t.part = s.part"]))
    guard = draw(st.sampled_from(["", " AND t.x > 0", " AND s.x > 0"]))
    clauses = [
        "",
        f" WHEN MATCHED{guard} THEN UPDATE SET x = s.x",
        f" WHEN MATCHED{guard} THEN DELETE",
    ]
    if not tracked:
        clauses.append(" WHEN MATCHED THEN UPDATE SET x = (SELECT sum(x) FROM t WHERE part = 1)")
    matched = draw(st.sampled_from(clauses))
    insert = " WHEN NOT MATCHED THEN INSERT *" if not matched or draw(st.booleans()) else ""
    lone = matched.endswith("MATCHED THEN DELETE")
    rest = draw(
        st.sampled_from(
            [
                "",
                "" if lone else " WHEN NOT MATCHED BY SOURCE AND t.x > 0 THEN DELETE",
                "" if lone else " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = t.x + 1",
            ]
        )
    )
    return f"MERGE INTO t USING {source} ON {on}{matched}{insert}{rest}"


@st.composite
def schedules(
    draw: DrawFn, names: Sequence[str], sessions: Mapping[str, str] | None = None
) -> Schedule:
    """Every interleaving of the starts and commits of these transactions; of those that ``sessions`` gives
    one name, one after another.
    """
    steps = queues(names, sessions or {})
    order = draw(st.permutations([key for key, queue in steps.items() for _ in queue]))
    return Schedule(tuple(steps[key].pop(0) for key in order))


@st.composite
def any_tests(
    draw: DrawFn, *, least: int, most: int, partitioned: bool | None, tracked: bool, sessions: bool
) -> Litmus:
    """Litmus tests on the table ``t``, as ``strategies.litmus_tests`` has them."""
    schema = draw(tables(partitioned=partitioned))
    schemas = {"t": schema}
    inits = draw(st.lists(rows_of_t(), min_size=1, max_size=3))
    bodies = transactions(partitioned=bool(schema.partitioned_by), tracked=tracked)
    texts = draw(st.lists(bodies, min_size=least, max_size=most))
    named = {f"t{k}": readable(sql, schemas) for k, sql in enumerate(texts, 1)}
    shared = draw(st.lists(st.integers(0, 2), min_size=len(named), max_size=len(named)))
    of = {name: f"s{k}" for name, k in zip(named, shared, strict=True) if sessions and k}
    schedule = draw(schedules(list(named), of))
    into = tuple(read_statement(f"INSERT INTO t VALUES {row}", schemas) for row in inits)
    clients = {name: Client(session=session) for name, session in of.items()}
    return Litmus("drawn", "", "", schemas, into, named, schedule, clients=clients)
