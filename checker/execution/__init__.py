"""Schedules executed by the model, serial orders by two executors, runs compared."""
