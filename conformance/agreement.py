"""Does the engine do what the model says? One litmus test, or many that are drawn at random.

What is compared is all that a run shows: outcomes, versions, what commits say of themselves, rows at every
version, the serial orders and the levels that follow. Of random tests that differ, the smallest is
looked for, as a litmus test that anybody can carry out again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from isolitmus.checker.raw_strategies import raw_tests
from isolitmus.checker.runs import Judged, compare, run
from isolitmus.checker.strategies import litmus_tests
from isolitmus.conformance.delta import replay
from isolitmus.model.condition import UndeterminedError
from isolitmus.model.exploration import Batch
from isolitmus.specs.catalogue import protocol
from isolitmus.specs.litmus_text import litmus_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hypothesis.strategies import SearchStrategy

    from isolitmus.conformance.session import Session
    from isolitmus.model.litmus import Litmus

__all__ = [
    "AT_ONCE",
    "TESTS",
    "Explored",
    "Mismatch",
    "differences",
    "drawn",
    "explore",
    "mismatches",
    "unlike",
]

AT_ONCE = 3
"""So many replays at a time, each on tables of its own: one waits for Spark more than it computes."""
TESTS: Mapping[str, Callable[[], SearchStrategy[Litmus]]] = {
    "tables": partial(litmus_tests, least=2, most=4, sessions=True),
    "raw": raw_tests,
}
"""Random tests by kind (``model.exploration.KINDS``), as Hypothesis draws them."""


def differences(test: Litmus, under: str, session: Session) -> tuple[str, ...]:
    """Where the engine's run of a litmus test under a protocol is not the model's, a sentence each.

    Raises what ``replay`` raises, and UndeterminedError for a test of which the model says nothing.
    """
    predicted = run(test, protocol(under))
    return unlike(predicted, Judged(test, replay(test, under, session)))


def unlike(predicted: Judged, observed: Judged) -> tuple[str, ...]:
    """Where two runs of one test differ, in what is seen and in what follows."""
    found = list(compare(predicted.run, observed.run))
    if not found and predicted.serial != observed.serial:
        found.append(f"serial orders predicted {predicted.serial}, observed {observed.serial}")
    if not found and predicted.levels != observed.levels:
        found.append(f"levels predicted {predicted.levels}, observed {observed.levels}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A litmus test, a protocol, and where the engine differs from the model."""

    test: Litmus
    protocol: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        lines = [litmus_text(self.test), f"under {self.protocol}:", *self.differences]
        return "\n".join(lines)


def mismatches(cases: Iterable[tuple[Litmus, str]], session: Session) -> Iterator[Mismatch]:
    """Of some cases, each a litmus test under a protocol, those in which the engine differs from the model;
    AT_ONCE replays at a time. Raises what ``differences`` raises.
    """
    asked = list(cases)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(differences, test, under, session) for test, under in asked]
        try:
            for (test, under), answer in zip(asked, waiting, strict=True):
                found = answer.result()
                if found:
                    yield Mismatch(test, under, found)
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Explored:
    """How many random runs were made, from which seed; of how many tests the model said nothing; and the
    smallest mismatch that was found, None if all agree.
    """

    seed: int
    runs: int
    unsaid: int
    mismatch: Mismatch | None

    def batch(self, kind: str) -> Batch:
        """The runs as tests of a kind, all of which agreed."""
        return Batch(kind, self.seed, self.runs + self.unsaid, self.unsaid)


def drawn(
    tests: SearchStrategy[Litmus], count: int, seed: int, protocols: tuple[str, ...]
) -> list[tuple[Litmus, str]]:
    """So many litmus tests, each under one of the protocols; one seed draws the same ones again."""
    found: list[tuple[Litmus, str]] = []

    @_drawing(tests, count, seed, protocols, Phase.generate)
    def draw(pair: tuple[Litmus, str]) -> None:
        found.append(pair)

    draw()
    return found


def _drawing(
    tests: SearchStrategy[Litmus],
    count: int,
    seed: int,
    protocols: tuple[str, ...],
    *phases: Phase,
) -> Callable[[Callable[[tuple[Litmus, str]], None]], Callable[[], None]]:
    """Hypothesis' decorators for a function of a litmus test and a protocol."""
    given_pairs = given(st.tuples(tests, st.sampled_from(protocols)))
    options = settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
    )
    return lambda function: seeded(seed)(options(given_pairs(function)))


def explore(
    tests: SearchStrategy[Litmus],
    count: int,
    seed: int,
    session: Session,
    *,
    protocols: tuple[str, ...],
    progress: Callable[[int], object] | None = None,
) -> Explored:
    """Draw so many litmus tests, each under one of the protocols, and replay them all, AT_ONCE at a time;
    if some differ, Hypothesis shrinks the first of them. One seed draws the same tests again.
    """
    pairs = drawn(tests, count, seed, protocols)
    known: dict[tuple[str, str], tuple[str, ...] | None] = {}

    def asked(test: Litmus, under: str) -> tuple[str, ...] | None:
        """The differences; None if the model says nothing."""
        key = litmus_text(test), under
        if key not in known:
            try:
                known[key] = differences(test, under, session)
            except UndeterminedError:
                known[key] = None
        return known[key]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = []
        for k, answer in enumerate(pool.map(lambda pair: asked(*pair), pairs), 1):
            answers.append(answer)
            if progress is not None:
                progress(k)
    unsaid = answers.count(None)
    if not any(answers):
        return Explored(seed, len(pairs) - unsaid, unsaid, None)
    found: list[Mismatch] = []

    @_drawing(tests, count, seed, protocols, Phase.generate, Phase.shrink)
    def shrink(pair: tuple[Litmus, str]) -> None:
        unlike = asked(*pair)
        if unlike:
            found.append(Mismatch(*pair, unlike))
            raise AssertionError(unlike)

    with suppress(AssertionError):
        shrink()
    return Explored(seed, len(pairs) - unsaid, unsaid, found[-1])
