"""Child process that runs functions of PySpark on empty tables and tells what they do.

It is started as ``python -m isolitmus.jobs.recording.child REQUEST``. The request names
the functions and the tables; each record is a line of JSON in the file that it names.
"""

from __future__ import annotations

import dis
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import traceback
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.session import open_session
from isolitmus.jobs.readers.function_targets import read_function_target
from isolitmus.jobs.readers.sql_jobs import split_statements
from isolitmus.jobs.recording.conflicts import caused_by_conflict
from isolitmus.jobs.recording.file_wall import build_wall
from isolitmus.jobs.recording.path_choices import MOST_PATHS, PathChoices
from isolitmus.jobs.recording.recorder import Recorder
from isolitmus.jobs.recording.run_record import RunTables
from isolitmus.jobs.recording.sandbox import ForbiddenEffectError, guard_machine
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.specs.files.table_ddl import read_ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import CodeType

    from isolitmus.conformance.delta.session import Session
    from isolitmus.jobs.readers.function_targets import FunctionTarget

IDENTITY = re.compile(r"IS_OP|.*IF_(NOT_)?NONE")
"""Instructions of Python that compare by identity, in any version."""
TABLE = re.compile(r"(?i)\bTABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?((?:[\w`-]+\.)*[\w`-]+)")
LOCATION = re.compile(r"(?i)(?<!\s)\s*+\bLOCATION\s+('[^']*'|\"[^\"]*\")")


def run_request(request: str) -> int:
    """Run the functions of a request; return the exit status."""
    given = json.loads(request)
    with Path(given["output"]).open("a", encoding="utf-8") as output:

        def tell(record: Mapping[str, Any]) -> None:
            output.write(json.dumps(record) + "\n")
            output.flush()

        sys.dont_write_bytecode = True
        build_wall([Path(tempfile.gettempdir()), *_ivy_folders()], signals=True)
        _let_workers_import([read_function_target(each).path for each in given["functions"]])
        try:
            with open_session("local[2]") as session:
                build_wall([session.directory])
                for number, each in enumerate(given["functions"]):
                    target, choices = read_function_target(each), PathChoices()
                    for path in range(MOST_PATHS):
                        tell({"kind": "path", "line": 0, "function": number, "path": path})
                        record_function(session, target, given["ddl"], tell, choices)
                        more = choices.advance()
                        tell({"kind": "ended", "line": 0, "more": more})
                        if not more:
                            break
        except IsolitmusError as error:
            tell({"kind": "failed", "line": 0, "problem": str(error), "status": error.status})
    return 0


def _ivy_folders() -> list[Path]:
    """Return the folders into which Spark downloads its packages."""
    found = [*Path.home().glob(".ivy2*")]
    if not found:
        found = [Path.home() / ".ivy2.5.2"]
        with suppress(OSError):
            found[0].mkdir()
    return found


def _let_workers_import(files: Sequence[Path]) -> None:
    """Let the Python processes that Spark starts import the modules beside these files.

    They have no current folder to import from (`open_gateway`).
    """
    folders = [str(path.resolve().parent) for path in files]
    own = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*folders, *([own] if own else [])]))


def record_function(
    session: Session,
    target: FunctionTarget,
    ddl: str,
    tell: Callable[[dict[str, Any]], None],
    choices: PathChoices | None = None,
) -> None:
    """Run a function on empty tables and tell what it does; its exception is a record as well.

    With ``choices``, comparisons of numbers of rows have these outcomes.

    Raises
    ------
    LitmusError
        If Spark does not create the tables.
    """
    spark = session.fresh({"spark.sql.sources.default": "delta"})
    path = target.path.resolve()
    with _as_default(session, spark):
        there = {*_tables(spark)}
        tables = _create(spark, ddl)
        tell({"kind": "began", "line": 0})
        recorder = Recorder(
            session, spark, tables, path, tell,
            _tests_identity(compile(path.read_text("utf-8"), str(path), "exec")),
            choices or PathChoices(),
        )  # fmt: skip
        terminal = _Terminal(recorder.tokens.plain)
        sys.path.insert(0, str(path.parent))
        before, folder = set(sys.modules), tempfile.tempdir
        tempfile.tempdir = str(session.directory)
        recorder.conflicts.base = sys._getframe()  # noqa: SLF001 - no frame above is the program's
        try:
            with (
                recorder.recording(),
                redirect_stdout(terminal),
                redirect_stderr(terminal),
                guard_machine(session.directory),
            ):
                _call(path, target, spark)
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            tell(_raised(error, path))
        finally:
            tempfile.tempdir = folder
            sys.path.remove(str(path.parent))
            for name in set(sys.modules) - before:
                if _is_in(getattr(sys.modules[name], "__file__", None), path.parent):
                    del sys.modules[name]
            _drop(spark, there)


def _call(path: Path, target: FunctionTarget, spark: Any) -> None:
    """Import the file of a function and call it with its arguments and the session."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    positional, named = target.arguments(spark)
    getattr(module, target.function)(*positional, **named)


def _raised(error: BaseException, path: Path) -> dict[str, Any]:
    """Return the record of an exception: the line of the function's file, and its first line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one.lineno for one in frames if one.filename == str(path)]
    said = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    forbidden = isinstance(error, ForbiddenEffectError)
    return {
        "kind": "stopped" if caused_by_conflict(error) else "raised",
        "line": (own[-1] if own else 0) or 0,
        "problem": said if forbidden else f"it raised {name}{f': {said}' if said else ''}",
        "name": name,
    }


class _Terminal(io.TextIOBase):
    """Output of a function, which is not shown."""

    def __init__(self, take: Callable[[str], str]) -> None:
        self._take = take

    def write(self, text: str) -> int:
        """Take the tokens of traced values in a text."""
        self._take(text)
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True


@contextmanager
def _as_default(session: Session, spark: Any) -> Iterator[None]:
    """Let ``SparkSession.builder.getOrCreate()`` return this session."""
    from pyspark.sql import SparkSession

    before = SparkSession._instantiatedSession  # noqa: SLF001 - PySpark has no public name
    SparkSession._instantiatedSession = spark  # noqa: SLF001
    session.activate(spark)
    try:
        yield
    finally:
        SparkSession._instantiatedSession = before  # noqa: SLF001


def _create(spark: Any, ddl: str) -> RunTables:
    """Create the tables of the DDL in the warehouse of the run."""
    names: dict[str, str] = {}
    paths: dict[str, str] = {}
    numbered: set[str] = set()
    for text in split_statements(ddl):
        declared = read_ddl(text, "the DDL", source=True)
        found = TABLE.search(text)
        assert found is not None
        given = found[1].replace("`", "").lower()
        parts = given.split(".")[-2:]
        made, location = _inside(text)
        whole = ".".join(parts if len(parts) > 1 else ("default", *parts))
        names[whole] = declared.name
        if " AS IDENTITY" in declared.table["columns"]:
            numbered.add(declared.name)
        if location:
            paths[location.removeprefix("file:").rstrip("/")] = whole
        try:
            if len(parts) > 1:
                spark.sql(f"CREATE DATABASE IF NOT EXISTS `{parts[0]}`")
            catalog = f"{parts[0]}." if len(parts) > 1 else ""
            spark.sql(made[: found.start(1)] + catalog + parts[-1] + made[found.end(1) :])
        except Exception as error:  # noqa: BLE001 - Spark's own, of any class
            said = str(error).strip().partition("\n")[0]
            raise LitmusError(f"Spark does not create the table {declared.name}: {said}") from None
    return RunTables(names, paths, frozenset(numbered))


def _inside(text: str) -> tuple[str, str]:
    """Return a CREATE TABLE without its LOCATION, and the path."""
    found = LOCATION.search(text)
    if found is None:
        return text, ""
    return text[: found.start()] + text[found.end() :], found[1][1:-1]


def _tables(spark: Any) -> Iterator[tuple[str, str]]:
    """Yield each table of each database, and temporary views with an empty database."""
    for (database,) in spark.sql("SHOW DATABASES").collect():
        for row in spark.sql(f"SHOW TABLES IN `{database}`").collect():
            yield ("" if row.isTemporary else database), row.tableName


def _drop(spark: Any, kept: Collection[tuple[str, str]]) -> None:
    """Drop the tables and views that a run has made."""
    spark.sql("USE default")
    for database, name in {*_tables(spark)} - {*kept}:
        if database:
            spark.sql(f"DROP TABLE IF EXISTS `{database}`.`{name}`")
        else:
            spark.catalog.dropTempView(name)


def _tests_identity(code: CodeType) -> bool:
    """Return whether a program compares by identity, as ``is None`` does."""
    if any(IDENTITY.fullmatch(one.opname) for one in dis.get_instructions(code)):
        return True
    return any(_tests_identity(one) for one in code.co_consts if hasattr(one, "co_code"))


def _is_in(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).is_relative_to(folder)


if __name__ == "__main__":
    sys.exit(run_request(sys.argv[1]))
