"""Hypothesis strategies for tables, transactions, schedules, litmus tests and abstract histories.

Statements are drawn as SQL text of the modelled fragment over one table ``t (id INT, part INT, x
INT)``, or over a table of one's own, so that what a property test shrinks to is what a person can read, save and
replay on Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.checker.drawn_histories import Between, any_histories, grown_histories
from isolitmus.checker.own_jobs import OwnJobs
from isolitmus.checker.own_table import OwnTable
from isolitmus.checker.timing import TIMES, queues, schedule_at
from isolitmus.model.client import Client
from isolitmus.model.errors import IsolitmusError, SqlError
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.schema import Column, Schema
from isolitmus.specs.catalogue import spec
from isolitmus.specs.job_files import workload as workload_named
from isolitmus.specs.sql import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.model.history import History
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Value
    from isolitmus.model.workload import Workload
    from isolitmus.specs.catalogue import SpecLike

__all__ = [
    "histories",
    "jobs",
    "litmus_tests",
    "predicates",
    "readable",
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
def _rows(draw: DrawFn) -> str:
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
    row = draw(_rows())
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
            return f"INSERT INTO t VALUES {row}, {draw(_rows())}"
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


def litmus_tests(
    *,
    table: str | Schema | None = None,
    statements: Sequence[str | SearchStrategy[str]] = (),
    rows: SearchStrategy[str] | None = None,
    least: int = 2,
    most: int = 3,
    partitioned: bool | None = None,
    tracked: bool = False,
    sessions: bool = False,
) -> SearchStrategy[Litmus]:
    """A litmus test without expectations: a table with rows, transactions, a schedule; with ``sessions``
    some transactions may share one.

    By default the table is ``t`` and the statements are of every kind. Given a ``table`` of one's own, as its CREATE
    TABLE has it, they are from ``statements``, texts or strategies that draw such, the simplest first; its rows are of
    few values and those that the texts name, or what ``rows`` draws: ``(1, 'mon')``. What shrinks has the fewest
    transactions and rows, and prints as a litmus file.

    >>> from hypothesis import find
    >>> ddl = "CREATE TABLE seats (n INT, who STRING) USING delta PARTITIONED BY (n)"
    >>> tests = litmus_tests(table=ddl, statements=["DELETE FROM seats WHERE n = 4"])
    >>> find(tests, lambda test: True).transactions["t2"]
    DELETE FROM seats WHERE n = 4
    """
    if table is not None:
        own = OwnTable.of(table, statements, rows)
        return _own_tests(own, least=least, most=most, sessions=sessions)
    return _any_tests(
        least=least, most=most, partitioned=partitioned, tracked=tracked, sessions=sessions
    )


def jobs(
    workload: Workload | str,
    *,
    values: Mapping[str, Sequence[Value]] | None = None,
    rows: Mapping[str, SearchStrategy[str]] | None = None,
    least: int = 2,
    most: int = 3,
) -> SearchStrategy[Litmus]:
    """Runs of the jobs of a workload, or of its file or name, as litmus tests without expectations: each with
    parameters of which holds what the workload knows, overlapping as it allows.

    Parameters have the values that the statements name, what is next to those in conditions, and a few others; or, by
    the name of a parameter, those in ``values``. Rows of tables have the same, and what the parameters are; or, by the
    name of a table, what ``rows`` draws: ``(1, 'mon')``. What fails shrinks to the fewest runs and rows, those of the
    jobs that come first, and prints as a litmus file. IsolitmusError for what is wrong with any of that.

    >>> from hypothesis import find
    >>> tests = jobs("shop", values={"customer": [7]})
    >>> print(find(tests, lambda test: "erase" in test.transactions).transactions["erase"].sql)
    DELETE FROM orders WHERE customer = 7 AND day < DATE '2026-01-02'
    """
    of = workload_named(workload) if isinstance(workload, str) else workload
    own = OwnJobs(of, values or {}, rows or {})
    runs = own.runs.flatmap(lambda run: st.lists(run, min_size=least, max_size=most))
    return st.builds(own.litmus, runs, own.inits)


@st.composite
def _any_tests(
    draw: DrawFn, *, least: int, most: int, partitioned: bool | None, tracked: bool, sessions: bool
) -> Litmus:
    """Litmus tests on the table ``t``."""
    schema = draw(tables(partitioned=partitioned))
    schemas = {"t": schema}
    inits = draw(st.lists(_rows(), min_size=1, max_size=3))
    bodies = transactions(partitioned=bool(schema.partitioned_by), tracked=tracked)
    texts = draw(st.lists(bodies, min_size=least, max_size=most))
    named = {f"t{k}": readable(sql, schemas) for k, sql in enumerate(texts, 1)}
    shared = draw(st.lists(st.integers(0, 2), min_size=len(named), max_size=len(named)))
    of = {name: f"s{k}" for name, k in zip(named, shared, strict=True) if sessions and k}
    schedule = draw(schedules(list(named), of))
    return _litmus(schema, inits, named, of, schedule)


def _litmus(
    schema: Schema,
    inits: Sequence[str],
    named: Mapping[str, Statement],
    sessions: Mapping[str, str],
    schedule: Schedule,
) -> Litmus:
    """A litmus test on a table with these rows, each of one commit."""
    schemas = {schema.name: schema}
    into = f"INSERT INTO {schema.name} VALUES"
    init = tuple(read_statement(f"{into} {row}", schemas) for row in inits)
    clients = {name: Client(session=session) for name, session in sessions.items()}
    return Litmus("drawn", "", "", schemas, init, named, schedule, clients=clients)


@st.composite
def _own_tests(draw: DrawFn, own: OwnTable, *, least: int, most: int, sessions: bool) -> Litmus:
    """Litmus tests on a table of one's own; what is left out leaves the rest as it is, so that they shrink."""
    chosen = st.tuples(own.statements, TIMES, st.integers(0, 2 if sessions else 0))
    found = draw(st.lists(chosen, min_size=least, max_size=most))
    inits = draw(st.lists(own.rows, min_size=1, max_size=3))
    names = [f"t{k}" for k in range(1, len(found) + 1)]
    named = {name: statement for name, (statement, _, _) in zip(names, found, strict=True)}
    of = {name: f"s{k}" for name, (_, _, k) in zip(names, found, strict=True) if k}
    times = {name: when for name, (_, when, _) in zip(names, found, strict=True)}
    return _litmus(own.schema, inits, named, of, schedule_at(times, of))


def histories(
    *,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 1,
    most: int = 4,
    keys: str = "xy",
    predicates: bool = False,
    observed: bool = False,
) -> SearchStrategy[History]:
    """Histories of committed transactions, each with reads, then writes; with sessions or without.

    ``level``, a level or its name or file: only those that it admits; with ``forbidden_by`` only those that this
    one forbids. What fails then shrinks to the smallest history that one admits and the other forbids. Without a
    level: ``predicates``: some read by predicate, and every match bit is stated; ``observed``: in some the
    order of the versions was observed, of all objects or of some. IsolitmusError if no such history is known, or all
    are larger.

    >>> from hypothesis import find
    >>> between = histories(level="snapshot-isolation", forbidden_by="serializable")
    >>> find(between, lambda history: True)
    History.from_table({'T1': 'r(x0) w(y1)', 'T2': 'r(y0) w(x2)'})
    """
    if level is None and forbidden_by is None:
        return any_histories(
            least=least, most=most, keys=keys, predicates=predicates, observed=observed
        )
    if level is None:
        raise IsolitmusError(
            f"forbidden_by is {str(forbidden_by)[:60]!r} without a level that admits; level='read-committed' would be one"
        )
    if predicates or observed:
        raise IsolitmusError(
            "predicates and observed are drawn without a level; leave them out, or level"
        )
    forbids = None if forbidden_by is None else spec(forbidden_by)
    asked = Between(spec(level), forbids)
    return grown_histories(asked, least=least, most=most, keys=keys)
