"""What the model says of a race, where the statements that met are known by their texts.

The race is then a litmus test whose table begins as the real one was when the first of them began. What
the model cannot have, or what somebody did of whom no text is known, leaves no prediction, with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.checker.running.execute import execute, observe
from isolitmus.checker.running.serial import MOST_WRITERS, explain_serially
from isolitmus.checker.runs import compare
from isolitmus.checker.telling.refusals import refusals
from isolitmus.checker.telling.words import refusal, serial_words
from isolitmus.conformance.likeness import MOST_ROWS, Unlike, likeness, shapes
from isolitmus.conformance.log import read_commits
from isolitmus.conformance.versions import rows_by_file, rows_by_version
from isolitmus.model.run import Run
from isolitmus.specs import protocol
from isolitmus.specs.confs import CONFS
from isolitmus.specs.litmus_file import LitmusReader
from isolitmus.specs.toml_file import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.conformance.likeness import Likeness
    from isolitmus.conformance.log import Commit
    from isolitmus.conformance.session import Session
    from isolitmus.model.execution import Event, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.values import Rows

__all__ = [
    "Account",
    "Prediction",
    "Told",
    "Window",
    "called",
    "foretell",
    "predict",
    "respelled",
    "settings",
    "story",
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
class Told:
    """A statement that a race was given as a text, respelled for the model.

    ``began`` is the table's newest version at its first step; ``unknown`` says why its text does not tell
    what it does. Once it has ended, ``seen`` is how: by the table's own numbers.
    """

    name: str
    sql: str
    began: int
    unknown: str = ""
    seen: TransactionRun | None = None

    @property
    def commits(self) -> tuple[int, ...]:
        """The versions that it made."""
        return () if self.seen is None else self.seen.commits


@dataclass(frozen=True, slots=True)
class Window:
    """A statement and those that it met (``told``, itself among them): the table's versions ``base`` to
    ``last``.
    """

    asked: Told
    told: tuple[Told, ...]
    schedule: str
    base: int
    last: int


class Account:
    """What a race was told, in the order in which it happened."""

    def __init__(self) -> None:
        self._told: list[Told] = []
        self._steps: list[tuple[Told, str]] = []

    def tell(self, sql: str, began: int, name: str | None = None, unknown: str = "") -> Told:
        """A statement; without a name it is called by its first word.

        >>> account = Account()
        >>> account.tell("DELETE FROM t", 0).name, account.tell("delete from t", 0).name
        ('delete', 'delete2')
        """
        if name is None:
            found = VERB.match(sql)
            name = base = found[1].lower() if found else "statement"
            taken = {told.name for told in self._told}
            number = 1
            while name in taken:
                number += 1
                name = f"{base}{number}"
        told = Told(name, sql, began, unknown)
        self._told.append(told)
        return told

    def step(self, told: Told, action: str) -> None:
        """It takes a step of a litmus test's schedule; ``both`` is all of them."""
        self._steps.append((told, action))

    def window(self, told: Told, last: int) -> Window:
        """It and whoever made a version since it began, and since they began, up to a version."""
        base = told.began
        while True:
            inside = [t for t in self._told if t is told or max(t.commits, default=-1) > base]
            first = min(t.began for t in inside)
            if first == base:
                break
            base = first
        words = (
            t.name if action == "both" else f"{t.name}.{action}"
            for t, action in self._steps
            if any(t is other for other in inside)
        )
        return Window(told, tuple(inside), " ".join(words), base, last)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of a statement and of those that it met.

    ``run`` counts the table's version ``base`` as 0. ``why`` are the reasons for which the statement cannot
    commit, ``serial`` says which serial orders of those that did commit give the table (nothing if the
    statement aborts, or met none), both with the table's own numbers; ``differences`` say where something
    else was seen.
    """

    name: str
    run: Run
    why: tuple[str, ...]
    serial: str
    differences: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """How the model says that the statement ends."""
        return self.run.transactions[self.name].outcome

    @property
    def agrees(self) -> bool:
        """Whether all that was predicted was seen, and nothing else."""
        return not self.differences

    def __str__(self) -> str:
        said = [*self.why, self.serial] if self.serial else [*self.why]
        if self.differences:
            head = f"NOT as predicted, where version 0 is the table's version {self.run.base}:"
            said = [*self.differences, *said]
        else:
            head = "as predicted" + (":" if said else "")
        return "\n".join([head, *(f"  {line}" for line in said)])


def story(
    window: Window, like: Likeness, rows: Mapping[str, Rows], confs: Mapping[str, str]
) -> Litmus:
    """The window as a litmus test on the table as it was at its beginning, given the rows of each file;
    ``confs`` are those of the session. IsolitmusError, one sentence, for what the model does not have.
    """
    test = plot(window, like, confs)
    return replace(test, tables={like.name: like.schema(test.tables[like.name], rows)})


def plot(window: Window, like: Likeness, confs: Mapping[str, str]) -> Litmus:
    """The same on an empty table: all that can be refused before any file is read."""
    names = [told.name for told in window.told]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Unlike(f"two statements are called {twice}")
    for told in window.told:
        if told.unknown:
            raise Unlike(told.unknown)
    given = {told.name: told.sql for told in window.told}
    document = {
        "title": "A race",
        "schedule": window.schedule,
        "tables": {like.name: like.declared},
        "transactions": {
            name: {"sql": sql, "conf": dict(confs)} if confs else sql for name, sql in given.items()
        },
    }
    return LitmusReader(RACE, "").litmus(document, RACE, "", None)


def foretell(session: Session, window: Window, given: str | Path, table: Path) -> Prediction:
    """What the model says of a statement in its window, of the table at a path that the race was given so.

    IsolitmusError, one sentence, for what leaves no prediction.
    """
    from pyspark.errors import PySparkException

    commits = read_commits(table)
    made = {version for other in window.told for version in other.commits}
    for commit in commits:
        if window.base < commit.version <= window.last and commit.version not in made:
            raise Unlike(f"{commit.words} is of no statement that the race was given as a text")
    before = [commit for commit in commits if commit.version <= window.base]
    confs, rows_per_file = settings(session.spark, given)
    like = likeness(before, called(given), rows_per_file)
    plot(window, like, confs)
    if like.rows > MOST_ROWS:
        raise Unlike(f"it has {like.rows} rows, and the model is for {MOST_ROWS} at most")
    try:
        rows = rows_by_file(session, table, window.base, like.files)
        versions = rows_by_version(session, table, window.base, window.last)
    except PySparkException as error:
        raise Unlike(
            f"its files cannot be read any more: {error.getCondition() or type(error).__name__}"
        ) from None
    test = story(window, like, rows, confs)
    return predict(test, window, like, commits, versions)


def settings(spark: Any, given: str | Path) -> tuple[dict[str, str], int | None]:
    """The confs of a session that the model knows, and the most rows that it puts into a file; Unlike for
    what the model takes to be otherwise.
    """
    for key, wanted in TAKEN.items():
        value = spark.conf.get(key, wanted)
        if value.lower() != wanted.lower():
            raise Unlike(f"{key} is {value}, and the model knows Spark with {wanted}")
    if isinstance(given, str) and spark.catalog.isCached(given):
        raise Unlike(f"{given} is cached")
    said = {key: spark.conf.get(key, None) for key in CONFS}
    most = int(spark.conf.get(MOST_RECORDS, "0"))
    return {key: value for key, value in said.items() if value is not None}, most or None


def predict(
    test: Litmus,
    window: Window,
    like: Likeness,
    commits: Sequence[Commit],
    versions: Mapping[int, Rows],
) -> Prediction:
    """What the model says of a statement in its window, beside the commits of the table and its rows at
    the versions of the window.

    Unlike if it writes other files than were written, and another statement saw them.
    """
    spec = protocol(like.protocol)
    execution = execute(test, spec)
    _refuse_layout(test, window, like, commits, execution)
    predicted = replace(observe(test, execution, spec.name), base=window.base)
    found = refusals(_numbered(execution, window.base), spec).get(window.asked.name)
    seen = Run(
        test.name,
        "delta",
        "",
        spec.name,
        window.base,
        {t.name: _shifted(t.seen, -window.base) for t in window.told if t.seen is not None},
        tuple({like.name: versions[k]} for k in range(window.base, window.last + 1)),
    )
    why = () if found is None else tuple(refusal(found))
    serial = "" if found is not None else _serial(test, predicted)
    return Prediction(window.asked.name, predicted, why, serial, compare(predicted, seen))


def _serial(test: Litmus, run: Run) -> str:
    """The serial explanation of a run with several writers, by the table's own numbers."""
    if not 1 < len(run.versions) - 1 <= MOST_WRITERS:
        return ""
    found = explain_serially(test, run)
    return serial_words(found.orders, tuple(k + run.base for k in found.unexplained))


def _refuse_layout(
    test: Litmus,
    window: Window,
    like: Likeness,
    commits: Sequence[Commit],
    execution: Execution,
) -> None:
    """Which rows share a file decides: where somebody saw files that others wrote, they must be those that
    the model writes.
    """
    by_name = {event.name: event for event in execution.events}
    adds = {commit.version: commit.adds for commit in commits}
    schema = test.tables[like.name]
    for writer in window.told:
        for reader in window.told:
            if not writer.commits or reader.began < min(writer.commits):
                continue
            wrote = [like.shape(add) for version in writer.commits for add in adds[version]]
            modelled = shapes(schema, by_name[writer.name].effect.adds)
            if sorted(map(repr, wrote)) != sorted(map(repr, modelled)):
                raise Unlike(
                    f"{writer.name} wrote {_files(len(wrote))} that {reader.name} saw, and the model"
                    f" writes {_files(len(modelled))} otherwise filled"
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


def called(table: str | Path) -> str:
    """What the model calls a table that is given by name or path.

    >>> called("lake.events"), called(Path("lake") / "events"), called(Path("my events"))
    ('events', 'events', 't')
    """
    last = table.name if isinstance(table, Path) else table.split(".")[-1].strip("`")
    return last if NAME.fullmatch(last) else "t"


def respelled(sql: str, table: str | Path) -> str:
    """A statement with the model's name of a table where it has the one that it was given by.

    IsolitmusError where that is not told apart from another one.

    >>> respelled("DELETE FROM lake.events WHERE name = 'lake.events'", "lake.events")
    "DELETE FROM events WHERE name = 'lake.events'"
    >>> respelled("DELETE FROM delta.`/lake/events`", Path("/lake/events"))
    'DELETE FROM events'
    """
    name = called(table)
    parts = ["delta", str(table)] if isinstance(table, Path) else table.split(".")
    parts = [part.strip("`") for part in parts]
    if parts == [name]:
        return sql
    whole = r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in parts)
    names = rf"{ASIDE}|(?<![\w.`])(?:(?P<whole>{whole})|(?P<last>`?{name}`?)(?!\s*\.))(?![\w`])"

    def spelled(found: re.Match[str]) -> str:
        if found["last"]:
            raise Unlike(f"'{sql}' says {found['last']}, and the race was given {'.'.join(parts)}")
        return name if found["whole"] else found[0]

    return re.sub(names, spelled, sql, flags=re.IGNORECASE | re.DOTALL)
