"""Read matrix files (TOML): tables, layouts of one of them, and statements with places to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import LitmusError
from isolitmus.model.matrix import Matrix, Place
from isolitmus.specs.litmus_file import LitmusReader
from isolitmus.specs.toml_file import read_toml

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.litmus import Litmus

__all__ = ["case", "read_matrix"]

OF_LAYOUT = ("winner", "partitioned_by", "clustered_by", "properties", "rows_per_file")
PARTITIONS = (0, 1)
NEW = (100, 200)
"""The ids that nobody else has: those of a, of the winner."""


def read_matrix(text: str, name: str, path: Path | None = None) -> Matrix:
    """The matrix that a file holds; LitmusError says what is wrong with it."""
    label = path.name if path is not None else f"{name}.toml"
    document = read_toml(text, label)
    reader = LitmusReader(label, text)
    reader.keys(document, "", ("title", "source", "tables", "layouts", "statements"))
    made = Matrix(
        name,
        reader.get(document, "", "title", str),
        reader.get(document, "", "source", str, ""),
        reader.get(document, "", "tables", dict),
        reader.get(document, "", "layouts", dict),
        reader.get(document, "", "statements", dict),
        text,
    )
    if not isinstance(made.tables.get("t"), dict):
        reader.refuse("[tables] has no table t, which the layouts are of")
    for key in ("layouts", "statements"):
        if not document[key]:
            reader.refuse(f"[{key}] is empty")
    for layout, table in made.layouts.items():
        where = f"layouts.{layout}"
        if not isinstance(table, dict):
            reader.refuse(f"{where} is {reader.shown(table)}; a table is wanted")
        reader.keys(table, where, OF_LAYOUT)
        if table.get("winner") not in PARTITIONS:
            reader.refuse(
                f"{where}.winner is {reader.shown(table.get('winner'))}; the partition that the winner"
                " is about is wanted, 0 or 1"
            )
    for statement in made.statements:
        problems = []
        for layout in made.layouts:
            try:
                case(made, Place(statement, statement, layout))
                break
            except LitmusError as error:
                problems.append(error)
        else:
            raise problems[0]
    return made


def case(matrix: Matrix, place: Place) -> Litmus:
    """The litmus test at a place; LitmusError if these two, in this layout, are not modelled.

    >>> from isolitmus.specs.catalogue import matrix
    >>> test = case(matrix("pairs"), Place("delete-partition", "insert", "same partition"))
    >>> print(test.schedule, *(statement.sql for statement in test.transactions.values()), sep=" / ")
    a.start winner a.commit / DELETE FROM t WHERE part = 0 / INSERT INTO t VALUES (200, 0, 0)
    """
    layout = matrix.layouts[place.layout]
    about = dict(zip(("a", "winner"), (0, layout["winner"]), strict=True))
    of_table = {key: value for key, value in layout.items() if key != "winner"}
    by = ", ".join(layout.get("partitioned_by", ()))
    document = {
        "title": f"{place.winner} overtakes {place.a}, {place.layout}",
        "source": matrix.source,
        "schedule": "a.start winner a.commit",
        "tables": {**matrix.tables, "t": {**matrix.tables["t"], **of_table}},
        "transactions": {
            name: _filled(
                matrix.statements[statement],
                {
                    "p": str(about[name]),
                    "one": str(10 * about[name] + 1),
                    "two": str(10 * about[name] + 2),
                    "new": str(new),
                    "partitioned": f" PARTITIONED BY ({by})" if by else "",
                },
            )
            for (name, statement), new in zip(
                (("a", place.a), ("winner", place.winner)), NEW, strict=True
            )
        },
    }
    label = f"{matrix.name}, {place.a} beside {place.winner}, {place.layout}"
    return LitmusReader(label, "").litmus(document, "-".join(place).replace(" ", "-"), "", None)


def _filled(value: Any, places: dict[str, str]) -> Any:
    """A transaction with its places filled in."""
    match value:
        case str():
            for name, text in places.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case dict():
            return {key: _filled(inner, places) for key, inner in value.items()}
        case list():
            return [_filled(inner, places) for inner in value]
    return value
