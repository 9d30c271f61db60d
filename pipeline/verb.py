"""``isolitmus report``: an HTML page of the tables of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isolitmus.cli.conversion import OutputForms
from isolitmus.cli.options import Json, Memory, Time, read_budget
from isolitmus.cli.output import check_output_paths, progress, say
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.disk.output_files import write_whole

FORMS = OutputForms()


@check_output_paths(html=False)
def report(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Folder that isolitmus sweep --spark --out DIR wrote."),
    ],
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the page; default: DIR.html.")
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """The page has counts, plots, needless aborts, and the smallest history of each kind.

    Spark is not needed. With --json the content is printed, and a page is written only if --html
    names one.

    Exit status:
      0  written
      3  a limit ended the work

    Examples:
      isolitmus report counts
      isolitmus report counts --html page.html

    """
    from isolitmus.cli.output import made_by_command
    from isolitmus.pipeline.sweep_report import SweepFolder, build_sweep_page, sum_tables

    form = FORMS.chosen(None, as_json=as_json)
    there = Path(folder)
    within = read_budget(time, memory)
    with within.interrupting(), progress(f"report {folder}"):
        tables = SweepFolder(there)
        page = sum_tables(tables)
    form.show([page], page.to_json)
    if html is not None or not as_json:
        file = html or there.with_name(f"{real_path(there).name}.html")
        with within.interrupting(), progress(f"report {folder}"):
            written = build_sweep_page(tables, page, made_by_command())
        write_whole(file, written)
        if not form.quiet:
            say(f"Page written: {file}")
    return 0
