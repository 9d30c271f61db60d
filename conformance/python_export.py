"""Litmus tests as Python that anybody can read and change: tests for pytest, which use the fixtures
of isolitmus, or a script that needs PySpark and Delta alone.

What they compare with is the model's run, so a file that expects something else is refused. So is
what the page would not show: more of a client than its confs, raw transactions, a table that is not
there yet.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.delta.session import DELTA, LAYOUT, PACKAGES, SPEED
from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.conformance.racing.race_prediction import MOST_RECORDS
from isolitmus.model.delta.log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.errors import IsolitmusError, Refused, printable
from isolitmus.model.litmus import ClientSettings, HistoryTest
from isolitmus.model.sql.statement import Read, Vacuum
from isolitmus.specs.files.catalogue import protocol
from isolitmus.specs.files.table_ddl import table_ddl
from isolitmus.specs.sql.parameters import ALIAS, INIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Rows
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["ExportForm", "export_tests"]

ExportForm = Literal["pytest", "pyspark"]
"""What is written."""
TAKEN = frozenset(
    [
        "spark",
        "rows",
        "run",
        "delta_spark",
        "delta_race",
        "delta_level",
        "date",
        "datetime",
        "Decimal",
        "float",
        "session_with",
        "set_level",
        "Held",
        "whole",
        "expect",
        "ending",
        "main",
        "json",
        "sys",
        "tempfile",
        "threading",
        "time",
    ]
)
"""Names that the templates have for themselves."""
SIGNS = re.compile(r"\W", re.ASCII)
IMPORTS = {"date": "datetime", "datetime": "datetime", "Decimal": "decimal"}
"""What rows are made of that Python has to import, each with its module."""
PHASES = {
    "park-init": "init",
    "park-prepare": "prepare",
    "park-commit": "commit",
    "start": "commit",
}


@dataclass(frozen=True, slots=True)
class ExportedStep:
    """A line of the schedule in Python."""

    does: Literal["read", "park", "go_on", "release", "whole", "nothing"]
    """What is done."""
    name: str
    """The transaction's, as Python has it."""
    sql: str
    """Its statement, as a literal."""
    phase: str
    """Where it is held."""
    race: str
    """The race for the table that it writes, as Python has it."""
    confs: Mapping[str, str]
    """Those of its own session; without any it has the test's."""


@dataclass(frozen=True, slots=True)
class ExportedTest:
    """A litmus test under a protocol, in what the templates need."""

    name: str
    """It ends with the level."""
    title: str
    """The litmus test's."""
    schedule: str
    """As its file has it."""
    level: str
    """Of the tables; empty where they have it from Delta."""
    confs: Mapping[str, str]
    """Of the session."""
    making: Mapping[str, str]
    """The statements that make the tables, as literals, by their names."""
    filling: tuple[str, ...]
    """Those that fill them, as literals."""
    races: Mapping[str, str]
    """The tables that are written, and what Python calls the race for each."""
    steps: tuple[ExportedStep, ...]
    """In the order of the schedule."""
    outcomes: Mapping[str, str]
    """How each that writes ends."""
    reads: Mapping[str, str]
    """The rows that each reader gets, as literals."""
    tables: Mapping[str, str]
    """The rows at the end, as literals."""


def export_tests(tests: Sequence[tuple[Litmus | HistoryTest, SpecLike]], form: ExportForm) -> str:
    """The text of a file with each litmus test under its protocol. Refused for what cannot be said
    so.

    >>> from isolitmus.specs import litmus, protocol
    >>> text = export_tests([(litmus("insert-last"), protocol("delta-serializable"))], "pytest")
    >>> next(line for line in text.splitlines() if line.startswith("def test"))
    'def test_insert_last_at_serializable(delta_spark, delta_race):'
    """
    found = [_exported(test, protocol(under), form) for test, under in tests]
    names = [each.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise IsolitmusError(
            f"two tests would have the name {twice}; rename a file, or export them separately"
        )
    text = _rendered(found, form)
    if _shape(text) != _shape(_rendered([_blank(each) for each in found], form)):
        raise IsolitmusError(
            "a text of these tests would change the generated Python code; please report it"
        )
    return text


def _rendered(tests: Sequence[ExportedTest], form: ExportForm) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("isolitmus.conformance", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python, no page
    )
    environment.filters |= {"literal": _literal, "comment": printable}
    rows = ", ".join(
        text for each in tests for text in (*each.reads.values(), *each.tables.values())
    )
    used = {node.id for node in ast.walk(ast.parse(f"[{rows}]")) if isinstance(node, ast.Name)}
    imported = {
        module: [name for name in IMPORTS if name in used and IMPORTS[name] == module]
        for module in sorted({IMPORTS[name] for name in used & IMPORTS.keys()})
    }
    return environment.get_template(f"exported_{form}.py.j2").render(
        tests=tests,
        imported=imported,
        sessions=any(step.confs for each in tests for step in each.steps),
        levels=any(each.level for each in tests),
        packages=PACKAGES,
        settings={**LAYOUT, **SPEED, **DELTA},
        level_key=LEVEL_KEY,
    )


def _shape(text: str) -> str:
    """The statements of a Python file without the texts in it; a SyntaxError if it is none."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _blank(test: ExportedTest) -> ExportedTest:
    """The same test with none of the texts of its file but its names."""
    return replace(
        test,
        title="",
        schedule="",
        confs=dict.fromkeys(test.confs, ""),
        making=dict.fromkeys(test.making, '""'),
        filling=('""',) * len(test.filling),
        steps=tuple(
            replace(step, sql='""', confs=dict.fromkeys(step.confs, "")) for step in test.steps
        ),
    )


def _literal(text: str) -> str:
    r"""A text as Python's source has it.

    >>> print(_literal("it's\u2028"))
    "it's\u2028"
    """
    return printable(json.dumps(text, ensure_ascii=False))


def _exported(test: Litmus | HistoryTest, spec: Spec, form: ExportForm) -> ExportedTest:
    if isinstance(test, HistoryTest):
        raise Refused(f"{test.name}: an abstract history cannot be exported, only SQL for Delta")
    _refuse(test, form)
    predicted = run(test, spec)
    if predicted.differences:
        raise IsolitmusError(
            f"{test.name} fails its own expectation under {spec.name}: {predicted.differences[0]}"
        )
    seen = predicted.run
    for name, ended in seen.transactions.items():
        if ended.outcome in ("silent", "unknown"):
            raise Refused(f"{test.name}: the model has no prediction for {name} under {spec.name}")
    level = PROTOCOLS[spec.name]
    written = [t.target for t in test.transactions.values() if not isinstance(t, Read)]
    races = {
        table: "run" if len(set(written)) == 1 else _python(f"race_{table}") for table in written
    }
    readers = {name for name, t in test.transactions.items() if isinstance(t, Read)}
    most = next(iter(test.tables.values())).rows_per_file
    return ExportedTest(
        f"{_identifier(test.name)}_at_{_snake(level)}",
        test.title,
        str(test.schedule),
        "" if level == DEFAULT_LEVEL else level,
        {MOST_RECORDS: str(most)} if most is not None else {},
        {name: _literal(table_ddl(name, schema)) for name, schema in test.tables.items()},
        tuple(_literal(statement.sql) for statement in test.init),
        races,
        tuple(_step(test, step, races) for step in test.schedule.steps),
        {
            _python(name): ended.outcome
            for name, ended in seen.transactions.items()
            if name not in readers
        },
        {_python(name): _rows(seen.transactions[name].rows or ()) for name in test.transactions if name in readers},
        {name: _rows(rows) for name, rows in seen.tables.items()},
    )  # fmt: skip


def _refuse(test: Litmus, form: ExportForm) -> None:
    """Refused for what the templates have no words for."""
    if test.raw or test.format != "delta":
        what = "raw transactions are" if test.raw else f"format {test.format} is"
        raise Refused(f"{test.name}: {what} not exported, only SQL for Delta")
    for name, client in test.clients.items():
        if client != ClientSettings(conf=client.conf):
            raise Refused(
                f"{test.name}: {name} has more than a statement and its confs; use `isolitmus run`"
            )
    for name, schema in test.tables.items():
        if not schema.exists or schema.parquet or schema.files:
            raise Refused(
                f"{test.name}: table {name} is not a Delta table when the schedule starts"
            )
    most = {schema.rows_per_file for schema in test.tables.values()}
    if len(most) > 1:
        raise Refused(
            f"{test.name}: its tables have different limits of rows per file, and a session"
            " has one conf for that"
        )
    parked = {step.transaction for step in test.schedule.steps if step.action != "both"}
    for name, statement in test.transactions.items():
        if INIT.search(statement.sql) or ALIAS.search(statement.sql):
            raise Refused(
                f"{test.name}: {name} has a placeholder, which only `isolitmus run` replaces"
            )
        if form == "pyspark" and name in parked and isinstance(statement, Vacuum):
            raise Refused(
                f"{test.name}: {name} makes several commits, which only --pytest can hold"
            )


def _step(test: Litmus, step: Step, races: Mapping[str, str]) -> ExportedStep:
    statement, name = test.transactions[step.transaction], step.transaction
    begun = any(
        other.transaction == name
        for other in test.schedule.steps[: test.schedule.steps.index(step)]
    )
    does: Literal["read", "park", "go_on", "release", "whole", "nothing"]
    if isinstance(statement, Read):
        target = ""
        does = "nothing" if begun else "read"
    else:
        target = races[statement.target]
        does = (
            "whole"
            if step.action == "both"
            else "release"
            if step.ends
            else "go_on"
            if begun
            else "park"
        )
    phase = PHASES.get(step.action, "commit")
    confs = test.client(name).conf
    return ExportedStep(does, _python(name), _literal(statement.sql), phase, target, confs)


def _identifier(name: str) -> str:
    """The name of a file as Python and Spark take one.

    >>> _identifier("2-naïve")
    '_2_na_ve'
    """
    said = SIGNS.sub("_", name)
    return f"_{said}" if said[:1].isdigit() else said


def _python(name: str) -> str:
    """A name that Python takes, and the templates have not taken."""
    return f"{name}_" if name in TAKEN or keyword.iskeyword(name) else name


def _snake(level: str) -> str:
    """``WriteSerializable`` as ``write_serializable``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", level).lower()


def _rows(rows: Rows) -> str:
    """Rows as a literal, in the order in which the templates sort them."""
    return f"[{', '.join(_row(row) for row in sorted(rows, key=repr))}]"


def _row(row: tuple[object, ...]) -> str:
    return f"({', '.join(map(_cell, row))}{',' if len(row) == 1 else ''})"


def _cell(value: object) -> str:
    match value:
        case str():
            return _literal(value)
        case datetime():
            return f"datetime.fromisoformat({_literal(value.isoformat(' '))})"
        case date():
            return f"date({value.year}, {value.month}, {value.day})"
        case Decimal():
            return f"Decimal({_literal(str(value))})"
        case float() if not isfinite(value):
            return f"float({_literal(str(value))})"
    return repr(value)
