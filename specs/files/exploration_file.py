"""Evidence of random tests: which batches an engine has carried out as predicted, in a TOML file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.exploration import Batch
from isolitmus.specs.disk.input_files import read_if_there
from isolitmus.specs.disk.limits import TEXT
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.toml_reader import Source, shown

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["Exploration"]

NUMBERS = ("seed", "count", "unsaid", "several")


class Exploration:
    """The batches that were carried out, on one engine's version (None: nobody has been asked yet)."""

    def __init__(self, engine_version: str | None = None) -> None:
        self.engine_version = engine_version
        self._batches: dict[tuple[str, int, int], Batch] = {}

    @classmethod
    def read(cls, path: Path, kinds: Collection[str]) -> Exploration:
        """What a file tells of these kinds of tests, nothing if there is none; LitmusError if it is no such
        file, or has others.
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
                entry.refuse(f"{entry}.tests is {shown(kind)}; {' or '.join(kinds)} is wanted")
            seed, count, unsaid, several = (entry.get(key, int) for key in NUMBERS)
            drawn = entry.get("drawn", str)
            found.add(Batch(kind, seed, count, unsaid, several, drawn))
        return found

    def __contains__(self, batch: Batch) -> bool:
        """Whether the same tests have been carried out."""
        known = self._batches.get(batch.key)
        return known is not None and known.drawn == batch.drawn

    def add(self, batch: Batch) -> None:
        """Take up a batch that was carried out."""
        self._batches[batch.key] = batch

    def of(self, batch: Batch) -> Batch:
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
