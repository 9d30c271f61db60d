# ruff: noqa: A002, ARG001, ARG002, N803, N806, PLR0917, SLF001 - each function has the signature of the one that it replaces
"""Writes of DataFrames and calls of Delta's Python interface, as statements of SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.jobs.recording.traced_values import plain_value
from isolitmus.specs.sql.configuration import OVERWRITE_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.jobs.recording.run_record import RunRecord
    from isolitmus.jobs.recording.sql_texts import SqlTexts
    from isolitmus.jobs.sql.spark_plans import PlanNode

GIVEN = "_isolitmus_given"
"""Attribute of a writer, table or builder: what it was asked for before."""
SETTERS = ("mode", "format", "option", "options", "partitionBy", "clusterBy", "bucketBy")
FILE_FORMATS = ("json", "parquet", "text", "csv", "xml", "orc", "jdbc")
NOT_UNDERSTOOD = {
    "overwriteschema": "overwriteSchema replaces the columns of the table",
    "datachange": "dataChange",
    "txnappid": "an idempotent write (txnAppId)",
    "replaceon": "replaceOn",
    "replaceusing": "replaceUsing",
}
"""Options of a write that a statement of SQL does not have, with their words."""
STAR = "*"
UNMODELLED = (
    "clone", "cloneAtVersion", "cloneAtTimestamp", "upgradeTableProtocol", "addFeatureSupport",
    "dropFeatureSupport", "generate",
)  # fmt: skip


class FrameStatements:
    """Recorder of writes that are not given as SQL."""

    def __init__(self, recorder: RunRecord, texts: SqlTexts) -> None:
        self._recorder = recorder
        self._texts = texts

    def replace_in(self, replace: Callable[..., None]) -> None:
        """Replace the methods that write."""
        from pyspark import RDD
        from pyspark.sql.catalog import Catalog
        from pyspark.sql.classic.dataframe import DataFrame
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2

        for name in SETTERS:
            replace(DataFrameWriter, name, _setter(name), always=True)
        replace(DataFrameWriter, "saveAsTable", self._abortable(self._save_as_table))
        replace(DataFrameWriter, "insertInto", self._abortable(self._insert_into))
        replace(DataFrameWriter, "save", self._abortable(self._save))
        for name in FILE_FORMATS:
            replace(DataFrameWriter, name, self._file_write(name))
        replace(DataFrameReader, "load", self._load)
        replace(DataFrameReader, "format", _setter("format"), always=True)
        replace(DataFrameWriterV2, "__init__", _keep_table, always=True)
        for name in ("option", "options"):
            replace(DataFrameWriterV2, name, _setter(name), always=True)
        replace(DataFrameWriterV2, "tableProperty", _setter("option"), always=True)
        for name in ("createTable", "createExternalTable"):
            replace(Catalog, name, self._refused(f"Catalog.{name}"))
        for name in ("append", "overwrite", "overwritePartitions"):
            replace(DataFrameWriterV2, name, self._abortable(self._write_to(name)))
        for name in ("create", "replace", "createOrReplace"):
            replace(DataFrameWriterV2, name, self._abortable(self._create(name)))
        replace(DataFrame, "mergeInto", self._refused("DataFrame.mergeInto"))
        for name in [one for one in vars(RDD) if one.startswith("saveAs")]:
            replace(RDD, name, self._refused(f"RDD.{name}"))
        self._replace_delta(replace)

    def _replace_delta(self, replace: Callable[..., None]) -> None:
        """Replace the methods of Delta's own interface."""
        from delta.tables import (
            DeltaMergeBuilder,
            DeltaOptimizeBuilder,
            DeltaTable,
            DeltaTableBuilder,
        )

        replace(DeltaTable, "forName", self._for_name)
        replace(DeltaTable, "forPath", self._for_path)
        replace(DeltaTable, "isDeltaTable", self._is_delta_table)
        replace(DeltaTable, "alias", self._alias)
        replace(DeltaTable, "delete", self._abortable(self._delete))
        replace(DeltaTable, "update", self._abortable(self._update))
        replace(DeltaTable, "merge", self._merge)
        replace(DeltaTable, "optimize", self._optimize)
        replace(DeltaTable, "vacuum", self._vacuum)
        for to in ("Version", "Timestamp"):
            body = self._abortable(self._restore(to.upper()))
            replace(DeltaTable, f"restoreTo{to}", body)
        replace(DeltaTable, "convertToDelta", self._refused("DeltaTable.convertToDelta"))
        for name in UNMODELLED:
            replace(DeltaTable, name, self._refused(f"DeltaTable.{name}"))
        replace(DeltaTableBuilder, "execute", self._refused("DeltaTable.create"))
        for name in CLAUSES:
            replace(DeltaMergeBuilder, name, self._clause(name))
        replace(DeltaMergeBuilder, "withSchemaEvolution", self._evolve)
        replace(DeltaMergeBuilder, "execute", self._abortable(self._execute_merge))
        replace(DeltaOptimizeBuilder, "where", self._optimize_where)
        replace(DeltaOptimizeBuilder, "executeCompaction", self._abortable(self._compact))
        replace(DeltaOptimizeBuilder, "executeZOrderBy", self._abortable(self._z_order))

    def _abortable(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method of a statement that aborts instead on some paths."""

        def attempt(original: Any, thing: Any, *args: Any, **options: Any) -> Any:
            texts = [one for one in (*args, *options.values()) if isinstance(one, str)]
            self._recorder.attempt(f"{original.__qualname__} {texts}")
            return body(original, thing, *args, **options)

        return attempt

    # DataFrame writers

    def _save_as_table(
        self, original: Any, writer: Any, name: str, format: Any = None, mode: Any = None,
        partitionBy: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        given = _given_to(writer, format, mode, partitionBy, options)
        if (at := _location(given["options"])) is not None:
            self._recorder.gap(self._texts.elsewhere("saveAsTable", at))
            return None
        if given["format"] not in (None, "delta"):
            self._recorder.gap(f"a write to {name} with format '{given['format']}'; not executed")
            return None
        line = self._recorder.line
        if self._recorder.tables.named(name) is None:
            original(writer, name)
            query = self._texts.with_views(self._texts.query(writer._df))
            self._recorder.statement(f"CREATE OR REPLACE TABLE {name} USING delta AS {query}", line)
            return None
        statements = self.insertion(writer._df, name, given["mode"], given["options"], by_name=True)
        original(writer, name)
        self._tell(statements, line)
        return None

    def _insert_into(
        self,
        original: Any,
        writer: Any,
        tableName: str,
        overwrite: bool | None = None,
    ) -> Any:
        given = _given(writer)
        mode = given["mode"]
        if overwrite is not None:
            mode = "overwrite" if overwrite else "append"
        line = self._recorder.line
        if (at := _path_in(tableName)) is not None:
            known = self._recorder.tables.at(at)
            if known is None:
                self._recorder.gap(self._texts.elsewhere("insertInto", at))
                return None
            tableName = known
        statements = self.insertion(
            writer._df, tableName, "overwrite" if mode == "overwrite" else "append",
            given["options"], by_name=False,
        )  # fmt: skip
        original(writer, tableName, overwrite)
        self._tell(statements, line)
        return None

    def _save(
        self, original: Any, writer: Any, path: Any = None, format: Any = None,
        mode: Any = None, partitionBy: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        given = _given_to(writer, format, mode, partitionBy, options)
        path = given["options"].get("path") if path is None else path
        known = None if path is None else self._recorder.tables.at(str(path))
        if known is None:
            if given["format"] in (None, "delta"):
                self._recorder.gap(self._texts.elsewhere("save", str(path)))
            else:
                self._recorder.left_out(f"save writes {given['format']} to '{path}'")
            return None
        line = self._recorder.line
        statements = self.insertion(
            writer._df, known, given["mode"], given["options"], by_name=True
        )
        writer.saveAsTable(known)
        self._tell(statements, line)
        return None

    def _file_write(self, name: str) -> Callable[..., None]:
        def body(original: Any, writer: Any, path: Any = None, *args: Any, **options: Any) -> None:
            self._recorder.left_out(f"write.{name} writes to '{path}'")

        return body

    def _load(
        self, original: Any, reader: Any, path: Any = None, format: Any = None,
        schema: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        known = self._recorder.tables.at(path) if isinstance(path, str) else None
        return reader.table(known) if known else original(reader, path, format, schema, **options)

    def _write_to(self, name: str) -> Callable[..., Any]:
        def body(original: Any, writer: Any, *args: Any) -> Any:
            frame, table = writer.__dict__[GIVEN]["table"]
            line = self._recorder.line
            if (at := _path_in(table)) is not None:
                self._recorder.gap(self._texts.elsewhere(f"writeTo.{name}", at))
                return None
            options = {**writer.__dict__[GIVEN]["options"]}
            if name == "overwritePartitions":
                options["partitionOverwriteMode"] = "dynamic"
            elif name == "overwrite":
                options["partitionOverwriteMode"] = "static"
                condition = self._condition_on(self._recorder.spark.table(table), args[0])
                if condition is None:
                    self._recorder.gap("the condition of writeTo.overwrite is not understood")
                    return original(writer, *args)
                options["replaceWhere"] = condition
            mode = "append" if name == "append" else "overwrite"
            statements = self.insertion(frame, table, mode, options, by_name=True)
            original(writer, *args)
            self._tell(statements, line)
            return None

        return body

    def _create(self, name: str) -> Callable[..., Any]:
        words = {"create": "CREATE", "replace": "REPLACE", "createOrReplace": "CREATE OR REPLACE"}

        def body(original: Any, writer: Any) -> Any:
            frame, table = writer.__dict__[GIVEN]["table"]
            at = _path_in(table) or _location(writer.__dict__[GIVEN]["options"])
            if at is not None:
                self._recorder.gap(self._texts.elsewhere(f"writeTo.{name}", at))
                return None
            query = self._texts.with_views(self._texts.query(frame))
            original(writer)
            self._recorder.gap(
                f"writeTo.{name} may change the columns, partitions and properties of {table};"
                f" write it in SQL: {words[name]} TABLE {table} USING delta … AS {query[:80]}"
            )
            return None

        return body

    def _refused(self, what: str) -> Callable[..., Any]:
        """Return the method of something that is not executed, because it is not understood."""

        def body(original: Any, *args: Any, **options: Any) -> Any:
            self._recorder.attempt(what)
            self._recorder.gap(f"{what} is not understood; it was not executed")

        return body

    def insertion(
        self, frame: Any, table: str, mode: str, options: Mapping[str, Any], *, by_name: bool
    ) -> list[str] | str:
        """Return the statements of a write of rows, or why it has none."""
        given = {key.lower(): str(value) for key, value in options.items()}
        for key, words in NOT_UNDERSTOOD.items():
            off = given.get(key, "").lower() == ("true" if key == "datachange" else "false")
            if key in given and not off:
                return f"a write to {table} with {words} is not understood"
        if mode not in ("append", "overwrite"):
            return f"a write to {table} with mode '{mode}' is not understood"
        plan = self._texts.export.plan(frame)
        columns = self._recorder.spark.table(table).columns
        table = self._recorder.tables.named(table) or table
        into, order = "", None
        if by_name:
            own = {one.name.lower(): one.id for one in plan.columns}
            known = [one for one in columns if one.lower() in own]
            if len(known) < len(plan.columns):
                more = ", ".join(n for n in own if n not in {c.lower() for c in columns})
                return f"a write to {table} that adds {more} is not understood"
            order = [own[one.lower()] for one in known]
            into = "" if len(known) == len(columns) else f" ({', '.join(known)})"
        query = self._texts.query(frame, order)
        if "replacewhere" in given and mode == "overwrite":
            text = f"INSERT INTO {table} REPLACE WHERE {given['replacewhere']} {query}"
        elif mode == "overwrite":
            text = f"INSERT OVERWRITE {table}{into} {query}"
        else:
            text = f"INSERT INTO {table}{into} {query}"
        text = self._texts.with_views(text)
        wanted = given.get("partitionoverwritemode", "").lower()
        before = self._recorder.spark.conf.get(OVERWRITE_MODE, "static").lower()
        if not wanted or wanted == before or mode == "append":
            return [text]
        return [f"SET {OVERWRITE_MODE} = {wanted}", text, f"SET {OVERWRITE_MODE} = {before}"]

    def _tell(self, statements: list[str] | str, line: int) -> None:
        if isinstance(statements, str):
            self._recorder.gap(statements)
            return
        self._recorder.statements(statements, line)

    # Delta's interface

    def _for_name(self, original: Any, cls: Any, spark: Any, name: str) -> Any:
        at = _path_in(name)
        if at is not None:
            return self._for_path(None, cls, spark, at)
        return _with(original(cls, spark, name), table=self._recorder.tables.named(name) or name)

    def _for_path(self, original: Any, cls: Any, spark: Any, path: str, *conf: Any) -> Any:
        known = self._recorder.tables.at(path)
        if known is None:
            from isolitmus.jobs.recording.sandbox import ForbiddenEffectError

            raise ForbiddenEffectError(
                f"DeltaTable.forPath names '{path}', which no DDL declares; add LOCATION '{path}'"
                " to the CREATE TABLE of that table"
            )
        return _with(cls.forName(spark, known), table=self._recorder.tables.named(known))

    def _is_delta_table(self, original: Any, cls: Any, spark: Any, path: str) -> bool:
        return self._recorder.tables.at(path) is not None

    def _alias(self, original: Any, table: Any, name: str) -> Any:
        return _with(original(table, name), table=_table_of(table), alias=name)

    def _delete(self, original: Any, table: Any, condition: Any = None) -> Any:
        line, name = self._recorder.line, _table_of(table)
        text, where = f"DELETE FROM {_as(table)}", ""
        if condition is not None:
            found = self._text_on(table, condition)
            if found is None:
                self._recorder.gap(f"the condition of a delete from {name} is not understood")
                return original(table, self._plain(condition))
            where = f" WHERE {found}"
        original(table, self._plain(condition))
        self._recorder.statement(text + where, line)
        return None

    def _update(self, original: Any, table: Any, condition: Any = None, set: Any = None) -> Any:
        line, name = self._recorder.line, _table_of(table)
        values = {key: self._text_on(table, one) for key, one in (set or {}).items()}
        where = None if condition is None else self._text_on(table, condition)
        plain = {key: self._plain(one) for key, one in (set or {}).items()}
        original(table, self._plain(condition), plain)
        if None in values.values() or (condition is not None and where is None):
            self._recorder.gap(f"an expression of an update of {name} is not understood")
            return None
        listed = ", ".join(f"{key} = {value}" for key, value in values.items())
        end = f" WHERE {where}" if where else ""
        self._recorder.statement(f"UPDATE {_as(table)} SET {listed}{end}", line)
        return None

    def _merge(self, original: Any, table: Any, source: Any, condition: Any) -> Any:
        plan = self._texts.export.plan(source)
        alias = plan.name if plan.kind == "SubqueryAlias" else ""
        inner = self._texts.query(source)
        name = alias.rpartition(".")[2] or "source"
        given = {"table": table, "source": source, "name": name, "clauses": [], "evolves": False}
        given["on"] = self._text_on(table, condition, source, name)
        bare = f"SELECT * FROM {name}"
        given["using"] = name if inner == bare else f"({inner}) AS {name}"
        return _with(original(table, source, self._plain(condition)), **given)

    def _clause(self, name: str) -> Callable[..., Any]:
        def body(
            original: Any, builder: Any, condition: Any = None, pairs: Any = None, **named: Any
        ) -> Any:
            pairs = named.get("set", named.get("values", pairs))
            given = builder.__dict__[GIVEN]
            args = {}
            if condition is not None:
                args["condition"] = self._plain(condition)
            if pairs is not None:
                key = "values" if name == "whenNotMatchedInsert" else "set"
                args[key] = {k: self._plain(v) for k, v in pairs.items()}
            texts = {
                key: self._text_on(given["table"], one, given["source"], given["name"])
                for key, one in (pairs or {}).items()
            }
            when = (
                "" if condition is None
                else self._text_on(given["table"], condition, given["source"], given["name"])
            )  # fmt: skip
            clause = None
            if when is not None and None not in texts.values():
                clause = _clause_text(name, when, texts)
            made = original(builder, **args)
            return _with(made, **{**given, "clauses": [*given["clauses"], clause]})

        return body

    def _evolve(self, original: Any, builder: Any) -> Any:
        return _with(original(builder), **{**builder.__dict__[GIVEN], "evolves": True})

    def _execute_merge(self, original: Any, builder: Any) -> Any:
        given, line = builder.__dict__[GIVEN], self._recorder.line
        name = _table_of(given["table"])
        result = original(builder)
        if given["on"] is None or None in given["clauses"]:
            self._recorder.gap(f"an expression of a merge into {name} is not understood")
            return result
        verb = "MERGE WITH SCHEMA EVOLUTION INTO" if given["evolves"] else "MERGE INTO"
        text = " ".join(
            [f"{verb} {_as(given['table'])} USING {given['using']} ON {given['on']}",
             *given["clauses"]]
        )  # fmt: skip
        self._recorder.statement(self._texts.with_views(text), line)
        return result

    def _optimize(self, original: Any, table: Any) -> Any:
        return _with(original(table), table=_table_of(table), where="")

    def _optimize_where(self, original: Any, builder: Any, condition: str) -> Any:
        given = builder.__dict__[GIVEN]
        also = f" AND ({condition})" if given["where"] else f" WHERE {condition}"
        return _with(original(builder, condition), **{**given, "where": given["where"] + also})

    def _compact(self, original: Any, builder: Any) -> Any:
        given = builder.__dict__[GIVEN]
        self._recorder.statement(f"OPTIMIZE {given['table']}{given['where']}")
        return self._texts.nothing()

    def _z_order(self, original: Any, builder: Any, *columns: Any) -> Any:
        given = builder.__dict__[GIVEN]
        flat = [n for one in columns for n in ([one] if isinstance(one, str) else one)]
        by = f" ZORDER BY ({', '.join(flat)})"
        self._recorder.statement(f"OPTIMIZE {given['table']}{given['where']}{by}")
        return self._texts.nothing()

    def _vacuum(self, original: Any, table: Any, retentionHours: Any = None) -> Any:
        hours = "" if retentionHours is None else f" RETAIN {plain_value(retentionHours)} HOURS"
        self._recorder.statement(f"VACUUM {_table_of(table)}{hours}")
        return self._texts.nothing()

    def _restore(self, to: str) -> Callable[..., Any]:
        def body(original: Any, table: Any, value: Any) -> Any:
            shown = plain_value(value)
            text = f"'{shown}'" if to == "TIMESTAMP" else shown
            self._recorder.statement(f"RESTORE TABLE {_table_of(table)} TO {to} AS OF {text}")
            return self._texts.nothing()

        return body

    def _plain(self, given: Any) -> Any:
        """Return a condition or value with plain values in place of traced ones in its text."""
        return self._texts.plain_text(given) if isinstance(given, str) else given

    def _text_on(self, table: Any, given: Any, source: Any = None, name: str = "") -> str | None:
        """Return the SQL of a condition or value on a table, and on the source of a merge; None if
        it has none.
        """
        if isinstance(given, str):
            return self._texts.parameter_text(given)
        frame = table.toDF()
        names = {
            one.id: (f"{_alias_of(table)}." if source is not None else "") + one.name
            for one in self._texts.export.plan(frame).columns
        }
        if source is not None:
            joined = frame.crossJoin(source)
            plan = self._texts.export.plan(joined.select(given.alias("isolitmus_value")))
            right = self._texts.export.plan(joined).columns[len(names) :]
            left = self._texts.export.plan(joined).columns[: len(names)]
            names = {b.id: names[a] for a, b in zip(names, left, strict=True)}
            names |= {one.id: f"{name}.{one.name}" for one in right}
        else:
            plan = self._texts.export.plan(frame.select(given.alias("isolitmus_value")))
        return self._texts.writer.condition(plan.items[0], names) if plan.items else None

    def _condition_on(self, frame: Any, condition: Any) -> str | None:
        """Return the SQL of a condition on a table."""
        plan: PlanNode = self._texts.export.plan(frame.filter(condition))
        names = {one.id: one.name for one in plan.columns}
        return self._texts.writer.condition(plan.keys[0], names) if plan.keys else None


CLAUSES = {
    "whenMatchedUpdate": ("MATCHED", "UPDATE SET"),
    "whenMatchedUpdateAll": ("MATCHED", "UPDATE SET *"),
    "whenMatchedDelete": ("MATCHED", "DELETE"),
    "whenNotMatchedInsert": ("NOT MATCHED", "INSERT"),
    "whenNotMatchedInsertAll": ("NOT MATCHED", "INSERT *"),
    "whenNotMatchedBySourceUpdate": ("NOT MATCHED BY SOURCE", "UPDATE SET"),
    "whenNotMatchedBySourceDelete": ("NOT MATCHED BY SOURCE", "DELETE"),
}
"""Clauses of a MERGE by the method of Delta's builder."""


def _clause_text(name: str, when: str, texts: Mapping[str, str | None]) -> str:
    """Return a clause of a MERGE."""
    matched, action = CLAUSES[name]
    head = f"WHEN {matched}{f' AND {when}' if when else ''} THEN {action}"
    if action == "INSERT":
        columns, values = ", ".join(texts), ", ".join(map(str, texts.values()))
        return f"{head} ({columns}) VALUES ({values})"
    if action == "UPDATE SET":
        return f"{head} {', '.join(f'{key} = {value}' for key, value in texts.items())}"
    return head


def _setter(name: str) -> Callable[..., Any]:
    """Return the method that keeps what a writer or reader is asked for."""

    def body(original: Any, writer: Any, *args: Any, **options: Any) -> Any:
        given = _given(writer)
        if name == "option":
            given["options"][args[0]] = args[1] if len(args) > 1 else options.get("value")
        elif name == "options":
            given["options"].update(options)
        elif args and args[0] is not None and name in ("mode", "format"):
            given[name] = str(args[0]).lower()
        return original(writer, *args, **options)

    return body


def _given(writer: Any) -> dict[str, Any]:
    """Return what a writer was asked for."""
    found: dict[str, Any] = writer.__dict__.setdefault(
        GIVEN, {"mode": "errorifexists", "format": None, "options": {}}
    )
    return found


def _given_to(
    writer: Any, format_: Any, mode: Any, partitions: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Pass the arguments of a write to its writer; return all that it was asked for."""
    if mode is not None:
        writer.mode(mode)
    if options:
        writer.options(**options)
    if format_ is not None:
        writer.format(format_)
    if partitions is not None:
        writer.partitionBy(partitions)
    return _given(writer)


def _keep_table(original: Any, writer: Any, frame: Any, table: str) -> None:
    original(writer, frame, table)
    _with(writer, table=(frame, table), options={})


def _with(thing: Any, **given: Any) -> Any:
    thing.__dict__[GIVEN] = given
    return thing


def _table_of(table: Any) -> str:
    return str(table.__dict__[GIVEN]["table"])


def _alias_of(table: Any) -> str:
    given = table.__dict__[GIVEN]
    return str(given.get("alias") or given["table"].rpartition(".")[2])


def _as(table: Any) -> str:
    """Return a table with its alias, if it has one."""
    alias = table.__dict__[GIVEN].get("alias")
    return f"{_table_of(table)} AS {alias}" if alias else _table_of(table)


def _location(options: Mapping[str, Any]) -> str | None:
    """Return the path among the options of a writer, or None."""
    return next((str(v) for k, v in options.items() if k.lower() in ("path", "location")), None)


def _path_in(name: str) -> str | None:
    """Return the path in a name such as ``delta.`/lake/t` ``, or None."""
    kind, dot, rest = name.partition(".")
    plain = rest.strip("`")
    return plain if dot and kind.strip("`").lower() == "delta" and "/" in plain else None
