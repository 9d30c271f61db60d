"""Smallest examples of findings, as litmus tests that the model has executed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import predict_pair
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.jobs.invariants.invariant_runs import InvariantViolation
    from isolitmus.jobs.lint.finding import LintFinding, LintResult
    from isolitmus.jobs.workload import Workload
    from isolitmus.model.litmus import Litmus


class FindingExamples:
    """Examples of the findings of one result; the invariants are decided once for all of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.jobs.lint.linter import lint_workload
    >>> from isolitmus.jobs.readers.lint_settings import LintSettings
    >>> from isolitmus.jobs.readers.workload_sources import workload
    >>> result = lint_workload(workload("shop"), "delta-serializable", LintSettings(Path()))
    >>> first = next(FindingExamples(result).of(result.findings[0]))
    >>> first.name, str(first.schedule)
    ('upsert-by-ingest', 'upsert.start ingest upsert.commit')
    """

    def __init__(self, result: LintResult) -> None:
        self.result = result
        self.spec = named_protocol(result.protocol)
        self.by_name = {each.name: each for each in result.workload.statements}

    def of(self, one: LintFinding) -> Iterator[Litmus]:
        """Yield the smallest examples of a finding; none if it has no executed example."""
        if one.broken is not None:
            broken = self._violations.get(one.broken.name, ())
            yield from (run.test for run in broken if run.jobs == one.broken.jobs)
        elif one.violation is not None:
            names = {site.name for site in one.sites}
            for answer in decide_all(self._part(one), (self.spec,), (one.violation.promise,)):
                for run in answer.counterexamples:
                    if {member.name for member in run.danger.members} == names:
                        yield run.test
                        return
        else:
            for meeting in one.meetings:
                loser, winner = self.by_name[meeting.loser], self.by_name[meeting.winner]
                found = predict_pair(Instances(self._part(one)), loser, winner, self.spec)
                yield from found.examples.values()

    def _part(self, one: LintFinding) -> Workload:
        """Return the workload of the jobs of a finding."""
        work = self.result.workload
        jobs = {self.by_name[site.name].job for site in one.sites}
        left = {name: job for name, job in work.jobs.items() if name in jobs}
        return replace(work, jobs=left, unread=())

    @cached_property
    def _violations(self) -> Mapping[str, tuple[InvariantViolation, ...]]:
        """Violations of each invariant."""
        work = self.result.workload
        answers = decide_invariants(work, (self.spec,), work.invariants)
        return {answer.invariant.name: answer.violations for answer in answers}
