"""Reader of the exception table (``exceptions.toml``): meaning, advice, examples and engines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, get_args

from isolitmus.model.delta.conflict import (
    ALWAYS,
    CONFLICTS,
    UNKNOWN,
    ConflictChange,
    ConflictCondition,
    ConflictExample,
    ConflictException,
    ConflictPattern,
    Where,
)
from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import HOME, read_text, shipped_files
from isolitmus.specs.files.toml_reader import Source, show_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.specs.files.toml_reader import Node

FILE = HOME / "exceptions.toml"
TEXTS = ("title", "check", "place", "meaning", "retry", "retrying")
ADVICE = (*TEXTS, "notes", "retries", "changes", "examples")
RETRY = ("yes", "after a look", "no")
WHEN = (
    "winner",
    "mine",
    "unless",
    "not_beside",
    "engine",
    "blind",
    "level",
    "not_level",
    "version",
    "where",
    "overwrites",
    "vectors",
)
EXAMPLE = ("test", "under", "loser", "mine", "winner", "where", "blind", "of")
BOTH = ("delta-serializable", "delta-write-serializable")
FURTHER = ("elsewhere", "conditions", "engines", "commands", "statements", "others")


@dataclass(frozen=True, slots=True)
class OtherError:
    """Error other than a conflict of two commits to a Delta table."""

    says: str
    """Description."""
    change: str
    """Advice; empty if there is none."""
    phrases: tuple[str, ...]
    """Phrases that identify its messages, in addition to its error class."""
    classes: tuple[str, ...]
    """Further error classes of it."""
    name: str
    """Class of the exception, if the table does not have it under its error class."""
    format: str
    """Table format or database whose conflict of commits it is; empty if it is none."""


@dataclass(frozen=True, slots=True)
class WritingEngine:
    """Engine that writes Delta tables."""

    marks: tuple[str, ...]
    """Texts that occur only in its errors."""
    note: str
    """Difference of its checks from those of Delta on Spark; empty if there is none."""


@dataclass(frozen=True)
class ExceptionTable:
    """Table of all known exceptions, in the order of the file."""

    exceptions: Mapping[str, ConflictException]
    """Exceptions of Delta on Spark."""
    elsewhere: Mapping[str, ConflictException]
    """Exceptions of other engines, catalogs and stores."""
    conditions: Mapping[str, ConflictCondition]
    """Causes of exceptions: parts of error classes after the dot, and others."""
    engines: Mapping[str, WritingEngine]
    """Engines; the first of several in one text counts."""
    commands: Mapping[str, str]
    """Command of the job, by the prefix of a class in its stack trace."""
    statements: Mapping[str, str]
    """Command of the job, by a regular expression for its statement or call."""
    others: Mapping[str, OtherError]
    """Errors that are not conflicts, by error class, or by a name in lower case."""

    @cached_property
    def every(self) -> Mapping[str, ConflictException]:
        """All exceptions."""
        return {**self.exceptions, **self.elsewhere}


@cache
def exception_table() -> ExceptionTable:
    """Return the shipped table.

    Examples
    --------
    >>> exception_table().exceptions["ConcurrentAppendException"].retry
    'yes'
    """
    return read_exceptions(read_text(FILE, LitmusError), FILE.name)


def exception_of(name: str) -> ConflictException | None:
    """Return the exception of a class or an error class, or None.

    If the part after the dot of an error class is a known cause, its description replaces the
    general one.

    Examples
    --------
    >>> exception_of("DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
    ConcurrentAppendException: A concurrent commit added a file to data that your job read
    >>> exception_of("DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES")
    ConcurrentAppendException: A concurrent commit wrote the same rows as your job
    """
    table = exception_table()
    plain, _, cause = name.rpartition("exceptions.")[2].partition(".")
    for known in table.every.values():
        if plain == known.name or plain in known.classes:
            condition = table.conditions.get(cause)
            return known if condition is None else condition.of_exception(known)
    return None


def cause_shown_by(name: str, winner: str | None) -> str | None:
    """Return the cause of an exception that the operation of the winning commit shows, or None.

    Examples
    --------
    >>> cause_shown_by("ConcurrentAppendException", "CREATE OR REPLACE TABLE AS SELECT")
    'WHOLE_TABLE_REPLACE'
    """
    conditions = exception_table().conditions.items()
    return next((k for k, one in conditions if name in one.of and one.is_shown_by(winner)), None)


def read_exceptions(text: str, label: str) -> ExceptionTable:
    """Return the table in a text; LitmusError describes a problem."""
    document = Source(label, text).node()
    document.keys((*CONFLICTS, *FURTHER))
    missing = [name for name in CONFLICTS if name not in document]
    if missing:
        document.refuse(f"the file has no table [{missing[0]}]; each exception of Delta has one")
    engines = {name: _engine(node) for name, node in document.inner("engines").items()}
    elsewhere = document.inner("elsewhere").items()
    table = ExceptionTable(
        {name: _exception(document.inner(name), name, engines) for name in CONFLICTS},
        {name: _exception(node, name, engines) for name, node in elsewhere},
        {
            name: _condition(node, name, engines)
            for name, node in document.inner("conditions").items()
        },
        engines,
        _words(document.inner("commands")),
        _words(document.inner("statements")),
        {name: _other(node) for name, node in document.inner("others").items()},
    )
    for name, condition in table.conditions.items():
        for one in condition.of:
            if one not in table.every:
                document.refuse(
                    f"conditions.{name}.of names no exception: '{one}'{near(one, table.every)}"
                )
    return table


def _words(node: Node) -> dict[str, str]:
    return {key: node.get(key, str) for key in node.table()}


def _other(node: Node) -> OtherError:
    node.table()
    node.keys(("says", "change", "phrases", "classes", "name", "format"))
    return OtherError(
        node.get("says", str),
        node.get("change", str, ""),
        node.strings("phrases"),
        node.strings("classes"),
        node.get("name", str, ""),
        node.get("format", str, ""),
    )


def _engine(node: Node) -> WritingEngine:
    node.table()
    node.keys(("marks", "note"))
    return WritingEngine(node.strings("marks"), node.get("note", str, ""))


def _exception(node: Node, name: str, engines: Mapping[str, WritingEngine]) -> ConflictException:
    """Return a conflict exception with its error classes, phrases and advice."""
    node.table()
    node.keys(("classes", "phrases", *ADVICE))
    classes, phrases = node.strings("classes"), node.strings("phrases")
    if not phrases:
        node.refuse(f"{node} needs 'phrases' (a list of texts)")
    return ConflictException(name=name, classes=classes, phrases=phrases, **_advice(node, engines))


def _condition(node: Node, name: str, engines: Mapping[str, WritingEngine]) -> ConflictCondition:
    """Return a condition under which exceptions occur, with its engines, phrases and advice."""
    node.table()
    node.keys(("of", "engine", "phrases", "winner", *ADVICE))
    if not node.strings("of"):
        node.refuse(f"{node} needs 'of' (a list of exceptions)")
    engine = _engines(node, engines)
    phrases = node.strings("phrases")
    return ConflictCondition(
        name, node.strings("of"), engine, phrases, node.strings("winner"), _advice(node, engines)
    )


def _advice(node: Node, engines: Mapping[str, WritingEngine]) -> dict[str, Any]:
    """Return the descriptions and advice of an exception, or of a cause."""
    texts = {key: node.get(key, str) for key in TEXTS}
    if texts["retry"] not in RETRY:
        node.refuse(
            f"{node.under('retry')} is {show_value(texts['retry'])}; expected one of {RETRY}"
        )
    keys = ("text", "when", "if")
    changes = tuple(_change(each, engines) for each in _each(node, "changes", keys))
    if not changes or changes[-1].when != ALWAYS:
        node.refuse(f"{node}: the last of its 'changes' is for any conflict, and has no 'when'")
    further = {
        key: tuple(_change(each, engines) for each in _each(node, key, keys))
        for key in ("notes", "retries")
    }
    examples = tuple(_example(each) for each in _each(node, "examples", EXAMPLE))
    return {**texts, **further, "changes": changes, "examples": examples}


def _each(node: Node, key: str, known: tuple[str, ...]) -> Iterator[Node]:
    """Yield the tables of the list `key`; refuse keys that are not in `known`."""
    for k, entry in enumerate(node.get(key, list, []), 1):
        each = node.at(f"{key}[{k}]", entry)
        each.table()
        each.keys(known)
        yield each


def _change(node: Node, engines: Mapping[str, WritingEngine]) -> ConflictChange:
    return ConflictChange(node.get("text", str), _when(node, engines), node.get("if", str, ""))


def _example(node: Node) -> ConflictExample:
    """Return the example of a conflict; refuse a litmus test or protocol that is not shipped."""
    test, under = node.get("test", str), node.strings("under") or BOTH
    for known, names in ((shipped_files("litmus"), (test,)), (shipped_files("protocols"), under)):
        for name in names:
            if name not in known:
                node.refuse(
                    f"{node} names what is not in the catalogue: '{name}'{near(name, known)}"
                )
    return ConflictExample(
        test,
        under,
        node.get("loser", str),
        _optional(node, "mine", str),
        _optional(node, "winner", str),
        _where(node),
        _optional(node, "blind", bool),
        _optional(node, "of", str),
    )


def _optional(node: Node, key: str, kind: type) -> Any:
    return node.get(key, kind) if key in node else None


def _where(node: Node) -> Where | None:
    """Return the value of `where`, or None if absent; refuse unknown values."""
    where: Where | None = _optional(node, "where", str)
    if where not in (None, *get_args(Where)):
        node.refuse(
            f"{node.under('where')} is {show_value(where)}; expected one of {get_args(Where)}"
        )
    return where


def _engines(node: Node, known: Mapping[str, WritingEngine]) -> tuple[str, ...]:
    """Return the engines named in `engine`; refuse unknown names."""
    named = node.strings("engine")
    for name in named:
        if name not in (UNKNOWN, *known):
            node.refuse(f"{node.under('engine')} names no engine: '{name}'{near(name, known)}")
    return named


def _when(node: Node, engines: Mapping[str, WritingEngine]) -> ConflictPattern:
    """Return the pattern of conflicts in `when`; a missing one matches always."""
    if "when" not in node:
        return ALWAYS
    said = node.inner("when")
    said.keys(WHEN)
    return ConflictPattern(
        said.strings("winner"),
        said.strings("mine"),
        said.strings("unless"),
        said.strings("not_beside"),
        _engines(said, engines),
        _optional(said, "blind", bool),
        _optional(said, "level", str),
        _optional(said, "not_level", str),
        _optional(said, "version", int),
        _where(said),
        _optional(said, "overwrites", bool),
        _optional(said, "vectors", bool),
    )
