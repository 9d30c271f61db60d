"""Jobs of a dbt project: their names, and those that one invocation runs before each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode


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
