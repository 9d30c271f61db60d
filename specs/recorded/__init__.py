"""Histories that other tools record, read as columns: AWDIT, Plume, dbcop, Cobra, Elle."""
