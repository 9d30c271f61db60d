"""A dbt project is a workload: its jobs, what overlaps, and what predict says of it."""

import json
import shutil
from pathlib import Path

import pytest

from isolitmus.checker.render.prediction import prediction_lines
from isolitmus.checker.workloads.prediction import predict_workload
from isolitmus.specs import protocol
from isolitmus.specs.files.workload_sources import workload

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


OPTIMIZED = (
    "country_history", "customer_history", "customers", "daily_totals", "event_days", "events_log",
    "load_state", "orders", "recent_orders", "run_log",
)  # fmt: skip
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


def test_statements_that_conflict(shop):
    found = {
        loser: {one.winner for one in row if one.word in ("always", "when")}
        for loser, row in shop.rows.items()
        if loser != "top_customers"
    }
    assert found == CONFLICTS


def test_two_batches_conflict_only_if_they_are_the_same(shop):
    (batch,) = (one for one in shop.meetings if one.loser == one.winner == "event_days")
    assert [str(part) for part in batch.condition] == ["the same :batch_start"] or batch.condition


def test_the_answer_names_first_what_may_overlap(shop):
    lines = list(prediction_lines(shop))
    assert lines[0] == (
        "Assumed: Two invocations may overlap; OPTIMIZE of each table runs at any time; no"
        " invocation uses --full-refresh."
    )
    assert "Statements that write to different tables never conflict (proved)." in lines
    assert not any(line.startswith("- Two invocations") for line in lines)
    assert shop.to_json()["assumptions"][0] == lines[0].removeprefix("Assumed: ")
