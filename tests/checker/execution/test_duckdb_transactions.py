"""A limit may interrupt DuckDB anywhere: the next transaction finds nothing of the last one."""

import pytest

from isolitmus.checker.execution.duckdb_dialect import open_duck, rolled_back


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
