"""The tables of a workload: by their DDL, as a litmus file has them, or as their logs do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import near
from isolitmus.specs.files.logged_tables import refuse_differing
from isolitmus.specs.files.table_ddl import read_ddl
from isolitmus.specs.files.table_file import read_table, read_tables
from isolitmus.specs.files.toml_reader import Node, Source, shown
from isolitmus.specs.sql.properties import LAYOUT, LEVELS, MADE
from isolitmus.specs.sql.written import standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.model.schema import Schema
    from isolitmus.specs.files.logged_tables import LoggedDeclaration
    from isolitmus.specs.files.table_ddl import Declared
    from isolitmus.specs.files.toml_reader import TomlTable

__all__ = ["WorkloadTables", "tables_of"]


class WorkloadTables(NamedTuple):
    """The tables, the level that they have, and the formats of those that are not Delta's."""

    schemas: dict[str, Schema]
    level: str | None
    formats: dict[str, str]
    left_out: tuple[str, ...] = ()
    """What is taken for granted of properties that say how files are laid out."""


def tables_of(document: Node, logged: Sequence[LoggedDeclaration]) -> WorkloadTables:
    """The tables, by DDL, as a litmus file has them, or as their logs do."""
    there, found = _logged(document, logged), _declared(document)
    level = document.value.get("level")
    formats: dict[str, str] = {}
    left_out = dict.fromkeys(line for one in logged for line in _left_out(one.declared))
    if found is not None:
        schemas, declared, formats, said_of = found
        left_out |= dict.fromkeys(said_of)
        level = level or declared
        schemas |= _beside(document, schemas, logged, there)
        if len(formats) == len(schemas):
            known = ", ".join(formats.values())
            document.refuse(f"ddl makes no table of format delta, only {known}")
    elif logged:
        schemas = there
    else:
        document.refuse(
            'the file has no ddl; write ddl = "CREATE TABLE …", or give the table: --table FOLDER'
        )
    said, levels = _level(document, level), {one.declared.level: one for one in logged}
    if len(levels) > 1:
        document.refuse(
            f"the logs of the tables have the levels {' and '.join(map(str, levels))}; a workload has one"
        )
    for other, one in levels.items():
        if said not in (None, other):
            document.refuse(
                f"level is {said}, and the log of {one.folder} has {other}; leave it out: --level L asks about"
                " another one",
                "level",
            )
    return WorkloadTables(schemas, said or next(iter(levels), None), formats, tuple(left_out))


def _logged(document: Node, logged: Sequence[LoggedDeclaration]) -> dict[str, Schema]:
    """Tables as their logs have them, by name."""
    found: dict[str, Schema] = {}
    for folder, declared, _ in logged:
        if declared.name.lower() in {name.lower() for name in found}:
            document.refuse(
                f"two tables are called '{declared.name}'; write NAME={folder} for one of them"
            )
        node = Node(_without_layout(declared), "its log", Source(str(folder)))
        found[declared.name] = read_table(declared.name, node)
    return found


def _beside(
    document: Node,
    schemas: Mapping[str, Schema],
    logged: Sequence[LoggedDeclaration],
    there: Mapping[str, Schema],
) -> dict[str, Schema]:
    """The tables that are there and that nobody declares; those that are declared otherwise than their logs have them
    are refused.
    """
    found: dict[str, Schema] = {}
    jobs = str(document.value.get("jobs"))
    for one in logged:
        name = one.declared.name
        known = {each.lower(): each for each in schemas}
        asked = one.named or re.search(rf"\b{name}\b", jobs, re.IGNORECASE)
        if asked and name.lower() not in known:
            found[name] = there[name]
            continue
        only = len(schemas) == len(logged) == 1 and not one.named  # folders are called as they like
        of = next(iter(schemas)) if only else known.get(name.lower())
        if of is None:
            document.refuse(
                f"the DDL has no table '{name}', which {one.folder} would be{near(name, schemas)}; write"
                f" --table NAME={one.folder}",
                "ddl",
            )
        refuse_differing(document.source.place("ddl"), schemas[of], there[name], one.folder)
    return found


def _declared(document: Node) -> WorkloadTables | None:
    """The tables that a document declares, with the level that their DDL says; None if it declares none."""
    ddl = document.value.get("ddl", [])
    texts = [ddl] if isinstance(ddl, str) else ddl
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        document.refuse(f"ddl is {shown(ddl)}; a text, or a list of texts, is wanted")
    if not texts:
        if "table" not in document and "tables" not in document:
            return None
        schemas, inits = read_tables(document, read_table)
        if any(inits):
            document.refuse("a workload has no init: what holds, holds for any rows")
        return WorkloadTables(schemas, None, {})
    for key in ("table", "tables"):
        if key in document:
            document.refuse(f"ddl and {key} both say what the tables are; leave one out", key)
    found: dict[str, Schema] = {}
    formats: dict[str, str] = {}
    left_out: list[str] = []
    level = None
    for text in texts:
        source = document.source
        with standing(source.label, source.text, source.offset("ddl", text)):
            declared = read_ddl(text, f"{source.place_of('ddl', text)}, in ddl", source=True)
        if declared.name.lower() in {name.lower() for name in found}:
            document.refuse(f"ddl makes the table '{declared.name}' twice")
        node = Node(_without_layout(declared), "ddl", document.source)
        left_out += _left_out(declared)
        found[declared.name] = read_table(declared.name, node)
        level = level or declared.level
        if declared.format != DELTA:
            formats[declared.name] = declared.format
    return WorkloadTables(found, level, formats, tuple(left_out))


def _without_layout(declared: Declared) -> TomlTable:
    """The table without the properties that say how its files are laid out: for statements any layout is looked at."""
    properties = declared.table.get("properties", {})
    kept = {key: value for key, value in properties.items() if key not in LAYOUT}
    return {**declared.table, "properties": kept} if properties else declared.table


def _left_out(declared: Declared) -> Iterator[str]:
    """What is taken for granted of them."""
    given = {k: v for k, v in declared.table.get("properties", {}).items() if k in LAYOUT}
    for key, value in given.items():
        if LAYOUT[key] and value != MADE[key].usual:
            yield f"{declared.name} has {key} = {value}, and {LAYOUT[key]}"
    if declared.checked:
        yield f"no statement fails for {' and '.join(declared.checked)} of {declared.name}"
    silent = [f"{key} = {value}" for key, value in given.items() if not LAYOUT[key]]
    if silent:
        yield f"nothing hangs on {' and '.join(silent)} of {declared.name}: any layout of its files is looked at"


def _level(document: Node, level: object) -> str | None:
    folded = {name.lower(): name for name in LEVELS}
    if level is None:
        return None
    if not isinstance(level, str) or level.lower() not in folded:
        document.refuse(f"level is {shown(level)}; known: {', '.join(LEVELS)}")
    return folded[level.lower()]
