"""A limit may interrupt DuckDB anywhere: the next transaction finds nothing of the last one."""

import os
from contextlib import suppress

import duckdb
import pytest

from isolitmus.checker.execution import duckdb_executor, postconditions
from isolitmus.checker.execution.duckdb_dialect import open_duck, rolled_back
from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.specs.files.catalogue import litmus


def test_a_transaction_that_was_left_open_is_rolled_back():
    duck = open_duck()
    duck.execute("CREATE TABLE t (id INT)")
    duck.execute("BEGIN TRANSACTION")  # interrupted between this and the block
    duck.execute("INSERT INTO t VALUES (1)")
    with rolled_back(duck):
        assert duck.execute("SELECT count(*) FROM t").fetchone() == (0,)
        duck.execute("INSERT INTO t VALUES (2)")
    assert duck.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_block_that_fails_leaves_nothing_open():
    duck = open_duck()
    with pytest.raises(KeyboardInterrupt), rolled_back(duck):
        raise KeyboardInterrupt
    with rolled_back(duck):
        assert duck.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT error('x')"])
def test_the_tables_of_an_executor_are_not_made_in_a_transaction_that_was_left_open(sql):
    """They stay for its next order."""
    connection = duckdb_executor._duck()._connection
    executor = DuckExecutor(litmus("check-then-insert"))
    order = tuple(executor._litmus.transactions)
    expected = executor.after(order)
    again = DuckExecutor(litmus("check-then-insert"))
    connection.execute("BEGIN TRANSACTION")
    with suppress(duckdb.Error):
        connection.execute(sql)
    assert again.after(order) == expected is not None
    assert again.after(order[:1]) is not None


def test_a_value_is_computed_after_a_transaction_that_was_aborted():
    connection = postconditions._duck(os.getpid())
    connection.execute("BEGIN TRANSACTION")
    with suppress(duckdb.Error):
        connection.execute("SELECT error('x')")
    assert postconditions.value_in_duckdb("1 + 1") == 2
