"""``isolitmus repair``: the weakest clauses with which a protocol's rule keeps a level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.render.repairs import rule_repair_lines
from isolitmus.checker.search.repair import repair as ask
from isolitmus.cli.options import Json, Memory, Time, check_at_least, read_budget
from isolitmus.cli.output import (
    check_output_paths,
    print_json,
    progress,
    say,
    say_assumptions,
)
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, SpecError
from isolitmus.model.scope import LARGEST
from isolitmus.specs import spec
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from isolitmus.checker.search.repair_result import RuleRepairs


@check_output_paths(save=True)
def repair(
    protocol: Annotated[
        str, typer.Argument(metavar="PROTOCOL", help="The protocol (a name or a .cat file).")
    ],
    *,
    keeps: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="The level that it should keep.", show_default=False),
    ],
    universe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help=(
                "The search space: a scope or a scope file, several times for several; default:"
                " those that exercise the rule."
            ),
        ),
    ] = None,
    transactions: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of transactions, readers included."),
    ] = None,
    explained: Annotated[
        bool,
        typer.Option("--explained", help="Also repair what no serial order explains."),
    ] = False,
    no_proofs: Annotated[
        bool,
        typer.Option("--no-proofs", help="Only search; do not try to prove the repairs."),
    ] = False,
    time: Time = None,
    memory: Memory = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the repaired protocols and the histories to this folder."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """A repair adds clauses: a commit also aborts if they hold for it and a concurrent commit.

    Exit status:
      0  repairs were found, or there is nothing to repair
      1  no rule over what a commit checker holds keeps the level
      3  unknown, or incomplete: a limit ended the search

    Examples:
      isolitmus repair case-2-serializable --keeps log-serializable
      isolitmus repair case-3-serializable --keeps log-serializable --universe vectors-two-files
      isolitmus repair delta-write-serializable --keeps write-serializable --save repaired

    """
    within = read_budget(time, memory)
    check_at_least(1, transactions=transactions)
    if transactions is not None and transactions > LARGEST:
        raise IsolitmusError(
            f"--transactions is {transactions:,}; expected an integer up to {LARGEST}"
        )
    with progress(f"repair {protocol}") as tell:
        found = ask(
            protocol,
            keeps,
            universe or (),
            transactions=transactions,
            explained=explained,
            proofs=not no_proofs,
            budget=within,
            progress=tell,
        )
    files = [] if save is None else _save(found, save)
    if as_json:
        print_json({**found.to_json(), "files": files})
    else:
        for line in rule_repair_lines(found):
            say(line)
        if files:
            say(f"{save}: {count_of(len(files), 'file')}, repaired protocols and histories.")
        say_assumptions(found.assumptions)
    if found.ended is not None:
        return 3
    return {"impossible": 1, "unknown": 3}.get(found.outcome, 0)


def _save(found: RuleRepairs, folder: Path) -> list[str]:
    """Write each repaired protocol, the violation, and the histories; return the paths."""
    texts = {} if found.hole is None else {f"{found.protocol}-violation.toml": str(found.hole)}
    for repaired in found.front:
        texts[f"{repaired.spec.name}.cat"] = repaired.spec.text
        for number, part in enumerate(repaired.needed, 1):
            texts[f"{repaired.spec.name}-needed-{number}.toml"] = str(part.litmus)
    for name, text in texts.items():
        write_whole(folder / name, text)
        if name.endswith(".cat"):
            _read_again(folder / name, found.protocol)
    return [str(folder / name) for name in texts]


def _read_again(path: Path, protocol: str) -> None:
    """Raise IsolitmusError if a written protocol cannot be read where it is."""
    try:
        spec(path)
    except SpecError as error:
        raise IsolitmusError(
            f"{path} was written but cannot be read there ({error}); name the folder of {protocol}"
            " with --save"
        ) from None
