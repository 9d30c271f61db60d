"""The histories that ``check`` is given: litmus tests, logs of Delta tables, what other tools recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.checks import check
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.number import many
from isolitmus.model.verdict import Needs
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import levels, litmus_files
from isolitmus.specs.delta_log import is_delta_table
from isolitmus.specs.files import is_folder, is_there
from isolitmus.specs.formats import format_named
from isolitmus.specs.recorded.recording import RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks import Checked
    from isolitmus.model.budget import Budget
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["FORMATS", "judged_files"]

FORMATS = ("auto", "litmus", "delta", *RECORDED)


def judged_files(
    names: Sequence[str], asked: Sequence[str] | None, format_: str, budget: Budget
) -> Iterator[tuple[Path, str, Checked]]:
    """Each history with what was counted of it, in words; ``asked`` None: the levels that it can be asked."""
    for name in names:
        match _format(name, format_):
            case "delta":
                yield _of_log(Path(name), asked, budget)
            case "litmus":
                for path in litmus_files(name):
                    test = litmus(str(path))
                    checked = check(test, _specs(asked, test), budget=budget)
                    yield path, checked.counted, checked if asked else _answered(checked)
            case recorded:
                yield from _recorded(Path(name), asked, recorded, budget)


def _format(name: str, format_: str) -> str:
    """What a name stands for; of what other tools recorded, as much as was said."""
    path = Path(name)
    if format_ != "auto":
        return format_
    if is_delta_table(path):
        return "delta"
    if not is_there(path) or name.endswith(".toml"):
        return "litmus"
    return "litmus" if is_folder(path) and any(path.rglob("*.toml")) else "auto"


def _specs(asked: Sequence[str] | None, test: Litmus | HistoryTest | None) -> list[Spec]:
    """The levels that are asked of a test, or of the log of a table; all: those of the catalogue."""
    if asked:
        return [spec(name) for name in asked]
    log = () if test is None or isinstance(test, HistoryTest) else (format_named(test.format).log,)
    return [spec(name) for name in levels(*log)]


def _answered(checked: Checked) -> Checked:
    """The verdicts without levels that need what the history does not have."""
    said = {name: v for name, v in checked.levels.items() if not isinstance(v, Needs)}
    return replace(checked, levels=said)


def _of_log(table: Path, asked: Sequence[str] | None, budget: Budget) -> tuple[Path, str, Checked]:
    from isolitmus.checker.auditing.judging import check_log

    checked = check_log(table, _specs(asked, None), budget=budget)
    files = many(checked.operations, "file added or removed", "files added and removed")
    counted = f"{many(checked.transactions, 'commit')}, {files}"
    return table, counted, checked if asked else _answered(checked)


def _recorded(
    path: Path, asked: Sequence[str] | None, format_: str, budget: Budget
) -> Iterator[tuple[Path, str, Checked]]:
    from isolitmus.checker.recorded_checks import ASKED, check_recorded
    from isolitmus.specs.recorded.finding import recorded_files, recorded_history

    for file in recorded_files(path):
        history = recorded_history(file, format_)
        checked = check_recorded(str(file), history, asked or ASKED, budget=budget)
        yield file, repr(history), checked
