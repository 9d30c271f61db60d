"""Reader of the expectations of a litmus file; impossible ones are refused with a suggestion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.errors import near
from isolitmus.model.litmus import Expectation
from isolitmus.model.run import ROLLED_BACK, SILENT
from isolitmus.model.sql.query import items_of
from isolitmus.model.sql.statement import Read, statements_of
from isolitmus.specs.disk.input_files import is_file, shipped_files
from isolitmus.specs.files.spec_catalogue import PROPOSALS, protocol_names, read_levels
from isolitmus.specs.files.toml_reader import show_value
from isolitmus.specs.registries import engines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Rows, Value
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node

KEYS = frozenset(
    (
        "outcome", "error_class", "log", "reads", "emitted", "waits", "tables", "versions",
        "breaks", "serial", "holds", "fails",
    )
)  # fmt: skip
SAID_BY_NONE = ("breaks", "serial", "waits")
"""Keys for which an empty value is an expectation."""
LOG_KEYS = {"blind": bool, "level": str, "operation": str}
OUTCOMES = ("committed", "no-op", ROLLED_BACK, SILENT, "unknown", "aborted")
KNOWN = sorted(
    [*CONFLICTS, "ConcurrentModificationException", "DeltaConcurrentModificationException"]
)
"""Names of Delta's conflicts and their base classes; other engines have others."""
CLASS = re.compile(r"[A-Z][A-Za-z0-9_]*")
NAME = re.compile(r"[A-Za-z0-9_.-]+")
RELEASE = re.compile(r"[0-9][0-9A-Za-z.+_-]*")
"""Release after the name of an engine, for an expectation on that release."""
VERSION = re.compile(r"0|[1-9][0-9]{0,8}")
LIKE = 0.9
"""Similarity from which a name is taken for a typing error."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Context of expectations: transactions, and the possible states of the tables' schemas.

    ``reached`` begins with the declared schemas; ``path`` is the file of the expectations.
    """

    transactions: Mapping[str, Statement]
    reached: tuple[Tables, ...]
    path: Path | None
    postconditions: Collection[str] = ()
    """Names of the postconditions."""


def read_expectations(expect: Node, of: Expected) -> dict[str, Expectation]:
    """Return the expectations ``[expect.…]`` by protocol and release."""
    return {name: read_expectation(given, of) for name, given in _each(expect, of)}


def _each(expect: Node, of: Expected) -> Iterator[tuple[str, Node]]:
    """Yield each protocol or release with its expectations.

    A pattern (``databricks-*``) stands for all protocols that it matches, except for those with
    expectations of their own.
    """
    named = {who: _names(who, given, of.path) for who, given in expect.items()}
    own: dict[str, str] = {}
    for who, names in named.items():
        if "*" not in who:
            (name,) = names
            if name in own:
                expect.at(who).refuse(
                    f"[{expect.at(who)}] is of {name}, as [{expect.at(own[name])}]; leave one of"
                    " the two out"
                )
            own[name] = who
    for who, names in named.items():
        for name in names:
            if own.get(name, who) == who:
                yield name, expect.at(who)


def _names(who: str, given: Node, path: Path | None) -> tuple[str, ...]:
    """Return the protocols, or the release of an engine, that the key of expectations stands for.

    Others are refused, because they have no run.
    """
    known = shipped_files("protocols")
    of_release = any(
        who.startswith(f"{name}-") and RELEASE.fullmatch(who, len(name) + 1) for name in engines()
    )
    of_file = path is not None and NAME.fullmatch(who) and is_file(path.parent / f"{who}.cat")
    if of_release or (of_file and who not in known):
        return (who,)
    usual = [name for name, file in known.items() if file.parent.name != PROPOSALS]
    hints = known if who.startswith("case") else usual
    return given.meant(f"[{given}] is of no protocol", who, hints, protocol_names)


def read_expectation(given: Node, of: Expected) -> Expectation:
    """Return the expectation of one run."""
    given.table()
    given.keys(KEYS)
    classes = _by_transaction(given, "error_class", of)
    reads = _by_transaction(given, "reads", of)
    found = Expectation(
        _outcomes(given, of),
        {name: classes.get(name, str) for name in classes.value},
        _log(given, of),
        {name: _read(name, rows, of) for name, rows in reads.items()},
        {name: _emitted(rows, of) for name, rows in _by_transaction(given, "emitted", of).items()},
        _waits(given, of) if "waits" in given else None,
        _contents(given.inner("tables", {}), of),
        _versions(given, of),
        _breaks(given, of) if "breaks" in given else None,
        None if "serial" not in given else _serial(given, of),
        *read_levels(given),
    )
    _refuse_nothing(given, of)
    return found


def _refuse_nothing(given: Node, of: Expected) -> None:
    """Refuse an empty expectation, which no run can contradict."""
    for key, node in given.items():
        inner = node.nodes() if key in ("log", "versions") and isinstance(node.value, dict) else ()
        for each in (node, *inner):
            if each.value == {} and key != "waits":  # empty waits: no transaction waits
                node.refuse(
                    f"{each} is empty, and expects nothing; write what is expected, or leave it out"
                )
    if not any(node.value or key in SAID_BY_NONE for key, node in given.items()):
        name = next(iter(of.transactions), "NAME")
        given.refuse(
            f"{f'[{given}]' if given.path else 'the file'} expects nothing, so no run could be"
            " otherwise; add"
            f' outcome = {{ {name} = "committed" }}, or what else is expected'
        )


def _by_transaction(given: Node, key: str, of: Expected) -> Node:
    """Return a table whose keys are transactions."""
    inner = given.inner(key, {})
    inner.keys(of.transactions)
    return inner


def _outcomes(given: Node, of: Expected) -> dict[str, tuple[str, ...]]:
    """Return the permitted outcomes of each transaction."""
    outcomes = {}
    for name, outcome in _by_transaction(given, "outcome", of).items():
        options = outcome.value if isinstance(outcome.value, list) else [outcome.value]
        if not options or not all(isinstance(o, str) for o in options):
            outcome.refuse(
                f"{outcome} is {show_value(outcome.value)}; expected an outcome or a list of them"
            )
        for option in options:
            _refuse_no_outcome(option, outcome)
        outcomes[name] = tuple(options)
    return outcomes


def _refuse_no_outcome(option: str, outcome: Node) -> None:
    """Refuse an unknown outcome, or an error class that resembles a known conflict of Delta."""
    if option in OUTCOMES or option in KNOWN:
        return
    if CLASS.fullmatch(option.removeprefix("error:")):
        close = get_close_matches(option, KNOWN, n=1, cutoff=LIKE)
        if close:
            outcome.refuse(f"{outcome}: no outcome '{option}'; did you mean '{close[0]}'?")
    else:
        known = near(option, [*OUTCOMES, *KNOWN, "error:CLASS"])
        outcome.refuse(f"{outcome}: no outcome '{option}'{known}")


def _log(given: Node, of: Expected) -> dict[str, dict[str, Value]]:
    """Return the expected fields of the log entry of each transaction, with their types checked."""
    log = _by_transaction(given, "log", of)
    for name in log.value:
        entry = log.inner(name)
        entry.keys(LOG_KEYS)
        for key in entry.value:
            entry.get(key, LOG_KEYS[key])
    return cast("dict[str, dict[str, Value]]", log.value)


def _serial(given: Node, of: Expected) -> tuple[str, ...]:
    """Return the expected serial orders; refuse unknown and repeated transactions."""
    orders = given.strings("serial")
    for order in orders:
        names = order.split()
        for name in names:
            if name not in of.transactions:
                given.refuse(
                    f"{given}.serial names no transaction: '{name}'{near(name, of.transactions)}"
                )
        if len(set(names)) < len(names):
            given.refuse(f"{given}.serial: order '{order}' has a transaction twice")
    return orders


def _breaks(given: Node, of: Expected) -> tuple[str, ...]:
    """Return the postconditions that are expected to be violated."""
    names = given.strings("breaks")
    for name in names:
        if name not in of.postconditions:
            given.refuse(
                f"{given}.breaks names no postcondition: '{name}'{near(name, of.postconditions)}"
            )
    return names


# Rows


def _versions(given: Node, of: Expected) -> dict[int, dict[str, Rows]]:
    """Return the expected contents of the tables per version; version 0 is the initial state."""
    versions = {}
    for number, tables in given.inner("versions", {}).items():
        if not VERSION.fullmatch(number):
            tables.refuse(f"{tables} is not a version; 0 is the table at the start")
        versions[int(number)] = _contents(tables, of)
    return versions


def _contents(tables: Node, of: Expected) -> dict[str, Rows]:
    tables.table()
    tables.keys(of.reached[0])
    return {name: rows.rows(_types(name, rows.value, of)) for name, rows in tables.items()}


def _types(table: str, rows: object, of: Expected) -> list[Type]:
    """Return the types of a table's columns, as declared or altered: the first schema with this
    width.
    """
    first = rows[0] if isinstance(rows, list) and rows else None
    for schema in (tables[table] for tables in of.reached):
        if isinstance(first, list) and len(first) == len(schema.shown):
            return [schema.columns[i].type for i in schema.shown]
    return [c.type for c in of.reached[0][table].columns]


def _read(name: str, rows: Node, of: Expected) -> Rows:
    """Return the rows that a transaction is expected to read; refuse one without a query."""
    statement = of.transactions[name]
    queries = [part for part in statements_of(statement) if isinstance(part, Read)]
    if not queries:
        rows.refuse(f"{rows}: {name} reads nothing that one sees; '{statement.sql}' writes")
    return rows.bag([[item.type for item in items_of(query.query[0])] for query in queries])


def _emitted(rows: Node, of: Expected) -> Rows:
    """Return rows of any tables, in order."""
    return rows.sequence([[c.type for c in schema.columns] for schema in of.reached[0].values()])


def _waits(given: Node, of: Expected) -> dict[str, tuple[str, ...]]:
    """Return the transactions that each one waits for: a name, or a list of names."""
    waits = _by_transaction(given, "waits", of)
    found: dict[str, tuple[str, ...]] = {}
    for name, behind in waits.items():
        names = [behind.value] if isinstance(behind.value, str) else behind.value
        if not isinstance(names, list) or not all(isinstance(other, str) for other in names):
            behind.refuse(
                f"{behind} is {show_value(behind.value)}; expected a transaction or a list of them"
            )
        for other in (one for together in names for one in together.split(" and ")):
            if other not in of.transactions:
                behind.refuse(
                    f"{behind} names no transaction: '{other}'{near(other, of.transactions)}"
                )
        found[name] = tuple(names)
    return found
