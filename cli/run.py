"""``isolitmus run``: litmus tests on engines, under protocols, against expectations and the model."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from isolitmus.checker.running.execute import execute
from isolitmus.checker.runs import Judged, compare
from isolitmus.checker.telling.draw import timeline
from isolitmus.checker.telling.grid import markdown
from isolitmus.checker.telling.refusals import refusals
from isolitmus.checker.telling.words import refusal, serial_words
from isolitmus.cli.output import named, print_json, progress, say, warn
from isolitmus.conformance.engines import UNSAID, implements, native, open_engine, refuse_unable
from isolitmus.model.errors import IsolitmusError, Refused
from isolitmus.model.litmus import Litmus
from isolitmus.model.values import show_row
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_files, protocols, relatives

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation

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
    _refuse_unable(carriers, [spec.name for spec in specs or []])
    tests = _tests(names)
    documents: list[dict[str, object]] = []
    total = failed = 0
    refused: dict[tuple[str, str], None] = {}
    cells: dict[tuple[str, str], str] = {}
    with ExitStack() as stack:
        opened = _opened(stack, carriers)
        model = opened["model"]
        for test in tests:
            runs = []
            asked = {name: specs or _asked(test, name) for name in carriers}
            for spec in {spec.name: spec for each in asked.values() for spec in each}.values():
                predicted = Judged(test, model(test, spec))
                why = refusals(execute(test, spec), spec)
                for name in carriers:
                    unable = spec not in asked[name] or not implements(name, spec.name)
                    if unable or (test.name, name) in refused:
                        continue
                    carry = opened[name]
                    try:
                        with progress(f"{test.name} under {spec.name}"):
                            judged = (
                                predicted if carry is model else Judged(test, carry(test, spec))
                            )
                    except Refused as error:
                        if len(tests) == 1:
                            raise
                        refused[test.name, name] = None
                        warn(f"left out: {error}")
                        continue
                    differences = list(judged.differences)
                    if not judged.apart:
                        differences += compare(predicted.run, judged.run, UNSAID[name])
                    total += 1
                    failed += bool(differences)
                    runs.append({**judged.to_json(), "differences": differences})
                    cells[test.name, _column(judged)] = judged.word
                    if not (as_json or as_table):
                        _print(judged, why, differences)
            if runs or not any(left == test.name for left, _ in refused):
                documents.append({"litmus": test.name, "runs": runs})
    if refused and not total:
        raise IsolitmusError(f"{', '.join(carriers)} can carry out none of these litmus tests")
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for line in markdown(cells) if as_table else ():
            say(line)
        left = f" {len(refused)} left out." if refused else ""
        say(f"{total - failed} of {total} runs as expected.{left}")
    return 1 if failed else 0


def _refuse_unable(carriers: list[str], wanted: list[str]) -> None:
    """UnknownName for an engine that is none, or that has none of the protocols."""
    for name in carriers:
        refuse_unable(name)
        if not any(implements(name, under) for under in wanted):
            refuse_unable(name, wanted)


def _opened(stack: ExitStack, carriers: list[str]) -> dict[str, Callable[[Litmus, Spec], Run]]:
    """The model, and the engines that are asked for."""
    opened = {"model": stack.enter_context(open_engine("model"))}
    for name in carriers:
        if name != "model":
            with progress(f"starting {name}"):
                opened[name] = stack.enter_context(open_engine(name))
    return opened


def _column(judged: Judged) -> str:
    run = judged.run
    return f"{run.engine} {run.engine_version}, {run.protocol}"


def _tests(names: list[str]) -> list[Litmus]:
    files = [str(path) for name in names for path in litmus_files(name)]
    tests = [test for test in map(litmus, files) if isinstance(test, Litmus)]
    if not tests:
        raise IsolitmusError(
            f"{', '.join(names)}: only abstract histories, which no engine can carry out;"
            " use isolitmus check"
        )
    return tests


def _asked(test: Litmus, engine: str) -> list[Spec]:
    """What an engine is asked for where nobody says: the protocols that a test expects something of, or
    open-source Delta's if it expects nothing; and those that the engine alone has.
    """
    names = [name for name in protocols() if name in test.expect] or relatives()
    return [protocol(name) for name in dict.fromkeys((*names, *native(engine)))]


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
