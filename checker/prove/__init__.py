"""Proofs for any number of transactions."""
