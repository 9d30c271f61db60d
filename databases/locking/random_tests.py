"""Random litmus tests of sessions: two or three transactions on a table of three rows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.toml_text import quoted, toml_list
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import protocol, protocols

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.model.litmus import Litmus

KEYS = (5, 15, 25, 35)
"""Keys to which rows move: before, between and after the initial ones."""
ROWS = ((1, 10), (2, 20), (3, 30))
NAMES = "abc"
CONDITIONS = {
    "by_id": ("id = 1", "id = 2", "id = 3", "id >= 2"),
    "by_k": ("k > 0", "k >= 20", "k > 20", "k = 20", "k < 30"),
    "heap": ("", "v > 0", "v = 2"),
}
"""Conditions of a statement, by the index that it then uses."""


def session_tests(transactions: int = 3) -> SearchStrategy[Litmus]:
    """Return a strategy for litmus tests of format locking.

    There are from two to `transactions` transactions of one or two statements each. Some stop at a
    row, and some roll back. The protocols of real databases can execute the tests.
    """
    return _tests(transactions).filter(is_executable)


@st.composite
def _tests(draw: DrawFn, transactions: int) -> Litmus:
    """Draw a litmus test with 2 to ``transactions`` transactions and their schedule."""
    names = NAMES[: draw(st.integers(2, transactions))]
    down = draw(st.booleans())
    texts: list[str] = []
    steps: list[list[str]] = []
    for number, name in enumerate(names):
        made = [draw(_statements(number, k)) for k in range(draw(st.integers(1, 2)))]
        sql = toml_list(quoted(text) for text, _ in made)
        scan = toml_list(quoted(index) for _, index in made if index)
        texts.append(f"{name} = {{ sql = {sql}, scan = {scan} }}")
        steps.append(draw(_steps(name, made)))
    order = draw(
        st.permutations(
            list(chain.from_iterable([name] * len(s) for name, s in zip(names, steps, strict=True)))
        )
    )
    queues = {name: iter(own) for name, own in zip(names, steps, strict=True)}
    schedule = " ".join(next(queues[name]) for name in order)
    rows = ", ".join(f"({id_}, {k}, {v})" for (id_, k), v in zip(ROWS, (1, 2, 3), strict=True))
    text = f"""
title = "Drawn at random"
format = "locking"
schedule = {quoted(schedule)}
[table]
columns = "id INT, k INT, v INT"
index = {{ by_id = "unique id", by_k = "k{" desc" if down else ""}" }}
init = ["INSERT INTO t VALUES {rows}"]
[transactions]
{chr(10).join(texts)}
"""
    return cast("Litmus", read_litmus(text, "drawn"))


@st.composite
def _statements(draw: DrawFn, number: int, k: int) -> tuple[str, str]:
    """Draw a statement and the index that it uses; the index is empty if it scans nothing."""
    kind = draw(st.sampled_from(("select", "count", "update", "delete", "insert")))
    if kind == "insert":
        return f"INSERT INTO t VALUES ({10 * number + k + 4}, {draw(st.sampled_from(KEYS))}, 0)", ""
    index = draw(st.sampled_from(tuple(CONDITIONS)))
    about = draw(st.sampled_from(CONDITIONS[index]))
    where = f" WHERE {about}" if about else ""
    match kind:
        case "select":
            return f"SELECT id, k, v FROM t{where}", index
        case "count":
            return f"SELECT COUNT(*), SUM(v) FROM t{where}", index
        case "delete":
            return f"DELETE FROM t{where}", index
    column = draw(st.sampled_from(("k", "v")))
    value = draw(st.sampled_from((*map(str, KEYS), f"{column} + 15")))
    return f"UPDATE t SET {column} = {value}{where}", index


@st.composite
def _steps(draw: DrawFn, name: str, made: list[tuple[str, str]]) -> list[str]:
    """Draw the steps of a transaction: stops at rows, ends of statements, its end."""
    steps: list[str] = []
    for k, (_, index) in enumerate(made, 1):
        if index and k == 1 and draw(st.booleans()):
            steps.append(f"{name}.scan[{draw(st.integers(1, 2))}]")
        steps.append(f"{name}[{k}]")
    if draw(st.integers(0, 5)) == 0:
        return [*steps[: draw(st.integers(1, len(steps)))], f"{name}.rollback"]
    return [*steps, f"{name}.commit"]


def is_executable(test: Litmus) -> bool:
    """Return whether every database protocol can execute the schedule.

    A protocol cannot if the schedule has a step at a row that the scan does not return.
    """
    for name in protocols("locking"):
        if not name.startswith("locking-"):
            try:
                execute(test, protocol(name))
            except UndeterminedError:
                continue
            except LitmusError:
                return False
    return True
