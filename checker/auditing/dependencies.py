"""Adya's dependencies between commits as far as a log shows them: certain, possible, or none.

The rules, each with its premise (besides those of ``checker.auditing.reading``):

- **A write changes what a condition matches** *certainly* if it adds a file with at least one row, all of
  whose rows match, and removes no file that might hold a match (what matches now is new), or the
  other way round; statistics and partition values are premised to be true. It changes it *possibly* if
  any file that it adds or removes may hold a match. Files that say that no data changes count for
  nothing: they move rows.
- **rw, A missed W**: A does not see W, and W changes what A read. Possible, too, if nobody knows what A
  read.
- **wr, X saw I**: X's version has I in it, and I changes what X read. Certain, too, if X is a DELETE,
  UPDATE or MERGE (they remove only files with rows that they change) and removes a file that I added
  when I removed none: those rows are I's.
- **ww, J wrote after I**: J saw I, and both remove or replace rows: possible only.

A commit whose writer makes Delta's check has passed it: what its level forbids it to miss it did not
miss by any read that Delta tracks. That takes possibilities away, never what is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.conditions import live, match
from isolitmus.checker.auditing.reading import checks, reads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.auditing.conditions import FileMatch
    from isolitmus.checker.auditing.reading import Reads
    from isolitmus.model.certainty import Certainty
    from isolitmus.model.delta_log import LogCommit, LogFile, LogMetadata

__all__ = ["AuditedCommit", "missed", "passes", "saw", "touches", "wrote_after"]


@dataclass(frozen=True, slots=True)
class AuditedCommit:
    """A commit with what it read, as the table was: ``metadata`` is the table's at that commit."""

    commit: LogCommit
    metadata: LogMetadata
    reads: Reads

    @classmethod
    def of(cls, commit: LogCommit, metadata: LogMetadata) -> AuditedCommit:
        return cls(commit, metadata, reads(commit, metadata))

    @property
    def version(self) -> int:
        return self.commit.version


def changes(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Whether what a commit wrote changes what another read (None: it does not)."""
    if not writer.changes_rows:
        return None
    match reader.reads.kind:
        case "nothing":
            return None
        case "unknown":
            return "possible"
    adds = [(file, _matches(reader, file)) for file in writer.adds if file.data_change]
    removes = [(file, _matches(reader, file)) for file in writer.removes if file.data_change]
    if not (_any(adds) or _any(removes)):
        return None
    if (_surely(adds) and not _any(removes)) or (_surely(removes) and not _any(adds)):
        return "certain"
    return "possible"


def missed(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Whether a commit missed what an earlier one, which it had not seen, wrote."""
    found = changes(reader, writer)
    if found == "possible" and passes(reader.commit, writer) is False:
        return None
    return found


def passes(reader: LogCommit, writer: LogCommit) -> bool | None:
    """Whether a commit's level lets it pass by what a writer that it had not seen added, whatever it read;
    None if nothing is known of what its writer checks (ConflictChecker.scala lines 1134-1161).
    """
    if not checks(reader):
        return None
    match reader.level:
        case "SnapshotIsolation":
            return True
        case "WriteSerializable":
            return writer.blind is True and reader.metadata is None
        case _:
            return False


def saw(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Whether a commit read what an earlier one, which it had seen, wrote."""
    added = {file.path for file in writer.adds if file.data_change}
    rewrites = (reader.commit.operation or "").upper() in ("DELETE", "UPDATE", "MERGE")
    took = added.intersection(f.path for f in reader.commit.removes if f.data_change)
    if took and rewrites and not writer.removes:
        return "certain"
    found = changes(reader, writer)
    return "possible" if took and found is None else found


def wrote_after(later: LogCommit, earlier: LogCommit) -> bool:
    """Whether a commit may have written the next version of a row that another, which it saw, wrote."""
    return earlier.changes_rows and any(file.data_change for file in later.removes)


def _matches(reader: AuditedCommit, file: LogFile) -> FileMatch:
    if reader.reads.kind == "partitions":
        if file.partition is None:
            return "perhaps"
        return "all" if tuple(sorted(file.partition.items())) in reader.reads.partitions else "none"
    found = [match(one, file, reader.metadata) for one in reader.reads.conditions]
    if "none" in found:
        return "none"
    return "all" if all(one == "all" for one in found) else "perhaps"


def touches(reader: AuditedCommit, files: Iterable[LogFile]) -> bool:
    """Whether any of some files may hold rows that a commit reads."""
    return any(file.data_change and _matches(reader, file) != "none" for file in files)


def _any(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found != "none" for _, found in files)


def _surely(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found == "all" and (live(file) or 0) > 0 for file, found in files)
