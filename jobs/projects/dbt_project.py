"""A dbt project as tables and jobs: every model and snapshot writes to one table.

Relations are renamed to plain table names, which are unique in the project. Views and ephemeral
models write nothing; a statement that reads from a view has its query in WITH.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.projects.dbt_branches import find_branches, render_hook
from isolitmus.jobs.projects.dbt_manifest import (
    DbtSource,
    choose_job_names,
    has_concurrent_batches,
    jobs_before,
    read_catalog,
    read_manifest,
    spark_column,
)
from isolitmus.jobs.projects.dbt_writes import (
    END,
    START,
    build_first_run,
    build_incremental_run,
    build_snapshot_run,
    quote_text,
    snapshot_columns,
    staging_relation,
)
from isolitmus.jobs.projects.relation_names import (
    RelationRenaming,
    choose_table_names,
    find_qualified_tables,
    has_word,
    match_relation,
    put_with,
)
from isolitmus.jobs.sql.common_tables import inline_with
from isolitmus.jobs.sql.result_types import infer_result_columns, uncertain_columns
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.disk.input_files import is_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.jobs.projects.dbt_branches import Branches
    from isolitmus.jobs.projects.dbt_manifest import (
        CatalogColumn,
        DbtManifest,
        DbtNode,
        DeclaredInvariant,
    )
    from isolitmus.jobs.projects.dbt_writes import DbtWrite

REFRESH = "full_refresh"
FEW = 3  # columns that a message names
BATCH_STEP = {"day": "date_add({start}, 1)"}
"""End of a batch, where it is a function of its start that conditions on parameters may have."""


@dataclass(frozen=True, slots=True)
class DbtTable:
    """Table of a project: that of a model, a snapshot, a seed or a source."""

    node: str
    """Id in the manifest."""
    name: str
    """Name in statements, unique in the project."""
    relation: str
    """Relation in the database."""
    columns: tuple[Column, ...]
    """Columns, or none if they are not known."""
    origin: str
    """Where the columns come from: ddl, catalog, yaml, query or nothing."""
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    written: bool = True
    """Whether a job of the project writes to it."""

    def ddl(self) -> str:
        """Return the statement that creates the table.

        Examples
        --------
        >>> DbtTable("model.p.m", "m", "dev.m", (Column("id", "INT"),), "catalog").ddl()
        'CREATE TABLE m (`id` INT) USING delta'
        """
        names = (column.name.replace("`", "``") for column in self.columns)
        columns = zip(names, self.columns, strict=True)
        listed = ", ".join(f"`{name}` {column.type}" for name, column in columns)
        parts = [f"CREATE TABLE {self.name} ({listed}) USING delta"]
        if self.partitioned_by:
            parts.append(f"PARTITIONED BY ({', '.join(self.partitioned_by)})")
        if self.properties:
            pairs = (
                f"{quote_text(key)} = {quote_text(value)}" for key, value in self.properties.items()
            )
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class DbtJob:
    """One run of a model, a snapshot, or the hooks of an invocation."""

    name: str
    place: str
    """File of the project."""
    text: str
    """Text of that file, or of its template."""
    statements: tuple[str, ...]
    """Statements with the plain names of tables, and with views in WITH."""
    opaque: tuple[str, ...]
    """The same with views as tables of any rows, if no view reads a table that jobs write to."""
    problem: str = ""
    """Why its statements are not known."""
    where: str = ""
    """Condition on its parameters."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    """Id in the manifest; None for hooks of an invocation."""
    staged: tuple[str, str] | None = None
    """Staging table of a snapshot, and the table that its query reads beside others."""
    concurrent: bool = False
    """Whether the batches of one invocation may run at the same time."""


class DbtProject(NamedTuple):
    """Tables and jobs of a dbt project."""

    name: str
    adapter: str
    tables: tuple[DbtTable, ...]
    staging: tuple[DbtTable, ...]
    """Tables that stand for the rows that a snapshot merges."""
    jobs: tuple[DbtJob, ...]
    refreshes: tuple[DbtJob, ...]
    """Runs with ``--full-refresh`` of incremental models."""
    views: Mapping[str, str]
    """Queries of views by their plain names."""
    before: Mapping[str, frozenset[str]]
    """Jobs that run before each job in one invocation."""
    invariants: tuple[DeclaredInvariant, ...]
    """Tests that say which rows a table never has; ``table_names`` has the names of their tables.
    """
    assumptions: tuple[Assumption, ...]
    hints: Mapping[str, Schema]
    """Columns that are known of views, and of tables of which not all are known, by name in lower
    case.
    """

    @property
    def table_names(self) -> dict[str, str]:
        """Plain names of tables by their ids in the manifest."""
        return {table.node: table.name for table in self.tables}


def read_dbt_project(
    path: Path, declared: Mapping[str, tuple[Column, ...]] | None = None
) -> DbtProject:
    """Return the tables and jobs of the project with this ``manifest.json``.

    Columns of tables are those that are given, else those of ``catalog.json`` beside it (``dbt docs
    generate``), else those of the project's YAML files if each has a data_type, else those of the
    query of the model's first run, or of its incremental one, if their types are certain.

    Parameters
    ----------
    path : Path
        The ``manifest.json``.
    declared : mapping of str to tuple of Column, optional
        Columns of tables, by their names in the database, with or without schema and catalog.
    """
    manifest = read_manifest(path)
    catalog = path.with_name("catalog.json")
    columns = read_catalog(catalog) if is_there(catalog) else {}
    return _ProjectReader(manifest, columns, declared or {}).project()


class _ProjectReader:
    """Reader of a project: names of its relations, its views, and the columns that are known."""

    def __init__(
        self,
        manifest: DbtManifest,
        catalog: Mapping[str, tuple[CatalogColumn, ...]],
        declared: Mapping[str, tuple[Column, ...]],
    ) -> None:
        self.manifest = manifest
        self.catalog = catalog
        self.nodes = [
            node
            for node in manifest.nodes.values()
            if node.resource_type in ("model", "snapshot", "seed")
        ]
        named: list[DbtNode | DbtSource] = [*manifest.sources.values(), *self.nodes]
        relations = {one.unique_id: one.relation_name for one in named if one.relation_name}
        written = {node.unique_id for node in self.nodes}
        self.names = choose_table_names(relations, written)
        plain = {relations[key]: self.names[key] for key in relations}
        self.renaming = RelationRenaming(plain)
        self.declared = {
            name: columns
            for written, columns in declared.items()
            if (name := match_relation(written, plain)) is not None
        }
        self.branches: dict[str, Branches] = {
            node.unique_id: find_branches(node, manifest) for node in self.nodes
        }
        self.views: dict[str, str] = {}
        self.schemas: dict[str, Schema] = {}
        self.tables: dict[str, DbtTable] = {}

    def project(self) -> DbtProject:
        """Return the project, with its tables in an order in which each query is known."""
        for key, source in self.manifest.sources.items():
            if source.relation_name:
                self._add_table(key, source, source.relation_name, written=False)
        jobs: dict[str, DbtJob] = {}
        refreshes: list[DbtJob] = []
        staging: list[DbtTable] = []
        names = choose_job_names(self.nodes)
        for node in self.nodes:
            name = names[node.unique_id]
            if node.resource_type == "seed":
                if node.relation_name:
                    self._add_table(node.unique_id, node, node.relation_name, written=False)
            elif node.materialized == "view":
                self._add_view(node)
            elif node.materialized != "ephemeral":
                jobs[node.unique_id] = self._job(name, node, staging)
                if node.materialized == "incremental":
                    refreshes.append(self._refresh(f"{name}_{REFRESH}", node))
        hooks = [*self._operations("on-run-start"), *self._operations("on-run-end")]
        before = jobs_before(self.manifest, {key: job.name for key, job in jobs.items()})
        starts = {job.name for job in hooks if job.name == "on_run_start"}
        for job in jobs.values():
            before[job.name] = before.get(job.name, frozenset()) | starts
        for job in hooks:
            if job.name == "on_run_end":
                before[job.name] = frozenset({one.name for one in jobs.values()} | starts)
        return DbtProject(
            self.manifest.project,
            self.manifest.adapter,
            tuple(self.tables.values()),
            tuple(staging),
            (*jobs.values(), *hooks),
            tuple(refreshes),
            self.views,
            before,
            tuple(
                one
                for one in self.manifest.invariants
                if one.node in self.tables or self.names.get(one.node) in self.views
            ),
            tuple(self._assumptions()),
            {name.lower(): Schema(name, columns) for name, columns in self._hints()},
        )

    def _hints(self) -> Iterator[tuple[str, tuple[Column, ...]]]:
        """Yield the columns that are known of views, and of tables of which not all are known."""
        every: list[DbtNode | DbtSource] = [*self.manifest.sources.values(), *self.nodes]
        for node in every:
            key = node.unique_id
            name = self.names.get(key)
            table = self.tables.get(key)
            if name is None or (table is not None and table.columns):
                continue
            schema = self.schemas.get(name)
            known = [] if schema is None else [*schema.columns]
            named = {column.name.lower() for column in known}
            said = [spark_column(one.name, one.data_type) for one in node.columns.values()]
            known += [one for one in said if one is not None and one.name.lower() not in named]
            if known:
                yield name, tuple(known)

    def _assumptions(self) -> Iterator[Assumption]:
        """Yield what is assumed about tables, their columns and compiled code."""
        if any(node.materialized in ("incremental", "snapshot") for node in self.nodes):
            yield AssumptionKind.DECLARATION.says(
                "The tables of all incremental models and snapshots exist."
            )
        changing = [
            self.names.get(node.unique_id, node.name)
            for node in self.nodes
            if node.materialized == "incremental"
            and node.config.get("on_schema_change") in ("append_new_columns", "sync_all_columns")
        ]
        seeds = [table.name for table in self.tables.values() if table.node.startswith("seed.")]
        if seeds:
            named = "seed" if len(seeds) == 1 else "seeds"
            yield AssumptionKind.OTHER_WRITERS.says(
                f"No run loads the {named} {' or '.join(seeds)} meanwhile."
            )
        if changing:
            yield AssumptionKind.DECLARATION.says(
                f"No run changes the columns of {' or '.join(changing)} (on_schema_change)."
            )
        declared = [table.name for table in self.tables.values() if table.origin == "yaml"]
        if declared:
            yield AssumptionKind.DECLARATION.says(
                f"The YAML files declare all columns of {' and '.join(declared)}, in their order."
            )
        inferred = [table.name for table in self.tables.values() if table.origin == "query"]
        if inferred:
            yield AssumptionKind.DECLARATION.says(
                f"The columns of {' and '.join(inferred)} are those of the model's query."
            )
        varies = [
            node.name
            for node in self.nodes
            if self.branches[node.unique_id].varies and node.materialized != "ephemeral"
        ]
        if varies:
            yield AssumptionKind.STATEMENTS.says(
                f"Every invocation compiles {' and '.join(varies)} to the text in the manifest,"
                " except for values that are parameters: variables and macros have the same values."
            )
        if self.manifest.adapter == "databricks":
            yield AssumptionKind.STATEMENTS.says(
                "The statements are those of dbt-databricks on Databricks Runtime 17.1 or later."
            )
            yield AssumptionKind.DECLARATION.says(
                "No run changes comments, tags, constraints or properties of a table."
            )

    # Tables

    def _add_table(
        self,
        key: str,
        node: DbtNode | DbtSource,
        relation: str,
        queries: Sequence[str] = (),
        *,
        written: bool = True,
        more: Sequence[Column] = (),
    ) -> DbtTable:
        """Add a table, with the columns that are known of it."""
        columns, origin = self._columns(key, node, queries)
        if columns and origin not in ("ddl", "catalog"):
            columns += tuple(more)
        config = node.config
        partitioned: tuple[str, ...] = ()
        properties: dict[str, str] = {}
        if written:
            assert not isinstance(node, DbtSource)
            partitioned = node.strings("partition_by")
            said = config.get("tblproperties")
            properties = {
                str(k): str(v).lower() if isinstance(v, bool) else str(v)
                for k, v in (said if isinstance(said, dict) else {}).items()
            }
        name = self.names[key]
        table = DbtTable(key, name, relation, columns, origin, partitioned, properties, written)
        self.tables[key] = table
        if columns:
            self.schemas[name] = Schema(name, columns)
        return table

    def _columns(
        self, key: str, node: DbtNode | DbtSource, queries: Sequence[str]
    ) -> tuple[tuple[Column, ...], str]:
        """Return the columns of a table, and where they come from; of several queries, the first
        one with certain types counts.
        """
        if given := self.declared.get(self.names[key]):
            return given, "ddl"
        if found := self.catalog.get(key):
            columns = [spark_column(one.name, one.type) for one in found]
            if all(columns):
                return tuple(one for one in columns if one is not None), "catalog"
        declared = [spark_column(one.name, one.data_type) for one in node.columns.values()]
        if declared and all(declared):
            return tuple(one for one in declared if one is not None), "yaml"
        for query in queries:
            if inferred := infer_result_columns(self._inlined(query), self.schemas):
                return inferred, "query"
        return (), ""

    def _add_view(self, node: DbtNode) -> None:
        """Add a view with its query."""
        query = self._query(node)
        if query is None or not node.relation_name:
            return
        name, text = self.names[node.unique_id], self._plain(query)
        self.views[name] = text
        columns = infer_result_columns(self._inlined(text), self.schemas)
        if columns:
            self.schemas[name] = Schema(name, columns)

    def _query(self, node: DbtNode) -> str | None:
        """Return the query of a node whose table exists; only incremental models look for it."""
        branches = self.branches[node.unique_id]
        return branches.incremental if node.materialized == "incremental" else branches.first

    def _renamed_queries(self, node: DbtNode) -> list[str]:
        """Return the queries of a node that are known, that of its first run first."""
        branches = self.branches[node.unique_id]
        found = [one for one in (branches.first, self._query(node)) if one is not None]
        return [self._plain(one) for one in dict.fromkeys(found)]

    def _plain(self, query: str) -> str:
        """Return a query with the plain names of tables, and without WITH if that is possible."""
        return inline_with(self.renaming.apply(query))

    # Statements

    def _inlined(self, statement: str, view: tuple[str, str] | None = None) -> str:
        """Return a statement with the views that it names in WITH."""
        used: dict[str, str] = {}
        todo = [statement, *(view or ())[1:]]
        while todo:
            text = todo.pop()
            for name, query in self.views.items():
                if name not in used and has_word(text, name):
                    used[name] = query
                    todo.append(query)
        listed = [(name, query) for name, query in self.views.items() if name in used]
        return put_with(statement, [*listed, *([] if view is None else [view])])

    def _texts(self, write: DbtWrite) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the statements of a run, with views in WITH and with views as tables."""
        view = next(((name, self._plain(query)) for name, query in write.views), None)
        created = self._plain(write.query)
        main = [self.renaming.apply(one) for one in write.main]
        before, after = (
            [self._inlined(self.renaming.apply(one)) for one in part]
            for part in (write.before, write.after)
        )
        if created:
            inlined = [f"{one} {self._inlined(created)}" for one in main]
            opaque = [f"{one} {created}" for one in main]
        else:
            inlined = [self._inlined(one, view) for one in main]
            opaque = [put_with(one, [] if view is None else [view]) for one in main]
        whole = (*before, *inlined, *after)
        texts = (*main, created, view[1] if view else "")
        read = {name for name in self.views if any(has_word(text, name) for text in texts)}
        if not read or any(self._reads_written(name) for name in read):
            return whole, ()
        return whole, (*before, *opaque, *after)

    def _reads_written(self, view: str) -> bool:
        """Return whether a view reads a table that a job of the project writes to."""
        text = self._inlined(self.views[view])
        tables = [
            self.names[node.unique_id]
            for node in self.nodes
            if node.unique_id in self.names and node.materialized not in ("view", "ephemeral")
        ]
        known = {*tables, *(table.name for table in self.tables.values()), *self.views}
        return any(has_word(text, name) for name in tables) or bool(
            find_qualified_tables(text) - known
        )

    def _job(self, name: str, node: DbtNode, staging: list[DbtTable]) -> DbtJob:
        """Return the job of a model or snapshot whose table exists."""
        branches = self.branches[node.unique_id]
        query = self._query(node)
        queries = self._renamed_queries(node)
        where = ""
        parameters: dict[str, str] = {}
        staged: tuple[str, str] | None = None
        try:
            if not node.relation_name:
                node.refuse("it has no relation_name, so its table is unknown; run dbt compile")
            if node.resource_type == "snapshot":
                write, staged = self._snapshot(node, queries, staging)
            else:
                known = node.materialized in ("incremental", "table")
                table = self._add_table(
                    node.unique_id, node, node.relation_name, queries if known else ()
                )
                if not known:
                    node.refuse(
                        f"the materialization {node.materialized} is unsupported; supported are"
                        " incremental, table, view, ephemeral, snapshot and seed"
                    )
                if query is None:
                    node.refuse(branches.problem)
                if node.materialized == "table":
                    write = build_first_run(node, self.manifest, query)
                else:
                    columns = [column.name for column in table.columns]
                    write = build_incremental_run(node, self.manifest, query, columns)
                if not table.columns:
                    node.refuse(self._without_columns(queries))
            statements, opaque = self._texts(write)
            if any(f":{START}" in text for text in statements):
                where, parameters = self._batch(node)
        except LitmusError as error:
            problem = str(error).removeprefix(f"{node.place}: ")
            return DbtJob(name, node.place, node.raw_code, (), (), problem, node=node.unique_id)
        return DbtJob(
            name, node.place, node.raw_code, statements, opaque, "", where, parameters,
            node.unique_id, staged, bool(where) and has_concurrent_batches(self.manifest, node),
        )  # fmt: skip

    def _without_columns(self, queries: Sequence[str]) -> str:
        """Return why the columns of a table are not known, and what to do."""
        found = uncertain_columns(self._inlined(queries[0]), self.schemas) if queries else ()
        named = ", ".join(found[:FEW]) + (" and others" if len(found) > FEW else "")
        why = f": no certain type of {named} in its query"
        return (
            f"the columns of its table are not known{why if found else ''}; run dbt docs generate,"
            " give its CREATE TABLE by --ddl, or declare all columns with data_type"
        )

    def _refresh(self, name: str, node: DbtNode) -> DbtJob:
        """Return the job of a run of an incremental model with ``--full-refresh``."""
        query, where = self.branches[node.unique_id].first, ""
        parameters: dict[str, str] = {}
        try:
            if query is None:
                node.refuse(self.branches[node.unique_id].problem)
            if node.config.get("full_refresh") is False:
                node.refuse("full_refresh is false: dbt never rebuilds the table")
            statements, opaque = self._texts(build_first_run(node, self.manifest, query))
            if any(f":{START}" in text for text in statements):
                where, parameters = self._batch(node)
        except LitmusError as error:
            problem = str(error).removeprefix(f"{node.place}: ")
            return DbtJob(name, node.place, node.raw_code, (), (), problem, node=node.unique_id)
        return DbtJob(
            name, node.place, node.raw_code, statements, opaque, "", where, parameters,
            node.unique_id,
        )  # fmt: skip

    def _batch(self, node: DbtNode) -> tuple[str, dict[str, str]]:
        """Return the condition on the parameters of a batch, and their types."""
        columns = {
            str(other.config["event_time"]).lower(): self.names.get(key, "")
            for key in (node.unique_id, *node.depends_on.nodes)
            if (other := self.manifest.nodes.get(key) or self.manifest.sources.get(key))
            and other.config.get("event_time")
        }
        types = {
            column.type
            for name, table in columns.items()
            for column in self.schemas.get(table, Schema("", ())).columns
            if column.name.lower() == name
        }
        if self.manifest.adapter == "databricks":
            types = {"TIMESTAMP"}
        type_ = types.pop() if len(types) == 1 else ""
        given = dict.fromkeys((START, END), type_) if type_ in ("DATE", "TIMESTAMP") else {}
        step = BATCH_STEP.get(str(node.config.get("batch_size")))
        if step is not None and type_ == "DATE":
            return f"{END} = {step.format(start=START)}", given
        return f"{START} < {END}", given

    def _snapshot(
        self, node: DbtNode, queries: Sequence[str], staging: list[DbtTable]
    ) -> tuple[DbtWrite, tuple[str, str]]:
        """Return the statements of a snapshot on a table that stands for its staging view."""
        names = snapshot_columns(node)
        assert node.relation_name is not None
        more = [
            Column(names[one], "STRING" if one in ("dbt_scd_id", "dbt_is_deleted") else "TIMESTAMP")
            for one in names
        ]
        table = self._add_table(node.unique_id, node, node.relation_name, queries, more=more)
        write = build_snapshot_run(node, self.manifest)
        if not table.columns:
            node.refuse(self._without_columns(queries))
        name = f"{table.name}__dbt_tmp"
        columns = (*table.columns, Column("dbt_change_type", "STRING"), Column("run", "BIGINT"))
        staging.append(
            DbtTable(
                node.unique_id, name, staging_relation(node), columns, table.origin, written=False
            )
        )
        listed = ", ".join(f"`{column.name}`" for column in columns[:-1])
        rows = f"(select {listed} from {name} where run = :run)"
        relation = re.escape(staging_relation(node))
        main = tuple(
            re.sub(rf"\busing {relation} as", lambda _: f"using {rows} as", one)
            for one in write.main
        )
        return write._replace(main=main), (name, table.name)

    def _operations(self, kind: str) -> Iterator[DbtJob]:
        """Yield the job of the hooks of an invocation, if there are any."""
        found = [
            node
            for node in self.manifest.nodes.values()
            if node.resource_type == "operation" and kind in node.name
        ]
        if not found:
            return
        texts = [
            node.compiled_code or render_hook(node.raw_code, node, self.manifest) for node in found
        ]
        name, place = kind.replace("-", "_"), found[0].place.removeprefix("./")
        raw = "\n".join(node.raw_code for node in found)
        if any(text is None for text in texts):
            problem = f"a hook {kind} has values that the manifest does not have; run dbt compile"
            yield DbtJob(name, place, raw, (), (), problem)
            return
        statements = [
            self._inlined(self.renaming.apply(text)) for text in texts if text and text.strip()
        ]
        if statements:
            yield DbtJob(name, place, raw, tuple(statements), ())
