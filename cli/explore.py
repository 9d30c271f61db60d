"""``isolitmus explore``: random litmus tests, by the model and by an engine."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.cli.options import Json, Memory, Time, read_budget, split_names
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
from isolitmus.model.defaults import DELTA
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.model.exploration import EACH, split_batches
from isolitmus.specs import protocol as read_protocol
from isolitmus.specs.files.evidence_files import ExplorationEvidence
from isolitmus.specs.registries.engines import engine_named
from isolitmus.specs.registries.formats import format_named, formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.conformance.agreement import ExplorationResult
    from isolitmus.model.engine import Engine, RunsTests
    from isolitmus.model.exploration import RandomBatch
    from isolitmus.model.format import Format, RandomTests
    from isolitmus.model.spec import Spec
    from isolitmus.pipeline.replay_table import ReplayTable

__all__ = ["explore"]


@check_output_paths(evidence=False, out=True)
def explore(
    tests: Annotated[
        str | None,
        typer.Argument(
            metavar="TESTS",
            help="A kind of tests; of delta: tables (SQL statements), the default, or raw (transactions).",
        ),
    ] = None,
    *,
    engine: Annotated[
        str, typer.Option(metavar="E", help="An engine, whose format's tests are drawn.")
    ] = "delta",
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]", help="Protocols, with commas; default: all of the engine."
        ),
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", help="So many tests.")] = 100,
    seed: Annotated[
        int, typer.Option(metavar="S", help="The first seed; there is one for each 100 tests.")
    ] = 1,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep which seeds agreed; if some are there, go on."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep every test in this Delta table; if some are there, go on."
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Exit status 1 if the engine did, in some test, what the model does not say; else 3 if a limit ended the work, or the
    model says nothing of any test; else 0.
    """
    within = read_budget(time, memory)
    carrier, specs = engine_named(engine), _protocols(engine, protocol)
    drawing = _drawing(carrier, tests)
    if count < 1:
        raise IsolitmusError(f"--count is {count}; a whole number from 1 is wanted")
    if seed < 0:
        raise IsolitmusError(f"--seed is {seed}; a whole number from 0 is wanted")
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
                from isolitmus.pipeline.replay_table import refuse_no_replays

                refuse_no_replays(out)
            if out is None and all(batch in known for batch in asked):
                done += asked
            elif not _agree(
                carrier, drawing, asked, specs, known, done=done, evidence=evidence, out=out
            ):
                return 1
    except Limit as limit:
        ended = limit
        warn(
            f"{limit}; of {count_of(count, 'test')} those that were not carried out until then are unknown"
        )
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
        f"{count_of(compared, 'random test')} ({drawing.name}, {seeds}) on {known.engine_version}: {said}."
    )
    if several:
        say(
            f"Of {several:,} of them several runs are predicted, by whose thread is faster: each was one of those."
        )
    if unsaid:
        say(
            f"Of {unsaid:,} more the model says nothing: they go as a plan does, or some may wait for ever."
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
    """Whether the model and an engine agree on all that is asked: the batches that do become known and are ``done``, the
    first test that does not is printed.
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
def _replays(out: Path | None) -> Iterator[ReplayTable | None]:
    """The table that replays are kept in, if one was asked for."""
    if out is None:
        yield None
        return
    from isolitmus.pipeline.replay_table import open_replays

    with open_replays(out) as replays:
        yield replays


def _carried_out(
    drawing: RandomTests,
    batch: RandomBatch,
    carry: RunsTests,
    *,
    engine: Engine,
    specs: list[Spec],
    replays: ReplayTable | None,
    said: Callable[[int], None],
) -> ExplorationResult:
    """A batch carried out, and written down if there is a table."""
    from isolitmus.conformance.agreement import explore as carry_out

    watched = None
    if replays is not None:
        from isolitmus.pipeline.replay_table import RecordedEngine

        watched = RecordedEngine(carry)
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
    """The format of what is drawn for an engine."""
    return format_named(engine.format or DELTA)


def _protocols(engine: str, protocol: str | None) -> list[Spec]:
    """Those that are named, or all that the engine implements; IsolitmusError if the comparison could not fail."""
    if engine == MODEL:
        raise IsolitmusError(f"--engine is {MODEL}, which the others are compared with")
    refuse_unable(engine)
    one = engine_named(engine)
    names = one.protocols or _form(one).protocols
    if protocol is not None:
        names = tuple(split_names("protocol", protocol))
    specs = [read_protocol(p) for p in names]
    refuse_unable(engine, [spec.name for spec in specs])
    return specs


def _drawing(engine: Engine, tests: str | None) -> RandomTests:
    """The random tests of a name, or the first of its format; IsolitmusError if there are none."""
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
