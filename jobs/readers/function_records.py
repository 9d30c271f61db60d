"""Records of runs of PySpark functions, and their jobs.

A record tells what one run of a function did on empty tables: its statements as SQL, its reads, the
uses of what it read, and what has no SQL. A value that a later statement contains is a ``let`` of
the job. A read whose result the program used otherwise leaves the rest of its paths unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.sql.guards import guard_insert
from isolitmus.jobs.sql.spark_plans import PYTHON_ROWS
from isolitmus.model.display import count_of
from isolitmus.specs.files.toml_reader import Source
from isolitmus.specs.sql.parameters import one_line, parameters

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from isolitmus.jobs.readers.function_targets import FunctionTarget
    from isolitmus.model.errors import IsolitmusError

ROWS = {"= 0": "no rows", "<= 0": "no rows", "> 0": "rows", "<> 0": "rows"}
"""What is known of a number of rows, in words."""
MADE_ROWS = re.compile(rf"\bFROM\s+{PYTHON_ROWS}\b(?!\s*\()", re.IGNORECASE)
"""Rows of a program that stand for any rows."""
WORDS = ("sql", "name", "call", "of", "problem", "sink")
"""Texts of a step."""


class RecordedStep(NamedTuple):
    """Step of a run, in the order of the run."""

    kind: str
    """"statement", "read", "used" (a result of a read), "decided" (what is known of one on the
    path), "argument" (of a parameter), "gap" (without SQL), "left out", "note", "aborted" (a
    statement, with the class of its exception), "raised", or "stopped" (raised after a conflict).
    """
    line: int
    """Line of the function's file; 0 if it is not known."""
    sql: str = ""
    """Statement, or query of a read."""
    name: str = ""
    """Name of a result of a read; as a parameter, it stands for that result in statements."""
    call: str = ""
    """Action that reads, as the program calls it."""
    of: str = ""
    """Name of the rows of which a result is a value; empty if it is a result of its own."""
    problem: str = ""
    """What has no SQL, or what was not executed."""
    tables: tuple[str, ...] | None = None
    """Tables that a read reads."""
    stream: int = 0
    """Line that starts the streaming query to whose batches it belongs; 0 if it belongs to none."""
    sink: str = ""
    """Table to which Delta's sink writes the batch; empty if a function does."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRecord:
    """Record of a run of a function, on one of its paths."""

    target: FunctionTarget
    steps: tuple[RecordedStep, ...]
    number: int = 1
    """Number of the path."""
    suffix: str = ""
    """End of the name of its job."""
    idle: bool = False
    """True if it does nothing, and another path does something; it is no job."""
    more: bool = False
    """True if other paths have not been taken."""
    failure: IsolitmusError | None = None
    """Error about a function that did not return."""
    conflicts: bool = False
    """True if a statement of the function aborted on some path."""
    _used: Mapping[str, int] = field(init=False, repr=False)
    _texts: tuple[str, ...] = field(init=False, repr=False)
    """Statements and reads as its job has them: an INSERT on a decided path has the condition."""
    uncertain: str = field(init=False, default="", repr=False)
    """Read on whose result later statements depend, without a condition in them, or which a job
    reads again later than the program did; or a conflict of a statement.
    """

    def __post_init__(self) -> None:
        used = {s.name: s.line for s in reversed(self.steps) if s.kind == "used"}
        object.__setattr__(self, "_used", used)
        texts = [s.sql for s in self.steps]
        reads = {s.name: k for k, s in enumerate(self.steps) if s.kind == "read"}
        places = [k for k, s in enumerate(self.steps) if s.kind == "decided"]
        known = list(dict.fromkeys(self.steps[k].sql for k in places))
        after = [k for k, _ in self._numbered_statements if places and k > places[0]]
        open_ = []
        if after:
            last, one = self._numbered_statements[-1]
            guarded = guard_insert(one.sql, " AND ".join(known)) if last > places[-1] else None
            if guarded is not None and len(after) == 1:
                texts[last] = guarded
            else:
                open_.append(reads[self.steps[places[0]].name])
        object.__setattr__(self, "_texts", tuple(texts))
        ended = -1
        for k, _ in self._numbered_statements:
            open_ += [reads[n] for n in parameters(texts[k]) if reads.get(n, k) < ended]
            ended = k
        if open_:
            read = self.steps[open_[0]]
            object.__setattr__(self, "uncertain", f"{read.call} ({self.place(read)})")
        elif aborted := self.aborted:
            object.__setattr__(self, "uncertain", f"a conflict in {self.place(aborted[0])}")

    @property
    def name(self) -> str:
        """Name of its job."""
        return self.target.name + self.suffix

    @property
    def _numbered_statements(self) -> list[tuple[int, RecordedStep]]:
        return [
            (k, s)
            for k, s in enumerate(self.steps)
            if s.kind == "statement" and not s.sql.startswith("SET ")
        ]

    @classmethod
    def of(cls, target: FunctionTarget, records: Sequence[Mapping[str, Any]]) -> FunctionRecord:
        r"""Return the record of a run from what the recorder told.

        Examples
        --------
        >>> from pathlib import Path
        >>> from isolitmus.jobs.readers.function_targets import FunctionTarget
        >>> target = FunctionTarget(Path("job.py"), "load", 3, "")
        >>> told = [{"kind": "statement", "line": 5, "sql": "DELETE FROM t"}]
        >>> print(*FunctionRecord.of(target, told).lines(), sep="\n")
        load (job.py:3) was executed on empty tables: 1 statement on this path
          job.py:5  DELETE FROM t
        """
        steps = []
        for one in records:
            tables = one.get("tables")
            words = {k: str(one[k]) for k in WORDS if k in one}
            steps.append(
                RecordedStep(
                    kind=one["kind"],
                    line=one["line"],
                    tables=None if tables is None else tuple(tables),
                    stream=one.get("stream", 0),
                    **words,
                )
            )
        return cls(target, tuple(steps))

    @classmethod
    def of_paths(
        cls,
        target: FunctionTarget,
        paths: Sequence[Sequence[Mapping[str, Any]]],
        *,
        more: bool = False,
        failure: IsolitmusError | None = None,
    ) -> list[FunctionRecord]:
        """Return the records of the paths of a function; with ``more``, it has other ones.

        The job of the first path that does something has the function's name. A path with a
        conflict on which nothing else happens than on another one, or which only ends earlier, is
        left out, if that other path needs no other conflict.
        """
        every = [cls.of(target, told) for told in paths]
        conflicts = any(one.aborted for one in every)
        records = [one for one in every if not one.aborted or not one.adds_nothing_to(every)]
        active = [one for one in records if one.statements or one.gaps] or records[:1]
        found = []
        for number, one in enumerate(records, 1):
            suffix = f"_path{number}" if one in active[1:] else ""
            last, idle = number == len(records), one not in active
            found.append(replace(
                one, number=number, suffix=suffix, idle=idle, more=more and last,
                failure=failure if last else None, conflicts=conflicts,
            ))  # fmt: skip
        return found

    def adds_nothing_to(self, paths: Sequence[FunctionRecord]) -> bool:
        """Return whether another path begins with all that happens on this path.

        Of equal paths, the first one with the fewest conflicts is kept.
        """
        own = self.events
        if any(step.kind == "raised" for step in self.steps):
            return False
        rank = len(self.aborted), paths.index(self)
        return any(
            own == other.events[: len(own)]
            and other.aborted_places <= self.aborted_places
            and (len(own) < len(other.events) or (len(other.aborted), place) < rank)
            for place, other in enumerate(paths)
        )

    @property
    def events(self) -> list[RecordedStep]:
        """What happens on its path besides conflicts."""
        return [s for s in self.steps if s.kind not in ("aborted", "stopped", "note")]

    @property
    def aborted(self) -> tuple[RecordedStep, ...]:
        """Statements that aborted."""
        return tuple(s for s in self.steps if s.kind == "aborted")

    @property
    def aborted_places(self) -> frozenset[str]:
        """Files and lines of the statements that aborted."""
        return frozenset(map(self.place, self.aborted))

    @property
    def statements(self) -> tuple[RecordedStep, ...]:
        """Its statements, without settings."""
        return tuple(s for _, s in self._numbered_statements)

    @property
    def gaps(self) -> tuple[RecordedStep, ...]:
        """What it executed that has no SQL."""
        return tuple(s for s in self.steps if s.kind == "gap")

    @property
    def results(self) -> dict[str, RecordedStep]:
        """Reads whose result a statement contains, by name."""
        steps = zip(self.steps, self._texts, strict=True)
        named = {n for s, text in steps if s.kind == "statement" for n in parameters(text)}
        return {s.name: s for s in self.steps if s.kind == "read" and s.name in named}

    @property
    def reads(self) -> tuple[RecordedStep, ...]:
        """Reads whose result no statement contains."""
        own = self.results
        whole = {s.of for s in own.values()}
        return tuple(
            s
            for s in self.steps
            if s.kind == "read" and s.name not in own and s.name not in whole and not s.of
        )

    def place(self, step: RecordedStep) -> str:
        """Return the file and line of a step."""
        return f"{self.target.label}:{step.line or self.target.line}"

    def unknown_paths(self, *, let: bool) -> Iterator[tuple[RecordedStep, str]]:
        """Yield each read on whose result the path may depend, with a sentence about it, and what
        else is not known of it.

        A read after which nothing is written decides nothing. Without ``let``, the results that
        statements contain count as well.
        """
        for step in self.steps:
            if step.kind == "raised" and self.failure is None:
                said = step.problem.removeprefix("it raised ").rstrip(".")
                yield (
                    step,
                    (
                        f"with {self.condition}, {self.target.name} raised {said} on empty tables;"
                        " what it executes then is not known"
                    ),
                )
        if self.failure is not None:
            place, _, problem = str(self.failure).partition(": ")
            line = place.rpartition(":")[2]
            yield RecordedStep("raised", int(line) if line.isdigit() else 0), problem
        if self.more:
            yield (
                RecordedStep("used", self.target.line),
                (
                    f"{self.target.name} has more than {self.number} paths; its statements on the"
                    " others are not known"
                ),
            )
        lost = {} if let else self.results
        seen: set[int] = set()
        for step in self.steps:
            uses = step.name in self._used or step.name in lost
            if step.kind != "read" or not uses or step.line in seen:
                continue
            seen.add(step.line)
            used = self._used.get(step.name, 0)
            where = f" in line {used}" if used and used != step.line else ""
            yield (
                step,
                (
                    f"the path from here on may depend on the result of {step.call}, which"
                    f" {self.target.name} uses{where}; its statements with other results are not"
                    " known"
                ),
            )

    def doubts(self, unknown: Sequence[RecordedStep]) -> dict[str, str]:
        """Return why a run of its jobs that executes only their statements may not exist, by job.

        ``unknown`` are the steps after which the path is not known.
        """
        found: dict[str, str] = {}
        if decided := self.uncertain or next(map(self.place, unknown), ""):
            found = {
                job: f"whether a run of {job} executes all of its statements depends on {decided}"
                for job in self.job_names
            }
        for step in self.gaps:
            job = self.job_name(step.stream)
            problem = f"a run of {job} also executes {self.place(step)}, which is not understood"
            found.setdefault(job, problem)
        for step in self.statements:
            if MADE_ROWS.search(step.sql) and not step.stream:
                problem = f"the rows that Python makes for {self.place(step)} are not known"
                found.setdefault(self.job_name(0), problem)
        return found

    def lines(self) -> Iterator[str]:
        """Yield the path that the run took, one statement or read a line."""
        of = self.target
        count = count_of(len(self.statements), "statement")
        if self.number == 1:
            yield f"{of.shown} ({of.place}) was executed on empty tables: {count} on this path"
        else:
            yield f"{of.shown} ({of.place}) with {self.condition}: {count} on this path"
        shown: list[tuple[str, str]] = []
        own = self.results
        for step in self.steps:
            text = one_line(step.sql)
            if step.kind == "statement":
                batch = "each batch of a stream: " if step.sink else ""
                shown.append((self.place(step), f"{batch}{text}"))
            elif step.kind == "read" and step.name in own:
                shown.append((self.place(step), f":{step.name} = {text}"))
            elif step.kind == "read" and step in self.reads:
                shown.append((self.place(step), f"{step.call} of {text}"))
            elif step.kind == "aborted":
                shown.append((self.place(step), f"a statement aborts with {step.problem}"))
            elif step.kind in ("raised", "stopped"):
                shown.append((self.place(step), f"here {step.problem}"))
            elif step.kind == "note":
                shown.append((self.place(step), f"note: {step.problem}"))
            elif step.kind in ("gap", "left out"):
                shown.append((self.place(step), f"not executed or not understood: {step.problem}"))
        width = max((len(place) for place, _ in shown), default=0)
        yield from (f"  {place.ljust(width)}  {text}" for place, text in shown)

    @property
    def condition(self) -> str:
        """What is known on the path, in words of the program."""
        calls = {s.name: s for s in self.steps if s.kind == "read"}
        parts = []
        for step in self.steps:
            if step.kind == "decided":
                read, known = calls[step.name], step.sql.partition(" ")[2]
                if read.call == "count()":
                    said = f"count() {known}"
                else:
                    said = f"{ROWS.get(known, f'{known} rows')} from {read.call}"
                parts.append(f"{said} in line {read.line or self.target.line}")
            elif step.kind == "aborted":
                parts.append(f"{step.problem} in line {step.line or self.target.line}")
        return " and ".join(dict.fromkeys(parts))

    def to_json(self) -> dict[str, object]:
        """Return the run in the format of docs/interface.md."""
        own = self.results
        return {
            "function": self.target.function,
            "place": self.target.place,
            "path": self.condition,
            "arguments": dict(self.target.values),
            "statements": [
                {"place": self.place(s), "sql": s.sql} for s in self.steps if s.kind == "statement"
            ],
            "let": {name: {"place": self.place(s), "sql": s.sql} for name, s in own.items()},
            "reads": [{"place": self.place(s), "call": s.call, "sql": s.sql} for s in self.reads],
        }

    def jobs(
        self, *, let: bool, typed: bool
    ) -> dict[str, tuple[dict[str, Any], list[tuple[int, int]]]]:
        """Return the jobs for a workload file, with the positions of their statements, by name.

        The batches of a streaming query run beside the rest of the function, so they are a job of
        their own. Without ``let``, a result of a read is any value, and its tables are read whole.
        With ``typed``, parameters have the types of the arguments that the program gave.
        """
        return {
            self.job_name(stream): self._job(stream, let=let, typed=typed)
            for stream in self._streams
        }

    @property
    def _streams(self) -> tuple[int, ...]:
        """Lines that start its streaming queries, and 0 if it has other statements or reads."""
        if self.idle:
            return ()
        kinds = ("statement", "read", "gap")
        found = dict.fromkeys(s.stream for s in self.steps if s.kind in kinds)
        return (*found,) or (0,)

    def job_name(self, stream: int) -> str:
        """Return the name of the job of a streaming query, or (0) of the rest of the function."""
        alone = len(self._streams) == 1
        return self.name if alone or not stream else f"{self.name}_line{stream}"

    @property
    def job_names(self) -> tuple[str, ...]:
        """Names of its jobs."""
        return tuple(map(self.job_name, self._streams))

    def tables_of(self, known: Collection[str]) -> frozenset[str] | None:
        """Return the tables in lower case that the function may change on paths that are not
        known: those that its program names, or that were recorded; None if these may be any.
        """
        words = self.target.words()
        names = {table.lower() for table in known}
        texts = [one for s in self.steps for one in (s.sql, *(s.tables or ()))]
        recorded = {*re.findall(r"\w+", " ".join(texts).lower())} & names
        if words is None or not recorded <= words:
            return None
        return frozenset(names & words)

    @property
    def sinks(self) -> dict[str, RecordedStep]:
        """Writes of Delta's streaming sink, by job."""
        return {self.job_name(s.stream): s for s in self.steps if s.kind == "statement" and s.sink}

    def _job(
        self, stream: int, *, let: bool, typed: bool
    ) -> tuple[dict[str, Any], list[tuple[int, int]]]:
        own = self.results if let else {}
        reads = {s.name: s for s in (self.reads if let else (*self.reads, *self.results.values()))}
        texts, spans = [], []
        for step, text in zip(self.steps, self._texts, strict=True):
            if step.stream != stream:
                continue
            if step.kind == "statement":
                found = [text]
            elif reads.get(step.name) is step:
                found = [f"SELECT * FROM {table}" for table in step.tables or ()]
                found = [step.sql] if let and step.sql else found
            else:
                continue
            texts += found
            spans += [self._span(step.line)] * len(found)
        job: dict[str, Any] = {"sql": texts}
        named = {name for text in texts for name in parameters(text)}
        if own := {name: step for name, step in own.items() if name in named}:
            job["let"] = {name: step.sql for name, step in own.items()}
        if typed:
            types = {s.name: s.sql for s in self.steps if s.kind == "argument"}
            written = named - own.keys()
            job["parameters"] = {name: types[name] for name in types if name in written}
        return job, spans

    def _span(self, line: int) -> tuple[int, int]:
        lines = self.target.text.splitlines(keepends=True)
        number = line if 0 < line <= len(lines) else self.target.line
        start = sum(map(len, lines[: number - 1]))
        text = lines[number - 1]
        return start + len(text) - len(text.lstrip()), start + len(text.rstrip())

    def source(self) -> Source:
        """Return the file of the function."""
        return Source(self.target.label, self.target.text, self.target.path)
