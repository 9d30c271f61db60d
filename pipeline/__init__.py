"""The pipeline: sweeps and audits that are too large for one machine's patience, as jobs of Spark."""

from isolitmus.pipeline.audits import audit_all
from isolitmus.pipeline.jobs import open_for_sweeps, sweep

__all__ = ["audit_all", "open_for_sweeps", "sweep"]
