"""Reader of dbt's ``manifest.json`` and ``catalog.json``: models, snapshots, seeds, sources, tests.

The schemas v7 (dbt 1.3) to v12 (dbt 1.8 and later) name the fields that are read here alike. Other
fields are skipped. The text of a template is never evaluated.
"""

from __future__ import annotations

import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import msgspec
from msgspec import Struct

from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import column_type
from isolitmus.model.sql.values import literal
from isolitmus.specs.disk.input_files import DEEPEST, inner_values, is_deeper, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

LARGEST = 2**28
"""Most bytes of a manifest or a catalog."""
VERSIONS = range(7, 13)
"""Versions of the manifest's schema that are read."""
SCHEMA = re.compile(
    r"https://schemas\.getdbt\.com/dbt/(?P<kind>\w+)/v(?P<version>[0-9]{1,4})\.json"
)
ADAPTERS = ("spark", "databricks")
"""Adapters whose writes are known."""
PLAIN = re.compile(r"`?(?P<name>[A-Za-z_][A-Za-z0-9_]*)`?")


class DbtColumn(Struct, frozen=True):
    """Column that a YAML file declares."""

    name: str
    data_type: str | None = None
    description: str = ""
    quote: bool | None = None


def spark_column(name: str, type_: str | None) -> Column | None:
    """Return a column, or None if its type is not one of Spark's.

    Examples
    --------
    >>> spark_column("id", "long").ddl(), spark_column("id", "number") is None
    ('id BIGINT', True)
    """
    found = None if type_ is None else column_type(type_)
    return None if found is None else Column(name, found)


class _DependsOn(Struct, frozen=True):
    nodes: list[str] = []
    macros: list[str] = []


class _Cte(Struct, frozen=True):
    """Query of an ephemeral model in the compiled code of another model."""

    id: str
    sql: str | None = None


class _TestMetadata(Struct, frozen=True):
    name: str
    kwargs: dict[str, Any] = {}
    namespace: str | None = None


class DbtNode(Struct, frozen=True):
    """Model, snapshot, seed, test or operation of a dbt project."""

    unique_id: str
    resource_type: str
    name: str
    package_name: str = ""
    database: str | None = None
    schema: str | None = None
    alias: str | None = None
    relation_name: str | None = None
    original_file_path: str = ""
    language: str = "sql"
    version: str | float | None = None
    raw_code: str = ""
    compiled_code: str | None = None
    config: dict[str, Any] = {}
    unrendered_config: dict[str, Any] = {}
    columns: dict[str, DbtColumn] = {}
    depends_on: _DependsOn = _DependsOn()
    extra_ctes: list[_Cte] = []
    test_metadata: _TestMetadata | None = None
    column_name: str | None = None
    attached_node: str | None = None

    @property
    def materialized(self) -> str:
        """How dbt stores its rows: view, table, incremental, ephemeral, snapshot or another way."""
        return str(self.config.get("materialized") or "view")

    @property
    def identifier(self) -> str:
        """Name of its table."""
        return self.alias or self.name

    @property
    def place(self) -> str:
        """File in which it is written."""
        return self.original_file_path or self.unique_id

    def refuse(self, problem: str) -> NoReturn:
        """Raise a LitmusError about its file."""
        raise LitmusError(f"{self.place}: {problem}")

    def strings(self, key: str) -> tuple[str, ...]:
        """Return the texts of a key of its configuration that is a text or a list of texts.

        Examples
        --------
        >>> node = DbtNode("model.p.m", "model", "m", config={"unique_key": "id"})
        >>> node.strings("unique_key"), node.strings("partition_by")
        (('id',), ())
        """
        value = self.config.get(key)
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            self.refuse(f"{key} is {_brief(value)}; expected a string or a list of strings")
        return tuple(values)

    def text(self, key: str) -> str | None:
        """Return the text of a key of its configuration, or None if it has none."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, str):
            self.refuse(f"{key} is {_brief(value)}; expected a string")
        return value

    def hooks(self, key: Literal["pre-hook", "post-hook"]) -> tuple[str, ...]:
        """Return the templates of its hooks, in the order in which dbt runs them."""
        given = self.config.get(key) or []
        entries = given if isinstance(given, list) else [given]
        found: list[tuple[bool, str]] = []
        for one in entries:
            sql = one.get("sql") if isinstance(one, dict) else one
            if not isinstance(sql, str):
                self.refuse(f"{key} is {_brief(one)}; expected a statement")
            inside = not isinstance(one, dict) or one.get("transaction") is not False
            found.append((inside, sql))
        if self.resource_type == "snapshot":
            before = key == "post-hook"
            return tuple(sql for _, sql in sorted(found, key=lambda one: one[0] is not before))
        return tuple(sql for inside, sql in found if inside)


class DbtSource(Struct, frozen=True):
    """Table that dbt reads and does not write."""

    unique_id: str
    source_name: str
    name: str
    database: str | None = None
    schema: str | None = None
    identifier: str = ""
    relation_name: str | None = None
    original_file_path: str = ""
    config: dict[str, Any] = {}
    columns: dict[str, DbtColumn] = {}


class _Macro(Struct, frozen=True):
    depends_on: _DependsOn = _DependsOn()


class _Metadata(Struct, frozen=True):
    dbt_schema_version: str
    adapter_type: str | None = None
    project_name: str | None = None
    dbt_version: str | None = None


class _Head(Struct, frozen=True):
    metadata: _Metadata


class _Manifest(Struct, frozen=True):
    metadata: _Metadata
    nodes: dict[str, DbtNode]
    sources: dict[str, DbtSource] = {}
    macros: dict[str, _Macro] = {}


class DeclaredInvariant(NamedTuple):
    """Test of a dbt project that says which rows a table never has."""

    kind: Literal["unique", "not null", "values", "references"]
    """No two rows have the same values in the columns, no row has NULL in one of them, each value
    is one of a list, or another table has a row with it.
    """
    node: str
    """Id of the model, snapshot, seed or source in the manifest."""
    columns: tuple[str, ...]
    where: str | None
    """Condition on the rows that the test looks at; None: all rows."""
    place: str
    """File that declares the test."""
    values: tuple[str, ...] = ()
    """Accepted values, in SQL."""
    parent: str = ""
    """Id of the table that is referred to."""
    key: str = ""
    """Its column."""


class DbtManifest(NamedTuple):
    """Nodes of a dbt project, as ``manifest.json`` has them."""

    label: str
    """File in messages."""
    project: str
    adapter: str
    """Name of the adapter: spark or databricks."""
    nodes: Mapping[str, DbtNode]
    """Nodes by id; each stands after those that it depends on."""
    sources: Mapping[str, DbtSource]
    macros: Mapping[str, tuple[str, ...]]
    """Macros by id, each with the macros that it calls."""

    @property
    def invariants(self) -> tuple[DeclaredInvariant, ...]:
        """Tests of tables: unique, not_null, unique_combination_of_columns, accepted_values and
        relationships.
        """
        return tuple(
            found
            for node in self.nodes.values()
            if node.resource_type == "test" and (found := _invariant(node)) is not None
        )

    def is_called(self, macro: str, node: DbtNode) -> bool:
        """Return whether a node calls a macro, perhaps through others."""
        todo, seen = [*node.depends_on.macros], {*node.depends_on.macros}
        while todo:
            new = {*self.macros.get(todo.pop(), ())} - seen
            seen |= new
            todo += new
        return macro in seen


def read_manifest(path: Path) -> DbtManifest:
    """Return the nodes of a project in the ``manifest.json`` that dbt wrote.

    Raises
    ------
    LitmusError
        If the file is no manifest, has another version or adapter, is cut short or larger than
        256 MB, or if its nodes depend on each other in a cycle.
    """
    label = path.name
    data = read_bytes(path, LitmusError, LARGEST)
    head = _decoded(data, _Head, label, "manifest")
    version = _version(head.metadata, label, "manifest")
    if version not in VERSIONS:
        raise LitmusError(
            f"{label}: version v{version} of the manifest's schema is unsupported; supported:"
            f" v{VERSIONS.start} (dbt 1.3) to v{VERSIONS.stop - 1} (dbt 1.8 to 1.11)"
        )
    adapter = head.metadata.adapter_type
    if adapter not in ADAPTERS:
        raise LitmusError(
            f"{label}: the adapter '{adapter}' is unsupported; supported: {' and '.join(ADAPTERS)}"
        )
    found = _decoded(data, _Manifest, label, "manifest")
    order = TopologicalSorter(
        {
            key: [one for one in node.depends_on.nodes if one in found.nodes]
            for key, node in found.nodes.items()
        }
    )
    try:
        names = [*order.static_order()]
    except CycleError as error:
        around = " → ".join(found.nodes[key].name for key in reversed(error.args[1]))
        raise LitmusError(
            f"{label}: nodes depend on each other in a cycle: {around}; run dbt parse, which"
            " refuses the project until the cycle is gone"
        ) from None
    for key, one in (*found.nodes.items(), *found.sources.items()):
        if one.unique_id != key:
            raise LitmusError(f"{label}: the node '{key}' has another unique_id: '{one.unique_id}'")
    for node in found.nodes.values():
        if is_deeper([node.config, node.unrendered_config], inner_values):
            node.refuse(f"its configuration is nested more than {DEEPEST} deep")
    macros = {key: tuple(macro.depends_on.macros) for key, macro in found.macros.items()}
    return DbtManifest(
        label,
        found.metadata.project_name or _package(found.nodes.values()),
        adapter,
        {key: found.nodes[key] for key in names},
        found.sources,
        macros,
    )


class CatalogColumn(Struct, frozen=True):
    """Column of a table that dbt found in the database."""

    name: str
    type: str
    index: int = 0


class _CatalogTable(Struct, frozen=True):
    columns: dict[str, CatalogColumn] = {}


class _Catalog(Struct, frozen=True):
    metadata: _Metadata
    nodes: dict[str, _CatalogTable] = {}
    sources: dict[str, _CatalogTable] = {}


def _package(nodes: Iterable[DbtNode]) -> str:
    """Return the package of most nodes: older manifests do not name the project."""
    named = Counter(node.package_name for node in nodes if node.package_name)
    return max(named, key=named.__getitem__, default="project")


def read_catalog(path: Path) -> dict[str, tuple[CatalogColumn, ...]]:
    """Return the columns of each table in the ``catalog.json`` that ``dbt docs generate`` wrote.

    The keys are the ids of nodes and sources.
    """
    found = _decoded(read_bytes(path, LitmusError, LARGEST), _Catalog, path.name, "catalog")
    if (version := _version(found.metadata, path.name, "catalog")) != 1:
        raise LitmusError(
            f"{path.name}: version v{version} of the catalog's schema is unsupported; supported: v1"
        )
    return {
        key: tuple(sorted(table.columns.values(), key=lambda column: column.index))
        for key, table in (found.nodes | found.sources).items()
        if table.columns
    }


def _decoded(data: bytes, kind: type[Any], label: str, what: str) -> Any:
    """Return the document; LitmusError, with the path of the value, if it is no such document."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        place = f" at {where.strip('`')}" if where else ""
        raise LitmusError(f"{label}: not a dbt {what}: {problem}{place}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LitmusError(
            f"{label}: not valid JSON: {error}; if it is cut short, run dbt again"
        ) from None
    except RecursionError:
        raise LitmusError(f"{label}: not a dbt {what}: it is nested too deeply") from None


def _version(metadata: _Metadata, label: str, what: str) -> int:
    """Return the version of the schema that a file names."""
    found = SCHEMA.fullmatch(metadata.dbt_schema_version)
    if found is None or found["kind"] != what:
        raise LitmusError(
            f"{label}: not a dbt {what}: dbt_schema_version is"
            f" {_brief(metadata.dbt_schema_version)}"
        )
    return int(found["version"])


def _invariant(node: DbtNode) -> DeclaredInvariant | None:
    """Return what a test says of the rows of a table, or None if it says anything else."""
    test = node.test_metadata
    table = node.attached_node or next(iter(node.depends_on.nodes), None)
    if test is None or table is None:
        return None
    where = node.config.get("where")
    given = test.kwargs.get("column_name", node.column_name)
    columns: Any = [given]
    if test.name == "unique_combination_of_columns" and test.namespace == "dbt_utils":
        columns = test.kwargs.get("combination_of_columns")
    elif test.namespace is not None or test.name not in KINDS:
        return None
    if not isinstance(columns, list) or not (names := [*_names(columns)]):
        return None
    found = DeclaredInvariant(
        KINDS.get(test.name, "unique"),
        table,
        tuple(names),
        where if isinstance(where, str) else None,
        node.place,
    )
    if found.kind == "values":
        values = test.kwargs.get("values")
        quoted = test.kwargs.get("quote", True) is not False
        given = values if isinstance(values, list) else []
        known = tuple(literal(str(one)) if quoted else str(one) for one in given)
        return found._replace(values=known) if known else None
    if found.kind == "references":
        others = [one for one in node.depends_on.nodes if one != table]
        keys = [*_names([test.kwargs.get("field")])]
        if node.attached_node is None or len(others) > 1 or not keys:
            return None
        return found._replace(parent=next(iter(others), table), key=keys[0])
    return found


KINDS: Mapping[str, Literal["unique", "not null", "values", "references"]] = {
    "unique": "unique",
    "not_null": "not null",
    "accepted_values": "values",
    "relationships": "references",
}
"""Kinds of dbt's own tests."""


def _names(columns: list[object]) -> Iterator[str]:
    """Yield the names of columns, or nothing if one is an expression."""
    found = [PLAIN.fullmatch(one) if isinstance(one, str) else None for one in columns]
    if all(found):
        yield from (one["name"] for one in found if one is not None)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def choose_job_names(nodes: Sequence[DbtNode]) -> dict[str, str]:
    """Return a unique name of a job for each node, by their ids.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtNode
    >>> nodes = [DbtNode(f"model.{one}.m", "model", "m", one) for one in "pq"]
    >>> choose_job_names(nodes)
    {'model.p.m': 'm', 'model.q.m': 'q_m'}
    """
    found: dict[str, str] = {}
    for node in nodes:
        version = "" if node.version is None else f"_v{node.version}"
        plain = re.sub(r"\W", "_", f"{node.name}{version}")
        plain = plain if re.match(r"[A-Za-z_]", plain) else f"job_{plain}"
        names = [
            plain,
            f"{node.package_name}_{plain}",
            *(f"{plain}_{k}" for k in range(2, len(nodes) + 2)),
        ]
        found[node.unique_id] = next(one for one in names if one not in found.values())
    return found


def jobs_before(manifest: DbtManifest, names: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the names of the jobs that one invocation runs before each job, by its name.

    Parameters
    ----------
    manifest : DbtManifest
        The project.
    names : mapping of str to str
        Names of jobs by the ids of their nodes.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> node = DbtNode("model.p.m", "model", "m")
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> jobs_before(manifest, {"model.p.m": "m"})
    {'m': frozenset()}
    """
    above: dict[str, frozenset[str]] = {}
    for key, node in manifest.nodes.items():
        parents = [one for one in node.depends_on.nodes if one in above]
        found = frozenset().union(
            *(above[one] for one in parents), (one for one in parents if one in names)
        )
        above[key] = found
    return {name: frozenset(names[one] for one in above[key]) for key, name in names.items()}


def has_concurrent_batches(manifest: DbtManifest, node: DbtNode) -> bool:
    """Return whether dbt may run batches of a model at the same time; dbt-spark never does.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {}, {}, {})
    >>> has_concurrent_batches(manifest, DbtNode("model.p.m", "model", "m"))
    False
    """
    said = node.config.get("concurrent_batches")
    return manifest.adapter == "databricks" and said is not False
