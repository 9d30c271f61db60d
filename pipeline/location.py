"""Where tables of results are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from isolitmus.specs.disk.input_files import real_path

__all__ = ["Location"]

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/")
NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}")


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of this machine, an address that Spark reads (``s3a://…``, ``hdfs://…``), or names of a catalog.

    >>> Location("s3a://bucket/data").inside("counts").sql, Location("main.results").inside("counts").sql
    ('delta.`s3a://bucket/data/counts`', '`main`.`results`.`counts`')
    """

    text: str
    """As the user has it. Names with a dot between them are a catalog's, unless there is such a folder."""

    @classmethod
    def of(cls, out: Location | Path | str) -> Location:
        """The place that a user names."""
        return out if isinstance(out, Location) else cls(str(out))

    @property
    def path(self) -> Path | None:
        """The folder, if it is one of this machine."""
        return None if ADDRESS.match(self.text) or self._named else Path(self.text)

    @property
    def address(self) -> str | None:
        """What Spark reads it by; None: it has a name in a catalog."""
        if self._named:
            return None
        return self.text if self.path is None else str(real_path(self.path))

    @property
    def sql(self) -> str:
        """What SQL calls it."""
        if self.address is None:
            return ".".join(f"`{name}`" for name in self.text.split("."))
        return f"delta.`{self.address.replace('`', '``')}`"

    def inside(self, name: str) -> Location:
        """What has this name in it."""
        return Location(f"{self.text.rstrip('/')}{'.' if self._named else '/'}{name}")

    def __str__(self) -> str:
        return self.text

    @property
    def _named(self) -> bool:
        return NAMES.fullmatch(self.text) is not None and not Path(self.text).exists()
