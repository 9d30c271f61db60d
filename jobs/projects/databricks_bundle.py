"""Databricks Asset Bundles: the jobs of a bundle, their tasks, and what their scheduler rules out.

A bundle is a folder with ``databricks.yml`` and the files that it includes. A folder with
``jobs.yml``, or with ``resources/*.yml``, is read as one whose root file is missing. Overrides of
one target are merged as the Databricks CLI merges them: mappings key by key, tasks by their
``task_key``.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.projects.path_patterns import matches_path
from isolitmus.jobs.projects.project_files import resource_files
from isolitmus.jobs.projects.yaml_tree import YamlValue, merge_yaml, read_yaml
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import is_file, is_folder, is_link, real_path
from isolitmus.specs.disk.repository import check_inside, end_of_reading, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.assumption import Place

KEYS = ("task_key", "job_cluster_key", "name")
"""Keys by which entries of lists are merged."""
REFERENCE = re.compile(r"\$\{\s*(?P<name>[\w.\-\[\]]+)\s*\}")
DEEPEST_REFERENCE = 10
MOST_FILES = 1_000
NOTHING = ("condition_task", "run_job_task")
"""Kinds of tasks that execute no statement themselves."""
REMOTE = re.compile(r"^(?:/|dbfs:|s3:|abfss:|gs:|https?:)")
ROOT_PATHS = ("workspace.file_path", "workspace.root_path/files")
NOTEBOOKS = (".py", ".scala", ".r", ".R", ".ipynb")
PROBLEMS = {
    "dbt_task": "dbt task; its models are read if the folder of the dbt project is given",
    "pipeline_task": "pipeline; what it writes is not understood",
    "spark_python_task": "Python file; only SQL files and notebooks of SQL are understood",
    "python_wheel_task": "Python wheel; only SQL files and notebooks of SQL are understood",
    "spark_jar_task": "JAR; only SQL files and notebooks of SQL are understood",
}


class BundleTask(NamedTuple):
    """Task of a job."""

    key: str
    name: str
    """Name of the job of a workload: that of its job and its key, unique in the bundle."""
    location: Place
    path: Path | None
    """SQL file or notebook that it executes; None if there is none that is understood."""
    problem: str
    """Why what it executes is not understood; empty if it is, or if it executes nothing."""
    after: frozenset[str]
    """Names of the tasks that it depends on, also through others."""
    repeated: bool
    """Whether several of its iterations may run at the same time (``for_each_task``)."""
    retries: int
    """Retries after a failure; -1: any number."""
    times_out: bool
    """Whether it is retried after it timed out."""


class BundleJob(NamedTuple):
    """Job of a bundle."""

    name: str
    location: Place
    tasks: tuple[BundleTask, ...]
    runs: int
    """Most runs at the same time (``max_concurrent_runs``)."""
    queued: bool
    """Whether a run beyond them waits; otherwise it is skipped."""
    started: str
    """What starts it: the text of its schedule or trigger; empty if nothing does."""
    paused: bool


class Bundle(NamedTuple):
    """Jobs of a bundle under one of its targets."""

    name: str
    folder: Path
    label: str
    """Root file in messages."""
    target: str
    """Target whose overrides are applied; empty if there is none."""
    jobs: tuple[BundleJob, ...]
    assumptions: tuple[Assumption, ...]


def read_bundle(root: Path, target: str = "") -> Bundle:
    """Return the jobs of a bundle.

    Parameters
    ----------
    root : Path
        Root file, or the folder ``resources`` of a bundle without one.
    target : str
        Target whose overrides are applied. By default the only one with ``mode: production``,
        else the default target, else none.

    Raises
    ------
    LitmusError
        If a file is not YAML or no bundle, or if tasks contradict themselves; the message has the
        file, the line and the column.
    """
    return _BundleReader(root, target).bundle()


class _BundleReader:
    """Reader of a bundle: its files, the chosen target, and the values of variables."""

    def __init__(self, root: Path, target: str) -> None:
        self.folder = root.parent
        self.end = real_path(self.folder)
        check_inside(root, LitmusError, end_of_reading(root))
        self.label = root.name
        files = resource_files(self.folder) if is_folder(root) else [root]
        documents = [self._document(one) for one in files]
        self.root = documents[0]
        if not is_folder(root):
            included = self._included(root)
            documents += [self._document(one) for one in included]
        self.told: list[Assumption] = []
        merged = _unite(documents)
        self.target = self._chosen(merged, target)
        if self.target:
            over = merged.inner("targets").inner(self.target)
            kept = {k: v for k, v in over.mapping().items() if k in ("resources", "variables")}
            merged = merge_yaml(merged, YamlValue(kept, over.location), KEYS)
        self.document = merged
        self.variables = merged.inner("variables")
        self.named = frozenset(merged.inner("resources").inner("jobs").mapping())

    def _document(self, path: Path) -> YamlValue:
        """Return the document of a file, with a label relative to the bundle's folder."""
        found = read_yaml(path, path.relative_to(self.folder).as_posix(), self.end)
        found.mapping()
        return found

    def _included(self, root: Path) -> list[Path]:
        """Return the files that the root file includes, in the order of their names."""
        found: dict[Path, None] = {}
        for one in self.root.list("include"):
            pattern = one.value
            if not isinstance(pattern, str) or not pattern or pattern.startswith("/"):
                one.refuse(f"include has {one.shown()}; write a pattern relative to {root.name}")
            if ".." in pattern.split("/"):
                one.refuse(
                    f"include has {one.shown()}, which leads out of the bundle's folder, which is"
                    " all that is read"
                )
            try:
                every = sorted(_matching(self.folder, pattern))
            except (ValueError, NotImplementedError):
                one.refuse(f"include has {one.shown()}; write a pattern such as resources/*.yml")
            for path in every:
                if problem := escape(path, self.end):
                    one.refuse(f"{path.relative_to(self.folder)}: {problem}")
                if is_file(path) and real_path(path) != real_path(root):
                    found.setdefault(path)
            if len(found) > MOST_FILES:
                one.refuse(f"more than {MOST_FILES:,} files are included")
        return [*found]

    # The target

    def _chosen(self, document: YamlValue, wanted: str) -> str:
        """Return the target whose overrides are applied, and tell how it was chosen."""
        targets = document.inner("targets").mapping()
        if wanted:
            if wanted not in targets:
                document.inner("targets").refuse(
                    f"the bundle has no target '{wanted}'{near(wanted, targets)}"
                )
            return wanted
        given = {
            name: one if isinstance(one.value, dict) else YamlValue({}, one.location, name)
            for name, one in targets.items()
        }
        real = [name for name, one in given.items() if one.get("mode", str) == "production"]
        usual = [name for name, one in given.items() if one.get("default", bool)]
        found = real if len(real) == 1 else usual or [*given]
        if not found or (len(found) > 1 and found == [*given]):
            if given:
                self.told.append(
                    AssumptionKind.NOT_READ.says(
                        f"No target of {' and '.join(given)} is chosen: their overrides are not"
                        " applied. [schedule] target names one."
                    )
                )
            return ""
        if given[found[0]].get("mode", str) == "development":
            self.told.append(
                AssumptionKind.SCHEDULE.says(
                    f"The target {found[0]} has the mode development, which pauses schedules and"
                    " lets runs of one job overlap when it is deployed; neither is applied."
                )
            )
        return found[0]

    # Variables

    def resolved(self, value: YamlValue, depth: int = 0) -> YamlValue:
        """Return a value with its variables replaced; a whole ``${var.x}`` keeps the type."""
        text = value.value
        if not isinstance(text, str) or "${" not in text:
            return value
        if depth > DEEPEST_REFERENCE:
            value.refuse(f"the variables of {value.shown()} refer to each other in a cycle")
        whole = REFERENCE.fullmatch(text.strip())
        if whole is not None:
            found = self._variable(whole["name"])
            if found is None:
                return value
            made = YamlValue(found.value, value.location, value.key)
            return self.resolved(made, depth + 1)

        def put(found: re.Match[str]) -> str:
            one = self._variable(found["name"])
            made = None if one is None else self.resolved(one, depth + 1).value
            return found[0] if made is None or isinstance(made, dict | list) else str(made)

        return YamlValue(REFERENCE.sub(put, text), value.location, value.key)

    def _variable(self, name: str) -> YamlValue | None:
        """Return the value of a reference, or None if it is not known without a workspace."""
        kind, _, inner = name.partition(".")
        if kind == "var":
            found = self.variables.at(inner)
            if found is None:
                return None
            return found.at("default") if isinstance(found.value, dict) else found
        place = self.document.location
        own = {"bundle.target": self.target, "bundle.name": self.name}
        return YamlValue(own[name], place) if own.get(name) else None

    def get(self, node: YamlValue, key: str, kind: type, default: Any = None) -> Any:
        """Return the value of a key, with its variables replaced."""
        found = node.at(key)
        if found is None:
            return default
        one = self.resolved(found)
        if isinstance(one.value, str) and "${" in one.value and kind is not str:
            one.refuse(f"{key} is '{one.value}', which has no value here; give it a default")
        return YamlValue({key: one}, node.location).get(key, kind, default)

    # Jobs

    @property
    def name(self) -> str:
        """Name of the bundle."""
        said: str = self.document.inner("bundle").get("name", str, "")
        return said or real_path(self.folder).name

    def bundle(self) -> Bundle:
        """Return the bundle."""
        resources = self.document.inner("resources")
        names: dict[str, str] = {}
        jobs = tuple(
            self._job(name, job, names) for name, job in resources.inner("jobs").mapping().items()
        )
        if not jobs:
            self.document.refuse("the bundle has no jobs; expected resources: jobs: NAME: tasks:")
        pipelines = resources.inner("pipelines").mapping()
        if pipelines:
            named = " and ".join(pipelines)
            verb = "writes" if len(pipelines) == 1 else "write"
            said = f"{named} (pipelines) {verb} to no table of the jobs."
            self.told.append(AssumptionKind.OTHER_WRITERS.says(said))
        if "python" in self.document or "python" in self.document.inner("experimental"):
            said = "Jobs that Python code of the bundle defines are not read."
            self.told.append(AssumptionKind.NOT_READ.says(said))
        return Bundle(self.name, self.folder, self.label, self.target, jobs, tuple(self.told))

    def _job(self, name: str, job: YamlValue, names: dict[str, str]) -> BundleJob:
        """Return a job; `names` are the names of the tasks of the jobs before it."""
        if not isinstance(job.value, dict):
            job.refuse(f"the job {name} is {job.shown()}; expected a mapping")
        entries = job.list("tasks")
        if not entries:
            job.refuse(f"the job {name} has no tasks; expected a list of tasks")
        runs: int = self.get(job, "max_concurrent_runs", int, 1)
        if runs < 0:
            job.refuse(f"max_concurrent_runs of the job {name} is {runs}; expected 0 or more")
        continuous = job.at("continuous")
        started, paused = self._starts(job)
        tasks = self._tasks(name, job, entries, names)
        queued: bool = self.get(job.inner("queue"), "enabled", bool, default=False)
        return BundleJob(
            name, job.location, tasks, 1 if continuous else runs, queued, started, paused
        )

    def _starts(self, job: YamlValue) -> tuple[str, bool]:
        """Return what starts a job, and whether that is paused."""
        texts = {"schedule": "", "continuous": "continuously", "trigger": "by a trigger"}
        for key, text in texts.items():
            if job.at(key) is None:
                continue
            one = job.inner(key)
            said = text
            if key == "schedule":
                cron = self.get(one, "quartz_cron_expression", str)
                if cron is None:
                    one.refuse("schedule needs quartz_cron_expression (a string)")
                said = f"by '{cron}' ({self.get(one, 'timezone_id', str, 'UTC')})"
            return said, self.get(one, "pause_status", str, "UNPAUSED").upper() == "PAUSED"
        return "", False

    def _tasks(
        self, name: str, job: YamlValue, entries: Sequence[YamlValue], names: dict[str, str]
    ) -> tuple[BundleTask, ...]:
        """Return the tasks of a job."""
        found: dict[str, YamlValue] = {}
        for entry in entries:
            if not isinstance(entry.value, dict):
                entry.refuse(f"a task of the job {name} is {entry.shown()}; expected a mapping")
            key: str = entry.needed("task_key", str, f"a task of the job {name}")
            if key in found:
                entry.refuse(f"the job {name} has two tasks {key}")
            found[key] = entry
        first = {key: self._depends(key, entry, found) for key, entry in found.items()}
        try:
            order = [*TopologicalSorter(first).static_order()]
        except CycleError as error:
            around = " → ".join(reversed(error.args[1]))
            job.refuse(f"tasks of the job {name} depend on each other in a cycle: {around}")
        above: dict[str, frozenset[str]] = {}
        for key in order:
            above[key] = frozenset(first[key]).union(*(above[one] for one in first[key]))
        called = {}
        for key in found:
            plain = name if len(found) == 1 else f"{name}_{key}"
            plain = re.sub(r"\W", "_", plain, flags=re.ASCII)
            plain = plain if re.match(r"[A-Za-z_]", plain) else f"job_{plain}"
            several = (f"{plain}_{k}" for k in range(2, len(names) + 3))
            called[key] = next(one for one in (plain, *several) if one not in names)
            names[called[key]] = key
        git = job.at("git_source") is not None
        return tuple(
            self._task(entry, called[key], frozenset(called[one] for one in above[key]), git=git)
            for key, entry in found.items()
        )

    def _depends(self, key: str, entry: YamlValue, known: Mapping[str, object]) -> list[str]:
        """Return the keys of the tasks that a task depends on directly."""
        found = []
        for one in entry.list("depends_on"):
            if not isinstance(one.value, dict):
                one.refuse(f"depends_on has {one.shown()}; expected - task_key: NAME")
            other: str = one.needed("task_key", str, "depends_on")
            if other not in known:
                one.refuse(f"{key} depends on the unknown task '{other}'{near(other, known)}")
            found.append(other)
        return found

    def _task(self, entry: YamlValue, name: str, after: frozenset[str], *, git: bool) -> BundleTask:
        """Return a task, with the file that it executes."""
        key = entry.get("task_key", str)
        inner, repeated = entry, False
        if entry.at("for_each_task") is not None:
            each = entry.inner("for_each_task")
            repeated = self.get(each, "concurrency", int, 1) > 1
            inner = each.inner("task")
        kinds = [one for one in inner.mapping() if one.endswith("_task")]
        if len(kinds) != 1:
            said = " and ".join(kinds) or "none"
            inner.refuse(f"the task {key} has {said}; expected one of sql_task, notebook_task, …")
        (kind,) = kinds
        path, problem, place = self._executed(kind, inner.inner(kind), inner, git=git)
        return BundleTask(
            key,
            name,
            place,
            path,
            problem,
            after,
            repeated,
            self.get(inner, "max_retries", int, 0),
            self.get(inner, "retry_on_timeout", bool, default=False),
        )

    def _executed(
        self, kind: str, task: YamlValue, entry: YamlValue, *, git: bool
    ) -> tuple[Path | None, str, Place]:
        """Return the file that a task executes, or why it is not understood, and the place."""
        if kind in NOTHING:
            job = str(getattr(task.at("job_id"), "value", ""))
            own = re.fullmatch(r"\$\{resources\.jobs\.(.+)\.id\}", job.strip())
            if kind == "run_job_task" and (own is None or own[1] not in self.named):
                key = entry.get("task_key", str)
                text = f"The job that the task {key} starts is not one of the bundle."
                self.told.append(AssumptionKind.OTHER_WRITERS.says(text))
            return None, "", task.location
        if kind == "sql_task" and task.at("file") is not None:
            holder, key = task.inner("file"), "path"
        elif kind == "sql_task":
            other = next((one for one in ("query", "dashboard", "alert") if task.at(one)), None)
            if other is None:
                task.refuse("sql_task needs file, query, dashboard or alert")
            problem = f"SQL of a saved {other}; only files are understood"
            return None, "" if other != "query" else problem, task.location
        elif kind == "notebook_task":
            holder, key = task, "notebook_path"
        else:
            problem = PROBLEMS.get(kind, f"{kind}; only sql_task and notebook_task are understood")
            return None, problem, task.location
        holder.needed(key, str, f"{kind} of {entry.get('task_key', str) or 'the task'}")
        said = holder.mapping()[key]
        return *self._file(said, kind, remote=git or self._is_git(holder)), said.location

    def _is_git(self, holder: YamlValue) -> bool:
        return str(self.get(holder, "source", str, "")).upper() == "GIT"

    def _file(self, said: YamlValue, kind: str, *, remote: bool) -> tuple[Path | None, str]:
        """Return the file of a path in a task, or why it is not read."""
        text = str(self.resolved(said).value)
        base = self.folder if said.location.path is None else said.location.path.parent
        for one in ROOT_PATHS:
            first, slash, rest = one.partition("/")
            begun = f"${{{first}}}{slash}{rest}/"
            if text.startswith(begun):
                base, text = self.folder, text[len(begun) :]
        if "${" in text or "{{" in text:
            return None, f"path '{text}', whose variable has no value here"
        if REMOTE.match(text):
            return None, f"'{text}' is in the workspace; only files of the bundle are read"
        if remote:
            return None, f"'{text}' comes from a Git repository; only files of the bundle are read"
        path = base / text
        if not real_path(path).is_relative_to(self.end) and not is_link(path):
            return None, f"'{text}' is outside of the bundle's folder, which is all that is read"
        if problem := escape(path, self.end):
            return None, f"'{text}' is not read: {problem}"
        if not is_file(path):
            whole = (path.name + one for one in (".sql", ".py", ".ipynb"))
            meant = next((f"; write '{one}'" for one in whole if is_file(path.with_name(one))), "")
            return None, f"there is no file '{text}'{meant}"
        if path.suffix == ".sql" or (kind == "notebook_task" and path.suffix in NOTEBOOKS):
            return path, ""
        return None, f"'{text}' is no SQL; only SQL files and notebooks of SQL are understood"


def _unite(documents: Sequence[YamlValue]) -> YamlValue:
    """Return the files of a bundle as one document; refuse a resource that two of them define."""
    found = documents[0]
    for one in documents[1:]:
        for kind, given in one.inner("resources").mapping().items():
            known = found.inner("resources").inner(kind)
            for name, value in given.mapping().items() if given.value else ():
                if name in known:
                    place = known.mapping()[name].location
                    value.refuse(f"{name} of {kind} is defined twice, here and in {place}")
        kept = {
            k: v for k, v in one.mapping().items() if k in ("resources", "variables", "targets")
        }
        found = merge_yaml(found, YamlValue(kept, one.location), KEYS)
    return found


LONG = 1_000
"""Length from which a pattern is much longer than a path."""


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the paths in a folder that match a pattern.

    ``glob`` would walk the folder anew for each further ``**``, and compile a regular expression.
    """
    if pattern.split("/").count("**") < 2 and len(pattern) < LONG:
        yield from folder.glob(pattern)
        return
    for path in folder.glob("**/*"):
        if matches_path(pattern.removeprefix("./"), path.relative_to(folder).as_posix()):
            yield path
