"""``isolitmus explore``: random litmus tests, run by the model and on an engine."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.cli.options import (
    SPARK_JOBS,
    Json,
    Memory,
    Time,
    check_at_least,
    read_budget,
    split_names,
)
from isolitmus.cli.output import (
    check_output_paths,
    print_json,
    progress,
    refuse_other_engine,
    say,
    say_text,
    warn,
)
from isolitmus.conformance.engines import open_engine, refuse_unable
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.specs import protocol as read_protocol
from isolitmus.specs.files.evidence_files import EACH, ExplorationEvidence, split_batches
from isolitmus.specs.files.toml_reader import DELTA
from isolitmus.specs.registries import engine_named, format_named, formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.conformance.agreement import ExplorationResult
    from isolitmus.model.engine import Engine, RunsTests
    from isolitmus.model.format import Format, RandomTests
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.evidence_files import RandomBatch


@check_output_paths(evidence=False, out=True)
def explore(
    tests: Annotated[
        str | None,
        typer.Argument(
            metavar="TESTS",
            help=(
                "Kind of tests. For delta: tables (SQL statements, the default) or raw"
                " (transactions)."
            ),
        ),
    ] = None,
    *,
    engine: Annotated[
        str, typer.Option(metavar="E", help="Engine; the tests are drawn for its format.")
    ] = "delta",
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]", help="Protocols, separated by commas; default: all of the engine."
        ),
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", help="Number of tests.")] = 100,
    seed: Annotated[
        int, typer.Option(metavar="S", help="First seed; each 100 tests have one seed.")
    ] = 1,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that stores the seeds that agreed; an existing file is continued.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of a Delta table that stores every test; an existing table is continued.",
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """The first test that differs is reduced to the smallest one and printed.

    Exit status:
      0  the engine agrees with the model in every test
      1  the engine differs from the model in some test
      3  a limit ended the work, or the model makes no prediction for any test

    Examples:
      isolitmus explore --count 200
      isolitmus explore raw --seed 7
      isolitmus explore sessions --engine derby

    """
    within = read_budget(time, memory)
    carrier, specs = engine_named(engine), _protocols(engine, protocol)
    drawing = _drawing(carrier, tests)
    check_at_least(1, count=count)
    check_at_least(0, seed=seed)
    known = ExplorationEvidence()
    if evidence is not None:
        kinds = [each.name for each in _form(carrier).random]
        known = ExplorationEvidence.read(evidence, kinds)
    asked = list(split_batches(drawing.name, seed, count))
    done: list[RandomBatch] = []
    ended: Limit | None = None
    try:
        with within.interrupting():
            if evidence is not None or out is not None:
                from isolitmus.conformance.agreement import redraw_batch

                asked = [redraw_batch(batch, drawing.strategy(), specs) for batch in asked]
            if out is not None:
                SPARK_JOBS.named("replays").refuse_others(out)
            if out is None and all(batch in known for batch in asked):
                done += asked
            elif not _agree(
                carrier, drawing, asked, specs, known, done=done, evidence=evidence, out=out
            ):
                return 1
    except Limit as limit:
        ended = limit
        warn(f"{limit}; of {count_of(count, 'test')}, those that were not run are unknown")
    carried_out = [known.of(batch) for batch in done]
    unsaid = sum(batch.unsaid or 0 for batch in carried_out)
    compared = sum(batch.count for batch in done) - unsaid
    status = 0 if ended is None and compared else Limit.status
    if as_json:
        print_json([batch.to_json() for batch in carried_out])
        return status
    if not done:
        return status
    several = sum(batch.several for batch in carried_out)
    seeds = f"seed {seed}" if len(done) == 1 else f"seeds {seed} to {done[-1].seed}"
    said = "all as predicted" if compared else "nothing was compared"
    say(
        f"{count_of(compared, 'random test')} ({drawing.name}, {seeds}) on {known.engine_version}:"
        f" {said}."
    )
    if several:
        say(
            f"{several:,} of these have several predicted runs, depending on thread timing: each"
            " observed run was one of them."
        )
    if unsaid:
        say(
            f"{unsaid:,} more tests have no prediction: their outcome depends on the query plan, or"
            " a transaction may wait forever."
        )
    return status


def _agree(
    engine: Engine,
    drawing: RandomTests,
    asked: list[RandomBatch],
    specs: list[Spec],
    known: ExplorationEvidence,
    *,
    done: list[RandomBatch],
    evidence: Path | None,
    out: Path | None,
) -> bool:
    """Return whether the model and an engine agree on all batches; print the first mismatch.

    The batches that agree are added to ``known`` and ``done``.
    """
    from isolitmus.conformance.agreement import draw_tests

    count = sum(batch.count for batch in asked)
    with (
        open_engine(engine.name) as carry,
        _replays(out) as replays,
        progress(f"explore {drawing.name}") as tell,
    ):
        refuse_other_engine(evidence, known.engine_version, carry.version)
        known.engine_version = carry.version
        for first, batch in zip(range(0, count, EACH), asked, strict=True):
            there = None
            if replays is not None:
                pairs = partial(draw_tests, drawing.strategy(), batch.count, batch.seed, specs)
                there = replays.agreed(batch, carry.version, pairs)
            if there is not None:
                known.add(there)
            elif replays is not None or batch not in known:
                found = _carried_out(
                    drawing,
                    batch,
                    carry,
                    engine=engine,
                    specs=specs,
                    replays=replays,
                    said=lambda k: tell(f"{first + k:,} of {count:,} tests"),  # noqa: B023
                )
                if found.mismatch is not None:
                    say(f"# tests {drawing.name}, seed {batch.seed}: model and engine differ")
                    say_text(str(found.mismatch))
                    return False
                known.add(found.batch(drawing.name))
            done.append(batch)
            if evidence is not None:
                known.write(evidence)
    return True


@contextmanager
def _replays(out: Path | None) -> Iterator[Any | None]:
    """Open the table of replays if one was requested, else yield None."""
    if out is None:
        yield None
        return
    with SPARK_JOBS.named("replays").open(out) as replays:
        yield replays


def _carried_out(
    drawing: RandomTests,
    batch: RandomBatch,
    carry: RunsTests,
    *,
    engine: Engine,
    specs: list[Spec],
    replays: Any | None,
    said: Callable[[int], None],
) -> ExplorationResult:
    """Run a batch and store it in the table, if there is one."""
    from isolitmus.conformance.agreement import explore as carry_out

    watched = None
    if replays is not None:
        watched = replays.record(carry)
        carry = watched.carry
    found = carry_out(
        drawing.strategy(),
        batch.count,
        batch.seed,
        carry,
        protocols=specs,
        at_once=engine.most(),
        progress=said,
    )
    if replays is not None and watched is not None:
        replays.write(drawing.name, batch.drawn, carry.version, watched.seen)
    return found


def _form(engine: Engine) -> Format:
    """Return the format of an engine's random tests."""
    return format_named(engine.format or DELTA)


def _protocols(engine: str, protocol: str | None) -> list[Spec]:
    """Return the named protocols, or all that the engine implements.

    Raises IsolitmusError if the model would be compared with itself.
    """
    if engine == MODEL:
        raise IsolitmusError(f"--engine is {MODEL}; name the engine to compare the model with")
    refuse_unable(engine)
    one = engine_named(engine)
    names = one.protocols or _form(one).protocols
    if protocol is not None:
        names = tuple(split_names("protocol", protocol))
    specs = [read_protocol(p) for p in names]
    refuse_unable(engine, [spec.name for spec in specs])
    return specs


def _drawing(engine: Engine, tests: str | None) -> RandomTests:
    """Return the random tests of a name, or the first ones of the format.

    Raises IsolitmusError if there are none.
    """
    form = _form(engine)
    offered = {each.name: each for each in form.random}
    if not offered:
        others = [name for name in formats() if format_named(name).random]
        raise IsolitmusError(
            f"format {form.name} of {engine.name} offers no random tests; formats that do:"
            f" {', '.join(others)}"
        )
    if tests is not None and tests not in offered:
        raise IsolitmusError(f"no random tests '{tests}'{near(tests, offered)}")
    return offered[tests or next(iter(offered))]
