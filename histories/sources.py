"""Sources of histories that other tools recorded, and of PostgreSQL's isolation tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.checks.history_sources import HistorySource, answered, specs_to_check
from isolitmus.histories.readers import ENDINGS
from isolitmus.model.errors import Limit, RecordingError
from isolitmus.specs.disk.input_files import is_folder, is_there, paths_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.checks.history_sources import Judged, Refuse
    from isolitmus.model.budget import Budget

PERMUTED = ".spec"
"""File extension of PostgreSQL's isolation tests."""


def _permuted_files(name: str) -> list[tuple[str, Path]]:
    path = Path(name)
    found = paths_below(path, PERMUTED) if is_folder(path) else []
    return [("pg", each) for each in found or [path]]


def _judge_permutations(
    path: Path, asked: Sequence[str] | None, budget: Budget, refuse: Refuse
) -> Judged:
    """Yield the verdicts of permutations; those that cannot be read are passed to ``refuse``."""
    from isolitmus.checker.checks.history_check import check
    from isolitmus.histories.pg_isolation.permutation_history import permutation_histories
    from isolitmus.model.litmus import HistoryTest

    for found in permutation_histories(path):
        if isinstance(found, RecordingError):
            refuse(str(path), found)
            continue
        test = HistoryTest(f"{path}, {found.name}", "", "", found.history)
        checked = check(test, specs_to_check(asked, test), budget=budget)
        counted = "; ".join([checked.counted, *found.ends])
        yield test.name, counted, answered(checked, asked, test.name)


def _recorded_files(format_: str, name: str) -> list[tuple[str, Path]]:
    """Return the recorded histories of a name, and the permutations beside them in a folder."""
    from isolitmus.histories.readers.recorded_history import recorded_files

    path = Path(name)
    specs = paths_below(path, PERMUTED) if format_ == "auto" and is_folder(path) else []
    found = [(format_, each) for each in recorded_files(path) if not specs or each != path]
    return [*(("pg", each) for each in specs), *found]


def _judge_recorded(
    format_: str, path: Path, asked: Sequence[str] | None, budget: Budget, _refuse: Refuse
) -> Judged:
    from isolitmus.histories.blackbox.check import check_recorded, refuse_unknown_levels
    from isolitmus.histories.readers.recorded_history import recorded_history

    refuse_unknown_levels(str(path), asked or ())
    try:
        with budget.interrupting():
            history = recorded_history(path, format_)
    except Limit as limit:
        raise type(limit)(f"{path}: {limit} before it was read") from None
    yield str(path), repr(history), check_recorded(str(path), history, asked, budget=budget)


def _source(format_: str) -> HistorySource:
    return HistorySource(
        format_,
        lambda name: is_there(Path(name)) or Path(name).suffix in ENDINGS,
        partial(_recorded_files, format_),
        partial(_judge_recorded, format_),
    )


PERMUTATIONS = HistorySource(
    "pg", lambda name: Path(name).suffix == PERMUTED, _permuted_files, _judge_permutations
)
AUTO, AWDIT, COBRA, DBCOP, ELLE, PLUME = map(
    _source, ("auto", "awdit", "cobra", "dbcop", "elle", "plume")
)
