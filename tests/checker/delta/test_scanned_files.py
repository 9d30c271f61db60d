"""A statement's effect depends on the files that its scans leave, and on nothing else."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given

from isolitmus.checker import strategies
from isolitmus.checker.delta.commit import apply_commit
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.read_set import scanned_tables
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.model.execution import Event
from isolitmus.specs import scope
from isolitmus.specs.files.catalogue import scopes


def restricted(database, schemas, found):
    """The database without the files that no scan leaves."""
    return {
        name: replace(
            state,
            files=tuple(
                file
                for file in state.files
                if any(
                    filters.files(schemas[name], [file])
                    for scanned, filters in found
                    if scanned == name
                )
            ),
        )
        for name, state in database.items()
    }


def shown(done):
    """All of an effect that can be compared."""
    reads = [replace(read, matches=None) for read in done.reads]
    return replace(done, reads=tuple(reads), error=None), str(done.error)


def is_local(statement, database, schemas):
    """Whether the law says something here; it holds if it does."""
    found = scanned_tables(statement, schemas)
    if found is None:
        return False
    less = restricted(database, schemas, found)
    one, other = (statement_effect(statement, on, "T", schemas) for on in (database, less))
    assert shown(one) == shown(other), (statement.sql, database)
    return less != database


@pytest.mark.slow
@given(strategies.litmus_tests())
def test_of_statements_on_the_tables_that_others_leave(litmus):
    database = initial_database(DELTA, litmus.tables, litmus.init)
    for name, statement in litmus.transactions.items():
        is_local(statement, database, litmus.tables)
        done = statement_effect(statement, database, name, litmus.tables)
        if done.error is None:
            database = apply_commit(database, Event(name, done, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", scopes(DELTA.log))
def test_of_the_statements_of_scopes(name):
    """And of most of them it says something."""
    inside = scope(name)
    told = asked = 0
    for init in inside.inits:
        start = initial_database(DELTA, inside.tables, init)
        for pair in permutations(inside.statements, 2):
            database = start
            for k, statements in enumerate(pair):
                done = statement_effect(statements[k], database, f"T{k + 1}", inside.tables)
                if done.error is not None:
                    break
                database = apply_commit(database, Event(f"T{k + 1}", done, 0))
            for statements in inside.statements:
                told += is_local(statements[2 % len(statements)], database, inside.tables)
                asked += 1
    assert told > min(30, asked // 10)
