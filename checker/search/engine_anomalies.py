"""Table of engines and anomalies: which engine, at which level, allows which anomaly.

A "yes" is a run of a litmus test in which the anomaly occurs. A "no" is a proof that the protocol
admits nothing that the anomaly's axiom forbids, or has a bound: a search, or all interleavings of
the tests. "Not seen" is a no of single tests, where nothing can be proved or searched. A condition
stands between them: the tests that show the anomaly need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.checker.search.separation import format_of, separate
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files import catalogue, spec_catalogue
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.model.anomaly import Anomaly, AnomalyTest, EngineLevel
    from isolitmus.model.run import Run

    RecordedRun = Callable[[str, str, str], Run | None]
    """Recorded run of an engine, by engine, litmus test and protocol; None if the engine cannot
    execute the test.
    """


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a cell rests on: a command that anybody can repeat, and what it says."""

    command: str
    words: str


@dataclass(frozen=True, slots=True)
class AnomalyCell:
    """Answer to the question whether an anomaly can occur on an engine at a level."""

    row: EngineLevel
    anomaly: Anomaly
    answer: Literal["yes", "no", "if", "not seen", "not asked"]
    condition: str
    """When it occurs, if the answer is "if"."""
    evidence: tuple[Evidence, ...]


def anomaly_cell(
    row: EngineLevel, anomaly: Anomaly, recorded: RecordedRun | None = None
) -> AnomalyCell:
    """Return the answer for an engine and an anomaly.

    Parameters
    ----------
    row : EngineLevel
        Engine and level.
    anomaly : Anomaly
        Anomaly.
    recorded : callable, optional
        Recorded runs of engines, which then decide instead of the model's.

    Raises
    ------
    IsolitmusError
        If no test of the anomaly can be executed, a recorded run is of another release, or a search
        or an interleaving finds the anomaly and no test shows it.

    Examples
    --------
    >>> from isolitmus.specs.files.anomaly_file import anomaly, anomaly_table
    >>> first = anomaly_table().rows[0]
    >>> anomaly_cell(first, anomaly("read skew")).answer
    'if'
    >>> anomaly_cell(first, anomaly("hole")).evidence[0].words[:36]
    'proved for any number of transaction'
    """
    tests = _tests_of(row, anomaly)
    if not tests:
        return AnomalyCell(row, anomaly, "not asked", "", ())
    runs = {test: judged for test in tests if (judged := _judged(row, test, recorded))}
    if not runs:
        names = ", ".join(test.litmus for test in tests)
        raise IsolitmusError(f"{row.title}: no test of {anomaly.name} can be executed: {names}")
    showing = [test for test, judged in runs.items() if occurs(anomaly, judged)]
    plain = [test for test in showing if not test.when]
    if plain:
        return AnomalyCell(row, anomaly, "yes", "", tuple(_run_evidence(row, plain)))
    absence = tuple(_absence(row, anomaly, [test for test in runs if not test.when]))
    if showing:
        condition = "; ".join(dict.fromkeys(test.when for test in showing))
        return AnomalyCell(row, anomaly, "if", condition, (*_run_evidence(row, showing), *absence))
    seen = format_named(format_of(spec_catalogue.protocol(row.protocol))).unsearched
    return AnomalyCell(row, anomaly, "not seen" if seen else "no", "", absence)


def occurs(anomaly: Anomaly, judged: RunResult) -> bool:
    """Return whether an anomaly occurs in a run: by its cycles, its levels, or serial orders."""
    if {*anomaly.cycles} & {*judged.anomalies}:
        return True
    if anomaly.unexplained and not judged.serial.unexplained:
        return False
    verdicts = [judged.levels.get(level) for level in anomaly.levels]
    if verdicts:
        return any(isinstance(verdict, Forbidden) for verdict in verdicts)
    return anomaly.unexplained


def _tests_of(row: EngineLevel, anomaly: Anomaly) -> list[AnomalyTest]:
    """Return the tests for a row's kind of transaction; a client may send a single statement."""
    tests = [test for test in anomaly.tests if test.kind == row.transaction]
    if not tests and row.transaction == "clients":
        tests = [test for test in anomaly.tests if test.kind == "statements"]
    return [test for test in tests if row.engine or not _has_other_writers(test)]


def _has_other_writers(test: AnomalyTest) -> bool:
    """Return whether a transaction of a test is of another engine, of which a text says nothing."""
    litmus = catalogue.litmus(test.litmus)
    assert isinstance(litmus, Litmus)
    return any(client.protocol for client in litmus.clients.values())


def _judged(row: EngineLevel, test: AnomalyTest, recorded: RecordedRun | None) -> RunResult | None:
    """Return the run of a test: the recorded one, or the model's; None if it cannot be executed."""
    predicted = _predicted(test.litmus, row.protocol)
    if predicted is None or not row.engine or recorded is None:
        return predicted
    observed = recorded(row.engine, test.litmus, row.protocol)
    if observed is None:
        return None
    if not f"{observed.engine_version},".startswith((f"{row.release}.", f"{row.release},")):
        raise IsolitmusError(
            f"{row.title}: the recorded run of {test.litmus} is of {observed.engine_version}; the"
            f" row is about {row.release}"
        )
    return RunResult(predicted.litmus, observed)


@cache
def _predicted(name: str, protocol: str) -> RunResult | None:
    """Return the model's run of a test; None if the protocol cannot carry it out."""
    try:
        return run(name, protocol)
    except IsolitmusError:
        return None


def _run_evidence(row: EngineLevel, tests: Sequence[AnomalyTest]) -> Iterator[Evidence]:
    engine = f" --engine {row.engine}" if row.engine else ""
    for test in tests:
        words = f"it occurs, if {test.when}" if test.when else "it occurs"
        yield Evidence(f"isolitmus run {test.litmus} --protocol {row.protocol}{engine}", words)


def _absence(
    row: EngineLevel, anomaly: Anomaly, tests: Sequence[AnomalyTest]
) -> Iterator[Evidence]:
    """Yield the evidence that an anomaly does not occur: a proof, a search, or interleavings."""
    protocol = spec_catalogue.protocol(row.protocol)
    form = format_named(format_of(protocol))
    if form.interleave is not None:
        for test in tests:
            litmus = catalogue.litmus(test.litmus)
            assert isinstance(litmus, Litmus)
            every = form.interleave(litmus, protocol)
            for outcome in every.outcomes:
                if occurs(anomaly, run(every.test(outcome), protocol)):
                    raise IsolitmusError(
                        f"{row.title}: {anomaly.name} occurs in {test.litmus} with the schedule"
                        f" {outcome.schedule}; give the test this schedule"
                    )
            yield Evidence(
                f"isolitmus run {test.litmus} --interleavings --protocol {row.protocol}",
                f"in none of {count_of(every.number, 'interleaving')}",
            )
    elif form.unsearched:
        for test in tests:
            command = f"isolitmus run {test.litmus} --protocol {row.protocol} --engine {row.engine}"
            yield Evidence(command, "it does not occur in this test")
    else:
        level = spec_catalogue.level(
            f"without-{anomaly.name}" if anomaly.absent else anomaly.levels[0]
        )
        proved = _proved(row.protocol, level.name)
        if proved:
            words = f"proved for {proved}"
            yield Evidence(f"isolitmus separate {row.protocol} {level.name} --unbounded", words)
            return
        search = separate(protocol, level, unexplained=True)
        if search.found is not False:
            raise IsolitmusError(
                f"{row.title}: a search finds {anomaly.name}, or has no answer, and no test of the"
                " anomaly shows it; add the history as a test"
            )
        yield Evidence(
            f"isolitmus separate {row.protocol} {level.name} --unexplained",
            f"no counterexample with {search.bound}",
        )


@cache
def _proved(protocol: str, level: str) -> str:
    """Return the scope of the proof that a protocol admits nothing that a level forbids, or ""."""
    answer = separate_unbounded(protocol, level)
    return answer.bound if answer.proved else ""
