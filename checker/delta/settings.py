"""How a client's settings bear on its commit: an idempotent write, and confs of the conflict check.

An idempotent write looks up the version that its application has reached: if that is the write's own
or a later one, nothing happens at all; else the new version is recorded with the rest
(DeltaCommand.scala, hasBeenExecuted and createSetTransaction).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.client import SetConf
from isolitmus.model.delta.footprint import Footprint, Settings
from isolitmus.model.execution import Effect
from isolitmus.specs.sql.configuration import ATTEMPTS, EMPTY_COMMITS, RESOLUTION, STRICT_FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus

__all__ = ["confs", "settled"]


def confs(litmus: Litmus, name: str) -> Mapping[str, str]:
    """The confs that hold for a transaction: those that were set in its session before, and its own."""
    session = litmus.client(name).session
    kept: dict[str, str] = {}
    for other in dict.fromkeys(step.transaction for step in litmus.schedule.steps):
        client = litmus.client(other)
        if other == name or (session is not None and client.session == session):
            kept |= {a.key: a.value for a in client.before if isinstance(a, SetConf)}
        if other == name:
            return {**kept, **client.conf}
    return litmus.client(name).conf


def settled(litmus: Litmus, name: str, done: Effect, snapshot: Database) -> Effect:
    """The effect of a transaction as its client's settings have it."""
    footprint = done.footprint
    if footprint is None:
        return done
    held = confs(litmus, name)
    app = litmus.client(name).app
    if app is not None:
        header = snapshot[footprint.schema.name].header
        reached = -1 if header is None else header.apps.get(app[0], -1)
        if reached >= app[1]:
            idle = Footprint(
                footprint.schema, data_change=False, changes_data=False, header=footprint.header
            )
            return Effect(footprint=idle, operation=done.operation)
        records = done.operation != "DELETE" or not footprint.empty
        actions = replace(footprint.actions, apps=dict([app]) if records else {})
        footprint = replace(footprint, actions=actions, looked_up=frozenset({app[0]}))
    for conf, value, settings in (
        (RESOLUTION, "false", {"resolves": False}),
        (STRICT_FEATURES, "true", {"strict": True}),
        (EMPTY_COMMITS, "false", {"always": True}),
        (ATTEMPTS, "0", {"once": True}),
    ):
        if held.get(conf, "").lower() == value:
            known: Settings = replace(footprint.settings, **settings)
            footprint = replace(footprint, settings=known)
    return done if footprint is done.footprint else replace(done, footprint=footprint)
