"""Reader of dbt's ``profiles.yml``: the target of a project, its adapter, and its threads.

Only a file in the project's folder is read. Templates are never evaluated: a value that is one is
told, and counts as unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.projects.yaml_tree import YamlValue, read_yaml
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import is_file
from isolitmus.specs.disk.repository import end_of_reading, read_inside

if TYPE_CHECKING:
    from pathlib import Path


FILE = "profiles.yml"
PROFILE = re.compile(r"^profile\s*+:\s*+(?P<value>[^#\n]*)", re.MULTILINE)
DEFAULT_TARGET = "default"
DEFAULT_THREADS = 1


class DbtProfile(NamedTuple):
    """Target of a project in its ``profiles.yml``."""

    target: str
    adapter: str
    """Its ``type``; empty if that is a template."""
    threads: int
    """Models that one invocation runs at the same time; 0: unknown."""
    place: str
    """File, line and column of the threads, or of the target if it has none."""
    assumptions: tuple[Assumption, ...] = ()


def read_dbt_profile(folder: Path, target: str = "") -> DbtProfile | None:
    """Return the target of the project in a folder; None if the folder has no ``profiles.yml``.

    Parameters
    ----------
    folder : Path
        Folder of the project.
    target : str
        Name of the target, by default the one that the profile names.

    Raises
    ------
    LitmusError
        If the file is not YAML, or has no such profile or target; the message has file, line and
        column.
    """
    path = folder / FILE
    if not is_file(path):
        return None
    project = folder / "dbt_project.yml"
    end = end_of_reading(folder)
    found = PROFILE.search(read_inside(project, LitmusError, end)) if is_file(project) else None
    name = "" if found is None else found["value"].strip().strip("\"'")
    if not name or _is_template(name):
        return None
    document = read_yaml(path, FILE, end)
    profile = document.at(name)
    if profile is None:
        document.refuse(f"no profile '{name}'{near(name, document.mapping())}")
    outputs = profile.inner("outputs")
    wanted = target or profile.get("target", str, DEFAULT_TARGET)
    if _is_template(wanted):
        said = f"The target of the profile {name} is a template: its threads are unknown ({FILE})."
        return DbtProfile("", "", 0, FILE, (AssumptionKind.SCHEDULE.says(said),))
    chosen = outputs.at(wanted)
    if chosen is None:
        outputs.refuse(f"the profile {name} has no target '{wanted}'{near(wanted, outputs.value)}")
    threads, place, told = _threads(chosen, wanted)
    adapter = chosen.get("type", str, "")
    return DbtProfile(wanted, "" if _is_template(adapter) else adapter, threads, place, told)


def _threads(output: YamlValue, target: str) -> tuple[int, str, tuple[Assumption, ...]]:
    """Return the threads of a target, their place, and what is told about them."""
    said = output.at("threads")
    if said is None:
        return DEFAULT_THREADS, str(output.location), ()
    place = str(said.location)
    if isinstance(said.value, str) and _is_template(said.value):
        told = f"threads of the target {target} is a template, and may be any number ({place})."
        return 0, place, (AssumptionKind.SCHEDULE.says(told),)
    number: int = output.get("threads", int)
    if number < 1:
        said.refuse(f"threads is {number}; expected a number from 1")
    return number, place, ()


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text
