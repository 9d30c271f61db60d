"""Reader of matrix files (TOML): tables, layouts of one table, and statement templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import LitmusError
from isolitmus.model.matrix import Matrix, MatrixPlace
from isolitmus.specs.files.table_litmus import build_litmus
from isolitmus.specs.files.toml_reader import Node, Source, show_value
from isolitmus.specs.files.transaction_file import read_format

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.litmus import Litmus

OF_LAYOUT = ("winner", "partitioned_by", "clustered_by", "properties", "rows_per_file")
PARTITIONS = (0, 1)
NEW = (100, 200)
"""Ids of new rows: that of a, and that of the winner."""


def read_matrix(text: str, name: str, path: Path | None = None) -> Matrix:
    """Return the matrix in a text; LitmusError describes a problem."""
    label = path.name if path is not None else f"{name}.toml"
    document = Source(label, text).node()
    document.keys(("title", "source", "format", "tables", "layouts", "statements"))
    made = Matrix(
        name,
        document.get("title", str),
        document.get("source", str, ""),
        document.get("tables", dict),
        document.get("layouts", dict),
        document.get("statements", dict),
        text,
        format=read_format(document).name,
    )
    if not isinstance(made.tables.get("t"), dict):
        document.refuse("[tables] has no table t, which the layouts are of")
    for key in ("layouts", "statements"):
        if not document.value[key]:
            document.refuse(f"[{key}] is empty")
    for layout in document.inner("layouts").nodes():
        winner = layout.table().get("winner")
        layout.keys(OF_LAYOUT)
        layout.strings("partitioned_by")
        if type(winner) is not int or winner not in PARTITIONS:
            layout.refuse(
                f"{layout}.winner is {show_value(winner)}; expected the partition of the"
                " winner, 0 or 1"
            )
    for statement in made.statements:
        problems = []
        for named in made.layouts:
            try:
                matrix_litmus(made, MatrixPlace(statement, statement, named))
                break
            except LitmusError as error:
                problems.append(error)
        else:
            place = document.source.place(f"statements.{statement}")
            raise LitmusError(f"{place}: {problems[0]}") from None
    return made


def matrix_litmus(matrix: Matrix, place: MatrixPlace) -> Litmus:
    """Return the litmus test of a case; LitmusError if the case is not modelled.

    Examples
    --------
    >>> from isolitmus.specs.files.catalogue import matrix
    >>> place = MatrixPlace("delete-partition", "insert", "same partition")
    >>> test = matrix_litmus(matrix("pairs"), place)
    >>> print(test.schedule)
    a.start winner a.commit
    >>> print(*(statement.sql for statement in test.transactions.values()), sep=" / ")
    DELETE FROM t WHERE part = 0 / INSERT INTO t VALUES (200, 0, 0)
    """
    layout = matrix.layouts[place.layout]
    about = dict(zip(("a", "winner"), (0, layout["winner"]), strict=True))
    of_table = {key: value for key, value in layout.items() if key != "winner"}
    by = ", ".join(layout.get("partitioned_by", ()))
    sequence = matrix.statements[place.a]
    count = len(sequence) if isinstance(sequence, list) else 0
    steps = "".join(f"a[{k}] " for k in range(1, count + 1))
    document = {
        "title": f"{place.winner} commits during {place.a}, {place.layout}",
        "source": matrix.source,
        "format": matrix.format,
        "schedule": f"a.start {steps}winner a.commit",
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
    return build_litmus(Node(document, "", Source(label)), "-".join(place).replace(" ", "-"))


def _filled(value: Any, places: dict[str, str]) -> Any:
    """Return a transaction with its placeholders replaced."""
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
