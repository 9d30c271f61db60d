"""How operations and transactions of a recorded history are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.model.register_history import INITIAL

if TYPE_CHECKING:
    from isolitmus.model.register_history import RegisterHistory

__all__ = ["operation_name", "transaction_name"]


def transaction_name(history: RegisterHistory, number: int) -> str:
    """A transaction by its number from 1, and its session; the last but one is what was there before."""
    if number == len(history.session):
        return "the initial transaction"
    return f"transaction {number + 1} (session {history.sessions[history.session[number]]})"


def operation_name(history: RegisterHistory, number: int) -> str:
    """What an operation did, whose it is, and where it stands."""
    owner = int(np.searchsorted(history.first, number, "right")) - 1
    value = int(history.value[number])
    shown = history.values[value] if len(history.values) and value != INITIAL else value
    what = "wrote" if history.is_write[number] else "read"
    session = history.sessions[history.session[owner]]
    return (
        f"transaction {owner + 1} (session {session}, line {history.line[number]}) {what}"
        f" {history.keys[history.key[number]]} = {'nothing' if value == INITIAL else shown}"
    )
