"""What would end conflicts: another level, a literal on the partition column, another layout; each asked anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.checker.robustness.prediction import JobPrediction, Meeting, predict_workload
from isolitmus.model.default import DELTA
from isolitmus.model.statement import Merge
from isolitmus.specs.catalogue import protocol as named
from isolitmus.specs.formats import format_named
from isolitmus.specs.job_files import with_statement
from isolitmus.specs.sql import syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement, Workload

__all__ = ["JobChange", "job_changes", "stopped", "tried"]

STOPPED = ("when", "always", "unknown")
DIALECT = "databricks"


@dataclass(frozen=True, slots=True)
class JobChange:
    """Something that one could change, and what is then predicted."""

    title: str
    """What it is."""
    workload: Workload
    """The jobs with it."""
    under: Spec
    """The commit check with it."""
    ends: tuple[tuple[str, str], ...] = ()
    """The pairs (loser, winner) that may stop each other without it, and not with it."""
    brings: tuple[tuple[str, str], ...] = ()
    """Those that may with it, and not without it."""
    narrows: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Those that may without it whatever their parameters are, and with it only if something holds of these."""

    def to_json(self) -> dict[str, object]:
        """The change as docs/interface.md, 6, has it."""
        return {
            "title": self.title,
            "ends": [list(pair) for pair in self.ends],
            "brings": [list(pair) for pair in self.brings],
            "narrows": [
                {"loser": a, "winner": b, "condition": list(when)} for a, b, when in self.narrows
            ],
        }


def job_changes(workload: Workload, under: Spec) -> Iterator[JobChange]:
    """What one could change; nobody has looked yet whether it helps."""
    for other in format_named(DELTA).protocols:
        spec = named(other)
        if other != under.name:
            yield JobChange(f"the level {spec.setting.rpartition('= ')[2]}", workload, spec)
    for one in workload.statements:
        for sql, column in _literals(workload, one):
            title = f"{one.name} with {column} as a literal in ON"
            yield JobChange(title, with_statement(workload, one, sql), under)
    for name, schema in workload.tables.items():
        if schema.exists and not schema.clustered_by:
            for each in schema.columns:
                if each.name not in schema.partitioned_by and len(schema.columns) > 1:
                    layout = replace(schema, partitioned_by=(each.name,))
                    tables = {**workload.tables, name: layout}
                    title = f"{name} partitioned by {each.name}"
                    yield JobChange(title, replace(workload, tables=tables), under)


def tried(before: JobPrediction, under: Spec) -> Iterator[JobChange]:
    """The changes that end some conflict, or leave it to fewer parameters; those first that leave the fewest."""
    at_first = stopped(before)
    found = []
    for change in job_changes(before.workload, under):
        after = stopped(predict_workload(change.workload, change.under, examples=False))
        ends = tuple(pair for pair in at_first if pair not in after)
        brings = tuple(pair for pair in after if pair not in at_first)
        narrows = tuple(
            (*pair, m.condition)
            for pair, m in after.items()
            if m.condition and pair in at_first and not at_first[pair].condition
        )
        if ends or narrows:
            made = replace(change, ends=ends, brings=brings, narrows=narrows)
            found.append((len(after), -len(narrows), made))
    yield from (change for _, _, change in sorted(found, key=lambda each: each[:2]))


def stopped(prediction: JobPrediction) -> dict[tuple[str, str], Meeting]:
    """The pairs (loser, winner) of which the winner may stop the loser."""
    return {(m.loser, m.winner): m for m in prediction.meetings if m.word in STOPPED}


def _literals(workload: Workload, one: JobStatement) -> Iterator[tuple[str, str]]:
    """A MERGE that pairs partitions by a column of its source, whose value its one row says: the text with that
    value in ON.
    """
    merge = one.statement
    if not isinstance(merge, Merge):
        return
    tree = syntax_of(merge).bound({}).tree()
    source = tree.args["using"]
    select = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(select, exp.Select) or select.args.get("from_") or select.args.get("from"):
        return
    values = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}
    alias = source.alias_or_name.lower()
    on = tree.args["on"]
    parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
    for column in workload.tables[merge.target].partitioned_by:
        for own, other in _equated(parts, alias):
            if own.name.lower() == column.lower() and other.name.lower() in values:
                changed, value = tree.copy(), values[other.name.lower()]
                known = exp.EQ(this=own.copy(), expression=value.copy())
                changed.set("on", exp.and_(changed.args["on"], known))
                yield changed.sql(DIALECT), column


def _equated(parts: list[exp.Expr], alias: str) -> Iterator[tuple[exp.Column, exp.Column]]:
    """The columns of the target and of the source (of this name) that parts of ON say are equal."""
    for part in parts:
        if isinstance(part, exp.EQ):
            sides = [s for s in (part.this, part.expression) if isinstance(s, exp.Column)]
            own = [s for s in sides if s.table.lower() != alias]
            other = [s for s in sides if s.table.lower() == alias]
            if own and other:
                yield own[0], other[0]
