"""``--certificate FOLDER`` of ``separate``: what was refuted, kept while it is searched, and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.checker.certifying import of_proof, of_search
from isolitmus.cli.output import warn
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.writing import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.answer import Separation
    from isolitmus.checker.certifying import Certificate
    from isolitmus.checker.reading.gates import Gates
    from isolitmus.model.spec import Spec

__all__ = ["Certifier"]


@dataclass(slots=True)
class Certifier:
    """What is to be written."""

    folder: Path | None
    """Where; None: nothing is kept."""
    within_search: bool
    """Whether searches are certified, not proofs."""
    files: list[Certificate] = field(default_factory=list)
    """The files so far."""

    def asked(self, a: Spec, b: Spec) -> dict[str, Any]:
        """What a search is told, for it to be certified."""
        if self.folder is None or not self.within_search:
            return {}

        def keep(n: int, gates: Gates) -> None:
            self.files += of_search(a.name, b.name, n, gates)

        return {"refuted": keep}

    def write(self, answers: list[Separation]) -> None:
        """Write what was refuted, and warn if that is nothing."""
        if self.folder is None:
            return
        files = [*self.files, *(one for answer in answers for one in of_proof(answer))]
        if not files:
            warn(f"nothing was refuted, so {self.folder} was not written")
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IsolitmusError(
                f"--certificate {self.folder}: {error.strerror}; a folder is wanted"
            ) from None
        for file in files:
            write_whole(self.folder / file.name, file.text)
