"""Answers of the model to the evidence of claims, and their agreement with the claims.

Replays and matrix cells are litmus tests under protocols, which any engine can execute. All other
evidence can only be evaluated by the model.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.checker.execution.run_diff import compare_with_expectation
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.claims.claim import (
    AskedCells,
    AskedInterleavings,
    AskedRun,
    AskedSeparation,
    AskedSweep,
    ClaimAnswer,
)
from isolitmus.model.errors import Ended, EngineUnavailable, IsolitmusError
from isolitmus.model.litmus import Expectation, Litmus
from isolitmus.model.matrix import MatrixPlace
from isolitmus.model.run import TOOK_EFFECT, TransactionRun
from isolitmus.specs.files import catalogue, spec_catalogue
from isolitmus.specs.files.matrix_file import matrix_litmus
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.claims.claim import ClaimEvidence, ClaimQuestion, Figure, FigureStatements
    from isolitmus.model.run import Run
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec


def answer_evidence(evidence: ClaimEvidence) -> ClaimAnswer:
    """Return the model's answer to a piece of evidence; unknown if the evaluation fails.

    Examples
    --------
    >>> from isolitmus.claims.claims_file import claim
    >>> for_ = answer_evidence(claim("D33").evidence[0])
    >>> against = answer_evidence(claim("D39").evidence[0])
    >>> for_.agrees, against.agrees, against.against
    (True, False, ('delete: expected committed, got ConcurrentAppendException',))
    """
    try:
        tests = evidence_cases(evidence.question)
        if tests:
            return answer_from_runs(evidence, MODEL, [run(test, spec).run for test, spec in tests])
        return answer_from_figures(evidence, MODEL, _figures(evidence.question))
    except IsolitmusError as error:
        return ClaimAnswer(MODEL, unknown=str(error))


def evidence_cases(question: ClaimQuestion) -> list[tuple[Litmus, Spec]]:
    """Return the litmus tests of a question, each with its protocol; empty for other questions."""
    match question:
        case AskedRun(name, protocol):
            test = catalogue.litmus(name)
            assert isinstance(test, Litmus)
            return [(test, spec_catalogue.protocol(protocol))]
        case AskedCells(matrix, _, _, _, protocol):
            of = _matrix(matrix)
            return [
                (matrix_litmus(of, place), spec_catalogue.protocol(protocol))
                for place in cell_places(question)
            ]
        case _:
            return []


_matrix = cache(catalogue.matrix)


def cell_places(cells: AskedCells) -> list[MatrixPlace]:
    """Return the places of cells in their matrix."""
    return [
        MatrixPlace(a, winner, layout)
        for layout in cells.layouts
        for a in cells.parked
        for winner in cells.winners
    ]


def answer_from_runs(
    evidence: ClaimEvidence, engine: str, runs: Sequence[Run | IsolitmusError]
) -> ClaimAnswer:
    """Return an engine's answer, from its runs of the litmus tests of a piece of evidence.

    Parameters
    ----------
    evidence : ClaimEvidence
        The evidence.
    engine : str
        Name of the engine.
    runs : sequence of Run or IsolitmusError
        Run of each test of ``evidence_cases``, or its error.
    """
    failed = next((r for r in runs if isinstance(r, IsolitmusError)), None)
    if failed is not None:
        return ClaimAnswer(engine, unknown=str(failed))
    done = [r for r in runs if not isinstance(r, IsolitmusError)]
    question = evidence.question
    if isinstance(question, AskedCells):
        return answer_from_figures(
            evidence, engine, count_cells(question, [r.transactions["a"].outcome for r in done])
        )
    ((test, _),) = evidence_cases(question)
    judged = RunResult(test, done[0])
    lost = [name for name, t in judged.run.transactions.items() if t.outcome == "unknown"]
    if lost and engine != MODEL:
        return ClaimAnswer(engine, unknown=f"the outcome of {', '.join(lost)} is unknown")
    claimed, recorded, *unmet = (
        compare_with_expectation(wanted, judged).differences
        for wanted in (evidence.claimed, evidence.recorded, evidence.met)
        if isinstance(wanted, Expectation)
    )
    return ClaimAnswer(engine, claimed, recorded + _unmet(unmet))


def answer_from_figures(
    evidence: ClaimEvidence, engine: str, figures: Mapping[str, Figure]
) -> ClaimAnswer:
    """Return an engine's answer, from the figures that it computed."""
    claimed, recorded, *unmet = (
        _unlike(wanted, figures)
        for wanted in (evidence.claimed, evidence.recorded, evidence.met)
        if wanted is not None and not isinstance(wanted, Expectation)
    )
    return ClaimAnswer(engine, claimed, recorded + _unmet(unmet))


def _unmet(differences: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the differences from the condition of a claim as differences from the record."""
    return tuple(f"the condition is not met: {each}" for of in differences for each in of)


def _unlike(wanted: FigureStatements, figures: Mapping[str, Figure]) -> tuple[str, ...]:
    """Return the statements that do not hold, each with the actual figure."""
    return tuple(
        f"expected {count}, got {_told(count.name, figures)}"
        + (f" and {_told(str(count.value), figures)}" if str(count.value) in figures else "")
        for count in wanted
        if not count.holds(figures)
    )


def _told(name: str, figures: Mapping[str, Figure]) -> str:
    return f"{name} = {figures.get(name, 'nothing')}"


# Figures


def count_cells(question: AskedCells, outcomes: Sequence[str]) -> Mapping[str, Figure]:
    """Return the numbers of cases by outcome, in total and per parked statement.

    Parameters
    ----------
    question : AskedCells
        The cells.
    outcomes : sequence of str
        Outcome of each case, in the order of ``cell_places``.
    """
    counts: Counter[str] = Counter()
    endings: dict[tuple[str, str], set[str]] = {}
    for place, outcome in zip(cell_places(question), outcomes, strict=True):
        for name in (_ended(outcome), "cases"):
            counts[name] += 1
            counts[f"{place.a}.{name}"] += 1
        endings.setdefault((place.winner, place.layout), set()).add(_ended(outcome))
    counts["apart"] = sum(len(each) > 1 for each in endings.values())
    return dict.fromkeys(question.figures, 0) | counts


def _ended(outcome: str) -> str:
    if outcome in TOOK_EFFECT:
        return "committed"
    return "conflicts" if TransactionRun(outcome).aborted else outcome


@cache
def _figures(question: ClaimQuestion) -> Mapping[str, Figure]:
    """Return the model's figures for a question that is not a run."""
    match question:
        case AskedSeparation():
            return _separated(question)
        case AskedInterleavings(name, under):
            test = catalogue.litmus(name)
            assert isinstance(test, Litmus)
            interleave = format_named(test.format).interleave
            assert interleave is not None
            found: Mapping[str, Figure] = interleave(test, spec_catalogue.protocol(under)).figures
            return found
        case AskedSweep(scopes, n):
            swept = {name: sweep(catalogue.scope(name), n) for name in scopes}
            return {
                f"{name}.{figure}" if len(scopes) > 1 else figure: value
                for name, done in swept.items()
                for figure, value in _swept(done).items()
            }
    raise EngineUnavailable(f"{question} is nothing that the model can be asked")


def _separated(question: AskedSeparation) -> dict[str, Figure]:
    """Return the figures of a separation; raise Ended if its answer is unknown."""
    a, b = spec_catalogue.spec(question.a), spec_catalogue.spec(question.b)
    universe = question.universe
    inside: Scope | Literal["abstract"] | None = (
        ABSTRACT
        if universe == ABSTRACT
        else None
        if universe is None
        else catalogue.scope(universe)
    )
    sizes = None if question.transactions is None else range(1, question.transactions + 1)
    if question.unbounded:
        answer = separate_unbounded(a, b, inside, transactions=sizes)
    else:
        answer = separate(a, b, inside, transactions=sizes, unexplained=question.unexplained)
    answer = answer.with_catalogue()
    if answer.found is None:
        raise Ended(f"{question}: {answer.bound}")
    return {
        "found": "yes" if answer.found else "no",
        "transactions": answer.transactions or 0,
        "proved": "yes" if answer.proved else "no",
    }


def _swept(done: Sweep) -> dict[str, Figure]:
    """Return the counts of a sweep by name; raise Ended if it ended early."""
    if done.ended is not None:
        raise Ended(done.ended)
    figures: dict[str, Figure] = {"candidates": done.candidates, "failed": done.failed}
    for name, tally in done.protocols.items():
        figures[f"{name}.admitted"] = tally.admitted
        figures[f"{name}.aborted"] = done.candidates - done.failed - tally.admitted
        figures[f"{name}.unexplained"] = tally.unexplained
        figures |= {f"{name}.{level}": number for level, number in tally.forbidden.items()}
    return figures
