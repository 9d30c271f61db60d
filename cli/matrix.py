"""``isolitmus matrix``: the pairs of statements that conflict, in the model or on an engine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.checker.execution.conflict_matrix import (
    MatrixCells,
    covering_order,
    matrix_grid,
    predict_case,
)
from isolitmus.cli.conversion import TABLES, OutputForms
from isolitmus.cli.options import (
    SPARK_JOBS,
    Json,
    Memory,
    Time,
    check_at_least,
    read_budget,
    split_names,
)
from isolitmus.cli.output import check_output_paths, progress, refuse_other_engine, say, warn
from isolitmus.conformance.engines import open_engine, refuse_format, refuse_unable
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.model.matrix import LETTERS, NOT_MODELLED, OTHER, outcome_letter
from isolitmus.model.run import SILENT
from isolitmus.specs import protocol as read_protocol
from isolitmus.specs.files.catalogue import matrix as read_matrix
from isolitmus.specs.files.evidence_files import MatrixEvidence
from isolitmus.specs.files.spec_catalogue import protocols
from isolitmus.specs.registries import engine_named, format_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.engine import Engine
    from isolitmus.model.matrix import Matrix, MatrixCase, MatrixPlace
    from isolitmus.model.spec import Spec

FORMS = OutputForms(*TABLES)
EFFECTS = (LETTERS["committed"], LETTERS["no-op"], LETTERS[SILENT], "e")
"""Signs of outcomes without a conflict."""
AFTER = 30
"""Number of cases after which the observations are saved."""


@check_output_paths(evidence=False, out=True)
def matrix(
    name: Annotated[
        str, typer.Argument(metavar="MATRIX", help="Name of a matrix, or a matrix file.")
    ] = "pairs",
    *,
    engine: Annotated[
        str, typer.Option(metavar="E", help="Engine, such as model or delta.")
    ] = "model",
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]",
            help="Protocols, separated by commas; default: those of the format, or of the engine.",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(metavar="L[,L...]", help="Layouts, separated by commas; default: all."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Run the K-th of N parts of the cases.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Run only N cases, chosen to cover every statement in both roles early.",
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File that stores the observations; an existing file is continued."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of a Delta table that stores every case; an existing table is continued.",
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of cases run at the same time (default: 3 on delta)."
        ),
    ] = None,
    as_: Annotated[str | None, FORMS.option] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Each case runs two transactions: one starts first and commits last, the other commits in
    between.

    Exit status:
      0  done; with an engine: all cases as predicted
      1  the engine differs from the model in some case
      3  a limit ended the work

    Examples:
      isolitmus matrix --layout "other partition"
      isolitmus matrix --protocol delta-serializable --as csv
      isolitmus matrix --engine delta --sample 30

    """
    within = read_budget(time, memory)
    form = FORMS.chosen(as_, as_json=as_json)
    with within.interrupting():
        chosen = read_matrix(name)
    carrier = engine_named(engine)
    wanted = _meant(chosen, carrier) if protocol is None else split_names("protocol", protocol)
    specs = [read_protocol(p) for p in wanted]
    refuse_unable(engine, [spec.name for spec in specs])
    refuse_format(carrier, chosen.name, chosen.format)
    for option, value in (("evidence", evidence), ("out", out), ("at-once", at_once)):
        if engine == MODEL and value is not None:
            raise IsolitmusError(f"--{option} needs an engine; add --engine delta")
    check_at_least(1, at_once=at_once)
    places = _places(chosen, layout, shard, sample)
    asked = [(place, spec) for spec in specs for place in places]
    known = MatrixEvidence(chosen)
    if evidence is not None:
        known = MatrixEvidence.read(evidence, chosen, protocols())
    cells: list[MatrixCase] = []
    ended: Limit | None = None
    try:
        with within.interrupting():
            cells.extend(  # the cells so far are kept after an interruption
                (predict_case(chosen, place, spec) for place, spec in asked)
                if engine == MODEL
                else _observed(asked, known, carrier, evidence=evidence, out=out, at_once=at_once)
            )
    except Limit as limit:
        ended = limit
        warn(f"{limit}; {len(cells):,} of {len(asked):,} cases are done, the others are unknown")
    letters = known.letters
    if engine == MODEL:
        letters = {_key(cell): outcome_letter(cell.predicted) for cell in cells}
    unknown = 0 if ended is None else ended.status
    if form.quiet:
        form.show([MatrixCells(chosen, tuple(cells))], lambda: [cell.to_json() for cell in cells])
        return int(any(cell.differences for cell in cells)) or unknown
    keys = [(spec.name, place) for place, spec in asked]
    _print_grids(chosen, keys, letters, engine)
    if engine != MODEL:
        return _print_comparison(known, keys, cells) or unknown
    for spec in specs:
        if spec.at_most and any(
            c.predicted == "committed" for c in cells if c.protocol == spec.name
        ):
            say(f"Upper bound: {spec.name} commits at most these cases: {spec.at_most}.")
    silent = sum(cell.predicted == SILENT for cell in cells)
    if silent:
        say(
            f"{count_of(silent, 'case')} of {len(cells):,} undefined: the source of the protocol"
            " does not define the outcome."
        )
    return unknown


def _key(cell: MatrixCase) -> tuple[str, MatrixPlace]:
    return cell.protocol, cell.place


def _meant(chosen: Matrix, engine: Engine) -> tuple[str, ...]:
    """Return the default protocols.

    They are those of the matrix' format that the engine implements, or those of the engine.
    """
    own = format_named(chosen.format).protocols
    return tuple(p for p in own if engine.implements(p)) or engine.protocols or own


def _places(
    chosen: Matrix, layouts: str | None, shard: str | None, sample: int | None
) -> list[MatrixPlace]:
    """Return the cases of a matrix that ``--layout``, ``--shard`` and ``--sample`` select."""
    wanted = list(chosen.layouts)
    if layouts is not None:
        wanted = split_names("layout", layouts)
    for layout in wanted:
        if layout not in chosen.layouts:
            raise IsolitmusError(f"no layout '{layout}'{near(layout, chosen.layouts)}")
    places = [place for layout in wanted for place in chosen.places(layout)]
    if shard is not None:
        k, _, n = shard.partition("/")
        if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
            raise IsolitmusError(f"--shard is '{shard}'; write K/N, such as 1/4")
        places = places[int(k) - 1 :: int(n)]
    if sample is not None:
        check_at_least(1, sample=sample)
        places = covering_order(chosen, places)[:sample]
    return places


def _observed(
    asked: list[tuple[MatrixPlace, Spec]],
    known: MatrixEvidence,
    engine: Engine,
    *,
    evidence: Path | None,
    out: Path | None,
    at_once: int | None,
) -> Iterator[MatrixCase]:
    """Yield the cells as observed on the engine, and store them.

    Cells that the evidence or the table ``out`` already has are not run again.
    """
    from isolitmus.conformance.agreement import observe_cells

    if out is not None:
        SPARK_JOBS.named("replays").refuse_others(out)
    elif all((spec.name, place) in known.letters for place, spec in asked):
        return
    with ExitStack() as stack:
        carry = stack.enter_context(open_engine(engine.name))
        tell = stack.enter_context(progress(f"matrix {known.matrix.name}"))
        refuse_other_engine(evidence, known.engine_version, carry.version)
        known.engine_version = carry.version
        replays = None
        if out is not None:
            replays = stack.enter_context(SPARK_JOBS.named("replays").open(out))
            for cell in replays.cells(known.matrix, engine.name, carry.version):
                known.add(cell)
        left = [(p, spec) for p, spec in asked if (spec.name, p) not in known.letters]
        fresh: list[MatrixCase] = []

        def keep() -> None:
            if evidence is not None:
                known.write(evidence)
            if replays is not None and fresh:
                replays.append_cells(known.matrix, carry.version, fresh)
            fresh.clear()

        seen = observe_cells(known.matrix, left, engine, carry, at_once=at_once)
        try:
            for k, cell in enumerate(seen, 1):
                yield cell
                if cell.observed is not None:
                    known.add(cell)
                    fresh.append(cell)
                tell(
                    f"{k:,} of {len(left):,} cases, {len(known.differences)} differ from the model"
                )
                if k % AFTER == 0:
                    keep()
        finally:  # also after an interruption
            keep()


def _print_grids(
    chosen: Matrix,
    keys: list[tuple[str, MatrixPlace]],
    letters: Mapping[tuple[str, MatrixPlace], str],
    engine: str,
) -> None:
    """Print a grid of letters for each protocol and layout, then the legend."""
    for protocol_name, layout in dict.fromkeys((under, place.layout) for under, place in keys):
        here = {
            (place.a, place.winner): letters.get((under, place), " ")
            for under, place in keys
            if (under, place.layout) == (protocol_name, layout)
        }
        done = [sign for sign in here.values() if sign != " "]
        conflicts = sum(sign not in EFFECTS for sign in done)
        say(
            f"{chosen.title}: {protocol_name}, {layout} ({engine}): {conflicts:,} of"
            f" {count_of(len(done), 'case')} conflict"
        )
        for line in matrix_grid(chosen, here):
            say(line)
        say()
    say("Row: starts first, commits last. Column: commits in between.")
    say("Legend:")
    for line in _legend({sign for key in keys if (sign := letters.get(key, " "))}):
        say(f"  {line}")


def _print_comparison(
    known: MatrixEvidence, keys: list[tuple[str, MatrixPlace]], cells: list[MatrixCase]
) -> int:
    """Print the differences between engine and model; return 1 if there are any, else 0."""
    unlike = [key for key in keys if key in known.differences]
    for under, place in unlike:
        say(f"{place.a}, with {place.winner} committing in between, {place.layout}, {under}:")
        for difference in known.differences[under, place]:
            say(f"  {difference}")
    seen = sum(key in known.letters for key in keys)
    told = f"{seen - len(unlike):,} of {seen:,} cases as predicted."
    unmodelled = sum(cell.predicted == NOT_MODELLED for cell in cells)
    refused = sum(cell.observed is None for cell in cells) - unmodelled
    for number, why in (
        (unmodelled, "unsupported by the model"),
        (refused, "rejected by the engine"),
    ):
        told += f" {number:,} more {'is' if number == 1 else 'are'} {why}." if number else ""
    say(told)
    return int(bool(unlike))


def _legend(shown: set[str]) -> Iterator[str]:
    """Yield the entries of the legend for the signs that are shown."""
    words = {sign: outcome for outcome, sign in LETTERS.items()}
    words |= {LETTERS[SILENT]: "undefined by the source of the protocol", OTHER: "another conflict"}
    words |= {"e": "an error", " ": "not run, or unsupported"}
    for sign, meaning in words.items():
        if sign in shown:
            yield f"{'blank' if sign == ' ' else sign}  {meaning}"
