"""Execution of litmus tests on engines; each run is compared and printed when it is done."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.checker.execution.commit_loop import unfit_table
from isolitmus.checker.render.expectation_report import PredictedRuns, expected_protocols
from isolitmus.cli.output import Refusal, group_refusals, progress, say, warn, worst_status
from isolitmus.conformance.engines import is_implemented, refuse_unable, run_cases
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, Refused, UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.execution.run_result import PossibleRuns
    from isolitmus.checker.render.expectation_report import ComparedRun
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

END_WORDS = {
    "met": "passed",
    "not met": "FAILED",
    "predicted": "as the model predicts; no expectation",
    "possible": "undecided; several runs are possible",
    "none": "no expectation",
}
"""Words for the end of a run (`ComparedRun.end`, `PossibleRuns.end`)."""


class EngineTask(NamedTuple):
    """Litmus test to run, with a unique name.

    ``wanted`` is True if the user named it. Engines that cannot run it then refuse it; otherwise it
    is left out.
    """

    name: str
    test: Litmus
    wanted: bool = True


@dataclass(slots=True)
class EngineRun:
    """Results of running litmus tests on engines."""

    documents: list[dict[str, object]] = field(default_factory=list)
    """JSON document of each test, as docs/interface.md, section 6, describes."""
    words: dict[tuple[str, str], str] = field(default_factory=dict)
    """Result of each run in a word, by test and engine."""
    ends: Counter[str] = field(default_factory=Counter)
    """Number of runs with each end: ``met``, ``not met``, ``predicted``, ``possible`` or ``none``.

    See ``ComparedRun`` and ``PossibleRuns``.
    """
    refused: list[Refusal] = field(default_factory=list)
    """Refused tests."""
    left_out: list[Refusal] = field(default_factory=list)
    """Tests that were left out."""
    seen: list[tuple[Litmus, Spec, Run]] = field(default_factory=list)
    """Runs on engines other than the model."""
    ended: Limit | None = None
    """Limit that ended the work; everything after it is unknown."""

    @property
    def total(self) -> int:
        """Number of runs."""
        return self.ends.total()

    @property
    def aside(self) -> dict[str, object]:
        """Tests that were not run, in the form that docs/interface.md, section 6, describes."""
        return {
            "refused": [refusal.to_json() for refusal in self.refused],
            "left_out": [refusal.to_json() for refusal in self.left_out],
        }

    @property
    def failed(self) -> int:
        """Number of runs that differ from the expectation or the model's prediction."""
        return self.ends["not met"]

    @property
    def status(self) -> int:
        """Exit status of a refusal, else 1 for a failed run, else 3 if undecided or limited."""
        found = {refusal.error.status for refusal in self.refused} | {1} & {self.failed and 1}
        found |= {3} if self.ends["possible"] or self.ended is not None else set()
        return worst_status(found)

    def __str__(self) -> str:
        met, judged = self.ends["met"], self.ends["met"] + self.failed
        predicted, none = self.ends["predicted"], self.ends["none"]
        parts = [f"{met:,} of {count_of(judged, 'run')} passed."] if judged else []
        if predicted:
            parts.append(f"{predicted:,} as the model predicts, without an expectation.")
        if self.ends["possible"]:
            parts.append(f"{self.ends['possible']:,} undecided: several runs are possible.")
        if none:
            parts.append(f"{none:,} without an expectation.")
        for many, words in ((self.left_out, "skipped"), (self.refused, "not run")):
            if many:
                parts.append(f"{len({(each.name, each.engine) for each in many})} {words}.")
        return " ".join(parts)

    def tell(self) -> None:
        """Print on standard error what was left out and refused, grouped by reason."""
        for message in group_refusals(self.left_out):
            warn(f"skipped: {message}")
        for message in group_refusals(self.refused):
            warn(message)
        if self.ended is not None:
            warn(f"{self.ended}; the remaining runs are unknown")


def refuse_engines(carriers: Sequence[str], wanted: Sequence[str] = ()) -> None:
    """Raise UnknownName for an unknown engine, or one without any of the wanted protocols."""
    for name in carriers:
        refuse_unable(name)
        if not any(is_implemented(name, under) for under in wanted):
            refuse_unable(name, wanted)


def _unfit(test: Litmus, spec: Spec) -> str:
    """Return why no engine can run a test: a writer does not support a table; else "".

    Other errors are left to the run itself.
    """
    try:
        return unfit_table(test, spec)
    except IsolitmusError:
        return ""


def run_tasks(
    tasks: Sequence[EngineTask],
    carriers: Sequence[str],
    specs: Sequence[Spec] | None,
    done: EngineRun,
    *,
    quiet: bool,
    at_once: int | None = None,
) -> None:
    """Run each test on each engine under each protocol that the engine implements.

    Parameters
    ----------
    tasks : sequence of EngineTask
        Litmus tests.
    carriers : sequence of str
        Names of engines.
    specs : sequence of Spec or None
        Protocols; None for those with an expectation in the test.
    done : EngineRun
        Receives the results. Tests that cannot be run are recorded there.
    quiet : bool
        Whether results are not printed as soon as they are there.
    at_once : int, optional
        Number of tests that run at the same time; the engines have a default.
    """
    cases = {task.name: list(_cases(task.test, carriers, specs)) for task in tasks}
    with ExitStack() as stack:
        answers = {
            name: stack.enter_context(
                closing(
                    run_cases(
                        name,
                        [
                            (task.test, spec)
                            for task in tasks
                            for spec, able in cases[task.name]
                            if name in able and not _unfit(task.test, spec)
                        ],
                        at_once,
                    )
                )
            )
            for name in carriers
            if name != MODEL
        }
        for task in tasks:
            runs: list[dict[str, object]] = []
            done.documents.append({"litmus": task.name, "runs": runs})
            before = len(done.refused) + len(done.left_out)
            for spec, able in cases[task.name]:
                model, why = PredictedRuns(task.test, spec), _unfit(task.test, spec)
                for name in able:
                    with progress(f"{task.name} under {spec.name} on {name}"):
                        answer = None if name == MODEL or why else next(answers[name])
                    try:
                        if why:
                            raise UndeterminedError(f"{task.name}: {why}")
                        compared = model.beside(answer)
                        runs.append(compared.to_json())
                        if name != MODEL:
                            done.seen.append((task.test, spec, compared.run))
                        done.ends[compared.end] += 1
                        done.words[task.name, _column(compared.run)] = compared.word
                        if not quiet:
                            _print(task.name, compared)
                    except IsolitmusError as error:
                        refusal_ = Refusal(task.name, error, name, spec.name)
                        optional = isinstance(error, Refused) and not task.wanted
                        (done.left_out if optional else done.refused).append(refusal_)
            if not runs and len(done.refused) + len(done.left_out) > before:
                done.documents.pop()


def run_found(
    tests: Sequence[Litmus], carriers: Sequence[str], done: list[EngineRun], *, quiet: bool
) -> EngineRun:
    """Run tests that a search found, under the protocols with an expectation.

    The results are printed unless ``quiet``. They are returned and also appended to ``done``,
    before the runs, so that a limit leaves the results so far there.
    """
    if not quiet:
        say()
    done.append(here := EngineRun())
    tasks = [EngineTask(test.name, test, wanted=len(tests) == 1) for test in tests]
    run_tasks(tasks, carriers, None, here, quiet=quiet)
    if not quiet and here.total:
        say(str(here))
    return here


def report_refusals(done: Sequence[EngineRun]) -> int:
    """Print the refusals of these results by reason; return the exit status, 0 without any."""
    whole = EngineRun(
        ends=sum((each.ends for each in done), Counter()),
        refused=[refusal for each in done for refusal in each.refused],
        left_out=[refusal for each in done for refusal in each.left_out],
    )
    whole.tell()
    return whole.status if whole.refused else 0


def _cases(
    test: Litmus, carriers: Sequence[str], specs: Sequence[Spec] | None
) -> Iterator[tuple[Spec, list[str]]]:
    """Yield the protocols under which a test runs, each with the engines that implement it."""
    asked = {name: specs or expected_protocols(test, name) for name in carriers}
    for spec in {spec.name: spec for each in asked.values() for spec in each}.values():
        able = [n for n in carriers if spec in asked[n] and is_implemented(n, spec.name)]
        if able:
            yield spec, able


def _column(run: Run) -> str:
    return f"{run.engine} {run.engine_version}, {run.protocol}"


def _print(name: str, compared: ComparedRun | PossibleRuns) -> None:
    """Print a run of a litmus test with the lines of its comparison."""
    run = compared.run
    engine = "the model" if run.engine == MODEL else f"{run.engine} ({run.engine_version})"
    say(f"{name} on {engine} under {run.protocol}: {END_WORDS[compared.end]}")
    for line in compared.lines:
        say(f"  {line}")
    say()
