"""Dangers that come about: what the solver proposes, carried out and judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.templates.codes import NoValue
from isolitmus.checker.workloads.counterexamples import Counterexample, keeps
from isolitmus.checker.workloads.staging import Stage, executed_part
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Expectation
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files.catalogue import level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.execution.run_result import Judged
    from isolitmus.checker.workloads.cycle_patterns import Danger, DangerQuestion
    from isolitmus.checker.workloads.instances import Instances
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["Trials"]

MODELS = 3
"""So many proposals of the solver are carried out for one way in which a danger may come about."""
WAYS = 2
"""Once there is a counterexample, so many ways are looked at for a table that no serial order gives."""
STRONGEST = "log-serializable"
"""The promise that implies the others."""


class Trials:
    """Tests of a workload's dangers under a protocol; each is carried out once."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.protocol = protocol
        self._broken: dict[tuple[object, ...], Judged | None] = {}
        self._runs: dict[tuple[object, ...], tuple[Danger, Judged]] = {}

    def shown(self, question: DangerQuestion, promise: str) -> Counterexample | None:
        """A test that the promise forbids; one that no serial order explains, if there is one."""
        best: Counterexample | None = None
        for way, wanted in enumerate(question.ways):
            if best is not None and way >= WAYS:
                break
            assert question.asked is not None
            more: list[Any] = []
            for k in range(MODELS if best is None else 2):
                model = question.asked.example(*wanted, *more, apart=k > 0)
                if model is None:
                    break
                found = self._carried_out(question, model, promise)
                if found is not None and not found.explained:
                    return found
                best = best or found
                values = [t.value for m in question.members for t in m.terms.parameters.values()]
                if values:
                    more.append(model.others(values))
                elif k:
                    break
        return best

    def breaking(self, promise: str) -> Iterator[Counterexample]:
        """Of all runs that were judged, for whatever promise, those that break this one: one for each pattern, one
        that no order explains if there is such a one.
        """
        best: dict[tuple[object, ...], Counterexample] = {}
        for danger, judged in list(self._runs.values()):
            found = best.get(danger.key)
            if found is None or found.explained:
                shown = self._breaks(danger, judged.litmus, judged, promise)
                if shown is not None and (found is None or not shown.explained):
                    best[danger.key] = shown
        yield from best.values()

    def _carried_out(
        self, question: DangerQuestion, model: Any, promise: str
    ) -> Counterexample | None:
        danger = question.danger
        stage = Stage(self.instances, model, question.members, danger.schedule)
        best: Counterexample | None = None
        try:
            for test in stage.tests(" and ".join(danger.names)):
                found = self._counterexample(test, danger, promise)
                if found is not None and not found.explained:
                    return found
                best = best or found
        except (NoValue, IsolitmusError):
            return best
        return best

    def _counterexample(self, test: Litmus, danger: Danger, promise: str) -> Counterexample | None:
        """The test as a counterexample, if the promise forbids what comes of it."""
        try:
            judged = self._judged(test)
        except IsolitmusError:
            return None
        if judged is None:
            return None
        self._runs.setdefault((danger.key, *executed_part(test)), (danger, judged))
        return self._breaks(danger, test, judged, promise)

    def _breaks(
        self, danger: Danger, test: Litmus, judged: Judged, promise: str
    ) -> Counterexample | None:
        """A run as a counterexample, if the promise forbids it."""
        try:
            if not isinstance(judged.verdict(level(promise)), Forbidden):
                return None
            serial, explained = judged.serial.orders, keeps(promise, judged)
        except IsolitmusError:
            return None
        outcome = {name: (t.outcome,) for name, t in judged.run.transactions.items()}
        expect = {self.protocol.name: Expectation(outcome=outcome, fails=(promise,))}
        title = f"{' and '.join(danger.names)}: not {promise}"
        shown = replace(test, name="-".join(danger.names), title=title, expect=expect)
        return Counterexample(danger, shown, serial, explained)

    def _judged(self, test: Litmus) -> Judged | None:
        """What comes of a test, if all commit and it breaks a promise: then it breaks the strongest one."""
        key = executed_part(test)
        if key not in self._broken:
            self._broken[key] = None
            judged = run(test, self.protocol)
            ended = judged.run.transactions.values()
            if not any(t.aborted or t.outcome.startswith("error") for t in ended) and isinstance(
                judged.verdict(level(STRONGEST)), Forbidden
            ):
                self._broken[key] = judged
        return self._broken[key]
