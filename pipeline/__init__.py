"""Sweeps, checks and audits as Spark jobs, for sizes that take too long on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from isolitmus.pipeline.audit_job import audit_all
    from isolitmus.pipeline.check_job import check_all
    from isolitmus.pipeline.spark import open_spark
    from isolitmus.pipeline.sweep_job import sweep

__all__ = ["audit_all", "check_all", "open_spark", "sweep"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "audit_all": "audit_job",
        "check_all": "check_job",
        "open_spark": "spark",
        "sweep": "sweep_job",
    },
)
