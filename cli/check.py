"""``isolitmus check``: what levels say of histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.telling.check_words import check_lines
from isolitmus.cli.forms import PICTURES, TABLES, Forms
from isolitmus.cli.histories import FORMATS, judged_files
from isolitmus.cli.options import Json, Memory, Time, budget, named
from isolitmus.cli.output import say, warn
from isolitmus.cli.refused import by_reason, worst
from isolitmus.model.errors import IsolitmusError, near

if TYPE_CHECKING:
    from isolitmus.checker.checks import Checked
    from isolitmus.cli.refused import Refusal

__all__ = ["check"]

FORMS = Forms(*PICTURES, *TABLES)


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Litmus files, names of litmus tests, folders of Delta tables, histories that other tools recorded,"
            " PostgreSQL's isolation tests (NAME.spec).",
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
    """What cannot be read, or be asked a level, is passed over and told at the end. The exit status is 2 if anything
    was refused, else 1 if a level forbids a history, else 3 if one is unknown or a spec silent on it, else 0.
    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = budget(time, memory)
    if format_ not in FORMATS:
        raise IsolitmusError(f"--format is '{format_}'{near(format_, FORMATS)}")
    asked = named("level", level)
    if "all" in asked and len(asked) > 1:
        raise IsolitmusError(f"--level is '{level}'; all stands alone")
    every = asked == ["all"]
    results: list[Checked] = []
    names: list[str] = []
    verdicts: list[str] = []
    refused: list[Refusal] = []
    for name, counted, checked in judged_files(
        files, None if every else asked, format_, within, refused
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
    for message in by_reason(refused):
        warn(message)
    found = {refusal.error.status for refusal in refused}
    found |= {1} if "forbidden" in verdicts else set()
    found |= {3} if {"unknown", "silent"} & {*verdicts} else set()
    return worst(found)
