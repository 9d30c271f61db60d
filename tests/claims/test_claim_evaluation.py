"""The evidence of claims meets their conditions, and would be against them if it came out otherwise."""

import re

import pytest

from isolitmus.checker import run
from isolitmus.claims.claim import AskedCells, AskedRun, ClaimEvidence, FigureStatement
from isolitmus.claims.claim_evaluation import (
    answer_from_figures,
    count_cells,
    evidence_cases,
)
from isolitmus.claims.claims_file import claims
from isolitmus.model.run import TOOK_EFFECT

COMMITTED, ABORTED = "committed", "ConcurrentAppendException"


def test_figures_count_the_winners_beside_which_statements_end_differently():
    cells = AskedCells(
        "pairs", ("insert", "merge"), ("delete-row", "optimize"), ("unpartitioned",), "p"
    )
    alike = count_cells(cells, [COMMITTED, ABORTED, COMMITTED, ABORTED])
    crossed = count_cells(cells, [COMMITTED, ABORTED, ABORTED, COMMITTED])
    assert (alike["apart"], crossed["apart"]) == (0, 2)
    # the numbers of conflicts are equal either way
    assert crossed["insert.conflicts"] == crossed["merge.conflicts"] == 1


def test_an_answer_that_does_not_meet_the_condition_is_unlike_the_record():
    claimed, met = (FigureStatement("a", "=", 1),), (FigureStatement("b", "=", 2),)
    piece = ClaimEvidence(AskedRun("x", "p"), ("delta",), claimed, met=met)
    assert answer_from_figures(piece, "delta", {"a": 1, "b": 2}).unlike == ()
    answer = answer_from_figures(piece, "delta", {"a": 1, "b": 3})
    assert answer.agrees
    assert answer.unlike == ("the condition is not met: expected b = 2, got b = 3",)


def pieces_of(kind):
    return [
        (claim, piece)
        for claim in claims().values()
        if claim.when
        for piece in claim.evidence
        if isinstance(piece.question, kind)
    ]


@pytest.mark.slow
def test_every_case_of_a_matrix_decides():
    """One case with the other outcome is against the claim; of a claim that some cases conflict, all
    cases with it.
    """
    seen = 0
    for claim, piece in pieces_of(AskedCells):
        cells = piece.question
        ends = [
            run(test, spec).run.transactions["a"].outcome for test, spec in evidence_cases(cells)
        ]

        def agrees(outcomes, piece=piece, cells=cells):
            return answer_from_figures(piece, "model", count_cells(cells, outcomes)).agrees

        others = [
            [*ends[:k], ABORTED if end in TOOK_EFFECT else COMMITTED, *ends[k + 1 :]]
            for k, end in enumerate(ends)
        ]
        assert agrees(ends) is piece.agrees
        if piece.agrees and any(map(agrees, others)):
            assert " can" in claim.says, (claim.name, str(cells))
            assert not agrees([COMMITTED] * len(ends)), (claim.name, str(cells))
        seen += len(ends)
    assert seen > 500


def overlaps(test):
    """The pairs of clients of which the second commits between the first step and the last of the
    first.
    """
    places = {}
    for k, step in enumerate(str(test.schedule).split()):
        name = re.split(r"[.\[]", step)[0]
        client = test.clients.get(name)
        places.setdefault((client and client.session) or name, []).append(k)
    return [
        (one, other)
        for one, steps in places.items()
        for other, others in places.items()
        if one != other and steps[0] < others[-1] < steps[-1]
    ]


@pytest.mark.slow
def test_every_run_has_transactions_that_overlap():
    """A commit that took effect while another transaction, or a job, was running; locks may make
    the other one wait or abort, which is what they are claimed to do.
    """
    for claim, piece in pieces_of(AskedRun):
        if claim.name in ("D37", "D58"):  # what a single statement may set
            continue
        ((test, spec),) = evidence_cases(piece.question)
        if test.name == "quiz-newest":  # what the printed order of one statement does by itself
            continue
        done = run(test, spec).run.transactions
        expected = (*TOOK_EFFECT, "Deadlock") if test.format == "locking" else TOOK_EFFECT
        assert any(done[other].outcome in expected for _, other in overlaps(test)), (
            claim.name, str(piece.question)
        )  # fmt: skip
