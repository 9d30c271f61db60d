"""``isolitmus matrix``: which statements conflict, as the model says and as an engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.matrix import covering, grid, predict
from isolitmus.cli.output import named, print_json, progress, refuse_other_engine, say
from isolitmus.conformance.engines import refuse_unable
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.matrix import LETTERS, letter
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import matrix as read_matrix
from isolitmus.specs.catalogue import protocols
from isolitmus.specs.evidence_file import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from isolitmus.model.matrix import Cell, Matrix, Place
    from isolitmus.model.spec import Spec

__all__ = ["matrix"]

AFTER = 30
"""After so many cases what was seen is written down."""


def matrix(
    name: str,
    engine: str,
    wanted: str,
    *,
    layouts: str | None,
    shard: str | None,
    sample: int | None,
    evidence: Path | None,
    out: Path | None,
    at_once: int | None,
    as_json: bool,
) -> int:
    """Exit status 1 if the engine did, in some case, what the model does not say; else 0."""
    specs = [protocol(p) for p in named("protocol", wanted)]
    refuse_unable(engine, [spec.name for spec in specs] if engine != "model" else [])
    for option, value in (("evidence", evidence), ("out", out), ("at-once", at_once)):
        if engine == "model" and value is not None:
            raise IsolitmusError(f"--{option} is of an engine; add --engine delta")
    if at_once is not None and at_once < 1:
        raise IsolitmusError(f"--at-once is {at_once}; a whole number from 1 is wanted")
    chosen = read_matrix(name)
    places = _places(chosen, layouts, shard, sample)
    asked = [(place, spec) for spec in specs for place in places]
    if engine == "model":
        cells = [predict(chosen, place, spec) for place, spec in asked]
        letters = {_key(cell): letter(cell.predicted) for cell in cells}
    else:
        known = Evidence(chosen)
        if evidence is not None:
            known = Evidence.read(evidence, chosen, protocols())
        cells = list(_observed(asked, known, evidence, out, at_once))
        letters = known.letters
    if as_json:
        print_json([cell.to_json() for cell in cells])
        return int(any(cell.differences for cell in cells))
    keys = [(spec.name, place) for place, spec in asked]
    _print_grids(chosen, keys, letters, engine)
    return 0 if engine == "model" else _print_comparison(known, keys)


def _key(cell: Cell) -> tuple[str, Place]:
    return cell.protocol, cell.place


def _places(
    chosen: Matrix, layouts: str | None, shard: str | None, sample: int | None
) -> list[Place]:
    wanted = list(chosen.layouts)
    if layouts is not None:
        wanted = named("layout", layouts)
    for layout in wanted:
        if layout not in chosen.layouts:
            raise IsolitmusError(f"no layout '{layout}'{near(layout, chosen.layouts)}")
    places = [place for layout in wanted for place in chosen.places(layout)]
    if shard is not None:
        k, _, n = shard.partition("/")
        if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
            raise IsolitmusError(f"--shard is '{shard}'; K/N is wanted, such as 1/4")
        places = places[int(k) - 1 :: int(n)]
    if sample is not None:
        if sample < 1:
            raise IsolitmusError(f"--sample is {sample}; a whole number from 1 is wanted")
        places = covering(chosen, places)[:sample]
    return places


def _observed(
    asked: list[tuple[Place, Spec]],
    known: Evidence,
    evidence: Path | None,
    out: Path | None,
    at_once: int | None,
) -> Iterator[Cell]:
    """The cells as the engine gives them; those that are known, from the evidence or the table ``out``, are
    not asked again. What is seen becomes known.
    """
    from isolitmus.conformance.agreement import AT_ONCE
    from isolitmus.conformance.delta import ENGINE
    from isolitmus.conformance.matrix import observe
    from isolitmus.conformance.session import open_session
    from isolitmus.pipeline.cases import Cases, refuse_other

    if out is not None:
        refuse_other(out)
    elif all((spec.name, place) in known.letters for place, spec in asked):
        return
    with open_session() as session, progress(f"matrix {known.matrix.name}") as tell:
        refuse_other_engine(evidence, known.engine_version, session.version)
        known.engine_version = session.version
        cases = None
        if out is not None:
            cases = Cases(session.spark, out, known.matrix, ENGINE, session.version)
            for cell in cases.known():
                known.add(cell)
        left = [(p, spec) for p, spec in asked if (spec.name, p) not in known.letters]
        fresh: list[Cell] = []
        for k, cell in enumerate(
            observe(known.matrix, left, session, at_once=at_once or AT_ONCE), 1
        ):
            yield cell
            if cell.observed is not None:
                known.add(cell)
                fresh.append(cell)
            tell(f"{k:,} of {len(left):,} cases, {len(known.differences)} not as predicted")
            if k % AFTER == 0 or k == len(left):
                if evidence is not None:
                    known.write(evidence)
                if cases is not None and fresh:
                    cases.append(fresh)
                fresh = []


def _print_grids(
    chosen: Matrix,
    keys: list[tuple[str, Place]],
    letters: Mapping[tuple[str, Place], str],
    engine: str,
) -> None:
    for protocol_name, layout in dict.fromkeys((under, place.layout) for under, place in keys):
        say(f"{chosen.title}: {protocol_name}, {layout} ({engine})")
        here = {
            (place.a, place.winner): letters.get((under, place), " ")
            for under, place in keys
            if (under, place.layout) == (protocol_name, layout)
        }
        for line in grid(chosen, here):
            say(line)
        say()
    say("Rows are parked before their commit, columns win. " + _legend())


def _print_comparison(known: Evidence, keys: list[tuple[str, Place]]) -> int:
    unlike = [key for key in keys if key in known.differences]
    for under, place in unlike:
        say(f"{place.a} beside {place.winner}, {place.layout}, {under}:")
        for difference in known.differences[under, place]:
            say(f"  {difference}")
    seen = sum(key in known.letters for key in keys)
    say(f"{seen - len(unlike):,} of {seen:,} cases as predicted.")
    return int(bool(unlike))


def _legend() -> str:
    words = [f"{sign} {outcome}" for outcome, sign in LETTERS.items()]
    return ", ".join([*words, "e an error, blank: not asked or not modelled"]) + "."
