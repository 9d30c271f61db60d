"""Cache of readings: jobs and tables that an earlier run read from the same texts.

A reading is kept as data, which the cache need not trust: only the model's own classes are made of
it. Its key holds everything that it depends on: the job's text, place and keys, and all tables that
were known when it was read. What is kept of a job is the job itself and what its reading added to
its reader. Readings that failed, or left something out, are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from isolitmus.jobs import workload
from isolitmus.jobs.sql import undeclared_sources, uninterpreted_sources
from isolitmus.jobs.sql.uninterpreted_sources import written_tables
from isolitmus.model import assumption
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.sql import expression, query, schema, statement
from isolitmus.specs.sql.statements import LateOrigin
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isolitmus.jobs.readers.job_reader import JobReader
    from isolitmus.jobs.workload import Job
    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.files.toml_reader import Node

MODULES = (
    assumption, schema, workload, expression, query, statement, undeclared_sources,
    uninterpreted_sources,
)  # fmt: skip
"""Modules whose classes a reading consists of."""
SCALARS = (str, int, bool, type(None))
TEXTS: Mapping[type, Callable[[Any], str]] = {
    float: repr,
    Decimal: str,
    date: date.isoformat,
    datetime: datetime.isoformat,
    Path: str,
    type(Path()): str,
}
"""Values that are kept as texts."""


class ReadingStore(Protocol):
    """Answers by key; without a key, none is found, and none is kept."""

    def get(self, key: str | None) -> Any: ...

    def put(self, key: str | None, answer: Any) -> None: ...


class _UnkeptError(Exception):
    """Part of a reading that cannot be kept, or data that are no reading."""


def cached_reading(
    store: ReadingStore | None, kind: str, depends: object, read: Callable[[], Any]
) -> Any:
    """Return a reading from the store, or read it anew and keep it.

    Parameters
    ----------
    store : ReadingStore or None
        Readings of earlier runs.
    kind : str
        Kind of the reading.
    depends : object
        Everything that the reading depends on, of the classes of readings.
    read : callable
        Reads it; its errors are not kept.

    Examples
    --------
    >>> class Store(dict):
    ...     put = dict.__setitem__
    >>> store = Store()
    >>> cached_reading(store, "words", "a b", lambda: ("a", "b"))
    ('a', 'b')
    >>> cached_reading(store, "words", "a b", lambda: 1 / 0)
    ('a', 'b')
    """
    if store is None:
        return read()
    key = _key(kind, depends)
    known = _kept(store, key, 1, {})
    if known is not None:
        return known[0]
    found = read()
    _keep(store, key, (found,))
    return found


def cached_written_tables(store: ReadingStore | None, texts: Iterable[str]) -> frozenset[str]:
    """Return the tables that statements write to, in lower case (`written_tables`).

    Examples
    --------
    >>> sorted(cached_written_tables(None, ["DELETE FROM u", "DELETE FROM T"]))
    ['t', 'u']
    """
    found: frozenset[str] = frozenset()
    for text in dict.fromkeys(texts):
        found |= cached_reading(store, "written", text, partial(written_tables, (text,)))
    return found


class CachedJobReader:
    """Reader of jobs that takes from a store what earlier runs read from the same texts."""

    def __init__(self, reader: JobReader, store: ReadingStore | None) -> None:
        self.reader = reader
        self.store = store
        self._state: str | None = None
        """Digest of all that jobs are read with; None if it cannot be told."""
        if store is not None:
            given = (
                reader.schemas, reader.shared, reader.formats, reader.besides, reader.written,
                reader.hints, reader.unread_tables, reader.account.key, reader.unclear,
                reader.originals,
            )  # fmt: skip
            self._state = _key("reader", given)

    def job(self, name: str, node: Node, spans: Sequence[tuple[int, int]] = ()) -> Job:
        """Return a job, as `JobReader.job` does, and add to the reader what its reading adds."""
        if self.store is None:
            return self.reader.job(name, node, spans)
        reader, key = self.reader, self._job_key(name, node, spans)
        before, counts = dict(reader.schemas), [len(one) for one in self._lists]
        try:
            known = _kept(self.store, key, 3, reader.schemas)
            if known is None:
                found = reader.job(name, node, spans)
                added = tuple(tuple(one[k:]) for one, k in zip(self._lists, counts, strict=True))
                if not added[-1]:
                    _keep(self.store, key, (found, self._new(before), added[:-1]))
                return found
            job, schemas, added = known
            reader.schemas.update(schemas)
            for one, more in zip(self._lists, added, strict=False):
                one.extend(more)
            assert isinstance(job, workload.Job)
            return job
        finally:
            self._advance(before)

    @property
    def _lists(self) -> tuple[list[Any], ...]:
        """Lists to which the reading of a job adds; the last one is of what is left out."""
        reader = self.reader
        return reader.instead, reader.passed, reader.sources, reader.branches, reader.unread

    def _job_key(self, name: str, node: Node, spans: Sequence[tuple[int, int]]) -> str | None:
        """Return the key of a job's reading; None if it is not kept."""
        sql = node.value.get("sql") if isinstance(node.value, dict) else node.value
        given: list[Any] = sql if isinstance(sql, list) else [sql]
        texts = [text for text in given if isinstance(text, str)]
        if self._state is None or len(texts) < len(given):
            return None
        passed = [self.reader.is_passed(text) for text in texts]
        source = node.source.label, node.source.text, node.source.path
        told = [tuple(span) for span in spans]
        return _key("job", (self._state, name, node.path, node.value, source, told, passed))

    def _new(self, before: Mapping[str, Schema]) -> dict[str, Schema]:
        """Return the tables that are not those of before."""
        return {
            name: one for name, one in self.reader.schemas.items() if before.get(name) is not one
        }

    def _advance(self, before: Mapping[str, Schema]) -> None:
        """Make the state that of the tables that are known now."""
        added = self._new(before)
        gone = before.keys() - self.reader.schemas.keys()
        if self._state is not None and (added or gone):
            self._state = _key("reader", (self._state, added, sorted(gone)))


# Data


def _key(kind: str, depends: object) -> str | None:
    """Return the digest of everything that a reading depends on; None if it has no encoding."""
    try:
        text = json.dumps(_encoded(depends))
    except (_UnkeptError, RecursionError):
        return None
    return sha256(f"{kind}\n{text}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _keep(store: ReadingStore, key: str | None, found: tuple[object, ...]) -> None:
    if key is not None:
        try:
            store.put(key, json.dumps(_encoded(found), separators=(",", ":")))
        except (_UnkeptError, RecursionError):
            return


def _kept(
    store: ReadingStore, key: str | None, size: int, tables: Mapping[str, Schema]
) -> tuple[Any, ...] | None:
    """Return a reading of so many parts, or None; `tables` are those of its statements."""
    text = store.get(key)
    if not isinstance(text, str):
        return None
    try:
        found = _decoded(json.loads(text), tables)
    except (_UnkeptError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return found if isinstance(found, tuple) and len(found) == size else None


@cache
def _classes() -> Mapping[str, type]:
    """Return the classes of readings by name."""
    return {
        name: one
        for module in MODULES
        for name, one in vars(module).items()
        if isinstance(one, type)
        and one.__module__ == module.__name__
        and (is_dataclass(one) or hasattr(one, "_fields"))
        and one is not query.Origin
    }


@cache
def _arguments() -> Mapping[type, tuple[str, ...]]:
    """Return the arguments of each class of readings, except the origin of a statement."""
    return {
        one: tuple(each.name for each in fields(one) if each.init and each.name != "origin")
        if is_dataclass(one)
        else tuple(vars(one)["_fields"])
        for one in _classes().values()
    }


def _encoded(part: Any) -> Any:
    """Return a part of a reading as data for JSON."""
    kind = type(part)
    if kind in SCALARS:
        return part
    if kind is tuple or kind is list:
        return [kind.__name__, *map(_encoded, part)]
    if kind in TEXTS:
        return [kind.__name__, TEXTS[kind](part)]
    if kind is Assumption:
        return ["Assumption", part.kind.name, str(part)]
    if kind is frozenset:
        return ["frozenset", *sorted(map(_encoded, part))]
    if isinstance(part, Mapping):
        return ["dict", *(_encoded(one) for pair in part.items() for one in pair)]
    names = _arguments().get(kind)
    if names is None:
        raise _UnkeptError(kind.__name__)
    found = [kind.__name__, *(_encoded(getattr(part, name)) for name in names)]
    if isinstance(part, query.Resolved):
        syntax = getattr(part.origin, "syntax", None)
        if not isinstance(syntax, Syntax) or syntax.values:
            raise _UnkeptError(kind.__name__)
        given = syntax.text, syntax.label, syntax.types
        found += map(_encoded, (*given, syntax.opaque, syntax.constants, syntax.queried))
    return found


PARSERS: Mapping[str, Callable[[str], Any]] = {
    "float": float,
    "Decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    **{kind.__name__: Path for kind in TEXTS if issubclass(kind, Path)},
}


def _decoded(data: Any, tables: Mapping[str, Schema]) -> Any:
    """Return the part of a reading in data."""
    if not isinstance(data, list):
        return data
    name = data[0]
    if name in PARSERS:
        return PARSERS[name](data[1])
    parts = [_decoded(one, tables) if type(one) is list else one for one in data[1:]]
    match name:
        case "Assumption":
            return AssumptionKind[parts[0]].says(parts[1])
        case "tuple":
            return tuple(parts)
        case "list":
            return parts
        case "frozenset":
            return frozenset(parts)
        case "dict":
            return dict(zip(parts[::2], parts[1::2], strict=True))
    kind = _classes()[name]
    if not issubclass(kind, query.Resolved):
        return kind(*parts)
    *own, text, label, types, opaque, constants, queried = parts
    given = dict(zip(_arguments()[kind], own, strict=True))
    syntax = Syntax(text, label).typed(types, opaque=opaque, constants=constants, queried=queried)
    late: Any = LateOrigin(syntax, tables)
    return kind(**given, origin=late)
