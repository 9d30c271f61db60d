"""Files that tell which kind of project a folder is: a dbt project, or a Databricks bundle.

The readers of projects are imported for a project only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.specs.disk.input_files import is_file, is_folder, is_there
from isolitmus.specs.disk.repository import check_inside, end_of_reading, read_inside

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "dbt_project.yml"
TARGET_PATH = re.compile(r"^target-path\s*+:\s*+(?P<value>[^#\n]*)", re.MULTILINE)
ROOTS = ("databricks.yml", "databricks.yaml", "bundle.yml", "bundle.yaml")
"""Names of the root file of a bundle."""
ALONE = ("jobs.yml", "jobs.yaml")
"""Names of a file with jobs beside which there is no root file."""
RESOURCES = re.compile(r"^(?:resources|targets)\s*:", re.MULTILINE)


def find_manifest(path: Path) -> Path | None:
    """Return the manifest of a project's folder, or of a path to it; None if it is no project.

    Raises
    ------
    IsolitmusError
        If the folder is a dbt project without a manifest.
    """
    if path.name == "manifest.json" and is_file(path):
        return path
    if not is_there(path / PROJECT):
        return None
    end = end_of_reading(path)
    found = TARGET_PATH.search(read_inside(path / PROJECT, LitmusError, end))
    value = "" if found is None else found["value"].strip().strip("\"'")
    if "{{" in value:
        raise IsolitmusError(
            f"{path / PROJECT}: target-path is a template; give the manifest: TARGET/manifest.json"
        )
    manifest = path / (value or "target") / "manifest.json"
    check_inside(manifest, LitmusError, end)
    check_inside(manifest.with_name("catalog.json"), LitmusError, end)
    if not is_file(manifest):
        raise IsolitmusError(
            f"{path} is a dbt project without {manifest.relative_to(path)}; run dbt compile first"
        )
    return manifest


def find_bundle(path: Path) -> Path | None:
    """Return the root file of a bundle, given by its folder or by the file, or None.

    Without a ``databricks.yml``, a file ``jobs.yml`` with ``resources`` is one, or the folder
    ``resources`` with such files.
    """
    if path.suffix in (".yml", ".yaml") and is_file(path):
        return path
    if not is_folder(path):
        return None
    for name in ROOTS:
        if is_file(path / name):
            return path / name
    alone = (path / name for name in ALONE)
    found = next((one for one in alone if is_file(one) and _has_resources(one)), None)
    if found is None and any(_has_resources(one) for one in resource_files(path)):
        return path / "resources"
    return found


def _has_resources(path: Path) -> bool:
    return RESOURCES.search(read_inside(path, LitmusError)) is not None


def resource_files(folder: Path) -> list[Path]:
    """Return the YAML files of the folder ``resources`` in a folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> resource_files(Path("no such folder"))
    []
    """
    every = sorted((folder / "resources").rglob("*.y*ml"))
    return [one for one in every if one.suffix in (".yml", ".yaml") and is_file(one)]
