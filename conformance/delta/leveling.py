"""The isolation level of a real table, set where SQL cannot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.model.delta.log import LEVEL_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session

__all__ = ["set_level"]


def set_level(session: Session, path: Path, level: str) -> None:
    """Commit the isolation level through Delta's own transaction API.

    SQL accepts only Serializable (DeltaConfig.scala, ISOLATION_LEVEL), but the check is made where
    a user's properties come in, not at commit.
    """
    transaction = session.delta_log(path).startTransaction()
    action = json.loads(transaction.metadata().json())
    action["metaData"]["configuration"][LEVEL_KEY] = level
    operations = session.java("org.apache.spark.sql.delta.DeltaOperations")
    operation = operations.SetTableProperties(session.mapping({LEVEL_KEY: level}))
    transaction.commit(session.sequence([session.delta_action(action)]), operation)
