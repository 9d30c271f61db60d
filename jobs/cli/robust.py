"""``isolitmus robust``: whether jobs keep a promise at a level.

The answer is for any number of runs and all parameter values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from isolitmus.jobs.cli.workload_options import (
    UNKNOWN,
    Ddl,
    Functions,
    Jobs,
    Level,
    TableFolder,
    choose_workload,
)
from isolitmus.jobs.invariants.invariants import (
    InvariantAnswer,
    chosen_invariants,
    decide_invariants,
)
from isolitmus.jobs.readers.workload_sources import choose_protocol
from isolitmus.jobs.render.invariants import invariant_lines, invariants_line
from isolitmus.jobs.render.prediction import unread_lines
from isolitmus.jobs.render.robustness import (
    answer_line,
    evidence_lines,
    legend_lines,
    need_lines,
    table_lines,
)
from isolitmus.jobs.robust.robustness import PROMISES, decide_all
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.specs import protocol
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.robust.repairs import Repair
    from isolitmus.jobs.robust.robustness import Robustness
    from isolitmus.model.budget import Budget
    from isolitmus.model.litmus import Litmus


@check_output_paths(save=True, html=False, certificate=True)
def robust(
    jobs: Jobs = None,
    *,
    run: Functions = None,
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
    keeps: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INVARIANT",
            help=(
                "An invariant: unique(id), not null(day), check(amount >= 0), count per worker <="
                " 3, customer references customers(id), sum(amount) unchanged, or a query that"
                " returns no rows. May be repeated."
            ),
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
    """Decide whether jobs keep a promise, or an invariant, at an isolation level.

    The answer is for any number of runs. "safe" and "kept" are proofs for all parameter values and
    all rows; "unsafe" and "broken" come with the smallest counterexample found.

    Exit status:
      0  all promises and invariants hold at all levels asked
      1  one is violated at some level asked
      3  otherwise, if an answer is unknown
      With --engine, that of run if a counterexample is refused or ends differently.

    Examples:
      isolitmus robust shop
      isolitmus robust shop --keeps "not null(day)" --keeps "unique(id, day)"
      isolitmus robust shop --level WriteSerializable --repairs
      isolitmus robust --run jobs.py:dedupe --run jobs.py:load --ddl events.sql
      isolitmus robust --ddl events.sql dedupe.sql append.sql --promise write-serializable

    """
    within = read_budget(time, memory)
    chosen = choose_workload(jobs, ddl, table, run, within)
    workload = chosen.workload
    unders = (
        [protocol(name) for name in format_named(workload.format).protocols]
        if level is None
        else [choose_protocol(workload, level, UNKNOWN)]
    )
    wanted = PROMISES if promise is None else split_names("promise", promise)
    for name in wanted:
        if name not in PROMISES:
            raise IsolitmusError(f"unknown --promise '{name}'{near(name, PROMISES)}")
    carriers = [] if engine is None else split_names("engine", engine)
    if carriers:
        from isolitmus.cli.engine_runs import refuse_engines

        refuse_engines(carriers, [under.name for under in unders])
    promises = list(dict.fromkeys(wanted)) if promise or not keeps else []
    invariants = chosen_invariants(workload, keeps or (), "--keeps")
    for line in () if as_json else chosen.lines():
        say(line)
    with progress(f"robust {workload.name}") as tell:
        answers = list(decide_all(workload, unders, promises, tell=tell, budget=within))
        if answers and not as_json:
            _say_answer(answers)
        kept = list(decide_invariants(workload, unders, invariants, tell=tell, budget=within))
        every: list[Robustness | InvariantAnswer] = [*answers, *kept]
        ways, ended = _repairs(every if repairs else (), invariants, within)
    if as_json:
        print_json([{**one.to_json(), **_made(ways, one, shown=repairs)} for one in every])
    else:
        _say_rest(answers, kept, ways)
    if ended is not None:
        warn(ended)
    if certificate is not None:
        proved = [one.certificate for one in every if one.word in ("safe", "kept")]
        write_certificates(proved, certificate)
    if save is not None:
        _save(every, save)
    if html is not None:
        write_whole(html, _page(answers, kept, ways))
    if carriers and (status := _replay(every, carriers, quiet=as_json)):
        return status
    words = {one.word for one in every}
    if words & {"unsafe", "broken"}:
        return 1
    return 3 if "unknown" in words or ended else 0


def _key(one: Robustness | InvariantAnswer) -> tuple[str, str]:
    """Return the promise or invariant, and the protocol."""
    name = one.invariant.name if isinstance(one, InvariantAnswer) else one.promise
    return name, one.protocol


def _made(
    ways: Mapping[tuple[str, str], Sequence[Repair]],
    one: Robustness | InvariantAnswer,
    *,
    shown: bool,
) -> dict[str, object]:
    """Return the repairs of an answer for its JSON document."""
    return {"repairs": [each.to_json() for each in ways.get(_key(one), ())]} if shown else {}


def _page(
    answers: Sequence[Robustness],
    kept: Sequence[InvariantAnswer],
    ways: Mapping[tuple[str, str], Sequence[Repair]],
) -> str:
    """Return the HTML page of promises, of invariants, or of both."""
    from isolitmus.cli.output import made_by_command
    from isolitmus.jobs.render.invariants import invariants_page, invariants_shown
    from isolitmus.jobs.render.robustness import robust_page

    if not answers:
        return invariants_page(kept, ways, made_by_command())
    shown = invariants_shown(kept, ways) if kept else None
    return robust_page(answers, ways, made_by_command(), shown)


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
    answers: Iterable[Robustness | InvariantAnswer],
    invariants: Sequence[Invariant],
    budget: Budget,
) -> tuple[dict[tuple[str, str], list[Repair]], str | None]:
    """Return repairs by promise or invariant and protocol, and the limit that ended the search."""
    from isolitmus.jobs.invariants.invariant_repairs import find_invariant_repairs
    from isolitmus.jobs.robust.repairs import find_repairs

    ways: dict[tuple[str, str], list[Repair]] = {}
    try:
        for answer in answers:
            if answer.word in ("unsafe", "broken"):
                with budget.interrupting():
                    ways[_key(answer)] = list(
                        find_invariant_repairs(answer, invariants)
                        if isinstance(answer, InvariantAnswer)
                        else find_repairs(answer, protocol(answer.protocol))
                    )
    except Limit as limit:
        return ways, f"{limit}; the other repairs are unknown"
    return ways, None


def _say_rest(
    answers: Sequence[Robustness],
    kept: Sequence[InvariantAnswer],
    ways: Mapping[tuple[str, str], Sequence[Repair]],
) -> None:
    """Print proofs, counterexamples, repairs, invariants and assumptions."""
    for line in evidence_lines(answers, ways):
        say(line)
    if kept:
        if answers:
            say()
        elif schedule := kept[0].workload.schedule:
            say(f"Assumed: {schedule}")
        say(invariants_line(kept))
        say()
        for line in invariant_lines(kept, ways):
            say(line)
    say()
    every: tuple[Robustness | InvariantAnswer, ...] = (*answers, *kept)
    work = every[0].workload
    assumed = dict.fromkeys(one for answer in every for one in answer.assumptions)
    say_assumptions([one for one in assumed if one != work.schedule])
    for line in unread_lines(work):
        say(line)


def _tests(answers: Iterable[Robustness | InvariantAnswer]) -> Iterator[tuple[str, Litmus]]:
    """Yield the counterexamples, each with the name of its file."""
    for answer in answers:
        if isinstance(answer, InvariantAnswer):
            for k, violation in enumerate(answer.violations, 1):
                yield f"{answer.invariant.file_name}-{answer.protocol}-{k}", violation.test
            continue
        for k, one in enumerate(answer.counterexamples, 1):
            yield f"{answer.promise}-{answer.protocol}-{k}", one.test


def _save(answers: Sequence[Robustness | InvariantAnswer], folder: Path) -> None:
    """Write a litmus file for each counterexample."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, test in _tests(answers):
        write_whole(folder / f"{name}.toml", str(test))


def _replay(
    answers: Iterable[Robustness | InvariantAnswer], carriers: list[str], *, quiet: bool
) -> int:
    """Run the counterexamples; return the exit status if one ends differently or is refused."""
    from isolitmus.cli.engine_runs import EngineRun, report_refusals, run_found

    done: list[EngineRun] = []
    tests = [test for _, test in _tests(answers)]
    carried = run_found(tests, carriers, done, quiet=quiet)
    return report_refusals(done) or carried.status
