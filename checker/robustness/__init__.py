"""Workloads: which jobs stop each other, whether they are safe at a level, for any number of runs and parameters."""
