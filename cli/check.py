"""``isolitmus check``: what levels say of histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.checks import check as judge
from isolitmus.checker.telling.words import explain
from isolitmus.cli.output import named, print_json, say
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.verdict import Needs
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import litmus_files
from isolitmus.specs.delta_log import is_delta_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks import Checked
    from isolitmus.model.spec import Spec

__all__ = ["check"]

FORMATS = ("auto", "litmus", "delta")


def check(names: list[str], levels: str, format_: str, *, as_json: bool) -> int:
    """Exit status 1 if a level forbids a history, 3 if one is unknown, else 0."""
    if format_ not in FORMATS:
        raise IsolitmusError(f"--format is '{format_}'{near(format_, FORMATS)}")
    specs = [spec(name) for name in named("level", levels)]
    documents = []
    verdicts: list[str] = []
    for path, counted, checked in _checked(names, specs, format_):
        for name, verdict in checked.levels.items():
            if isinstance(verdict, Needs):
                raise IsolitmusError(
                    f"{path.name}: {name} {verdict}, which this history does not have"
                )
        verdicts += map(str, checked.levels.values())
        documents.append(checked.to_json(str(path)))
        if not as_json:
            if len(documents) > 1:
                say()
            say(f"{checked.name}: {counted}")
            for asked in specs:
                for line in explain(checked.levels[asked.name], asked):
                    say(f"  {line}")
            if checked.assumptions:
                say(
                    f"  Assumed, because the history does not say: {'; '.join(checked.assumptions)}."
                )
    if as_json:
        print_json(documents)
    return 1 if "forbidden" in verdicts else 3 if "unknown" in verdicts else 0


def _checked(
    names: list[str], specs: Sequence[Spec], format_: str
) -> Iterator[tuple[Path, str, Checked]]:
    """Each history with what was counted of it, in words."""
    for name in names:
        if format_ == "delta" or (format_ == "auto" and is_delta_table(Path(name))):
            from isolitmus.checker.auditing.judging import check_log

            checked = check_log(Path(name), specs)
            files = f"{checked.operations:,} files added and removed"
            yield Path(name), f"{checked.transactions:,} commits, {files}", checked
            continue
        for path in litmus_files(name):
            checked = judge(litmus(str(path)), specs)
            counted = f"{checked.transactions} transactions, {checked.operations} reads and writes"
            yield path, counted, checked
