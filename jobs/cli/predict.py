"""``isolitmus predict``: which jobs conflict, when, and which changes end the conflicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.worker_processes import available_cores as available
from isolitmus.cli.options import (
    Cores,
    Json,
    Memory,
    Time,
    check_cores,
    read_budget,
    split_names,
)
from isolitmus.cli.output import check_output_paths, print_json, progress, say, warn
from isolitmus.jobs.cli.workload_options import (
    UNKNOWN,
    Ddl,
    Functions,
    Jobs,
    Level,
    TableFolder,
    choose_workload,
)
from isolitmus.jobs.predict.conflict_paths import without_untaken_paths
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_sources import choose_protocol
from isolitmus.jobs.render.prediction import (
    change_lines,
    grid_row,
    prediction_head,
    prediction_lines,
    prediction_rest,
)
from isolitmus.jobs.robust.repairs import try_changes
from isolitmus.model.errors import Limit
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.jobs.questions.pair_prediction import JobPrediction, PairPrediction
    from isolitmus.jobs.robust.repairs import JobChange

FEW = 8
"""Number of statements below which one process is faster than several, which have to start."""


@check_output_paths(save=True, html=False)
def predict(
    jobs: Jobs = None,
    *,
    run: Functions = None,
    ddl: Ddl = None,
    table: TableFolder = None,
    level: Level = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the smallest examples to this folder as litmus files."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as an HTML page.")
    ] = None,
    remedies: Annotated[
        bool, typer.Option("--remedies", help="Also find changes that end conflicts.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(metavar="E[,E...]", help="Run the examples on these engines: delta, …"),
    ] = None,
    cores: Cores = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Predict which statements abort if another one commits between their snapshot and their
    commit.

    The answer is for all parameter values and all rows. "never" and "always" are proved; each
    exception that is named has an example that the model executed.

    Exit status:
      0  no statement can abort
      1  some statement can abort
      3  otherwise, if the answer for some pair is unknown
      With --engine, that of run if an example is refused or ends differently.

    Examples:
      isolitmus predict shop
      isolitmus predict --ddl events.sql dedupe.sql append.sql
      isolitmus predict --run jobs.py:dedupe --run jobs.py:load --ddl events.sql
      isolitmus predict shop --level WriteSerializable --remedies

    """
    check_cores(cores)
    within = read_budget(time, memory)
    chosen = choose_workload(jobs, ddl, table, run, within)
    under = choose_protocol(chosen.workload, level, UNKNOWN)
    workload = without_untaken_paths(chosen.workload, under, within)
    processes = cores or (1 if len(workload.statements) < FEW else available())
    carriers = _carriers(engine, under.name)
    said: list[str] = []

    def say_row(row: Sequence[PairPrediction]) -> None:
        """Print a row of the grid, after the grid's head if it is the first."""
        if not said:
            names = [meeting.winner for meeting in row]
            for line in prediction_head(workload, names, under.name):
                say(line)
        say(grid_row(row))
        said.append(row[0].loser)

    for line in () if as_json else chosen.lines():
        say(line)
    ways: list[JobChange] = []
    ended = None
    with progress(f"predict {workload.name}") as tell:
        found = predict_workload(
            workload,
            under,
            processes=processes,
            tell=tell,
            told=None if as_json or workload.schedule else say_row,
            budget=within,
        )
        if not as_json:
            for loser, row in () if workload.schedule else found.rows.items():
                if loser not in said:
                    say_row(row)
            for line in (prediction_lines if workload.schedule else prediction_rest)(found):
                say(line)
        if remedies and found.ended is None:
            try:
                with within.interrupting():
                    ways.extend(try_changes(found, under))
            except Limit as limit:
                ended = f"{limit}; remedies are unknown"
    if as_json:
        more = {"remedies": [way.to_json() for way in ways]} if remedies else {}
        if chosen.functions:
            more["functions"] = [one.to_json() for one in chosen.functions]
        print_json({**found.to_json(), "ended": found.ended or ended, **more})
    elif remedies and ended is None and found.ended is None:
        for line in change_lines(ways):
            say(line)
    if found.ended is not None:
        ended = f"{found.ended}; the remaining pairs are unknown"
    if ended is not None:
        warn(ended)
    if save is not None:
        _save(found, save)
    if html is not None:
        from isolitmus.cli.output import made_by_command
        from isolitmus.jobs.render.prediction_page import prediction_page

        write_whole(
            html,
            prediction_page(found, made_by_command(), ways if remedies and not ended else None),
        )
    if carriers and (status := _replay(found, carriers, quiet=as_json)):
        return status
    words = {meeting.word for meeting in found.meetings}
    return 1 if words & {"when", "always"} else 3 if "unknown" in words or ended else 0


def _carriers(engine: str | None, protocol: str) -> list[str]:
    """Return the engines that run the examples; refuse one that does not know the protocol."""
    if engine is None:
        return []
    from isolitmus.cli.engine_runs import refuse_engines

    carriers = split_names("engine", engine)
    refuse_engines(carriers, [protocol])
    return carriers


def _save(found: JobPrediction, folder: Path) -> None:
    """Write a litmus file for each example."""
    folder.mkdir(parents=True, exist_ok=True)
    for test in found.examples:
        write_whole(folder / f"{test.name}.toml", str(test))


def _replay(found: JobPrediction, carriers: list[str], *, quiet: bool) -> int:
    """Run the examples; return the exit status if one ends differently or is refused."""
    from isolitmus.cli.engine_runs import EngineRun, report_refusals, run_found

    done: list[EngineRun] = []
    carried = run_found(found.examples, carriers, done, quiet=quiet)
    return report_refusals(done) or carried.status
