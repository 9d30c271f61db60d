"""Sources of histories for ``check``: plug-ins, each with its files and its verdicts.

Litmus tests and Delta logs are sources of this module. Other parts and packages add theirs under
the names of their formats (``model.plugins``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.judge.level_forms import NAMED_FORMS
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.registry import Registry
from isolitmus.model.verdict import Needs
from isolitmus.specs.disk.input_files import is_delta_table, is_folder, is_there, paths_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.model.budget import Budget
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

    Refuse = Callable[[str, IsolitmusError], object]
    Judged = Iterator[tuple[str, str, HistoryVerdicts]]


@dataclass(frozen=True, slots=True)
class HistorySource:
    """Source of histories in one format, as a record of functions."""

    name: str
    """Name of the format."""
    owns: Callable[[str], bool]
    """Return whether a file, a folder or a name is of this source, if no format was given."""
    files: Callable[[str], list[tuple[str, Path]]]
    """Return the format and path of each history that a name stands for; IsolitmusError if none."""
    judge: Callable[[Path, Sequence[str] | None, Budget, Refuse], Judged]
    """Yield name, size in words and verdicts of each history of a file.

    The levels are those with these names, None for all that a history supports. A history that
    cannot be judged is passed to the last function; IsolitmusError if the file cannot be read.
    """


SOURCES: Registry[HistorySource] = Registry("history source", check=HistorySource)
FORMATS = tuple(SOURCES.shipped)
"""Names of our formats, as the command line lists them."""
DETECTED = ("delta", "litmus", "pg", "auto")
"""Sources that are asked in this order whether they own a name, if no format was given."""


def check_files(
    names: Sequence[str],
    asked: Sequence[str] | None,
    format_: str,
    budget: Budget,
    refuse: Refuse,
) -> Iterator[tuple[str, str, HistoryVerdicts]]:
    """Yield the verdicts of each history in some files, with the file and the history's size in
    words.

    A file that cannot be read, or lacks what a level needs, is reported by ``refuse``, and the
    others are still checked. Files left when the budget is spent are reported too, except the first
    file.

    Parameters
    ----------
    names : sequence of str
        Files, folders, tables or names of tests.
    asked : sequence of str or None
        Names of levels; None for all that a history supports.
    format_ : str
        One of `FORMATS` or of another package; ``auto`` detects the format of each.
    budget : Budget
        Limits of time and memory.
    refuse : callable
        Called with the name and the error of each history that is not checked.
    """
    begun = False
    for name in names:
        try:
            found = history_files(name, format_)
        except IsolitmusError as error:
            refuse(name, error)
            continue
        for kind, path in found:
            limit = budget.spent() if begun else None
            begun = True
            if limit is None:
                yield from check_file(kind, path, asked, budget, refuse)
            else:
                refuse(str(path), limit)


def check_file(
    kind: str, path: Path, asked: Sequence[str] | None, budget: Budget, refuse: Refuse
) -> Judged:
    """Yield the verdicts of the histories in one file, as `check_files` does.

    ``kind`` is the format of the file, as `history_files` returns it.
    """
    try:
        if kind != "litmus":
            refuse_forms(path, asked)
        yield from SOURCES.named(kind).judge(path, asked, budget, refuse)
    except IsolitmusError as error:
        refuse(str(path), error)


def history_files(name: str, format_: str) -> list[tuple[str, Path]]:
    """Return the path and the format of each history that a name stands for.

    Raises
    ------
    IsolitmusError
        If the name stands for no history, or the part of isolitmus that reads it is missing.
    """
    if format_ != "auto":
        return SOURCES.named(format_).files(name)
    here = [SOURCES.named(kind) for kind in DETECTED if kind in SOURCES.own_names()]
    owner = next((source for source in here if source.owns(name)), None)
    if owner is None and is_there(Path(name)):
        owner = SOURCES.named("auto")
    return (owner or LITMUS).files(name)


def refuse_forms(path: Path, asked: Sequence[str] | None) -> None:
    """Raise IsolitmusError if a form of a level is asked of a history without statements."""
    for name in asked or ():
        if name in NAMED_FORMS:
            raise _lacking(path.name, name, Needs(("statements",)))


def specs_to_check(asked: Sequence[str] | None, test: Litmus | HistoryTest | None) -> list[Spec]:
    """Return the levels to check on a test or a table log; default: all levels of the catalogue."""
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.specs.files.spec_catalogue import levels, spec
    from isolitmus.specs.registries import format_named

    if asked:
        return [spec(name) for name in asked if name not in NAMED_FORMS]
    log = () if test is None or isinstance(test, HistoryTest) else (format_named(test.format).log,)
    return [spec(name) for name in levels(*log)]


def answered(checked: HistoryVerdicts, asked: Sequence[str] | None, name: str) -> HistoryVerdicts:
    """Return the verdicts without levels that the history cannot support; IsolitmusError if one was
    asked.
    """
    said = {name: v for name, v in checked.levels.items() if not isinstance(v, Needs)}
    lacking = [level for level in checked.levels if level not in said]
    if asked and lacking:
        raise _lacking(name, lacking[0], checked.levels[lacking[0]])
    return replace(checked, levels=said)


def _lacking(name: str, level: str, needs: Verdict) -> IsolitmusError:
    return IsolitmusError(f"{name}: {level} {needs}, which this history does not have")


def _is_litmus(name: str) -> bool:
    path = Path(name)
    return name.endswith(".toml") or (is_folder(path) and bool(paths_below(path, ".toml")))


def _litmus_files(name: str) -> list[tuple[str, Path]]:
    from isolitmus.specs.files.catalogue import litmus_files

    return [("litmus", each) for each in litmus_files(name)]


def _judge_litmus(
    path: Path, asked: Sequence[str] | None, budget: Budget, _refuse: Refuse
) -> Judged:
    from isolitmus.checker.checks.history_check import check
    from isolitmus.specs.files.catalogue import litmus

    forms = [name for name in asked or () if name in NAMED_FORMS]
    test = litmus(str(path))
    checked = check(test, specs_to_check(asked, test), forms=forms, budget=budget)
    yield str(path), checked.counted, answered(checked, asked, path.name)


def _judge_log(table: Path, asked: Sequence[str] | None, budget: Budget, _refuse: Refuse) -> Judged:
    from isolitmus.checker.checks.log_check import check_log

    checked = check_log(table, specs_to_check(asked, None), budget=budget)
    files = count_of(checked.operations, "file added or removed", "files added and removed")
    counted = f"{count_of(checked.transactions, 'commit')}, {files}"
    yield str(table), counted, answered(checked, asked, table.name)


LITMUS = HistorySource("litmus", _is_litmus, _litmus_files, _judge_litmus)
DELTA_LOG = HistorySource(
    "delta",
    lambda name: is_delta_table(Path(name)),
    lambda name: [("delta", Path(name))],
    _judge_log,
)
