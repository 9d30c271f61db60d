"""``isolitmus demo``: the main job, end to end."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

import typer

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import Judged, run
from isolitmus.checker.render.demo_page import Demonstration, Replay, demo_page
from isolitmus.checker.render.verdicts import because, serial_words
from isolitmus.checker.search.separation import separate
from isolitmus.cli.made import made
from isolitmus.cli.options import Json, Memory, Time, budget
from isolitmus.cli.output import print_json, progress, say, warn, writes
from isolitmus.cli.remedies import advice
from isolitmus.conformance.engines import open_engine
from isolitmus.model.errors import EngineUnavailable, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.model.number import many
from isolitmus.specs import protocol, scope, spec
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.budget import Budget
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

    Carry = Callable[[Litmus, Spec], Run]

__all__ = ["demo"]

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """What the demo asks, and in plain words what the answer is about, whatever it will be."""

    a: str
    """The spec that admits the history."""
    b: str
    """The spec that forbids it."""
    unexplained: bool
    """No serial order gives its table."""
    title: str
    """What happens."""
    promise: str
    """What was promised."""
    matters: str
    """Why it matters."""


QUESTIONS = (
    DemoQuestion(
        "delta-write-serializable",
        "log-serializable",
        False,
        title="Committed in one order, true only in another",
        promise="Serializable: the table looks as if all statements had run one by one, in the order"
        " that the table’s history shows. WriteSerializable gives up that last part. It may commit a"
        " statement although another one, committed before it, wrote what it should have read; there"
        " only has to be some other order that gives the table.",
        matters="Version numbers, time travel and the change feed follow the order of the commits."
        " Whoever runs the statements again in that order, for an audit, a backfill or a test, may"
        " get a table that is not the one that is there.",
    ),
    DemoQuestion(
        "delta-write-serializable",
        "write-serializable",
        True,
        title="Committed, although no order gives the table",
        promise="WriteSerializable still promises this much: the statements that write, run one by"
        " one in some order, give the table that is there. The checks that Delta makes at each"
        " commit do not always keep that promise.",
        matters="Every statement succeeded, and yet the table is one that these statements cannot"
        " produce one at a time, in whatever order. Whoever tests the jobs one at a time never sees"
        " such data, and no rerun brings it back.",
    ),
)
PROTOCOLS = ("delta-serializable", "delta-write-serializable")
UNIVERSE = "orders"


@writes(out=True)
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the report.")] = Path(
        "report"
    ),
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Predict only.")] = False,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Exit status 1 if predicted and observed differ, or nothing is found; else 4 if not all was replayed that should have
    been, 3 if that is so because a limit ended the work; else 0.
    """
    within = budget(time, memory)
    found = [_ask(question, within, quiet=as_json) for question in QUESTIONS]
    with _Engines(not no_spark, within) as engines:
        findings = [
            Demonstration(
                answer,
                _replay(answer, engines, quiet=as_json),
                question.title,
                question.promise,
                question.matters,
                tuple(advice(answer, scope(UNIVERSE))),
            )
            for question, answer in zip(QUESTIONS, found, strict=True)
        ]
    runs = [r for finding in findings for r in finding.replays]
    differing = sum(bool(r.differences) for r in runs)
    ended = next((answer.ended for answer in found if answer.ended is not None), engines.ended)
    headline = _headline(runs, differing, engines.missing)
    path = out / "report.html"
    write_whole(path, demo_page(findings, headline, made()))
    for answer in found:
        if answer.litmus is not None:
            write_whole(out / f"{answer.litmus.name}.toml", answer.litmus.text)
    if as_json:
        print_json(
            {
                "separations": [answer.to_json() for answer in found],
                "runs": [_run_json(r) for r in runs],
                "report": str(path),
                "missing": engines.missing,
                "ended": ended,
            }
        )
    else:
        say(headline)
        say(f"Report: {path}")
    if differing or any(answer.found is False for answer in found):
        return 1
    if ended is not None:
        warn(f"{ended}; what was not found or replayed until then is unknown")
        return Limit.status
    return 4 if engines.missing and not no_spark else 0


class _Engines:
    """The model, and real Delta for as long as it can be had: ``missing`` says why it cannot, or no more."""

    def __init__(self, spark: bool, within: Budget) -> None:
        self.missing = "" if spark else "--no-spark"
        self.ended: str | None = None
        self._within = within
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._delta: Carry | None = None
        if not self.missing:
            self._delta = self._or_missing("starting Spark with Delta", self._opened)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _opened(self) -> Carry:
        return self._stack.enter_context(open_engine("delta"))

    def _or_missing(self, title: str, work: Callable[[], Done]) -> Done | None:
        """What comes of some work of the engine; None, and why, where that cannot be had or a limit ended it."""
        try:
            with self._within.interrupting(), progress(title):
                return work()
        except (EngineUnavailable, Limit) as error:
            self._delta, self.missing = None, str(error)
            if self._within.spent() is not None:
                self.ended = str(error)
            return None

    def predict(self, litmus: Litmus, spec: Spec) -> Judged:
        return run(litmus, spec)

    def observe(self, litmus: Litmus, spec: Spec) -> Judged | None:
        """What real Delta does; None where it cannot be had."""
        if self._delta is None:
            return None
        title = f"replaying {litmus.name} under {spec.name}"
        done = self._or_missing(title, partial(self._delta, litmus, spec))
        return None if done is None else Judged(litmus, done)


def _ask(question: DemoQuestion, within: Budget, *, quiet: bool) -> Separation:
    a, b, unexplained = question.a, question.b, question.unexplained
    with progress(f"separate {a} {b}") as tell:
        answer = separate(
            spec(a),
            spec(b),
            scope(UNIVERSE),
            unexplained=unexplained,
            budget=within,
            progress=lambda n, k: tell(f"{many(n, 'transaction')}, {k:,} examined"),
        )
    answer = replace(answer, litmus=answer.file)  # it is saved
    litmus = answer.litmus
    if quiet or not isinstance(litmus, Litmus) or not answer.violation or not answer.serial:
        return answer
    extra = " and no serial order explains" if unexplained else ""
    say(f"What {a} admits and {b} forbids{extra}: {answer.transactions} transactions")
    for name, statement in litmus.transactions.items():
        say(f"  {name}: {statement.sql}")
    say(f"  schedule: {litmus.schedule}")
    for line in because(answer.violation):
        say(f"  {line}")
    say(f"  {serial_words(answer.serial.orders, answer.serial.unexplained)}")
    say()
    return answer


def _replay(answer: Separation, engines: _Engines, *, quiet: bool) -> tuple[Replay, ...]:
    replays: list[Replay] = []
    litmus = answer.litmus
    for name in PROTOCOLS if isinstance(litmus, Litmus) else ():
        assert isinstance(litmus, Litmus)
        predicted = engines.predict(litmus, protocol(name))
        observed = engines.observe(litmus, protocol(name))
        replays.append(Replay(predicted, observed, _differences(predicted, observed)))
        if not quiet and observed is not None:
            _say(replays[-1], observed)
    if not quiet and any(replay.observed for replay in replays):
        say()
    return tuple(replays)


def _differences(predicted: Judged, observed: Judged | None) -> tuple[str, ...]:
    if observed is None:
        return ()
    return (*run_differences(predicted.run, observed.run), *observed.differences)


def _say(replay: Replay, observed: Judged) -> None:
    run = observed.run
    outcomes = ", ".join(f"{name} {t.outcome}" for name, t in run.transactions.items())
    verdict = "DIFFERENT from the model" if replay.differences else "as predicted"
    orders = ", ".join(observed.serial.orders) or "none"
    say(f"{run.engine_version}, {run.protocol}: {outcomes}; serial orders: {orders}; {verdict}")
    for difference in replay.differences:
        say(f"  {difference}")


def _headline(runs: Sequence[Replay], differing: int, missing: str) -> str:
    done = sum(replay.observed is not None for replay in runs)
    if differing:
        headline = f"Predicted and observed DIFFER in {differing} of {done} runs on real Delta"
    elif done:
        headline = f"Predicted equals observed in every step of {many(done, 'run')} on real Delta"
    else:
        headline = f"{len(runs)} runs predicted"
    left = f"{len(runs) - done} more were predicted" if done else "nothing was replayed"
    return f"{headline}; {left}: {missing}." if missing else f"{headline}."


def _run_json(replay: Replay) -> dict[str, object]:
    judged = replay.observed or replay.predicted
    return {
        "litmus": judged.litmus.name,
        "runs": [
            replay.predicted.to_json(),
            *([] if replay.observed is None else [replay.observed.to_json()]),
        ],
        "differences": list(replay.differences),
    }
