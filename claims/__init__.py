"""Claims of documents about isolation: reader, evidence, verdicts, pages."""
