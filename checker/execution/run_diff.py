"""Differences between two runs, and between a run and its expectation; all possible runs of a test.

Each compared point agrees, differs, or is uncompared because one side does not say it: that is no
agreement, and is counted apart. The fields of a run are enumerated, so that a new field is compared
or raises an error. If a test has parts that the model cannot compute, `only_execution` enumerates
the runs for all their values.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.litmus import Expectation
from isolitmus.model.run import SILENT, Run, SeveralRuns, TransactionRun, same_bag, same_rows
from isolitmus.model.sql.nondeterminism import ABOUT_ROWS, enumerate_choices
from isolitmus.model.sql.values import show_row
from isolitmus.specs.files.spec_catalogue import level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isolitmus.checker.execution.serial_orders import SerialOrders
    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Rows, Value
    from isolitmus.model.verdict import Verdict

ComparedPoint = tuple[bool | None, str]
"""Agreement of two sides (None: one does not say), and the point or difference in words."""

BESIDE = ("unsaid", "message")
"""Fields of a transaction's run that are not compared as points."""
WHO = ("engine", "engine_version", "base")
"""Fields that identify the observer; two runs of one test may differ in them."""
FOLLOWS = {"exception": "outcome", "error_class": "outcome", "commits": "version"}
"""Fields that must differ where another one does; only the other one is reported."""
LOG = {"blind": "blind", "level": "isolation_level", "operation": "operation"}
"""Field of a transaction's run for each key of a file's log expectations."""


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Number of compared points, differences as sentences, and points not compared."""

    points: int
    differences: tuple[str, ...]
    uncompared: tuple[str, ...]

    @classmethod
    def of(cls, points: Iterable[ComparedPoint]) -> RunDiff:
        """Return the result of these points."""
        every = list(points)
        open_ = dict.fromkeys(words for agree, words in every if agree is None)
        return cls(
            sum(agree is not None for agree, _ in every),
            tuple(words for agree, words in every if agree is False),
            tuple(open_),
        )


class RunJudgement(Protocol):
    """Interface of a run of a litmus test with its verdicts."""

    @property
    def litmus(self) -> Litmus: ...
    @property
    def run(self) -> Run: ...
    @property
    def serial(self) -> SerialOrders: ...
    @property
    def breaks(self) -> tuple[str, ...] | None: ...
    def verdict(self, spec: Spec) -> Verdict: ...


def run_differences(predicted: Run, seen: Run) -> tuple[str, ...]:
    """Return the differences of a real run from the model's, one sentence each.

    Points that one of the runs does not say are ignored.
    """
    return compare_runs(predicted, seen).differences


def compare_runs(predicted: Run, seen: Run) -> RunDiff:
    """Compare a real run with the model's, in all fields except those in WHO.

    >>> from dataclasses import replace
    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> done = run(litmus("reorder"), protocol("delta-write-serializable")).run
    >>> compare_runs(done, done).differences
    ()
    >>> compare_runs(done, replace(done, versions=done.versions[:-1])).differences
    ('2 versions predicted, 1 observed',)
    """
    return RunDiff.of(_points(predicted, seen))


def compare_with_expectation(expect: Expectation, judged: RunJudgement) -> RunDiff:
    """Compare a run with its expectation."""
    return RunDiff.of(
        point
        for field in fields(Expectation)
        for point in POINTS[field.name](getattr(expect, field.name), judged)
    )


# Two runs


def _points(predicted: Run, seen: Run) -> Iterator[ComparedPoint]:
    """Yield the compared points of a predicted and an observed run, field by field."""
    ended = any(t.outcome == SILENT for t in predicted.transactions.values())
    for field in fields(Run):
        ours, theirs = getattr(predicted, field.name), getattr(seen, field.name)
        match field.name:
            case "transactions":
                for name in dict.fromkeys((*ours, *theirs)):
                    yield from _transaction(name, ours.get(name), theirs.get(name))
            case "versions":
                unread = predicted.unread | seen.unread
                yield from _versions(ours, theirs, unread, ended=ended)
            case "unread":
                yield from ((None, f"the tables at version {k}") for k in sorted(ours | theirs))
            case name if name not in WHO:
                yield ours == theirs, f"{name} predicted {ours}, observed {theirs}"


def _transaction(
    name: str, ours: TransactionRun | None, theirs: TransactionRun | None
) -> Iterator[ComparedPoint]:
    """Yield the compared points of one transaction; consequential differences are left out."""
    if ours is None or theirs is None:
        said = (t.outcome if t is not None else "no such transaction" for t in (ours, theirs))
        yield False, "{}: predicted {}, observed {}".format(name, *said)
        return
    if ours.outcome == SILENT:
        yield None, f"the outcome of {name}, on which the protocol is silent"
        return
    unsaid = ours.unsaid | theirs.unsaid
    unlike = set()
    for key in (field.name for field in fields(TransactionRun) if field.name not in BESIDE):
        a, b = getattr(ours, key), getattr(theirs, key)
        words = key.replace("_", " ")
        if key == "rows" and key not in unsaid:
            yield _rows_point(f"{name} read", a, b, "predicted", "observed")
        elif key in unsaid:
            if (a, b) != (None, None):
                yield None, f"{name}'s {words}"
        elif FOLLOWS.get(key) not in unlike:
            same = same_rows(a, b) if key == "emitted" else a == b
            alike = same or (key == "outcome" and "exception" in unsaid and _both_fail(a, b))
            if not alike:
                unlike.add(key)
            yield alike, f"{name}: {words} predicted {a}, observed {b}"


def _both_fail(a: str, b: str) -> bool:
    """Return whether two outcomes are errors, of any class."""
    return a.startswith("error:") and b.startswith("error:")


def _versions(
    ours: tuple[Mapping[str, Rows], ...],
    theirs: tuple[Mapping[str, Rows], ...],
    unread: frozenset[int],
    *,
    ended: bool,
) -> Iterator[ComparedPoint]:
    """Yield points that compare versions.

    If the prediction ended in a silence, more may be observed.
    """
    yield (
        len(ours) == len(theirs) or (ended and len(ours) < len(theirs)),
        f"{len(ours) - 1} versions predicted, {len(theirs) - 1} observed",
    )
    # a different number of versions is reported above
    for k, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        for table in () if k in unread else dict.fromkeys((*a, *b)):
            what = f"table {table} at version {k}"
            yield _rows_point(what, a.get(table), b.get(table), "predicted", "observed")


def _rows_point(
    what: str, a: Rows | None, b: Rows | None, first: str, second: str
) -> ComparedPoint:
    alike = a is b if a is None or b is None else same_bag(a, b)
    return alike, f"{what}: {first} {_rows(a)}, {second} {_rows(b)}"


def _rows(rows: Rows | None) -> str:
    if rows is None:
        return "nothing"
    return " ".join(map(show_row, rows)) or "no rows"


# A run and its expectation


def _outcomes(
    expected: Mapping[str, tuple[str, ...]], judged: RunJudgement
) -> Iterator[ComparedPoint]:
    """Yield whether each transaction has one of its expected outcomes."""
    for name, options in expected.items():
        seen = judged.run.transactions[name]
        met = any(_meets(option, seen) for option in options)
        yield met, f"{name}: expected {' or '.join(options)}, got {seen.outcome}"


def _meets(option: str, seen: TransactionRun) -> bool:
    return seen.aborted if option == "aborted" else option in (seen.outcome, seen.exception)


def _error_classes(expected: Mapping[str, str], judged: RunJudgement) -> Iterator[ComparedPoint]:
    """Yield whether each transaction has its expected error class or a subclass of it."""
    for name, wanted in expected.items():
        seen = judged.run.transactions[name]
        got = seen.error_class
        if "error_class" in seen.unsaid:
            yield None, f"{name}'s error class"
        else:
            met = got is not None and (got == wanted or got.startswith(f"{wanted}."))
            yield met, f"{name}: expected error class {wanted}, got {got or 'none'}"


def _log(
    expected: Mapping[str, Mapping[str, Value]], judged: RunJudgement
) -> Iterator[ComparedPoint]:
    """Yield whether the commit information of each transaction equals the expected entries."""
    for name, entry in expected.items():
        seen = judged.run.transactions[name]
        for key, wanted in entry.items():
            got = getattr(seen, LOG[key])
            if LOG[key] in seen.unsaid:
                yield None, f"{name}'s {LOG[key].replace('_', ' ')}"
            else:
                yield got == wanted, f"{name}: expected {key} {wanted}, got {got}"


def _reads(expected: Mapping[str, Rows], judged: RunJudgement) -> Iterator[ComparedPoint]:
    for name, rows in expected.items():
        seen = judged.run.transactions[name].rows
        yield _rows_point(f"{name} read", rows, seen, "expected", "got")


def _emitted(expected: Mapping[str, Rows], judged: RunJudgement) -> Iterator[ComparedPoint]:
    """Yield whether the scans of each transaction emitted the expected rows."""
    for name, rows in expected.items():
        seen = judged.run.transactions[name]
        if "emitted" in seen.unsaid:
            yield None, f"{name}'s emitted"
        else:
            got = seen.emitted
            yield same_rows(got, rows), f"{name}'s scans: expected {_rows(rows)}, got {_rows(got)}"


def _waits(
    expected: Mapping[str, tuple[str, ...]] | None, judged: RunJudgement
) -> Iterator[ComparedPoint]:
    """Yield whether each transaction waited for the expected ones; nothing if none is given."""
    for name, seen in judged.run.transactions.items() if expected is not None else ():
        wanted = (expected or {}).get(name, ())
        got = tuple(" and ".join(wait.behind) for wait in seen.waits)
        if "waits" in seen.unsaid:
            yield None, f"{name}'s waits"
        else:
            ours, theirs = (", ".join(names) or "no transaction" for names in (wanted, got))
            yield got == wanted, f"{name}: expected to wait for {ours}, waited for {theirs}"


def _tables(expected: Mapping[str, Rows], judged: RunJudgement) -> Iterator[ComparedPoint]:
    return _contents({len(judged.run.versions) - 1: expected}, judged)


def _contents(
    expected: Mapping[int, Mapping[str, Rows]], judged: RunJudgement
) -> Iterator[ComparedPoint]:
    """Yield whether the tables at each version have the expected rows."""
    versions = judged.run.versions
    for k, tables in expected.items():
        if k >= len(versions):
            yield False, f"version {k}: expected, but the run ends at version {len(versions) - 1}"
            continue
        for table, rows in tables.items():
            what = f"table {table} at version {k}"
            yield _rows_point(what, rows, versions[k].get(table), "expected", "got")


def _breaks(expected: tuple[str, ...] | None, judged: RunJudgement) -> Iterator[ComparedPoint]:
    """Yield whether the violated postconditions are the expected ones."""
    if expected is None:
        return
    got = judged.breaks
    if got is None:
        yield False, "postconditions: unknown, because the written rows are unknown"
        return
    wanted, seen = (", ".join(sorted(names)) or "none" for names in (expected, got))
    yield wanted == seen, f"violated postconditions: expected {wanted}, got {seen}"


def _serial(expected: tuple[str, ...] | None, judged: RunJudgement) -> Iterator[ComparedPoint]:
    """Yield whether the serial orders that produce the final table are the expected ones."""
    if expected is None:
        return
    wanted = ", ".join(expected) or "none"
    if judged.litmus.raw:
        yield False, f"serial orders: expected {wanted}, unknown because rows are unknown"
        return
    got = judged.serial.orders
    yield (
        set(expected) == set(got),
        f"serial orders: expected {wanted}, got {', '.join(got) or 'none'}",
    )


def _verdicts(wanted: str, names: tuple[str, ...], judged: RunJudgement) -> Iterator[ComparedPoint]:
    for name in names:
        verdict = str(judged.verdict(level(name)))
        yield verdict == wanted, f"{name}: expected {wanted}, got {verdict}"


POINTS: Mapping[str, Callable[[Any, RunJudgement], Iterator[ComparedPoint]]] = {
    "outcome": _outcomes,
    "error_class": _error_classes,
    "log": _log,
    "reads": _reads,
    "emitted": _emitted,
    "waits": _waits,
    "tables": _tables,
    "versions": _contents,
    "breaks": _breaks,
    "serial": _serial,
    "holds": partial(_verdicts, "allowed"),
    "fails": partial(_verdicts, "forbidden"),
}
"""Function that yields the points of each field of an expectation."""


def only_execution(litmus: Litmus, protocol: Spec, undecided: UndeterminedError) -> Execution:
    """Return the execution of a test whose run is ``undecided`` if all answers give the same run.

    An answer that changes the rows that are read leaves several, even if the runs are equal.

    Raises
    ------
    UndeterminedError
        SeveralRuns, with all possible runs; if they cannot be enumerated, the error that says why.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.files.litmus_file import read_litmus
    >>> test = read_litmus('''
    ... title = "A condition that the model does not know"
    ... schedule = "a.start b a.commit"
    ... [table]
    ... columns = "id INT"
    ... init = ["INSERT INTO t VALUES (1)"]
    ... [transactions]
    ... a = "DELETE FROM t WHERE mine(id)"
    ... b = "INSERT INTO t VALUES (2)"
    ... ''', "opaque")
    >>> spec, undecided = protocol("delta-serializable"), UndeterminedError("who knows")
    >>> try:
    ...     only_execution(test, spec, undecided)
    ... except SeveralRuns as found:
    ...     print(sorted({run.transactions["a"].outcome for run in found.runs}))
    ['ConcurrentAppendException', 'error:its own', 'no-op']
    """
    runs: list[Run] = []
    try:
        for done in enumerate_choices(lambda choices: execute(litmus, protocol, choices=choices)):
            run = observed_run(litmus, done, protocol.name)
            if all(run_differences(one, run) for one in runs):
                runs.append(run)
    except UndeterminedError as also:
        raise (undecided if also.problem == undecided.problem else also) from None
    if len(runs) == 1:
        with suppress(UndeterminedError):
            return execute(litmus, protocol, choices=ABOUT_ROWS)
    raise SeveralRuns(f"{undecided.problem}: {len(runs)} runs are possible", tuple(runs))
