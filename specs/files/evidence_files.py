"""Evidence files: observed outcomes of a matrix, batches of random tests, and state of an audit.

Evidence of a matrix is a TOML file with grids of letters: rows are parked statements, columns are
winners, in the order of the matrix; a blank has not been run. A file belongs to one text of the
matrix and to one version of an engine. Evidence of random tests is a TOML file with the batches
that an engine has run as predicted.

Evidence of an audit is the state after some commit, from which the audit continues. It consists of
two lines of JSON: a header with a digest of the other line, and the state. It belongs to one
release, because another one may look for other things in a log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import text_digest
from isolitmus.model.errors import Ended, LitmusError, LogError
from isolitmus.model.matrix import LETTERS, OTHER, MatrixPlace, outcome_letter
from isolitmus.specs.disk.input_files import RECORDING, TEXT, read_if_there, read_json
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.toml_reader import Source, show_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from isolitmus.model.matrix import Matrix, MatrixCase
    from isolitmus.specs.files.toml_reader import Node

EACH = 100
"""Number of tests that are drawn from one seed."""


@dataclass(frozen=True, slots=True)
class RandomBatch:
    """Batch of random tests of one kind, drawn from one seed."""

    kind: str
    """Name of the kind of tests (``Format.random``)."""
    seed: int
    """Seed of the random numbers."""
    count: int
    """Number of tests."""
    unsaid: int | None = None
    """Number of tests for which the model predicts nothing; the others ran as predicted. None: not
    run.
    """
    several: int = 0
    """Number of tests with several predicted runs, one of which the engine's was."""
    drawn: str = ""
    """Digest of the tests: a seed gives other tests when their generator changes."""

    @property
    def key(self) -> tuple[str, int, int]:
        """Kind, seed and count, which identify the batch."""
        return self.kind, self.seed, self.count

    def to_json(self) -> dict[str, Any]:
        """Return the batch as a JSON object (docs/interface.md, 6)."""
        return {
            "tests": self.kind,
            "seed": self.seed,
            "count": self.count,
            "drawn": self.drawn,
            "unsaid": self.unsaid,
            "several": self.several,
        }


def split_batches(kind: str, seed: int, count: int) -> Iterator[RandomBatch]:
    """Yield batches of `count` tests of a kind, with consecutive seeds from `seed` on.

    Examples
    --------
    >>> [batch.key for batch in split_batches("raw", 7, 130)]
    [('raw', 7, 100), ('raw', 8, 30)]
    """
    while count > 0:
        yield RandomBatch(kind, seed, min(EACH, count))
        seed, count = seed + 1, count - EACH


OF_PLACE = ("a", "winner", "layout")
CaseKey = tuple[str, MatrixPlace]
"""Protocol and place of a case."""


class MatrixEvidence:
    """Observed outcomes of a matrix.

    ``letters`` has the outcome by protocol and place, ``differences`` the cases in which the engine
    differed from the model. ``engine_version`` is None if no engine has run a case yet.
    """

    def __init__(self, matrix: Matrix, engine_version: str | None = None) -> None:
        self.matrix, self.engine_version = matrix, engine_version
        self.letters: dict[CaseKey, str] = {}
        self.differences: dict[CaseKey, tuple[str, ...]] = {}

    @classmethod
    def read(cls, path: Path, matrix: Matrix, protocols: list[str]) -> MatrixEvidence:
        """Return the evidence in a file; empty if there is no file.

        Raises
        ------
        LitmusError
            If the file is not evidence of this matrix.
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
        """Store the observed letters of one protocol and layout; refuse rows of another shape."""
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
        """Record the observed outcome of a case."""
        key = cell.protocol, cell.place
        self.letters[key] = outcome_letter(cell.observed)
        if cell.differences:
            self.differences[key] = cell.differences

    def write(self, path: Path) -> None:
        """Write the file atomically."""
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
    """Batches of random tests that were run, on one version of an engine (None: not run yet)."""

    def __init__(self, engine_version: str | None = None) -> None:
        self.engine_version = engine_version
        self._batches: dict[tuple[str, int, int], RandomBatch] = {}

    @classmethod
    def read(cls, path: Path, kinds: Collection[str]) -> ExplorationEvidence:
        """Return the evidence in a file about these kinds of tests; empty if there is no file.

        Raises
        ------
        LitmusError
            If the file is not such evidence, or has other kinds of tests.
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
        """Return whether the same tests have been run."""
        known = self._batches.get(batch.key)
        return known is not None and known.drawn == batch.drawn

    def add(self, batch: RandomBatch) -> None:
        """Record a batch that was run."""
        self._batches[batch.key] = batch

    def of(self, batch: RandomBatch) -> RandomBatch:
        """Return the recorded batch with the same kind, seed and count."""
        return self._batches[batch.key]

    def runs(self, kind: str) -> int:
        """Return the number of tests of a kind that ran as predicted."""
        return sum(b.count - (b.unsaid or 0) for b in self._batches.values() if b.kind == kind)

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        lines = [f"engine = {json.dumps(self.engine_version)}", "batches = ["]
        for batch in sorted(self._batches.values(), key=lambda b: b.key):
            entries = (f"{key} = {json.dumps(value)}" for key, value in batch.to_json().items())
            lines.append(f"  {{ {', '.join(entries)} }},")
        write_whole(path, "\n".join([*lines, "]"]) + "\n")


WHAT = "evidence of an audit"


def read_audit_file(path: Path) -> dict[str, Any] | None:
    """Return the state of an audit in a file, or None if there is no file.

    Raises
    ------
    LogError
        If the file is not such evidence, belongs to another release, or was changed.
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
    """Return the error for a file that differs from what an audit wrote.

    Examples
    --------
    >>> from pathlib import Path
    >>> print(edited_evidence(Path("seen.json")))
    seen.json: it was cut off or edited since an audit wrote it; without it the audit begins anew
    """
    return LogError(
        f"{path}: it was cut off or edited since an audit wrote it; without it the audit begins"
        " anew"
    )


def write_audit_file(path: Path, said: dict[str, Any]) -> None:
    """Write the state of an audit atomically; Ended if it exceeds the size limit of reading."""
    body = json.dumps(said, separators=(",", ":")) + "\n"
    if len(body) > RECORDING:
        raise Ended(
            f"cannot write {path}: the table has so many files that {WHAT} is larger than"
            f" {RECORDING:,} bytes"
        )
    head = {"isolitmus": WHAT, "release": version("isolitmus"), "digest": text_digest(body)}
    write_whole(path, json.dumps(head) + "\n" + body)
