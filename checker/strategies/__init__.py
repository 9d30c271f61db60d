"""Hypothesis strategies for tables, transactions, schedules, litmus tests and abstract histories.

A wrong argument, such as an unknown level, is an error of the test that draws from the strategy.

Statements are drawn as SQL text of the modelled fragment, over one table ``t (id INT, part INT,
x INT)`` or over a table that the caller declares. A failing example of a property test therefore
shrinks to a test that a person can read, save and replay on Spark.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

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
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.schema import Schema
from isolitmus.specs.files.catalogue import spec
from isolitmus.specs.files.workload_sources import as_workload
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
"""Statements on ``t``, few of which suffice to cause most anomalies."""


THREE_ROWS = "CREATE TABLE t (id INT, k INT, v INT)"
BOTH = {"by_id": "id", "by_k": "k"}
AT_ROWS = (
    "SELECT id, k, v FROM t WHERE k > 0",
    "UPDATE t SET k = 30 WHERE id = 1",
    "UPDATE t SET v = v + 10 WHERE id = 1",
    "INSERT INTO t VALUES (2, 1, 0)",
    "DELETE FROM t WHERE id = 1",
)
"""Statements of sessions, few of which suffice to cause most anomalies."""
ROWS_OF_THREE = ("(1, 10, 1)", "(2, 20, 2)", "(3, 30, 3)")


P = ParamSpec("P")
Drawn = TypeVar("Drawn")


def _fails_when_drawn(
    strategy_of: Callable[P, SearchStrategy[Drawn]],
) -> Callable[P, SearchStrategy[Drawn]]:
    """Return the function with its IsolitmusError raised in the test that draws.

    A decorator ``@given(litmus_tests(…))`` is executed when a file is imported. An error there
    would keep every other test of the file from being collected.
    """

    @wraps(strategy_of)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> SearchStrategy[Drawn]:
        try:
            return strategy_of(*args, **kwargs)
        except IsolitmusError as error:
            problem = error

        def fail() -> SearchStrategy[Drawn]:
            raise problem

        return st.deferred(fail)

    return wrapped


@_fails_when_drawn
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


@_fails_when_drawn
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
    """Return a strategy for litmus tests, without expectations, whose transactions are job runs.

    Each run has parameter values that satisfy the workload's conditions, and runs overlap only
    where the workload allows it. A failing example shrinks to the fewest runs and rows, of the jobs
    that come first, and prints as a litmus file.

    With ``level`` and ``forbidden_by``, the runs grow around the counterexamples of ``robust`` if
    it decides the promise, else around the tests that ``separate`` finds.

    Parameters
    ----------
    workload : Workload, str or path
        Workload, or its file or name.
    values : mapping of str to sequence, optional
        Values by parameter name. By default the values that the statements name, the neighbours of
        those in conditions, and a few others.
    rows : mapping of str to SearchStrategy, optional
        Strategy for rows by table name, as VALUES has them: ``(1, 'mon')``. By default rows of the
        same values and of those of the parameters.
    level, forbidden_by : str, path or Spec, optional
        As in ``litmus_tests``.
    least, most : int
        Least and greatest number of runs.

    Raises
    ------
    IsolitmusError
        When a test is drawn: if the workload, the values or the rows are invalid, or if no test
        that meets ``level`` and ``forbidden_by`` is known or exists.

    Examples
    --------
    >>> from hypothesis import find
    >>> tests = jobs("shop", values={"customer": [7]})
    >>> print(find(tests, lambda test: "erase" in test.transactions).transactions["erase"].sql)
    DELETE FROM orders WHERE customer = 7 AND day < DATE '2026-01-02'
    """
    jobs = as_workload(workload)
    if jobs.unread:
        raise LitmusError(f"a statement is not understood: {jobs.unread[0]}")
    own = WorkloadDomain(jobs, values or {}, rows or {})
    runs = own.runs.flatmap(lambda run: st.lists(run, min_size=least, max_size=most))
    asked = _asked(level, forbidden_by)
    if asked is None:
        return st.builds(own.litmus, runs, st.lists(own.rows, max_size=ROWS)).map(note_overlap)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least, most=most)
    return draw_between(asked, own, runs, cores, least=least, most=most)


@_fails_when_drawn
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
    """Return a strategy for litmus tests of format locking, without expectations.

    Transactions may stop at a row of a scan, and may roll back. By default there are three rows and
    two indexes, and transactions of one or two statements. Without a level, every database protocol
    can execute the drawn tests.

    If the result depends on which of two sessions is faster, ``run`` raises SeveralRuns, which
    holds all possible ``runs``.

    Parameters
    ----------
    table : str or Schema, optional
        Table to use, as its CREATE TABLE statement declares it. Each transaction is then one of the
        ``statements``, and its scan uses any of the indexes or none.
    index : mapping of str to str, optional
        Indexes of the table, as a litmus file has them.
    statements : sequence of str or SearchStrategy
        SQL texts, or strategies that draw SQL texts.
    rows, level, forbidden_by : optional
        As in ``litmus_tests``.
    least, most : int
        Least and greatest number of transactions.

    Examples
    --------
    >>> from hypothesis import find
    >>> tests = locking_tests(
    ...     table="CREATE TABLE cases (id INT, day INT)",
    ...     index={"by_day": "day"},
    ...     statements=[
    ...         "UPDATE cases SET day = 30 WHERE id = 1",
    ...         "SELECT count(*) FROM cases WHERE day > 0",
    ...     ],
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
    """Return the constraints on the drawn tests, or None if there are none."""
    if level is None:
        if forbidden_by is not None:
            raise _without_level(forbidden_by)
        return None
    return BetweenLevels(spec(level), None if forbidden_by is None else spec(forbidden_by))


def _without_level(forbidden_by: SpecLike) -> IsolitmusError:
    """Return the error for ``forbidden_by`` without ``level``."""
    return IsolitmusError(
        f"forbidden_by is {str(forbidden_by)[:60]!r} without a level that admits;"
        " level='read-committed' would be one"
    )


def _any_table(*, partitioned: bool, tracked: bool) -> TableDomain:
    """Return the table ``t`` with statements of every kind, those that conflict most first."""
    schema = Schema("t", COLUMNS, ("part",) if partitioned else ())
    kinds = transactions(partitioned=partitioned, tracked=tracked)
    plain = tuple(read_statement(sql, {"t": schema}) for sql in PLAIN)
    others = kinds.map(lambda sql: is_readable(sql, {"t": schema}))
    return TableDomain(schema, st.one_of(st.sampled_from(plain), others), rows_of_t(), plain)


@_fails_when_drawn
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
        raise _without_level(forbidden_by or "")
    if predicates or observed:
        raise IsolitmusError(
            "predicates and observed are drawn without a level; leave them out, or level"
        )
    forbids = None if forbidden_by is None else spec(forbidden_by)
    asked = HistoryConstraints(spec(level), forbids)
    return grown_histories(asked, least=least, most=most, keys=keys)
