"""Schedule of a workload: which runs of its jobs may overlap, from a table ``[schedule]``.

Without one, two invocations of a project may overlap, and maintenance of its tables runs at any
time. What a scheduler rules out is taken as known, and named in the first line of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import is_file
from isolitmus.specs.disk.repository import end_of_reading, read_inside
from isolitmus.specs.files.toml_reader import Node, Source, show_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

ScheduleKind = Literal["dbt projects", "Databricks bundles", "SQL files"]
"""Kind of the jobs that a schedule is about."""

ALL = "all"
CONFIGURATION = (("isolitmus.toml", ()), ("pyproject.toml", ("tool", "isolitmus")))
"""Files that may have a table ``schedule``, and the path of the table in which it stands."""
EVERY: tuple[ScheduleKind, ...] = ("dbt projects", "Databricks bundles", "SQL files")
KEYS: Mapping[str, tuple[ScheduleKind, ...]] = {
    **dict.fromkeys(("apart", "one_at_a_time", "after", "shared", "distinct"), EVERY),
    **dict.fromkeys(("maintenance", "full_refresh", "threads"), EVERY[:1]),
    "target": EVERY[:2],
}
"""Keys of a table ``schedule``, each with the kinds of jobs that have it."""


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """What may run at the same time."""

    apart: tuple[tuple[str, str], ...] = ()
    """Pairs of jobs that never overlap."""
    one_at_a_time: tuple[str, ...] = ()
    """Jobs of which no two runs overlap; with ``"all"`` no two invocations overlap."""
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Jobs that run before each job, in one invocation."""
    maintenance: bool | tuple[str, ...] = True
    """Whether OPTIMIZE of each table may run at any time, or the statements that may."""
    full_refresh: bool = False
    """Whether an invocation with ``--full-refresh`` may run."""
    threads: int = 0
    """Threads of an invocation; 0: any number."""
    threads_place: str = ""
    """Place of the threads, if the table has none."""
    place: str = ""
    """File and line of the table; empty for the default."""
    target: str = ""
    """Target of a Databricks bundle or of a dbt profile."""
    node: Node | None = field(default=None, compare=False)
    """Table with ``shared`` and ``distinct``, the parameters that are shared or distinct."""

    @property
    def whole(self) -> bool:
        """Whether no two invocations overlap."""
        return ALL in self.one_at_a_time

    def of(self, kind: ScheduleKind) -> JobSchedule:
        """Return this schedule; refuse a key that the jobs of this kind do not have.

        Examples
        --------
        >>> from isolitmus.specs.files.toml_reader import Source
        >>> node = Source("isolitmus.toml", "schedule.threads = 4").node().inner("schedule")
        >>> read_job_schedule(node).of("SQL files")
        Traceback (most recent call last):
        isolitmus.model.errors.LitmusError: isolitmus.toml:1: schedule.threads is for dbt \
projects; remove it
        """
        if self.node is not None:
            for key, kinds in KEYS.items():
                if key in self.node and kind not in kinds:
                    key = self.node.under(key)  # noqa: PLW2901 - its path
                    self.node.refuse(f"{key} is for {' and '.join(kinds)}; remove it", key)
        return self

    def check_jobs(self, jobs: Collection[str]) -> None:
        """Refuse a name that is not one of a job.

        Examples
        --------
        >>> JobSchedule(one_at_a_time=("order",), place="isolitmus.toml:1").check_jobs(["orders"])
        Traceback (most recent call last):
        isolitmus.model.errors.LitmusError: isolitmus.toml:1: one_at_a_time: unknown job \
'order'; did you mean 'orders'?
        """
        named = {
            "apart": [name for pair in self.apart for name in pair],
            "one_at_a_time": [name for name in self.one_at_a_time if name != ALL],
            "after": [name for job, first in self.after.items() for name in (job, *first)],
        }
        for key, names in named.items():
            for name in names:
                if name in jobs:
                    continue
                problem = f"unknown job '{name}'{near(name, jobs)}"
                if self.node is None:
                    raise LitmusError(f"{self.place}: {key}: {problem}")
                where = self.node.under(key)
                self.node.refuse(f"{where}: {problem}", where)

    def pairs(self, before: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
        """Yield the pairs of jobs that never overlap, in both directions.

        Parameters
        ----------
        before : mapping of str to collection of str
            Jobs that an invocation runs before each job.

        Examples
        --------
        >>> before = {"a": (), "b": ("a",)}
        >>> sorted(set(JobSchedule(one_at_a_time=("all",)).pairs(before)))
        [('a', 'a'), ('a', 'b'), ('b', 'a'), ('b', 'b')]
        """
        found = [*self.apart]
        alone = [*before] if self.whole else self.one_at_a_time
        found += [(name, name) for name in alone]
        if self.whole:
            found += [(name, one) for name, first in before.items() for one in first]
        if self.whole and self.threads == 1:
            found += [(name, one) for name in before for one in before]
        for name, first in self.after.items():
            for one in first:
                found += [(name, one), (name, name), (one, one)]
        for a, b in found:
            yield a, b
            yield b, a

    def __str__(self) -> str:
        if self.whole:
            origin = f" (threads is 1, {self.threads_place})" if self.threads_place else ""
            found = "No two invocations overlap; " + (
                f"each runs one model after another{origin}"
                if self.threads == 1
                else "in one, models overlap if neither depends on the other"
            )
        elif self.one_at_a_time:
            found = f"Two invocations may overlap, but no two runs of {_listed(self.one_at_a_time)}"
        else:
            found = "Two invocations may overlap"
        if self.apart:
            found += "; never at the same time: " + ", ".join(f"{a} and {b}" for a, b in self.apart)
        for name, first in self.after.items():
            found += f"; {name} runs after {_listed(first)}"
        if self.maintenance is True:
            found += "; OPTIMIZE of each table runs at any time"
        elif self.maintenance:
            found += "; maintenance runs at any time"
        else:
            found += "; no maintenance runs meanwhile"
        refresh = "may use" if self.full_refresh else "uses"
        negated = "an invocation" if self.full_refresh else "no invocation"
        place = f" ({self.place})" if self.place else ""
        return f"{found}; {negated} {refresh} --full-refresh{place}."


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(names)


def find_job_schedule(*folders: Path) -> JobSchedule:
    """Return the schedule of the first of these folders that has one, or the default."""
    node = find_settings_table("schedule", *folders)
    return JobSchedule() if node is None else read_job_schedule(node)


def find_settings_table(key: str, *folders: Path) -> Node | None:
    """Return a table of ``isolitmus.toml`` or ``pyproject.toml`` in the first of these folders that
    has it; None if none has.

    Examples
    --------
    >>> from pathlib import Path
    >>> find_settings_table("schedule", Path("no such folder")) is None
    True
    """
    for file, path in ((folder / name, path) for folder in folders for name, path in CONFIGURATION):
        if not is_file(file):
            continue
        text = read_inside(file, LitmusError, end_of_reading(file.parent))
        node = Source(file.name, text, file).node()
        for part in path:
            if not isinstance(node.value.get(part), dict):
                break
            node = node.at(part)
        else:
            if key in node:
                return node.inner(key)
    return None


def read_job_schedule(node: Node) -> JobSchedule:
    r"""Return the schedule in a table ``[schedule]``.

    Examples
    --------
    >>> from isolitmus.specs.files.toml_reader import Source
    >>> text = "[schedule]\none_at_a_time = 'all'\nmaintenance = false"
    >>> print(read_job_schedule(Source("isolitmus.toml", text).node().inner("schedule")))
    No two invocations overlap; ...; no maintenance runs meanwhile; no invocation ...
    """
    node.table()
    node.keys(KEYS)
    given = node.value.get("one_at_a_time", [])
    alone = [given] if isinstance(given, str) else given
    if not _are_names(alone):
        node.refuse(f'{node}.one_at_a_time is {show_value(given)}; write "all" or a list of jobs')
    after: dict[str, tuple[str, ...]] = {}
    for name, one in node.inner("after", {}).items():
        first = [one.value] if isinstance(one.value, str) else one.value
        if not _are_names(first):
            one.refuse(f"{one} is {show_value(one.value)}; write a job or a list of jobs")
        if name in first:
            said = f"a job does not run after itself; write one_at_a_time = [{show_value(name)}]"
            where = node.under("after")
            node.refuse(f"{where}: {said}, so that no two of its runs overlap", where)
        after[name] = tuple(first)
    said = node.value.get("maintenance", True)
    maintenance = [said] if isinstance(said, str) else said
    if not isinstance(maintenance, bool) and not _are_names(maintenance):
        node.refuse(
            f"{node}.maintenance is {show_value(said)}; write true, false or a list of statements"
        )
    if (threads := node.get("threads", int, 0)) < 0:
        node.refuse(f"{node}.threads is {threads}; write a number from 1")
    return JobSchedule(
        read_apart(node),
        tuple(alone),
        after,
        maintenance if isinstance(maintenance, bool) else tuple(maintenance),
        node.get("full_refresh", bool, default=False),
        threads,
        place=node.place,
        target=node.get("target", str, ""),
        node=node,
    )


def read_apart(node: Node) -> tuple[tuple[str, str], ...]:
    """Return the pairs of jobs in the key ``apart`` of a table.

    Examples
    --------
    >>> from isolitmus.specs.files.toml_reader import Source
    >>> read_apart(Source("w.toml", 'apart = [["load", "load"], ["load", "report"]]').node())
    (('load', 'load'), ('load', 'report'))
    """
    found: list[tuple[str, str]] = []
    for pair in node.get("apart", list, []):
        if not _are_names(pair) or len(pair) != 2:
            where = node.under("apart")
            node.refuse(f'{where} has {show_value(pair)}; write pairs of jobs: [["a", "b"]]', where)
        found.append((pair[0], pair[1]))
    return tuple(found)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
