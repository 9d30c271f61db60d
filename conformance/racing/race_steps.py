"""The steps of a race in their order, as a timeline; what others have committed meanwhile stands among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.timelines import Timeline
from isolitmus.model.run import Run, TransactionRun
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs.logs.delta_log import commits_since, latest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schedule import Action

__all__ = ["RaceSteps"]


class RaceSteps:
    """What a race has done to a table, step by step."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._began = latest(table)
        self._steps: list[tuple[int, Step]] = []

    def take(self, name: str, action: Action) -> None:
        """Something takes its next step, on the table as it is now."""
        self._steps.append((latest(self._table), Step(name, action)))

    def timeline(self, seen: Mapping[str, TransactionRun]) -> Timeline:
        """The steps until now, with what became of each; what it says of nothing else that was committed is of others."""
        runs = dict(seen)
        own = {version for each in seen.values() for version in each.commits}
        others = {
            commit.version: f"version {commit.version} ({commit.operation or 'of nobody'})"
            for commit in commits_since(self._table, self._began)
            if commit.version not in own
        }
        steps: list[Step] = []
        before = self._began
        for newest, step in [*self._steps, (latest(self._table), None)]:
            for version in range(before + 1, newest + 1):
                if version in others:
                    name = others[version]
                    runs[name] = TransactionRun("committed", version=version, commits=(version,))
                    steps.append(Step(name, "both"))
            before = newest
            steps += [] if step is None else [step]
        run = Run("a race", "delta", "", "", self._began, runs, ())
        return Timeline(Schedule(tuple(steps)), run)
