"""``isolitmus separate SPEC --mutants``: the mutants of a spec, and a suite that kills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.expecting import expecting
from isolitmus.checker.killing import kill
from isolitmus.checker.telling.killing_words import killing_lines
from isolitmus.cli.output import progress, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import spec as named
from isolitmus.specs.mutants_file import argued_equivalent
from isolitmus.specs.shelf import HOME
from isolitmus.specs.writing import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.killing import Killing
    from isolitmus.cli.forms import Form
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

__all__ = ["of_mutants"]


def of_mutants(
    a: str, b: str | None, form: Form, within: Budget, suite: Path | None, *, mutants: bool
) -> int:
    """Print what becomes of each mutant of A. Exit status 3 if one survives without an argument, or a limit ended
    the search, else 0. IsolitmusError for options that do not fit.
    """
    if not mutants:
        if suite is not None:
            raise IsolitmusError("--suite is what kills mutants; add --mutants")
        raise IsolitmusError(f"separate {a} needs a second spec, which forbids; or --mutants")
    if b is not None:
        raise IsolitmusError(f"--mutants is of one spec; leave out {b}, or --mutants")
    if form.draws:
        raise IsolitmusError("mutants are a table, not a picture; --as json has it for programs")
    spec = named(a)
    with progress(f"mutants of {spec.name}") as tell:
        done = kill(
            spec, argued_equivalent(spec), budget=within, progress=lambda k: tell(f"{k} asked")
        )
    if suite is not None:
        _write(done, spec, suite)
    if not form.quiet:
        for line in killing_lines(done):
            say(line)
    form.show([done], done.to_json)
    return 3 if done.survivors or done.ended else 0


def _write(done: Killing, spec: Spec, folder: Path) -> None:
    """The suite as litmus files, with what is expected of each."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IsolitmusError(f"--suite {folder}: {error.strerror}; a folder is wanted") from None
    ours = spec.path is not None and spec.path.is_relative_to(HOME)
    for name in done.suite:
        test = done.tests[name]
        whole = expecting(test, spec.name) if ours else test
        write_whole(folder / f"{name}.toml", whole.text)
