"""Searches: separation of specs, lattices of levels, guarantees, mutants, conformance suites."""
