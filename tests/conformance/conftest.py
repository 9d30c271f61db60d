"""Litmus tests built from a few strings."""

import pytest

from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import Delete, Insert, Merge, Optimize, Read, Update

COLUMNS = (Column("id", "INT"), Column("part", "INT"))


def statement(sql, target):
    """A statement as far as the engine looks at it: the text and the table that it writes."""
    match sql.split()[0]:
        case "INSERT":
            return Insert(sql, target, ())
        case "DELETE":
            return Delete(sql, target, None)
        case "UPDATE":
            return Update(sql, target, (), None)
        case "MERGE":
            return Merge(sql, target, (), None, (), ())
        case "OPTIMIZE":
            return Optimize(sql, target, None)
        case "SELECT":
            return Read(sql, ())


@pytest.fixture
def make():
    """make(schedule, init=[…], name=SQL, …): a litmus test over table t, partitioned by part."""

    def build(
        schedule, init=(), *, partitioned=True, rows_per_file=None, properties=(), **transactions
    ):
        partitions = ("part",) if partitioned else ()
        table = Schema("t", COLUMNS, partitions, dict(properties), rows_per_file)
        return Litmus(
            name="built",
            title="Built by a test",
            source="",
            tables={"t": table},
            init=tuple(statement(sql, "t") for sql in init),
            transactions={name: statement(sql, "t") for name, sql in transactions.items()},
            schedule=Schedule.parse(schedule, transactions),
            format="delta",
        )

    return build
