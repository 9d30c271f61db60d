"""``isolitmus robust``: whether one's own jobs are safe, however often they run and with whatever parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.render.robustness import (
    assumption_lines,
    need_lines,
    repair_lines,
    robust_head,
    robust_lines,
    robust_row,
)
from isolitmus.checker.workloads.robustness import PROMISES, decide_all
from isolitmus.cli.options import CERTIFICATE, Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import (
    check_output_paths,
    print_json,
    progress,
    say,
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.workloads.repairs import Repair
    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

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
        typer.Option(metavar="P[,P...]", help="Promises, with commas: write-serializable, …"),
    ] = None,
    repairs: Annotated[
        bool, typer.Option("--repairs", help="What would make it safe, each proved.")
    ] = False,
    certificate: Annotated[Path | None, CERTIFICATE] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the counterexamples here, as litmus files."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page of it here.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="E[,E...]", help="Carry these out on engines: delta, …"),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Exit status 1 if a promise is not kept at some level that was asked about, 3 if that is unknown, else 0;
    that of run if a counterexample could not be carried out.
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
            known = ", ".join(PROMISES)
            raise IsolitmusError(f"--promise is '{name}'{near(name, PROMISES)}; known: {known}")
    carriers = [] if engine is None else split_names("engine", engine)
    if carriers:
        from isolitmus.cli.engine_runs import refuse_engines

        refuse_engines(carriers, [under.name for under in unders])
    promises = list(dict.fromkeys(wanted))
    with progress(f"robust {workload.name}") as tell:
        found = decide_all(workload, unders, promises, tell=tell, budget=within)
        answers = list(found if as_json else _said(found, promises, unders))
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


def _said(
    answers: Iterable[Robustness], promises: Sequence[str], unders: Sequence[Spec]
) -> Iterator[Robustness]:
    """The answers, and when those of a promise are known, its row of the table is printed."""
    row: list[Robustness] = []
    for k, answer in enumerate(answers):
        yield answer
        if not k:
            say(f"{answer.workload.title}: any number of runs, any parameters, any rows")
            say()
            say(robust_head(promises, [under.name for under in unders]))
        row.append(answer)
        if len(row) == len(unders):
            say(robust_row(answer.promise, promises, row))
            row.clear()


def _repairs(
    answers: Iterable[Robustness], budget: Budget
) -> tuple[dict[tuple[str, str], list[Repair]], str | None]:
    """What would make them safe, by promise and protocol, and the limit that ended that, if one did."""
    from isolitmus.checker.workloads.repairs import find_repairs

    ways: dict[tuple[str, str], list[Repair]] = {}
    try:
        for answer in answers:
            if answer.word == "unsafe":
                with budget.interrupting():
                    made = list(find_repairs(answer, protocol(answer.protocol)))
                ways[answer.promise, answer.protocol] = made
    except Limit as limit:
        return ways, f"{limit}; what would make the other promises safe is unknown"
    return ways, None


def _say_rest(answers: Sequence[Robustness], ways: Mapping[tuple[str, str], list[Repair]]) -> None:
    """What stands below the table."""
    say()
    for line in need_lines(answers):
        say(line)
    for k, answer in enumerate(answers):
        say()
        for line in robust_lines(answer, answers[:k]):
            say(line)
        key = answer.promise, answer.protocol
        for line in repair_lines(answer, ways[key]) if key in ways else ():
            say(f"  {line}")
    say()
    for line in assumption_lines(answers):
        say(line)


def _save(answers: list[Robustness], folder: Path) -> None:
    """A litmus file for each counterexample."""
    folder.mkdir(parents=True, exist_ok=True)
    for answer in answers:
        for k, one in enumerate(answer.counterexamples, 1):
            write_whole(folder / f"{answer.promise}-{answer.protocol}-{k}.toml", str(one.test))


def _replay(answers: list[Robustness], carriers: list[str], *, quiet: bool) -> int:
    """Carry the counterexamples out; the exit status if one is not as predicted, or was refused."""
    from isolitmus.cli.engine_runs import EngineRun, report_refusals, run_found

    done: list[EngineRun] = []
    tests = [one.test for answer in answers for one in answer.counterexamples]
    carried = run_found(tests, carriers, done, quiet=quiet)
    return report_refusals(done) or carried.status
