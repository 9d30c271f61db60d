"""How what a race has parked ended: by the table's log, in Delta's words, and in the model's."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.conformance.delta.transaction_outcome import first_words
from isolitmus.conformance.delta.watching import made_by
from isolitmus.model.display import Readable
from isolitmus.model.run import TOOK_EFFECT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.conformance.delta.watching import Attempt
    from isolitmus.conformance.racing.race_prediction import Prediction
    from isolitmus.model.delta.log import LogCommit

__all__ = ["Ending", "overtakers"]


@dataclass(frozen=True, slots=True)
class Ending(Readable):
    """How a parked callable or statement ended, by the table's log. Its ``repr`` is a line, as ``assert
    ending.committed, ending`` shows it; as a text it has the reasons.
    """

    name: str
    """What it was parked as."""
    outcome: str
    """As of a transaction in a run: ``committed``, ``no-op`` (nothing was recorded), a conflict's class, or
    ``error:CLASS``."""
    error_class: str | None
    """That of the exception, if Delta gave it one."""
    read_version: int | None
    """The version that it read: that of its first attempt, or else of the first transaction that it began;
    None if it began none."""
    attempts: tuple[Attempt, ...]
    """Its transactions on the table that came to their commit."""
    overtook: tuple[LogCommit, ...]
    """The commits between what an attempt read and what it made, or its failure."""
    error: BaseException | None = None
    """What it raised."""
    prediction: Prediction | None = None
    """What the model says of it."""
    unpredicted: str = ""
    """Of a statement that was given as a text, why the model says nothing of it; empty if it does, and of a
    callable.
    """

    @property
    def committed(self) -> bool:
        """Whether it made a version, and did not fail."""
        return self.outcome == "committed"

    @property
    def conflict(self) -> bool:
        """Whether Delta refused it for what others had committed."""
        return self.outcome not in TOOK_EFFECT and not self.outcome.startswith("error:")

    def raise_if_conflict(self) -> None:
        """Raise what Delta raised, if it refused it for what others had committed, for a test of what catches that."""
        if self.conflict and self.error is not None:
            raise self.error

    @property
    def message(self) -> str:
        """What it raised, in the words of Delta or whoever it was; empty if it raised nothing."""
        return "" if self.error is None else first_words(self.error)

    @property
    def commits(self) -> tuple[int, ...]:
        """The versions that it made."""
        return made_by(self.attempts)

    @property
    def version(self) -> int | None:
        """The first version that it made; None if it failed or recorded nothing."""
        return self.commits[0] if self.outcome == "committed" else None

    @property
    def again(self) -> int | None:
        """The version that it read when it first tried again (OPTIMIZE does, after a conflict); None if it did not."""
        found = (b.read_version for a, b in pairwise(self.attempts) if _again(a, b))
        return next(found, None)

    @property
    def printed(self) -> str:
        """All of it, also where objects print by themselves."""
        return str(self)

    def __repr__(self) -> str:
        said = f"{self.name} {self._did}"
        return said + (f" ({self.error_class})" if self.error_class is not None else "")

    def __str__(self) -> str:
        lines = [repr(self)]
        for commit in self.overtook:
            own = ", its own," if commit.version in self.commits else ""
            lines.append(f"  {commit.words}{own} overtook it")
        if self.message:
            lines.append(f"  {self.message}")
        if self.prediction is not None:
            lines += [f"  {line}" for line in str(self.prediction).splitlines()]
        elif self.unpredicted:
            lines.append(f"  no prediction: {self.unpredicted}")
        return "\n".join(lines)

    @property
    def _did(self) -> str:
        """What it did, attempt by attempt, and its end."""
        end = "" if self.error is None else f"ended with {self.outcome}"
        if self.read_version is None:
            none = "began no transaction on the table"
            return f"{end} and {none}" if end else none
        if not self.attempts:
            return f"read {_version(self.read_version)} and {end or 'recorded nothing'}"
        said = ""
        for before, attempt in zip((None, *self.attempts), self.attempts, strict=False):
            said += f"{_joint(before, attempt)} {_version(attempt.read_version)}"
            if attempt.version is not None:
                said += f" and committed as version {attempt.version}"
        last = self.attempts[-1]
        if last.version is None:
            return f"{said} and {end or 'failed to commit'}"
        return f"{said}, then {end}" if end else said


def _version(read: int | None) -> str:
    """A version that was read, which a table that is not there does not have."""
    return "no version" if read is None or read < 0 else f"version {read}"


def _joint(before: Attempt | None, attempt: Attempt) -> str:
    """How a sentence goes on from one attempt to the next, which need not have waited for the other's end."""
    if before is None:
        return "read"
    if _again(before, attempt):
        return ", tried again on"
    after = before.version is not None and before.version <= (attempt.read_version or 0)
    return ", then read" if after else ", and read"


def _again(before: Attempt, attempt: Attempt) -> bool:
    """Whether an attempt came after another one's failure."""
    return before.failed_at is not None and before.failed_at <= (attempt.read_version or 0)


def overtakers(commits: Iterable[LogCommit], attempts: Iterable[Attempt]) -> tuple[LogCommit, ...]:
    """The commits that stand between what one of these read and what it made, or the newest when it failed."""
    met = {version for attempt in attempts for version in attempt.met}
    return tuple(commit for commit in commits if commit.version in met)
