"""Evidence of a matrix: what an engine was seen to do, as grids of letters in a TOML file.

A row is a statement that is parked, a column the winner, in the order of the matrix; a blank has not been
asked. A file is of one text of the matrix and of one engine's version: another one begins anew.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.matrix import LETTERS, OTHER, Place, letter
from isolitmus.specs.disk.input_files import read_if_there
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.toml_reader import Source, shown

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.matrix import Cell, Matrix
    from isolitmus.specs.files.toml_reader import Node

__all__ = ["Evidence"]

OF_PLACE = ("a", "winner", "layout")
CaseKey = tuple[str, Place]
"""A protocol and a place."""


class Evidence:
    """What has been seen of a matrix: ``letters`` by protocol and place, ``differences`` where the engine
    did not do what the model says. ``engine_version`` None: nobody has been asked yet.
    """

    def __init__(self, matrix: Matrix, engine_version: str | None = None) -> None:
        self.matrix, self.engine_version = matrix, engine_version
        self.letters: dict[CaseKey, str] = {}
        self.differences: dict[CaseKey, tuple[str, ...]] = {}

    @classmethod
    def read(cls, path: Path, matrix: Matrix, protocols: list[str]) -> Evidence:
        """The evidence in a file, none if there is no file; LitmusError if it is not of this matrix, or no
        such thing.
        """
        text = read_if_there(path, LitmusError)
        if text is None:
            return cls(matrix)
        document = Source(path.name, text).node()
        known = ("matrix", "text", "engine", "cases", "unlike", "grids", "differences")
        document.keys(known)
        named = document.get("matrix", str)
        if (named, document.value.get("text")) != (matrix.name, matrix.digest):
            document.refuse(
                f"matrix is {named} with another text than {matrix.name} has now; name a file"
                " that is not there yet"
            )
        found = cls(matrix, document.get("engine", str))
        grids = document.inner("grids")
        for protocol in grids.value:
            if protocol not in protocols:
                grids.refuse(f"grids.{protocol} is of no protocol", f"grids.{protocol}")
            for layout, grid in grids.inner(protocol).items():
                found._take(protocol, layout, grid)
        for entry in document.entries("differences", ("protocol", "said", *OF_PLACE)):
            names = (entry.get(key, str) for key in OF_PLACE)
            key = entry.get("protocol", str), Place(*names)
            if key not in found.letters:
                entry.refuse(f"{entry} is of a case that the grids do not have", "differences")
            found.differences[key] = entry.strings("said")
        return found

    def _take(self, protocol: str, layout: str, grid: Node) -> None:
        names, rows = list(self.matrix.statements), grid.value
        if layout not in self.matrix.layouts or not isinstance(rows, dict) or list(rows) != names:
            grid.refuse(f"{grid} has not the layouts and rows of {self.matrix.name}", grid.path)
        letters = {*LETTERS.values(), OTHER, "e", " "}
        for a, row in rows.items():
            if not isinstance(row, str) or len(row) != len(names) or not letters.issuperset(row):
                grid.refuse(
                    f"{grid}.{a} is {shown(row)}; {len(names)} letters are wanted, of"
                    f" {''.join(sorted(letters))!r}",
                    f"{grid}.{a}",
                )
            for winner, seen in zip(names, row, strict=True):
                if seen != " ":
                    self.letters[protocol, Place(a, winner, layout)] = seen

    def add(self, cell: Cell) -> None:
        """Take up what was seen in a case."""
        key = cell.protocol, cell.place
        self.letters[key] = letter(cell.observed)
        if cell.differences:
            self.differences[key] = cell.differences

    def write(self, path: Path) -> None:
        """Write the file, as a whole."""
        lines = [
            f"matrix = {json.dumps(self.matrix.name)}",
            f'text   = "{self.matrix.digest}"',
            f"engine = {json.dumps(self.engine_version)}",
            f"cases  = {len(self.letters)}",
            f"unlike = {len(self.differences)}",
        ]
        width = max(map(len, self.matrix.statements))
        for protocol in dict.fromkeys(protocol for protocol, _ in self.letters):
            for layout in self.matrix.layouts:
                lines += ["", f'[grids.{protocol}."{layout}"]']
                for a in self.matrix.statements:
                    row = "".join(
                        self.letters.get((protocol, Place(a, winner, layout)), " ")
                        for winner in self.matrix.statements
                    )
                    lines.append(f'{a:<{width}} = "{row}"')
        for (protocol, place), said in self.differences.items():
            lines += ["", "[[differences]]", f"protocol = {json.dumps(protocol)}"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in place._asdict().items()]
            lines.append(f"said = {json.dumps(list(said), ensure_ascii=False)}")
        write_whole(path, "\n".join(lines) + "\n")
