"""Litmus tests carried out on engines, compared, and printed: what several commands do."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.running.execute import execute
from isolitmus.checker.runs import Judged, compare
from isolitmus.checker.telling.draw import timeline
from isolitmus.checker.telling.refusals import refusals
from isolitmus.checker.telling.words import refusal, serial_words
from isolitmus.cli.output import progress, say, warn
from isolitmus.conformance.engines import UNSAID, implements, native, open_engine, refuse_unable
from isolitmus.model.errors import IsolitmusError, Refused
from isolitmus.model.values import show_row
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import protocols, relatives

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation

__all__ = ["Carried", "carry_found", "carry_out", "refuse"]


@dataclass(slots=True)
class Carried:
    """How it went: a document for each test as interface.md has it, how many runs there were and how many
    were not as expected, each run in a word, and the tests that an engine refused.
    """

    documents: list[dict[str, object]] = field(default_factory=list)
    total: int = 0
    failed: int = 0
    words: dict[tuple[str, str], str] = field(default_factory=dict)
    refused: dict[tuple[str, str], None] = field(default_factory=dict)

    def __str__(self) -> str:
        left = f" {len(self.refused)} left out." if self.refused else ""
        return f"{self.total - self.failed} of {self.total} runs as expected.{left}"


def refuse(carriers: Sequence[str], wanted: Sequence[str] = ()) -> None:
    """UnknownName for an engine that is none, or that has none of the protocols, if some are wanted."""
    for name in carriers:
        refuse_unable(name)
        if not any(implements(name, under) for under in wanted):
            refuse_unable(name, wanted)


def carry_out(
    tests: Sequence[Litmus], carriers: Sequence[str], specs: Sequence[Spec] | None, *, quiet: bool
) -> Carried:
    """Each test on each engine under each protocol that the engine implements; with ``specs`` None under
    those that the test expects something of. IsolitmusError if the engines can carry out none of them.
    """
    done = Carried()
    with ExitStack() as stack:
        opened = _opened(stack, carriers)
        model = opened["model"]
        for test in tests:
            runs = []
            asked = {name: specs or _asked(test, name) for name in carriers}
            for spec in {spec.name: spec for each in asked.values() for spec in each}.values():
                predicted = Judged(test, model(test, spec))
                why = {} if quiet else refusals(execute(test, spec), spec)
                for name in carriers:
                    unable = spec not in asked[name] or not implements(name, spec.name)
                    if unable or (test.name, name) in done.refused:
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
                        done.refused[test.name, name] = None
                        warn(f"left out: {error}")
                        continue
                    differences = list(judged.differences)
                    if not judged.apart:
                        differences += compare(predicted.run, judged.run, UNSAID[name])
                    done.total += 1
                    done.failed += bool(differences)
                    runs.append({**judged.to_json(), "differences": differences})
                    done.words[test.name, _column(judged)] = judged.word
                    if not quiet:
                        _print(judged, why, differences)
            if runs or not any(left == test.name for left, _ in done.refused):
                done.documents.append({"litmus": test.name, "runs": runs})
    if done.refused and not done.total:
        raise IsolitmusError(f"{', '.join(carriers)} can carry out none of these litmus tests")
    return done


def carry_found(tests: Sequence[Litmus], carriers: Sequence[str], *, quiet: bool) -> Carried:
    """What a search found, under the protocols that it expects something of; printed unless quiet, below what
    was said of it.
    """
    if not quiet:
        say()
    done = carry_out(tests, carriers, None, quiet=quiet)
    if not quiet:
        say(str(done))
    return done


def _opened(stack: ExitStack, carriers: Sequence[str]) -> dict[str, Callable[[Litmus, Spec], Run]]:
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


def _asked(test: Litmus, engine: str) -> list[Spec]:
    """What an engine is asked for where nobody says: the protocols that a test expects something of, or
    open-source Delta's if it expects nothing; and those that the engine alone has. If it implements none
    of them, all that it does implement.
    """
    names = [name for name in protocols() if name in test.expect] or relatives()
    asked = dict.fromkeys((*names, *native(engine)))
    able = [name for name in asked if implements(engine, name)]
    return [protocol(name) for name in able or protocols() if implements(engine, name)]


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
