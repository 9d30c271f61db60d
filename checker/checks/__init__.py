"""Isolation-level checks of litmus tests, recorded histories and table logs (the command
``check``).
"""
