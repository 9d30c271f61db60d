"""``isolitmus run``: litmus tests on engines, under protocols, against expectations and the model."""

from __future__ import annotations

from isolitmus.checker.telling.grid import markdown
from isolitmus.cli.carrying import carry_out, refuse
from isolitmus.cli.output import named, print_json, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_files

__all__ = ["run"]


def run(
    names: list[str],
    engines: str,
    wanted: str | None,
    *,
    as_json: bool,
    as_table: bool = False,
) -> int:
    """Exit status 1 if a run is not as expected, or not as the model predicts it; else 0."""
    specs = None if wanted is None else [protocol(name) for name in named("protocol", wanted)]
    carriers = named("engine", engines)
    refuse(carriers, [spec.name for spec in specs or []])
    done = carry_out(_tests(names), carriers, specs, quiet=as_json or as_table)
    if as_json:
        print_json(done.documents[0] if len(done.documents) == 1 else done.documents)
    else:
        for line in markdown(done.words) if as_table else ():
            say(line)
        say(str(done))
    return 1 if done.failed else 0


def _tests(names: list[str]) -> list[Litmus]:
    files = [str(path) for name in names for path in litmus_files(name)]
    tests = [test for test in map(litmus, files) if isinstance(test, Litmus)]
    if not tests:
        raise IsolitmusError(
            f"{', '.join(names)}: only abstract histories, which no engine can carry out;"
            " use isolitmus check"
        )
    return tests
