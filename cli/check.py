"""``isolitmus check``: what levels say of histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.telling.check_words import check_lines
from isolitmus.cli.forms import PICTURES, TABLES, Forms
from isolitmus.cli.histories import FORMATS, judged_files
from isolitmus.cli.options import Json, Memory, Time, budget, named
from isolitmus.cli.output import say
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.verdict import Needs

if TYPE_CHECKING:
    from isolitmus.checker.checks import Checked

__all__ = ["check"]

FORMS = Forms(*PICTURES, *TABLES)


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Litmus files, names of litmus tests, folders of Delta tables, histories that other tools recorded.",
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            metavar="L[,L...]",
            help="Levels, with commas (names or .cat files); all: the strongest that hold, the weakest that fail.",
        ),
    ] = "all",
    format_: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="What the files are.")
    ] = "auto",
    *,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Exit status 1 if a level forbids a history, 3 if one is unknown or a spec silent on it, else 0."""
    form = FORMS.chosen(as_, as_json=as_json)
    within = budget(time, memory)
    if format_ not in FORMATS:
        raise IsolitmusError(f"--format is '{format_}'{near(format_, FORMATS)}")
    asked = named("level", level)
    if "all" in asked and len(asked) > 1:
        raise IsolitmusError(f"--level is '{level}'; all stands alone")
    every = asked == ["all"]
    results: list[Checked] = []
    paths: list[Path] = []
    verdicts: list[str] = []
    for path, counted, checked in judged_files(files, None if every else asked, format_, within):
        for name, verdict in checked.levels.items():
            if isinstance(verdict, Needs):
                raise IsolitmusError(
                    f"{path.name}: {name} {verdict}, which this history does not have"
                )
        verdicts += map(str, checked.levels.values())
        results.append(checked)
        paths.append(path)
        if not form.quiet:
            if len(results) > 1:
                say()
            say(f"{checked.name}: {counted}")
            for line in check_lines(checked, every=every):
                say(f"  {line}")
    form.show(
        results, lambda: [c.to_json(str(path)) for c, path in zip(results, paths, strict=True)]
    )
    return 1 if "forbidden" in verdicts else 3 if {"unknown", "silent"} & {*verdicts} else 0
