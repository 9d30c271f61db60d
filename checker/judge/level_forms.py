"""View and state forms of levels, by name.

A level judges conflicts. Its other forms ask whether some serial order explains what was read, or
the tables (docs/semantics.md, 3.2). They need statements, which are executed in other orders:
``checker.execution.serial_orders`` checks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.display import capitalized

if TYPE_CHECKING:
    from collections.abc import Mapping


class NamedForm(NamedTuple):
    """Form of a level."""

    level: str
    """Level of which it is a form."""
    sense: str
    """``view``, ``state``, or one of these at every version."""
    asks: str
    """Requirement on the order, as a clause."""

    @property
    def title(self) -> str:
        """Name of the form in a sentence."""
        return f"{capitalized(self.level)} ({self.sense})"


VIEW, STATE, VIEWS, STATES, COHERENT = (
    "view",
    "state",
    "view-prefix",
    "state-prefix",
    "state-coherent",
)
LOG = "the order of the log produces "
ASKS = {
    VIEW: "some serial order produces the final table, and what each ordered transaction read",
    STATE: "some serial order of the writers produces the final table",
    VIEWS: (
        "at every version some serial order of the writers so far produces the table, and what each"
        " of them read"
    ),
    STATES: "at every version some serial order of the writers so far produces the table",
    COHERENT: (
        "in one serial order of the writers, the first writers produce each version of the table"
    ),
}
SENSES: Mapping[str, Mapping[str, str]] = {
    "log-serializable": {
        VIEW: LOG + "what each transaction read",
        STATE: LOG + "every version of the table",
    },
    "serializable": {name: ASKS[name] for name in (VIEW, STATE, COHERENT)},
    "update-serializable": {name: ASKS[name] for name in (VIEW, STATE, COHERENT)},
    "write-serializable": ASKS,
}
NAMED_FORMS = {
    f"{level}-{sense}": NamedForm(level, sense, asks)
    for level, senses in SENSES.items()
    for sense, asks in senses.items()
}
"""All forms that can be checked, by name."""
