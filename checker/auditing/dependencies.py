"""Adya's dependencies between commits as far as a log shows them: certain, possible, or none.

The rules, each with its premise (besides those of ``checker.auditing.read_set``):

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

from isolitmus.checker.auditing.conditions import live, match, on_partitions
from isolitmus.checker.auditing.read_set import checks, reads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.auditing.conditions import FileMatch
    from isolitmus.checker.auditing.read_set import Reads
    from isolitmus.model.certainty import Certainty
    from isolitmus.model.delta.log import LogCommit, LogFile, LogMetadata

__all__ = ["AuditedCommit", "added_to", "missed", "passes", "removed_from", "saw", "wrote_after"]


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


def added_to(reader: AuditedCommit, files: Iterable[LogFile]) -> Certainty | None:
    """Whether files that were added meet what a commit reads, as Delta compares it: by partitions, whatever rows are in
    them and whether or not they change data (ConflictChecker.scala lines 1000-1102).
    """
    found = [_meets(reader, file) for file in files]
    return "certain" if "all" in found else "possible" if "perhaps" in found else None


def removed_from(reader: AuditedCommit, files: Iterable[LogFile]) -> Certainty | None:
    """Whether files that were removed may be among those that a commit reads."""
    found = [_matches(reader, file) for file in files]
    sure = "all" in found and reader.reads.kind != "unknown"
    return "certain" if sure else "possible" if {"all", "perhaps"} & {*found} else None


def _meets(reader: AuditedCommit, file: LogFile) -> FileMatch:
    if not reader.metadata.partitioned_by:
        return "all"
    if reader.reads.kind != "rows":
        return "perhaps" if reader.reads.kind == "unknown" else _matches(reader, file)
    found: list[FileMatch] = []
    for one in reader.reads.conditions:
        parts = on_partitions(one, reader.metadata)
        found += ["perhaps"] if parts is None else [match(p, file, reader.metadata) for p in parts]
    return "none" if "none" in found else "perhaps" if "perhaps" in found else "all"


def _any(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found != "none" for _, found in files)


def _surely(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found == "all" and (live(file) or 0) > 0 for file, found in files)
