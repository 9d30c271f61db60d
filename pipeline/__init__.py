"""The pipeline: sweeps, checks and audits that are too large for one machine's patience, as jobs of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy import lazily

if TYPE_CHECKING:
    from isolitmus.pipeline.audits import audit_all
    from isolitmus.pipeline.checks import check_all
    from isolitmus.pipeline.jobs import sweep
    from isolitmus.pipeline.spark import open_spark

__all__ = ["audit_all", "check_all", "open_spark", "sweep"]

__getattr__ = lazily(
    __name__,
    {"audit_all": "audits", "check_all": "checks", "open_spark": "spark", "sweep": "jobs"},
)
