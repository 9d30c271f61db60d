"""``isolitmus run``: litmus tests on engines, under protocols, against expectations and the model."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from isolitmus.checker.running.execute import execute
from isolitmus.checker.runs import Judged, compare
from isolitmus.checker.telling.draw import timeline
from isolitmus.checker.telling.refusals import refusals
from isolitmus.checker.telling.words import refusal, serial_words
from isolitmus.cli.output import named, print_json, progress, say
from isolitmus.conformance.engines import implements, open_engine, refuse_unable
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.values import show_row
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_files, protocols, relatives

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation

__all__ = ["run"]


def run(names: list[str], engines: str, wanted: str | None, *, as_json: bool) -> int:
    """Exit status 1 if a run is not as expected, or not as the model predicts it; else 0."""
    specs = None if wanted is None else [protocol(name) for name in named("protocol", wanted)]
    carriers = named("engine", engines)
    for name in carriers:
        refuse_unable(name, [spec.name for spec in specs or []])
    files = [str(path) for name in names for path in litmus_files(name)]
    tests = [test for test in map(litmus, files) if isinstance(test, Litmus)]
    if not tests:
        raise IsolitmusError(
            f"{', '.join(names)}: only abstract histories, which no engine can carry out;"
            " use isolitmus check"
        )
    documents: list[dict[str, object]] = []
    total = failed = 0
    with ExitStack() as stack:
        model = stack.enter_context(open_engine("model"))
        opened = {"model": model}
        for name in carriers:
            if name != "model":
                with progress(f"starting {name}"):
                    opened[name] = stack.enter_context(open_engine(name))
        for test in tests:
            runs = []
            for spec in specs or _expected(test):
                predicted = Judged(test, model(test, spec))
                why = refusals(execute(test, spec), spec)
                for name in carriers:
                    if not implements(name, spec.name):
                        continue
                    carry = opened[name]
                    with progress(f"{test.name} under {spec.name}"):
                        judged = predicted if carry is model else Judged(test, carry(test, spec))
                    differences = [*judged.differences, *compare(predicted.run, judged.run)]
                    total += 1
                    failed += bool(differences)
                    runs.append({**judged.to_json(), "differences": differences})
                    if not as_json:
                        _print(judged, why, differences)
            documents.append({"litmus": test.name, "runs": runs})
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        say(f"{total - failed} of {total} runs as expected.")
    return 1 if failed else 0


def _expected(test: Litmus) -> list[Spec]:
    """The protocols that a test expects something of; open-source Delta's if it expects nothing."""
    names = [name for name in protocols() if name in test.expect] or relatives()
    return [protocol(name) for name in names]


def _print(judged: Judged, why: Mapping[str, Violation], differences: list[str]) -> None:
    run = judged.run
    say(f"{judged.litmus.name} on {run.engine} ({run.engine_version}) under {run.protocol}")
    for line in timeline(judged.litmus.schedule, run).splitlines():
        say(f"  {line}")
    for name, transaction in run.transactions.items():
        if transaction.rows is not None:
            say(f"  {name} read {' '.join(map(show_row, transaction.rows)) or 'no rows'}")
        if name in why and why[name].axiom == transaction.outcome:
            for line in refusal(why[name]):
                say(f"  {line}")
    for table, rows in run.tables.items():
        say(f"  {table} at the end: {' '.join(map(show_row, rows)) or 'no rows'}")
    say(f"  {serial_words(judged.serial.orders, judged.serial.unexplained)}")
    for verdict in ("allowed", "forbidden", "unknown"):
        levels = [name for name, v in judged.levels.items() if str(v) == verdict]
        if levels:
            say(f"  {verdict}: {', '.join(levels)}")
    if differences:
        say("  NOT as expected:")
        for difference in differences:
            say(f"    {difference}")
    elif judged.expected == "met":
        say("  as expected")
    say()
