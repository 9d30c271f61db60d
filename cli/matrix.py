"""``isolitmus matrix``: which statements conflict, as the model says and as an engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.matrix import covering, grid, predict
from isolitmus.cli.output import named, print_json, progress, say
from isolitmus.conformance.engines import refuse_unable
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.matrix import LETTERS, letter
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import matrix as read_matrix
from isolitmus.specs.catalogue import protocols
from isolitmus.specs.evidence_file import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isolitmus.model.matrix import Cell, Matrix, Place
    from isolitmus.model.spec import Spec

__all__ = ["matrix"]

AFTER = 30
"""After so many cases the evidence is written down."""


def matrix(
    name: str,
    engine: str,
    wanted: str,
    *,
    layouts: str | None,
    shard: str | None,
    sample: int | None,
    evidence: Path | None,
    as_json: bool,
) -> int:
    """Exit status 1 if the engine did, in some case, what the model does not say; else 0."""
    specs = [protocol(p) for p in named("protocol", wanted)]
    refuse_unable(engine, [spec.name for spec in specs] if engine != "model" else [])
    if engine == "model" and evidence is not None:
        raise IsolitmusError("--evidence is of an engine; add --engine delta")
    chosen = read_matrix(name)
    places = _places(chosen, layouts, shard, sample)
    asked = [(place, spec) for spec in specs for place in places]
    cells = (
        [predict(chosen, place, spec) for place, spec in asked]
        if engine == "model"
        else list(_observed(chosen, asked, evidence))
    )
    if as_json:
        print_json([cell.to_json() for cell in cells])
    else:
        _print(chosen, cells)
    return int(any(cell.differences for cell in cells))


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
    chosen: Matrix, asked: list[tuple[Place, Spec]], evidence: Path | None
) -> Iterator[Cell]:
    """The cells as the engine gives them; those of which the evidence tells are not asked again."""
    from isolitmus.conformance.matrix import observe
    from isolitmus.conformance.session import open_session

    known = Evidence(chosen) if evidence is None else Evidence.read(evidence, chosen, protocols())
    left = [(p, spec) for p, spec in asked if (spec.name, p) not in known.letters]
    if not left:
        return
    with open_session() as session, progress(f"matrix {chosen.name}") as tell:
        if known.engine_version not in (None, session.version):
            raise IsolitmusError(
                f"--evidence {evidence}: it is of {known.engine_version}, and this is {session.version};"
                " name a file that is not there yet"
            )
        known.engine_version = session.version
        for k, cell in enumerate(observe(chosen, left, session), 1):
            yield cell
            if cell.observed is not None:
                known.add(cell)
            tell(f"{k:,} of {len(left):,} cases, {len(known.differences)} not as predicted")
            if evidence is not None and (k % AFTER == 0 or k == len(left)):
                known.write(evidence)


def _print(chosen: Matrix, cells: list[Cell]) -> None:
    shown = dict.fromkeys((cell.protocol, cell.place.layout) for cell in cells)
    for protocol_name, layout in shown:
        here = [c for c in cells if (c.protocol, c.place.layout) == (protocol_name, layout)]
        say(f"{chosen.title}: {protocol_name}, {layout} ({here[0].engine})")
        letters = {(c.place.a, c.place.winner): letter(c.observed or c.predicted) for c in here}
        for line in grid(chosen, letters):
            say(line)
        say()
    say("Rows are parked before their commit, columns win. " + _legend())
    unlike = [cell for cell in cells if cell.differences]
    for cell in unlike:
        say(f"{cell.place.a} beside {cell.place.winner}, {cell.place.layout}, {cell.protocol}:")
        for difference in cell.differences:
            say(f"  {difference}")
    seen = sum(cell.observed is not None for cell in cells)
    if seen:
        say(f"{seen - len(unlike):,} of {seen:,} cases as predicted.")


def _legend() -> str:
    words = [f"{sign} {outcome}" for outcome, sign in LETTERS.items()]
    return ", ".join([*words, "e an error, blank: not asked or not modelled"]) + "."
