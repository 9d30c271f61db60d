"""Statements that a function gives to Spark as SQL, and the SQL of its DataFrames."""

from __future__ import annotations

import datetime as dt
import re
from itertools import count
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.recording.plan_export import PlanExport
from isolitmus.jobs.recording.traced_values import TOKEN, TracedValue, plain_value
from isolitmus.jobs.sql.job_statements import with_views
from isolitmus.jobs.sql.spark_plans import PlanWriter
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.configuration import JOB_CONFS
from isolitmus.specs.sql.parameters import PIECE, parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.jobs.recording.run_record import RunRecord

SPARK = "org.apache.spark.sql.catalyst.plans.logical."
COMMANDS = (
    f"{SPARK}Command",
    f"{SPARK}ParsedStatement",
    f"{SPARK}InsertIntoDir",
    f"{SPARK}CompoundPlanStatement",
)
"""Classes of plans that do something when they are analyzed."""
VERBS = re.compile(r"Insert|Create|Replace|Delete|Update|Merge|Drop|Alter|Call|Compound|Execute")
"""Names of classes that do something, whatever they are derived from."""
WRITES = ("InsertIntoStatement", "MergeIntoTable", "UpdateTable", "DeleteFromTable")
"""Statements that write rows; executed on the empty tables."""
IN_CATALOG = (
    "CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect", "DropTable",
    "TruncateTable", "AddColumns", "DropColumns", "RenameColumn", "AlterColumn", "AlterColumns",
    "ReplaceColumns", "SetTableProperties", "UnsetTableProperties", "CommentOnTable",
    "AlterTableAddConstraint", "AlterTableDropConstraint",
)  # fmt: skip
"""Statements that change the catalog; executed, unless they name a path."""
OF_SESSION = re.compile(
    r"(?:Reset|Show|Describe|Explain|Cache|Uncache|Refresh|Use|Analyze|DeltaDescribe|DescribeDelta"
    r"|GetColumn)\w*|Set(?:Command|CatalogAndNamespace|NamespaceCommand|CatalogCommand|Variable)\$?"
    r"|CreateVariable|DropVariable|DropView|DropTempView|CreateNamespace"
)
"""Statements that change no table; executed."""
VIEWS = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+`?(\w+)`?\s+AS\s+(.*)",
    re.IGNORECASE | re.DOTALL,
)
SETS = re.compile(r"\s*SET\s+(spark\.databricks\.[\w.]+)", re.IGNORECASE)
PATHS = re.compile(
    r"\bLOCATION\s*['\"](?P<path>[^'\"]*)|\b(?:delta|parquet|csv|json|orc)\s*\.\s*`(?P<file>[^`]*)",
    re.IGNORECASE,
)
BY_PATH = re.compile(r"\bdelta\s*\.\s*`([^`]+)`", re.IGNORECASE)
IN_TEXT = re.compile(
    "'\ue000(?P<quoted>\\d+)\ue001'|(?<![\\w.'\"`])\ue000(?P<bare>\\d+)\ue001(?![\\w'\"`.(])"
)
"""Traced value in a statement, where a parameter may stand."""
TYPES = {
    int: "BIGINT",
    str: "STRING",
    dt.date: "DATE",
    dt.datetime: "TIMESTAMP",
    float: "DOUBLE",
}
"""Types of arguments, where the columns of a statement do not determine them."""
STRINGS = r"'(?:[^'\\]|\\.?)*+(?:'|\Z)|\"(?:[^\"\\]|\\.?)*+(?:\"|\Z)"
SUBSTITUTION = "spark.sql.legacy.parameterSubstitution.constantsOnly"
NOT_BOUND = (
    "on Delta 4.4.0 with Spark 4.2.0, spark.sql(text, args=…) raises UNBOUND_SQL_PARAMETER, because"
    f" Delta's parser does not bind parameters; set {SUBSTITUTION} to true"
)
"""What Spark answers to arguments; here the recorder puts their values into the text."""
OWN_TEXT = "_isolitmus_text"
"""Attribute of a DataFrame that is the result of a query in SQL: its text."""


class SqlTexts:
    """Recorder of ``spark.sql`` and of temporary views; writer of DataFrames as SQL."""

    def __init__(self, recorder: RunRecord) -> None:
        self._recorder = recorder
        self.export = PlanExport(recorder.session, recorder.tables.names)
        self.writer = PlanWriter()
        self.views: dict[str, str] = {}
        """Query of each temporary view."""
        self._classes: dict[str, bool] = {}

    def replace_in(self, replace: Callable[..., None]) -> None:
        """Replace the methods that take SQL or create views."""
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame

        def view(original: Any, frame: Any, name: str) -> Any:
            self.views[name] = self.query(frame)
            return original(frame, name)

        def global_view(original: Any, frame: Any, name: str) -> Any:
            self._recorder.gap(f"the global temporary view {name} is not understood")
            return original(frame, name)

        replace(SparkSession, "sql", self._sql)
        replace(DataFrame, "createTempView", view)
        replace(DataFrame, "createOrReplaceTempView", view)
        replace(DataFrame, "createGlobalTempView", global_view)
        replace(DataFrame, "createOrReplaceGlobalTempView", global_view)

    def query(self, frame: Any, order: Sequence[int] | None = None) -> str:
        """Return the query of a DataFrame, with its columns in this order of their numbers."""
        plan = self.export.plan(frame)
        text = frame.__dict__.get(OWN_TEXT)
        if text is None:
            return self.writer.query(plan, order)
        numbers = [one.id for one in plan.columns]
        if order is None or [*order] == numbers:
            return str(text)
        names = {one.id: one.name for one in plan.columns}
        shown = ", ".join(
            f"`{names[one]}`" if not names[one].isidentifier() else names[one] for one in order
        )
        return f"SELECT {shown} FROM ({text}) AS q"

    def counted(self, frame: Any) -> str:
        """Return the query that counts the rows of a DataFrame."""
        query = self.query(frame)
        plain = re.fullmatch(
            r"SELECT (?!DISTINCT)[\w, .]+ FROM (\w+(?: WHERE .*)?)", query, re.DOTALL
        )
        if plain and "\0" not in query and "GROUP BY" not in query and "(SELECT" not in query:
            return f"SELECT count(*) AS n FROM {plain[1]}"
        return f"SELECT count(*) AS n FROM ({query}) AS q"

    def with_views(self, text: str) -> str:
        """Return a statement with the temporary views that it names."""
        return with_views(text, self.views)

    def _sql(self, original: Any, spark: Any, sqlQuery: str, args: Any = None, **named: Any) -> Any:  # noqa: N803 - the name of PySpark's argument
        """Record and execute a statement."""
        recorder = self._recorder
        text = self._formatted(sqlQuery, named)
        recorded, executed, args = self._with_parameters(text, args)
        tables = recorder.tables
        executed = BY_PATH.sub(lambda found: tables.at(found[1]) or found[0], executed)
        recorded = BY_PATH.sub(
            lambda found: tables.named(tables.at(found[1]) or "") or found[0], recorded
        )
        plan = recorder.spark._jsparkSession.sessionState().sqlParser().parsePlan(executed)  # noqa: SLF001
        commands = [one for one in self._nodes(plan) if self._is_command(one)]
        given = (executed,) if args is None else (executed, args)
        if not commands:
            frame = original(spark, *given)
            for found in TOKEN.findall(text):  # a later operation has the value, not its name
                recorder.tokens.take(found).used()
            frame.__dict__[OWN_TEXT] = self.with_views(recorded)
            return frame
        kinds = [one.getClass().getSimpleName() for one in commands]
        if (made := VIEWS.fullmatch(recorded)) is not None:
            self.views[made[1]] = self.with_views(made[2].strip().rstrip(";"))
            return original(spark, *given)
        line = recorder.line
        if OF_SESSION.fullmatch(kinds[0]) and not PATHS.search(executed):
            found = SETS.match(executed)
            if found is not None and found[1] not in JOB_CONFS:
                recorder.gap(f"unsupported: the conf {found[1]} may affect commits")
            return original(spark, *given)
        recorder.attempt(executed)
        path = next((one for one in map(self._path, commands) if one is not None), None)
        if path is None and set(kinds) - {*WRITES} and (at := PATHS.search(executed)):
            path = at["path"] or at["file"]
        if path is not None:
            recorder.gap(self.elsewhere("the statement", path))
            return self.nothing()
        if len(commands) > 1:
            recorder.gap("a statement with several INSERTs is not understood")
            return self.nothing()
        result = original(spark, *given) if kinds[0] in (*WRITES, *IN_CATALOG) else self.nothing()
        recorder.statement(self.with_views(recorded), line)
        return result

    def elsewhere(self, what: str, path: str) -> str:
        """Return the sentence about a write to a path that no DDL declares."""
        return (
            f"{what} writes to '{path}', which no DDL declares; it was not executed; if it is a"
            " table of another job, add its CREATE TABLE with LOCATION"
        )

    def nothing(self) -> Any:
        """Return a DataFrame without rows, in place of the result of what is not executed."""
        return self._recorder.spark.createDataFrame([], "path STRING")

    def _formatted(self, text: str, named: dict[str, Any]) -> str:
        """Return a statement with names of views in place of DataFrames in braces."""
        from pyspark.sql import DataFrame

        def put(found: re.Match[str]) -> str:
            value = named.get(found[1])
            if isinstance(value, DataFrame):
                self.views[found[1]] = self.query(value)
                value.createOrReplaceTempView(found[1])
                return found[1]
            if found[1] in named:
                value = plain_value(value)
                return f"'{value}'" if isinstance(value, str) else str(value)
            return found[0]

        return re.sub(r"\{(\w+)\}", put, text) if named else text

    def _with_parameters(self, text: str, args: Any) -> tuple[str, str, Any]:
        """Return a statement with parameters, the one to be executed, and its arguments.

        A parameter that has a traced value gets the name of the read that gave it.
        """
        recorded, executed = self.parameter_text(text), self.plain_text(text)
        if isinstance(args, list | tuple):
            recorded, executed = _named_marks(recorded), _named_marks(executed)
            args = {f"p{k}": one for k, one in enumerate(args, 1)}
        if not args:
            return recorded, executed, None
        if str(self._recorder.spark.conf.get(SUBSTITUTION, "false")).lower() != "true":
            self._recorder.note(NOT_BOUND)
        for key, one in args.items():
            if type(one) in TYPES:
                self._recorder.argument(key, TYPES[type(one)])
        traced = {k: one.text for k, one in args.items() if isinstance(one, TracedValue)}
        plain = {
            key: one.plain if isinstance(one, TracedValue) else plain_value(one)
            for key, one in args.items()
        }
        literals = {k: _literal(one) for k, one in plain.items() if not hasattr(one, "_jc")}
        executed = _with_values(executed, literals)
        left = {key: one for key, one in plain.items() if key in parameters(executed)}
        return _with_values(recorded, traced), executed, left or None

    def parameter_text(self, text: str) -> str:
        """Return a text with parameters in place of traced values."""
        return self._without_tokens(text, lambda value: value.text)

    def plain_text(self, text: str) -> str:
        """Return a text with literals in place of traced values."""
        return self._without_tokens(text, lambda value: _literal(value.plain))

    def used_text(self, text: str) -> str:
        """Return a text with the values of tokens, whose use is reported."""
        return self._recorder.tokens.used(text)

    def _without_tokens(self, text: str, shown: Callable[[TracedValue], str]) -> str:
        """Return a text without tokens; a value is used where no parameter may stand."""
        tokens = self._recorder.tokens

        def put(found: re.Match[str]) -> str:
            number = found["quoted"] or found["bare"]
            return found[0] if tokens.is_formatted(number) else shown(tokens.take(number))

        return self.used_text(IN_TEXT.sub(put, text))

    def _nodes(self, plan: Any) -> Iterator[Any]:
        yield plan
        for one in self.export.items(plan.children()):
            yield from self._nodes(one)

    def _is_command(self, node: Any) -> bool:
        """Return whether a plan does something when it is analyzed."""
        own = node.getClass()
        name = own.getName()
        if name not in self._classes:
            self._classes[name] = VERBS.match(own.getSimpleName()) is not None or any(
                one in COMMANDS for one in _ancestors(own)
            )
        return self._classes[name]

    def _path(self, command: Any) -> str | None:
        """Return the path that a statement writes to, if it writes to a path."""
        kind = command.getClass().getSimpleName()
        if kind == "InsertIntoDir":
            uri = command.storage().locationUri()
            return str(uri.get().toString()) if uri.isDefined() else "a folder"
        if kind not in WRITES:
            return None
        target = command.targetTable() if kind == "MergeIntoTable" else command.table()
        for node in self._nodes(target):
            if node.getClass().getSimpleName() == "UnresolvedRelation":
                parts = self.export.items(node.multipartIdentifier())
                return str(parts[-1]) if "/" in parts[-1] else None
        return None


def _named_marks(text: str) -> str:
    """Return a statement with ``:p1``, ``:p2``, … in place of its question marks."""
    numbers = count(1)
    return re.sub(
        rf"{STRINGS}|\?", lambda found: f":p{next(numbers)}" if found[0] == "?" else found[0], text
    )


def _with_values(text: str, values: Mapping[str, str]) -> str:
    """Return a statement with these texts in place of its parameters."""
    return PIECE.sub(
        lambda found: values.get(found["name"], found[0]) if found["name"] else found[0], text
    )


def _literal(value: Any) -> str:
    """Return a value of Python as a literal in Spark's SQL."""
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return literal(value) if isinstance(value, bool | int) or value is None else str(value)


def _ancestors(given: Any) -> Iterator[str]:
    """Yield the names of a Java class and of all that it extends."""
    yield given.getName()
    above = given.getSuperclass()
    if above is not None:
        yield from _ancestors(above)
    for one in given.getInterfaces():
        yield from _ancestors(one)
