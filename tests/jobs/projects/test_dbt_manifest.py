"""Manifests and catalogs are read, and what is wrong with one is refused by name and place."""

import json
from pathlib import Path

import pytest

from isolitmus.jobs.projects import dbt_manifest
from isolitmus.jobs.projects.dbt_manifest import DbtNode, read_catalog, read_manifest
from isolitmus.jobs.projects.dbt_project import read_dbt_project
from isolitmus.jobs.projects.project_files import find_manifest
from isolitmus.model.errors import IsolitmusError, LitmusError

SHOP = Path(__file__).parents[2] / "data" / "dbt" / "shop"
SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v12.json"


def document(**more):
    return {"metadata": {"dbt_schema_version": SCHEMA, "adapter_type": "spark"}, "nodes": {}} | more


def node(name, *parents, **more):
    """Return a model with these parents."""
    return {
        "unique_id": f"model.p.{name}", "resource_type": "model", "name": name,
        "depends_on": {"nodes": [f"model.p.{one}" for one in parents]},
    } | more  # fmt: skip


def written(folder, value, name="manifest.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def metadata(**more):
    return document()["metadata"] | more


REFUSED = {
    "an older version": (
        document(metadata=metadata(dbt_schema_version=SCHEMA.replace("v12", "v6"))),
        "manifest.json: version v6 of the manifest's schema is unsupported; supported: v7 (dbt 1.3) to v12 (dbt 1.8 to 1.11)",
    ),
    "a newer version": (
        document(metadata=metadata(dbt_schema_version=SCHEMA.replace("v12", "v20"))),
        "manifest.json: version v20 of the manifest's schema is unsupported; supported: v7 (dbt 1.3) to v12 (dbt 1.8 to 1.11)",
    ),
    "another document of dbt": (
        document(metadata=metadata(dbt_schema_version=SCHEMA.replace("manifest", "catalog"))),
        "manifest.json: not a dbt manifest: dbt_schema_version is 'https://schemas.getdbt.com/dbt/catalog/v12.json'",
    ),
    "another adapter": (
        document(metadata=metadata(adapter_type="snowflake")),
        "manifest.json: the adapter 'snowflake' is unsupported; supported: spark and databricks",
    ),
    "no adapter": (
        document(metadata=metadata(adapter_type=None)),
        "manifest.json: the adapter 'None' is unsupported; supported: spark and databricks",
    ),
    "a file that is cut short": (
        json.dumps(document())[:-2],
        "manifest.json: not valid JSON: Input data was truncated; if it is cut short, run dbt again",
    ),
    "an empty file": (
        "",
        "manifest.json: not valid JSON: Input data was truncated; if it is cut short, run dbt again",
    ),
    "another value": (
        [],
        "manifest.json: not a dbt manifest: Expected `object`, got `array`",
    ),
    "no metadata": (
        {},
        "manifest.json: not a dbt manifest: Object missing required field `metadata`",
    ),
    "a name that is a number": (
        document(nodes={"model.p.a": node("a") | {"name": 3}}),
        "manifest.json: not a dbt manifest: Expected `str`, got `int` at $.nodes[...].name",
    ),
    "a cycle": (
        document(nodes={f"model.p.{a}": node(a, b) for a, b in ("ab", "bc", "ca")}),
        "manifest.json: nodes depend on each other in a cycle: a → b → c → a; run dbt parse, which refuses the project until the cycle is gone",
    ),
    "a model of itself": (
        document(nodes={"model.p.a": node("a", "a")}),
        "manifest.json: nodes depend on each other in a cycle: a → a; run dbt parse, which refuses the project until the cycle is gone",
    ),
    "a node with another name than its key": (
        document(nodes={"model.p.b": node("a")}),
        "manifest.json: the node 'model.p.b' has another unique_id: 'model.p.a'",
    ),
    "a deep value": (
        '{"metadata": ' + "[" * 100_000,
        None,
    ),
    "a deep configuration": (
        json.dumps(document(nodes={"model.p.a": node("a", config={"meta": "X"})})).replace(
            '"X"', "[" * 150 + "]" * 150
        ),
        "model.p.a: its configuration is nested more than 100 deep",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_with_a_manifest_is_refused(case, tmp_path):
    value, message = REFUSED[case]
    with pytest.raises(LitmusError) as found:
        read_manifest(written(tmp_path, value))
    if message is None:
        assert str(found.value).startswith("manifest.json: not ")
    else:
        assert str(found.value) == message


def test_an_enormous_manifest_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(dbt_manifest, "LARGEST", 100)
    with pytest.raises(LitmusError, match="it is larger than 100 bytes"):
        read_manifest(written(tmp_path, document(other="x" * 200)))


@pytest.mark.parametrize("version", range(7, 13))
def test_versions_of_the_schema(version, tmp_path):
    given = json.loads((SHOP / "target" / "manifest.json").read_text("utf-8"))
    given["metadata"]["dbt_schema_version"] = SCHEMA.replace("v12", f"v{version}")
    found = read_manifest(written(tmp_path, given))
    assert len(found.nodes) == 20


def test_an_older_manifest_does_not_name_its_project(tmp_path):
    """Versions before v10 (dbt 1.6): the package of its nodes does."""
    given = json.loads((SHOP / "target" / "manifest.json").read_text("utf-8"))
    del given["metadata"]["project_name"]
    assert read_manifest(written(tmp_path, given)).project == "shop"


def test_nodes_stand_after_those_that_they_depend_on(tmp_path):
    nodes = {f"model.p.{a}": node(a, *b) for a, b in (("a", "bc"), ("b", "c"), ("c", ""))}
    assert [
        one.name for one in read_manifest(written(tmp_path, document(nodes=nodes))).nodes.values()
    ] == ["c", "b", "a"]


def test_tests_are_invariants():
    found = read_dbt_project(SHOP / "target" / "manifest.json")
    names = found.table_names
    assert [(one.kind, names[one.node], one.columns, one.place) for one in found.invariants] == [
        ("not null", "raw_customers", ("id",), "models/sources.yml"),
        ("unique", "orders", ("id",), "models/marts/marts.yml"),
        ("not null", "orders", ("id",), "models/marts/marts.yml"),
        ("not null", "orders", ("day",), "models/marts/marts.yml"),
        ("unique", "customers", ("id",), "models/marts/marts.yml"),
        ("references", "customers", ("country",), "models/marts/marts.yml"),
    ]
    assert (found.invariants[-1].parent, found.invariants[-1].key) == (
        "seed.shop.countries", "code",
    )  # fmt: skip


def test_a_combination_of_columns_and_a_condition(tmp_path):
    def test(name, namespace=None, where=None, **kwargs):
        return node(
            name, "m", resource_type="test", config={"where": where},
            test_metadata={"name": name, "namespace": namespace, "kwargs": kwargs},
            attached_node="model.p.m",
        )  # fmt: skip

    nodes = {
        "a": test(
            "unique_combination_of_columns", "dbt_utils", combination_of_columns=["x", "`y`"]
        ),
        "b": test("not_null", where="day > 3", column_name="x"),
        "c": test("unique", column_name="x || y"),
        "d": test("not_null", "mine", column_name="x"),
        "e": test("accepted_values", column_name="x"),
        "f": test("unique_combination_of_columns", "dbt_utils", combination_of_columns=3),
        "g": test("accepted_values", column_name="x", values=["a", "it's"]),
        "h": test("accepted_values", column_name="x", values=[1, 2], quote=False),
        "i": test("relationships", column_name="x", to="ref('m')", field="id"),
        "j": test("relationships", column_name="x", to="ref('m')", field="id + 1"),
    }
    nodes = {f"test.p.{key}": one | {"unique_id": f"test.p.{key}"} for key, one in nodes.items()}
    found = read_manifest(written(tmp_path, document(nodes=nodes | {"model.p.m": node("m")})))
    assert [one[:4] for one in found.invariants] == [
        ("unique", "model.p.m", ("x", "y"), None),
        ("not null", "model.p.m", ("x",), "day > 3"),
        ("values", "model.p.m", ("x",), None),
        ("values", "model.p.m", ("x",), None),
        ("references", "model.p.m", ("x",), None),
    ]
    assert [one.values for one in found.invariants[2:4]] == [("'a'", "'it''s'"), ("1", "2")]
    assert (found.invariants[4].parent, found.invariants[4].key) == ("model.p.m", "id")


def test_hooks_in_the_order_of_dbt():
    hooks = [{"sql": "a", "transaction": True}, {"sql": "b", "transaction": False}, "c"]
    model, snapshot = (
        DbtNode("x", kind, "x", config={"pre-hook": hooks, "post-hook": hooks})
        for kind in ("model", "snapshot")
    )
    assert model.hooks("pre-hook") == model.hooks("post-hook") == ("a", "c")
    assert snapshot.hooks("pre-hook") == ("b", "a", "c")
    assert snapshot.hooks("post-hook") == ("a", "c", "b")


def test_columns_of_the_catalog_stand_in_their_order():
    found = read_catalog(SHOP / "target" / "catalog.json")
    assert [one.name for one in found["model.shop.daily_totals"]] == [
        "customer",
        "orders",
        "amount",
        "day",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"metadata": {"dbt_schema_version": SCHEMA}}, "catalog.json: not a dbt catalog"),
        (
            {"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/catalog/v2.json"}},
            "catalog.json: version v2 of the catalog's schema is unsupported; supported: v1",
        ),
        ("{", "catalog.json: not valid JSON"),
    ],
)
def test_what_is_wrong_with_a_catalog_is_refused(value, message, tmp_path):
    with pytest.raises(LitmusError) as found:
        read_catalog(written(tmp_path, value, "catalog.json"))
    assert str(found.value).startswith(message)


def test_where_the_manifest_is(tmp_path):
    assert find_manifest(tmp_path) is None
    assert find_manifest(SHOP) == SHOP / "target" / "manifest.json"
    assert find_manifest(SHOP / "target" / "manifest.json") == SHOP / "target" / "manifest.json"
    project = tmp_path / "dbt_project.yml"
    project.write_text("name: x\n", "utf-8")
    with pytest.raises(
        IsolitmusError, match=r"without target/manifest\.json; run dbt compile first"
    ):
        find_manifest(tmp_path)
    project.write_text("target-path: 'out'  # elsewhere\n", "utf-8")
    (tmp_path / "out").mkdir()
    path = written(tmp_path / "out", document())
    assert find_manifest(tmp_path) == path
    project.write_text("target-path: \"{{ env_var('T') }}\"\n", "utf-8")
    with pytest.raises(IsolitmusError, match="target-path is a template"):
        find_manifest(tmp_path)
