"""Verification of claims: the answers of engines to their evidence, and the resulting verdicts."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.claims.claim import AskedObservation, ClaimAnswer
from isolitmus.claims.claim_evaluation import (
    answer_evidence,
    answer_from_figures,
    answer_from_runs,
    evidence_cases,
)
from isolitmus.claims.claims_file import claim as claim_named
from isolitmus.conformance.engines import run_cases
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from isolitmus.claims.claim import Claim, ClaimEvidence, ClaimVerdict, Figure
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

OBSERVERS: Registry[Callable[..., Mapping[str, Mapping[str, Any] | IsolitmusError]]] = Registry(
    "observer"
)
"""What makes observations on engines."""


@dataclass(frozen=True, slots=True, repr=False)
class VerifiedClaim(ReadableRepr):
    """Claim with the answers of the engines to each piece of its evidence."""

    claim: Claim
    answers: tuple[tuple[ClaimAnswer, ...], ...]

    @property
    def verdict(self) -> ClaimVerdict:
        """Verdict that follows from the answers; "undecided" if some piece has no answer."""
        if not self.claim.evidence:
            return self.claim.verdict
        known = [[a for a in answers if not a.unknown] for answers in self.answers]
        if not all(known):
            return "undecided"
        pieces = zip(self.claim.evidence, known, strict=True)
        return self.claim.derived((piece, all(a.agrees for a in of)) for piece, of in pieces)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Answers that differ from the record: the question, the engine and both values."""
        found = [
            f"{piece.question} on {a.engine}:"
            f" {'; '.join(a.unlike or ('agrees with the claim, but the record says otherwise',))}"
            for piece, answers in zip(self.claim.evidence, self.answers, strict=True)
            for a in answers
            if not a.unknown and (a.unlike or a.agrees is not piece.agrees)
        ]
        return tuple(found)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Questions without an answer, each with the reason."""
        found: dict[str, None] = {}
        for piece, answers in zip(self.claim.evidence, self.answers, strict=True):
            if all(a.unknown for a in answers):
                nobody = f"not run here ({', '.join(piece.engines)})"
                why = "; ".join(f"{a.engine}: {a.unknown}" for a in answers) or nobody
                found[f"{piece.question}: {why}"] = None
        return tuple(found)

    @property
    def by(self) -> tuple[str, ...]:
        """Engines that answered at least one question."""
        return tuple(dict.fromkeys(a.engine for of in self.answers for a in of if not a.unknown))

    @property
    def not_run_here(self) -> tuple[str, ...]:
        """Engines that could answer, but were not asked or could not be."""
        wanted = dict.fromkeys(name for piece in self.claim.evidence for name in piece.engines)
        return tuple(name for name in wanted if name not in self.by)

    @property
    def status(self) -> int:
        """Exit status: 1 if a run contradicts the entry, 3 if it stays undecided, else 0."""
        return 1 if self.contradictions else 3 if self.verdict == "undecided" else 0

    def __repr__(self) -> str:
        claim, verdict = self.claim, self.verdict
        if self.contradictions:
            lines = [
                f"{claim.name}: recorded verdict '{claim.verdict}', the runs give '{verdict}':",
                *self.contradictions,
            ]
        else:
            by = f" ({', '.join(self.by)})" if self.by and verdict != "undecided" else ""
            lines = [f"{claim.name}: {verdict}{by}", *self.unanswered]
        if self.not_run_here and verdict != "undecided":
            lines[0] += f"; not run here: {', '.join(self.not_run_here)}"
        return "\n  ".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the JSON document that docs/interface.md, section 6, describes."""
        return {
            "claim": self.claim.name,
            "recorded": self.claim.verdict,
            "verdict": self.verdict,
            "by": list(self.by),
            "not_run_here": list(self.not_run_here),
            "contradictions": list(self.contradictions),
            "answers": [
                {
                    "question": str(piece.question),
                    "recorded": piece.agrees,
                    "engines": [a.to_json() for a in answers],
                }
                for piece, answers in zip(self.claim.evidence, self.answers, strict=True)
            ],
        }


def verify_claims(
    claims: Sequence[Claim | str], engines: Sequence[str] = (MODEL,)
) -> Iterator[VerifiedClaim]:
    """Yield each claim with the answers of the engines to its evidence, as soon as they are known.

    Protocols that stand for a page are always evaluated by the model. An engine that cannot be
    started has no answer.

    Parameters
    ----------
    claims : sequence of Claim or str
        The claims, or their numbers.
    engines : sequence of str
        Names of engines.

    Yields
    ------
    VerifiedClaim
        Claim with the answers, and the verdict that follows from them.

    Raises
    ------
    UnknownName
        For an unknown claim or observation.

    Examples
    --------
    >>> [done] = verify_claims(["D46"])
    >>> done
    D46: confirmed (model); not run here: delta
    """
    chosen = [claim_named(one) if isinstance(one, str) else one for one in claims]
    pieces = [piece for claim in chosen for piece in claim.evidence]

    def asked(piece: ClaimEvidence) -> tuple[str, ...]:
        if piece.of_page:
            return (MODEL,)
        return tuple(name for name in engines if name in piece.engines)

    with ExitStack() as stack:
        answering = {
            name: stack.enter_context(
                closing(_answers(name, [p for p in pieces if name in asked(p)]))
            )
            for name in dict.fromkeys(name for piece in pieces for name in asked(piece))
        }
        for claim in chosen:
            yield VerifiedClaim(
                claim,
                tuple(
                    tuple(next(answering[name]) for name in asked(piece))
                    for piece in claim.evidence
                ),
            )


def _answers(name: str, pieces: Sequence[ClaimEvidence]) -> Generator[ClaimAnswer, None, None]:
    """Yield the answers of an engine to these pieces, in order."""
    if name == MODEL:
        for piece in pieces:
            yield answer_evidence(piece)
        return
    observed = _observed(name, pieces)
    wanted = [[(_text(case), case) for case in evidence_cases(piece.question)] for piece in pieces]
    tests = {text: case for named in wanted for text, case in named}
    known: dict[tuple[str, str], Run | IsolitmusError] = {}
    with closing(run_cases(name, list(tests.values()))) as runs:
        coming = zip(tests, runs, strict=True)
        for piece, named in zip(pieces, wanted, strict=True):
            if isinstance(piece.question, AskedObservation):
                facts = observed[piece.question.name]
                if isinstance(facts, IsolitmusError):
                    yield ClaimAnswer(name, unknown=str(facts))
                else:
                    yield answer_from_figures(piece, name, facts)
            else:
                while any(text not in known for text, _ in named):
                    known.update([next(coming)])
                yield answer_from_runs(piece, name, [known[text] for text, _ in named])


def _text(case: tuple[Litmus, Spec]) -> tuple[str, str]:
    """Return the key of a test under a protocol; a test that several claims cite runs once."""
    litmus, under = case
    return str(litmus), under.name


def _observed(
    name: str, pieces: Sequence[ClaimEvidence]
) -> dict[str, Mapping[str, Figure] | IsolitmusError]:
    """Return the facts of each experiment that the pieces name (numbers or texts), or the error."""
    asked = (p.question.name for p in pieces if isinstance(p.question, AskedObservation))
    names = list(dict.fromkeys(asked))
    return {
        key: facts
        if isinstance(facts, IsolitmusError)
        else {fact: _figure(value) for fact, value in facts.items()}
        for key, facts in OBSERVERS.named("databases")(name, names).items()
    }


def _figure(value: object) -> Figure:
    """Return an observed value as a number or text; a list as its entries, separated by commas."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if type(value) is int else str(value)
