"""Schedule: order in which the transactions of a litmus test start and commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from isolitmus.model.display import count_of
from isolitmus.model.errors import LitmusError, near

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Action = Literal[
    "before",
    "park-init",
    "park-prepare",
    "park-commit",
    "start",
    "statement",
    "scan",
    "step",
    "commit",
    "rollback",
    "both",
]

ORDER: dict[Action, int] = {
    "before": 0,
    "park-init": 1,
    "park-prepare": 2,
    "park-commit": 3,
    "start": 3,
    "commit": 4,
}
"""Position of each step of a single-statement transaction in their only valid order; two steps with
the same number are the same.
"""
STEP = re.compile(r"(?P<name>[^.\[]*)(?:\.(?P<action>[^\[\]]*))?(?:\[(?P<number>[^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a schedule: ``x.start`` (snapshot and reads), ``x.commit`` (commit attempt), ``x``
    (both).

    * ``x.before``: the client acts outside the transaction; otherwise it does so just before the
      start.
    * ``x.park-init``: the statement is analysed, its snapshot is not taken.
    * ``x.park-prepare``: it has read its input and written its data files.
    * ``x.park-commit``: the same as ``x.start``.

    For a transaction with a sequence of statements, ``x.start`` runs none of them, ``x[1]`` runs
    the first (``number`` 1), ``x.rollback`` rolls it back, and ``x`` is all of it. If statements
    are scans (``model.format``, ``steps``), ``x.scan[2]`` runs until the second row has been
    emitted. ``x.step[2]`` runs two steps of its plan: each entry that a scan reaches, the end of a
    scan, and the end of a statement is one step.
    """

    transaction: str
    action: Action
    number: int | None = None

    def __str__(self) -> str:
        if self.action == "both":
            return self.transaction
        if self.action == "statement":
            return f"{self.transaction}[{self.number}]"
        if self.action in ("scan", "step"):
            return f"{self.transaction}.{self.action}[{self.number}]"
        return f"{self.transaction}.{self.action}"

    @property
    def begins(self) -> bool:
        """True if the statement is running after this step."""
        return self.action != "before"

    @property
    def reads(self) -> bool:
        """True if the snapshot has been taken after this step."""
        return self.action not in ("before", "park-init")

    @property
    def ends(self) -> bool:
        """True if this is the last step of the transaction."""
        return self.action in ("commit", "rollback", "both")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order; every transaction starts once and then ends once.

    Examples
    --------
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
        sequences: Mapping[str, int] | None = None,
        *,
        scans: bool = False,
    ) -> Schedule:
        """Parse and validate a schedule.

        Parameters
        ----------
        text : str
            Steps, separated by blanks.
        transactions : collection of str
            Names of the transactions.
        sessions : mapping of str to str, optional
            Session of each transaction that shares one; only one transaction of a session is active
            at a time.
        sequences : mapping of str to int, optional
            Number of statements of each transaction that is a sequence of statements.
        scans : bool
            Whether sequences may be stopped at a row.

        Raises
        ------
        LitmusError
            If a step is invalid; the message names it and a correction.

        Examples
        --------
        >>> str(Schedule.parse("a[1] b a[2] a.commit", {"a", "b"}, sequences={"a": 2}))
        'a[1] b a[2] a.commit'
        """
        steps: list[Step] = []
        taken: dict[str, list[Step]] = {}
        sessions, sequences = sessions or {}, sequences or {}
        busy: dict[str, str] = {}
        for word in text.split():
            step = _step(word, transactions, sequences, scans=scans)
            before = taken.setdefault(step.transaction, [])
            if step.transaction in sequences:
                _check_sequence(step, before, sequences[step.transaction])
            else:
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


def _step(
    word: str, transactions: Collection[str], sequences: Mapping[str, int], *, scans: bool
) -> Step:
    """Parse a step of a schedule; raise LitmusError if no transaction has it."""
    found = STEP.fullmatch(word)
    name = found["name"] if found else word.partition(".")[0]
    if scans and (whose := name.partition("[")[0]) in transactions and name != whose:
        raise LitmusError(
            f"schedule step '{word}' is of one statement; rows are counted through all of {whose}:"
            f" use {whose}.scan[1] and further rows"
        )
    if name not in transactions:
        raise LitmusError(f"schedule step '{word}' names no transaction{near(name, transactions)}")
    action, number = (found["action"], found["number"]) if found else ("", None)
    if action is None and number is None:
        return Step(name, "both")
    if name in sequences:
        return _sequence_step(word, name, action, number, sequences[name], scans=scans)
    if action == "rollback" or action is None:
        does = "rolls back" if action else "runs a part of"
        raise LitmusError(
            f"schedule step '{word}' {does} {name}, which is one statement and commits by itself;"
            " of a"
            f' sequence, {name} = ["…", "…"], it is a step'
        )
    if action not in ORDER:
        known = [f"{name}.{known}" for known in ORDER]
        raise LitmusError(
            f"schedule step '{word}' is none that there is;"
            f" use {', '.join(known[:-1])}, {known[-1]} or {name}"
        )
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


def _sequence_step(
    word: str, name: str, action: str | None, number: str | None, count: int, *, scans: bool
) -> Step:
    """Return the step of a transaction with a sequence of `count` statements."""
    if action is None and number is not None and number.isdecimal() and 1 <= int(number) <= count:
        return Step(name, "statement", int(number))
    if number is None and action in ("before", "start", "commit", "rollback"):
        return Step(name, cast("Action", action))
    stops = scans and action in ("scan", "step")
    if stops and number is not None and number.isdecimal() and int(number):
        return Step(name, cast("Action", action), int(number))
    some = f"{name}[1]" if count == 1 else f"{name}[1] to {name}[{count}]"
    some = f"{name}.scan[1] and further rows, {some}" if scans else some
    raise LitmusError(
        f"schedule step '{word}' is not one of a sequence of {count_of(count, 'statement')}; use"
        f" {name}.start, {some}, {name}.commit, {name}.rollback or {name}"
    )


def _check_sequence(step: Step, before: list[Step], count: int) -> None:
    """Raise LitmusError if a step of a sequence cannot follow earlier ones of its transaction."""
    name, last = step.transaction, before[-1] if before else None
    ran = max((taken.number or 0 for taken in before if taken.action == "statement"), default=0)
    came = max((taken.number or 0 for taken in before if taken.action == step.action), default=0)
    if last is not None and last.ends:
        raise LitmusError(f"schedule step '{step}' comes after {last}, which ended {name}")
    stopped = last is not None and last.action in ("scan", "step")
    if step.action == "both" and not stopped and any(taken.begins for taken in before):
        raise LitmusError(
            f"schedule step '{step}' starts {name} a second time; use {name}[{min(ran + 1, count)}]"
        )
    if step.action in ("before", "start") and last is not None and last.begins:
        raise LitmusError(f"schedule step '{step}' comes after {last}; put it first")
    if step.action == "statement" and step.number != ran + 1:
        wanted = f"{name}.commit" if ran == count else f"{name}[{ran + 1}]"
        raise LitmusError(f"schedule step '{step}' comes where {wanted} is due")
    if step.action in ("scan", "step") and (step.number or 0) <= came:
        raise LitmusError(
            f"schedule step '{step}' comes after {name}.{step.action}[{came}]; a scan goes on"
        )
    if step.action == "commit" and ran < count and not (stopped and ran == count - 1):
        raise LitmusError(f"schedule step '{step}' comes before {name}[{ran + 1}]")
    if step.action == "rollback" and (last is None or not last.begins):
        raise LitmusError(
            f"schedule step '{step}' comes before {name} starts; put {name}.start earlier"
        )


def _check(step: Step, before: list[Step]) -> None:
    """Raise LitmusError if a step cannot follow earlier ones of its transaction."""
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
            f"schedule step '{step}'"
            f" {'starts ' + name + ' a second time' if twice else f'comes after {last}'}; the order"
            f" is {', '.join(ORDER)}"
        )
