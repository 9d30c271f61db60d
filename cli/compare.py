"""``isolitmus compare``: implications between levels, as a table, a picture and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isolitmus.checker.execution.worker_processes import available_cores as all_cores
from isolitmus.checker.render.lattice import lattices_lines
from isolitmus.checker.search.inclusion_certificates import certify_lattice
from isolitmus.checker.search.lattice_search import compare as place
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.cli.conversion import PICTURES, TABLES, OutputForms
from isolitmus.cli.options import (
    CERTIFICATE,
    Cores,
    Json,
    Memory,
    Time,
    check_at_least,
    check_cores,
    read_budget,
)
from isolitmus.cli.output import check_output_paths, progress, say, write_certificates
from isolitmus.model.scope import Scope
from isolitmus.specs import scope, spec
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.spec_catalogue import every_level, levels

FEW = 9
"""Number of levels up to which no other processes are started."""
FORMS = OutputForms(*PICTURES, *TABLES)


@check_output_paths(html=False, certificate=True)
def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LEVEL]...",
            help=(
                "Names of levels, or .cat files. One: its place among the shipped levels. None: all"
                " shipped levels."
            ),
        ),
    ] = None,
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="Also compare all published definitions; takes minutes."),
    ] = False,
    universe: Annotated[
        str | None,
        typer.Option(
            metavar="table|abstract|FILE",
            help=(
                "Search space: abstract, table, another scope, or a scope file; default: abstract"
                " and table."
            ),
        ),
    ] = None,
    transactions: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of transactions, readers included."),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    cores: Cores = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the result as an HTML page.")
    ] = None,
    certificate: Annotated[Path | None, CERTIFICATE] = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """A level implies another if it admits no history that the other forbids.

    Exit status:
      0  every pair decided
      3  some pair unknown, or a named level could not be compared

    Examples:
      isolitmus compare
      isolitmus compare serializable snapshot-isolation
      isolitmus compare mine.cat --universe abstract --html levels.html

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    check_cores(cores)
    check_at_least(1, transactions=transactions)
    inside = None if universe is None else ABSTRACT if universe == ABSTRACT else scope(universe)
    given = [spec(name) for name in dict.fromkeys(names or ())]
    focus = [one.name for one in given] if len(given) == 1 else []
    if len(given) < 2:
        known = {one.name for one in given}
        ours = every_level() if every else levels()
        given += [spec(name) for name in ours if name not in known]
    processes = (cores or all_cores()) if len(given) > FEW or cores is not None else 1
    with progress("compare") as tell:
        found = place(
            given,
            inside,
            focus=focus,
            transactions=transactions,
            budget=within,
            processes=processes,
            progress=tell,
        )
    if form.quiet:
        form.show([found], found.to_json)
    else:
        for line in lattices_lines(found):
            say(line)
    if certificate is not None:
        behind = certify_lattice(
            found, given, inside if isinstance(inside, Scope) else None, within
        )
        write_certificates(behind.certificates, certificate, behind.readme)
    if html is not None:
        from isolitmus.checker.render.lattice_pages import lattices_page
        from isolitmus.cli.output import made_by_command

        write_whole(html, lattices_page(found, made_by_command()))
    named = set(focus or [one.name for one in given] if names or universe is None else ())
    return 0 if found.decided and not named & found.apart.keys() else 3
