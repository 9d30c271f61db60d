"""Statements that dbt-spark and dbt-databricks write for a model or a snapshot.

The manifest has no statement that writes: ``compiled_code`` is the query of a model. These
functions write what the adapters' macros write around it (dbt-spark 1.11,
``dbt/include/spark/macros/materializations``; dbt-databricks 1.11). A temporary view of the query
comes first, as dbt creates it. Batches of a microbatch model have the parameters ``:batch_start``
and ``:batch_end``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.projects.dbt_branches import render_hook

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode

STRATEGIES = {
    "spark": ("append", "merge", "insert_overwrite", "microbatch"),
    "databricks": (
        "append", "merge", "insert_overwrite", "replace_where", "microbatch", "delete+insert",
    ),
}  # fmt: skip
"""Incremental strategies of each adapter."""
DEFAULTS = {"spark": ("append", "parquet"), "databricks": ("merge", "delta")}
"""Default incremental strategy and file format of each adapter."""
DYNAMIC = "set spark.sql.sources.partitionOverwriteMode = DYNAMIC"
SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
START, END = "batch_start", "batch_end"
"""Parameters of a batch: its first moment, and the first moment after it."""


class DbtWrite(NamedTuple):
    """Statements of one run of a model, in their order."""

    before: tuple[str, ...]
    """Settings and pre-hooks."""
    views: tuple[tuple[str, str], ...]
    """Temporary view with its query, if the main statements read from one."""
    main: tuple[str, ...]
    """Statements that write to the table of the model."""
    after: tuple[str, ...]
    """Comments of columns (``persist_docs``) and post-hooks."""
    query: str = ""
    """Query at the end of the main statement, if this creates the table."""


def build_incremental_run(
    node: DbtNode, manifest: DbtManifest, query: str, columns: Sequence[str]
) -> DbtWrite:
    """Return the statements of an incremental model whose table exists.

    Parameters
    ----------
    node : DbtNode
        The model.
    manifest : DbtManifest
        Its project.
    query : str
        Query of the incremental branch.
    columns : sequence of str
        Columns of the table.

    Raises
    ------
    LitmusError
        If the adapter does not have the strategy, or refuses the configuration.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> config = {"materialized": "incremental", "file_format": "delta"}
    >>> node = DbtNode("model.p.m", "model", "m", relation_name="dev.m", config=config)
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> build_incremental_run(node, manifest, "select 1 as id", ["id"]).main
    ('insert into table dev.m select `id` from m__dbt_tmp',)
    """
    strategy = _strategy(node, manifest)
    before, after = (_hooks(node, manifest, key) for key in ("pre-hook", "post-hook"))
    view = f"{node.identifier}__dbt_tmp"
    partitioned = node.strings("partition_by")
    overwrites = strategy in ("insert_overwrite", "microbatch") and partitioned
    if strategy == "microbatch":
        query = batch_query(node, manifest, query)
    if manifest.adapter == "databricks":
        main = _databricks_write(node, strategy, view, columns)
        overwrites = ()
    elif strategy == "append":
        main = (f"insert into table {_table(node)} select {_csv(columns)} from {view}",)
    elif strategy == "merge":
        main = (_spark_merge(node, view, columns),)
    else:
        if strategy == "microbatch" and not partitioned:
            node.refuse("the strategy microbatch of dbt-spark needs partition_by; dbt refuses it")
        partition = f" partition ({','.join(partitioned)})" if partitioned else ""
        columns_ = _csv(columns)
        main = (f"insert overwrite table {_table(node)}{partition} select {columns_} from {view}",)
    after = (*_column_comments(node, manifest), *after)
    return DbtWrite((*([DYNAMIC] if overwrites else []), *before), ((view, query),), main, after)


def build_first_run(node: DbtNode, manifest: DbtManifest, query: str) -> DbtWrite:
    """Return the statements of a table, and of the first or a full-refresh run of an incremental
    model.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> config = {"materialized": "table", "file_format": "delta", "partition_by": "day"}
    >>> node = DbtNode("model.p.m", "model", "m", relation_name="dev.m", config=config)
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> build_first_run(node, manifest, "select 1 as day").main
    ('create or replace table dev.m using delta partitioned by (day) as',)
    """
    _check_format(node, manifest)
    dynamic: list[str] = []
    if node.materialized == "incremental" and manifest.adapter == "spark":
        strategy = _strategy(node, manifest)
        if strategy in ("insert_overwrite", "microbatch") and node.strings("partition_by"):
            dynamic.append(DYNAMIC)
        if strategy == "microbatch":
            query = batch_query(node, manifest, query)
    before, after = (_hooks(node, manifest, key) for key in ("pre-hook", "post-hook"))
    parts = [f"create or replace table {_table(node)}", "using delta"]
    properties = node.config.get("tblproperties")
    if isinstance(properties, dict) and properties:
        listed = ", ".join(
            f"{quote_text(key)} = {quote_text(value)}" for key, value in properties.items()
        )
        parts.append(f"tblproperties ({listed})")
    if partitioned := node.strings("partition_by"):
        parts.append(f"partitioned by ({','.join(partitioned)})")
    if clustered := node.strings("liquid_clustered_by"):
        parts.append(f"cluster by ({', '.join(clustered)})")
    contract = node.config.get("contract")
    if isinstance(contract, dict) and contract.get("enforced") is True:
        named = ", ".join(column.name for column in node.columns.values())
        query = f"select {named} from ( {query} ) as model_subq"
    after = (*_column_comments(node, manifest), *after)
    return DbtWrite((*dynamic, *before), (), (" ".join((*parts, "as")),), after, query.strip())


def build_snapshot_run(node: DbtNode, manifest: DbtManifest) -> DbtWrite:
    """Return the statements of a snapshot whose table exists; its staging view is no part of them.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> config = {"materialized": "snapshot", "file_format": "delta"}
    >>> node = DbtNode("snapshot.p.s", "snapshot", "s", relation_name="s", config=config)
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> print(build_snapshot_run(node, manifest).main[0][:70])
    merge into s as DBT_INTERNAL_DEST using s__dbt_tmp as DBT_INTERNAL_SOU
    """
    _check_format(node, manifest)
    before, after = (_hooks(node, manifest, key) for key in ("pre-hook", "post-hook"))
    names = snapshot_columns(node)
    key, end = names["dbt_scd_id"], f"{TARGET}.{names['dbt_valid_to']}"
    current = node.text("dbt_valid_to_current")
    open_ = f"( {end} = {current} or {end} is null )" if current else f"{end} is null"
    merge = (
        f"merge into {_table(node)} as {TARGET} using {staging_relation(node)} as {SOURCE}"
        f" on {SOURCE}.{key} = {TARGET}.{key}"
        f" when matched and {open_} and {SOURCE}.dbt_change_type in ('update', 'delete')"
        f" then update set {names['dbt_valid_to']} = {SOURCE}.{names['dbt_valid_to']}"
        f" when not matched and {SOURCE}.dbt_change_type = 'insert' then insert *"
    )
    return DbtWrite(before, (), (merge,), (*_column_comments(node, manifest), *after))


def staging_relation(node: DbtNode) -> str:
    """Return the view of the rows that a snapshot merges."""
    schema = f"{node.schema}." if node.schema else ""
    return f"{schema}{node.identifier}__dbt_tmp"


def snapshot_columns(node: DbtNode) -> dict[str, str]:
    """Return the names of the columns that dbt adds to a snapshot, by their usual names.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtNode
    >>> list(snapshot_columns(DbtNode("snapshot.p.s", "snapshot", "s")))
    ['dbt_scd_id', 'dbt_updated_at', 'dbt_valid_from', 'dbt_valid_to']
    """
    given = node.config.get("snapshot_meta_column_names")
    names = given if isinstance(given, dict) else {}
    usual = ["dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to"]
    if node.config.get("hard_deletes") == "new_record":
        usual.append("dbt_is_deleted")
    return {one: str(names.get(one) or one) for one in usual}


def batch_query(node: DbtNode, manifest: DbtManifest, query: str) -> str:
    """Return the query of a batch: relations with an event_time have only rows of the batch."""
    if node.text("event_time") is None:
        node.refuse("the strategy microbatch needs event_time; dbt refuses the model")
    if re.search(r"\.\s*render\s*\(", node.raw_code):
        node.refuse("ref(…).render() leaves out the filter of a batch, which is unsupported")
    for key in node.depends_on.nodes:
        other = manifest.nodes.get(key) or manifest.sources.get(key)
        column = None if other is None else other.config.get("event_time")
        if other is None or not isinstance(column, str):
            continue
        relation = other.relation_name
        if getattr(other, "materialized", "") == "ephemeral":
            relation = f"__dbt__cte__{getattr(other, 'identifier', other.name)}"
        if relation:
            rows = f"(select * from {relation} where {column} >= :{START} and {column} < :{END})"
            pattern = rf"(?<![\w.`]){re.escape(relation)}(?![\w.`])(?!\s+as\s*\()"
            query = re.sub(pattern, lambda _, rows=rows: rows, query)  # type: ignore[misc]
    return query


def _strategy(node: DbtNode, manifest: DbtManifest) -> str:
    """Return the incremental strategy; refuse one that the adapter does not have."""
    format_ = _check_format(node, manifest)
    strategy = node.text("incremental_strategy") or DEFAULTS[manifest.adapter][0]
    known = STRATEGIES[manifest.adapter]
    if strategy not in known:
        node.refuse(
            f"the strategy '{strategy}' is not one of dbt-{manifest.adapter}"
            f" ({', '.join(known)}), which refuses the model"
        )
    assert format_ == "delta"
    return strategy


def _check_format(node: DbtNode, manifest: DbtManifest) -> str:
    """Return the file format, delta; refuse another one."""
    default = DEFAULTS[manifest.adapter][1]
    format_ = node.text("file_format") or default
    if format_ != "delta":
        said = "" if node.config.get("file_format") else f", the default of dbt-{manifest.adapter}"
        node.refuse(
            f"file_format is {format_}{said}: only Delta tables have a commit protocol; set"
            " file_format: delta"
        )
    return format_


def _hooks(node: DbtNode, manifest: DbtManifest, key: str) -> tuple[str, ...]:
    """Return the statements of hooks; refuse one that the manifest does not determine."""
    found: list[str] = []
    for template in node.hooks("pre-hook" if key == "pre-hook" else "post-hook"):
        statement = render_hook(template, node, manifest)
        if statement is None:
            node.refuse(
                f"the {key} '{' '.join(template.split())}' has values that the manifest does not"
                " have; known are this, ref(), source() and target.schema"
            )
        if statement:
            found.append(statement)
    return tuple(found)


def _column_comments(node: DbtNode, manifest: DbtManifest) -> tuple[str, ...]:
    """Return the statements with which each run of dbt-spark writes comments of columns."""
    persisted = node.config.get("persist_docs")
    wanted = isinstance(persisted, dict) and persisted.get("columns") is True
    if manifest.adapter != "spark" or not wanted:
        return ()
    names = {
        key: f"`{column.name}`" if column.quote else column.name
        for key, column in node.columns.items()
    }
    return tuple(
        f"alter table {_table(node)} change column {names[key]} comment"
        f" {quote_text(column.description)}"
        for key, column in node.columns.items()
    )


def _spark_merge(node: DbtNode, view: str, columns: Sequence[str]) -> str:
    """Return the MERGE of dbt-spark (``spark__get_merge_sql``)."""
    keys = node.strings("unique_key")
    matches = [f"{SOURCE}.{key} = {TARGET}.{key}" for key in keys] or ["FALSE"]
    conditions = " and ".join((*_predicates(node), *matches))
    updated = _updated_columns(node, [f"`{column}`" for column in columns])
    changes = ", ".join(f"{one} = {SOURCE}.{one}" for one in updated) or "*"
    return (
        f"merge into {_table(node)} as {TARGET} using {view} as {SOURCE} on {conditions}"
        f" when matched then update set {changes} when not matched then insert *"
    )


def _predicates(node: DbtNode) -> tuple[str, ...]:
    """Return the conditions of ``incremental_predicates``, or of ``predicates``."""
    return node.strings("predicates") or node.strings("incremental_predicates")


def _updated_columns(node: DbtNode, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a MERGE updates; none if it updates all."""
    updated = node.strings("merge_update_columns")
    excluded = {name.lower() for name in node.strings("merge_exclude_columns")}
    if updated and excluded:
        node.refuse(
            "merge_update_columns and merge_exclude_columns are both set; dbt refuses the model,"
            " remove one of them"
        )
    if not excluded:
        return updated
    if not columns:
        node.refuse(
            "merge_exclude_columns needs the columns of the table; run dbt docs generate, or"
            " declare the columns with data_type"
        )
    return tuple(one for one in columns if one.strip("`").lower() not in excluded)


def _databricks_write(
    node: DbtNode, strategy: str, view: str, columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the statements of dbt-databricks, on Databricks Runtime 17.1 or later.

    INSERT BY NAME is written with its list of columns.
    """
    table, listed = _table(node), ", ".join(f"`{column}`" for column in columns) or "*"
    predicates = _predicates(node)
    if strategy == "append":
        return (f"insert into {table} ({listed}) select {listed} from {view}",)
    if strategy == "merge":
        return (_databricks_merge(node, view, columns),)
    if strategy in ("replace_where", "microbatch"):
        if strategy == "microbatch":
            column = node.text("event_time")
            predicates += (
                f"cast({column} as TIMESTAMP) >= :{START}",
                f"cast({column} as TIMESTAMP) < :{END}",
            )
        replaced = f" replace where {' and '.join(predicates)}" if predicates else ""
        return (f"insert into {table}{replaced} select {listed} from {view}",)
    keys = node.strings("unique_key")
    if strategy == "insert_overwrite":
        keys = (*node.strings("partition_by"), *node.strings("liquid_clustered_by"))
        if not keys:
            return (f"insert overwrite table {table} select {listed} from {view}",)
        predicates = ()
    elif not keys:
        node.refuse("the strategy delete+insert needs unique_key; dbt refuses the model")
    same = " and ".join(f"t.{key} <=> s.{key}" for key in keys)
    where = f" where {' and '.join(predicates)}" if predicates else ""
    rows = f"(select {listed} from {view}{where})"
    return (f"insert into table {table} as t replace on ({same}) {rows} as s",)


def _databricks_merge(node: DbtNode, view: str, columns: Sequence[str]) -> str:
    """Return the MERGE of dbt-databricks (``databricks__get_merge_sql``)."""
    target = node.text("target_alias") or TARGET
    source = node.text("source_alias") or SOURCE
    keys = node.strings("unique_key")
    matches = [f"{source}.`{key}` <=> {target}.`{key}`" for key in keys] or ["FALSE"]
    parts = [
        f"merge into {_table(node)} as {target} using {view} as {source}",
        f"on {' and '.join((*_predicates(node), *matches))}",
    ]
    if _is_set(node, "merge_with_schema_evolution"):
        parts[0] = parts[0].replace("merge into", "merge with schema evolution into", 1)
    updated = _updated_columns(node, columns)
    changes = ", ".join(f"`{one}` = {source}.`{one}`" for one in updated) or "*"
    if not _is_set(node, "skip_matched_step"):
        parts.append(f"when matched{_condition(node, 'matched')} then update set {changes}")
    if not _is_set(node, "skip_not_matched_step"):
        parts.append(f"when not matched{_condition(node, 'not_matched')} then insert *")
    action = (node.text("not_matched_by_source_action") or "").strip()
    if action.lower() == "delete" or action.lower().startswith("update"):
        condition = _condition(node, "not_matched_by_source")
        parts.append(f"when not matched by source{condition} then {action}")
    return " ".join(parts)


def _condition(node: DbtNode, clause: str) -> str:
    condition = node.text(f"{clause}_condition")
    return f" and ({condition})" if condition else ""


def _is_set(node: DbtNode, key: str) -> bool:
    return str(node.config.get(key)).lower() == "true"


def _table(node: DbtNode) -> str:
    if not node.relation_name:
        node.refuse("it has no relation_name, so its table is unknown; run dbt compile")
    return node.relation_name


def _csv(columns: Collection[str]) -> str:
    """Return the quoted names of columns, or ``*`` if they are not known."""
    return ", ".join(f"`{column}`" for column in columns) or "*"


def quote_text(value: object) -> str:
    r"""Return a value of a configuration as a string of SQL.

    Examples
    --------
    >>> print(quote_text("a'b"), quote_text(True))
    'a\'b' 'true'
    """
    text = str(value).lower() if isinstance(value, bool) else str(value)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
