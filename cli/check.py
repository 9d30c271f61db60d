"""``isolitmus check``: what levels say of histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.checks import check as judge
from isolitmus.checker.telling.words import verdict_words
from isolitmus.cli.forms import PICTURES, TABLES, Forms
from isolitmus.cli.options import Json, Memory, Time, budget, named
from isolitmus.cli.output import say
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.number import many
from isolitmus.model.verdict import Needs
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import litmus_files
from isolitmus.specs.delta_log import is_delta_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks import Checked
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

__all__ = ["check"]

FORMS = Forms(*PICTURES, *TABLES)
FORMATS = ("auto", "litmus", "delta")


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Litmus files, names of litmus tests, folders of Delta tables."
        ),
    ],
    level: Annotated[
        str, typer.Option(metavar="L[,L...]", help="Levels, with commas (names or .cat files).")
    ],
    format_: Annotated[
        str, typer.Option("--format", metavar="auto|litmus|delta", help="What the files are.")
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
    specs = [spec(name) for name in named("level", level)]
    results: list[Checked] = []
    paths: list[Path] = []
    verdicts: list[str] = []
    for path, counted, checked in _checked(files, specs, format_, within):
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
            for asked in specs:
                verdict, beside = checked.levels[asked.name], checked.explained.get(asked.name)
                for line in verdict_words(verdict, asked, beside):
                    say(f"  {line}")
            if checked.assumptions:
                say(
                    f"  Assumed, because the history does not say: {'; '.join(checked.assumptions)}."
                )
    form.show(
        results, lambda: [c.to_json(str(path)) for c, path in zip(results, paths, strict=True)]
    )
    return 1 if "forbidden" in verdicts else 3 if {"unknown", "silent"} & {*verdicts} else 0


def _checked(
    names: list[str], specs: Sequence[Spec], format_: str, budget: Budget
) -> Iterator[tuple[Path, str, Checked]]:
    """Each history with what was counted of it, in words."""
    for name in names:
        if format_ == "delta" or (format_ == "auto" and is_delta_table(Path(name))):
            from isolitmus.checker.auditing.judging import check_log

            checked = check_log(Path(name), specs, budget=budget)
            files = many(checked.operations, "file added or removed", "files added and removed")
            yield Path(name), f"{many(checked.transactions, 'commit')}, {files}", checked
            continue
        for path in litmus_files(name):
            checked = judge(litmus(str(path)), specs, budget=budget)
            yield path, checked.counted, checked
