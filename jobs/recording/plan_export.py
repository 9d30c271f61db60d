"""Export of a DataFrame's analyzed plan from the JVM, in the form of ``jobs.sql.spark_plans``."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.sql.spark_plans import read_spark_plan
from isolitmus.specs.sql.parameters import spark_literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.conformance.delta.session import Session
    from isolitmus.jobs.sql.spark_plans import PlanNode

QUERIES = ("Subquery", "Exists", "ListQuery")
"""Parts of the names of expressions that contain a plan."""
OTHER_CODE = ("UDF", "UserDefined", "AggregatorExpression")
"""Parts of the names of expressions whose code is not Spark's."""
LITERALS = (type(None), bool, int, float, str, dt.date, Decimal)
"""Types of values whose literal does not depend on the session."""
OWN_PLAN = "_isolitmus_plan"
"""Attribute of a DataFrame: its plan, once it has been exported."""
FILES = "HadoopFsRelation"
"""Class of a relation that reads files; Delta's own is derived from it."""
DELTA_FILES = "TahoeLogFileIndex"
"""Class of the files of one version of a Delta table."""


class PlanExport:
    """Export of plans from the JVM of a session.

    Parameters
    ----------
    session : Session
        Running Spark.
    tables : mapping of str to str
        Name of each table by its name in Spark's catalog, in lower case.
    """

    def __init__(self, session: Session, tables: Mapping[str, str]) -> None:
        self._session = session
        self._tables = tables
        self.rows: dict[tuple[int, ...], tuple[str, ...]] = {}
        """Rows that the program gives, as in VALUES, by the numbers of their columns."""
        self._lists = session.java("scala.jdk.javaapi.CollectionConverters")

    def plan(self, frame: Any) -> PlanNode:
        """Return the analyzed plan of a DataFrame, which keeps it: each look into the JVM costs."""
        known: PlanNode | None = frame.__dict__.get(OWN_PLAN)
        if known is None:
            known = read_spark_plan(self._node(frame._jdf.queryExecution().analyzed()))  # noqa: SLF001
            frame.__dict__[OWN_PLAN] = known
        return known

    def keep_rows(self, frame: Any, rows: Sequence[Sequence[Any]]) -> None:
        """Keep the rows of a DataFrame that a program has made, if all have literals."""
        if all(type(value) in LITERALS for row in rows for value in row):
            listed = tuple(f"({', '.join(map(spark_literal, row))})" for row in rows)
            columns = self.items(frame._jdf.queryExecution().analyzed().output())  # noqa: SLF001
            self.rows[tuple(one.exprId().id() for one in columns)] = listed

    def items(self, sequence: Any) -> list[Any]:
        """Return the items of a Scala Seq."""
        return [*self._lists.asJava(sequence)]

    def _node(self, plan: Any) -> dict[str, Any]:
        kind = plan.getClass().getSimpleName()
        found: dict[str, Any] = {
            "kind": kind,
            "columns": [
                [one.exprId().id(), one.name(), one.dataType().sql()]
                for one in self.items(plan.output())
            ],
            "children": [self._node(one) for one in self.items(plan.children())],
        }
        if found["columns"] and not found["children"]:
            found["rows"] = self.rows.get(tuple(one[0] for one in found["columns"]), ())
        match kind:
            case "LogicalRelation" | "DataSourceV2Relation" | "StreamingRelation":
                found |= {"kind": "LogicalRelation", "name": self._table(plan, kind)}
                return found
            case "SubqueryAlias":
                found["name"] = plan.alias()
                return found
            case "Filter":
                found["keys"] = [self._expression(plan.condition())]
            case "Project":
                found["items"] = [self._expression(one) for one in self.items(plan.projectList())]
            case "Aggregate":
                found["keys"] = [
                    self._expression(one) for one in self.items(plan.groupingExpressions())
                ]
                found["items"] = [
                    self._expression(one) for one in self.items(plan.aggregateExpressions())
                ]
            case "Window":
                found["items"] = [
                    self._expression(one) for one in self.items(plan.windowExpressions())
                ]
            case "Deduplicate":
                found["keys"] = [self._expression(one) for one in self.items(plan.keys())]
            case "Join":
                condition = plan.condition()
                found["name"] = plan.joinType().toString()
                found["keys"] = [self._expression(condition.get())] if condition.isDefined() else []
            case "Union" if plan.byName():
                found["kind"] = "UnionByName"
        found["subqueries"] = [self._node(one) for one in self.items(plan.subqueries())]
        return found

    def _table(self, plan: Any, kind: str) -> str:
        """Return the name of the declared table that a relation reads; empty for another."""
        if kind in ("LogicalRelation", "StreamingRelation"):
            streams = kind == "StreamingRelation"
            given = (plan.dataSource() if streams else plan).catalogTable()
            if not given.isDefined():
                return ""
            name = given.get().identifier().unquotedString()
            if not streams and not _reads_current_files(plan.relation()):
                return ""
        elif kind == "DataSourceV2Relation":
            name = plan.name()
        else:
            return ""
        return self._tables.get(name.lower().removeprefix("spark_catalog."), "")

    def _expression(self, given: Any) -> list[Any]:
        """Return an expression: its text, its columns, the number of its own, whether it is
        certain.
        """
        kind = given.getClass().getSimpleName()
        id_ = given.exprId().id() if kind in ("Alias", "AttributeReference") else -1
        inner = given.child() if kind == "Alias" else given
        references = [
            [one.exprId().id(), one.sql()] for one in self.items(inner.references().toSeq())
        ]
        certain = inner.deterministic() and not any(map(_is_unknown, self._kinds(inner)))
        return [inner.sql(), references, id_, certain]

    def _kinds(self, expression: Any) -> Iterator[str]:
        """Yield the names of the classes in an expression."""
        yield expression.getClass().getSimpleName()
        for one in self.items(expression.children()):
            yield from self._kinds(one)


def _reads_current_files(relation: Any) -> bool:
    """Return whether a relation reads the files of a table's newest version."""
    own = relation.getClass()
    while own is not None and own.getSimpleName() != FILES:
        own = own.getSuperclass()
    if own is None:
        return False
    index = relation.location()
    return index.getClass().getSimpleName() != DELTA_FILES or not index.isTimeTravelQuery()


def _is_unknown(kind: str) -> bool:
    return any(part in kind for part in (*QUERIES, *OTHER_CODE))
