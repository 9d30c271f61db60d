"""``isolitmus separate LEVEL --mutants``: ask, and print what became of each mutant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.cli.output import progress, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.cli.conversion import Form
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

__all__ = ["NOT_OF_MUTANTS", "needs_mutants", "refuse_beside_mutants", "report_mutants"]

NOT_OF_MUTANTS = (
    "--both", "--unexplained", "--unbounded", "--save", "--engine", "--every-version-read", "--no-sessions",
    "--no-aborts", "--observed", "--certificate", "--no-catalogue",
)  # fmt: skip
"""What is about two specs, or one history."""


def refuse_beside_mutants(b: str | None, options: Mapping[str, object], form: Form) -> None:
    """IsolitmusError for what has no meaning where a spec is asked about its own mutants."""
    if b is not None:
        raise IsolitmusError(f"--mutants is about one spec, and '{b}' is a second; leave it out")
    for option, given in {**options, f"--as {form.word}": form.draws}.items():
        if given:
            raise IsolitmusError(f"{option} has no meaning with --mutants; leave it out")


def needs_mutants(a: str, b: str | None, suite: Path | None, word: str | None) -> IsolitmusError:
    """What is wrong with a question that only --mutants would give a meaning to."""
    if b is None:
        return IsolitmusError(f"separate {a} needs a second spec, or --mutants")
    option = f"--as {word}" if suite is None else "--suite"
    return IsolitmusError(f"{option} needs --mutants, which is about one spec")


def report_mutants(
    of: Spec, form: Form, suite: Path | None, within: Budget, search: dict[str, Any]
) -> int:
    """Exit status 3 if a mutant is left that nothing tells apart and nobody argues about, else 0."""
    from isolitmus.checker.render.mutant_words import mutant_lines
    from isolitmus.checker.search.conformance_suite import smallest_suite, write_suite
    from isolitmus.checker.search.mutant_separation import separate_mutants

    with progress(f"mutants of {of.name}") as tell:
        report = separate_mutants(
            of, budget=within, progress=lambda n, every: tell(f"{n} of {every}"), **search
        )
    chosen = None if suite is None else smallest_suite(report)
    files = [] if suite is None or chosen is None else write_suite(chosen, suite)

    def document() -> object:
        names = None if chosen is None else [kill.name for kill in chosen.tests]
        return {**report.to_json(), "suite": names}

    form.show([report], document)
    if not form.quiet:
        for line in mutant_lines(report):
            say(line)
        if suite is not None:
            told = many(len(report.told), "mutant")
            say(
                f"{suite}: {many(len(files), 'litmus test')} that tell all {told} apart, and no fewer do."
            )
    return 3 if report.survivors else 0
