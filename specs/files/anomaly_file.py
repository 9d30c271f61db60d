"""Reader of ``anomalies.toml``: anomalies, topics of litmus tests, and the rows of the table of
engines.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, get_args

from isolitmus.model.anomaly import (
    Anomaly,
    AnomalyTest,
    EngineLevel,
    TransactionKind,
    plain_name,
)
from isolitmus.model.errors import LitmusError, UnknownName, near
from isolitmus.specs.disk.input_files import HOME, read_text, shipped_files
from isolitmus.specs.files.toml_reader import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.specs.files.toml_reader import Node

FILE = HOME / "anomalies.toml"
KINDS: tuple[TransactionKind, ...] = get_args(TransactionKind)
TEXTS = ("title", "means", "source", "absent", "history", "heading", "no_run")
KEYS = (*TEXTS, *KINDS, "synonyms", "cycles", "levels", "unexplained")
ROW = ("title", "protocol", "transaction", "engine", "release", "text")


class AnomalyTable(NamedTuple):
    """Contents of the file."""

    anomalies: dict[str, Anomaly]
    topics: dict[str, str]
    """Topics of litmus tests, each with its meaning."""
    rows: tuple[EngineLevel, ...]


def anomalies() -> Mapping[str, Anomaly]:
    """Return the anomalies by name, in the order of the file.

    Examples
    --------
    >>> anomalies()["lost-update"].synonyms
    ('P4', 'lost write')
    """
    return anomaly_table().anomalies


def tag_meanings() -> Mapping[str, str]:
    """Return the tags of shipped litmus tests, anomalies and topics, each with its meaning.

    Examples
    --------
    >>> tag_meanings()["lost-update"], tag_meanings()["merge"]
    ('Lost update', 'MERGE')
    """
    table = anomaly_table()
    return {name: one.title for name, one in table.anomalies.items()} | table.topics


def anomalies_called(name: str) -> tuple[Anomaly, ...]:
    """Return the anomalies with this name or synonym; case, spaces and hyphens do not matter.

    Examples
    --------
    >>> [one.name for one in anomalies_called("Lost Update")]
    ['lost-update']
    >>> [one.name for one in anomalies_called("skew")]
    ['read-skew', 'write-skew']
    """
    wanted = plain_name(name)
    return tuple(one for one in anomalies().values() if wanted in one.names)


def anomaly(name: str) -> Anomaly:
    """Return the anomaly with this name or synonym.

    Raises
    ------
    UnknownName
        If there is none, with a suggestion, or if several have the name.

    Examples
    --------
    >>> anomaly("P3").name
    'phantom-read'
    >>> anomaly("skew")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: 'skew' names 2 anomalies: read-skew, write-skew
    """
    matching = anomalies_called(name)
    if len(matching) > 1:
        names = ", ".join(one.name for one in matching)
        raise UnknownName(f"'{name}' names {len(matching)} anomalies: {names}")
    if not matching:
        raise UnknownName(f"unknown anomaly '{name}'{near(name, anomalies())}")
    return matching[0]


@cache
def anomaly_table() -> AnomalyTable:
    """Return the shipped anomalies, topics and rows.

    Examples
    --------
    >>> anomaly_table().rows[0].title
    'Delta, Serializable'
    """
    return read_anomalies(read_text(FILE, LitmusError), FILE.name)


def read_anomalies(text: str, label: str) -> AnomalyTable:
    """Return the contents of a text; LitmusError says what is wrong."""
    document = Source(label, text).node()
    topics = document.inner("topics", {})
    meanings = {topic: topics.get(topic, str) for topic in topics.table()}
    entries = {name: node for name, node in document.items() if name not in {"topics", "rows"}}
    for topic in meanings.keys() & entries.keys():
        topics.refuse(f"'{topic}' is a topic and an anomaly", topics.under(topic))
    rows = tuple(map(_row, document.entries("rows", ROW))) if "rows" in document else ()
    return AnomalyTable(
        {name: _anomaly(name, node) for name, node in entries.items()}, meanings, rows
    )


def _row(node: Node) -> EngineLevel:
    protocol, transaction = node.get("protocol", str), node.get("transaction", str)
    if protocol not in (known := shipped_files("protocols")):
        node.refuse(f"unknown protocol '{protocol}'{near(protocol, known)}", node.under("protocol"))
    if transaction not in KINDS:
        node.refuse(
            f"{node.under('transaction')} is '{transaction}'; expected {', '.join(KINDS)}",
            node.under("transaction"),
        )
    engine, release, text = (node.get(key, str, "") for key in ("engine", "release", "text"))
    if bool(engine) == bool(text) or bool(engine) != bool(release):
        node.refuse(f"{node} needs 'engine' and 'release', or 'text', and not both")
    return EngineLevel(node.get("title", str), protocol, transaction, engine, release, text)


def _anomaly(name: str, node: Node) -> Anomaly:
    node.table()
    node.keys(KEYS)
    texts = {
        key: node.get(key, str, None if key in {"title", "means", "source"} else "")
        for key in TEXTS
    }
    tests = tuple(_tests(node))
    if bool(tests) == bool(texts["no_run"]):
        node.refuse(
            f"{name} needs a litmus test ({', '.join(KINDS)}), or 'no_run', which says why there is"
            " none; not both"
        )
    if texts["history"]:
        _shipped_test(node, "history", texts["history"])
    return Anomaly(
        name=name,
        synonyms=node.strings("synonyms") if "synonyms" in node else (),
        cycles=node.strings("cycles") if "cycles" in node else (texts["title"].lower(),),
        levels=node.strings("levels") if "levels" in node else (),
        unexplained=node.get("unexplained", bool, default=False),
        tests=tests,
        **texts,
    )


def _tests(node: Node) -> Iterator[AnomalyTest]:
    """Yield the litmus tests of an anomaly: names, or tables with ``test`` and ``when``."""
    for kind in KINDS:
        for k, entry in enumerate(node.get(kind, list, [])):
            place = node.at(f"{kind}[{k}]", entry)
            if isinstance(entry, str):
                _shipped_test(node, kind, entry)
                yield AnomalyTest(entry, kind)
                continue
            place.table()
            place.keys(("test", "when"))
            _shipped_test(node, kind, place.get("test", str))
            yield AnomalyTest(place.get("test", str), kind, place.get("when", str))


def _shipped_test(node: Node, key: str, name: str) -> None:
    known = shipped_files("litmus")
    if name not in known:
        node.refuse(f"{node.under(key)} names no litmus test: '{name}'{near(name, known)}", key)
