"""Readers of jobs: workload files, SQL files, projects, recorded functions, and what lint reads."""
