"""Linter of jobs: findings of rules, with places, fingerprints and cached answers."""
