"""``isolitmus demo``: find anomalies of WriteSerializable, replay them, and advise remedies.

Each remedy comes with the result of the same search once the remedy is applied.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

import typer

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.checker.execution.serial_orders import writers
from isolitmus.checker.render.demo_page import DemoAdvice, Demonstration, DemoRun, demo_page
from isolitmus.checker.render.run_panels import conclusion_words, decision_words
from isolitmus.checker.render.search_results import separation_words
from isolitmus.checker.render.verdicts import because, order_arrows, serial_words
from isolitmus.checker.search.separation import separate
from isolitmus.cli.options import Json, Memory, Time, read_budget
from isolitmus.cli.output import (
    check_output_paths,
    made_by_command,
    print_json,
    progress,
    say,
    warn,
)
from isolitmus.conformance.engines import open_engine
from isolitmus.model.display import count_of
from isolitmus.model.errors import EngineUnavailable, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs import protocol, scope, spec
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.scope_file import replace_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.budget import Budget
    from isolitmus.model.run import Run
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

    Carry = Callable[[Litmus, Spec], Run]


@dataclass(frozen=True, slots=True)
class Remedy:
    """Remedy for an anomaly: another protocol, or other statements for some jobs."""

    title: str
    """Short title."""
    how: str
    """Description in one to a few sentences."""
    sql: str
    """Statement that applies it; empty if there is none."""
    under: str = ""
    """Protocol to use instead."""
    jobs: Mapping[str, str | None] = field(default_factory=dict)
    """Replacement statements, by job; None removes the job."""


def _merge(day: str) -> str:
    """Return a MERGE that inserts an order of this day unless its id exists."""
    return (
        f"MERGE INTO orders USING (SELECT {{fresh}} AS id, 25 AS amount, '{day}' AS day) AS new"
        " ON orders.id = new.id WHEN NOT MATCHED THEN INSERT *"
    )


REMEDIES = (
    Remedy(
        "Set the table to Serializable",
        "On Databricks, where WriteSerializable is the default, each table can be set to"
        " Serializable. A table of open-source Delta is Serializable, unless another writer or a"
        " conversion from Parquet made it WriteSerializable: SQL cannot set WriteSerializable"
        " there. The runs of this page set it through Delta’s own transaction API.",
        "ALTER TABLE orders SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
        under="delta-serializable",
    ),
    Remedy(
        "Let jobs that add rows read the table",
        "WriteSerializable ignores blind appends: commits that add rows and read nothing. A MERGE"
        " that inserts missing rows reads the table, so it is not a blind append. When it is run"
        " again, it adds nothing twice.",
        _merge("mon").format(fresh=100),
        jobs={"late_order": _merge("mon"), "order": _merge("tue")},
    ),
    Remedy(
        "Delete only from partitions that receive no more rows",
        "Partition the table so that deletes and appends never share a partition: for example,"
        " write a late order into the day on which it arrives, and delete a day only when it is"
        " over. Then the two do not conflict.",
        "INSERT INTO orders VALUES (100, 25, 'tue')",
        jobs={
            "late_order": "INSERT INTO orders VALUES ({fresh}, 25, 'tue')",
            "order": None,
            "purge": None,
        },
    ),
)
"""Remedies for jobs such as those of the scope ``orders``."""


def advise(answer: Separation, inside: Scope) -> Iterator[DemoAdvice]:
    """Yield each remedy with the search's result under it and the history's new outcome."""
    litmus = answer.litmus
    if not isinstance(litmus, Litmus):
        return
    for remedy in REMEDIES:
        under = remedy.under or answer.a
        again = separate(
            spec(under),
            spec(answer.b),
            replace_jobs(inside, remedy.jobs),
            unexplained=answer.unexplained,
            shipped=False,
        )
        judged = run(follow_remedy(litmus, inside, remedy), protocol(under))
        yield DemoAdvice(
            remedy.title,
            remedy.how,
            remedy.sql,
            again.found is False,
            f"The same search then finds {_found(again)} ({again.bound}).",
            f"With the same schedule the protocol {decision_words(judged)}. {_retried(judged)}",
        )
    apart = replace(litmus, schedule=_one_by_one(litmus.transactions))
    judged = run(apart, protocol(answer.a))
    words, how = conclusion_words(judged)
    yield DemoAdvice(
        "Or run one writing job at a time",
        "Use one writer, or a scheduler that starts each job after the previous one has ended: then"
        " no level can reorder anything.",
        "",
        how == "good",
        f"The jobs of this history, one after another: {words}",
        "",
    )


def follow_remedy(litmus: Litmus, inside: Scope, remedy: Remedy) -> Litmus:
    """Return the history with the statements that a remedy replaces, at the same schedule."""
    changed = replace_jobs(inside, remedy.jobs)
    instead = {changed.jobs[each[0].sql]: each for each in changed.statements}
    transactions = dict(litmus.transactions)
    for name, statement in litmus.transactions.items():
        for each in inside.statements:
            texts = [one.sql for one in each]
            job = inside.jobs[each[0].sql]
            if statement.sql in texts and job in instead:
                transactions[name] = instead[job][texts.index(statement.sql)]
    return replace(litmus, transactions=transactions, expect={})


def _found(answer: Separation) -> str:
    """Return the result of a separation in words."""
    if answer.found is None:
        return "no answer"
    if not answer.found:
        return "no counterexample"
    return f"a counterexample with {count_of(answer.transactions or 0, 'transaction')}"


def _retried(judged: RunResult) -> str:
    """Return what happens if the aborted transactions are retried after the others."""
    seen = judged.run.transactions
    refused = [name for name, t in seen.items() if t.outcome not in TOOK_EFFECT]
    order = [*writers(judged.litmus, judged.run), *refused]
    again = replace(judged.litmus, schedule=_one_by_one(order))
    done = run(again, protocol(judged.run.protocol)) if refused else judged
    words = conclusion_words(done)[0]
    if not refused:
        return words
    who = " and ".join(refused)
    if any(t.outcome not in TOOK_EFFECT for t in done.run.transactions.values()):
        return f"Retry: {who} can abort again."
    return f"Retry: {who} {'commits' if len(refused) == 1 else 'commit'}. {words}"


def _one_by_one(names: Iterable[str]) -> Schedule:
    return Schedule(tuple(Step(name, "both") for name in names))


Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """Question of the demo, with plain words for its subject that fit any answer."""

    a: str
    """Spec that admits the history."""
    b: str
    """Spec that forbids it."""
    unexplained: bool
    """True if no serial order may produce its final table."""
    title: str
    """Description of what happens."""
    promise: str
    """Description of the promise."""
    matters: str
    """Reason why it matters."""


QUESTIONS = (
    DemoQuestion(
        "delta-write-serializable",
        "log-serializable",
        False,
        title="The log and the final table show different orders",
        promise=(
            "Serializable: the table looks as if all statements had run one by one, in the order of"
            " the log. WriteSerializable gives up the order of the log. It can commit a statement"
            " that did not see an earlier commit, provided that some other serial order produces"
            " the table."
        ),
        matters=(
            "Version numbers, time travel and the change feed follow the order of the commits."
            " Running the statements again in that order, for an audit, a backfill or a test, can"
            " produce another table."
        ),
    ),
    DemoQuestion(
        "delta-write-serializable",
        "write-serializable",
        True,
        title="No serial order produces the table",
        promise=(
            "WriteSerializable still promises that the writing statements, run one by one in some"
            " order, produce the table. The checks that Delta makes at each commit do not always"
            " keep this promise."
        ),
        matters=(
            "Every statement succeeded, but no serial order of the statements produces this table."
            " Tests that run one job at a time never see such data, and no rerun reproduces it."
        ),
    ),
)
PROTOCOLS = ("delta-serializable", "delta-write-serializable")
UNIVERSE = "orders"


@check_output_paths(out=True)
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the report to this folder.")
    ] = Path("report"),
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="Predict only; do not start Spark.")
    ] = False,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Everything is also written to a page, report.html.

    Exit status:
      0  both anomalies were found, and each run was as predicted
      1  a run differs from the prediction, or an anomaly was not found
      3  a limit ended the work
      4  Spark with Delta could not replay all runs

    Examples:
      isolitmus demo
      isolitmus demo --no-spark --out report

    """
    within = read_budget(time, memory)
    found = [_ask(question, within, quiet=as_json) for question in QUESTIONS]
    with _Engines(not no_spark, within) as engines:
        findings = [
            Demonstration(
                answer,
                _replay(answer, engines, quiet=as_json),
                question.title,
                question.promise,
                question.matters,
                tuple(advise(answer, scope(UNIVERSE))),
            )
            for question, answer in zip(QUESTIONS, found, strict=True)
        ]
    runs = [r for finding in findings for r in finding.replays]
    differing = sum(bool(r.differences) for r in runs)
    ended = next((answer.ended for answer in found if answer.ended is not None), engines.ended)
    headline = _headline(runs, differing, engines.missing)
    path = out / "report.html"
    write_whole(path, demo_page(findings, headline, made_by_command()))
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
        warn(f"{ended}; the remaining searches and replays are unknown")
        return Limit.status
    return 4 if engines.missing and not no_spark else 0


class _Engines:
    """The model, and real Delta while it is available; ``missing`` says why it is not."""

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
        """Return the result of some work on Delta; None if it is unavailable or a limit ended it.

        The reason is then in ``missing``.
        """
        try:
            with self._within.interrupting(), progress(title):
                return work()
        except (EngineUnavailable, Limit) as error:
            self._delta, self.missing = None, str(error)
            if self._within.spent() is not None:
                self.ended = str(error)
            return None

    def predict(self, litmus: Litmus, spec: Spec) -> RunResult:
        return run(litmus, spec)

    def observe(self, litmus: Litmus, spec: Spec) -> RunResult | None:
        """Return the result on real Delta; None if it is unavailable."""
        if self._delta is None:
            return None
        title = f"replaying {litmus.name} under {spec.name}"
        done = self._or_missing(title, partial(self._delta, litmus, spec))
        return None if done is None else RunResult(litmus, done)


def _ask(question: DemoQuestion, within: Budget, *, quiet: bool) -> Separation:
    """Search for a counterexample, print it unless ``quiet``, and return the separation."""
    a, b, unexplained = question.a, question.b, question.unexplained
    with progress(f"separate {a} {b}") as tell:
        answer = separate(
            spec(a),
            spec(b),
            scope(UNIVERSE),
            unexplained=unexplained,
            budget=within,
            progress=lambda n, k: tell(f"{count_of(n, 'transaction')}, {k:,} examined"),
        )
    answer = replace(answer, litmus=answer.file)  # the demo saves it
    litmus = answer.litmus
    if quiet or not isinstance(litmus, Litmus) or not answer.violation or not answer.serial:
        return answer
    say(f"{separation_words(answer)}:", bold=True)
    for name, statement in litmus.transactions.items():
        say(f"  {name}: {statement.sql}")
    say(f"  schedule: {litmus.schedule}")
    for line in because(answer.violation):
        say(f"  {line}")
    say(f"  {serial_words(answer.serial.orders, answer.serial.unexplained)}")
    say()
    return answer


def _replay(answer: Separation, engines: _Engines, *, quiet: bool) -> tuple[DemoRun, ...]:
    """Run the counterexample under each protocol, on model and engine; compare the runs."""
    replays: list[DemoRun] = []
    litmus = answer.litmus
    for name in PROTOCOLS if isinstance(litmus, Litmus) else ():
        assert isinstance(litmus, Litmus)
        predicted = engines.predict(litmus, protocol(name))
        observed = engines.observe(litmus, protocol(name))
        replays.append(DemoRun(predicted, observed, _differences(predicted, observed)))
        if not quiet and observed is not None:
            _say(replays[-1], observed)
    if not quiet and any(replay.observed for replay in replays):
        say()
    return tuple(replays)


def _differences(predicted: RunResult, observed: RunResult | None) -> tuple[str, ...]:
    if observed is None:
        return ()
    return (*run_differences(predicted.run, observed.run), *observed.differences)


def _say(replay: DemoRun, observed: RunResult) -> None:
    """Print a run on the engine: outcomes, serial orders, and differences from the prediction."""
    run = observed.run
    outcomes = ", ".join(f"{name} {t.ending}" for name, t in run.transactions.items())
    verdict = "DIFFERENT from the prediction" if replay.differences else "as predicted"
    orders = ", ".join(map(order_arrows, observed.serial.orders)) or "none"
    say(f"Observed on {run.engine_version}, {run.protocol}: {verdict}.")
    say(f"  {outcomes}")
    say(f"  serial orders that produce the final table: {orders}")
    for difference in replay.differences:
        say(f"  {difference}")


def _headline(runs: Sequence[DemoRun], differing: int, missing: str) -> str:
    """Return the summary line: runs on real Delta, those that differ, and those only predicted."""
    done = sum(replay.observed is not None for replay in runs)
    if differing:
        headline = f"DIFFERENT from the prediction: {differing} of {done} runs on real Delta"
    elif done:
        headline = f"As predicted: every step of {count_of(done, 'run')} on real Delta"
    else:
        headline = f"Predicted: {count_of(len(runs), 'run')}"
    left = f"{len(runs) - done} more were only predicted" if done else "none was replayed"
    return f"{headline}; {left} ({missing})." if missing else f"{headline}."


def _run_json(replay: DemoRun) -> dict[str, object]:
    """Return a run of the demo as a JSON object: predicted run, observed run, differences."""
    judged = replay.observed or replay.predicted
    return {
        "litmus": judged.litmus.name,
        "runs": [
            replay.predicted.to_json(),
            *([] if replay.observed is None else [replay.observed.to_json()]),
        ],
        "differences": list(replay.differences),
    }
