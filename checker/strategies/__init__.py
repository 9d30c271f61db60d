"""Hypothesis strategies for tables, transactions, schedules, litmus tests and abstract histories.

Statements are drawn as SQL text of the modelled fragment over one table ``t (id INT, part INT, x
INT)``, or over a table of one's own, so that what a property test shrinks to is what a person can
read, save and replay on Spark.
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
from isolitmus.checker.locking.random_tests import is_executable, session_tests
from isolitmus.checker.strategies.abstract_histories import (
    HistoryConstraints,
    any_histories,
    grown_histories,
)
from isolitmus.checker.strategies.level_tests import (
    ROWS,
    BetweenLevels,
    draw_between,
    note_coverage,
    note_overlap,
)
from isolitmus.checker.strategies.session_strategies import SessionDomain
from isolitmus.checker.strategies.table_strategies import TableDomain
from isolitmus.checker.strategies.workload_strategies import WorkloadDomain
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.schema import Schema
from isolitmus.specs.files.catalogue import spec
from isolitmus.specs.files.workload_sources import as_workload
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Value
    from isolitmus.model.workload import Workload
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = [
    "COLUMNS",
    "histories",
    "is_readable",
    "jobs",
    "litmus_tests",
    "locking_tests",
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
"""Statements on ``t`` of which few make most anomalies."""


THREE_ROWS = "CREATE TABLE t (id INT, k INT, v INT)"
BOTH = {"by_id": "id", "by_k": "k"}
AT_ROWS = (
    "SELECT id, k, v FROM t WHERE k > 0",
    "UPDATE t SET k = 30 WHERE id = 1",
    "UPDATE t SET v = v + 10 WHERE id = 1",
    "INSERT INTO t VALUES (2, 1, 0)",
    "DELETE FROM t WHERE id = 1",
)
"""Statements of sessions of which few make most anomalies."""
ROWS_OF_THREE = ("(1, 10, 1)", "(2, 20, 2)", "(3, 30, 3)")


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
    """A litmus test without expectations: a table with rows, transactions, a schedule; with
    ``sessions`` some transactions may share one.

    By default the table is ``t`` and the statements are of every kind. Given a ``table`` of one's
    own, as its CREATE TABLE has it, they are from ``statements``, texts or strategies that draw
    such, the simplest first; its rows are of few values and those that the texts name, or what
    ``rows`` draws: ``(1, 'mon')``. What shrinks has the fewest transactions and rows, and prints as
    a litmus file.

    ``level``, a protocol or a level, its name or file: only tests in which under it all
    transactions commit, and which it allows; with ``forbidden_by`` only those that this one
    forbids. These grow around the smallest that ``separate`` finds, and shrink to it.
    IsolitmusError if no such test is known with at most ``most`` transactions.

    >>> from hypothesis import find
    >>> ddl = "CREATE TABLE seats (n INT, who STRING) USING delta PARTITIONED BY (n)"
    >>> texts = ["DELETE FROM seats WHERE n = 4", "INSERT INTO seats VALUES (4, 'ada')"]
    >>> tests = litmus_tests(table=ddl, statements=texts)
    >>> find(tests, lambda test: True).transactions["t2"]
    DELETE FROM seats WHERE n = 4
    >>> tests = litmus_tests(
    ...     table=ddl, statements=texts, level="delta-write-serializable", forbidden_by="log-serializable"
    ... )
    >>> print(find(tests, lambda test: True).schedule)
    t1.start t2.start t2.commit t1.commit
    """
    asked = _asked(level, forbidden_by)
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


def jobs(
    workload: Workload | NameOrPath,
    *,
    values: Mapping[str, Sequence[Value]] | None = None,
    rows: Mapping[str, SearchStrategy[str]] | None = None,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 2,
    most: int = 3,
) -> SearchStrategy[Litmus]:
    """Runs of the jobs of a workload, or of its file or name, as litmus tests without expectations:
    each with parameters of which holds what the workload knows, overlapping as it allows.

    Parameters have the values that the statements name, what is next to those in conditions, and a
    few others; or, by the name of a parameter, those in ``values``. Rows of tables have the same,
    and what the parameters are; or, by the name of a table, what ``rows`` draws: ``(1, 'mon')``.
    What fails shrinks to the fewest runs and rows, those of the jobs that come first, and prints as
    a litmus file. IsolitmusError for what is wrong with any of that.

    ``level`` and ``forbidden_by`` are those of ``litmus_tests``: the runs grow around the
    counterexamples of ``robust``, where it knows the promise, else around what ``separate`` finds.
    IsolitmusError if none is known, or none exist.

    >>> from hypothesis import find
    >>> tests = jobs("shop", values={"customer": [7]})
    >>> print(find(tests, lambda test: "erase" in test.transactions).transactions["erase"].sql)
    DELETE FROM orders WHERE customer = 7 AND day < DATE '2026-01-02'
    """
    own = WorkloadDomain(as_workload(workload), values or {}, rows or {})
    runs = own.runs.flatmap(lambda run: st.lists(run, min_size=least, max_size=most))
    asked = _asked(level, forbidden_by)
    if asked is None:
        return st.builds(own.litmus, runs, st.lists(own.rows, max_size=ROWS)).map(note_overlap)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least, most=most)
    return draw_between(asked, own, runs, cores, least=least, most=most)


def locking_tests(
    *,
    table: str | Schema | None = None,
    index: Mapping[str, str] | None = None,
    statements: Sequence[str | SearchStrategy[str]] = (),
    rows: SearchStrategy[str] | None = None,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 2,
    most: int = 3,
) -> SearchStrategy[Litmus]:
    """Litmus tests of format locking without expectations: transactions that may stop at a row of a
    scan, and roll back.

    By default there are three rows and two indexes, and transactions of one or two statements.
    Given a ``table`` of one's own, as its CREATE TABLE has it, with its ``index`` as a litmus file
    has that, each transaction is one of the ``statements``, and its scan goes by any of the indexes
    or by none. ``rows``, ``level`` and ``forbidden_by`` are those of ``litmus_tests``; without a
    level, each protocol of a database can carry out what is drawn. Where it makes a difference who
    of two sessions is faster, ``run`` raises SeveralRuns, which has all ``runs`` that are possible.

    >>> from hypothesis import find
    >>> tests = locking_tests(
    ...     table="CREATE TABLE cases (id INT, day INT)",
    ...     index={"by_day": "day"},
    ...     statements=["UPDATE cases SET day = 30 WHERE id = 1", "SELECT count(*) FROM cases WHERE day > 0"],
    ...     level="locking-read-committed",
    ...     forbidden_by="row-once",
    ... )
    >>> [one.sql for one in find(tests, lambda test: True).transactions.values()]
    ['UPDATE cases SET day = 30 WHERE id = 1', 'SELECT count(*) FROM cases WHERE day > 0']
    """
    asked = _asked(level, forbidden_by)
    if table is None and asked is None:
        return session_tests(most).filter(lambda test: len(test.transactions) >= least)
    own = SessionDomain.of(
        THREE_ROWS if table is None else table,
        BOTH if index is None and table is None else index or {},
        statements or (AT_ROWS if table is None else ()),
        st.sampled_from(ROWS_OF_THREE) if rows is None and table is None else rows,
    )
    lists = st.lists(own.sessions(), min_size=least, max_size=most)
    if asked is None:
        inits = st.lists(own.rows, min_size=1, max_size=ROWS, unique=True)
        return st.builds(own.litmus, lists, inits).filter(is_executable)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least)
    return draw_between(asked, own, lists, cores, least=least, most=most)


def _asked(level: SpecLike | None, forbidden_by: SpecLike | None) -> BetweenLevels | None:
    """What is asked of drawn tests; None if nothing is."""
    if level is None:
        if forbidden_by is not None:
            raise _without_level(forbidden_by)
        return None
    return BetweenLevels(spec(level), None if forbidden_by is None else spec(forbidden_by))


def _without_level(forbidden_by: SpecLike) -> IsolitmusError:
    return IsolitmusError(
        f"forbidden_by is {str(forbidden_by)[:60]!r} without a level that admits;"
        " level='read-committed' would be one"
    )


def _any_table(*, partitioned: bool, tracked: bool) -> TableDomain:
    """The table ``t`` with statements of every kind, first those that conflict most."""
    schema = Schema("t", COLUMNS, ("part",) if partitioned else ())
    kinds = transactions(partitioned=partitioned, tracked=tracked)
    plain = tuple(read_statement(sql, {"t": schema}) for sql in PLAIN)
    others = kinds.map(lambda sql: is_readable(sql, {"t": schema}))
    return TableDomain(schema, st.one_of(st.sampled_from(plain), others), rows_of_t(), plain)


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

    ``level``, a level or its name or file: only those that it admits; with ``forbidden_by`` only
    those that this one forbids. What fails then shrinks to the smallest history that one admits and
    the other forbids. Without a level: ``predicates``: some read by predicate, and every match bit
    is stated; ``observed``: in some the order of the versions was observed, of all objects or of
    some. IsolitmusError if no such history is known, or all are larger.

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
        raise _without_level(forbidden_by or "")
    if predicates or observed:
        raise IsolitmusError(
            "predicates and observed are drawn without a level; leave them out, or level"
        )
    forbids = None if forbidden_by is None else spec(forbidden_by)
    asked = HistoryConstraints(spec(level), forbids)
    return grown_histories(asked, least=least, most=most, keys=keys)
