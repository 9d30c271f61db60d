"""``isolitmus check``: verdicts of levels on histories."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isolitmus.checker.checks.history_sources import FORMATS, SOURCES, check_files, history_files
from isolitmus.checker.render.verdicts import check_lines
from isolitmus.cli.conversion import PICTURES, TABLES, OutputForms
from isolitmus.cli.options import (
    SPARK_JOBS,
    Json,
    Master,
    Memory,
    Time,
    needs_spark,
    read_budget,
    split_names,
)
from isolitmus.cli.output import (
    Pace,
    Refusal,
    check_output_paths,
    group_refusals,
    progress,
    say,
    warn,
    worst_status,
)
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.specs.disk.input_files import is_delta_table, is_folder, paths_below
from isolitmus.specs.disk.output_files import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.cli.conversion import OutputForm

FORMS = OutputForms(*PICTURES, *TABLES)


@check_output_paths(out=True)
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help=(
                "Litmus tests (names or files), folders of Delta tables, histories that other tools"
                " recorded, PostgreSQL's isolation tests (NAME.spec)."
            ),
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            metavar="L[,L...]",
            help=(
                "Levels (names or .cat files); all: the strongest that hold, the weakest that fail."
            ),
        ),
    ] = "all",
    format_: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="Format of the files.")
    ] = "auto",
    *,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Judge on Spark, folders recursively."),
    ] = False,
    master: Master = None,
    out: Annotated[
        Location | None,
        typer.Option(
            metavar="TABLE",
            parser=Location,
            help="With --spark: write the verdicts to the Delta table in this folder.",
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Files that cannot be read, and levels that do not apply to a history, are named at the end.

    Exit status, the first that applies in the order 2, 1, 3, 0:
      0  every level allows every history
      1  a level forbids a history (with --spark also: a file could not be read)
      2  a file could not be read, or a level does not apply
      3  a verdict is unknown, or a spec is silent on a history

    Examples:
      isolitmus check history-write-skew
      isolitmus check recorded.edn --level serializable,snapshot-isolation
      isolitmus check path/to/delta/table

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    if format_ not in SOURCES:
        raise IsolitmusError(f"--format is '{format_}'{near(format_, SOURCES.names())}")
    asked = split_names("level", level)
    if "all" in asked and len(asked) > 1:
        raise IsolitmusError(f"--level is '{level}'; 'all' cannot be combined")
    every = asked == ["all"]
    needs_spark(spark, master, out)
    if spark:
        if form.word not in {None, "json"}:
            raise IsolitmusError(f"--as {form.word} is for few histories; --spark writes a table")
        inside = [one for name in files for one in _looked_through(name, format_)]
        pace = Pace(len(inside), "files")
        with _checker(master, out, None if every else asked, pace) as check_on_spark:
            bulk = check_on_spark(inside, budget=within)
        return _close(bulk, form)
    results: list[HistoryVerdicts] = []
    names: list[str] = []
    verdicts: list[str] = []
    refused: list[Refusal] = []
    for name, counted, checked in check_files(
        files, None if every else asked, format_, within, lambda n, e: refused.append(Refusal(n, e))
    ):
        verdicts += map(str, checked.levels.values())
        results.append(checked)
        names.append(name)
        if not form.quiet:
            if len(results) > 1:
                say()
            say(f"{checked.name}: {counted}")
            for line in check_lines(checked, every=every):
                say(f"  {line}")
    if results:
        form.show(
            results, lambda: [c.to_json(name) for c, name in zip(results, names, strict=True)]
        )
    for message in group_refusals(refused):
        warn(message)
    found = {refusal.error.status for refusal in refused}
    found |= {1} if "forbidden" in verdicts else set()
    found |= {3} if {"unknown", "silent"} & {*verdicts} else set()
    return worst_status(found)


@contextmanager
def _checker(
    master: str | None, out: Location | None, levels: list[str] | None, pace: Pace
) -> Iterator[Callable[..., Any]]:
    """Yield a function that checks history files on an open Spark session."""
    with (
        SPARK_JOBS.named("check")(master, out, levels) as check_on_spark,
        progress("check on Spark") as tell,
    ):
        yield partial(check_on_spark, progress=lambda k: tell(pace.words(k)))


def _close(done: Any, form: OutputForm) -> int:
    """Print the summary of a bulk check; return the exit status."""
    form.show([], done.to_json)
    if not form.quiet:
        for line in done.lines():
            say(line)
    if done.ended is not None:
        return 3
    verdicts = {verdict for of in done.levels.values() for verdict in of}
    return 1 if done.unread or "forbidden" in verdicts else 3 if verdicts - {"allowed"} else 0


def _looked_through(name: str, format_: str) -> Iterator[tuple[str, Path]]:
    """Yield the files, with their formats, for a name, a pattern or a folder with folders."""
    # Path.glob rejects absolute patterns
    names = sorted(glob(name, recursive=True)) if has_magic(name) else [name]  # noqa: PTH207
    if not names:
        raise IsolitmusError(f"{name}: no such file")
    for one in names:
        path = Path(one)
        inside = [p for p in paths_below(path) if is_delta_table(p)] if is_folder(path) else []
        if inside and not is_delta_table(path):
            yield from (("delta", table) for table in inside)
            continue
        yield from history_files(one, format_)
