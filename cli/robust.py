"""``isolitmus robust``: whether jobs keep a promise at a level.

The answer is for any number of runs and all parameter values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.render.prediction import unread_lines
from isolitmus.checker.render.robustness import (
    answer_line,
    evidence_lines,
    legend_lines,
    need_lines,
    table_lines,
)
from isolitmus.checker.workloads.robustness import PROMISES, decide_all
from isolitmus.cli.options import CERTIFICATE, Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import (
    check_output_paths,
    print_json,
    progress,
    say,
    say_assumptions,
    warn,
    write_certificates,
)
from isolitmus.cli.workload_options import (
    Ddl,
    Jobs,
    Level,
    TableFolder,
    choose_protocol,
    choose_workload,
)
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.specs import protocol
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.workloads.repairs import Repair
    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.budget import Budget

__all__ = ["robust"]


@check_output_paths(save=True, html=False, certificate=True)
def robust(
    jobs: Jobs,
    *,
    ddl: Ddl = None,
    table: TableFolder = None,
    level: Level = None,
    promise: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]",
            help="Promises, separated by commas; default: write-, update- and log-serializable.",
        ),
    ] = None,
    repairs: Annotated[
        bool, typer.Option("--repairs", help="Also find repairs; each is proved.")
    ] = False,
    certificate: Annotated[Path | None, CERTIFICATE] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the counterexamples to this folder as litmus files."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as an HTML page.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="E[,E...]", help="Run the counterexamples on these engines: delta, …"),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Decide whether jobs keep a promise at an isolation level, for any number of runs.

    "safe" is a proof for all parameter values and all rows; "unsafe" comes with the smallest
    counterexample found.

    Exit status:
      0  all promises hold at all levels asked
      1  a promise is violated at some level asked
      3  otherwise, if an answer is unknown
      With --engine, that of run if a counterexample is refused or ends differently.

    Examples:
      isolitmus robust shop
      isolitmus robust shop --level WriteSerializable --repairs
      isolitmus robust --ddl events.sql dedupe.sql append.sql --promise write-serializable

    """
    within = read_budget(time, memory)
    workload = choose_workload(jobs, ddl, table)
    unders = (
        [protocol(name) for name in format_named(DELTA).protocols]
        if level is None
        else [choose_protocol(workload, level)]
    )
    wanted = PROMISES if promise is None else split_names("promise", promise)
    for name in wanted:
        if name not in PROMISES:
            raise IsolitmusError(f"unknown --promise '{name}'{near(name, PROMISES)}")
    carriers = [] if engine is None else split_names("engine", engine)
    if carriers:
        from isolitmus.cli.engine_runs import refuse_engines

        refuse_engines(carriers, [under.name for under in unders])
    promises = list(dict.fromkeys(wanted))
    with progress(f"robust {workload.name}") as tell:
        answers = list(decide_all(workload, unders, promises, tell=tell, budget=within))
        if not as_json:
            _say_answer(answers)
        ways, ended = _repairs(answers if repairs else (), within)
    if as_json:
        documents = []
        for answer in answers:
            made = ways.get((answer.promise, answer.protocol), [])
            more = {"repairs": [one.to_json() for one in made]} if repairs else {}
            documents.append({**answer.to_json(), **more})
        print_json(documents)
    else:
        _say_rest(answers, ways)
    if ended is not None:
        warn(ended)
    if certificate is not None:
        write_certificates([a.certificate for a in answers if a.word == "safe"], certificate)
    if save is not None:
        _save(answers, save)
    if html is not None:
        from isolitmus.checker.render.robustness import robust_page
        from isolitmus.cli.output import made_by_command as by

        write_whole(html, robust_page(answers, ways, by()))
    if carriers and (status := _replay(answers, carriers, quiet=as_json)):
        return status
    words = {answer.word for answer in answers}
    return 1 if "unsafe" in words else 3 if "unknown" in words or ended else 0


def _say_answer(answers: Sequence[Robustness]) -> None:
    """Print what may overlap, the answer and the table of verdicts."""
    if schedule := answers[0].workload.schedule:
        say(f"Assumed: {schedule}")
    say(answer_line(answers))
    say()
    say("Promises kept by any number of runs. Row: promise. Column: isolation level.")
    for line in table_lines(answers):
        say(line)
    say()
    for line in legend_lines(answers):
        say(f"  {line}")
    say()
    for line in need_lines(answers):
        say(line)


def _repairs(
    answers: Iterable[Robustness], budget: Budget
) -> tuple[dict[tuple[str, str], list[Repair]], str | None]:
    """Return repairs by promise and protocol, and the limit that ended the search, if any."""
    from isolitmus.checker.workloads.repairs import find_repairs

    ways: dict[tuple[str, str], list[Repair]] = {}
    try:
        for answer in answers:
            if answer.word == "unsafe":
                with budget.interrupting():
                    made = list(find_repairs(answer, protocol(answer.protocol)))
                ways[answer.promise, answer.protocol] = made
    except Limit as limit:
        return ways, f"{limit}; repairs of the other promises are unknown"
    return ways, None


def _say_rest(answers: Sequence[Robustness], ways: Mapping[tuple[str, str], list[Repair]]) -> None:
    """Print proofs, counterexamples, repairs and assumptions."""
    for line in evidence_lines(answers, ways):
        say(line)
    say()
    first = answers[0].workload.schedule
    every = dict.fromkeys(one for answer in answers for one in answer.assumptions)
    say_assumptions([one for one in every if one != first])
    for line in unread_lines(answers[0].workload):
        say(line)


def _save(answers: list[Robustness], folder: Path) -> None:
    """Write a litmus file for each counterexample."""
    folder.mkdir(parents=True, exist_ok=True)
    for answer in answers:
        for k, one in enumerate(answer.counterexamples, 1):
            write_whole(folder / f"{answer.promise}-{answer.protocol}-{k}.toml", str(one.test))


def _replay(answers: list[Robustness], carriers: list[str], *, quiet: bool) -> int:
    """Run the counterexamples; return the exit status if one ends differently or is refused."""
    from isolitmus.cli.engine_runs import EngineRun, report_refusals, run_found

    done: list[EngineRun] = []
    tests = [one.test for answer in answers for one in answer.counterexamples]
    carried = run_found(tests, carriers, done, quiet=quiet)
    return report_refusals(done) or carried.status
