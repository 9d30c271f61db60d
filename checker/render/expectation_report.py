"""Report on a run of a litmus test: differences from its expectation and from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import abort_violations
from isolitmus.checker.execution.run_diff import RunDiff, compare_runs
from isolitmus.checker.execution.run_result import PossibleRuns, RunResult
from isolitmus.checker.execution.run_result import run as predict
from isolitmus.checker.render.text_pictures import timeline
from isolitmus.checker.render.verdicts import refusal_words, serial_words
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import SeveralRuns
from isolitmus.model.sql.values import show_row
from isolitmus.specs import protocol
from isolitmus.specs.files.spec_catalogue import protocols, related_protocols
from isolitmus.specs.registries import engine_named, format_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """Run compared with the expectation of its file and, if an engine made it, with the model."""

    judged: RunResult
    beside: RunDiff | None
    model: PredictedRuns
    """Model's prediction for the test."""
    at_most: str = ""
    """Reason why commits of the model may be missing in a real run (``at-most``)."""

    @property
    def differences(self) -> tuple[str, ...]:
        """Differences from the expectation or the prediction."""
        return self.judged.differences + (() if self.beside is None else self.beside.differences)

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Points that cannot be compared."""
        apart = ("the model (this release is known to differ from it)",)
        more = (
            (apart if self.judged.apart else ()) if self.beside is None else self.beside.uncompared
        )
        return tuple(dict.fromkeys((*self.judged.uncompared, *more)))

    @property
    def end(self) -> str:
        """Result of the comparison.

        ``met`` or ``not met``; without an expectation, ``predicted`` if the model predicts the run,
        ``none`` if it is the model's own.
        """
        if self.differences:
            return "not met"
        if self.judged.expected == "met":
            return "met"
        return "none" if self.beside is None else "predicted"

    @property
    def run(self) -> Run:
        return self.judged.run

    @property
    def word(self) -> str:
        """Outcome of the run in one word."""
        return self.judged.word

    @property
    def lines(self) -> Iterator[str]:
        """Lines of text: differences of a failed run, timeline, reads, conflicts, tables."""
        judged, run = self.judged, self.judged.run
        yield from self.differences
        yield from timeline(judged.litmus.schedule, run).splitlines()
        for who, transaction in run.transactions.items():
            if transaction.emitted:
                yield f"{who} scanned {' '.join(map(show_row, transaction.emitted))}"
            if transaction.rows is not None:
                yield f"{who} read {' '.join(map(show_row, transaction.rows)) or 'no rows'}"
            why = self.model.why.get(who)
            if why is not None and transaction.outcome in {why.axiom, why.kind}:
                yield from refusal_words(why)
            if transaction.message and self.differences:
                yield f"{who} failed with {transaction.exception}: {transaction.message}"
        if self.at_most and any(t.outcome == "committed" for t in run.transactions.values()):
            yield f"Commits are an upper bound: {self.at_most}"
        for table, rows in run.tables.items():
            yield f"{table} at the end: {' '.join(map(show_row, rows)) or 'no rows'}"
        yield serial_words(judged.serial.orders, judged.serial.unexplained)
        if judged.anomalies:
            yield f"Not serializable: {', '.join(judged.anomalies)}"
        if judged.breaks:
            yield f"Violated postconditions: {', '.join(judged.breaks)}"
        for verdict in ("allowed", "forbidden", "silent", "unknown"):
            levels = [name for name, v in judged.levels.items() if str(v) == verdict]
            if levels:
                yield f"{verdict.capitalize()}: {', '.join(levels)}"
        if self.uncompared:
            yield f"Not compared: {', '.join(self.uncompared)}"

    def to_json(self) -> dict[str, object]:
        """Return the run in the format of docs/interface.md, 6."""
        compared = {"differences": list(self.differences), "uncompared": list(self.uncompared)}
        return {**self.judged.to_json(), **compared, "at_most": self.at_most or None}


class PredictedRuns:
    """Model's prediction for a test under a protocol, for comparison with engines."""

    def __init__(self, test: Litmus, spec: Spec) -> None:
        self._test, self._spec = test, spec
        self._known: tuple[RunResult, Mapping[str, Violation]] | None = None

    def beside(self, answer: Run | IsolitmusError | None) -> ComparedRun | PossibleRuns:
        """Return an engine's run compared with the model's, or with all possible runs.

        Parameters
        ----------
        answer : Run, IsolitmusError or None
            Run of an engine, or its error; None for the model's own run.

        Raises
        ------
        IsolitmusError
            The given error, or the error with which the model rejects the test.
        """
        if isinstance(answer, IsolitmusError):
            raise answer
        try:
            judged = self._predicted if answer is None else RunResult(self._test, answer)
            apart = answer is None or judged.apart
            beside = None if apart else compare_runs(self._predicted.run, judged.run)
        except SeveralRuns as several:
            return PossibleRuns(self._test, several, answer)
        return ComparedRun(judged, beside, self, self._spec.at_most if answer is None else "")

    @property
    def _predicted(self) -> RunResult:
        return self._says[0]

    @property
    def why(self) -> Mapping[str, Violation]:
        """Violations that explain the aborts, by transaction."""
        return self._says[1]

    @property
    def _says(self) -> tuple[RunResult, Mapping[str, Violation]]:
        """Run predicted by the model, and the violations that abort its transactions."""
        if self._known is None:
            judged = predict(self._test, self._spec)
            assert judged.execution is not None
            self._known = judged, abort_violations(judged.execution, self._spec)
        return self._known


def expected_protocols(test: Litmus, engine: str) -> list[Spec]:
    """Return the default protocols of a test on an engine.

    These are the protocols for which the test has an expectation or, if it has none, those of its
    format; and those of an engine of another format. If the engine implements none of them, all
    that it implements.
    """
    known = protocols(format_named(test.format).log)
    names = [name for name in known if name in test.expect] or related_protocols(form=test.format)
    of = engine_named(engine)
    own = (of.protocols or ()) if of.format != test.format else ()
    able = [name for name in dict.fromkeys((*names, *own)) if of.implements(name)]
    return [protocol(name) for name in able or known if of.implements(name)]
