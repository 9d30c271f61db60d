"""Run litmus tests on engines, compare the runs, and print each when it is done."""

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

__all__ = [
    "MODEL",
    "EngineRun",
    "EngineTask",
    "refuse_engines",
    "report_refusals",
    "run_found",
    "run_tasks",
]


END_WORDS = {
    "met": "passed",
    "not met": "FAILED",
    "predicted": "as the model predicts; the file expects nothing",
    "possible": "undecided; several runs are possible",
    "none": "the file expects nothing",
}
"""The end of a run (`ComparedRun.end`, `PossibleRuns.end`) in words."""


class EngineTask(NamedTuple):
    """A litmus test to be carried out, by a name that no other one has; ``wanted`` if it was named
    itself, so that what cannot carry it out refuses it, and does not leave it out.
    """

    name: str
    test: Litmus
    wanted: bool = True


@dataclass(slots=True)
class EngineRun:
    """How it went."""

    documents: list[dict[str, object]] = field(default_factory=list)
    """One for each test, as docs/interface.md, 6, has it."""
    words: dict[tuple[str, str], str] = field(default_factory=dict)
    """Each run in a word, by test and engine."""
    ends: Counter[str] = field(default_factory=Counter)
    """How many runs ended how: ``met``, ``not met``, ``predicted``, ``possible`` or ``none``, see
    ``ComparedRun`` and ``PossibleRuns``."""
    refused: list[Refusal] = field(default_factory=list)
    """What was refused."""
    left_out: list[Refusal] = field(default_factory=list)
    """What was left out."""
    seen: list[tuple[Litmus, Spec, Run]] = field(default_factory=list)
    """What engines did, the model aside."""
    ended: Limit | None = None
    """The limit that ended the work, after which all else is unknown."""

    @property
    def total(self) -> int:
        """How many runs there were."""
        return self.ends.total()

    @property
    def aside(self) -> dict[str, object]:
        """What was not carried out, as docs/interface.md, 6, has it."""
        return {
            "refused": [refusal.to_json() for refusal in self.refused],
            "left_out": [refusal.to_json() for refusal in self.left_out],
        }

    @property
    def failed(self) -> int:
        """How many of them were not as expected, or not as the model predicts."""
        return self.ends["not met"]

    @property
    def status(self) -> int:
        """The exit status: of what was refused, else 1 if a run is not as expected, else of what
        took too long or may end in several ways.
        """
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
        """Say on standard error what was left out and what was refused, by reason."""
        for message in group_refusals(self.left_out):
            warn(f"skipped: {message}")
        for message in group_refusals(self.refused):
            warn(message)
        if self.ended is not None:
            warn(f"{self.ended}; the remaining runs are unknown")


def refuse_engines(carriers: Sequence[str], wanted: Sequence[str] = ()) -> None:
    """UnknownName for an engine that is none, or that has none of the protocols, if some are
    wanted.
    """
    for name in carriers:
        refuse_unable(name)
        if not any(is_implemented(name, under) for under in wanted):
            refuse_unable(name, wanted)


def _unfit(test: Litmus, spec: Spec) -> str:
    """Why no engine is asked: a writer cannot have one of the tables. What else is wrong its run
    says.
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
    """Each test on each engine under each protocol that the engine implements; with ``specs`` None
    under those that the test expects something of. What comes of it goes into ``done`` and, unless
    ``quiet``, is printed, at once; what cannot be carried out is passed over.
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
    """What a search found, under the protocols that it expects something of; printed unless quiet,
    below what was said of it. How it went is also the last of ``done``, of which ``ended`` is the
    end.
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
    """Say what was not carried out of all that was found, by reason; the exit status if something
    was refused, else 0.
    """
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
    """The protocols that a test is carried out under, each with the engines that can."""
    asked = {name: specs or expected_protocols(test, name) for name in carriers}
    for spec in {spec.name: spec for each in asked.values() for spec in each}.values():
        able = [n for n in carriers if spec in asked[n] and is_implemented(n, spec.name)]
        if able:
            yield spec, able


def _column(run: Run) -> str:
    return f"{run.engine} {run.engine_version}, {run.protocol}"


def _print(name: str, compared: ComparedRun | PossibleRuns) -> None:
    run = compared.run
    engine = "the model" if run.engine == MODEL else f"{run.engine} ({run.engine_version})"
    say(f"{name} on {engine} under {run.protocol}: {END_WORDS[compared.end]}")
    for line in compared.lines:
        say(f"  {line}")
    say()
