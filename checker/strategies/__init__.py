"""Hypothesis strategies for tables, transactions, schedules, litmus tests and abstract histories.

A wrong argument, such as an unknown level, is an error of the test that draws from the strategy.

Statements are drawn as SQL text of the modelled fragment, over one table ``t (id INT, part INT,
x INT)`` or over a table that the caller declares. A failing example of a property test therefore
shrinks to a test that a person can read, save and replay on Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from isolitmus.checker.delta.random_tests import (
    COLUMNS,
    is_readable,
    predicates,
    rows_of_t,
    schedules,
    table_tests,
    tables,
    transactions,
)
from isolitmus.checker.strategies.abstract_histories import (
    HistoryConstraints,
    any_histories,
    grown_histories,
)
from isolitmus.checker.strategies.level_tests import (
    ROWS,
    between_levels,
    draw_between,
    fails_when_drawn,
    note_coverage,
    note_overlap,
    without_level,
)
from isolitmus.checker.strategies.table_strategies import TableDomain
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.schema import Schema
from isolitmus.specs.files.spec_catalogue import spec
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = [
    "COLUMNS",
    "histories",
    "is_readable",
    "litmus_tests",
    "note_coverage",
    "predicates",
    "schedules",
    "tables",
    "transactions",
]

PLAIN = (
    "INSERT INTO t VALUES (4, 0, 1)",
    "DELETE FROM t WHERE part = 0",
    "INSERT INTO t SELECT sum(id), 0, 1 FROM t WHERE part = 0",
    "UPDATE t SET x = id + 1 WHERE part = 0",
    "SELECT id, part, x FROM t",
)
"""Statements on ``t``, few of which suffice to cause most anomalies."""


@fails_when_drawn
def litmus_tests(
    *,
    table: str | Schema | None = None,
    statements: Sequence[str | SearchStrategy[str]] = (),
    rows: SearchStrategy[str] | None = None,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 2,
    most: int = 3,
    partitioned: bool | None = None,
    tracked: bool = False,
    sessions: bool = False,
) -> SearchStrategy[Litmus]:
    """Return a strategy for litmus tests without expectations: table, rows, transactions, schedule.

    By default the table is ``t`` and the statements are of every kind. A failing example shrinks to
    the fewest transactions and rows, and prints as a litmus file.

    With ``level``, the search for the smallest tests (``separate``) comes first; the drawn tests
    grow around these and shrink to them.

    Parameters
    ----------
    table : str or Schema, optional
        Table to use instead of ``t``, as its CREATE TABLE statement declares it. Its statements are
        then drawn from ``statements``.
    statements : sequence of str or SearchStrategy
        SQL texts, or strategies that draw SQL texts, the simplest first.
    rows : SearchStrategy, optional
        Rows as VALUES has them: ``(1, 'mon')``. By default few values and those that the texts
        name.
    level : str, path or Spec, optional
        Protocol or level: only tests that it allows and in which all transactions commit under it.
    forbidden_by : str, path or Spec, optional
        Level: only tests that it forbids. Needs ``level``.
    least, most : int
        Least and greatest number of transactions.
    partitioned : bool, optional
        Whether ``t`` is partitioned by ``part``. None draws either, and with ``level`` means True.
    tracked : bool
        Whether to leave out statements on ``t`` with reads that Delta does not record.
    sessions : bool
        Whether some transactions may share a session.

    Raises
    ------
    IsolitmusError
        When a test is drawn: if no test that meets ``level`` and ``forbidden_by`` is known with at
        most ``most`` transactions, or if an argument is wrong.

    Examples
    --------
    >>> from hypothesis import find
    >>> ddl = "CREATE TABLE seats (n INT, who STRING) USING delta PARTITIONED BY (n)"
    >>> texts = ["DELETE FROM seats WHERE n = 4", "INSERT INTO seats VALUES (4, 'ada')"]
    >>> tests = litmus_tests(table=ddl, statements=texts)
    >>> find(tests, lambda test: True).transactions["t2"]
    DELETE FROM seats WHERE n = 4
    >>> tests = litmus_tests(
    ...     table=ddl,
    ...     statements=texts,
    ...     level="delta-write-serializable",
    ...     forbidden_by="log-serializable",
    ... )
    >>> print(find(tests, lambda test: True).schedule)
    t1.start t2.start t2.commit t1.commit
    """
    asked = between_levels(level, forbidden_by)
    if table is None and asked is None:
        return table_tests(
            least=least, most=most, partitioned=partitioned, tracked=tracked, sessions=sessions
        ).map(note_overlap)
    if table is not None:
        own = TableDomain.of(table, statements, rows)
    else:
        own = _any_table(partitioned=partitioned is not False, tracked=tracked)
    lists = st.lists(own.transactions(sessions=sessions), min_size=least, max_size=most)
    if asked is None:
        inits = st.lists(own.rows, min_size=1, max_size=ROWS)
        return st.builds(own.litmus, lists, inits).map(note_overlap)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least, most=most)
    return draw_between(asked, own, lists, cores, least=least, most=most)


def _any_table(*, partitioned: bool, tracked: bool) -> TableDomain:
    """Return the table ``t`` with statements of every kind, those that conflict most first."""
    schema = Schema("t", COLUMNS, ("part",) if partitioned else ())
    kinds = transactions(partitioned=partitioned, tracked=tracked)
    plain = tuple(read_statement(sql, {"t": schema}) for sql in PLAIN)
    others = kinds.map(lambda sql: is_readable(sql, {"t": schema}))
    return TableDomain(schema, st.one_of(st.sampled_from(plain), others), rows_of_t(), plain)


@fails_when_drawn
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
    """Return a strategy for histories of committed transactions, each with reads, then writes.

    Histories have sessions or not. With ``level`` and ``forbidden_by``, a failing example shrinks
    to the smallest history that the first admits and the second forbids.

    Parameters
    ----------
    level : str, path or Spec, optional
        Only histories that this level admits.
    forbidden_by : str, path or Spec, optional
        Only histories that this level forbids. Needs ``level``.
    least, most : int
        Least and greatest number of transactions.
    keys : str
        Names of the objects, one character each.
    predicates : bool
        Whether some transactions read by predicate; every match bit is then stated. Only without a
        level.
    observed : bool
        Whether in some histories the version order of all or of some objects is observed. Only
        without a level.

    Raises
    ------
    IsolitmusError
        When a history is drawn: if no such history is known, or all known ones are larger.

    Examples
    --------
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
        raise without_level(forbidden_by or "")
    if predicates or observed:
        raise IsolitmusError(
            "predicates and observed are drawn without a level; leave them out, or level"
        )
    forbids = None if forbidden_by is None else spec(forbidden_by)
    asked = HistoryConstraints(spec(level), forbids)
    return grown_histories(asked, least=least, most=most, keys=keys)
