"""``isolitmus check``: what levels say of histories."""

from __future__ import annotations

from isolitmus.checker.checks import check as judge
from isolitmus.checker.telling.words import explain
from isolitmus.cli.output import named, print_json, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.verdict import Needs
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import litmus_files

__all__ = ["check"]


def check(names: list[str], levels: str, *, as_json: bool) -> int:
    """Exit status 1 if a level forbids a history, 3 if one is unknown, else 0."""
    specs = [spec(name) for name in named("level", levels)]
    documents = []
    verdicts: list[str] = []
    for path in [path for name in names for path in litmus_files(name)]:
        checked = judge(litmus(str(path)), specs)
        for name, verdict in checked.levels.items():
            if isinstance(verdict, Needs):
                raise IsolitmusError(
                    f"{path.name}: {name} {verdict}, which this history does not have"
                )
        verdicts += map(str, checked.levels.values())
        documents.append(checked.to_json(str(path)))
        if not as_json:
            if len(documents) > 1:
                say()
            say(
                f"{checked.name}: {checked.transactions} transactions, {checked.operations} reads and writes"
            )
            for asked in specs:
                for line in explain(checked.levels[asked.name], asked):
                    say(f"  {line}")
            if checked.assumptions:
                say(
                    f"  Assumed, because the history does not say: {'; '.join(checked.assumptions)}."
                )
    if as_json:
        print_json(documents)
    return 1 if "forbidden" in verdicts else 3 if "unknown" in verdicts else 0
