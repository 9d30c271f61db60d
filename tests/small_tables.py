"""Brute force over `run`: how a statement ends that another one overtakes, on all small tables.

The second opinion on `predict`: no solver and no formula, only the model that executes. Tables have
up to three rows of small values, in every way in which rows of a partition may share files;
parameters have small values, too.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.statements import read_statement


def partitions(items):
    """All ways to put items into groups: the set partitions."""
    if not items:
        yield []
        return
    first, *others = items
    for groups in partitions(others):
        yield [[first], *groups]
        for k in range(len(groups)):
            yield [*groups[:k], [first, *groups[k]], *groups[k + 1 :]]


def fillings(table, rows, most):
    """Texts of INSERT statements that fill a table with up to so many of these rows, in all layouts
    of files.
    """
    for many in range(most + 1):
        for some in combinations(rows, many):
            for files in partitions(list(some)):
                yield tuple(
                    f"INSERT INTO {table} VALUES "
                    + ", ".join(
                        f"({', '.join(map(literal, row))})" for row in sorted(file, key=repr)
                    )
                    for file in files
                )


class BruteForce:
    """The ends of one pair of a workload's statements under a protocol.

    Parameters
    ----------
    work : Workload
    pools : mapping of str to sequence of rows
        The rows of which each table may have some.
    values : mapping of str to sequence
        The values of each type that parameters have.
    most : mapping of str to int
        How many rows a table has at most.
    """

    def __init__(self, work, pools, values, most):
        self.work = work
        self.values = values
        self.read = cache(lambda sql: read_statement(sql, work.tables, opaque=True))
        each = [list(fillings(name, pools[name], most[name])) for name in work.tables]
        self.tables = [
            tuple(self.read(sql) for filling in some for sql in filling) for some in product(*each)
        ]

    def ends(self, loser, winner, under):
        """For each exception how retries end: commits, finds nothing to do, fails."""
        found = {}
        names = "first", "second"
        shared = self.work.shared
        kinds = [{**one.types} for one in (loser, winner)]
        axes = [(p, t, None) for p, t in shared.items() if any(p in kind for kind in kinds)]
        axes += [
            (p, t, k) for k, kind in enumerate(kinds) for p, t in kind.items() if p not in shared
        ]
        for chosen in product(*(self.values[t] for _, t, _ in axes)):
            given = [
                {
                    p: v
                    for (p, _, k), v in zip(axes, chosen, strict=True)
                    if k in (None, side) and p in kinds[side]
                }
                for side in (0, 1)
            ]
            if not all(
                self._allowed(one, some) for one, some in zip((loser, winner), given, strict=True)
            ):
                continue
            if any(
                given[0].get(p) == given[1].get(p)
                for p in self.work.distinct
                if p in given[0] and p in given[1]
            ):
                continue
            transactions = {
                name: bind_job_statement(one, some, self.work.tables, self.read)[0]
                for name, one, some in zip(names, (loser, winner), given, strict=True)
            }
            for inits in self.tables:
                test = Litmus(
                    "small", "", "", self.work.tables, inits, transactions,
                    Schedule.parse("first.start second first.commit", transactions),
                    format=self.work.format,
                )  # fmt: skip
                exception = self._end(test, under)[0]
                if exception is None:
                    continue
                if len(found.get(exception, ())) > 1:
                    continue
                again = Litmus(
                    "small", "", "", self.work.tables, inits, transactions,
                    Schedule.parse("second first", transactions),
                    format=self.work.format,
                )  # fmt: skip
                found.setdefault(exception, {}).setdefault(self._end(again, under)[1], test)
        return found

    def _allowed(self, one, values):
        job = self.work.jobs[one.job]
        from isolitmus.model.sql.conditions import holds

        return job.where is None or holds(job.where, (tuple(values[p] for p in job.parameters),))

    def _end(self, test, under):
        """The exception that the first one ends with, if the second one commits, and what it does
        otherwise.
        """
        try:
            events = {event.name: event for event in execute(test, under).events}
        except IsolitmusError:
            return None, "fails"
        first, second = events.get("first"), events.get("second")
        if first is None or second is None or second.aborted:
            return None, "fails"
        if first.conflict is not None:
            return first.conflict, "fails"
        if first.effect.error is not None:
            return None, "fails"
        wrote = first.version is not None and not first.effect.footprint.empty
        return None, "commits" if wrote else "finds nothing to do"
