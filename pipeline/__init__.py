"""The pipeline: sweeps that are too large for one machine's patience, as jobs of Spark."""

from isolitmus.pipeline.jobs import open_for_sweeps, sweep

__all__ = ["open_for_sweeps", "sweep"]
