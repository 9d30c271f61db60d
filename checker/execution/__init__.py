"""Execution of schedules by the model, serial orders by two executors, comparison of runs."""
