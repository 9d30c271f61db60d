"""A dbt project is a workload: its jobs, what overlaps, and what predict says of it."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.projects.dbt_project import read_dbt_project
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.prediction import prediction_lines
from isolitmus.jobs.sql.invariant_text import read_invariants_of
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.specs import protocol

SHOP = Path(__file__).parents[2] / "data" / "dbt" / "shop"
HOOKS = SHOP / "hooks.sql"


def project(folder, *, schedule=None, change=None):
    """Return the workload of the project shop after a change of its manifest, and its schedule."""
    target = folder / "shop"
    shutil.copytree(SHOP, target)
    if schedule is not None:
        (target / "isolitmus.toml").write_text(f"[schedule]\n{schedule}\n", "utf-8")
    if change is not None:
        path = target / "target" / "manifest.json"
        given = json.loads(path.read_text("utf-8"))
        change(given["nodes"])
        path.write_text(json.dumps(given), "utf-8")
    return target


def unread(work):
    return {one.name: one.problem.partition(";")[0] for one in work.unread}


@pytest.fixture(scope="module")
def shop():
    return predict_workload(workload(str(SHOP), ddl=HOOKS), protocol("delta-serializable"))


CONFLICTS = {
    # A MERGE whose ON has no literal for a partition reads the whole table.
    "country_history": {"country_history", "optimize_country_history"},
    "customer_history": {"customer_history", "optimize_customer_history"},
    "customers_1": {"customers_1", "optimize_customers"},
    "orders": {"orders", "optimize_orders"},
    # With incremental_predicates it reads one partition, and every run reads the same one.
    "recent_orders": {"recent_orders", "optimize_recent_orders"},
    # A blind append never conflicts, and the DELETE of its hook reads old partitions.
    "events_log_1": set(),
    "events_log_2": {"events_log_1", "events_log_2", "optimize_events_log"},
    # Hooks of two models update one table.
    "events_log_3": {"events_log_3", "customers_2"},
    "customers_2": {"events_log_3", "customers_2"},
    "on_run_end": set(),
    "event_days": {"event_days", "optimize_event_days"},
    "daily_totals": {"daily_totals", "optimize_daily_totals"},
    "top_customers": {"top_customers", "optimize_top_customers"},
    "optimize_top_customers": {"top_customers"},
    "optimize_country_history": {"country_history"},
    "optimize_customer_history": {"customer_history"},
    "optimize_customers": {"customers_1"},
    "optimize_daily_totals": {"daily_totals"},
    "optimize_event_days": {"event_days"},
    "optimize_events_log": {"events_log_2"},
    "optimize_orders": {"orders"},
    "optimize_recent_orders": {"recent_orders"},
}
"""By the statements that dbt-spark writes and what Delta records of each, derived by hand."""


@pytest.mark.slow
def test_statements_that_conflict(shop):
    found = {
        loser: {one.winner for one in row if one.word in ("always", "when")}
        for loser, row in shop.rows.items()
    }
    assert {loser: some for loser, some in found.items() if some} == {
        loser: some for loser, some in CONFLICTS.items() if some
    }


@pytest.mark.slow
def test_two_batches_conflict_only_if_they_are_the_same(shop):
    (batch,) = (one for one in shop.meetings if one.loser == one.winner == "event_days")
    assert batch.condition == ("both have the same :batch_start",)


@pytest.mark.slow
def test_the_answer_names_first_what_may_overlap(shop):
    lines = list(prediction_lines(shop))
    assert lines[0] == (
        "Assumed: Two invocations may overlap; OPTIMIZE of each table runs at any time; no"
        " invocation uses --full-refresh."
    )
    assert "Statements that write to different tables never conflict (proved)." in lines
    assert not any(line.startswith("- Two invocations") for line in lines)
    assert shop.to_json()["assumptions"][0] == lines[0].removeprefix("Assumed: ")


def test_one_invocation_at_a_time_leaves_the_hooks_on_a_shared_table(tmp_path):
    target = project(tmp_path, schedule='one_at_a_time = "all"\nmaintenance = false')
    work = workload(str(target), ddl=HOOKS)
    found = predict_workload(work, protocol("delta-serializable"), examples=False)
    known = found.meetings
    assert {one.word for one in known} == {"never", "apart", "always"}
    assert {(one.loser, one.winner) for one in known if one.word == "always"} == {
        ("events_log_3", "customers_2"),
        ("customers_2", "events_log_3"),
    }
    assert not work.overlap("top_customers", "customers")
    assert not work.overlap("on_run_end", "orders")
    assert work.overlap("orders", "customers")


@pytest.mark.slow
def test_batches_of_one_invocation_run_at_the_same_time_on_databricks_and_differ(tmp_path):
    target = project(tmp_path, schedule='one_at_a_time = "all"\nmaintenance = false')
    path = target / "target" / "manifest.json"
    path.write_text(path.read_text("utf-8").replace('"spark"', '"databricks"'), "utf-8")
    work = workload(str(target), ddl=HOOKS)
    assert work.overlap("event_days", "event_days")
    assert not work.overlap("orders", "orders")
    assert work.distinct == ("batch_start",)
    usual = workload(str(SHOP), ddl=HOOKS)
    assert usual.distinct == ()


@pytest.mark.slow
def test_full_refreshes_are_jobs_that_run_after_the_models_that_they_read(tmp_path):
    schedule = 'one_at_a_time = "all"\nfull_refresh = true'
    work = workload(str(project(tmp_path, schedule=schedule)), ddl=HOOKS)
    assert "orders_full_refresh" in work.job_names
    assert not work.overlap("orders", "orders_full_refresh")
    assert not work.overlap("top_customers", "customers_full_refresh")
    assert "an invocation may use --full-refresh" in work.schedule
    usual = workload(str(SHOP), ddl=HOOKS)
    assert "orders_full_refresh" not in usual.job_names


def test_maintenance_is_what_the_configuration_says(tmp_path):
    schedule = 'maintenance = ["OPTIMIZE orders WHERE day < :today"]'
    work = workload(str(project(tmp_path, schedule=schedule)), ddl=HOOKS)
    assert [name for name in work.jobs if "optimize" in name or "maintenance" in name] == [
        "maintenance_1"
    ]
    assert dict(work.jobs["maintenance_1"].parameters) == {"today": "DATE"}


def test_parameters_that_the_configuration_declares(tmp_path):
    target = project(tmp_path, schedule='distinct = ["batch_start"]\nshared = { today = "DATE" }')
    found = workload(str(target), ddl=HOOKS)
    assert (found.distinct, found.shared) == (("batch_start",), {"today": "DATE"})


def test_a_job_that_the_configuration_names_has_to_exist(tmp_path):
    target = project(tmp_path, schedule='one_at_a_time = ["order"]')
    with pytest.raises(LitmusError) as found:
        workload(str(target), ddl=HOOKS)
    assert str(found.value).startswith(
        "isolitmus.toml:2: schedule.one_at_a_time: unknown job 'order'; did you mean"
    )


def test_a_path_of_the_manifest_is_the_project():
    found = workload(str(SHOP / "target" / "manifest.json"), ddl=HOOKS)
    assert found.jobs.keys() == workload(str(SHOP), ddl=HOOKS).jobs.keys()


def test_columns_without_a_catalog_come_from_yaml_and_from_queries(tmp_path):
    target = project(tmp_path)
    (target / "target" / "catalog.json").unlink()
    work = workload(str(target), ddl=HOOKS)
    assert [column.ddl() for column in work.tables["daily_totals"].columns] == [
        "customer BIGINT", "orders BIGINT", "amount BIGINT", "day DATE",
    ]  # fmt: skip
    assert work.tables["orders"].partitioned_by == ("day",)
    assert [column.name for column in work.tables["country_history"].columns][2:] == [
        "dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to",
    ]  # fmt: skip
    assert "The YAML files declare all columns of" in " ".join(work.left_out)
    assert not work.unread


def test_the_job_of_a_snapshot_reads_its_own_table():
    work = workload(str(SHOP), ddl=HOOKS)
    (merge,) = work.jobs["customer_history"].statements
    assert merge.reads == ("customer_history",)


def without_code(nodes):
    for node in nodes.values():
        node["compiled_code"] = None


def without_types(nodes):
    code = "select id, mine(id) as x from dev.stg_events"
    macros = {"nodes": ["model.shop.stg_events"], "macros": []}
    nodes["model.shop.orders"] |= {
        "columns": {}, "compiled_code": code, "raw_code": code, "depends_on": macros
    }  # fmt: skip


def of(name, **changes):
    def change(nodes):
        nodes[f"model.shop.{name}"].update(changes)

    return change


def configured(name, **changes):
    def change(nodes):
        nodes[f"model.shop.{name}"]["config"].update(changes)

    return change


PROBLEMS = {
    "code that is not compiled": (of("orders", compiled_code=None), "it has no compiled_code"),
    "a python model": (of("orders", language="python"), "python models are unsupported"),
    "a strategy of another adapter": (
        configured("orders", incremental_strategy="delete+insert"),
        "the strategy 'delete+insert' is not one of dbt-spark (append, merge, insert_overwrite, microbatch), which refuses the model",
    ),
    "another materialization": (
        configured("orders", materialized="streaming_table"),
        "the materialization streaming_table is unsupported",
    ),
    "another format": (
        configured("orders", file_format="iceberg"),
        "file_format is iceberg: only Delta tables have a commit protocol",
    ),
    "a query that does not parse": (
        of("orders", compiled_code="select (", raw_code="select (", depends_on={}),
        "this does not parse: Expecting )",
    ),
    "no relation": (
        of("orders", relation_name=None),
        "it has no relation_name, so its table is unknown",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PROBLEMS)
def test_a_model_that_is_not_understood_leaves_the_others_their_answers(case, tmp_path):
    change, problem = PROBLEMS[case]
    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    found = unread(work)
    assert found.keys() == {"orders"}
    assert found["orders"] == problem
    assert {"customers", "events_log", "event_days"} <= work.jobs.keys()
    (one,) = (one for one in work.unread if one.name == "orders")
    assert one.place.startswith("models/marts/orders.sql")
    assert one.location is not None
    assert one.location[:2] == ("models/marts/orders.sql", 1)
    assert one.location.path == tmp_path / "shop" / "models/marts/orders.sql"


def test_columns_that_runs_may_change_are_an_assumption(tmp_path):
    change = configured("orders", on_schema_change="append_new_columns")
    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert "No run changes the columns of orders (on_schema_change)." in work.left_out
    assert "The tables of all incremental models and snapshots exist." in work.left_out


def test_a_table_without_columns_is_told(tmp_path):
    target = project(tmp_path, change=without_types)
    (target / "target" / "catalog.json").unlink()
    work = workload(str(target), ddl=HOOKS)
    assert unread(work)["orders"] == (
        "the columns of its table are not known: no certain type of x in its query"
    )


def test_a_statement_on_the_table_of_a_model_says_why_that_is_not_known(tmp_path):
    def change(nodes):
        code = "select id, mine(name) as name, amount from dev.customers"
        nodes["model.shop.top_customers"] |= {"compiled_code": code, "raw_code": code}
        nodes["model.shop.customers"]["config"]["post-hook"] = [
            {"sql": "delete from dev.top_customers where id = 1", "transaction": True}
        ]

    target = project(tmp_path, change=change)
    without_catalog_of(target, "top_customers")
    work = workload(str(target), ddl=HOOKS)
    problem = next(one.problem for one in work.unread if one.job == "customers")
    assert problem.startswith(
        "the table top_customers of the model top_customers is not known, because"
        " models/marts/top_customers.sql: the columns of its table are not known"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orders", "dev.orders", "spark_catalog.`dev`.Orders"])
def test_ddl_gives_the_columns_of_an_incremental_model(name, tmp_path):
    target = project(tmp_path, change=without_types)
    (target / "target" / "catalog.json").unlink()
    ddl = tmp_path / "tables.sql"
    create = f"CREATE TABLE {name} (id BIGINT, x BIGINT) USING delta"
    ddl.write_text(f"{HOOKS.read_text('utf-8')};\n{create}", "utf-8")
    work = workload(str(target), ddl=ddl)
    assert "orders" not in unread(work)
    assert [column.name for column in work.tables["orders"].columns] == ["id", "x"]


def test_ddl_of_a_source_with_the_name_of_a_model_is_that_of_the_source(tmp_path):
    def change(nodes):
        code = "select id, name, country, updated_at, updated_at as first_seen from raw.customers"
        node = nodes["model.shop.customers"] | {"columns": {}}
        nodes["model.shop.customers"] = node | {"compiled_code": code, "raw_code": code}

    target = project(tmp_path, change=change)
    (target / "target" / "catalog.json").unlink()
    ddl = tmp_path / "tables.sql"
    create = (
        "CREATE TABLE raw.customers (id INT, name STRING, country STRING, updated_at TIMESTAMP,"
        " kind STRING) USING delta"
    )
    ddl.write_text(f"{HOOKS.read_text('utf-8')};\n{create}", "utf-8")
    work = workload(str(target), ddl=ddl)
    assert work.tables["raw_customers"].columns[-1].name == "kind"
    assert [column.ddl() for column in work.tables["customers"].columns] == [
        "id INT", "name STRING", "country STRING", "updated_at TIMESTAMP", "first_seen TIMESTAMP",
    ]  # fmt: skip


def without_catalog_of(target, model):
    path = target / "target" / "catalog.json"
    catalog = json.loads(path.read_text("utf-8"))
    del catalog["nodes"][f"model.shop.{model}"]
    path.write_text(json.dumps(catalog), "utf-8")


def test_the_query_gives_the_columns_of_an_incremental_model_that_looks_at_its_table(tmp_path):
    def change(nodes):
        code = (
            "select id, sum(amount / 2) as half, count(distinct customer) as n from dev.stg_events"
        )
        branch = "where day > (select max(seen) from dev.orders)"
        raw = f"{code} {{% if is_incremental() %}}{branch}{{% endif %}} group by id"
        nodes["model.shop.orders"] |= {
            "columns": {}, "compiled_code": f"{code} {branch} group by id", "raw_code": raw
        }  # fmt: skip

    target = project(tmp_path, change=change)
    without_catalog_of(target, "orders")
    found = read_dbt_project(target / "target" / "manifest.json")
    (columns,) = (table.columns for table in found.tables if table.name == "orders")
    assert [column.ddl() for column in columns] == ["id BIGINT", "half DOUBLE", "n BIGINT"]
    assert not next(job for job in found.jobs if job.name == "orders").problem


@pytest.mark.slow
@pytest.mark.parametrize("hooks", [("BEGIN TRANSACTION", "COMMIT"), ("SET AUTOCOMMIT = 0", "")])
def test_hooks_that_make_a_model_a_transaction(tmp_path, hooks):
    def change(nodes):
        config = nodes["model.shop.customers"]["config"]
        config["pre-hook"] = [{"sql": hooks[0]}]
        config["post-hook"] = [
            {"sql": sql} for sql in ("delete from {{ this }}", *hooks[1:]) if sql
        ]

    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert "customers" not in work.jobs
    assert unread(work)["customers"].startswith("a transaction block")


def test_a_table_that_a_hook_creates_is_declared(tmp_path):
    def creates(nodes):
        code = "create table if not exists dev.run_log (project string, at timestamp) using delta"
        key = "operation.shop.shop-on-run-start-0"
        start = {**nodes[key.replace("start", "end")], "unique_id": key, "name": key[15:]}
        nodes[key] = {**start, "alias": key[15:], "raw_code": code, "compiled_code": code}

    kept = "CREATE TABLE load_state (model STRING, loaded TIMESTAMP) USING delta"
    (tmp_path / "t.sql").write_text(kept, "utf-8")
    assert "on_run_end" in unread(workload(str(project(tmp_path)), ddl=tmp_path / "t.sql"))
    target = project(tmp_path / "other", change=creates)
    work = workload(str(target), ddl=tmp_path / "t.sql")
    assert "on_run_end" not in unread(work)
    assert [column.name for column in work.tables["run_log"].columns] == ["project", "at"]


def test_a_project_that_is_only_parsed_says_what_to_run(tmp_path):
    work = workload(str(project(tmp_path, change=without_code)), ddl=HOOKS)
    assert work.jobs.keys() & {"orders", "customers", "events_log", "daily_totals"} == set()
    models = [one for one in work.unread if one.place.startswith("models")]
    assert len(models) == 7
    assert {one.problem for one in models} == {"it has no compiled_code; run dbt compile"}


def test_a_project_of_which_no_job_is_understood_is_an_error(tmp_path):
    def change(nodes):
        without_code(nodes)
        for key in [key for key in nodes if key.startswith(("snapshot", "operation"))]:
            del nodes[key]

    with pytest.raises(
        IsolitmusError, match=r"no job of shop is understood; models/marts/\w+.sql: it"
    ):
        workload(str(project(tmp_path, change=change)), ddl=HOOKS)


def test_a_table_of_the_same_name_in_another_schema_is_another_table(tmp_path):
    def change(nodes):
        node = nodes["model.shop.customers"]
        code = "select id, name, country, updated_at, updated_at as first_seen from raw.customers"
        node |= {"compiled_code": code, "raw_code": code}
        nodes["model.shop.customers"] = node

    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    merge = work.jobs["customers"].statements[0]
    assert "from raw_customers" in merge.sql
    assert "into customers" in merge.sql.lower()


def test_a_view_that_reads_a_written_table_is_part_of_the_statement(tmp_path):
    def change(nodes):
        view = nodes["model.shop.stg_customers"]
        view |= {"compiled_code": "select id, name, country, updated_at from dev.customer_history"}
        view["raw_code"] = "select id, name, country, updated_at from {{ ref('customer_history') }}"
        view["depends_on"]["nodes"] = ["snapshot.shop.customer_history"]

    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert "from customer_history" in work.jobs["customers"].statements[0].sql.lower()


def test_a_table_that_is_no_table_of_the_model_is_passed_over(tmp_path):
    change = configured("orders", tblproperties={"delta.columnMapping.mode": "id"})
    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert any(line.startswith("The table orders is passed over:") for line in work.left_out)
    assert unread(work)["orders"].startswith(
        "the table orders of the model orders is not known, because"
    )
    assert "columnMapping" in unread(work)["orders"]


SMALL = json.loads((SHOP / "target" / "manifest.json").read_text("utf-8"))
SMALL["nodes"] = {
    key: node
    for key, node in SMALL["nodes"].items()
    if node["name"]
    in ("orders", "stg_events", "event_days", "country_history", "shop-on-run-end-0")
}
VALUES = st.sampled_from(
    [
        None,
        3,
        True,
        "",
        "x",
        "a'b`c",
        "{{",
        "select",
        [],
        ["a"],
        {},
        {"a": "b"},
        [{"sql": "x"}],
        "dev.x",
    ]
)


def places(value, path=()):
    """Yield the paths of all values."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


PATHS = [path for path in places(SMALL) if path[0] in ("nodes", "sources")]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3))
def test_a_mutated_manifest_is_read_or_refused_in_a_sentence(tmp_path_factory, changes):
    made = json.loads(json.dumps(SMALL))
    for path, value in changes:
        at = made
        for key in path[:-1]:
            at = (
                at[key]
                if isinstance(at, dict | list)
                and key in (at if isinstance(at, dict) else range(len(at)))
                else {}
            )
        if isinstance(at, dict):
            at[path[-1]] = value
    folder = tmp_path_factory.mktemp("mutated")
    (folder / "manifest.json").write_text(json.dumps(made), "utf-8")
    try:
        found = workload(str(folder / "manifest.json"), ddl=HOOKS)
    except IsolitmusError as error:
        assert "\n\n" not in str(error)
    else:
        assert found.schedule.startswith("Two invocations may overlap")


@pytest.mark.slow
def test_both_executors_agree_on_the_examples_of_the_statements_of_dbt(shop):
    """Queries in WITH of a MERGE, and columns of a source that INSERT * ignores."""
    assert len(shop.examples) == 32
    for test in shop.examples:
        assert len(run(test, "delta-serializable").serial.orders) == 1


@pytest.mark.slow
def test_tests_of_dbt_are_invariants():
    work = workload(str(SHOP), ddl=HOOKS)
    assert [one.name for one in work.invariants] == [
        "raw_customers: not null(id)",
        "orders: unique(id)",
        "orders: not null(id)",
        "orders: not null(day)",
        "customers: unique(id)",
    ]
    (key,) = (one for one in work.invariants if one.name == "orders: unique(id)")
    (answer,) = decide_invariants(work, ["delta-serializable"], [key])
    assert answer.word == "broken"
    assert answer.violation.jobs == ("orders",)


def test_accepted_values_and_relationships_are_invariants(tmp_path):
    def change(nodes):
        given = next(
            one for one in nodes.values() if one.get("alias", "").startswith("relationships")
        )
        given |= {"attached_node": "model.shop.orders", "column_name": "customer"}
        given["depends_on"]["nodes"] = ["model.shop.customers", "model.shop.orders"]
        given["test_metadata"]["kwargs"] |= {"column_name": "customer", "field": "id"}
        given["config"]["where"] = "amount > 0"
        other = json.loads(json.dumps(given))
        other |= {"unique_id": "test.shop.values", "config": {}}
        other["test_metadata"] = {
            "name": "accepted_values",
            "kwargs": {"column_name": "amount", "values": [1, 2], "quote": False},
        }
        nodes["test.shop.values"] = other

    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert {
        "orders: customer references customers(id) where amount > 0",
        "orders: check(amount IN (1, 2))",
    } <= {one.name for one in work.invariants}
    (said,) = (one for one in workload(str(SHOP), ddl=HOOKS).left_out if "refers to" in one)
    assert said == (
        "The test that customers.country refers to countries is passed over: no job uses countries."
    )


@pytest.mark.slow
def test_a_key_of_a_view_without_ddl_mends_the_model():
    """A test of the view that the model selects from."""
    work = workload(str(SHOP), ddl=HOOKS)
    given = [*read_invariants_of("orders: unique(id)", work.tables, [])]
    given += read_invariants_of("stg_events: unique(id)", work.tables, [], stand_ins=work.stand_ins)
    found = decide_invariants(work, ["delta-serializable", "delta-write-serializable"], given)
    assert {answer.word for answer in found} == {"kept"}


@pytest.mark.slow
def test_a_test_of_a_view_is_an_invariant_of_the_rows_that_the_view_selects(tmp_path):
    def change(nodes):
        unique = next(key for key in nodes if key.startswith("test.shop.unique_orders_id"))
        test = json.loads(json.dumps(nodes[unique]))
        key = "test.shop.unique_stg_events_id"
        view = "model.shop.stg_events"
        nodes[key] = test | {"unique_id": key, "attached_node": view}
        nodes[key]["depends_on"]["nodes"] = [view]

    assert answers(workload(str(SHOP), ddl=HOOKS))["orders: unique(id)"] == "broken"
    found = answers(workload(str(project(tmp_path, change=change)), ddl=HOOKS))
    assert found["orders: unique(id)"] == "kept"


def answers(work):
    found = decide_invariants(work, ["delta-serializable"], work.invariants)
    return {answer.invariant.name: answer.word for answer in found}


LATEST = """
with source as (select * from raw.events),
numbered as (
    select *, row_number() over (partition by id order by loaded_at desc) as place from source
)
select id, customer, kind, amount, day, loaded_at from numbered where place = 1
"""
QUALIFIED = (
    "select id, customer, kind, amount, day, loaded_at from raw.events"
    " qualify row_number() over (partition by id order by loaded_at desc) = 1"
)
GROUPED = (
    "select id, max(customer) as customer, max(kind) as kind, max(amount) as amount,"
    " max(day) as day, max(loaded_at) as loaded_at from raw.events group by id"
)


@pytest.mark.slow
@pytest.mark.parametrize("query", [LATEST, QUALIFIED, GROUPED])
def test_the_key_of_a_view_is_one_of_the_rows_that_a_model_merges(query, tmp_path):
    change = of("stg_events", compiled_code=query, raw_code=query)
    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert unread(work) == {}
    assert answers(work)["orders: unique(id)"] == "kept"
    assert not any(one.startswith("The view") for one in work.left_out)


@pytest.mark.slow
def test_views_whose_queries_have_the_same_names_are_joined(tmp_path):
    def change(nodes):
        for name, relation in (("stg_events", "raw.events"), ("stg_customers", "raw.customers")):
            code = nodes[f"model.shop.{name}"]["compiled_code"]
            source = f"with source as (select * from {relation}), final as ("
            code = f"{source}{code.replace(relation, 'source')}) select * from final"
            nodes[f"model.shop.{name}"] |= {"compiled_code": code, "raw_code": code}
        code = (
            "with customers as (select * from dev.stg_customers), events as (select * from"
            " dev.stg_events) select c.id, max(c.name) as name, max(e.amount) as amount from"
            " customers c join events e on e.customer = c.id group by c.id"
        )
        nodes["model.shop.top_customers"] |= {"compiled_code": code, "raw_code": code}

    work = workload(str(project(tmp_path, change=change)), ddl=HOOKS)
    assert unread(work) == {}
    assert not any(one.startswith("The view") for one in work.left_out)


@pytest.mark.slow
def test_the_types_that_a_yaml_file_declares_of_some_columns_of_a_source_are_used(tmp_path):
    target = project(tmp_path, change=of("stg_events", compiled_code="select * from raw.events"))
    catalog = target / "target" / "catalog.json"
    given = json.loads(catalog.read_text("utf-8"))
    del given["sources"]["source.shop.raw.events"]
    catalog.write_text(json.dumps(given), "utf-8")
    path = target / "target" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    source = manifest["sources"]["source.shop.raw.events"]
    source["columns"] = {
        "kind": {"name": "kind", "data_type": "bigint"},
        "id": {"name": "id", "description": "without a type"},
    }
    path.write_text(json.dumps(manifest), "utf-8")
    work = workload(str(target), ddl=HOOKS)
    said = [one for one in work.left_out if one.startswith("events has no DDL") and "kind" in one]
    assert said
    assert all("kind BIGINT" in one for one in said)


def test_the_invariants_of_the_settings_of_a_project(tmp_path):
    target = project(tmp_path)
    text = '[invariants]\none = "event_days: not null(day)"\n'
    (target / "isolitmus.toml").write_text(text, "utf-8")
    names = [one.name for one in workload(str(target), ddl=HOOKS).invariants]
    assert "one" in names
    assert "orders: unique(id)" in names
