"""A schedule: in which order the transactions of a litmus test start and commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from isolitmus.model.errors import LitmusError, near

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["Action", "Schedule", "Step"]

Action = Literal["before", "park-init", "park-prepare", "park-commit", "start", "commit", "both"]

ORDER: dict[Action, int] = {
    "before": 0,
    "park-init": 1,
    "park-prepare": 2,
    "park-commit": 3,
    "start": 3,
    "commit": 4,
}
"""The steps of a transaction in the only order in which they make sense; two with one number do one
thing."""
STEP = re.compile(r"(?P<name>[^.]*)(?:\.(?P<action>[^\[\]]*)(?:\[(?P<number>[^\]]*)\])?)?")


@dataclass(frozen=True, slots=True)
class Step:
    """``x.start`` (takes its snapshot and reads), ``x.commit`` (tries to commit), ``x`` (both).

    ``x.before``: its client does what it does outside the transaction, else just before the start.
    ``x.park-init``: the statement is analysed, its snapshot not taken; ``x.park-prepare``: it has
    read and written its data files; ``x.park-commit``: the same as ``x.start``.
    """

    transaction: str
    action: Action

    def __str__(self) -> str:
        return self.transaction if self.action == "both" else f"{self.transaction}.{self.action}"

    @property
    def begins(self) -> bool:
        """Whether the statement runs from here on, where it was not under way already."""
        return self.action != "before"

    @property
    def reads(self) -> bool:
        """Whether, after this step, the snapshot is taken."""
        return self.action not in ("before", "park-init")

    @property
    def ends(self) -> bool:
        """Whether this is the transaction's last step."""
        return self.action in ("commit", "both")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order; every transaction starts once and, after that, commits once.

    >>> str(Schedule.parse("a.start b a.commit", {"a", "b"}))
    'a.start b a.commit'
    """

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.steps))

    @classmethod
    def parse(
        cls,
        text: str,
        transactions: Collection[str],
        sessions: Mapping[str, str] | None = None,
    ) -> Schedule:
        """Read and validate; LitmusError says which step is wrong and what would have been right.

        ``sessions`` are the transactions that share a session, with its name: of those of one
        session only one may be under way at a time.
        """
        steps: list[Step] = []
        taken: dict[str, list[Step]] = {}
        sessions = sessions or {}
        busy: dict[str, str] = {}
        for word in text.split():
            step = _step(word, transactions)
            before = taken.setdefault(step.transaction, [])
            _check(step, before)
            session = sessions.get(step.transaction)
            if session is not None:
                other = busy.setdefault(session, step.transaction)
                if other != step.transaction:
                    raise LitmusError(
                        f"schedule step '{word}' comes while {other} is under way, which is in the"
                        f" same session '{session}'; put {other}.commit earlier"
                    )
                if step.ends:
                    del busy[session]
            before.append(step)
            steps.append(step)
        for name in transactions:
            begun = [step for step in taken.get(name, ()) if step.begins]
            if not begun:
                raise LitmusError(f"the schedule never starts {name}; add '{name}'")
            if not begun[-1].ends:
                raise LitmusError(f"the schedule never ends {name}; add '{name}.commit'")
        return cls(tuple(steps))


def _step(word: str, transactions: Collection[str]) -> Step:
    found = STEP.fullmatch(word)
    name = found["name"] if found else word.partition(".")[0]
    if name not in transactions:
        raise LitmusError(f"schedule step '{word}' names no transaction{near(name, transactions)}")
    action = found["action"] if found else ""
    if action is None:
        return Step(name, "both")
    if action not in ORDER:
        known = [f"{name}.{known}" for known in ORDER]
        raise LitmusError(
            f"schedule step '{word}' is none that there is;"
            f" use {', '.join(known[:-1])}, {known[-1]} or {name}"
        )
    number = found["number"] if found else None
    if number is None:
        return Step(name, cast("Action", action))
    if action not in ("start", "commit"):
        raise LitmusError(f"schedule step '{word}': only start and commit take a number")
    if number != "1":
        raise LitmusError(
            f"schedule step '{word}': a statement's commits come one right after the other;"
            f" use {name}.{action}"
        )
    return Step(name, cast("Action", action))


def _check(step: Step, before: list[Step]) -> None:
    """LitmusError for a step that cannot come after those that its transaction has taken."""
    name, last = step.transaction, before[-1] if before else None
    if last is not None and last.ends:
        did = "commits" if step.action == "commit" else "starts"
        raise LitmusError(f"schedule step '{step}' {did} {name} a second time")
    begun = last is not None and last.begins
    if step.action == "both":
        if begun:
            raise LitmusError(
                f"schedule step '{step}' starts {name} a second time; use {name}.commit"
            )
        return
    if step.action == "commit" and not begun:
        raise LitmusError(
            f"schedule step '{step}' commits {name} before it starts; put {name}.start earlier"
        )
    if last is not None and ORDER[last.action] >= ORDER[step.action]:
        twice = ORDER[last.action] == ORDER[step.action]
        raise LitmusError(
            f"schedule step '{step}' {'starts ' + name + ' a second time' if twice else f'comes after {last}'}"
            f"; the order is {', '.join(ORDER)}"
        )
