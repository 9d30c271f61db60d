"""Readers of histories that other tools record: AWDIT, Plume, dbcop, Cobra, Elle, PostgreSQL."""
