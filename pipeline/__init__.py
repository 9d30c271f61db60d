"""The pipeline: sweeps that are too large for one machine's patience, as jobs of Spark."""

from isolitmus.pipeline.sweep import sweep

__all__ = ["sweep"]
