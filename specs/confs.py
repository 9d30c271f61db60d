"""The confs of Spark and Delta that a transaction's client may set, with the values that are modelled.

A conf is passed to the engine as it is written; one that is not here is refused, for the model would
not know what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONFS", "OVERWRITE_MODE"]

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

CONFS: Mapping[str, tuple[str, ...]] = {
    OVERWRITE_MODE: ("static", "dynamic"),
}
