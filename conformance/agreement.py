"""Agreement of an engine with the model: one test, random tests, a matrix.

Does an engine do what the model says? One litmus test, or many that are drawn at random.

What is compared is all that a run shows: outcomes, versions, what commits say of themselves, rows
at every version; serial orders and levels follow from that. Of random tests that differ, the
smallest is looked for, as a litmus test that anybody can carry out again.

A matrix on an engine: each case carried out, and compared with the model in every respect.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.conformance.workers import run_together
from isolitmus.model.display import ReadableRepr, text_digest
from isolitmus.model.errors import (
    IsolitmusError,
    Refused,
    TimeLimit,
    UndeterminedError,
    WaitsForEver,
)
from isolitmus.model.exploration import RandomBatch
from isolitmus.model.matrix import NOT_MODELLED, MatrixCase
from isolitmus.model.run import SeveralRuns
from isolitmus.specs.files.catalogue import protocol
from isolitmus.specs.files.catalogue import protocol as named_protocol
from isolitmus.specs.files.matrix_file import matrix_litmus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.engine import Engine, RunsTests
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.matrix import Matrix, MatrixPlace
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = [
    "ExplorationResult",
    "Mismatch",
    "describe_differences",
    "digest_tests",
    "draw_tests",
    "explore",
    "find_differences",
    "find_mismatches",
    "observe_cells",
    "redraw_batch",
]

Case = tuple["Litmus", "Spec"]
"""A litmus test under a protocol."""


def find_differences(test: Litmus, under: SpecLike, carry: RunsTests) -> tuple[str, ...]:
    """Where the engine's run of a litmus test under a protocol is not the model's, a sentence each.

    Raises what the engine raises, and UndeterminedError for a test of which the model says nothing:
    SeveralRuns if it says several runs, and the engine's is one of them.
    """
    under = protocol(under)
    try:
        predicted = run(test, under)
    except SeveralRuns as several:
        observed = carry(test, under)
        found = [run_differences(one, observed) for one in several.runs]
        if not all(found):
            raise
        return min(found, key=len)
    except WaitsForEver:
        try:
            carry(test, under)
        except TimeLimit:
            return ()
        return (
            "predicted: the transactions wait for each other forever; observed: all of them end",
        )
    return describe_differences(predicted, RunResult(test, carry(test, under)))


def describe_differences(predicted: RunResult, observed: RunResult) -> tuple[str, ...]:
    """Where two runs of one test differ; ``checker.execution.serial_orders.Disagreement`` if the
    two executors do over its serial orders. Those and the levels follow from what is compared.
    """
    found = run_differences(predicted.run, observed.run)
    if not found:
        observed.serial  # noqa: B018 - by the model's executor and by DuckDB
    return found


@dataclass(frozen=True, slots=True)
class Mismatch(ReadableRepr):
    """A litmus test, a protocol, and where the engine differs from the model."""

    test: Litmus
    protocol: str
    differences: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [str(self.test), f"under {self.protocol}:", *self.differences]
        return "\n".join(lines)


def find_mismatches(
    cases: Iterable[Case], carry: RunsTests, at_once: int = 1
) -> Iterator[Mismatch]:
    """Of some cases those in which the engine differs from the model; so many are carried out at a
    time. Raises what ``differences`` raises.
    """
    asked = list(cases)
    with closing(
        run_together(lambda case: find_differences(*case, carry), asked, at_once)
    ) as answers:
        for (test, under), found in zip(asked, answers, strict=True):
            if found:
                yield Mismatch(test, under.name, found)


@dataclass(frozen=True, slots=True)
class ExplorationResult(ReadableRepr):
    """What came of random tests."""

    seed: int
    """That they were drawn by."""
    runs: int
    """So many were carried out."""
    unsaid: int
    """Of so many more the model says nothing."""
    several: int
    """Of so many that were carried out it says several runs, by whose thread is faster; each was
    one of those.
    """
    mismatch: Mismatch | None
    """The smallest that was found; None if all agree."""
    drawn: str = ""
    """The digest of the tests and their protocols."""

    def __repr__(self) -> str:
        agreed = "all agree" if self.mismatch is None else f"mismatch:\n{self.mismatch}"
        return (
            f"{self.runs} runs from seed {self.seed}, {self.several} with several predicted"
            f" runs, {self.unsaid} without a prediction, {agreed}"
        )

    def batch(self, kind: str) -> RandomBatch:
        """The runs as tests of a kind, all of which agreed."""
        count = self.runs + self.unsaid
        return RandomBatch(kind, self.seed, count, self.unsaid, self.several, self.drawn)


def draw_tests(
    tests: SearchStrategy[Litmus], count: int, seed: int, protocols: Sequence[SpecLike]
) -> list[Case]:
    """So many litmus tests, each under one of the protocols; one seed draws the same ones again."""
    found: list[Case] = []

    @_drawing(tests, count, seed, protocols, Phase.generate)
    def draw(pair: Case) -> None:
        found.append(pair)

    draw()
    return found


def digest_tests(pairs: Iterable[Case]) -> str:
    """A digest of litmus tests and the names of their protocols, as they are carried out."""
    texts = [(str(test), under.name) for test, under in pairs]
    return text_digest(json.dumps(texts))


def redraw_batch(
    batch: RandomBatch, tests: SearchStrategy[Litmus], protocols: Sequence[SpecLike]
) -> RandomBatch:
    """A batch with the digest of the tests that its seed draws today."""
    return replace(batch, drawn=digest_tests(draw_tests(tests, batch.count, batch.seed, protocols)))


def _drawing(
    tests: SearchStrategy[Litmus],
    count: int,
    seed: int,
    protocols: Sequence[SpecLike],
    *phases: Phase,
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Hypothesis' decorators for a function of a litmus test and a protocol. What is drawn depends
    on the names of the protocols, not on their texts.
    """
    of = {spec.name: spec for spec in map(protocol, protocols)}
    given_pairs = given(st.tuples(tests, st.sampled_from(tuple(of))))
    options = settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
    )

    def decorated(function: Callable[[Case], None]) -> Callable[[], None]:
        def named(pair: tuple[Litmus, str]) -> None:
            function((pair[0], of[pair[1]]))

        return _aside()(seeded(seed)(options(given_pairs(named))))

    return decorated


@contextmanager
def _aside() -> Iterator[None]:
    """What Hypothesis keeps for its next time is in a folder that goes away, not in the user's
    current one.
    """
    with TemporaryDirectory(prefix="isolitmus-", ignore_cleanup_errors=True) as name:
        set_hypothesis_home_dir(name)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def explore(
    tests: SearchStrategy[Litmus],
    count: int,
    seed: int,
    carry: RunsTests,
    *,
    protocols: Sequence[SpecLike],
    at_once: int = 1,
    progress: Callable[[int], object] | None = None,
) -> ExplorationResult:
    """Draw so many litmus tests, each under one of the protocols, and carry them all out, so many
    at a time; if some differ, Hypothesis shrinks the first of them. One seed draws the same tests
    again.
    """
    pairs = draw_tests(tests, count, seed, protocols)
    known: dict[tuple[str, str], tuple[str, ...] | UndeterminedError] = {}

    def asked(test: Litmus, under: Spec) -> tuple[str, ...] | UndeterminedError:
        """The differences, or why none can be told."""
        key = str(test), under.name
        if key not in known:
            try:
                known[key] = find_differences(test, under, carry)
            except UndeterminedError as undetermined:
                known[key] = undetermined
        return known[key]

    answers: list[tuple[str, ...] | UndeterminedError] = []

    def first() -> Mismatch | None:
        """The first of the tests that differ, as it was drawn, of all that were carried out."""
        unlike = ((pair, known.get((str(pair[0]), pair[1].name))) for pair in pairs)
        return next(
            (Mismatch(test, by.name, a) for (test, by), a in unlike if isinstance(a, tuple) and a),
            None,
        )

    try:
        with closing(run_together(lambda pair: asked(*pair), pairs, at_once)) as coming:
            for k, answer in enumerate(coming, 1):
                answers.append(answer)
                if progress is not None:
                    progress(k)
    except KeyboardInterrupt:
        if first() is None:
            raise
        return ExplorationResult(seed, len(answers), 0, 0, first())
    several = sum(isinstance(answer, SeveralRuns) for answer in answers)
    unsaid = sum(isinstance(answer, UndeterminedError) for answer in answers) - several
    runs = len(pairs) - unsaid
    if first() is None:
        return ExplorationResult(seed, runs, unsaid, several, None, digest_tests(pairs))
    found: list[Mismatch] = []

    @_drawing(tests, count, seed, protocols, Phase.generate, Phase.shrink)
    def shrink(pair: Case) -> None:
        test, under = pair
        unlike = asked(test, under)
        if isinstance(unlike, tuple) and unlike:
            found.append(Mismatch(test, under.name, unlike))
            raise AssertionError(unlike)

    with suppress(AssertionError, KeyboardInterrupt):  # what was found is told, smallest or not
        shrink()
    return ExplorationResult(seed, runs, unsaid, several, found[-1] if found else first())


def observe_cells(
    matrix: Matrix,
    places: Iterable[tuple[MatrixPlace, SpecLike]],
    engine: Engine,
    carry: RunsTests,
    *,
    at_once: int | None = None,
) -> Iterator[MatrixCase]:
    """The cells at these places as they are seen on an engine that was started, in their order, so
    many cases at a time. Nothing is observed where it refuses the case.
    """

    def seen(at: tuple[MatrixPlace, SpecLike]) -> MatrixCase:
        place, protocol = at[0], named_protocol(at[1])
        try:
            test = matrix_litmus(matrix, place)
            predicted = run(test, protocol)
        except IsolitmusError:
            return MatrixCase(place, protocol.name, engine.name, NOT_MODELLED)
        outcome = predicted.run.transactions["a"].outcome
        try:
            observed = RunResult(test, carry(test, protocol))
        except Refused:
            return MatrixCase(place, protocol.name, engine.name, outcome)
        return MatrixCase(
            place,
            protocol.name,
            engine.name,
            outcome,
            observed.run.transactions["a"].outcome,
            describe_differences(predicted, observed),
        )

    yield from run_together(seen, places, engine.most(at_once))
