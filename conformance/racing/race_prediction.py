"""Prediction of races by the model, for statements whose texts are known.

The race becomes a litmus test. Its table starts in the state that the real one had when the first
of the concurrent statements began. There is no prediction, but a reason, if the model does not
support something, or if a commit comes from code whose text is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.commit_loop import abort_violations, execute, observed_run
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.serial_orders import MOST_WRITERS, explain_serially
from isolitmus.checker.render.verdicts import refusal_words, serial_words
from isolitmus.conformance.delta.logged_table import MOST_ROWS, file_shapes, read_logged_table
from isolitmus.conformance.delta.table_versions import rows_by_file, rows_by_version
from isolitmus.model.display import ReadableRepr
from isolitmus.model.run import Run
from isolitmus.specs import protocol
from isolitmus.specs.files.logged_tables import NotModelled
from isolitmus.specs.files.table_litmus import build_litmus
from isolitmus.specs.files.toml_reader import NAME, Node, Source
from isolitmus.specs.logs.delta_log import commits_since
from isolitmus.specs.sql.configuration import CONFS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.conformance.delta.logged_table import LoggedTable
    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.delta.log import LogCommit
    from isolitmus.model.execution import Event, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.sql.values import Rows

VERB = re.compile(r"\s*(\w+)")
ASIDE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/"""
"""Pattern of strings and comments, in which a name has no meaning."""
MOST_RECORDS = "spark.sql.files.maxRecordsPerFile"
TAKEN = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
}
"""Values of session confs that the model assumes."""
RACE = "the race"


@dataclass(slots=True)
class RacedStatement:
    """Statement that a race got as text, with the table's name in the model."""

    name: str
    """Name in the race."""
    sql: str
    """Text for the model."""
    began: int
    """Newest version of the table at its first step."""
    unknown: str = ""
    """Reason why its text does not determine its effect."""
    seen: TransactionRun | None = None
    """Its run, in the table's own version numbers; None before its end."""
    active: bool = False
    """True if it had a transaction on the table."""

    @property
    def commits(self) -> tuple[int, ...]:
        """Versions that it committed."""
        return () if self.seen is None else self.seen.commits

    def since(self, version: int) -> bool:
        """Return whether it wrote the table after a version, or tried to and wrote nothing."""
        vain = self.active and self.seen is not None and not self.commits
        return max(self.commits, default=-1) > version or (vain and self.began >= version)


@dataclass(frozen=True, slots=True)
class RaceWindow:
    """Statement with its concurrent statements."""

    statement: RacedStatement
    """Statement that the prediction is about."""
    statements: tuple[RacedStatement, ...]
    """All statements of the window, including that one."""
    schedule: str
    """Schedule of their starts and commits."""
    base: int
    """Version of the table at the start."""
    last: int
    """Version of the table at the end."""


class RaceRecord:
    """Statements of a race that are known by their texts, and the steps of the race in order."""

    def __init__(self) -> None:
        self._statements: list[RacedStatement] = []
        self._steps: list[tuple[RacedStatement, str]] = []

    def add(
        self, sql: str, began: int, name: str | None = None, unknown: str = ""
    ) -> RacedStatement:
        """Add a statement and return it; by default its name is its first word.

        Examples
        --------
        >>> record = RaceRecord()
        >>> record.add("DELETE FROM t", 0).name, record.add("delete from t", 0).name
        ('delete', 'delete2')
        """
        if name is None:
            found = VERB.match(sql)
            name = base = found[1].lower() if found else "statement"
            taken = {statement.name for statement in self._statements}
            number = 1
            while name in taken:
                number += 1
                name = f"{base}{number}"
        statement = RacedStatement(name, sql, began, unknown)
        self._statements.append(statement)
        return statement

    def step(self, statement: RacedStatement, action: str) -> None:
        """Record a step of a statement, as in a litmus test's schedule; ``both``: all steps."""
        self._steps.append((statement, action))

    def window(self, statement: RacedStatement, last: int) -> RaceWindow:
        """Return the window of a statement up to a version.

        It has every statement that committed a version since this one began, or since one of those
        began, and every statement that tried to in that time and committed none, which is predicted
        as well.
        """
        base = statement.began
        while True:
            inside = [t for t in self._statements if t is statement or t.since(base)]
            first = min(t.began for t in inside)
            if first == base:
                break
            base = first
        words = (
            t.name if action == "both" else f"{t.name}.{action}"
            for t, action in self._steps
            if any(t is other for other in inside)
        )
        return RaceWindow(statement, tuple(inside), " ".join(words), base, last)


@dataclass(frozen=True, slots=True)
class Prediction(ReadableRepr):
    """Prediction for a statement and its concurrent statements."""

    name: str
    """Name of the statement."""
    run: Run
    """Predicted run; its version 0 is the table's version at the start."""
    why: tuple[str, ...]
    """Reasons why the statement aborts, in the table's own version numbers."""
    serial: str
    """Serial orders of the committed statements that give the final table.

    They are in the table's own version numbers; empty if the statement aborts or has no concurrent
    statements.
    """
    differences: tuple[str, ...]
    """Differences between the prediction and the observed run."""

    @property
    def outcome(self) -> str:
        """Predicted outcome of the statement."""
        return self.run.transactions[self.name].outcome

    @property
    def agrees(self) -> bool:
        """True if the observed run equals the prediction."""
        return not self.differences

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        said = [*self.why, self.serial] if self.serial else [*self.why]
        if self.differences:
            head = (
                "FAILED: not as predicted (version 0 below is the table's version"
                f" {self.run.base}):"
            )
            said = [*self.differences, *said]
        else:
            head = "as predicted" + (":" if said else "")
        return "\n".join([head, *(f"  {line}" for line in said)])


def window_litmus(
    window: RaceWindow, logged: LoggedTable, rows: Mapping[str, Rows], confs: Mapping[str, str]
) -> Litmus:
    """Return the window as a litmus test on the table at its start.

    Parameters
    ----------
    window : RaceWindow
        Statements and schedule.
    logged : LoggedTable
        Table at the start of the window.
    rows : mapping of str to Rows
        Rows of each data file, by path.
    confs : mapping of str to str
        Confs of the session.

    Raises
    ------
    IsolitmusError
        The model does not support something; the message is one sentence.
    """
    test = window_litmus_without_rows(window, logged, confs)
    return replace(test, tables={logged.name: logged.schema(test.tables[logged.name], rows)})


def window_litmus_without_rows(
    window: RaceWindow, logged: LoggedTable, confs: Mapping[str, str]
) -> Litmus:
    """Return the window as a litmus test on an empty table.

    It raises whatever can be rejected before any file is read.
    """
    names = [statement.name for statement in window.statements]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise NotModelled(f"two statements have the name {twice}")
    for statement in window.statements:
        if statement.unknown:
            raise NotModelled(statement.unknown)
    given = {statement.name: statement.sql for statement in window.statements}
    document = {
        "title": "A race",
        "schedule": window.schedule,
        "tables": {logged.name: logged.declared},
        "transactions": {
            name: {"sql": sql, "conf": dict(confs)} if confs else sql for name, sql in given.items()
        },
    }
    return build_litmus(Node(document, "", Source(RACE)), RACE)


def predict_statement(
    session: Session, window: RaceWindow, given: str | Path, table: Path
) -> Prediction:
    """Return the prediction for a statement in its window.

    Parameters
    ----------
    session : Session
        Session with Delta.
    window : RaceWindow
        Statement with its concurrent statements.
    given : str or Path
        Table as it was passed to the race.
    table : Path
        Path of the table.

    Raises
    ------
    IsolitmusError
        There is no prediction; the message is one sentence.
    """
    from pyspark.errors import PySparkException

    commits = commits_since(table)
    made = {version for other in window.statements for version in other.commits}
    for commit in commits:
        if window.base < commit.version <= window.last and commit.version not in made:
            raise NotModelled(
                f"{commit.words} was not committed by a statement that the race got as SQL text"
            )
    before = [commit for commit in commits if commit.version <= window.base]
    confs, rows_per_file = session_settings(session.spark, given)
    logged = read_logged_table(before, model_table_name(given), rows_per_file)
    window_litmus_without_rows(window, logged, confs)
    if logged.rows > MOST_ROWS:
        raise NotModelled(
            f"the table has {logged.rows} rows; the model supports at most {MOST_ROWS}"
        )
    try:
        rows = rows_by_file(session, table, window.base, logged.files)
        versions = rows_by_version(session, table, window.base, window.last)
    except PySparkException as error:
        raise NotModelled(
            "files of the table can no longer be read:"
            f" {error.getCondition() or type(error).__name__}"
        ) from None
    test = window_litmus(window, logged, rows, confs)
    return predict(test, window, logged, commits, versions)


def session_settings(spark: Any, given: str | Path) -> tuple[dict[str, str], int | None]:
    """Return the confs of a session that the model knows, and the maximum number of rows per file.

    Raises NotModelled if the session differs from what the model assumes.
    """
    for key, wanted in TAKEN.items():
        value = spark.conf.get(key, wanted)
        if value.lower() != wanted.lower():
            raise NotModelled(f"{key} is {value}; the model supports only {wanted}")
    if isinstance(given, str) and spark.catalog.isCached(given):
        raise NotModelled(f"table {given} is cached")
    said = {key: spark.conf.get(key, None) for key in CONFS}
    most = int(spark.conf.get(MOST_RECORDS, "0"))
    return {key: value for key, value in said.items() if value is not None}, most or None


def predict(
    test: Litmus,
    window: RaceWindow,
    logged: LoggedTable,
    commits: Sequence[LogCommit],
    versions: Mapping[int, Rows],
) -> Prediction:
    """Return the prediction for a statement in its window.

    Parameters
    ----------
    test : Litmus
        Window as a litmus test.
    window : RaceWindow
        Statement with its concurrent statements.
    logged : LoggedTable
        Table at the start of the window.
    commits : sequence of LogCommit
        Commits of the table.
    versions : mapping of int to Rows
        Rows of the table at each version of the window.

    Raises
    ------
    NotModelled
        A statement wrote other files than the model predicts, and another statement saw them.
    """
    spec = protocol(logged.protocol)
    execution = execute(test, spec)
    _refuse_layout(test, window, logged, commits, execution)
    predicted = replace(observed_run(test, execution, spec.name), base=window.base)
    found = abort_violations(_numbered(execution, window.base), spec).get(window.statement.name)
    seen = Run(
        test.name,
        "delta",
        "",
        spec.name,
        window.base,
        {t.name: _shifted(t.seen, -window.base) for t in window.statements if t.seen is not None},
        tuple({logged.name: versions[k]} for k in range(window.base, window.last + 1)),
    )
    why = () if found is None else tuple(refusal_words(found))
    serial = "" if found is not None else _serial(test, predicted)
    return Prediction(
        window.statement.name, predicted, why, serial, run_differences(predicted, seen)
    )


def _serial(test: Litmus, run: Run) -> str:
    """Return the serial explanation of a run with several writers, in the table's own numbers."""
    if not 1 < len(run.versions) - 1 <= MOST_WRITERS:
        return ""
    found = explain_serially(test, run)
    return serial_words(found.orders, tuple(k + run.base for k in found.unexplained))


def _refuse_layout(
    test: Litmus,
    window: RaceWindow,
    logged: LoggedTable,
    commits: Sequence[LogCommit],
    execution: Execution,
) -> None:
    """Raise NotModelled if a statement saw files of another one that differ from the model's.

    The layout of rows in files decides which commits conflict.
    """
    by_name = {event.name: event for event in execution.events}
    adds = {commit.version: commit.adds for commit in commits}
    schema = test.tables[logged.name]
    for writer in window.statements:
        for reader in window.statements:
            if not writer.commits or reader.began < min(writer.commits):
                continue
            wrote = [logged.shape(add) for version in writer.commits for add in adds[version]]
            modelled = file_shapes(schema, by_name[writer.name].effect.adds)
            if sorted(map(repr, wrote)) != sorted(map(repr, modelled)):
                raise NotModelled(
                    f"{writer.name} wrote {_files(len(wrote))}, which {reader.name} saw, but"
                    f" the model writes {_files(len(modelled))} with other contents"
                )


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _numbered(execution: Execution, base: int) -> Execution:
    """Return the execution in the table's own version numbers."""

    def moved(event: Event) -> Event:
        reads = tuple(
            read if read.version is None else replace(read, version=read.version + base)
            for read in event.effect.reads
        )
        return replace(
            event,
            effect=replace(event.effect, reads=reads),
            read_version=event.read_version + base,
            version=None if event.version is None else event.version + base,
        )

    return replace(execution, events=tuple(map(moved, execution.events)))


def _shifted(run: TransactionRun, by: int) -> TransactionRun:
    """Return the run with version numbers shifted by ``by``."""
    return replace(
        run,
        read_version=None if run.read_version is None else run.read_version + by,
        version=None if run.version is None else run.version + by,
        commits=tuple(version + by for version in run.commits),
    )


def model_table_name(table: str | Path) -> str:
    """Return the model's name of a table that is given by name or path.

    Examples
    --------
    >>> [model_table_name(table) for table in ("lake.events", Path("lake") / "events", Path("a b"))]
    ['events', 'events', 't']
    """
    last = table.name if isinstance(table, Path) else table.split(".")[-1].strip("`")
    return last if NAME.fullmatch(last) else "t"


def respell(sql: str, table: str | Path) -> str:
    """Return a statement with the model's name of the table in place of its real name.

    Raises IsolitmusError if the table cannot be distinguished from another one.

    Examples
    --------
    >>> respell("DELETE FROM lake.events WHERE name = 'lake.events'", "lake.events")
    "DELETE FROM events WHERE name = 'lake.events'"
    >>> respell("DELETE FROM delta.`/lake/events`", Path("/lake/events"))
    'DELETE FROM events'
    """
    name = model_table_name(table)
    parts = ["delta", str(table)] if isinstance(table, Path) else table.split(".")
    parts = [part.strip("`") for part in parts]
    if parts == [name]:
        return sql
    whole = r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in parts)
    names = rf"{ASIDE}|(?<![\w.`])(?:(?P<whole>{whole})|(?P<last>`?{name}`?)(?!\s*\.))(?![\w`])"

    def spelled(found: re.Match[str]) -> str:
        if found["last"]:
            raise NotModelled(
                f"'{sql}' names {found['last']}, but the race is for {'.'.join(parts)}"
            )
        return name if found["whole"] else found[0]

    return re.sub(names, spelled, sql, flags=re.IGNORECASE | re.DOTALL)
