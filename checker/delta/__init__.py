"""Delta: what its statements read and write, what a commit does to a table, and what it calls a
conflict.
"""
