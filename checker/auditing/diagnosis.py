"""Diagnosis of an aborted commit, by the text of its exception and by the table's log.

If the catalogue has an example, a litmus test with a transaction that aborts with the same
exception, the model runs it. A second run commits that transaction after the others: it shows what
a retry does.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.winning_commits import (
    find_winning_commit,
    meeting_files,
    winning_commit_at,
    winning_commits_after,
)
from isolitmus.checker.execution.commit_loop import abort_violations
from isolitmus.checker.execution.run_result import run
from isolitmus.model.delta.conflict import (
    UNKNOWN,
    ConflictFacts,
    PastedError,
    has_vectors,
    replaces_rows,
    winner_kind,
)
from isolitmus.model.display import TextResult
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.exception_text import read_pasted
from isolitmus.specs.files.exceptions_file import cause_shown_by, exception_table
from isolitmus.specs.logs.delta_log import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from isolitmus.checker.auditing.winning_commits import WinningCommit
    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.model.budget import Budget
    from isolitmus.model.delta.conflict import ConflictExample, ConflictException, PastedException
    from isolitmus.model.delta.log import LogCommit, LogFile
    from isolitmus.model.verdict import Violation
    from isolitmus.specs.logs.delta_log import DeltaLog

BY_FILES = (
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
)
"""Exceptions that `predict` predicts for two statements."""
PREDICTED = ("Delta", "Databricks", UNKNOWN)
"""Engines whose statements `predict` can read."""


@dataclass(frozen=True)
class ReplayedExample:
    """Executed example of an exception: its outcome, the reason, and the outcome of a retry."""

    example: ConflictExample
    under: str
    """Name of the protocol."""
    judged: RunResult
    """Run on the model."""
    why: Violation
    """Reason why the transaction aborted."""
    later: RunResult
    """Run in which the aborted transaction comes after the others."""

    @property
    def again(self) -> str:
        """Outcome of the aborted transaction if it runs after the others."""
        return self.later.run.transactions[self.example.loser].outcome

    def to_json(self) -> dict[str, object]:
        """Return the example in the format of docs/interface.md, 6."""
        of = self.example
        outcome = self.judged.run.transactions[of.loser].outcome
        return {
            "litmus": of.test,
            "protocol": self.under,
            "transaction": of.loser,
            "outcome": outcome,
            "again": self.again,
        }


@dataclass(frozen=True, repr=False)
class Diagnosis(TextResult):
    """Diagnosis of an aborted commit."""

    pasted: PastedException
    """Content of the exception's text."""
    known: ConflictException
    """Meaning, retry and advice for this exception and cause."""
    stopped: WinningCommit | None = None
    """Winning commit, if the log of the table was read."""
    later: LogCommit | None = None
    """First later commit by the aborted job's command: perhaps its next attempt."""
    ended: str | None = None
    """Limit that ended the work, if any; the missing parts are unknown."""

    @property
    def facts(self) -> ConflictFacts:
        """Known facts of the conflict, with those from the log if it was read."""
        facts = self.pasted.facts
        if self.stopped is None:
            return facts
        commit = self.stopped.commit
        where = facts.where or ("partition" if any(f.partition for f in self.met) else "table")
        return replace(
            facts,
            winner=winner_kind(commit.operation, commit.parameters),
            overwrites=replaces_rows(commit.operation, commit.parameters),
            vectors=facts.vectors or has_vectors(commit.info.get("operationMetrics")),
            blind=bool(commit.blind),
            level=commit.level,
            version=commit.version,
            where=where,
        )

    @property
    def met(self) -> tuple[LogFile, ...]:
        """Conflicting files of the winning commit, as far as the log shows."""
        return () if self.stopped is None else meeting_files(self.pasted, self.stopped.commit)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Advice, the most specific first."""
        return self.known.advice(self.facts)

    @cached_property
    def example(self) -> ReplayedExample | None:
        """Most similar example, executed on the model.

        None if the catalogue has none, or a limit was reached first.
        """
        if self.ended is not None:
            return None
        found = self.known.example(self.facts)
        under = None if found is None else found.protocol(self.facts)
        if found is None or under is None:
            return None
        return run_example(found, under, self.known.name)

    def to_json(self) -> dict[str, object]:
        """Return the diagnosis in the format of docs/interface.md, 6."""
        facts, example = self.facts, self.example
        return {
            "exception": self.known.name,
            "error_class": self.pasted.error_class,
            "condition": self.pasted.condition,
            "engine": None if self.pasted.engine == UNKNOWN else self.pasted.engine,
            "title": self.known.title,
            "check": self.known.check,
            "place": self.known.place,
            "table": self.pasted.table,
            "partition": self.pasted.partition,
            "domain": self.pasted.domain,
            "files": [file.path for file in self.met] or list(filter(None, [self.pasted.file])),
            "winner": {
                "version": facts.version,
                "operation": self.operation,
                "blind": facts.blind,
                "isolation_level": facts.level,
                "read_version": self.read_by_winner,
            },
            "mine": facts.mine,
            "later": None if self.later is None else self.later.version,
            "meaning": self.known.means(facts),
            "retry": self.known.retry,
            "retrying": self.known.retried(facts),
            "changes": list(self.changes),
            "next": list(self.next_steps()),
            "example": None if example is None else example.to_json(),
            "page": self.known.page,
            "ended": self.ended,
        }

    def next_steps(self) -> Iterator[str]:
        """Yield commands that show more."""
        if self.stopped is None:
            named = "" if self.facts.version is not None else " --failed-after V"
            yield (
                f"isolitmus explain FILE --table PATH{named} finds the winning commit and the"
                " conflicting files" + (" (V: version that your job had read)" if named else "")
            )
        rows = self.pasted.engine == "Databricks" and self.pasted.condition is not None
        if self.known.name in BY_FILES and self.pasted.engine in PREDICTED and not rows:
            rules = ", by the rules of open-source Delta" if self.pasted.engine != "Delta" else ""
            yield (
                "isolitmus predict --table PATH yours.sql other.sql --remedies shows when the two"
                f" statements conflict, and how to prevent it{rules}"
            )

    @property
    def operation(self) -> str | None:
        """Operation of the winning commit, as the log names it."""
        return self.pasted.operation if self.stopped is None else self.stopped.commit.operation

    @property
    def read_by_winner(self) -> int | None:
        """Version that the winning commit had read."""
        if self.stopped is not None:
            return self.stopped.commit.read_version
        read = self.pasted.commit.get("readVersion")
        return read if isinstance(read, int) else None


@dataclass(frozen=True, slots=True, repr=False)
class OtherDiagnosis(TextResult):
    """Diagnosis of an error other than a conflict of two commits to a Delta table."""

    error: PastedError
    """Content of the error's text."""
    ended: None = None
    """No limit ends it."""

    def to_json(self) -> dict[str, object]:
        """Return the diagnosis in the format of docs/interface.md, 6."""
        return {
            "error": self.error.name or None,
            "format": self.error.format or None,
            "meaning": self.error.says,
            "change": self.error.change or None,
            "versions": dict(self.error.versions),
        }


@dataclass(frozen=True, slots=True, repr=False)
class ConflictingCommits(TextResult):
    """Commits of a table with the transactions that conflict with each, without an exception."""

    table: str
    """Path of the table."""
    after: int
    """Version that the aborted job had read."""
    commits: tuple[WinningCommit, ...]
    """Commits after that version."""
    ended: str | None = None
    """Limit that ended the work, if any; there may be further commits."""

    def to_json(self) -> dict[str, object]:
        """Return the commits in the format of docs/interface.md, 6."""
        commits = [
            {
                "version": one.commit.version,
                "operation": one.commit.operation,
                "stops": dict(one.stops),
            }
            for one in self.commits
        ]
        return {
            "table": self.table,
            "after": self.after,
            "commits": commits,
            "ended": self.ended,
        }


def run_example(example: ConflictExample, under: str, name: str) -> ReplayedExample:
    """Execute an example of an exception on the model under a protocol, and its retry.

    Raises
    ------
    IsolitmusError
        If its transaction does not end with that exception.
    """
    test, spec = litmus(example.test), protocol(under)
    assert isinstance(test, Litmus)
    judged = run(test, spec)
    assert judged.execution is not None
    why = abort_violations(judged.execution, spec)
    if judged.run.transactions[example.loser].outcome != name:
        raise IsolitmusError(
            f"{example.test} is an example of {name}, but {example.loser} ends with"
            f" {judged.run.transactions[example.loser].outcome} under {under}"
        )
    steps = [str(step) for step in test.schedule.steps if step.transaction != example.loser]
    after = Schedule.parse(" ".join([*steps, example.loser]), test.transactions)
    later = run(replace(test, schedule=after), spec)
    return ReplayedExample(example, under, judged, why[example.loser], later)


LATER = 1_000
"""Maximum number of commits after the winning one that are searched for the job's next attempt."""


def explain(
    text: str,
    *,
    table: Path | str | None = None,
    version: int | None = None,
    failed_after: int | None = None,
    label: str = "the text",
    budget: Budget | None = None,
) -> Diagnosis | OtherDiagnosis:
    """Explain why a commit aborted, by its exception's text and, if given, by the table's log.

    Parameters
    ----------
    text : str
        Text of the exception.
    table : Path or str, optional
        Path of the table.
    version : int, optional
        Version of the winning commit.
    failed_after : int, optional
        Version that the aborted job had read.
    label : str
        Name of the text in errors.
    budget : Budget, optional
        Limits; once they are reached, the result has what was found until then.

    Returns
    -------
    Diagnosis or OtherDiagnosis
        The known exception, whether to retry, causes and remedies, and an example; or the
        meaning of another known error.

    Raises
    ------
    NoConflict
        If the text has no known conflict and no other known error.
    LogError
        If the log cannot be read, or does not fit the text.

    Examples
    --------
    >>> found = explain("DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT")
    >>> found.known.name, found.known.retry, found.example.again
    ('ConcurrentDeleteReadException', 'yes', 'no-op')
    """
    pasted = read_pasted(text, label)
    if isinstance(pasted, PastedError):
        return OtherDiagnosis(pasted)
    table_of = exception_table()
    known = table_of.every[pasted.name]
    if pasted.condition is not None:
        known = table_of.conditions[pasted.condition].of_exception(known)
    found = Diagnosis(pasted, known)
    try:
        with _within(budget):
            if table is not None:
                found = _with_log(found, Path(table), version, failed_after)
            if budget is not None:
                found.example  # noqa: B018 - executed now, within the budget
    except Limit as limit:
        return replace(found, ended=str(limit))
    return found


def _within(budget: Budget | None) -> AbstractContextManager[None]:
    return nullcontext() if budget is None else budget.interrupting()


def _with_log(
    found: Diagnosis, table: Path, version: int | None, failed_after: int | None
) -> Diagnosis:
    """Return the diagnosis with the winning commit from the table's log."""
    log = open_log(table)
    stopped = find_winning_commit(log, found.pasted, version, failed_after)
    first = stopped.commit.version + 1
    later = map(log.commit, range(first, min(first + LATER, log.last + 1)))
    mine = found.pasted.mine
    next_one = next(
        (c for c in later if mine and (c.operation or "").upper().startswith(mine)), None
    )
    known, cause = found.known, cause_shown_by(found.known.name, stopped.commit.operation)
    if found.pasted.condition is None and cause is not None:
        known = exception_table().conditions[cause].of_exception(known)
    return replace(found, known=known, stopped=stopped, later=next_one)


def conflicts_of_version(
    table: Path, version: int, budget: Budget | None = None
) -> ConflictingCommits:
    """Return the transactions that conflict with a version of a table.

    Raises
    ------
    LogError
        If the log does not have the version.
    """
    return _stopped(table, version - 1, lambda log: iter([winning_commit_at(log, version)]), budget)


def conflicts_after(table: Path, read: int, budget: Budget | None = None) -> ConflictingCommits:
    """Return the transactions that conflict with the commits after a version.

    Raises
    ------
    LogError
        If the log does not have the version.
    """
    return _stopped(table, read, lambda log: winning_commits_after(log, read), budget)


def _stopped(
    table: Path,
    after: int,
    looked_at: Callable[[DeltaLog], Iterator[WinningCommit]],
    budget: Budget | None,
) -> ConflictingCommits:
    """Return the conflicts of commits; if the budget is spent, those found until then."""
    found: list[WinningCommit] = []
    ended = None
    try:
        with _within(budget):
            # what was found before an interrupt is kept
            found.extend(looked_at(open_log(table)))
    except Limit as limit:
        ended = str(limit)
    return ConflictingCommits(str(table), after, tuple(found), ended)
