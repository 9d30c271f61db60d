"""Proofs of claims for any number of transactions."""
