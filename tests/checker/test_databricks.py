"""Databricks' matrices of conflicts, cell by cell, edition by edition; and what the editions are worth."""

from itertools import product

import pytest

from isolitmus.checker import separate
from isolitmus.checker.running.execute import execute, observe
from isolitmus.specs import protocol, scope, spec
from isolitmus.specs.cat import read
from isolitmus.specs.litmus_file import read_litmus

TABLE = """
title = "A pair of statements"
schedule = "loser.start winner loser.commit"
[table]
columns = "id INT, x INT"
partitioned_by = {partitions}
properties = {{ "delta.enableDeletionVectors" = "{vectors}" }}
init = ["INSERT INTO t VALUES (1, 10), (2, 10)", "INSERT INTO t VALUES (3, 10)"]
[transactions]
loser = "{loser}"
winner = "{winner}"
"""
INSERT = "INSERT INTO t VALUES (9, 10)"
ONE, OTHER = "DELETE FROM t WHERE id = 1", "UPDATE t SET id = 8 WHERE id = 2"
SAME = "DELETE FROM t WHERE x = 10"
OPTIMIZE, ORDERED = "OPTIMIZE t", "OPTIMIZE t ZORDER BY (id)"
LEVELS, EDITIONS = ("serializable", "write-serializable"), ("oldest", "middle", "newest")
EVERY = list(product(LEVELS, EDITIONS, (False, True)))


def outcome(name, loser, winner, *, vectors, partitioned=False):
    partitions = '["x"]' if partitioned else "[]"
    text = TABLE.format(
        loser=loser, winner=winner, vectors=str(vectors).lower(), partitions=partitions
    )
    test = read_litmus(text, "pair")
    done = observe(test, execute(test, protocol(name)), name).transactions
    assert done["winner"].outcome == "committed"
    return done["loser"].outcome


def cell(level, edition, rows, loser, winner, **table):
    """What becomes of the loser: committed, a conflict, or unknown."""
    suffix = "-rows" if rows else ""
    found = outcome(f"databricks-{level}-{edition}{suffix}", loser, winner, **table)
    return "conflict" if found.endswith("Exception") else found


@pytest.mark.slow
@pytest.mark.parametrize(("level", "edition", "rows"), EVERY)
def test_what_is_inserted(level, edition, rows):
    """D7, D8, D9, D11, D14, D15, D17: an INSERT beside an INSERT, a DELETE, an OPTIMIZE."""
    for vectors in (False, True):
        asked = {"vectors": vectors}
        assert cell(level, edition, rows, INSERT, INSERT, **asked) == "committed"
        assert cell(level, edition, rows, INSERT, SAME, **asked) == "committed"
        assert cell(level, edition, rows, INSERT, OPTIMIZE, **asked) == "committed"
        assert cell(level, edition, rows, OPTIMIZE, INSERT, **asked) == "committed"
        beside = "conflict" if level == "serializable" else "committed"
        assert cell(level, edition, rows, SAME, INSERT, **asked) == beside
        by_row = rows and vectors
        other = "committed" if by_row else beside
        assert cell(level, edition, rows, ONE, INSERT, **asked) == other


@pytest.mark.slow
@pytest.mark.parametrize(("level", "edition", "rows"), EVERY)
def test_what_is_changed(level, edition, rows):
    """D10, D16, D20, D26: changes of the same row, and of different rows in one file."""
    for vectors, partitioned in product((False, True), repeat=2):
        asked = {"vectors": vectors, "partitioned": partitioned}
        assert cell(level, edition, rows, ONE, SAME, **asked) == "conflict"
        by_row = rows and vectors and not partitioned
        other = "committed" if by_row else "conflict"
        assert cell(level, edition, rows, ONE, OTHER, **asked) == other
        assert cell(level, edition, rows, OTHER, ONE, **asked) == other


@pytest.mark.slow
@pytest.mark.parametrize(("level", "rows"), list(product(LEVELS, (False, True))))
def test_what_is_compacted(level, rows):
    """D12, D13, D18, D19, D22, D28: OPTIMIZE beside a change, and beside itself."""
    for edition, vectors in product(("oldest", "newest"), (False, True)):
        asked = {"vectors": vectors, "partitioned": True}
        plain = "committed" if vectors else "conflict"
        # without row-level concurrency the oldest edition does not speak of ZORDER
        spared = vectors and edition == "oldest" and not rows
        ordered = "committed" if spared else "conflict"
        for loser, winner in ((SAME, OPTIMIZE), (OPTIMIZE, SAME), (OPTIMIZE, OPTIMIZE)):
            assert cell(level, edition, rows, loser, winner, **asked) == plain
        for loser, winner in ((SAME, ORDERED), (ORDERED, SAME), (ORDERED, ORDERED)):
            assert cell(level, edition, rows, loser, winner, **asked) == ordered


@pytest.mark.parametrize(("level", "rows"), list(product(LEVELS, (False, True))))
def test_what_an_edition_has_lost_stays_unknown(level, rows):
    for loser, winner in ((SAME, OPTIMIZE), (OPTIMIZE, SAME), (OPTIMIZE, OPTIMIZE)):
        assert cell(level, "middle", rows, loser, winner, vectors=True) == "unknown"


# What the editions are worth


def found(a, b, **asked):
    return separate(spec(a), spec(b), scope("rows"), **asked)


@pytest.mark.slow
def test_row_by_row_admits_what_goes_by_file_does_not():
    rows, files = (f"databricks-write-serializable-newest{s}" for s in ("-rows", ""))
    answer = found(rows, files)
    assert answer.transactions == 2
    assert {type(s).__name__ for s in answer.litmus.transactions.values()} == {"Delete"}
    assert found(rows, "delta-write-serializable").transactions == 2


@pytest.mark.slow
def test_the_warning_of_the_newer_editions_closes_the_hole_of_the_oldest():
    """Row by row, blind appends bridge as in open-source Delta; what D35 warns of is what is needed."""
    level = "write-serializable"
    hole = found(f"databricks-{level}-oldest-rows", level, unexplained=True)
    assert hole.transactions == 3
    assert not hole.serial.orders
    for edition in ("newest", "newest-rows", "middle-rows"):
        answer = found(f"databricks-{level}-{edition}", level)
        assert (answer.found, answer.bound[:20]) == (False, "up to 3 transactions")
    for edition in ("oldest-rows", "newest-rows"):
        assert found(f"databricks-serializable-{edition}", "log-serializable").found is False


def test_read_literally_modifying_the_same_row_promises_nothing():
    literal = read(
        '"Both wrote it" empty [~Blind] ; (unseen & ww) as ConcurrentModificationException',
        "literal",
    )
    answer = separate(literal, spec("write-serializable"), scope("rows"))
    assert answer.transactions == 2
    assert {edge.kind for edge in answer.violation.cycle} == {"rw"}
