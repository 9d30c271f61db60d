"""A schedule: in which order the transactions of a litmus test start and commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.model.errors import LitmusError, near

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Schedule", "Step"]

Action = Literal["start", "commit", "both"]


@dataclass(frozen=True, slots=True)
class Step:
    """``x.start`` (takes its snapshot and reads), ``x.commit`` (tries to commit), ``x`` (both)."""

    transaction: str
    action: Action

    def __str__(self) -> str:
        return self.transaction if self.action == "both" else f"{self.transaction}.{self.action}"


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
    def parse(cls, text: str, transactions: Collection[str]) -> Schedule:
        """Read and validate; LitmusError says which step is wrong and what would have been right."""
        steps: list[Step] = []
        started: set[str] = set()
        ended: set[str] = set()
        for word in text.split():
            name, dot, action = word.partition(".")
            if name not in transactions:
                raise LitmusError(
                    f"schedule step '{word}' names no transaction{near(name, transactions)}"
                )
            match action:
                case "start":
                    step = Step(name, "start")
                case "commit":
                    step = Step(name, "commit")
                case "" if not dot:
                    step = Step(name, "both")
                case _:
                    raise LitmusError(
                        f"schedule step '{word}' is not one that this version carries out;"
                        f" use {name}.start, {name}.commit or {name}"
                    )
            if step.action in ("start", "both"):
                if name in started:
                    raise LitmusError(f"schedule step '{word}' starts {name} a second time")
                started.add(name)
            if step.action in ("commit", "both"):
                if name not in started:
                    raise LitmusError(
                        f"schedule step '{word}' commits {name} before it starts;"
                        f" put {name}.start earlier"
                    )
                if name in ended:
                    raise LitmusError(f"schedule step '{word}' commits {name} a second time")
                ended.add(name)
            steps.append(step)
        for name in transactions:
            if name not in started:
                raise LitmusError(f"the schedule never starts {name}; add '{name}'")
            if name not in ended:
                raise LitmusError(f"the schedule never ends {name}; add '{name}.commit'")
        return cls(tuple(steps))
