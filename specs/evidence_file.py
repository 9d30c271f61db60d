"""Evidence of a matrix: what an engine was seen to do, as grids of letters in a TOML file.

A row is a statement that is parked, a column the winner, in the order of the matrix; a blank has not been
asked. A file is of one text of the matrix and of one engine's version: another one begins anew.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.matrix import LETTERS, Place, letter
from isolitmus.specs.files import read_text, write_whole
from isolitmus.specs.toml_file import FileReader, read_toml

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.matrix import Cell, Matrix

__all__ = ["Evidence"]

Key = tuple[str, Place]
"""A protocol and a place."""


class Evidence:
    """What has been seen of a matrix: ``letters`` by protocol and place, ``differences`` where the engine
    did not do what the model says. ``engine_version`` None: nobody has been asked yet.
    """

    def __init__(self, matrix: Matrix, engine_version: str | None = None) -> None:
        self.matrix, self.engine_version = matrix, engine_version
        self.letters: dict[Key, str] = {}
        self.differences: dict[Key, tuple[str, ...]] = {}

    @classmethod
    def read(cls, path: Path, matrix: Matrix, protocols: list[str]) -> Evidence:
        """The evidence in a file, none if there is no file; LitmusError if it is not of this matrix, or no
        such thing.
        """
        if not path.exists():
            return cls(matrix)
        text = read_text(path, LitmusError)
        reader = FileReader(path.name, text)
        document = read_toml(text, path.name)
        known = ("matrix", "text", "engine", "cases", "unlike", "grids", "differences")
        reader.keys(document, "", known)
        if (reader.get(document, "", "matrix", str), document.get("text")) != (
            matrix.name,
            matrix.digest,
        ):
            reader.refuse(
                f"matrix is {document['matrix']} with another text than {matrix.name} has now; name a file"
                " that is not there yet"
            )
        found = cls(matrix, reader.get(document, "", "engine", str))
        for protocol, layouts in reader.get(document, "", "grids", dict).items():
            if protocol not in protocols:
                reader.refuse(f"grids.{protocol} is of no protocol", f"grids.{protocol}")
            for layout, grid in layouts.items():
                found._take(reader, protocol, layout, grid)
        for entry in reader.get(document, "", "differences", list, []):
            place = Place(entry["a"], entry["winner"], entry["layout"])
            found.differences[entry["protocol"], place] = tuple(entry["said"])
        return found

    def _take(self, reader: FileReader, protocol: str, layout: str, grid: object) -> None:
        where = f"grids.{protocol}.{layout}"
        names = list(self.matrix.statements)
        if layout not in self.matrix.layouts or not isinstance(grid, dict) or list(grid) != names:
            reader.refuse(f"{where} has not the layouts and rows of {self.matrix.name}", where)
        letters = {*LETTERS.values(), "e", " "}
        for a, row in grid.items():
            if not isinstance(row, str) or len(row) != len(names) or not letters.issuperset(row):
                reader.refuse(
                    f"{where}.{a} is {reader.shown(row)}; {len(names)} letters are wanted, of"
                    f" {''.join(sorted(letters))!r}",
                    f"{where}.{a}",
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
