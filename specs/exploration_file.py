"""Evidence of random tests: which batches an engine has carried out as predicted, in a TOML file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.exploration import KINDS, Batch
from isolitmus.specs.files import read_text, write_whole
from isolitmus.specs.toml_file import FileReader, read_toml

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Exploration"]

KEYS = ("tests", "seed", "count", "unsaid")


class Exploration:
    """The batches that were carried out, on one engine's version (None: nobody has been asked yet)."""

    def __init__(self, engine_version: str | None = None) -> None:
        self.engine_version = engine_version
        self._batches: dict[tuple[str, int, int], Batch] = {}

    @classmethod
    def read(cls, path: Path) -> Exploration:
        """What a file tells, nothing if there is none; LitmusError if it is no such file."""
        if not path.exists():
            return cls()
        text = read_text(path, LitmusError)
        reader = FileReader(path.name, text)
        document = read_toml(text, path.name)
        reader.keys(document, "", ("engine", "batches"))
        found = cls(reader.get(document, "", "engine", str))
        for k, entry in enumerate(reader.get(document, "", "batches", list), 1):
            where = f"batches[{k}]"
            if not isinstance(entry, dict):
                reader.refuse(f"{where} is {reader.shown(entry)}; a table is wanted")
            reader.keys(entry, where, KEYS)
            kind = reader.get(entry, where, "tests", str)
            if kind not in KINDS:
                reader.refuse(
                    f"{where}.tests is {reader.shown(kind)}; {' or '.join(KINDS)} is wanted"
                )
            seed, count, unsaid = (reader.get(entry, where, key, int) for key in KEYS[1:])
            found.add(Batch(kind, seed, count, unsaid))
        return found

    def __contains__(self, batch: Batch) -> bool:
        """Whether the same tests have been carried out."""
        return batch.key in self._batches

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
