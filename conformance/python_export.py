"""Export of litmus tests as Python: tests for pytest, or a script for PySpark and Delta.

The tests for pytest use the fixtures of isolitmus. The expected results are those of the model's
run, so a file with another expectation is rejected. Also rejected is what the Python code would not
show: clients with more than confs, raw transactions, and tables that do not exist at the start.
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
from isolitmus.specs.files.spec_catalogue import protocol
from isolitmus.specs.files.table_ddl import table_ddl
from isolitmus.specs.sql.parameters import ALIAS, INIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Rows
    from isolitmus.specs.files.spec_catalogue import SpecLike

ExportForm = Literal["pytest", "pyspark"]
"""Form of the exported file."""
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
"""Names that the templates use themselves."""
SIGNS = re.compile(r"\W", re.ASCII)
IMPORTS = {"date": "datetime", "datetime": "datetime", "Decimal": "decimal"}
"""Names in rows that Python has to import, each with its module."""
PHASES = {
    "park-init": "init",
    "park-prepare": "prepare",
    "park-commit": "commit",
    "start": "commit",
}


@dataclass(frozen=True, slots=True)
class ExportedStep:
    """Step of the schedule in Python."""

    does: Literal["read", "park", "go_on", "release", "whole", "nothing"]
    """Action of the step."""
    name: str
    """Name of the transaction in Python."""
    sql: str
    """Statement of the transaction, as a Python literal."""
    phase: str
    """Phase at which it is held."""
    race: str
    """Python name of the race for the table that it writes."""
    confs: Mapping[str, str]
    """Confs of its own session; if empty, it uses the test's session."""


@dataclass(frozen=True, slots=True)
class ExportedTest:
    """Litmus test under a protocol, in the form that the templates need."""

    name: str
    """Name of the test, which ends with the level."""
    title: str
    """Title of the litmus test."""
    schedule: str
    """Schedule in the form of the litmus file."""
    level: str
    """Isolation level of the tables; empty for Delta's default."""
    confs: Mapping[str, str]
    """Confs of the session."""
    making: Mapping[str, str]
    """Statements that create the tables, as Python literals, by table name."""
    filling: tuple[str, ...]
    """Statements that fill the tables, as Python literals."""
    races: Mapping[str, str]
    """Written tables, each with the Python name of its race."""
    steps: tuple[ExportedStep, ...]
    """Steps in the order of the schedule."""
    outcomes: Mapping[str, str]
    """Outcome of each writer."""
    reads: Mapping[str, str]
    """Rows of each reader, as Python literals."""
    tables: Mapping[str, str]
    """Final rows of each table, as Python literals."""


def export_tests(tests: Sequence[tuple[Litmus | HistoryTest, SpecLike]], form: ExportForm) -> str:
    """Return the text of a Python file with each litmus test under its protocol.

    Parameters
    ----------
    tests : sequence of (Litmus or HistoryTest, SpecLike)
        Litmus tests and their protocols.
    form : {"pytest", "pyspark"}
        Form of the file.

    Returns
    -------
    str
        Text of the file.

    Raises
    ------
    Refused
        A test cannot be exported.
    IsolitmusError
        Two tests would have the same name, or a test fails its own expectation.

    Examples
    --------
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
    """Render the exported tests with the form's template, importing only the types they use."""
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
    """Return the statements of Python code without its strings; raise SyntaxError if invalid."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _blank(test: ExportedTest) -> ExportedTest:
    """Return the test without the texts of its file, except names."""
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
    r"""Return a text as a literal in Python's source.

    Examples
    --------
    >>> print(_literal("it's\u2028"))
    "it's\u2028"
    """
    return printable(json.dumps(text, ensure_ascii=False))


def _exported(test: Litmus | HistoryTest, spec: Spec, form: ExportForm) -> ExportedTest:
    """Return a test for the template, with the model's prediction; raise Refused if it has none."""
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
        {
            _python(name): _rows(seen.transactions[name].rows or ())
            for name in test.transactions
            if name in readers
        },
        {name: _rows(rows) for name, rows in seen.tables.items()},
    )  # fmt: skip


def _refuse(test: Litmus, form: ExportForm) -> None:
    """Raise Refused for what the templates cannot express."""
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
    """Return a step for the template: action on the statement, phase, table and settings."""
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
    """Return the name of a file as an identifier for Python and Spark.

    Examples
    --------
    >>> _identifier("2-naïve")
    '_2_na_ve'
    """
    said = SIGNS.sub("_", name)
    return f"_{said}" if said[:1].isdigit() else said


def _python(name: str) -> str:
    """Return a name that is valid in Python and that the templates do not use."""
    return f"{name}_" if name in TAKEN or keyword.iskeyword(name) else name


def _snake(level: str) -> str:
    """Return ``WriteSerializable`` as ``write_serializable``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", level).lower()


def _rows(rows: Rows) -> str:
    """Return rows as a literal, in the order in which the templates sort them."""
    return f"[{', '.join(_row(row) for row in sorted(rows, key=repr))}]"


def _row(row: tuple[object, ...]) -> str:
    return f"({', '.join(map(_cell, row))}{',' if len(row) == 1 else ''})"


def _cell(value: object) -> str:
    """Return a value as a Python expression."""
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
