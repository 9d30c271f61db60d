"""Histories given to ``check``: litmus tests, Delta logs, recordings, PostgreSQL's tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.judge.level_forms import NAMED_FORMS
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, RecordingError
from isolitmus.model.verdict import Needs
from isolitmus.specs.disk.input_files import is_folder, is_there, paths_below
from isolitmus.specs.histories import ENDINGS, RECORDED
from isolitmus.specs.logs.delta_log import is_delta_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.model.budget import Budget
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

    Refuse = Callable[[str, IsolitmusError], object]

__all__ = ["FORMATS", "check_file", "check_files", "history_files"]

FORMATS = ("auto", "litmus", "delta", "pg", *RECORDED)
"""Names of formats that the command line accepts."""
PERMUTED = ".spec"
"""File extension of PostgreSQL's isolation tests."""


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
        One of `FORMATS`.
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
) -> Iterator[tuple[str, str, HistoryVerdicts]]:
    """Yield the verdicts of the histories in one file, as `check_files` does.

    ``kind`` is the format of the file, as `history_files` returns it.
    """
    judged = _judged(kind, path, asked, budget, refuse)
    try:
        yield from judged
    except IsolitmusError as error:
        refuse(str(path), error)


def history_files(name: str, format_: str) -> list[tuple[str, Path]]:
    """Return the path and the format of each history that a name stands for.

    Raises
    ------
    IsolitmusError
        If the name stands for no history.
    """
    path = Path(name)
    kind = _format(name, format_)
    if kind == "delta":
        return [(kind, path)]
    if kind == "litmus":
        from isolitmus.specs.files.catalogue import litmus_files

        return [(kind, each) for each in litmus_files(name)]
    from isolitmus.specs.histories.recorded_history import recorded_files

    specs = paths_below(path, PERMUTED) if is_folder(path) else []
    if kind == "pg":
        return [(kind, each) for each in specs or [path]]
    others = recorded_files(path)
    if kind == "auto" and specs:
        return [("pg", each) for each in specs] + [(kind, p) for p in others if p != path]
    return [(kind, each) for each in others]


def _judged(
    kind: str,
    path: Path,
    asked: Sequence[str] | None,
    budget: Budget,
    refuse: Refuse,
) -> Iterator[tuple[str, str, HistoryVerdicts]]:
    """Yield the histories of a file; IsolitmusError if one lacks what a level needs."""
    forms = [name for name in asked or () if name in NAMED_FORMS]
    if forms and kind != "litmus":
        raise _lacking(path.name, forms[0], Needs(("statements",)))
    match kind:
        case "delta":
            counted, checked = _of_log(path, budget, _specs(asked, None))
            yield str(path), counted, _answered(checked, asked, path.name)
        case "litmus":
            from isolitmus.checker.checks.history_check import check
            from isolitmus.specs.files.catalogue import litmus

            test = litmus(str(path))
            checked = check(test, _specs(asked, test), forms=forms, budget=budget)
            yield str(path), checked.counted, _answered(checked, asked, path.name)
        case "pg":
            yield from _permuted(path, asked, budget, refuse)
        case recorded:
            yield str(path), *_recorded(path, asked, recorded, budget)


def _permuted(
    path: Path, asked: Sequence[str] | None, budget: Budget, refuse: Refuse
) -> Iterator[tuple[str, str, HistoryVerdicts]]:
    """Yield the verdicts of each permutation; permutations that cannot be read are passed to
    ``refuse``.
    """
    from isolitmus.checker.checks.history_check import check
    from isolitmus.checker.pg_isolation.permutation_history import permutation_histories
    from isolitmus.model.litmus import HistoryTest

    for found in permutation_histories(path):
        if isinstance(found, RecordingError):
            refuse(str(path), found)
            continue
        test = HistoryTest(f"{path}, {found.name}", "", "", found.history)
        checked = check(test, _specs(asked, test), budget=budget)
        counted = "; ".join([checked.counted, *found.ends])
        yield test.name, counted, _answered(checked, asked, test.name)


def _format(name: str, format_: str) -> str:
    """Return the format of a name; "auto" for a recorded history, unless its format was given."""
    path = Path(name)
    if format_ != "auto":
        return format_
    if is_delta_table(path):
        return "delta"
    if path.suffix == PERMUTED:
        return "pg"
    if name.endswith(".toml") or not (is_there(path) or path.suffix in ENDINGS):
        return "litmus"
    return "litmus" if is_folder(path) and paths_below(path, ".toml") else "auto"


def _specs(asked: Sequence[str] | None, test: Litmus | HistoryTest | None) -> list[Spec]:
    """Return the levels to check on a test or a table log; default: all levels of the catalogue."""
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.specs.files.catalogue import levels, spec
    from isolitmus.specs.registries.formats import format_named

    if asked:
        return [spec(name) for name in asked if name not in NAMED_FORMS]
    log = () if test is None or isinstance(test, HistoryTest) else (format_named(test.format).log,)
    return [spec(name) for name in levels(*log)]


def _answered(checked: HistoryVerdicts, asked: Sequence[str] | None, name: str) -> HistoryVerdicts:
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


def _of_log(table: Path, budget: Budget, specs: list[Spec]) -> tuple[str, HistoryVerdicts]:
    """Return a summary of a Delta log and its verdicts."""
    from isolitmus.checker.checks.log_check import check_log

    checked = check_log(table, specs, budget=budget)
    files = count_of(checked.operations, "file added or removed", "files added and removed")
    return f"{count_of(checked.transactions, 'commit')}, {files}", checked


def _recorded(
    path: Path, asked: Sequence[str] | None, format_: str, budget: Budget
) -> tuple[str, HistoryVerdicts]:
    """Return a summary of a recorded history and its verdicts."""
    from isolitmus.checker.checks.blackbox_check import check_recorded, refuse_unknown_levels
    from isolitmus.specs.histories.recorded_history import recorded_history

    refuse_unknown_levels(str(path), asked or ())
    try:
        with budget.interrupting():
            history = recorded_history(path, format_)
    except Limit as limit:
        raise type(limit)(f"{path}: {limit} before it was read") from None
    return repr(history), check_recorded(str(path), history, asked, budget=budget)
