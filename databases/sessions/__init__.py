"""Shared parts of the engines that are databases: connections, gated SQL and schedules."""
