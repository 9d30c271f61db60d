"""Schedule of a workload: which runs of its jobs may overlap, from a table ``[schedule]``.

Without one, two invocations of a project may overlap, and maintenance of its tables runs at any
time. What a scheduler rules out is taken as known, and named in the first line of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import is_file, read_text
from isolitmus.specs.files.toml_reader import Node, Source, show_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

__all__ = ["JobSchedule", "find_job_schedule", "read_job_schedule"]

ALL = "all"
CONFIGURATION = (("isolitmus.toml", ()), ("pyproject.toml", ("tool", "isolitmus")))
"""Files that may have a table ``schedule``, and the path of the table in which it stands."""


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
    place: str = ""
    """File and line of the table; empty for the default."""

    @property
    def whole(self) -> bool:
        """Whether no two invocations overlap."""
        return ALL in self.one_at_a_time

    def check_jobs(self, jobs: Collection[str]) -> None:
        """Refuse a name that is not one of a job.

        Examples
        --------
        >>> JobSchedule(one_at_a_time=("order",), place="isolitmus.toml:1").check_jobs(["orders"])
        Traceback (most recent call last):
        isolitmus.model.errors.LitmusError: isolitmus.toml:1: schedule names the unknown job \
'order'; did you mean 'orders'?
        """
        named = [*self.one_at_a_time, *self.after]
        named += [name for pair in (*self.apart, *self.after.values()) for name in pair]
        for name in named:
            if name != ALL and name not in jobs:
                problem = f"schedule names the unknown job '{name}'{near(name, jobs)}"
                raise LitmusError(f"{self.place}: {problem}")

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
            found = "No two invocations overlap; " + (
                "each runs one model after another"
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
    for file, path in ((folder / name, path) for folder in folders for name, path in CONFIGURATION):
        if not is_file(file):
            continue
        node = Source(file.name, read_text(file, LitmusError)).node()
        for key in path:
            if not isinstance(node.value.get(key), dict):
                break
            node = node.at(key)
        else:
            if "schedule" in node:
                return read_job_schedule(node.inner("schedule"))
    return JobSchedule()


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
    node.keys(("apart", "one_at_a_time", "after", "maintenance", "full_refresh", "threads"))
    pairs = node.get("apart", list, [])
    for pair in pairs:
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
        ):
            node.refuse(
                f'{node}.apart has {show_value(pair)}; write pairs of jobs: [["a", "b"]]',
                f"{node}.apart",
            )
    given = node.value.get("one_at_a_time", [])
    alone = [given] if isinstance(given, str) else given
    if not _are_names(alone):
        node.refuse(f'{node}.one_at_a_time is {show_value(given)}; write "all" or a list of jobs')
    after: dict[str, tuple[str, ...]] = {}
    for name, one in node.inner("after", {}).items():
        first = [one.value] if isinstance(one.value, str) else one.value
        if not _are_names(first):
            one.refuse(f"{one} is {show_value(one.value)}; write a job or a list of jobs")
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
        tuple((a, b) for a, b in pairs),
        tuple(alone),
        after,
        maintenance if isinstance(maintenance, bool) else tuple(maintenance),
        node.get("full_refresh", bool, default=False),
        threads,
        node.place,
    )


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
