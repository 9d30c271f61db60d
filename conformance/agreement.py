"""Comparison of an engine with the model: single tests, random tests and matrices.

A comparison covers all that a run shows: outcomes, versions, the information in commits, and the
rows at every version. Serial orders and levels follow from these. If a random test differs,
Hypothesis shrinks it to a small litmus test that can be run again.

For a matrix, each case is executed and compared with the model in every respect.
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
from isolitmus.model.matrix import NOT_MODELLED, MatrixCase
from isolitmus.model.run import SeveralRuns
from isolitmus.specs.files.evidence_files import RandomBatch
from isolitmus.specs.files.matrix_file import matrix_litmus
from isolitmus.specs.files.spec_catalogue import protocol
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.engine import Engine, RunsTests
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.matrix import Matrix, MatrixPlace
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import SpecLike

Case = tuple["Litmus", "Spec"]
"""Litmus test and the protocol it runs under."""


def find_differences(test: Litmus, under: SpecLike, carry: RunsTests) -> tuple[str, ...]:
    """Return the differences between the engine's run and the model's, one sentence each.

    Parameters
    ----------
    test : Litmus
        Litmus test to run.
    under : SpecLike
        Protocol of the run.
    carry : RunsTests
        Function that runs a test under a protocol on the engine.

    Returns
    -------
    tuple of str
        Empty if the runs agree. Where the model waits forever, empty if the engine reaches its time
        limit. Of several predicted runs, the one with the fewest differences counts.

    Raises
    ------
    UndeterminedError
        The model has no prediction; SeveralRuns if it predicts several runs and the engine's run is
        one of them. Errors of the engine are passed on.
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
    """Return the differences between two runs of one test.

    Serial orders and levels follow from what is compared. If nothing differs, the serial orders are
    computed by the model's executor and by DuckDB; raises
    ``checker.execution.serial_orders.Disagreement`` if the two differ.
    """
    found = run_differences(predicted.run, observed.run)
    if not found:
        observed.serial  # noqa: B018 - by the model's executor and by DuckDB
    return found


@dataclass(frozen=True, slots=True)
class Mismatch(ReadableRepr):
    """Litmus test, protocol, and the differences between engine and model."""

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
    """Yield the cases in which the engine differs from the model, in their order.

    Parameters
    ----------
    cases : iterable of (Litmus, Spec)
        Cases to compare.
    carry : RunsTests
        Function that runs a test under a protocol on the engine.
    at_once : int
        Number of cases that run at the same time.

    Raises
    ------
    UndeterminedError
        As ``find_differences``.
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
    """Result of a comparison on random tests."""

    seed: int
    """Seed of the random tests."""
    runs: int
    """Number of tests executed."""
    unsaid: int
    """Number of further tests for which the model has no prediction."""
    several: int
    """Number of executed tests with several predicted runs, by thread timing.

    Each observed run was one of the predicted ones.
    """
    mismatch: Mismatch | None
    """The smallest mismatch found; None if all runs agree."""
    drawn: str = ""
    """Digest of the tests and their protocols."""

    def __repr__(self) -> str:
        agreed = "all agree" if self.mismatch is None else f"mismatch:\n{self.mismatch}"
        return (
            f"{self.runs} runs from seed {self.seed}, {self.several} with several predicted"
            f" runs, {self.unsaid} without a prediction, {agreed}"
        )

    def batch(self, kind: str) -> RandomBatch:
        """Return these runs as a batch of random tests of a kind, all of which agreed."""
        count = self.runs + self.unsaid
        return RandomBatch(kind, self.seed, count, self.unsaid, self.several, self.drawn)


def draw_tests(
    tests: SearchStrategy[Litmus], count: int, seed: int, protocols: Sequence[SpecLike]
) -> list[Case]:
    """Return ``count`` random litmus tests, each with one of the protocols.

    The same seed gives the same tests.
    """
    found: list[Case] = []

    @_drawing(tests, count, seed, protocols, Phase.generate)
    def draw(pair: Case) -> None:
        found.append(pair)

    draw()
    return found


def digest_tests(pairs: Iterable[Case]) -> str:
    """Return the digest of litmus tests and the names of their protocols, in order."""
    texts = [(str(test), under.name) for test, under in pairs]
    return text_digest(json.dumps(texts))


def redraw_batch(
    batch: RandomBatch, tests: SearchStrategy[Litmus], protocols: Sequence[SpecLike]
) -> RandomBatch:
    """Return the batch with the digest of the tests that its seed draws now."""
    return replace(batch, drawn=digest_tests(draw_tests(tests, batch.count, batch.seed, protocols)))


def _drawing(
    tests: SearchStrategy[Litmus],
    count: int,
    seed: int,
    protocols: Sequence[SpecLike],
    *phases: Phase,
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Return Hypothesis' decorators for a function of a litmus test and a protocol.

    The drawn cases depend on the names of the protocols, not on their texts.
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
    """Redirect Hypothesis' storage to a temporary folder, not the user's current one."""
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
    """Run random litmus tests on an engine and compare them with the model.

    All tests are executed; if some differ, Hypothesis shrinks the first of them.

    Parameters
    ----------
    tests : SearchStrategy of Litmus
        Strategy that draws the litmus tests.
    count : int
        Number of tests.
    seed : int
        Seed; the same seed draws the same tests.
    carry : RunsTests
        Function that runs a test under a protocol on the engine.
    protocols : sequence of SpecLike
        Protocols; each test is paired with one of them.
    at_once : int
        Number of tests that run at the same time.
    progress : callable, optional
        Called with the number of finished tests.

    Returns
    -------
    ExplorationResult
        Counts, and the smallest mismatch found.

    Examples
    --------
    >>> from isolitmus.checker.strategies import litmus_tests
    >>> from isolitmus.conformance.engines import open_engine
    >>> with open_engine("model") as carry:
    ...     result = explore(litmus_tests(), 3, 0, carry, protocols=["delta-serializable"])
    >>> result.mismatch is None
    True
    """
    pairs = draw_tests(tests, count, seed, protocols)
    known: dict[tuple[str, str], tuple[str, ...] | UndeterminedError] = {}

    def asked(test: Litmus, under: Spec) -> tuple[str, ...] | UndeterminedError:
        """Return the differences of a case, or the reason why there are none to compare."""
        key = str(test), under.name
        if key not in known:
            try:
                known[key] = find_differences(test, under, carry)
            except UndeterminedError as undetermined:
                known[key] = undetermined
        return known[key]

    answers: list[tuple[str, ...] | UndeterminedError] = []

    def first() -> Mismatch | None:
        """Return the first mismatch among the finished tests, as drawn."""
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

    # the last mismatch found is reported, even if it is not the smallest
    with suppress(AssertionError, KeyboardInterrupt):
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
    """Yield the cells of a matrix as observed on a running engine, in order.

    A cell has no observation if the engine rejects the case.

    Parameters
    ----------
    matrix : Matrix
        Matrix that the places belong to.
    places : iterable of (MatrixPlace, SpecLike)
        Place of each cell and its protocol.
    engine : Engine
        Engine that ``carry`` runs tests on.
    carry : RunsTests
        Function that runs a test under a protocol.
    at_once : int, optional
        Number of cases that run at the same time; the engine has a default.
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
