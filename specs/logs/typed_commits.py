"""Commits of a Delta log decoded by type: fast, for commits that are as writers make them.

A field that is read has the type that Delta writes; every other field is skipped. Where a commit
has anything else, nothing is returned, and ``specs.logs.actions`` reads it, which knows all that is
allowed and says what is wrong.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from isolitmus.model.delta.log import LogCommit, LogFile
from isolitmus.specs.disk.input_files import DEEPEST

LONG = 4300
"""Most digits of a number that Python reads."""
DIGITS = re.compile(rb"\d{%d}" % (LONG + 1))


class _Vector(Struct, gc=False, rename="camel"):
    storage_type: str | None = None
    path_or_inline_dv: str | None = None
    offset: int | None = None
    cardinality: int | None = None


class _File(Struct, gc=False, rename="camel"):
    path: str
    partition_values: dict[str, str | None] | None = None
    data_change: bool | None = None
    stats: str | None = None
    deletion_vector: _Vector | None = None


class _Info(Struct, gc=False, rename="camel"):
    """Fields of ``specs.logs.actions.KNOWN``, in that order."""

    read_version: int | None = None
    is_blind_append: bool | None = None
    isolation_level: str | None = None
    operation: str | None = None
    operation_parameters: dict[str, Any] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    timestamp: int | None = None


class _Application(Struct, gc=False, rename="camel"):
    app_id: str | None = None


class _Domain(Struct, gc=False, rename="camel"):
    domain: str | None = None


class _Skipped(Struct, gc=False, rename="camel"):
    """An action of which only the presence counts."""


class _Action(Struct, gc=False, rename="camel", forbid_unknown_fields=True):
    """Line of a commit: one of these."""

    add: _File | UnsetType = UNSET
    remove: _File | UnsetType = UNSET
    commit_info: _Info | UnsetType = UNSET
    cdc: _Skipped | UnsetType = UNSET
    txn: _Application | UnsetType = UNSET
    domain_metadata: _Domain | UnsetType = UNSET


INFO = tuple(zip(_Info.__struct_encode_fields__, _Info.__struct_fields__, strict=True))
"""Fields of ``commitInfo``, with the names of the attributes."""
DECODER = msgspec.json.Decoder(_Action)


def decode_commit(version: int, data: bytes) -> LogCommit | None:
    r"""Return the commit in a file with this content; None if it is not as expected.

    Examples
    --------
    >>> commit = decode_commit(3, b'{"add":{"path":"f","size":1}}\n{"remove":{"path":"g"}}\n')
    >>> commit.adds[0].path, commit.removes[0].path
    ('f', 'g')
    >>> decode_commit(3, b'{"add":{"path":5}}\n') is None
    True
    """
    if not _has_one_object_a_line(data) or not _is_as_python_reads(data):
        return None
    try:
        actions = DECODER.decode_lines(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if len(actions) != data.count(b"\n") + (data[-1] != 10):
        return None  # two objects on one line
    return _commit(version, actions, data.split(b"\n"))


def _has_one_object_a_line(data: bytes) -> bool:
    """Return whether each line begins and ends with a brace, without blanks around it."""
    lines = data.count(b"\n") + (data[-1:] != b"\n")
    return data[:1] == b"{" and data.endswith((b"}", b"}\n")) and data.count(b"}\n{") == lines - 1


def _is_as_python_reads(data: bytes) -> bool:
    """Return whether what is skipped is UTF-8, not too deep, and without too long a number."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    if len(data) <= LONG and data.count(b"[") + data.count(b"{") <= DEEPEST:
        return True  # true of nearly every commit
    return not any(
        line.count(b"[") + line.count(b"{") > DEEPEST or (len(line) > LONG and DIGITS.search(line))
        for line in data.split(b"\n")
    )


def _commit(version: int, actions: list[_Action], lines: list[bytes]) -> LogCommit | None:
    """Return the commit with these actions; None if one is more than one action, or none."""
    info: dict[str, Any] = {}
    adds: list[LogFile | None] = []
    removes: list[LogFile | None] = []
    applications, domains, changes = [], [], 0
    for action, line in zip(actions, lines, strict=False):
        several = 0
        if (add := action.add) is not UNSET:
            several += 1
            adds.append(_file(add, line))
        if (remove := action.remove) is not UNSET:
            several += 1
            removes.append(_file(remove, line))
        if (said := action.commit_info) is not UNSET:
            several += 1
            values = ((field, getattr(said, name)) for field, name in INFO)
            info = {field: value for field, value in values if value is not None}
        if action.cdc is not UNSET:
            several += 1
            changes += 1
        if (application := action.txn) is not UNSET:
            several += 1
            applications.append(str(application.app_id))
        if (domain := action.domain_metadata) is not UNSET:
            several += 1
            domains.append(str(domain.domain))
        if several != 1:
            return None
    added, removed = (tuple(one for one in some if one is not None) for some in (adds, removes))
    if len(added) + len(removed) < len(adds) + len(removes):
        return None
    named = tuple(applications), tuple(domains)
    return LogCommit(version, info, added, removed, changes, None, None, *named)


def _file(action: _File, line: bytes) -> LogFile | None:
    """Return the file of an action; None if its path is not as expected."""
    path, vector = action.path, action.deletion_vector
    if not path or path.startswith("file:"):
        return None
    identity, marked = "", 0
    if vector is not None:
        identity = f"{vector.storage_type}{vector.path_or_inline_dv}"
        identity += "" if vector.offset is None else f"@{vector.offset}"
        marked = vector.cardinality or 0
    return LogFile(
        path, identity, marked, action.partition_values, action.data_change is not False,
        action.stats, line,
    )  # fmt: skip
