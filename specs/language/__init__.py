"""Language of specs, a fragment of herd's cat: grammar, parser, printer, mutants."""
