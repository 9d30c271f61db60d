"""How a transaction on the engine ended, as a run has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.transaction_outcome import first_words, understand
from isolitmus.model.run import TransactionRun

if TYPE_CHECKING:
    from isolitmus.model.delta.log import LogCommit

__all__ = ["committed", "failed"]


def failed(
    error: BaseException, jvm: Any, read_version: int, commits: tuple[int, ...]
) -> TransactionRun:
    """A transaction that raised an error, after the versions that it had made."""
    failure = understand(error, jvm)
    return TransactionRun(
        failure.outcome,
        failure.exception,
        failure.error_class,
        read_version,
        version=max(commits, default=None),
        commits=commits,
        message=first_words(error),
    )


def committed(
    last: LogCommit, read_version: int | None, commits: tuple[int, ...]
) -> TransactionRun:
    """A transaction that made these versions, and what the last of its commits says of itself."""
    return TransactionRun(
        "committed",
        read_version=read_version,
        version=commits[-1],
        commits=commits,
        blind=last.blind,
        isolation_level=last.level,
        operation=last.operation,
    )
