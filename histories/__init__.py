"""Histories that other tools recorded, judged without their transactions' code."""
