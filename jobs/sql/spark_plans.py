"""Analyzed plans of Spark as queries in SQL.

A DataFrame is a tree of operators in which each column has a number. Projections, filters, groups,
joins, unions and DISTINCT become one SELECT, or one inside another. Any other operator (a limit, a
window, a function of Python) becomes a query with the same columns on the same tables, whose values
come from a function that no reader of SQL knows: a superset of its rows, of which only the tables
are certain. Rows that Python made are rows of a table without DDL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PLAIN = re.compile(r"[A-Za-z_]\w*")
QUOTED = r"'(?:[^'\\]|\\.?)*+(?:'|\Z)|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z)"
CASTS = (
    (re.compile(r"\bCAST\((-?\d+) AS (?:BIGINT|INT)\)"), r"\1"),
    (re.compile(r"\bCAST\(('\d{4}-\d\d-\d\d') AS DATE\)"), r"DATE \1"),
    (re.compile(r"\bCAST\(('[^'\\]*') AS STRING\)"), r"\1"),
)
"""Conversions that Spark's analysis adds to literals, and the literals that they give."""
MARK = "\x00"
"""Encloses the table in front of a column; it is left out where there is one table."""
SAME_ROWS = (
    "Sort",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "ResolvedHint",
    "View",
    "SubqueryAlias",
)
"""Operators that return the rows of their input."""
JOINS = {
    "Inner": "JOIN",
    "Cross": "CROSS JOIN",
    "LeftOuter": "LEFT JOIN",
    "RightOuter": "RIGHT JOIN",
    "FullOuter": "FULL JOIN",
}
NUMBERED = "row_of_key"
"""Column that numbers the rows of a key."""
PYTHON_ROWS = "rows_from_python"
"""Name of the table that stands for rows which do not come from a table."""


class PlanColumn(NamedTuple):
    """Column of a plan's output."""

    id: int
    """Number of the column, unique in a plan."""
    name: str
    type: str
    """Type in Spark's SQL."""


class PlanExpression(NamedTuple):
    """Expression of a plan."""

    sql: str
    """Text as Spark prints it, without an alias."""
    references: tuple[tuple[int, str], ...] = ()
    """Columns that it reads: the number of each, and its text in `sql`."""
    id: int = -1
    """Number of the column that it defines; -1 if it defines none."""
    certain: bool = True
    """False if the text does not determine the value: a function of Python, a subquery, a random
    number.
    """


class PlanNode(NamedTuple):
    """Operator of a plan."""

    kind: str
    """Name of Spark's class."""
    columns: tuple[PlanColumn, ...]
    """Columns of its output."""
    children: tuple[PlanNode, ...] = ()
    items: tuple[PlanExpression, ...] = ()
    """Projections, or the aggregates of a group."""
    keys: tuple[PlanExpression, ...] = ()
    """Conditions of a filter or a join; keys of a group or of distinct rows."""
    name: str = ""
    """Table of a relation, alias of a subquery, kind of a join."""
    subqueries: tuple[PlanNode, ...] = ()
    """Plans in its expressions."""
    rows: tuple[str, ...] = ()
    """Rows that the program gives, as in VALUES; empty if they are not known."""


def read_spark_plan(given: Mapping[str, Any]) -> PlanNode:
    """Return a plan from its form in JSON.

    Examples
    --------
    >>> given = {"kind": "LogicalRelation", "columns": [[1, "id", "INT"]], "name": "t"}
    >>> read_spark_plan(given).columns
    (PlanColumn(id=1, name='id', type='INT'),)
    """

    def expressions(key: str) -> tuple[PlanExpression, ...]:
        return tuple(
            PlanExpression(sql, tuple((number, text) for number, text in references), id_, certain)
            for sql, references, id_, certain in given.get(key, ())
        )

    return PlanNode(
        given["kind"],
        tuple(PlanColumn(*one) for one in given["columns"]),
        tuple(map(read_spark_plan, given.get("children", ()))),
        expressions("items"),
        expressions("keys"),
        given.get("name", ""),
        tuple(map(read_spark_plan, given.get("subqueries", ()))),
        tuple(given.get("rows", ())),
    )


def plan_tables(plan: PlanNode) -> dict[str, PlanNode]:
    """Return the tables that a plan reads, each with its relation."""
    found = {plan.name: plan} if plan.kind == "LogicalRelation" and plan.name else {}
    for each in (*plan.children, *plan.subqueries):
        found |= plan_tables(each)
    return found


class _Uncertain(Exception):
    """Operator that no SELECT expresses."""


@dataclass(frozen=True, slots=True)
class _Select:
    """Query under construction; texts have the table of each column between marks."""

    source: str
    aliases: frozenset[str]
    columns: Mapping[int, str]
    """Text of each column by its number."""
    where: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    distinct: bool = False

    @property
    def is_plain(self) -> bool:
        """True if a filter, a projection or a group may still be added."""
        return self.groups is None and not self.distinct


@dataclass(slots=True)
class PlanWriter:
    """Writer of plans as SQL; its tables of rows from Python have names of their own.

    Examples
    --------
    >>> table = PlanNode("LogicalRelation", (PlanColumn(1, "id", "BIGINT"),), name="t")
    >>> condition = PlanExpression("(t.id > CAST(3 AS BIGINT))", ((1, "t.id"),))
    >>> PlanWriter().query(PlanNode("Filter", table.columns, (table,), keys=(condition,)))
    'SELECT id FROM t WHERE id > 3'
    """

    _taken: set[str] = field(default_factory=set)

    def query(self, plan: PlanNode, order: Sequence[int] | None = None) -> str:
        """Return the query of a plan, with its columns in this order of their numbers."""
        columns = {one.id: one for one in plan.columns}
        shown = [columns[one] for one in order] if order is not None else plan.columns
        return _text(self._select(plan), shown)

    def condition(self, expression: PlanExpression, names: Mapping[int, str]) -> str | None:
        """Return the text of an expression on these columns; None if it is not certain."""
        try:
            return _bare(_simplified(_written(expression, names)))
        except _Uncertain:
            return None

    def _select(self, plan: PlanNode) -> _Select:
        try:
            return self._certain(plan)
        except _Uncertain:
            return self._any_rows(plan)

    def _certain(self, plan: PlanNode) -> _Select:
        """Return the query of an operator; raise _Uncertain if it has none."""
        if plan.kind == "LogicalRelation" and plan.name:
            name = plan.name.rpartition(".")[2]
            columns = {one.id: f"{MARK}{name}{MARK}{_quoted(one.name)}" for one in plan.columns}
            return _Select(plan.name, frozenset({name}), columns)
        if plan.rows:
            return self._values(plan)
        if plan.kind == "SubqueryAlias":
            return self._aliased(plan)
        if plan.kind in SAME_ROWS:
            return self._renumbered(plan, self._select(plan.children[0]))
        match plan.kind:
            case "Filter":
                below = self._plain(plan.children[0])
                where = (_bare(_written(plan.keys[0], below.columns)),)
                return replace(below, where=(*below.where, *where))
            case "Project":
                below = self._open(plan.children[0])
                return replace(below, columns=_defined(plan.items, below.columns))
            case "Aggregate":
                below = self._plain(plan.children[0])
                groups = tuple(_written(key, below.columns) for key in plan.keys)
                return replace(below, columns=_defined(plan.items, below.columns), groups=groups)
            case "Distinct":
                return replace(self._plain(plan.children[0]), distinct=True)
            case "Deduplicate" if {r for k in plan.keys for r, _ in k.references} >= {
                one.id for one in plan.columns
            }:
                return replace(self._plain(plan.children[0]), distinct=True)
            case "Window":
                below = self._plain(plan.children[0])
                added = _defined(plan.items, below.columns)
                return self._nested(replace(below, columns={**below.columns, **added}), plan)
            case "Deduplicate":
                return self._one_of_each(plan)
            case "Join":
                return self._joined(plan)
            case "Union":
                return self._union(plan)
        raise _Uncertain

    def _values(self, plan: PlanNode) -> _Select:
        """Return the query of rows that the program gives."""
        alias = self._of_python()
        names = _names(plan.columns)
        columns = {one.id: f"{MARK}{alias}{MARK}{names[one.id]}" for one in plan.columns}
        listed = ", ".join(names[one.id] for one in plan.columns)
        source = f"VALUES {', '.join(plan.rows)} AS {alias}({listed})"
        return _Select(source, frozenset({alias}), columns)

    def _renumbered(self, plan: PlanNode, below: _Select) -> _Select:
        """Return the query with the numbers of an operator that may give its columns new ones."""
        inner = plan.children[0].columns
        if [one.id for one in plan.columns] == [one.id for one in inner]:
            return below
        pairs = zip(plan.columns, inner, strict=True)
        return replace(below, columns={a.id: below.columns[b.id] for a, b in pairs})

    def _aliased(self, plan: PlanNode) -> _Select:
        """Return the query of a subquery; its alias names a table."""
        below = self._select(plan.children[0])
        name = plan.name.rpartition(".")[2]
        if (
            not below.is_plain
            or below.where
            or below.source != next(iter(below.aliases))
            or name in below.aliases
            or not PLAIN.fullmatch(name)
        ):
            return below
        (old,) = below.aliases
        return _renamed(replace(below, source=f"{below.source} AS {name}"), old, name)

    def _plain(self, plan: PlanNode) -> _Select:
        below = self._select(plan)
        return below if below.is_plain else self._nested(below, plan)

    def _open(self, plan: PlanNode) -> _Select:
        below = self._select(plan)
        return self._nested(below, plan) if below.distinct else below

    def _nested(
        self, below: _Select, plan: PlanNode, taken: frozenset[str] = frozenset()
    ) -> _Select:
        """Return a query on a query in parentheses."""
        alias = _free("q", taken)
        names = _names(plan.columns)
        columns = {one.id: f"{MARK}{alias}{MARK}{names[one.id]}" for one in plan.columns}
        source = f"({_text(below, plan.columns)}) AS {alias}"
        return _Select(source, frozenset({alias}), columns)

    def _joined(self, plan: PlanNode) -> _Select:
        """Return the query of a join."""
        word = JOINS.get(plan.name)
        if word is None:
            raise _Uncertain
        left, right = (self._select(child) for child in plan.children)
        inner = plan.name in ("Inner", "Cross")
        if not _can_join(left, inner=inner):
            left = self._nested(left, plan.children[0])
        simple = _can_join(right, inner=inner) and len(right.aliases) == 1
        if not simple:
            right = self._nested(right, plan.children[1], left.aliases)
        elif right.aliases & left.aliases:
            (old,) = right.aliases
            new = _free(old, left.aliases)
            if " AS " in right.source or "(" in right.source:
                right = self._nested(right, plan.children[1], left.aliases)
            else:
                right = _renamed(replace(right, source=f"{right.source} AS {new}"), old, new)
        columns = {**left.columns, **right.columns}
        on = f" ON {_bare(_written(plan.keys[0], columns))}" if plan.keys else ""
        if not on:
            word = "CROSS JOIN"
            if not inner:
                raise _Uncertain
        elif word == "CROSS JOIN":
            word = "JOIN"
        return _Select(
            f"{left.source} {word} {right.source}{on}",
            left.aliases | right.aliases,
            columns,
            (*left.where, *right.where),
        )

    def _one_of_each(self, plan: PlanNode) -> _Select:
        """Return the query of one row, any, of each key."""
        below = self._plain(plan.children[0])
        keys = ", ".join(_written(key, below.columns) for key in plan.keys)
        numbered = f"row_number() OVER (PARTITION BY {keys} ORDER BY {keys})"
        shown = (*plan.columns, PlanColumn(-1, NUMBERED, "INT"))
        inner = _text(replace(below, columns={**below.columns, -1: numbered}), shown)
        names = _names(plan.columns)
        columns = {one.id: f"{MARK}q{MARK}{names[one.id]}" for one in plan.columns}
        where = (f"{MARK}q{MARK}{NUMBERED} = 1",)
        return _Select(f"({inner}) AS q", frozenset({"q"}), columns, where)

    def _union(self, plan: PlanNode) -> _Select:
        """Return the query of UNION ALL; its columns have the names of the first branch."""
        names = _names(plan.columns)
        parts = []
        for child in plan.children:
            shown = [
                PlanColumn(one.id, column.name, column.type)
                for one, column in zip(child.columns, plan.columns, strict=True)
            ]
            parts.append(_text(self._select(child), shown))
        columns = {one.id: f"{MARK}q{MARK}{names[one.id]}" for one in plan.columns}
        return _Select(f"({' UNION ALL '.join(parts)}) AS q", frozenset({"q"}), columns)

    def _of_python(self) -> str:
        """Return a new name for rows that the program gives."""
        name = _free(PYTHON_ROWS, self._taken)
        self._taken.add(name)
        return name

    def _any_rows(self, plan: PlanNode) -> _Select:
        """Return a query of any rows with the columns of a plan, on the tables of the plan."""
        tables = {name: node for name, node in plan_tables(plan).items() if node.columns}
        names = _names(plan.columns)
        if not tables:
            name = self._of_python()
            columns = {
                one.id: f"CAST({MARK}{name}{MARK}{names[one.id]} AS {one.type})"
                for one in plan.columns
            }
            return _Select(name, frozenset({name}), columns)
        first, node = next(iter(tables.items()))
        of = f"{first.rpartition('.')[2]}.{_quoted(node.columns[0].name)}"
        function = f"spark_{plan.kind.lower()}"
        made = ", ".join(
            f"CAST({function}({of}) AS {one.type}) AS {names[one.id]}" for one in plan.columns
        )
        source = f"(SELECT {made} FROM {' CROSS JOIN '.join(tables)}) AS q"
        columns = {one.id: f"{MARK}q{MARK}{names[one.id]}" for one in plan.columns}
        return _Select(source, frozenset({"q"}), columns)


def _can_join(side: _Select, *, inner: bool) -> bool:
    """Return whether a join may have a query's tables instead of the query.

    An outer join makes NULL of each column of a side, also of one with a constant value.
    """
    return side.is_plain and (
        inner or (not side.where and all(one.startswith(MARK) for one in side.columns.values()))
    )


def _renamed(select: _Select, old: str, new: str) -> _Select:
    """Return a query of one table with another alias for it."""
    a, b = f"{MARK}{old}{MARK}", f"{MARK}{new}{MARK}"
    return replace(
        select,
        aliases=frozenset({new}),
        columns={id_: text.replace(a, b) for id_, text in select.columns.items()},
        where=tuple(text.replace(a, b) for text in select.where),
    )


def _defined(items: Sequence[PlanExpression], columns: Mapping[int, str]) -> dict[int, str]:
    return {one.id: _written(one, columns) for one in items}


def _written(expression: PlanExpression, columns: Mapping[int, str]) -> str:
    """Return the text of an expression with these texts of its columns."""
    if not expression.certain:
        raise _Uncertain
    texts: dict[str, int] = {}
    for number, text in expression.references:
        if texts.setdefault(text, number) != number or number not in columns:
            raise _Uncertain
    if not texts:
        return expression.sql
    longest = sorted(map(re.escape, texts), key=len, reverse=True)
    pattern = re.compile(rf"{QUOTED}|(?<![\w.`])(?P<column>{'|'.join(longest)})(?![\w`(])")
    seen = set()

    def put(found: re.Match[str]) -> str:
        if not found["column"]:
            return found[0]
        seen.add(found["column"])
        text = columns[texts[found["column"]]]
        return (
            text
            if _is_name(text) or text.endswith(")") or found[0] == expression.sql
            else f"({text})"
        )

    made = pattern.sub(put, expression.sql)
    if seen != texts.keys():
        raise _Uncertain
    return made


def _bare(text: str) -> str:
    """Return a condition without parentheses around all of it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for found in re.finditer(rf"{QUOTED}|`[^`]*`|[()]", text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return text[1:-1] if found.end() == len(text) else text
    return text


def _is_name(text: str) -> bool:
    return re.fullmatch(rf"(?:{MARK}\w+{MARK}|\w+\.)?(?:\w+|`[^`]+`)", text) is not None


def _text(select: _Select, shown: Sequence[PlanColumn]) -> str:
    """Return the text of a query with these columns."""
    names = _names(shown)
    items = []
    for one in shown:
        text, name = select.columns[one.id], names[one.id]
        items.append(text if text.rpartition(MARK)[2] == name else f"{text} AS {name}")
    parts = [f"SELECT {'DISTINCT ' if select.distinct else ''}{', '.join(items) or '1'}"]
    parts.append(f"FROM {select.source}")
    if select.where:
        several = len(select.where) > 1
        parts.append(f"WHERE {' AND '.join(f'({c})' if several else c for c in select.where)}")
    if select.groups:
        parts.append(f"GROUP BY {', '.join(select.groups)}")
    text = " ".join(parts)
    mark = re.compile(rf"{MARK}(\w+|`[^`]+`){MARK}")
    return _simplified(mark.sub("" if len(select.aliases) == 1 else r"\1.", text))


def _simplified(text: str) -> str:
    for pattern, literal in CASTS:
        text = pattern.sub(literal, text)
    return text


def _names(columns: Sequence[PlanColumn]) -> dict[int, str]:
    """Return a name for each column; of two with one name, the second gets its number."""
    found: dict[int, str] = {}
    taken: set[str] = set()
    for one in columns:
        name = one.name if one.name.lower() not in taken else f"{one.name}_{one.id}"
        taken.add(name.lower())
        found[one.id] = _quoted(name)
    return found


def _quoted(name: str) -> str:
    return name if PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _free(name: str, taken: frozenset[str] | set[str]) -> str:
    def candidates() -> Iterator[str]:
        yield name
        yield from (f"{name}_{k}" for k in range(2, len(taken) + 3))

    return next(one for one in candidates() if one not in taken)
