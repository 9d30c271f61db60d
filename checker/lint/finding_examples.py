"""Smallest examples of a finding, as litmus tests that the model has executed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.workloads.instances import Instances
from isolitmus.checker.workloads.invariants import decide_invariants
from isolitmus.checker.workloads.prediction import predict_pair
from isolitmus.checker.workloads.robustness import decide_all
from isolitmus.specs.files.catalogue import protocol as named_protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.lint.finding import LintFinding, LintResult
    from isolitmus.model.litmus import Litmus

__all__ = ["finding_examples"]


def finding_examples(result: LintResult, one: LintFinding) -> Iterator[Litmus]:
    """Yield the smallest examples of a finding; none if it has no executed example."""
    if not one.meetings and one.violation is None and one.broken is None:
        return
    spec = named_protocol(result.protocol)
    names = {site.name for site in one.sites}
    by_name = {each.name: each for each in result.workload.statements}
    jobs = {by_name[name].job for name in names}
    part = replace(
        result.workload,
        jobs={name: job for name, job in result.workload.jobs.items() if name in jobs},
        unread=(),
    )
    if one.broken is not None:
        given = result.workload.invariants
        for each in decide_invariants(result.workload, (spec,), given):
            if each.invariant.name == one.broken.name:
                yield from (run.test for run in each.violations if run.jobs == one.broken.jobs)
        return
    if one.violation is not None:
        promise = one.violation.promise
        for answer in decide_all(part, (spec,), (promise,)):
            for one_run in answer.counterexamples:
                if {member.name for member in one_run.danger.members} == names:
                    yield one_run.test
                    return
    for meeting in one.meetings:
        instances = Instances(part)
        found = predict_pair(instances, by_name[meeting.loser], by_name[meeting.winner], spec)
        yield from found.examples.values()
