"""A claim in words: what it says, and what each piece of its evidence asks and shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.litmus import Expectation, expectation_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.claim import Claim, ClaimEvidence, FigureStatements

__all__ = ["claim_lines", "evidence_words"]


def claim_lines(claim: Claim) -> Iterator[str]:
    """The whole entry.

    >>> from isolitmus.specs.files.claims_file import claim
    >>> for line in list(claim_lines(claim("D34")))[:5]:
    ...     print(line)
    D34 (PT, JA, AR: blind appends): confirmed
      At Serializable the files of a blind append can conflict.
      That is: some concurrent transaction aborts because of them.
      for it: run overwrite-beside-append --protocol delta-serializable (model, delta)
        outcome = { overwrite = "aborted" }
    """
    yield f"{claim.name} ({', '.join(claim.editions)}: {claim.where}): {claim.verdict}"
    yield f"  {claim.says}"
    for edition, words in (claim.apart or {}).items():
        yield f"  {edition}: {words}"
    yield f"  That is: {claim.reading}."
    if claim.remark:
        yield f"  {claim.remark}"
    if claim.unasked:
        yield f"  Not asked: {claim.unasked}"
    for piece in claim.evidence:
        yield from (f"  {line}" for line in evidence_words(piece))


def evidence_words(piece: ClaimEvidence) -> Iterator[str]:
    """What a piece of evidence asks, and what comes out."""
    of = "of the page" if piece.of_page else ", ".join(piece.engines)
    side = "for it" if piece.agrees else "against it"
    mended = ", as it must be meant" if piece.amended else ""
    yield f"{side}: {piece.question} ({of}){mended}"
    if piece.words:
        yield f"  {piece.words}"
    if not piece.agrees:
        yield f"  not {answer_words(piece.claimed)}"
    yield f"  {answer_words(piece.recorded)}"


def answer_words(answer: Expectation | FigureStatements) -> str:
    """What came out, or should, on a line."""
    if isinstance(answer, Expectation):
        return "; ".join(" ".join(line.split()) for line in expectation_lines(answer))
    return "; ".join(map(str, answer))
