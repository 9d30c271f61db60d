"""Evidence files: of a matrix, of random tests, of an audit.

Evidence of a matrix: what an engine was seen to do, as grids of letters in a TOML file.

A row is a statement that is parked, a column the winner, in the order of the matrix; a blank has
not been asked. A file is of one text of the matrix and of one engine's version: another one begins
anew.

Evidence of random tests: which batches an engine has carried out as predicted, in a TOML file.

Evidence of an audit: what it knows of a log up to some commit, to go on from there.

Two lines of JSON: whose file it is, with a digest of the other line; and what the audit knows. It
is of one release: what another one looks for in a log may be something else.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import text_digest
from isolitmus.model.errors import Ended, LitmusError, LogError
from isolitmus.model.exploration import RandomBatch
from isolitmus.model.matrix import LETTERS, OTHER, MatrixPlace, outcome_letter
from isolitmus.specs.disk.input_files import RECORDING, TEXT, read_if_there, read_json
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.toml_reader import Source, show_value

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from isolitmus.model.matrix import Matrix, MatrixCase
    from isolitmus.specs.files.toml_reader import Node

__all__ = [
    "ExplorationEvidence",
    "MatrixEvidence",
    "edited_evidence",
    "read_audit_file",
    "write_audit_file",
]

OF_PLACE = ("a", "winner", "layout")
CaseKey = tuple[str, MatrixPlace]
"""A protocol and a place."""


class MatrixEvidence:
    """What has been seen of a matrix: ``letters`` by protocol and place, ``differences`` where the
    engine did not do what the model says. ``engine_version`` None: nobody has been asked yet.
    """

    def __init__(self, matrix: Matrix, engine_version: str | None = None) -> None:
        self.matrix, self.engine_version = matrix, engine_version
        self.letters: dict[CaseKey, str] = {}
        self.differences: dict[CaseKey, tuple[str, ...]] = {}

    @classmethod
    def read(cls, path: Path, matrix: Matrix, protocols: list[str]) -> MatrixEvidence:
        """The evidence in a file, none if there is no file; LitmusError if it is not of this
        matrix, or no such thing.
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
            key = entry.get("protocol", str), MatrixPlace(*names)
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
                    f"{grid}.{a} is {show_value(row)}; expected {len(names)} letters, of"
                    f" {''.join(sorted(letters))!r}",
                    f"{grid}.{a}",
                )
            for winner, seen in zip(names, row, strict=True):
                if seen != " ":
                    self.letters[protocol, MatrixPlace(a, winner, layout)] = seen

    def add(self, cell: MatrixCase) -> None:
        """Take up what was seen in a case."""
        key = cell.protocol, cell.place
        self.letters[key] = outcome_letter(cell.observed)
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
                        self.letters.get((protocol, MatrixPlace(a, winner, layout)), " ")
                        for winner in self.matrix.statements
                    )
                    lines.append(f'{a:<{width}} = "{row}"')
        for (protocol, place), said in self.differences.items():
            lines += ["", "[[differences]]", f"protocol = {json.dumps(protocol)}"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in place._asdict().items()]
            lines.append(f"said = {json.dumps(list(said), ensure_ascii=False)}")
        write_whole(path, "\n".join(lines) + "\n")


NUMBERS = ("seed", "count", "unsaid", "several")


class ExplorationEvidence:
    """The batches that were carried out, on one engine's version (None: nobody has been asked
    yet).
    """

    def __init__(self, engine_version: str | None = None) -> None:
        self.engine_version = engine_version
        self._batches: dict[tuple[str, int, int], RandomBatch] = {}

    @classmethod
    def read(cls, path: Path, kinds: Collection[str]) -> ExplorationEvidence:
        """What a file tells of these kinds of tests, nothing if there is none; LitmusError if it is
        no such file, or has others.
        """
        text = read_if_there(path, LitmusError)
        if text is None:
            return cls()
        document = Source(path.name, text).node()
        document.keys(("engine", "batches"))
        found = cls(document.get("engine", str))
        document.get("batches", list, most=TEXT)
        for entry in document.entries("batches", ("tests", "drawn", *NUMBERS)):
            kind = entry.get("tests", str)
            if kind not in kinds:
                entry.refuse(f"{entry}.tests is {show_value(kind)}; expected {' or '.join(kinds)}")
            seed, count, unsaid, several = (entry.get(key, int) for key in NUMBERS)
            drawn = entry.get("drawn", str)
            found.add(RandomBatch(kind, seed, count, unsaid, several, drawn))
        return found

    def __contains__(self, batch: RandomBatch) -> bool:
        """Whether the same tests have been carried out."""
        known = self._batches.get(batch.key)
        return known is not None and known.drawn == batch.drawn

    def add(self, batch: RandomBatch) -> None:
        """Take up a batch that was carried out."""
        self._batches[batch.key] = batch

    def of(self, batch: RandomBatch) -> RandomBatch:
        """The batch as it was carried out."""
        return self._batches[batch.key]

    def runs(self, kind: str) -> int:
        """How many tests of a kind were carried out, all as predicted."""
        return sum(b.count - (b.unsaid or 0) for b in self._batches.values() if b.kind == kind)

    def write(self, path: Path) -> None:
        """Write the file, as a whole."""
        lines = [f"engine = {json.dumps(self.engine_version)}", "batches = ["]
        for batch in sorted(self._batches.values(), key=lambda b: b.key):
            entries = (f"{key} = {json.dumps(value)}" for key, value in batch.to_json().items())
            lines.append(f"  {{ {', '.join(entries)} }},")
        write_whole(path, "\n".join([*lines, "]"]) + "\n")


WHAT = "evidence of an audit"


def read_audit_file(path: Path) -> dict[str, Any] | None:
    """What an audit has left in a file, None if there is none; LogError if it is no such file,
    another release's, or not as it was written.
    """
    text = read_if_there(path, LogError, RECORDING)
    if text is None:
        return None
    head, _, body = text.partition("\n")
    try:
        first = read_json(head)
        what, release, digest = first["isolitmus"], first["release"], first["digest"]
    except (ValueError, TypeError, KeyError):
        what = release = digest = None
    if what != WHAT:
        raise LogError(f"{path}: not an {WHAT}; name a file that is not there yet")
    if release != version("isolitmus"):
        raise LogError(
            f"{path}: it is of isolitmus {release}, and this is {version('isolitmus')}; name a file"
            " that is not there yet"
        )
    if digest != text_digest(body):
        raise edited_evidence(path)
    said: dict[str, Any] = json.loads(body)
    return said


def edited_evidence(path: Path) -> LogError:
    """That a file is not what an audit wrote.

    >>> from pathlib import Path
    >>> edited_evidence(Path("seen.json"))
    LogError('seen.json: it was cut off or edited since an audit wrote it; without it the audit begins anew')
    """
    return LogError(
        f"{path}: it was cut off or edited since an audit wrote it; without it the audit begins"
        " anew"
    )


def write_audit_file(path: Path, said: dict[str, Any]) -> None:
    """Write what an audit knows, as a whole; Ended if that is more than is read again."""
    body = json.dumps(said, separators=(",", ":")) + "\n"
    if len(body) > RECORDING:
        raise Ended(
            f"cannot write {path}: the table has so many files that {WHAT} is larger than"
            f" {RECORDING:,} bytes"
        )
    head = {"isolitmus": WHAT, "release": version("isolitmus"), "digest": text_digest(body)}
    write_whole(path, json.dumps(head) + "\n" + body)
