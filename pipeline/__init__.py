"""The pipeline: sweeps and audits that are too large for one machine's patience, as jobs of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy import lazily

if TYPE_CHECKING:
    from isolitmus.pipeline.audits import audit_all
    from isolitmus.pipeline.jobs import open_for_sweeps, sweep

__all__ = ["audit_all", "open_for_sweeps", "sweep"]

__getattr__ = lazily(__name__, {"audit_all": "audits", "open_for_sweeps": "jobs", "sweep": "jobs"})
