"""View and state forms of levels, asked by name: ``write-serializable-state`` of a history on tables.

A form is no text over relations: the statements are executed in other orders, and that is looked at (docs/semantics.md,
3.2). So it needs statements; a history of reads and writes has none. Orders that give the table are those of which both
executors say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import observed_run
from isolitmus.checker.execution.explaining import Explaining
from isolitmus.checker.execution.serial_orders import MOST_WRITERS, ModelExecutor, explain_serially
from isolitmus.model.display import begun
from isolitmus.model.verdict import Allowed, Forbidden, Unknown, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.verdict import Verdict

__all__ = ["NAMED_FORMS", "NamedForm", "form_verdicts"]


class NamedForm(NamedTuple):
    """A form of a level."""

    level: str
    """Of which level it is a form."""
    sense: str
    """view, state, or one of these at every version."""
    asks: str
    """What an order has to give, as a clause."""

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        return f"{begun(self.level)} ({self.sense})"


VIEW, STATE, VIEWS, STATES, COHERENT = (
    "view",
    "state",
    "view-prefix",
    "state-prefix",
    "state-coherent",
)
LOG = "the order of the log gives every writer what it "
ASKS = {
    VIEW: "some serial order gives everybody who counts what it read, and the last table",
    STATE: "some serial order of the writers gives the last table",
    VIEWS: "at every version some serial order of the writers so far gives each what it read, and the table",
    STATES: "at every version some serial order of the writers so far gives the table",
    COHERENT: "one serial order of the writers gives every version of the table by its part up to there",
}
SENSES: Mapping[str, Mapping[str, str]] = {
    "log-serializable": {VIEW: LOG + "read", STATE: LOG + "made of the table"},
    "serializable": {name: ASKS[name] for name in (VIEW, STATE, COHERENT)},
    "update-serializable": {name: ASKS[name] for name in (VIEW, STATE, COHERENT)},
    "write-serializable": ASKS,
}
NAMED_FORMS = {
    f"{level}-{sense}": NamedForm(level, sense, asks)
    for level, senses in SENSES.items()
    for sense, asks in senses.items()
}
"""By name, all that can be asked."""


def form_verdicts(litmus: Litmus, execution: Execution, names: Sequence[str]) -> dict[str, Verdict]:
    """What forms of levels say of an execution, by their names in NAMED_FORMS; KeyError for another. What is allowed has
    an order that shows it, where one order does.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> reorder = litmus("reorder")
    >>> form_verdicts(reorder, execute(reorder), ["write-serializable-state", "log-serializable-state"])
    {'write-serializable-state': allowed, in the order delete insert, 'log-serializable-state': forbidden
      not log-serializable-state}
    """
    forms = {name: NAMED_FORMS[name] for name in names}
    if not forms:
        return {}
    executor = ModelExecutor(litmus)
    found = Explaining(litmus, execution, executor)
    if litmus.raw:
        return dict.fromkeys(forms, Unknown("raw transactions have no rows"))
    if len(found.log) > MOST_WRITERS:
        reason = (
            f"of {len(found.log)} writers not every order is tried: {MOST_WRITERS} are the most"
        )
        return dict.fromkeys(forms, Unknown(reason))
    serial = explain_serially(litmus, observed_run(litmus, execution, ""), executor)
    orders = [tuple(order.split()) for order in serial.orders]
    verdicts: dict[str, Verdict] = {}
    for name, form in forms.items():
        witness = _witness(found, form, orders, serial.unexplained)
        violation = Violation(name, "form", ())
        verdicts[name] = Forbidden((violation,)) if witness is None else Allowed(witness)
    return verdicts


def _witness(
    found: Explaining,
    form: NamedForm,
    orders: Sequence[tuple[str, ...]],
    unexplained: Sequence[int],
) -> tuple[str, ...] | None:
    """An order that shows that an execution has a form; empty: several do, each its part. None: it has not."""
    if form.sense == VIEWS:
        return () if found.views_at_every_version() else None
    if form.sense == STATES:
        return () if orders and not unexplained else None
    if form.level == "log-serializable":
        orders = [order for order in orders if order == found.log]
    elif form.sense == STATE:
        return orders[0] if orders else None
    for one in found.explanations(form.level, orders):
        if one.reads if form.sense == VIEW else one.versions:
            return one.orders[0] if len(one.orders) == 1 else ()
    return None
