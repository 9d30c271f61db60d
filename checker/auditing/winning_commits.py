"""Winning commits in a log: the exceptions that each can have caused, and the conflicting files.

The log does not contain the aborted commit. It contains the winning commit: the conflict checks
(docs/delta.md, 2.3) say which transactions conflict with it, and whether it fits a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.read_set import describe_commit
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.model.delta.conflict import PastedException
    from isolitmus.model.delta.log import LogCommit, LogFile
    from isolitmus.specs.logs.delta_log import DeltaLog

FARTHEST = 10_000
"""Maximum number of commits, the newest, that are searched for the one in a message."""
FOLDERS = 4
"""Maximum number of partitions that are named."""
RESOLVED = "delta.rowTracking"
"""Metadata domain that two commits may both set.

Source: ConflictChecker.scala, checkIfDomainMetadataConflict.
"""


@dataclass(frozen=True, slots=True)
class WinningCommit(ReadableRepr):
    """Commit with the exceptions that it can have caused.

    ``stops`` maps each exception to the transactions that get it, in words.
    """

    commit: LogCommit
    stops: Mapping[str, str]

    def __repr__(self) -> str:
        return "\n".join([self.commit.words, *(f"  {k}: {v}" for k, v in self.stops.items())])


def partition_folder(file: LogFile) -> str | None:
    """Return the partition of a file as a message names it; None if it has none.

    >>> from isolitmus.model.delta.log import LogFile
    >>> partition_folder(LogFile("f", partition={"day": "3", "part": None}))
    'day=3, part=null'
    """
    values = file.partition or {}
    return ", ".join(f"{k}={'null' if v is None else v}" for k, v in values.items()) or None


def winning_commit(commit: LogCommit) -> WinningCommit:
    """Return a commit with the transactions that conflict with it, by exception.

    >>> from isolitmus.model.delta.log import LogCommit, LogFile
    >>> info = {"operation": "WRITE", "isBlindAppend": True}
    >>> stops = winning_commit(LogCommit(2, info, (LogFile("f"),))).stops
    >>> for name, whom in stops.items(): print(name, "-", whom)  # doctest: +NORMALIZE_WHITESPACE
    ConcurrentAppendException - at Serializable, any that read the table; at WriteSerializable,
    only any that writes metadata too
    ConcurrentWriteException - a concurrent RESTORE, CLONE or CONVERT TO DELTA
    """
    return WinningCommit(commit, {name: whom for name in CONFLICTS if (whom := WHOM[name](commit))})


def winning_commits_after(log: DeltaLog, after: int) -> Iterator[WinningCommit]:
    """Return the commits after a version, in log order.

    Raises
    ------
    LogError
        If the log does not have the version.
    """
    _within(log, after, log.oldest - 1)
    return (winning_commit(log.commit(version)) for version in range(after + 1, log.last + 1))


def winning_commit_at(log: DeltaLog, version: int) -> WinningCommit:
    """Return the commit of a version.

    Raises
    ------
    LogError
        If the log does not have the version.
    """
    _within(log, version, log.oldest)
    return winning_commit(log.commit(version))


def find_winning_commit(
    log: DeltaLog, pasted: PastedException, version: int | None = None, after: int | None = None
) -> WinningCommit:
    """Return the commit that a message describes.

    Parameters
    ----------
    log : DeltaLog
        Log of the table.
    pasted : PastedException
        The message.
    version : int, optional
        Version of the commit, if the message does not contain it.
    after : int, optional
        Version that the aborted job had read.

    Raises
    ------
    LogError
        If no commit fits, or if nothing identifies it.
    """
    named = pasted.version if version is None else version
    if named is not None:
        return _fitting(log, pasted, winning_commit_at(log, named))
    if after is not None:
        found = (
            one for one in winning_commits_after(log, after) if not _unlike(pasted, one.commit)
        )
        first = next(found, None)
        if first is None:
            raise LogError(
                f"{log.table}: no commit after version {after} can have caused {pasted.name}"
                f"{_at(pasted)}; pass the version that your job had read"
            )
        return first
    key = next((key for key in ("txnId", "timestamp") if key in pasted.commit), None)
    if key is None:
        raise LogError(
            f"{log.table}: the message does not identify the winning commit; pass its version with"
            " --version, or the version that your job had read with --failed-after"
        )
    value, oldest = pasted.commit[key], max(log.oldest, log.last - FARTHEST)
    versions = range(log.last, oldest - 1, -1)
    same = [commit for commit in map(log.commit, versions) if commit.info.get(key) == value]
    if not same:
        raise LogError(
            f"{log.table}: no commit from version {oldest} to {log.last} has the {key} {value!r} of"
            " the message; is the message about another table?"
        )
    return _fitting(
        log,
        pasted,
        winning_commit(next((one for one in same if not _unlike(pasted, one)), same[0])),
    )


def meeting_files(pasted: PastedException, commit: LogCommit) -> tuple[LogFile, ...]:
    """Return the files of a commit that may conflict with the aborted transaction.

    If the message names a partition, only its files are returned.
    """
    adds = pasted.name == "ConcurrentAppendException"
    removes = pasted.name in ("ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException")
    files = commit.adds if adds else commit.removes if removes else ()
    if pasted.file is not None:
        return tuple(f for f in files if f.path.endswith(pasted.file))
    if pasted.partition is None:
        return files
    return tuple(f for f in files if _same_partition(partition_folder(f), pasted.partition))


def _same_partition(here: str | None, named: str) -> bool:
    """Return whether a partition is the one that a message names, in any order of columns."""
    return set((here or "").split(", ")) == set(named.replace("%20", " ").split(", "))


def _fitting(log: DeltaLog, pasted: PastedException, found: WinningCommit) -> WinningCommit:
    """Return the winning commit; raise LogError if it does not fit the pasted exception."""
    unlike = _unlike(pasted, found.commit)
    if unlike:
        raise LogError(f"{log.table}: {unlike}; is it another version or another table?")
    return found


def _unlike(pasted: PastedException, commit: LogCommit) -> str:
    """Return why a commit cannot be the one that a message describes; empty if it can be."""
    if pasted.name in CONFLICTS and pasted.name not in winning_commit(commit).stops:
        return f"{commit.words} cannot have caused {pasted.name}"
    one, other = pasted.operation, commit.operation
    if one and other and one != "TRANSACTION" and one.upper() != other.upper():
        return f"{describe_commit(commit)} is not a {one}, which the message names"
    if (pasted.partition or pasted.file) is not None and not meeting_files(pasted, commit):
        what = _at(pasted) if pasted.file is None else f" {pasted.file}"
        return f"{commit.words} has no file{what}, which the message names"
    return ""


def _at(pasted: PastedException) -> str:
    return "" if pasted.partition is None else f" in partition {pasted.partition}"


def _within(log: DeltaLog, version: int, first: int) -> None:
    """Raise LogError unless a version is between ``first`` and the log's last version."""
    if not first <= version <= log.last:
        raise LogError(
            f"{log.table}: there is no version {version} in the log; it has {log.oldest} to"
            f" {log.last}"
        )


# Transactions that conflict with a commit, by exception: each function returns an empty text if
# there are none.


def _readers(files: tuple[LogFile, ...], did: str) -> str:
    """Return the transactions that read the partitions of these files, as text."""
    found = list(dict.fromkeys(partition_folder(file) for file in files))
    if None in found:
        return f"any that read {did}the table"
    named = "; ".join(str(one) for one in found[:FOLDERS])
    more = f" and {len(found) - FOLDERS:,} more" if len(found) > FOLDERS else ""
    return f"any that read {did}partition{'s' if len(found) > 1 else ''} {named}{more}"


def _append(commit: LogCommit) -> str:
    """Return the transactions that conflict with a commit by its added files; empty if none."""
    if not commit.adds:
        return ""
    readers = _readers(commit.adds, "")
    if commit.blind:
        return (
            f"at Serializable, {readers}; at WriteSerializable, only any that writes metadata too"
        )
    return f"{readers}, except a compaction"


def _delete_read(commit: LogCommit) -> str:
    if not commit.removes:
        return ""
    return f"{_readers(commit.removes, 'one of its removed files in ')} (at every level)"


def _delete_delete(commit: LogCommit) -> str:
    return "any that removes one of the same files without having read it" * bool(commit.removes)


def _application(commit: LogCommit) -> str:
    """Return the transactions that conflict by application id or metadata domain; empty if none."""
    domains = [name for name in commit.domains if name != RESOLVED]
    said = (
        ("another run of ", commit.applications, ""),
        ("any that sets the metadata domain ", domains, " too"),
    )
    return "; ".join(
        f"{before}{', '.join(names[:FOLDERS])}{after}" for before, names, after in said if names
    )


def _metadata(commit: LogCommit) -> str:
    if commit.metadata is None:
        return ""
    return "any that began before it, unless it can adopt the change (docs/delta.md, 2.4)"


def _protocol(commit: LogCommit) -> str:
    """Return the transactions that conflict with a commit by its protocol action; empty if none."""
    if commit.protocol is None:
        return ""
    if commit.version == 0:
        return "any that creates the table too"
    return "any that writes a protocol too, or that knew a dropped feature"


WHOM: Mapping[str, Callable[[LogCommit], str]] = {
    "ConcurrentAppendException": _append,
    "ConcurrentDeleteReadException": _delete_read,
    "ConcurrentDeleteDeleteException": _delete_delete,
    "ConcurrentTransactionException": _application,
    "ConcurrentWriteException": lambda _: "a concurrent RESTORE, CLONE or CONVERT TO DELTA",
    "MetadataChangedException": _metadata,
    "ProtocolChangedException": _protocol,
}
"""Function that describes the transactions that conflict with a commit, by exception."""
