"""Functions of PySpark as jobs of a workload, by records of their runs.

Some paths are taken only after a conflict. Such a path exists only if its statement can abort.
Where that statement commits, on another path, it is a statement of a job, and the prediction of its
conflicts decides about the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.jobs.workload import AbortedStatement, ConflictPath, UnreadStatement
from isolitmus.model.assumption import Assumption, AssumptionKind, Place
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.specs.files.toml_reader import Source

MOST_CONFLICTS = 10
"""Number of times that a statement aborts on a path on which it always does."""
FunctionRunner = Callable[[str], Sequence[FunctionRecord]]
"""Runner of functions on empty tables, which are created by a text of CREATE TABLE statements."""
FunctionForms = Mapping[FunctionRecord, tuple[bool, bool]]
"""Functions that have been run, each with the form of its job."""
FORMS = ((True, False), (True, True), (False, True))
"""Forms of the job of a function, the best first: with what it reads as ``let``, and with the types
of its arguments.
"""


def build_with_functions(
    records: Sequence[FunctionRecord], build: Callable[[FunctionForms], Workload]
) -> Workload:
    """Return a workload with the jobs of functions, each in the best form that is understood.

    Parameters
    ----------
    records : sequence of FunctionRecord
        Functions that have been run.
    build : callable
        Returns the workload with these functions in given forms.
    """
    forms = dict.fromkeys(records, FORMS[0])
    work = build(forms)
    for record in records:
        missing = {*record.job_names} - work.jobs.keys()
        for form in FORMS[1:] if missing and record.statements else ():
            other = build(forms | {record: form})
            if {*record.job_names} <= other.jobs.keys():
                forms[record], work = form, other
                break
    failures = [record.failure for record in records if record.failure is not None]
    whole = {record.target.name for record in records if record.failure is None}
    own = {name for record in records for name in record.job_names}
    if failures and not whole and not {*work.job_names} - own:
        raise failures[0]
    any_value = [record.name for record, (let, _) in forms.items() if not let]
    return with_functions(work, records, any_value) if records else work


def add_function_jobs(
    functions: FunctionForms,
    jobs: dict[str, Any],
    sources: dict[str, Source],
    spans: dict[str, list[tuple[int, int]]],
) -> None:
    """Add the jobs of functions to those of files, with their files and places.

    Raises LitmusError if there is another job of the same name.
    """
    for record, (let, typed) in functions.items():
        of = record.target
        for name, (job, places) in record.jobs(let=let, typed=typed).items():
            if name in sources or name in jobs:
                raise LitmusError(
                    f"{of.path}: another job has the name {name} as well; write --run"
                    f" NAME={of.label}:{of.function}"
                )
            sources[name] = record.source()
            spans[name] = places
            if job["sql"]:
                jobs[name] = job


def _queries(records: Sequence[FunctionRecord]) -> dict[str, list[str]]:
    """Return the jobs of each streaming query with Delta's sink, by the place of its start.

    Two runs with other arguments may have one checkpoint, so they count as one query.
    """
    found: dict[str, list[str]] = {}
    for record in records:
        for job, step in record.sinks.items():
            found.setdefault(record.place(step), []).append(job)
    return found


def with_functions(
    work: Workload, records: Sequence[FunctionRecord], without_let: Collection[str] = ()
) -> Workload:
    """Return a workload that has the jobs of functions, with what their records leave unknown.

    The jobs in ``without_let`` have parameters of any value in place of what they read.
    """
    unread: list[UnreadStatement] = []
    told: list[Assumption] = []
    homes = {name: record for record in records for name in record.job_names}
    for one in work.unread:
        record = homes.get(one.job)
        if record is not None and one.location is not None:
            unread.append(replace(one, place=f"{one.location.file}:{one.location.line}"))
        else:
            unread.append(one)
    uncertain: dict[str, str] = {}
    seen: set[tuple[object, ...]] = set()
    taken = {*(one.name for one in work.unread), *(one.name for one in work.statements)}
    own_unread: dict[FunctionRecord, list[str]] = {
        record: [one.name for one in unread if one.job in record.job_names] for record in records
    }
    # what is not understood belongs to a path without a conflict, if there is one
    for record in sorted(records, key=_has_conflict_only):
        name = record.target.name
        needs = (name, record.aborted_places) if _has_conflict_only(record) else ()
        label = record.target.label
        gaps = [(s, s.problem) for s in record.gaps]
        let = record.name not in without_let
        open_ = [*record.unknown_paths(let=let)]
        uncertain |= record.doubts([step for step, _ in open_])
        tables = record.tables_of(work.tables)
        if tables is not None and (gaps or open_):
            told.append(
                AssumptionKind.UNKNOWN_STEPS.says(
                    f"What is not known of {name} changes no table that {label} and the modules"
                    " beside it do not name."
                )
            )
        for step, problem in (*gaps, *open_):
            key = record.target.place, step.line, problem
            if (*key, *needs) in seen or key in seen:
                continue
            seen.add((*key, *needs))
            line = step.line or record.target.line
            called = f"{name}_line{line}"
            while called in taken:
                called += "_"
            taken.add(called)
            place = Place(label, line, 1, line, record.target.path)
            job = record.job_name(step.stream)
            unread.append(UnreadStatement(called, job, problem, f"{label}:{line}", tables, place))
            own_unread[record].append(called)
        told += [
            AssumptionKind.STATEMENTS.says(
                f"{record.place(s)}: {s.problem}"
                f"{'; it is left out' if s.kind == 'left out' else ''}."
            )
            for s in record.steps
            if s.kind in ("left out", "note")
        ]
    if any(record.conflicts for record in records):
        told.append(
            AssumptionKind.ONE_CONFLICT.says(
                "On a path of a function, a statement aborts at most once, or each time that it is"
                f" tried, up to {MOST_CONFLICTS} times, and all conflicts have one class."
            )
        )
    alone: set[tuple[str, str]] = set()
    for begun, jobs in _queries(records).items():
        told.append(
            AssumptionKind.SCHEDULE.says(
                f"{begun}: no two runs of the streaming query {' or '.join(jobs)} overlap: both"
                " would set the version of one application id, and Delta aborts the later commit"
                " with ConcurrentTransactionException."
            )
        )
        alone |= {(a, b) for a in jobs for b in jobs}
    of = dict.fromkeys(f"{r.target.shown} ({r.target.place})" for r in records)
    what = "the statements that it executed on empty tables"
    if any(record.number > 1 for record in records):
        what = "the statements of one of the paths that it took on empty tables"
    given = any(record.target.values for record in records)
    arguments = "the arguments given here and " if given else ""
    told.append(
        AssumptionKind.STATEMENTS.says(
            f"Each run of a function executes {what}, with {arguments}the values that its Python"
            f" computed then: {', '.join(of)}."
        )
    )
    apart = work.apart | alone
    return replace(
        work,
        unread=tuple(unread),
        left_out=(*work.left_out, *dict.fromkeys(told)),
        apart=apart,
        uncertain={**work.uncertain, **uncertain},
        conflict_paths=(*work.conflict_paths, *_conflict_paths(work, records, own_unread)),
    )


def _has_conflict_only(record: FunctionRecord) -> bool:
    """Return whether all that a record tells is about a path that follows a conflict.

    The last record of a function also tells about paths that were not taken.
    """
    return bool(record.aborted) and not record.more and record.failure is None


def _conflict_paths(
    work: Workload,
    records: Sequence[FunctionRecord],
    unread: Mapping[FunctionRecord, Sequence[str]],
) -> Iterator[ConflictPath]:
    """Yield the paths of functions that follow a conflict of statements that are understood.

    Parameters
    ----------
    work : Workload
        Workload with the jobs of the functions.
    records : sequence of FunctionRecord
        All paths of the functions.
    unread : mapping of FunctionRecord to sequence of str
        Names of what is not understood of each path.
    """
    for record in records:
        if not _has_conflict_only(record):
            continue
        own = [one for one in records if one.target == record.target]
        places = dict.fromkeys(map(record.place, record.aborted))
        aborted = [
            AbortedStatement(place, names)
            for place in places
            if (names := _statements_at(work, own, place))
        ]
        if aborted:
            yield ConflictPath(
                record.target.name, tuple(aborted), record.job_names, tuple(unread[record])
            )


def _statements_at(
    work: Workload, records: Sequence[FunctionRecord], place: str
) -> tuple[str, ...]:
    """Return the names of all statements that a function executes in a line; none if it may execute
    something else there.
    """
    recorded: Counter[str] = Counter()
    for record in records:
        if any(record.place(step) == place for step in record.gaps):
            return ()
        steps = [step for step in record.statements if record.place(step) == place]
        recorded.update(record.job_name(step.stream) for step in steps)
    names: list[str] = []
    writers = [one for one in work.statements if not isinstance(one.statement, Read)]
    every: list[JobStatement | UnreadStatement] = [*writers, *work.unread]
    for one in every:
        at = one.location
        if one.job in recorded and at is not None and f"{at.file}:{at.line}" == place:
            recorded[one.job] -= 1
            names.append(one.name)
    return () if any(recorded.values()) else tuple(names)
