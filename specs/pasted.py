r"""Read the text of an exception as somebody pastes it: of Delta, of Databricks or of delta-rs, with what is around it.

The text may be a log, a notebook's output or JSON with the message in it; lines may be broken anywhere. What the
message says of the other commit (``Conflicting commit: {…}``) is almost JSON: Delta writes the texts among the
operation's parameters without quotes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from isolitmus.model.conflict_exception import PastedException
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.exceptions_file import exception_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.conflict_exception import Wording

__all__ = ["NoConflict", "conflict_in", "read_pasted"]

SHARED = ("DeltaConcurrentModificationException", "ConcurrentModificationException")
"""The classes that all conflicts share."""
ERROR_CLASS = re.compile(r"\bDELTA_[A-Z_]+\b")
SOME_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Exception|Error)\b")
NEWER = re.compile(
    r"concurrent (?P<operation>.{1,80}?) (?:added data to|deleted data from) table (?P<table>.{1,300}?)"
    r" \(?committed at version (?P<version>\d{1,18})"
)
"""Delta 4.1 and later."""
ALTERED = re.compile(
    r"metadata of the Delta table (?!has been)(?P<table>.{1,300}?) has been changed"
)
PARTITIONS = (
    re.compile(
        r"(?:modified|deleted) data in the partition (?P<partition>.{1,300}?) that (?:should|was)"
    ),
    re.compile(r"Files were added to partition (?P<partition>.{1,300}?) by a concurrent update"),
)
ROOT = "Files were added to the root of the table"
EMPTY = "multiple writers are writing to an empty directory"
FILE = re.compile(r"\(for example (?P<file>.{1,500}?)\) by a concurrent update")
FOLDER = re.compile(r"(?:^|/)([^/=]+=[^/]*)(?=/)")
COMMIT = re.compile(r"Conflicting commit: ?(?=\{)")
ENDS: Mapping[str, str] = {"{": "}", "[": "]"}
SCALAR = re.compile(r"(?:null|true|false|-?\d{1,18}(?:\.\d{1,18})?)(?=[,}\]])")
KNOWN_VALUES: Mapping[str, Any] = {"null": None, "true": True, "false": False}


class NoConflict(IsolitmusError):
    """A text that is none of Delta's conflicts."""


def conflict_in(text: str) -> str | None:
    """The exception whose message a text has; None if it has none.

    >>> conflict_in("Failed to commit transaction: Metadata changed since last commit.")
    'MetadataChangedException'
    """
    return next((name for _, name in sorted(_messages(" ".join(text.split())))), None)


def read_pasted(text: str, label: str = "the text") -> PastedException:
    r"""What a text says of a conflict; NoConflict if it is of none.

    >>> found = read_pasted(
    ...     "io.delta.exceptions.ConcurrentAppendException: Files were added to partition [day=3] by a concurrent"
    ...     ' update.\nConflicting commit: {"operation":"WRITE","operationParameters":{"mode":Append}}'
    ... )
    >>> found.name, found.partition, found.operation, found.commit["operationParameters"]
    ('ConcurrentAppendException', 'day=3', 'WRITE', {'mode': 'Append'})
    """
    flat = " ".join(_unescaped(text).split())
    found = sorted(_messages(flat)) or sorted(_classes(flat))
    if not found:
        raise NoConflict(f"{label}: {_instead(flat)}")
    name = found[0][1]
    others = tuple(dict.fromkeys(other for _, other in found if other != name))
    commit = _commit(flat)
    newer, altered = NEWER.search(flat), ALTERED.search(flat)
    file = FILE.search(flat)
    path = file["file"] if file else None
    operation = newer["operation"] if newer else commit.get("operation")
    table = newer["table"] if newer else altered["table"] if altered else None
    version = int(newer["version"]) if newer else 0 if EMPTY in flat else None
    return PastedException(
        name,
        _error_class(flat, name),
        _wording(flat),
        table,
        version,
        operation if isinstance(operation, str) else None,
        _partition(flat, path),
        ROOT in flat,
        path,
        commit,
        _mine(flat),
        others,
    )


def _unescaped(text: str) -> str:
    """A message that stands in a text of JSON, as logs have it, without the signs for that."""
    if '\\"operation\\"' not in text and "\\nConflicting commit" not in text:
        return text
    return text.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"').replace("\\\\", "\\")


def _messages(flat: str) -> Iterator[tuple[int, str]]:
    """Where a message or an error class stands, and of which exception it is."""
    for name, known in exception_table().exceptions.items():
        places = [flat.find(phrase) for phrase in known.phrases]
        for one in known.classes:
            places += [found.start() for found in re.finditer(rf"\b{one}\b", flat)]
        yield from ((place, name) for place in places if place >= 0)


def _classes(flat: str) -> Iterator[tuple[int, str]]:
    for name in exception_table().exceptions:
        yield from ((found.start(), name) for found in re.finditer(rf"\b{name}\b", flat))


def _instead(flat: str) -> str:
    """What a text is that is none of Delta's conflicts, and what would be one."""
    wanted = (
        "the text of one is wanted, with its class, such as ConcurrentAppendException, or its error class,"
        " such as DELTA_CONCURRENT_APPEND"
    )
    if not flat:
        return f"there is nothing in it; {wanted}"
    for known, error in exception_table().others.items():
        if re.search(rf"\b{known}\b", flat) or any(phrase in flat for phrase in error.phrases):
            return f"{known} is no conflict of two commits: {error.says}"
    shared = next((name for name in SHARED if name in flat), None)
    if shared is not None:
        return (
            f"{shared} is what all conflicts share; the message that belongs to it is wanted, too"
        )
    named = ERROR_CLASS.search(flat) or SOME_EXCEPTION.search(flat)
    other = f" ({named[0]} is another error)" if named else ""
    return f"this is none of Delta's conflicts{other}; {wanted}"


def _error_class(flat: str, name: str) -> str | None:
    for one in exception_table().exceptions[name].classes:
        found = re.search(rf"\b{one}(?:\.[A-Z_]+)?\b", flat)
        if found is not None:
            return found[0]
    return None


def _wording(flat: str) -> Wording:
    if "com.databricks." in flat or "Databricks-Runtime/" in flat or "docs.databricks.com" in flat:
        return "Databricks"
    if "CommitFailedError" in flat or "Failed to commit transaction" in flat:
        return "delta-rs"
    return "delta-rs" if "Commit failed: a concurrent" in flat else "Delta"


def _partition(flat: str, path: str | None) -> str | None:
    for pattern in PARTITIONS:
        found = pattern.search(flat)
        if found is not None:
            return found["partition"].strip("[] ")
    return ", ".join(FOLDER.findall(path or "")) or None


def _mine(flat: str) -> str | None:
    """What the refused job was: the first of its classes that the stack trace names."""
    found = [
        (place, command)
        for start, command in exception_table().commands.items()
        if (place := flat.find(f".{start}")) >= 0
    ]
    return min(found)[1] if found else None


# What the message says of the other commit


def _commit(flat: str) -> Mapping[str, Any]:
    start = COMMIT.search(flat)
    if start is None:
        return {}
    said, _ = _value(flat, start.end(), 0)
    return said if isinstance(said, dict) else {}


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends: JSON, but a text may lack its quotes."""
    sign = text[at : at + 1]
    if sign == '"':
        return _quoted(text, at)
    if sign in ENDS and depth < 20:
        return _inside(text, at, depth)
    scalar = SCALAR.match(text, at)
    if scalar is not None:
        word = scalar[0]
        return KNOWN_VALUES.get(
            word, int(word) if word.lstrip("-").isdigit() else word
        ), scalar.end()
    end = re.compile(r'(?=,"[\w.]+":)|(?=\})').search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop].strip(), stop


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = re.compile(r'"((?:[^"\\]|\\.)*)"').match(text, at)
    if end is None:
        return text[at + 1 :], len(text)
    return re.sub(r"\\(.)", r"\1", end[1]), end.end()


def _inside(text: str, at: int, depth: int) -> tuple[Any, int]:
    """An object or a list."""
    close = ENDS[text[at]]
    pairs: dict[str, Any] = {}
    values: list[Any] = []
    here = at + 1
    while here < len(text) and text[here] != close:
        before = here
        if text[here] in ", ":
            here += 1
            continue
        key = None
        if close == "}":
            key, here = _quoted(text, here) if text[here] == '"' else ("", here)
            here += len(re.compile(r"\s*:?\s*").match(text, here)[0])  # type: ignore[index] # it may be empty
        value, here = _value(text, here, depth + 1)
        if key is not None:
            pairs[key] = value
        values.append(value)
        if here <= before:
            break
    return (pairs if close == "}" else values), here + 1
