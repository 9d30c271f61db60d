"""What ``explain`` finds: why a commit was refused, or whom commits can have stopped; and its words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.stoppers import meeting_files
from isolitmus.checker.running.refusals import refusals
from isolitmus.checker.runs import run
from isolitmus.checker.telling.draw import timeline
from isolitmus.checker.telling.words import refusal_words
from isolitmus.model.errors import IsolitmusError, brief
from isolitmus.model.litmus import Litmus
from isolitmus.model.number import many
from isolitmus.model.readable import Readable, few
from isolitmus.model.schedule import Schedule
from isolitmus.specs import litmus, protocol
from isolitmus.specs.exceptions_file import exception_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.auditing.stoppers import Stopper
    from isolitmus.checker.runs import Judged
    from isolitmus.model.conflict_exception import (
        ConflictExample,
        ConflictException,
        ConflictFacts,
        PastedException,
    )
    from isolitmus.model.delta_log import LogCommit, LogFile
    from isolitmus.model.verdict import Violation

__all__ = ["Diagnosis", "ReplayedExample", "StoppedBy", "carry_out_example", "general_lines"]

FILES = 3
"""So many files are named."""


OTHER_CHECKS = (
    "said by delta-rs, whose check of this name may compare other files than Delta's: docs/deltalake.md;"
    " what follows is of Delta"
)


@dataclass(frozen=True)
class ReplayedExample:
    """An example, carried out: how it ended, why, and how the refused transaction ends after the others."""

    example: ConflictExample
    """Which."""
    judged: Judged
    """The run on the model."""
    why: Violation
    """Why the transaction was refused."""
    later: Judged
    """The run in which it comes after the others."""

    @property
    def again(self) -> str:
        """Its outcome if it runs after the others."""
        return self.later.run.transactions[self.example.loser].outcome

    def to_json(self) -> dict[str, object]:
        """The example as docs/interface.md, 6, has it."""
        of = self.example
        outcome = self.judged.run.transactions[of.loser].outcome
        return {
            "litmus": of.test,
            "protocol": of.under,
            "transaction": of.loser,
            "outcome": outcome,
            "again": self.again,
        }

    def lines(self) -> Iterator[str]:
        """The example for a person."""
        of = self.example
        yield f"An example, {of.test} under {of.under}:"
        statements = self.judged.litmus.transactions.items()
        width = max(len(name) for name, _ in statements)
        for name, statement in statements:
            yield f"  {name:<{width}}  {brief(statement.sql)}"
        for line in timeline(self.judged.litmus.schedule, self.judged.run).splitlines():
            yield f"  {line}"
        yield from (f"  {line}" for line in refusal_words(self.why))
        yield f"  Run after the others, {of.loser} {ENDS.get(self.again, f'ends with {self.again}')}."
        yield f"  See it on Delta: isolitmus run {of.test} --protocol {of.under} --engine delta"


ENDS = {"committed": "commits", "no-op": "finds nothing left to do"}


@dataclass(frozen=True)
class Diagnosis(Readable):
    """Why a commit was refused."""

    pasted: PastedException
    """What its exception says."""
    known: ConflictException
    """What is known of such exceptions."""
    stopped: Stopper | None = None
    """The commit that stopped it, if the table's log was looked at."""
    later: LogCommit | None = None
    """The first commit after that by the same command as the refused job: perhaps its next attempt."""

    @property
    def facts(self) -> ConflictFacts:
        """What is known of the conflict, by the log where that was looked at."""
        facts = self.pasted.facts
        if self.stopped is None:
            return facts
        commit = self.stopped.commit
        where = facts.where or ("partition" if any(f.partition for f in self.met) else "table")
        return replace(
            facts,
            winner=commit.operation,
            blind=bool(commit.blind),
            level=commit.level,
            version=commit.version,
            where=where,
        )

    @property
    def met(self) -> tuple[LogFile, ...]:
        """The files of the other commit where the two met, as far as the log says."""
        return () if self.stopped is None else meeting_files(self.pasted, self.stopped.commit)

    @property
    def hint(self) -> str:
        """What the second part of the error class says."""
        return exception_table().hints.get(self.pasted.hint, "")

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """What can be changed about it."""
        return self.known.advice(self.facts)

    @cached_property
    def example(self) -> ReplayedExample:
        """The example that is most like it, carried out on the model."""
        return carry_out_example(self.known.example(self.facts), self.known.name)

    def to_json(self) -> dict[str, object]:
        """The diagnosis as docs/interface.md, 6, has it."""
        facts = self.facts
        return {
            "exception": self.known.name,
            "error_class": self.pasted.error_class,
            "wording": self.pasted.wording,
            "check": self.known.check,
            "place": self.known.place,
            "table": self.pasted.table,
            "partition": self.pasted.partition,
            "files": [file.path for file in self.met] or list(filter(None, [self.pasted.file])),
            "winner": {
                "version": facts.version,
                "operation": facts.winner,
                "blind": facts.blind,
                "isolation_level": facts.level,
                "read_version": self.read_by_winner,
            },
            "mine": facts.mine,
            "later": None if self.later is None else self.later.version,
            "meaning": self.known.meaning,
            "retry": self.known.retry,
            "retrying": self.known.retrying,
            "changes": list(self.changes),
            "example": self.example.to_json(),
            "page": self.known.page,
        }

    def __repr__(self) -> str:
        return few(self.lines(), 60)

    def lines(self) -> Iterator[str]:
        """The diagnosis for a person."""
        known, pasted = self.known, self.pasted
        named = f" ({pasted.error_class})" if pasted.error_class else ""
        yield f"{known.name}{named}: {known.title}"
        yield f"  the check: {known.check} (docs/delta.md, 2.3; {known.place})"
        if pasted.wording == "delta-rs":
            yield f"  {OTHER_CHECKS}"
        yield from (f"  {line}" for line in (*self._other(), *self._where(), *self._mine()))
        if self.hint:
            yield f"  {pasted.hint}: {self.hint}"
        yield from (f"  {line}" for line in general_lines(known, self.changes))
        yield from (f"  {line}" for line in self.example.lines())
        yield f"  More: {known.page}"
        if pasted.others:
            yield f"  The text has {', '.join(pasted.others)}, too: give it alone to have that explained."

    def _other(self) -> Iterator[str]:
        """The commit that stopped it."""
        if self.stopped is not None:
            yield f"stopped by: {self.stopped.commit.words}"
            yield from (f"  {line}" for line in _details(self.stopped.commit))
            return
        facts = self.facts
        said = [
            facts.winner,
            {True: "a blind append", False: "not a blind append", None: None}[facts.blind],
            facts.level and f"checked at {facts.level}",
            None
            if self.read_by_winner is None
            else f"which had read version {self.read_by_winner}",
        ]
        words = ", ".join(filter(None, said))
        of = f" of {self.pasted.table}" if self.pasted.table else ""
        if facts.version is not None:
            yield f"stopped by: version {facts.version}{of}{words and f' ({words})'}"
        elif words:
            yield f"stopped by: a commit{of} ({words})"
        elif of:
            yield f"the table: {self.pasted.table}"
        predicate = (self.pasted.commit.get("operationParameters") or {}).get("predicate")
        if predicate:
            yield f"  its condition: {brief(str(predicate), 200)}"

    def _where(self) -> Iterator[str]:
        met = self.met
        if self.pasted.partition is not None:
            yield f"where: partition {self.pasted.partition}"
        elif self.facts.where == "table" and self.known.name != "ConcurrentTransactionException":
            yield "where: no partition is named; any file of the table counts"
        names = [file.path for file in met] or list(filter(None, [self.pasted.file]))
        if names:
            more = f" and {many(len(names) - FILES, 'other file')}" if len(names) > FILES else ""
            yield f"{'files' if len(names) > 1 else 'file'}: {', '.join(names[:FILES])}{more}"

    def _mine(self) -> Iterator[str]:
        if self.pasted.mine is not None:
            yield f"your job: {self.pasted.mine}, by the stack trace"
        if self.later is not None:
            yield f"since then: {self.later.words}; perhaps your job, run again"

    @property
    def read_by_winner(self) -> int | None:
        """The version that the other commit had read."""
        if self.stopped is not None:
            return self.stopped.commit.read_version
        read = self.pasted.commit.get("readVersion")
        return read if isinstance(read, int) else None


@dataclass(frozen=True, slots=True)
class StoppedBy(Readable):
    """Whom commits of a table can have stopped, without the exception."""

    table: str
    """Its path."""
    after: int
    """The version that a refused job had read."""
    commits: tuple[Stopper, ...]
    """The commits after it."""

    def to_json(self) -> dict[str, object]:
        """As docs/interface.md, 6, has it."""
        commits = [
            {
                "version": one.commit.version,
                "operation": one.commit.operation,
                "stops": dict(one.stops),
            }
            for one in self.commits
        ]
        return {"table": self.table, "after": self.after, "commits": commits}

    def __repr__(self) -> str:
        return few(self.lines(), 60)

    def lines(self) -> Iterator[str]:
        """The commits for a person."""
        if not self.commits:
            yield f"{self.table}: nothing was committed after version {self.after}: no conflict stopped your job"
        for one in self.commits:
            yield one.commit.words
            yield from (f"  {line}" for line in _details(one.commit))
            yield from (f"  {name}: {whom}" for name, whom in one.stops.items())


def _details(commit: LogCommit) -> Iterator[str]:
    """What a commit says of itself besides."""
    said = [
        None if commit.read_version is None else f"it had read version {commit.read_version}",
        commit.level and f"was checked at {commit.level}",
        commit.engine and f"by {commit.engine}",
    ]
    if any(said):
        yield ", ".join(filter(None, said))
    parameters = {k: v for k, v in commit.parameters.items() if v not in ("", "[]", None, [])}
    if parameters:
        yield ", ".join(f"{k}: {brief(str(v), 120)}" for k, v in parameters.items())


def general_lines(known: ConflictException, changes: tuple[str, ...]) -> Iterator[str]:
    """What an exception means, and what to do."""
    yield f"What it means: {known.meaning}"
    yield f"Run it again? {known.retry.capitalize()}. {known.retrying}"
    yield "What to change:"
    yield from (f"  - {one}" for one in changes)


def carry_out_example(example: ConflictExample, name: str) -> ReplayedExample:
    """An example of an exception, carried out on the model under its protocol.

    IsolitmusError if its transaction does not end in that exception.
    """
    test, spec = litmus(example.test), protocol(example.under)
    assert isinstance(test, Litmus)
    judged = run(test, spec)
    assert judged.execution is not None
    why = refusals(judged.execution, spec)
    if judged.run.transactions[example.loser].outcome != name:
        raise IsolitmusError(
            f"{example.test} is an example of {name}, but {example.loser} ends with"
            f" {judged.run.transactions[example.loser].outcome} under {example.under}"
        )
    steps = [str(step) for step in test.schedule.steps if step.transaction != example.loser]
    after = Schedule.parse(" ".join([*steps, example.loser]), test.transactions)
    later = run(replace(test, schedule=after), spec)
    return ReplayedExample(example, judged, why[example.loser], later)
