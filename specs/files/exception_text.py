r"""Parser of pasted exception texts from Delta, Databricks, Delta Kernel, Flink, delta-rs or Trino.

The text may be a log, notebook output, a page, JSON that contains the message, or a quoted mail.
Lines may be broken anywhere, within words as well. If there are several exceptions, only the first
is parsed. The description of the winning commit (``Conflicting commit: {…}``) is almost JSON: Delta
writes the strings among the operation's parameters without quotes. The table in
``exceptions.toml`` maps phrases to exceptions, causes, engines and commands.
"""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

from isolitmus.model.delta.conflict import UNKNOWN, PastedError, PastedException
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.exceptions_file import cause_shown_by, exception_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.model.delta.conflict import ConflictException

SHARED = {
    "DeltaConcurrentModificationException": "is the superclass of all conflicts",
    "java.util.ConcurrentModificationException": (
        "is the superclass of all conflicts, and also an error of Java's own collections"
    ),
    "ConcurrentModificationException": "is the superclass of all conflicts",
    "CommitFailedError": (
        "is what delta-rs raises for every failed commit, with or without a conflict"
    ),
    "CommitFailedException": "is raised for every failed commit, with or without a conflict",
    "Transaction conflict detected": "is common to several conflicts",
    "2D521": "is the SQLSTATE of several conflicts",
    "Failed to write Delta Lake transaction log entry": (
        "is what Trino raises for every failed commit"
    ),
}
"""Classes and phrases that do not identify a conflict."""
ERROR_CLASS = re.compile(r"\bDELTA_[A-Z0-9_]+\b")
SOME_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Exception|Error)\b")
PACKAGE = re.compile(r"(?<![\w$.])(?:[\w$]++\.)++$")
ELSEWHERE = re.compile(r"(?:com|net|org|javax?|software)\.|.*(?:iceberg|hudi|paimon)")
OURS = re.compile(r"delta|databricks|tahoe|trino|unitycatalog")
"""Packages of engines that write Delta tables; a class in another package is not a conflict of
Delta.
"""
CONTROL = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\^\[)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,300}(?:\x07|\x1b\\))",
    re.IGNORECASE,
)
"""Terminal control sequences, raw or as logs write them."""
WRITTEN = {"n": "\n", "r": "\n", "t": " "}
"""Character of each letter that JSON escapes."""
ESCAPED = re.compile(r"\\n(?=\s|\\t|\\r|at\b|Caused|Conflicting|Refer)|\\\"operation\\\"")
"""Signs that the message is escaped as in JSON."""
TAG = re.compile(
    r"</?(?:a|b|br|code|dd|div|dl|dt|em|font|h[1-6]|i|li|mark|p|pre|samp|small|span|strong"
    r"|table|tbody|td|th|tr|tt|u|ul)"
    r"(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)
TIME = (
    r"[\[(]?(?:\d{2,4}[-/.]\d\d[-/.]\d{2,4}[T ,]?[ ]?|[A-Z][a-z]{2} [ \d]\d"
    r" )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[ ]?[+-]\d\d:?\d\d)?[\])]?"
)
PREFIX = re.compile(
    r"^[ \t]*(?:(?:[>|#*]+|E(?=[ ]{2})|[\w.-]{1,40}[ ]+\||\[?(?:stdout|stderr|out|err)\]?:?)["
    rf" \t]+)*(?:{TIME}[ \t]*"
    r"(?:std(?:out|err) [FP] )?"
    r"(?:(?:\[[^\]\n]{1,60}\]|\(?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|SEVERE)\)?:?)[ \t]*)*"
    r"(?:(?:[\w-]{1,40} )?(?![\w.$]*(?:Exception|Error)\b)[\w.$-]{1,80}(?:\[\d+\])?: (?=\S))?)?",
    re.MULTILINE,
)
"""Prefix of lines in logs, test output and quoted mails."""
NEWER = re.compile(
    r"concurrent (?P<operation>.{1,80}?) (?:added data to|deleted data from) table"
    r" (?P<table>.{1,300}?)"
    r" \(?committed at version (?P<version>\d{1,18})"
)
"""Message of Delta 4.1 and later, and of Databricks."""
ALTERED = re.compile(
    r"metadata of the Delta table (?!has been)(?P<table>.{1,300}?) has been changed", re.IGNORECASE
)
VERSIONS = (
    re.compile(r"version (\d{1,18}) already exists", re.IGNORECASE),
    re.compile(r"existing table version: (\d{1,18})", re.IGNORECASE),
    re.compile(r"write detected for version (\d{1,18})", re.IGNORECASE),
    re.compile(r"VersionAlreadyExists\((\d{1,18})\)"),
    re.compile(r"Commit failed at version: (\d{1,18})"),
    re.compile(r"actual version: (\d{1,18})"),
    re.compile(r"update conflict.{1,300}?version (\d{1,18})\b(?!\.\d)", re.IGNORECASE),
    re.compile(r"Commit version (\d{1,18}) (?:is not valid|already accepted)", re.IGNORECASE),
    re.compile(r"_delta_log/(\d{20})\.json"),
)
"""Patterns of the version that another writer committed first."""
OTHER_VERSIONS: Mapping[str, re.Pattern[str]] = {
    "version that your write tried": re.compile(r"write a transaction (\d{1,18}) but"),
    "version that your write had read": re.compile(r"base_version ?[=:] ?(\d{1,18})"),
    "newest version of the table": re.compile(
        r"(?:table has been updated to|latest_version ?[=:]) ?(\d{1,18})"
    ),
    "version that already exists": re.compile(r"will retry version ?[=:] ?(\d{1,18})"),
    "version of the source table": re.compile(
        r"(?:source table at|streaming source at|schema change in) version (\d{1,18})"
    ),
}
"""Patterns of versions in texts that are no conflicts, by what they are."""
PARTITIONS = (
    re.compile(
        r"(?:modified|deleted) data in the partition (?P<partition>.{1,300}?) that (?:should|was)"
    ),
    re.compile(r"Files were added to partition (?P<partition>.{1,300}?) by a concurrent update"),
)
ROOT = "Files were added to the root of the table"
EMPTY = "multiple writers are writing to an empty directory"
FILES = (
    re.compile(r"\(for example (.{1,500}?)\) by a concurrent update"),
    re.compile(r"deletion vector of\) file (.{1,500}?) that this transaction"),
)
DOMAINS = (
    re.compile(r"metadata domain (\S{1,200}) is added", re.IGNORECASE),
    re.compile(r"action for the same domain: (\S{1,200}?)\. ", re.IGNORECASE),
)
FOLDER = re.compile(r"(?:^|/)([^/=]+=[^/]*)(?=/)")
COMMIT = re.compile(r"Conflicting commit: ?(?=\{)")
ENDS: Mapping[str, str] = {"{": "}", "[": "]"}
SCALAR = re.compile(r"(?:null|true|false|-?\d{1,18}(?:\.\d{1,18})?)(?=[,}\]])")
KNOWN_VALUES: Mapping[str, Any] = {"null": None, "true": True, "false": False}


ONE_MESSAGE = 100
"""Distance in characters within which another exception may belong to the same message."""


class Mention(NamedTuple):
    """Place of a phrase that identifies an exception."""

    start: int
    """Position of the phrase."""
    less: int
    """Negative length of the phrase, so that the longest one at a place sorts first."""
    name: str
    """Name of the exception."""


COMMIT_ALONE = "ConflictingCommit"
"""Name for a text that has only the description of the winning commit."""


class NoConflict(IsolitmusError):
    """Text that contains no known conflict."""


def conflict_in(text: str) -> str | None:
    """Return the exception of Delta on Spark whose message a text contains, or None.

    Examples
    --------
    >>> conflict_in("Failed to commit transaction: Metadata changed since last commit.")
    'MetadataChangedException'
    """
    found = _messages(" ".join(text.split()), exception_table().exceptions)
    return next((name for *_, name in sorted(found)), None)


def read_pasted(text: str, label: str = "the text") -> PastedException | PastedError:
    r"""Return the facts about a conflict in a text, or the known error that is none.

    Raises
    ------
    NoConflict
        If the text contains neither.

    Examples
    --------
    >>> found = read_pasted(
    ...     "io.delta.exceptions.ConcurrentAppendException: Files were added to partition [day=3]"
    ...     " by a concurrent update.\nConflicting commit:"
    ...     ' {"operation":"WRITE","operationParameters":{"mode":Append}}'
    ... )
    >>> found.name, found.partition, found.operation, found.commit["operationParameters"]
    ('ConcurrentAppendException', 'day=3', 'WRITE', {'mode': 'Append'})
    """
    flat = _plain(text)
    found = _exceptions(flat) or [Mention(0, 0, name) for name in _squeezed(flat)]
    if not found:
        error = _other_error(flat)
        if error is None:
            raise NoConflict(f"{label}: {_instead(flat)}")
        return error
    name = found[0].name
    flat, others = _first_alone(flat, found)
    commit, around = _commit(flat)
    newer, altered = NEWER.search(flat), ALTERED.search(flat)
    path, error_class = _first(FILES, flat), _error_class(flat, name)
    engine, of_winner = _engine(around), _engine(str(commit.get("engineInfo", "")))
    is_of_winner = engine == UNKNOWN != of_winner
    if is_of_winner:
        engine = of_winner
    operation = newer["operation"] if newer else commit.get("operation")
    operation = operation if isinstance(operation, str) else None
    version = newer["version"] if newer else "0" if EMPTY in flat else _first(VERSIONS, flat)
    # the message names the operation of the winner, which is no statement of the job
    mine, told = _mine(NEWER.sub(" ", around), str(operation))
    cause = _condition(flat, name, engine, (error_class or "").partition(".")[2], operation)
    return PastedException(
        name=name,
        error_class=error_class,
        condition=cause,
        engine=engine,
        is_engine_of_winner=is_of_winner,
        table=newer["table"] if newer else altered["table"] if altered else None,
        version=None if version is None else int(version),
        operation=operation,
        partition=_partition(flat, path),
        everywhere=ROOT in flat,
        file=path,
        domain=_first(DOMAINS, flat),
        commit=commit,
        mine=mine,
        told=told,
        others=others,
    )


def _plain(text: str) -> str:
    """Return a text on one line, without additions by a log, a terminal, a page or JSON."""
    text = CONTROL.sub("", _unescaped(text))
    if TAG.search(text) or re.search(
        r"&(?:lt|gt|quot|amp|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,4});", text
    ):
        text = unescape(TAG.sub(" ", text))
    text = "".join(sign for sign in text if sign.isascii() or category(sign) != "Cf")
    return " ".join(PREFIX.sub("", text).split())


def _first_alone(flat: str, found: Sequence[Mention]) -> tuple[str, tuple[str, ...]]:
    """Return a text up to the next conflict, and the names of further exceptions in it."""
    known, first = exception_table().exceptions, found[0]
    others = dict.fromkeys(each.name for each in found if each.name in known)
    others.pop(first.name, None)
    told: dict[str, str] = {}
    ends = [one.start for one in found[1:]] + [len(flat)]
    for one, end in zip(found, ends, strict=True):
        said = _details(flat[one.start : end])
        if one.start > first.start - first.less + ONE_MESSAGE:
            if any(told.get(key, value) != value for key, value in said.items()):
                return flat[: one.start], tuple(others | {one.name: None})
            if one.name in others:
                return flat[: one.start], tuple(others)
        told |= said
    return flat, tuple(others)


def _details(part: str) -> dict[str, str]:
    """Return the facts about the winning commit in which two messages may differ."""
    newer, commit = NEWER.search(part), COMMIT.search(part)
    said = dict(newer.groupdict()) if newer else {}
    partition = _first(PARTITIONS, part)
    if partition is not None:
        said["partition"] = partition
    if commit is not None:
        said["commit"] = part[commit.end() : _value(part, commit.end(), 0)[1]]
    return said


def _squeezed(flat: str) -> Iterator[str]:
    """Yield the exceptions in a text whose lines are broken within words."""
    table, joined = exception_table(), flat.replace(" ", "")
    for name, one in table.every.items():
        words = (*one.classes, *((name,) if name in table.exceptions else ()))
        if _has((phrase.replace(" ", "") for phrase in one.phrases), joined) or any(
            any(_named(joined, word)) for word in words
        ):
            yield name


def _unescaped(text: str) -> str:
    """Return a message without the escapes of surrounding JSON or CSV."""
    for _ in range(3):  # JSON may stand in JSON
        if '""operation""' in text:
            text = text.replace('""', '"')
        if not ESCAPED.search(text):
            break
        text = re.sub(r"\\([\\/\"nrt])", lambda found: WRITTEN.get(found[1], found[1]), text)
    return text


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    """Return a phrase of the table as a lower-case pattern: ``…`` is any text, ``#`` a number."""
    words = re.escape(phrase.lower()).replace("…", ".{1,300}?").replace(r"\#", r"\d{1,20}\b")
    return re.compile(words)


def _first(patterns: Iterable[re.Pattern[str]], flat: str) -> str | None:
    """Return the group that the first matching pattern finds in a text, or None."""
    found = (pattern.search(flat) for pattern in patterns)
    return next((match[1] for match in found if match), None)


def _has(phrases: Iterable[str], flat: str) -> bool:
    low = flat.lower()
    return any(_pattern(phrase).search(low) for phrase in phrases)


def _exceptions(flat: str) -> list[Mention]:
    """Return the places of exceptions by the strongest indication: message, class, phrase of a
    cause.
    """
    table = exception_table()
    for found in (
        _messages(flat, table.exceptions),
        _messages(flat, {k: v for k, v in table.elsewhere.items() if k != COMMIT_ALONE}),
        _classes(flat),
        (Mention(0, 0, one.of[0]) for one in table.conditions.values() if _has(one.phrases, flat)),
        _messages(flat, {COMMIT_ALONE: table.elsewhere[COMMIT_ALONE]}),
    ):
        places = sorted(found)
        if places:
            return places
    return []


def _mention(found: re.Match[str], name: str) -> Mention:
    return Mention(found.start(), found.start() - found.end(), name)


def _named(flat: str, word: str) -> Iterator[re.Match[str]]:
    """Yield the places of a class or error class in a package of Delta or of an engine that writes
    it.
    """
    any_case = word.startswith("DELTA_") or word.endswith("Exception")
    for found in re.finditer(rf"\b{word}\b", flat, re.IGNORECASE if any_case else re.NOFLAG):
        package = PACKAGE.search(flat, max(0, found.start() - 200), found.start())
        if package is None or not ELSEWHERE.match(package[0]) or OURS.search(package[0]):
            yield found


def _messages(flat: str, known: Mapping[str, ConflictException]) -> Iterator[Mention]:
    """Yield the places of messages and error classes, with their exceptions."""
    low = flat.lower()
    for name, one in known.items():
        for phrase in one.phrases:
            yield from (_mention(found, name) for found in _pattern(phrase).finditer(low))
        for word in one.classes:
            yield from (_mention(found, name) for found in _named(flat, word))


def _classes(flat: str) -> Iterator[Mention]:
    for name in exception_table().exceptions:
        yield from (_mention(found, name) for found in _named(flat, name))


def _other_error(flat: str) -> PastedError | None:
    """Return the known error in a text, other than a conflict of two commits, or None."""
    for known, error in exception_table().others.items():
        classes = (*error.classes, *([known] if known.isupper() else []))
        named = next((name for name in classes if re.search(rf"\b{name}\b", flat)), None)
        if named or _has(error.phrases, flat):
            found = {what: one.search(flat) for what, one in OTHER_VERSIONS.items()}
            versions = {what: int(match[1]) for what, match in found.items() if match}
            in_text = error.name if error.name in flat else ""
            return PastedError(named or in_text, error.format, error.says, error.change, versions)
    return None


def _instead(flat: str) -> str:
    """Return a description of a text without a known conflict, and advice what to pass instead."""
    wanted = (
        "pass the text of a conflict with its class, such as ConcurrentAppendException, or its"
        " error class, such as DELTA_CONCURRENT_APPEND"
    )
    if not flat:
        return f"the text is empty; {wanted}"
    for shared, says in SHARED.items():
        if re.search(rf"\b{re.escape(shared)}\b", flat):
            return f"{shared} {says}; pass its message too"
    named = ERROR_CLASS.search(flat) or SOME_EXCEPTION.search(flat)
    which = f" ({named[0]} is unknown)" if named else ""
    return f"no known conflict in this text{which}; {wanted}"


def _error_class(flat: str, name: str) -> str | None:
    """Return the error class, with its subclass, of the exception `name` in the text, or None."""
    for one in exception_table().every[name].classes:
        found = re.search(rf"\b{one}(?:\.[A-Z0-9_]+)?\b", flat)
        if found is not None:
            return found[0]
    return None


def _engine(flat: str) -> str:
    engines = exception_table().engines.items()
    return next((name for name, one in engines if any(m in flat for m in one.marks)), UNKNOWN)


def _condition(
    flat: str, name: str, engine: str, sub_condition: str, winner: str | None
) -> str | None:
    """Return the cause of an exception, by the error class after its dot, by phrases, by engine
    alone, or else by the winner's operation.
    """
    for known, one in exception_table().conditions.items():
        if name not in one.of or (one.engine and engine not in one.engine):
            continue
        if known == sub_condition or one.engine or _has(one.phrases, flat):
            return known
    return cause_shown_by(name, winner)


def _partition(flat: str, path: str | None) -> str | None:
    named = _first(PARTITIONS, flat)
    return named.strip("[] ") if named else ", ".join(FOLDER.findall(path or "")) or None


def _mine(flat: str, winner: str) -> tuple[str | None, str | None]:
    """Return the command that failed, and its source: ``stack trace`` or ``text``.

    The stack trace is searched for classes first, then the text for statements. Of several
    statements, the first that is not the winner's is preferred.
    """
    table = exception_table()
    found = [
        (place, command)
        for start, command in table.commands.items()
        if (place := flat.find(f".{start}")) >= 0
    ]
    if found:
        is_auto = any(command == "AUTO COMPACTION" for _, command in found)
        return "AUTO COMPACTION" if is_auto else min(found)[1], "stack trace"
    texts = [
        (command == winner, match.start(), command)
        for pattern, command in table.statements.items()
        if (match := re.search(pattern, flat))
    ]
    return (min(texts)[2], "text") if texts else (None, None)


# Fields of the winning commit in the message


def _commit(flat: str) -> tuple[Mapping[str, Any], str]:
    """Return the fields of the winning commit, and the text without them."""
    start = COMMIT.search(flat)
    if start is None:
        return {}, flat
    said, end = _value(flat, start.end(), 0)
    fields = said if isinstance(said, dict) else {}
    if not isinstance(fields.get("operationParameters", {}), dict):
        fields = {name: value for name, value in fields.items() if name != "operationParameters"}
    return fields, flat[: start.start()] + flat[end:]


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return the value at a position, and its end: JSON, but strings may lack quotes."""
    sign = text[at : at + 1]
    if sign == '"':
        return _quoted(text, at)
    if sign in ENDS and depth < 20:
        return _inside(text, at, depth)
    scalar = SCALAR.match(text, at)
    if scalar is not None:
        word = scalar[0]
        return (
            KNOWN_VALUES.get(word, int(word) if word.lstrip("-").isdigit() else word),
            scalar.end(),
        )
    end = re.compile(r'(?=,"[\w.]+":)|(?=\})').search(text, at)
    stop = end.start() if end else len(text)
    return text[at:stop].strip(), stop


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return the quoted string at a position, unescaped, and its end; it may lack its end quote."""
    end = re.compile(r'"((?:[^"\\]|\\.)*)"').match(text, at)
    if end is None:
        return text[at + 1 :], len(text)
    return re.sub(r"\\(.)", r"\1", end[1]), end.end()


def _inside(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return an object or a list, and its end."""
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
            here += len(re.compile(r"\s*+:?\s*+").match(text, here)[0])  # type: ignore[index] # it may be empty
        value, here = _value(text, here, depth + 1)
        if key is not None:
            pairs[key] = value
        values.append(value)
        if here <= before:
            break
    return (pairs if close == "}" else values), here + 1
