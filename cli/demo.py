"""``isolitmus demo``: the main job, end to end."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.runs import Judged, compare
from isolitmus.checker.separation import separate
from isolitmus.checker.telling.report import Finding, Replay, report
from isolitmus.checker.telling.words import because, serial_words
from isolitmus.cli.output import print_json, progress, say
from isolitmus.conformance.engines import open_engine
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs import protocol, scope, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from isolitmus.checker.separation import Separation
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

__all__ = ["demo"]


@dataclass(frozen=True, slots=True)
class Question:
    """What the demo asks, and in plain words what the answer is about, whatever it will be."""

    a: str
    b: str
    unexplained: bool
    title: str
    promise: str
    matters: str


QUESTIONS = (
    Question(
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
    Question(
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
UNIVERSE = "table"


def demo(out: Path, *, spark: bool, as_json: bool) -> int:
    """Find, explain, replay, compare, report; exit status 1 if predicted and observed differ."""
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
    found = [_ask(question, quiet=as_json) for question in QUESTIONS]
    with ExitStack() as stack:
        model = stack.enter_context(open_engine("model"))
        engine = None
        if spark:
            with progress("starting Spark with Delta"):
                engine = stack.enter_context(open_engine("delta"))
        findings = [
            Finding(
                answer,
                _replay(answer, model, engine, quiet=as_json),
                question.title,
                question.promise,
                question.matters,
            )
            for question, answer in zip(QUESTIONS, found, strict=True)
        ]
    runs = [r for finding in findings for r in finding.replays]
    differing = sum(bool(r.differences) for r in runs)
    headline = _headline(len(runs), differing, spark=spark)
    path = out / "report.html"
    with _writing(out):
        path.write_text(report(findings, headline), "utf-8")
        for answer in found:
            if answer.litmus is not None:
                (out / f"{answer.litmus.name}.toml").write_text(answer.litmus.text, "utf-8")
    if as_json:
        print_json(
            {
                "separations": [answer.to_json() for answer in found],
                "runs": [_run_json(r) for r in runs],
                "report": str(path),
            }
        )
    else:
        say(headline)
        say(f"Report: {path}")
    return 1 if differing or not all(answer.found for answer in found) else 0


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise IsolitmusError(f"cannot write the report into {out}: {error.strerror}") from None


def _ask(question: Question, *, quiet: bool) -> Separation:
    a, b, unexplained = question.a, question.b, question.unexplained
    with progress(f"separate {a} {b}") as tell:
        answer = separate(
            spec(a),
            spec(b),
            scope(UNIVERSE),
            unexplained=unexplained,
            progress=lambda n, k: tell(f"{n} transactions, {k:,} examined"),
        )
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


def _replay(
    answer: Separation,
    model: Callable[[Litmus, Spec], Run],
    engine: Callable[[Litmus, Spec], Run] | None,
    *,
    quiet: bool,
) -> tuple[Replay, ...]:
    replays: list[Replay] = []
    litmus = answer.litmus
    for name in PROTOCOLS if isinstance(litmus, Litmus) else ():
        assert isinstance(litmus, Litmus)
        predicted = Judged(litmus, model(litmus, protocol(name)))
        observed = None
        if engine is not None:
            with progress(f"replaying {litmus.name} under {name}"):
                observed = Judged(litmus, engine(litmus, protocol(name)))
        replays.append(Replay(predicted, observed, _differences(predicted, observed)))
        if not quiet and observed is not None:
            _say(replays[-1], observed)
    if not quiet and engine is not None:
        say()
    return tuple(replays)


def _differences(predicted: Judged, observed: Judged | None) -> tuple[str, ...]:
    if observed is None:
        return ()
    found = [*compare(predicted.run, observed.run), *observed.differences]
    if predicted.serial != observed.serial:
        found.append(f"serial orders: predicted {predicted.serial}, observed {observed.serial}")
    return tuple(found)


def _say(replay: Replay, observed: Judged) -> None:
    run = observed.run
    outcomes = ", ".join(f"{name} {t.outcome}" for name, t in run.transactions.items())
    verdict = "DIFFERENT from the model" if replay.differences else "as predicted"
    orders = ", ".join(observed.serial.orders) or "none"
    say(f"{run.engine_version}, {run.protocol}: {outcomes}; serial orders: {orders}; {verdict}")
    for difference in replay.differences:
        say(f"  {difference}")


def _headline(runs: int, differing: int, *, spark: bool) -> str:
    if not spark:
        return f"{runs} runs predicted; nothing was replayed (--no-spark)."
    if differing:
        return f"Predicted and observed DIFFER in {differing} of {runs} runs on real Delta."
    return f"Predicted equals observed in every step of {runs} runs on real Delta."


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
