"""What the model says of a race, where the statements that met are known by their texts.

The race is then a litmus test whose table begins as the real one was when the first of them began.
What the model cannot have, or what somebody did of whom no text is known, leaves no prediction,
with the reason.
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

__all__ = [
    "Prediction",
    "RaceRecord",
    "RaceWindow",
    "RacedStatement",
    "model_table_name",
    "predict",
    "predict_statement",
    "respell",
    "session_settings",
    "window_litmus",
]

VERB = re.compile(r"\s*(\w+)")
ASIDE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/"""
"""Where a name means nothing: strings and comments."""
MOST_RECORDS = "spark.sql.files.maxRecordsPerFile"
TAKEN = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
}
"""What the model takes for granted of a session."""
RACE = "the race"


@dataclass(slots=True)
class RacedStatement:
    """A statement that a race was given as a text, respelled for the model."""

    name: str
    """What the race calls it."""
    sql: str
    """As the model reads it."""
    began: int
    """The table's newest version at its first step."""
    unknown: str = ""
    """Why its text does not tell what it does."""
    seen: TransactionRun | None = None
    """How it ended, by the table's own numbers; None before."""
    active: bool = False
    """It had a transaction on the table."""

    @property
    def commits(self) -> tuple[int, ...]:
        """The versions that it made."""
        return () if self.seen is None else self.seen.commits

    def since(self, version: int) -> bool:
        """Whether it wrote the table after a version, or tried to and wrote nothing."""
        vain = self.active and self.seen is not None and not self.commits
        return max(self.commits, default=-1) > version or (vain and self.began >= version)


@dataclass(frozen=True, slots=True)
class RaceWindow:
    """A statement and those that it met."""

    statement: RacedStatement
    """The one that the prediction is about."""
    statements: tuple[RacedStatement, ...]
    """All that met, itself among them."""
    schedule: str
    """Who began and committed when."""
    base: int
    """The table's version at the beginning."""
    last: int
    """Its version at the end."""


class RaceRecord:
    """The statements of a race that are known by their texts, and its steps in the order in which
    it took them.
    """

    def __init__(self) -> None:
        self._statements: list[RacedStatement] = []
        self._steps: list[tuple[RacedStatement, str]] = []

    def add(
        self, sql: str, began: int, name: str | None = None, unknown: str = ""
    ) -> RacedStatement:
        """A statement; without a name it is called by its first word.

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
        """It takes a step of a litmus test's schedule; ``both`` is all of them."""
        self._steps.append((statement, action))

    def window(self, statement: RacedStatement, last: int) -> RaceWindow:
        """It and whoever made a version since it began, and since they began, up to a version; and
        who tried to in that time and made none, which is to be predicted as well.
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
    """What the model says of a statement and of those that it met."""

    name: str
    """The statement's."""
    run: Run
    """It counts the table's version at the beginning as 0."""
    why: tuple[str, ...]
    """The reasons for which the statement cannot commit, with the table's own numbers."""
    serial: str
    """Which serial orders of those that did commit give the table, likewise; nothing if the
    statement aborts, or met none."""
    differences: tuple[str, ...]
    """Where something else was seen."""

    @property
    def outcome(self) -> str:
        """How the model says that the statement ends."""
        return self.run.transactions[self.name].outcome

    @property
    def agrees(self) -> bool:
        """Whether all that was predicted was seen, and nothing else."""
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
    """The window as a litmus test on the table as it was at its beginning, given the rows of each
    file; ``confs`` are those of the session. IsolitmusError, one sentence, for what the model does
    not have.
    """
    test = window_litmus_without_rows(window, logged, confs)
    return replace(test, tables={logged.name: logged.schema(test.tables[logged.name], rows)})


def window_litmus_without_rows(
    window: RaceWindow, logged: LoggedTable, confs: Mapping[str, str]
) -> Litmus:
    """The window as a litmus test on an empty table: all that can be refused before any file is
    read.
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
    """What the model says of a statement in its window, of the table at a path that the race was
    given so.

    IsolitmusError, one sentence, for what leaves no prediction.
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
    """The confs of a session that the model knows, and the most rows that it puts into a file;
    NotModelled for what the model takes to be otherwise.
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
    """What the model says of a statement in its window, beside the commits of the table and its
    rows at the versions of the window.

    NotModelled if it writes other files than were written, and another statement saw them.
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
    """The serial explanation of a run with several writers, by the table's own numbers."""
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
    """Which rows share a file decides: where somebody saw files that others wrote, they must be
    those that the model writes.
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
    """The execution by the table's own numbers."""

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
    """The run with other numbers of the versions."""
    return replace(
        run,
        read_version=None if run.read_version is None else run.read_version + by,
        version=None if run.version is None else run.version + by,
        commits=tuple(version + by for version in run.commits),
    )


def model_table_name(table: str | Path) -> str:
    """What the model calls a table that is given by name or path.

    >>> model_table_name("lake.events"), model_table_name(Path("lake") / "events"), model_table_name(Path("my events"))
    ('events', 'events', 't')
    """
    last = table.name if isinstance(table, Path) else table.split(".")[-1].strip("`")
    return last if NAME.fullmatch(last) else "t"


def respell(sql: str, table: str | Path) -> str:
    """A statement with the model's name of a table where it has the one that it was given by.

    IsolitmusError where that is not told apart from another one.

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
