"""Random litmus tests on Delta, with SQL statements or raw transactions, as Hypothesis strategies.

Statements on a table ``t (id INT, part INT, x INT)`` are drawn as SQL text of the modelled
fragment, so that a minimal counterexample can be read, saved and replayed on Spark. Raw
transactions, which do what no SQL can, are drawn as the text of a litmus file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.checker.universes.schedules import session_queues
from isolitmus.model.errors import IsolitmusError, SqlError
from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.configuration import ATTEMPTS, RESOLUTION, SKIPPING, STRICT_FEATURES
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.model.sql.statement import Statement

COLUMNS = (Column("id", "INT"), Column("part", "INT"), Column("x", "INT"))
NUMBERS = st.integers(0, 4)


def tables(*, partitioned: bool | None = None) -> SearchStrategy[Schema]:
    """Return a strategy for the table ``t``.

    By default it may be partitioned, have one row per file, and have deletion vectors.
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
    """Draw a condition on the columns of ``t``: comparisons, IN, IS NULL, AND, OR, NOT."""
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


def is_readable(sql: str, schemas: Mapping[str, Schema]) -> Statement:
    """Return the statement; reject the example if the model does not support its condition."""
    try:
        return read_statement(sql, schemas)
    except SqlError:
        reject()


@st.composite
def rows_of_t(draw: DrawFn) -> str:
    """Draw a row of ``t`` as in VALUES."""
    x = draw(st.sampled_from(["0", "1", "2", "NULL"]))
    return f"({draw(NUMBERS)}, {draw(st.integers(0, 1))}, {x})"


@st.composite
def transactions(
    draw: DrawFn, *, partitioned: bool = True, readers: bool = True, tracked: bool = False
) -> str:
    """Draw an SQL statement on ``t`` of any modelled kind.

    With ``tracked``, Delta records all reads of the statement.
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
    """Draw an INSERT with a subquery or an aggregate."""
    inner = draw(predicates(depth=0))
    join = f" AND {where[7:]}" if where else ""
    return draw(
        st.sampled_from(
            [
                f"INSERT INTO t SELECT max(id), part, count(*) FROM t WHERE {inner} GROUP BY part",
                f"INSERT INTO t SELECT (SELECT max(id) FROM t WHERE {inner}), {part}, 1",
                (
                    f"INSERT INTO t SELECT 3, {part}, 1 WHERE (SELECT count(*) FROM t WHERE"
                    f" {inner}) = 0"
                ),
                (
                    f"INSERT INTO t SELECT 3, {part}, 1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id"
                    " = 3)"
                ),
                f"INSERT INTO t SELECT * FROM t WHERE id IN (SELECT x FROM t WHERE {inner}){join}",
                (
                    "INSERT INTO t SELECT * FROM t WHERE id NOT IN (SELECT x FROM t WHERE"
                    f" {inner}){join}"
                ),
                (
                    f"INSERT INTO t SELECT id + 1, {part}, 2 FROM t WHERE"
                    f" NOT EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id + 1){join}"
                ),
                (
                    "INSERT INTO t SELECT * FROM t WHERE EXISTS"
                    f" (SELECT 1 FROM t AS u WHERE u.id = t.x AND u.part = {part}){join}"
                ),
                (
                    "INSERT OVERWRITE t SELECT * FROM t WHERE x < (SELECT max(x) FROM t WHERE"
                    f" {inner})"
                ),
            ]
        )
    )


@st.composite
def _merges(draw: DrawFn, values: Sequence[str], *, tracked: bool) -> str:
    """Draw a MERGE whose source is one row; if not ``tracked``, its update may use a subquery."""
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
    """Draw an interleaving of the transactions' starts and commits.

    Transactions that ``sessions`` maps to the same name run one after another.
    """
    steps = session_queues(names, sessions or {})
    order = draw(st.permutations([key for key, queue in steps.items() for _ in queue]))
    return Schedule(tuple(steps[key].pop(0) for key in order))


@st.composite
def table_tests(
    draw: DrawFn, *, least: int, most: int, partitioned: bool | None, tracked: bool, sessions: bool
) -> Litmus:
    """Draw a litmus test on the table ``t``.

    Parameters
    ----------
    least, most : int
        Minimum and maximum number of transactions.
    partitioned : bool or None
        Whether the table is partitioned; None for either.
    tracked : bool
        Whether Delta records all reads of the statements.
    sessions : bool
        Whether transactions may share sessions.
    """
    schema = draw(tables(partitioned=partitioned))
    schemas = {"t": schema}
    inits = draw(st.lists(rows_of_t(), min_size=1, max_size=3))
    bodies = transactions(partitioned=bool(schema.partitioned_by), tracked=tracked)
    texts = draw(st.lists(bodies, min_size=least, max_size=most))
    named = {f"t{k}": is_readable(sql, schemas) for k, sql in enumerate(texts, 1)}
    shared = draw(st.lists(st.integers(0, 2), min_size=len(named), max_size=len(named)))
    of = {name: f"s{k}" for name, k in zip(named, shared, strict=True) if sessions and k}
    schedule = draw(schedules(list(named), of))
    into = tuple(read_statement(f"INSERT INTO t VALUES {row}", schemas) for row in inits)
    clients = {name: ClientSettings(session=session) for name, session in of.items()}
    return Litmus("drawn", "", "", schemas, into, named, schedule, clients=clients, format="delta")


READS = (
    '"true"', '"part = 0"', '"part > 0"', '"id = 1"', '"part = 1 AND id = 2"',
    "{ whole_table = true }", '{ sql = "SELECT count(*) FROM t" }',
    '{ sql = "SELECT id FROM t WHERE part = 1" }',
    '{ app_id = "a" }', '{ app_id = "b" }',
)  # fmt: skip
METADATA = (
    "{}", '{ configuration = { "team" = "us" } }', '{ description = "ours" }',
    '{ configuration = { "delta.enableDeletionVectors" = "true" } }',
    '{ configuration = { "delta.appendOnly" = "true" } }',
    '{ unset = ["delta.enableDeletionVectors"] }',
)  # fmt: skip
PROTOCOL = (
    "", "deletionVectors", "domainMetadata", "rowTracking", "clustering", "columnMapping",
    "checkConstraints", "v2Checkpoint", "typeWidening", "identityColumns",
)  # fmt: skip
"""Features that a transaction may add; some require others, some conflict with others."""
FEATURES: tuple[tuple[str, ...], ...] = (
    (), (), ("domainMetadata",), ("rowTracking",), ("clustering",), ("deletionVectors",),
)  # fmt: skip
OPERATIONS = (
    "Truncate", "Truncate", "Delete", "ManualUpdate", "SetTableProperties", "ComputeStats",
    "Optimize", "UpgradeProtocol",
)  # fmt: skip
CONFS = ((RESOLUTION, "false"), (STRICT_FEATURES, "true"), (SKIPPING, "false"), (ATTEMPTS, "0"))
STATS = (
    "{ numRecords = 1 }",
    "{ numRecords = 2, minValues = { id = 0 }, maxValues = { id = 1 }, nullCount = { id = 0 } }",
    "{ numRecords = 2, minValues = { id = 2 }, maxValues = { id = 3 }, nullCount = { id = 0 } }",
)
SOME = st.integers(0, 7).map(lambda k: k == 0)
HALF = st.booleans()


@dataclass(frozen=True, slots=True)
class _Table:
    """Facts about the table that a drawn transaction uses."""

    partitions: tuple[str, ...]
    vectors: bool
    features: tuple[str, ...]
    files: tuple[str, ...]


@st.composite
def raw_tests(draw: DrawFn) -> Litmus:
    """Draw a litmus test of two to five raw transactions on one table, in any schedule.

    The table has two or three declared files, or real ones, and may have partition columns, or no
    others.
    """
    partitions = draw(st.sampled_from([(), ("part",), ("part",), ("id", "part")]))
    table = _Table(
        partitions,
        draw(HALF),
        draw(st.sampled_from(FEATURES)),
        tuple(f"f{k}" for k in range(draw(st.integers(2, 3)))),
    )
    names = ["a", "b", "c", "d", "e"][: draw(st.sampled_from([2, 2, 3, 3, 4, 5]))]
    order = draw(st.permutations([name for name in names for _ in range(2)]))
    steps = [f"{name}.{'commit' if name in order[:k] else 'start'}" for k, name in enumerate(order)]
    properties = [f'"delta.feature.{name}" = "supported"' for name in table.features]
    if table.vectors:
        properties.append('"delta.enableDeletionVectors" = "true"')
    real = len(partitions) < 2 and "clustering" not in table.features and draw(SOME)
    files = [_file(draw, table, path, there=True) for path in table.files]
    held = 'init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]' if real else f"files = {_listed(files)}"
    text = [
        'title = "Drawn"',
        f'schedule = "{" ".join(steps)}"',
        "[table]",
        'columns = "id INT, part INT"',
        f"partitioned_by = {json.dumps(list(partitions))}",
        held,
        f"properties = {{ {', '.join(properties)} }}",
    ]
    for name in names:
        text += [f"[transactions.{name}]", *_keys(draw, name, table, real=real)]
    try:
        test = read_litmus("\n".join(text), "drawn")
    except IsolitmusError:
        reject()
    assert isinstance(test, Litmus)
    return test


def _listed(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _file(draw: DrawFn, table: _Table, path: str, *, there: bool = False) -> str:
    """Draw a file, which exists initially if ``there``.

    Some files have no row count; some have a deletion vector, even if the table has none.
    """
    parts = [f"{column} = {draw(st.integers(0, 2))}" for column in table.partitions]
    keys = [f'path = "{path}"']
    keys += [f"partition = {{ {', '.join(parts)} }}"] if parts else []
    whole = STATS if "id" not in table.partitions else STATS[:1]
    marked = draw(HALF) if table.vectors else not there and draw(SOME)
    vector = draw(st.sampled_from(["d1", "d2"])) if marked else None
    if vector is not None or not draw(SOME) or "rowTracking" in table.features:
        keys.append(f"stats = {draw(st.sampled_from(whole))}")
    keys += [f'dv = "{vector}"'] if vector is not None else []
    return f"{{ {', '.join(keys)} }}"


def _keys(draw: DrawFn, name: str, table: _Table, *, real: bool) -> list[str]:
    """Draw the keys of a transaction; most have reads and files, few the rest."""
    parts = ", ".join(f"{column} = 1" for column in table.partitions)
    looks = (*READS, *([f"{{ partitions = [{{ {parts} }}] }}"] if parts else []))
    reads = draw(st.lists(st.sampled_from(looks), max_size=2))
    # sometimes a file of another transaction or of the table, and sometimes one path twice
    mine = [f"{name}0", f"{name}1"]
    paths = st.sampled_from([*mine, *mine, *table.files]) if draw(SOME) else st.sampled_from(mine)
    twice = draw(SOME)
    adds = draw(st.lists(paths, max_size=2, unique_by=None if twice else str))
    removes = _removes(draw, table, real=real, twice=twice)
    lines = [
        f"reads = {_listed(reads)}",
        f"adds = {_listed(_file(draw, table, path) for path in adds)}",
        f"removes = {_listed(removes)}",
    ]
    if "rowTracking" in table.features and draw(SOME):
        return [*lines[:2], 'operation = "RowTrackingBackfill"', "data_change = false"]
    lines.append(f'operation = "{draw(st.sampled_from(OPERATIONS))}"')
    lines += ["data_change = false"] if draw(SOME) else []
    large = draw(SOME)
    if large:
        lines = [*lines[1:], "large = true"]
    elif draw(SOME):
        lines.append(f'app = {{ id = "{draw(st.sampled_from("ab"))}", version = 1 }}')
    lines += [f"metadata = {draw(st.sampled_from(METADATA))}"] if draw(SOME) else []
    if draw(SOME):
        features = draw(st.lists(st.sampled_from(PROTOCOL), max_size=2, unique=True))
        lines.append(f"protocol = {{ features = {json.dumps([*filter(None, features)])} }}")
    if draw(SOME):
        domains = draw(st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=2))
        lines.append(f"domains = {json.dumps(domains)}")
    if not large and draw(SOME):
        lines.append(f"blind = {json.dumps(draw(HALF))}")
    if draw(SOME):
        key, value = draw(st.sampled_from(CONFS))
        lines.append(f'conf = {{ "{key}" = "{value}" }}')
    return lines


def _removes(draw: DrawFn, table: _Table, *, real: bool, twice: bool) -> list[str]:
    """Draw removed files: the table's own, or files with perhaps another deletion vector."""
    paths = st.sampled_from(table.files)
    found = draw(st.lists(paths, max_size=2, unique_by=None if twice else str))
    own = not real and not draw(SOME)
    return [json.dumps(path) if own else _file(draw, table, path) for path in found]
