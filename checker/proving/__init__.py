"""Proofs for any number of transactions: lemmas that a solver discharges, and the arguments around."""
