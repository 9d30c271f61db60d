"""Read the table of Delta's exceptions (``exceptions.toml``): each with its meaning, advice and examples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, get_args

from isolitmus.model.conflict import CONFLICTS
from isolitmus.model.conflict_exception import (
    ALWAYS,
    ConflictChange,
    ConflictExample,
    ConflictException,
    When,
    Where,
)
from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.files import read_text
from isolitmus.specs.shelf import HOME, shipped
from isolitmus.specs.toml_file import Source, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.specs.toml_file import Node

__all__ = ["ExceptionTable", "OtherError", "exception_of", "exception_table", "read_exceptions"]

FILE = HOME / "exceptions.toml"
TEXTS = ("title", "check", "place", "meaning", "retry", "retrying")
LISTS = ("classes", "phrases")
RETRY = ("yes", "after a look", "no")
WHEN = ("winner", "mine", "blind", "level", "version", "where")


@dataclass(frozen=True, slots=True)
class OtherError:
    """An error of Delta that is no conflict of two commits."""

    says: str
    """What it is, in a sentence."""
    phrases: tuple[str, ...]
    """Words by which its messages are known, beside its error class."""


@dataclass(frozen=True, slots=True)
class ExceptionTable:
    """All that is known of exceptions, in the order of the file."""

    exceptions: Mapping[str, ConflictException]
    hints: Mapping[str, str]
    """What the part of an error class after its dot says."""
    commands: Mapping[str, str]
    """What a job was, by the beginning of a class of its stack trace."""
    others: Mapping[str, OtherError]
    """Errors of Delta that are none of these, by their error classes."""


@cache
def exception_table() -> ExceptionTable:
    """The table that ships.

    >>> exception_table().exceptions["ConcurrentAppendException"].retry
    'yes'
    """
    return read_exceptions(read_text(FILE, LitmusError), FILE.name)


def exception_of(name: str) -> ConflictException | None:
    """The exception of a class or an error class; None if it is none.

    >>> exception_of("DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
    ConcurrentAppendException: Another job added a file where yours had read
    """
    plain = name.rpartition("exceptions.")[2]
    for known in exception_table().exceptions.values():
        if plain == known.name or plain.partition(".")[0] in known.classes:
            return known
    return None


def read_exceptions(text: str, label: str) -> ExceptionTable:
    """The table that a file holds; LitmusError says what is wrong with it."""
    document = Source(label, text).node()
    document.keys((*CONFLICTS, "hints", "commands", "others"))
    missing = [name for name in CONFLICTS if name not in document]
    if missing:
        document.refuse(f"the file has no table [{missing[0]}]; each exception of Delta has one")
    return ExceptionTable(
        {name: _exception(document.inner(name), name) for name in CONFLICTS},
        _words(document.inner("hints")),
        _words(document.inner("commands")),
        {name: _other(node) for name, node in document.inner("others").items()},
    )


def _words(node: Node) -> dict[str, str]:
    return {key: node.get(key, str) for key in node.table()}


def _other(node: Node) -> OtherError:
    node.table()
    node.keys(("says", "phrases"))
    return OtherError(node.get("says", str), node.strings("phrases"))


def _exception(node: Node, name: str) -> ConflictException:
    node.keys((*TEXTS, *LISTS, "changes", "examples"))
    texts = {key: node.get(key, str) for key in TEXTS}
    lists = {key: node.strings(key) for key in LISTS}
    for key, found in lists.items():
        if not found:
            node.refuse(f"{node} needs '{key}' (a list of texts)")
    if texts["retry"] not in RETRY:
        node.refuse(f"{node.under('retry')} is {shown(texts['retry'])}; one of {RETRY} is wanted")
    changes = tuple(_advice(each) for each in _each(node, "changes", ("text", "when")))
    keys = ("test", "under", "loser", "when")
    examples = tuple(_example(each) for each in _each(node, "examples", keys))
    if not changes:
        node.refuse(f"{node} needs 'changes' (a list of tables)")
    if not examples or examples[-1].when != ALWAYS:
        node.refuse(f"{node}: the last of its 'examples' is for any conflict, and has no 'when'")
    return ConflictException(
        name=name,
        classes=lists["classes"],
        phrases=lists["phrases"],
        changes=changes,
        examples=examples,
        **texts,
    )


def _each(node: Node, key: str, known: tuple[str, ...]) -> Iterator[Node]:
    for k, entry in enumerate(node.get(key, list, []), 1):
        each = node.at(f"{key}[{k}]", entry)
        each.table()
        each.keys(known)
        yield each


def _advice(node: Node) -> ConflictChange:
    return ConflictChange(node.get("text", str), _when(node))


def _example(node: Node) -> ConflictExample:
    test, under = node.get("test", str), node.get("under", str)
    for known, name in ((shipped("litmus"), test), (shipped("protocols"), under)):
        if name not in known:
            node.refuse(f"{node} names what is not in the catalogue: '{name}'{near(name, known)}")
    return ConflictExample(test, under, node.get("loser", str), _when(node))


def _when(node: Node) -> When:
    if "when" not in node:
        return ALWAYS
    said = node.inner("when")
    said.keys(WHEN)
    where = said.value.get("where")
    if where not in (None, *get_args(Where)):
        said.refuse(f"{said.under('where')} is {shown(where)}; one of {get_args(Where)} is wanted")
    return When(
        said.strings("winner"),
        said.strings("mine"),
        said.get("blind", bool) if "blind" in said else None,
        said.get("level", str) if "level" in said else None,
        said.get("version", int) if "version" in said else None,
        where,
    )
