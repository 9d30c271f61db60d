"""Read the indexes of a table, and by which of them a transaction's scans go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.client import Client
from isolitmus.model.errors import near
from isolitmus.model.schema import Index
from isolitmus.specs.files.toml_reader import NAME, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.schema import Column, Schema
    from isolitmus.specs.files.toml_reader import Node

__all__ = ["HEAP", "read_indexes", "read_plan", "read_scan"]

HEAP = "heap"
"""What a scan goes by that goes by no index: the order in which the rows came."""
SUBQUERIES = ("once", "each")


def read_indexes(table: Node, columns: Sequence[Column]) -> tuple[Index, ...]:
    """``index`` of a table: ``{ by_k = "k", by_id = "unique id", latest = "day desc, id" }``."""
    if "index" not in table:
        return ()
    return tuple(_index(name, given, columns) for name, given in table.inner("index").items())


def _index(name: str, given: Node, columns: Sequence[Column]) -> Index:
    if not NAME.fullmatch(name) or name == HEAP:
        given.refuse(
            f"index '{name}': a name is letters, digits and _, and not '{HEAP}'", given.path
        )
    if not isinstance(given.value, str):
        given.refuse(
            f'{given} is {shown(given.value)}; columns are wanted, as "k" or "unique k desc, id"'
        )
    first, _, rest = given.value.strip().partition(" ")
    known = [column.name.lower() for column in columns]
    unique = first.lower() == "unique" and (bool(rest) or "unique" not in known)
    places: list[int] = []
    descending: list[bool] = []
    for part in (rest if unique else given.value).split(","):
        words = part.lower().split()
        if not words:
            given.refuse(f"{given} is an index on no column; write the column's name")
        if words[0] not in known:
            given.refuse(f"{given} names no column: '{words[0]}'{near(words[0], known)}")
        if words[1:] not in ([], ["asc"], ["desc"]):
            given.refuse(
                f"{given}: '{part.strip()}' is no column of an index; write COLUMN or COLUMN desc"
            )
        if known.index(words[0]) in places:
            given.refuse(f"{given} names column '{words[0]}' twice")
        places.append(known.index(words[0]))
        descending.append(words[1:] == ["desc"])
    return Index(name, tuple(places), tuple(descending), unique)


def read_plan(given: Node, schemas: Mapping[str, Schema]) -> Client:
    """``scan`` and ``subqueries`` of a transaction."""
    scan = read_scan(given, schemas)
    subqueries = given.get("subqueries", str, "once")
    if subqueries not in SUBQUERIES:
        given.refuse(f"{given}.subqueries is '{subqueries}'{near(subqueries, SUBQUERIES)}")
    return Client(scan=scan, each=subqueries == "each")


def read_scan(given: Node, schemas: Mapping[str, Schema]) -> str | tuple[str, ...]:
    """``scan``: an index, or a list of one for each scan."""
    indexes = [index.name for schema in schemas.values() for index in schema.indexes]
    scan = given.value.get("scan", ())
    names = [scan] if isinstance(scan, str) else scan
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        given.refuse(
            f"{given}.scan is {shown(scan)}; an index, or a list of one for each scan, is wanted"
        )
    for name in names:
        if name not in (*indexes, HEAP):
            given.refuse(f"{given}.scan names no index: '{name}'{near(name, (*indexes, HEAP))}")
    return scan if isinstance(scan, str) else tuple(names)
