"""Statements of a dbt model are those that the adapter writes, in both branches."""

import re
from pathlib import Path

import msgspec
import pytest

from isolitmus.jobs.projects.dbt_branches import find_branches
from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode, read_manifest
from isolitmus.jobs.projects.dbt_project import read_dbt_project
from isolitmus.jobs.projects.dbt_writes import (
    STRATEGIES,
    build_first_run,
    build_incremental_run,
    build_snapshot_run,
)
from isolitmus.model.errors import LitmusError

DATA = Path(__file__).parents[2] / "data" / "dbt"
MANIFEST = DATA / "shop" / "target" / "manifest.json"
SHOP = read_manifest(MANIFEST)
NODES = {node.name: node for node in SHOP.nodes.values()}
COLUMNS = {
    table.node: [column.name for column in table.columns]
    for table in read_dbt_project(MANIFEST).tables
}
INCREMENTAL = [
    "customers", "daily_totals", "event_days_2026-01-02", "events_log", "orders", "recent_orders",
]  # fmt: skip
FIRST = [
    "customers", "daily_totals", "event_days_2026-01-01", "events_log", "orders", "recent_orders",
    "top_customers",
]  # fmt: skip


def plain(sql):
    """Return a statement without comments, the semicolon at its end and needless blanks."""
    text = re.sub(r"--[^\n]*", "", sql).strip().rstrip("; \n")
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", text)).lower()


def written(branch, name):
    return plain((DATA / "written" / branch / f"{name}.sql").read_text("utf-8"))


def with_batch(sql, name):
    """Return a statement of a batch with the values that dbt gave its parameters."""
    day = int(name[-1]) if name[-1].isdigit() else 0
    start, end = (f"'2026-01-{day + k:02} 00:00:00+00:00'" for k in (0, 1))
    return sql.replace(":batch_start", start).replace(":batch_end", end)


@pytest.mark.parametrize("name", INCREMENTAL)
def test_an_incremental_run_is_what_dbt_spark_writes(name):
    node = NODES[name.partition("_2026")[0]]
    query = find_branches(node, SHOP).incremental
    (main,) = build_incremental_run(node, SHOP, query, COLUMNS[node.unique_id]).main
    assert plain(main) == written("incremental_run", name)


@pytest.mark.parametrize("name", FIRST)
def test_a_first_run_is_what_dbt_spark_writes(name):
    node = NODES[name.partition("_2026")[0]]
    made = build_first_run(node, SHOP, find_branches(node, SHOP).first)
    (main,) = made.main
    assert plain(with_batch(f"{main} {made.query}", name)) == written("first_run", name)


@pytest.mark.parametrize("name", ["country_history", "customer_history"])
def test_a_snapshot_is_what_dbt_spark_writes(name):
    (main,) = build_snapshot_run(NODES[name], SHOP).main
    assert plain(main) == written("incremental_run", name)


def test_an_overwrite_of_partitions_is_dynamic_and_hooks_stand_around_the_write():
    node = NODES["daily_totals"]
    made = build_incremental_run(node, SHOP, "select 1", ["day"])
    assert made.before == ("set spark.sql.sources.partitionOverwriteMode = DYNAMIC",)
    assert made.views == (("daily_totals__dbt_tmp", "select 1"),)
    assert build_incremental_run(NODES["events_log"], SHOP, "select 1", ["day"]).after == (
        "delete from dev.events_log where day < date '2025-01-01'",
        "update dev.load_state set loaded = current_timestamp() where model = 'events_log'",
    )


def model(adapter="spark", raw="select 1 as id", **config):
    """Return a model with a configuration, and its project."""
    config = {"materialized": "incremental", "file_format": "delta"} | config
    node = DbtNode(
        "model.p.m", "model", "m", relation_name="dev.m", original_file_path="models/m.sql",
        raw_code=raw, compiled_code="select 1 as id", config=config,
    )  # fmt: skip
    return node, DbtManifest("manifest.json", "p", adapter, {node.unique_id: node}, {}, {})


def main_of(adapter="spark", **config):
    node, manifest = model(adapter, **config)
    return build_incremental_run(node, manifest, "select 1 as id", ["id", "day"]).main


def test_the_default_strategy_of_dbt_spark_appends_and_that_of_dbt_databricks_merges():
    assert main_of() == ("insert into table dev.m select `id`, `day` from m__dbt_tmp",)
    (merge,) = main_of("databricks", unique_key="id")
    assert merge == (
        "merge into dev.m as DBT_INTERNAL_DEST using m__dbt_tmp as DBT_INTERNAL_SOURCE"
        " on DBT_INTERNAL_SOURCE.`id` <=> DBT_INTERNAL_DEST.`id`"
        " when matched then update set * when not matched then insert *"
    )


DATABRICKS = {
    "append": "insert into dev.m (`id`, `day`) select `id`, `day` from m__dbt_tmp",
    "insert_overwrite": "insert into table dev.m as t replace on (t.day <=> s.day) (select `id`, `day` from m__dbt_tmp) as s",
    "replace_where": "insert into dev.m replace where day > 3 select `id`, `day` from m__dbt_tmp",
    "microbatch": "insert into dev.m replace where day > 3 and cast(day as TIMESTAMP) >= :batch_start and cast(day as TIMESTAMP) < :batch_end select `id`, `day` from m__dbt_tmp",
    "delete+insert": "insert into table dev.m as t replace on (t.id <=> s.id) (select `id`, `day` from m__dbt_tmp where day > 3) as s",
    "merge": "merge into dev.m as DBT_INTERNAL_DEST using m__dbt_tmp as DBT_INTERNAL_SOURCE on day > 3 and DBT_INTERNAL_SOURCE.`id` <=> DBT_INTERNAL_DEST.`id` when matched then update set * when not matched then insert *",
}


@pytest.mark.parametrize("strategy", STRATEGIES["databricks"])
def test_dbt_databricks_has_a_statement_for_each_strategy(strategy):
    found = main_of(
        "databricks", incremental_strategy=strategy, unique_key="id", partition_by="day",
        event_time="day", incremental_predicates=["day > 3"],
    )  # fmt: skip
    assert found == (DATABRICKS[strategy],)


def test_clauses_of_a_merge_on_databricks():
    (found,) = main_of(
        "databricks", unique_key=["id", "day"], merge_exclude_columns=["day"], target_alias="t",
        source_alias="s", matched_condition="s.id > t.id", skip_not_matched_step=True,
        not_matched_by_source_action="delete", not_matched_by_source_condition="t.day < 3",
        merge_with_schema_evolution=True,
    )  # fmt: skip
    assert found == (
        "merge with schema evolution into dev.m as t using m__dbt_tmp as s on s.`id` <=> t.`id` and"
        " s.`day` <=> t.`day` when matched and (s.id > t.id) then update set `id` = s.`id`"
        " when not matched by source and (t.day < 3) then delete"
    )


REFUSED = {
    "a strategy of another adapter": (
        {"incremental_strategy": "delete+insert", "unique_key": "id"},
        "models/m.sql: the strategy 'delete+insert' is not one of dbt-spark (append, merge, insert_overwrite, microbatch), which refuses the model",
    ),
    "replace_where, which dbt-spark has not": (
        {"incremental_strategy": "replace_where"},
        "models/m.sql: the strategy 'replace_where' is not one of dbt-spark (append, merge, insert_overwrite, microbatch), which refuses the model",
    ),
    "a format without commits": (
        {"file_format": "parquet"},
        "models/m.sql: file_format is parquet: only Delta tables have a commit protocol; set file_format: delta",
    ),
    "the default format of dbt-spark": (
        {"file_format": None},
        "models/m.sql: file_format is parquet, the default of dbt-spark: only Delta tables have a commit protocol; set file_format: delta",
    ),
    "microbatch without partitions": (
        {"incremental_strategy": "microbatch", "event_time": "day"},
        "models/m.sql: the strategy microbatch of dbt-spark needs partition_by; dbt refuses it",
    ),
    "microbatch without a time": (
        {"incremental_strategy": "microbatch", "partition_by": "day"},
        "models/m.sql: the strategy microbatch needs event_time; dbt refuses the model",
    ),
    "two lists of columns": (
        {
            "incremental_strategy": "merge",
            "merge_update_columns": ["id"],
            "merge_exclude_columns": ["day"],
        },
        "models/m.sql: merge_update_columns and merge_exclude_columns are both set; dbt refuses the model, remove one of them",
    ),
    "a key that is a number": (
        {"incremental_strategy": "merge", "unique_key": 3},
        "models/m.sql: unique_key is 3; expected a string or a list of strings",
    ),
    "a strategy that is a list": (
        {"incremental_strategy": ["merge"]},
        "models/m.sql: incremental_strategy is ['merge']; expected a string",
    ),
    "a hook of a macro": (
        {"post-hook": [{"sql": "{{ mine() }}", "transaction": True}]},
        "models/m.sql: the post-hook '{{ mine() }}' has values that the manifest does not have; known are this, ref(), source() and target.schema",
    ),
    "a hook that is no statement": (
        {"pre-hook": [3]},
        "models/m.sql: pre-hook is 3; expected a statement",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_adapter_does_not_have_is_refused_by_name(case):
    config, message = REFUSED[case]
    with pytest.raises(LitmusError) as found:
        main_of(**config)
    assert str(found.value) == message


def test_databricks_needs_a_key_to_delete_by():
    with pytest.raises(LitmusError, match=r"the strategy delete\+insert needs unique_key"):
        main_of("databricks", incremental_strategy="delete+insert")


def test_merge_exclude_columns_needs_the_columns():
    node, manifest = model(incremental_strategy="merge", merge_exclude_columns=["day"])
    with pytest.raises(LitmusError, match="needs the columns of the table; run dbt docs generate"):
        build_incremental_run(node, manifest, "select 1 as id", [])


def test_rendered_references_in_a_batch_are_refused():
    raw = "select * from {{ ref('x').render() }}"
    node, manifest = model(
        raw=raw, incremental_strategy="microbatch", event_time="day", partition_by="day"
    )
    with pytest.raises(LitmusError, match="leaves out the filter of a batch"):
        build_incremental_run(node, manifest, "select 1 as id", ["id"])


def test_comments_of_columns_are_altered_by_each_run_of_dbt_spark():
    columns = {"id": {"name": "id", "description": "it's"}, "day": {"name": "day", "quote": True}}
    for adapter, after in (
        (
            "spark",
            (
                "alter table dev.m change column id comment 'it\\'s'",
                "alter table dev.m change column `day` comment ''",
            ),
        ),
        ("databricks", ()),
    ):
        node, manifest = model(adapter, persist_docs={"columns": True})
        node = msgspec.convert(msgspec.to_builtins(node) | {"columns": columns}, DbtNode)
        assert build_first_run(node, manifest, "select 1").after == after
        assert build_incremental_run(node, manifest, "select 1", ["id"]).after == after


def test_a_merge_without_a_key_matches_no_row():
    (found,) = main_of(incremental_strategy="merge")
    assert " on FALSE when matched" in found


def test_properties_and_contracts_of_a_new_table():
    node, manifest = model(
        materialized="table", tblproperties={"delta.appendOnly": True, "a'b": "c"},
        contract={"enforced": True},
    )  # fmt: skip
    made = build_first_run(node, manifest, "select 1 as id")
    assert made.main == (
        "create or replace table dev.m using delta tblproperties ('delta.appendOnly' = 'true', 'a\\'b' = 'c') as",
    )
    assert made.query == "select  from ( select 1 as id ) as model_subq"
