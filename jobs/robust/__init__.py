"""Robustness: whether all schedules of jobs keep a level, and what repairs them."""
