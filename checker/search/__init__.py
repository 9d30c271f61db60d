"""The verbs separate, compare and portray, mutants, suites."""
