"""Benchmark of litmus tests on real Delta: a Markdown table.

One session runs all tests. Each kind of test first warms up without measurement. Then several tests
run at a time, in rounds with different random tests of the kind; the figure is the median of the
rounds. A time includes the model's run and the comparison. The ratio is the time of one at a time
divided by this one's.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from time import perf_counter

from isolitmus.checker.execution.conflict_matrix import predict_case
from isolitmus.conformance.agreement import draw_tests, find_differences
from isolitmus.conformance.delta.engine import DELTA
from isolitmus.conformance.engines import open_engine
from isolitmus.model.engine import RunsTests
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.matrix import NOT_MODELLED
from isolitmus.model.spec import Spec
from isolitmus.specs import litmus
from isolitmus.specs.files.catalogue import litmus_names, matrix
from isolitmus.specs.files.matrix_file import matrix_litmus
from isolitmus.specs.files.spec_catalogue import protocol
from isolitmus.specs.registries import format_named

AT_ONCE = 1, 2, 3
WARM = 60

PROTOCOLS = [protocol(name) for name in DELTA.protocols or ()]
RANDOM = {each.name: each.strategy for each in format_named("delta").random}
Cases = Iterator[tuple[Litmus, Spec]]


def catalogue(choice: random.Random, _: int) -> Cases:
    tests = [test for test in map(litmus, litmus_names()) if isinstance(test, Litmus)]
    every = [(test, under) for test in tests for under in PROTOCOLS if under.name in test.expect]
    return iter(choice.sample(every, len(every)))


def pairs(choice: random.Random, _: int) -> Cases:
    asked = matrix("pairs")
    places = [place for layout in asked.layouts for place in asked.places(layout)]
    for place in choice.sample(places, len(places)):
        under = choice.choice(PROTOCOLS)
        if predict_case(asked, place, under).predicted != NOT_MODELLED:
            yield matrix_litmus(asked, place), under


def at_random(kind: str, choice: random.Random, count: int) -> Cases:
    return iter(draw_tests(RANDOM[kind](), count, choice.randrange(10**6), PROTOCOLS))


KINDS: Mapping[str, Callable[[random.Random, int], Cases]] = {
    "catalogue": catalogue,
    "matrix": pairs,
    **{kind: partial(at_random, kind) for kind in RANDOM},
}


def carry_out(cases: Cases, count: int, at_once: int, carry: RunsTests) -> float:
    """Return the seconds per case for the next ``count`` cases."""

    def one(asked: tuple[Litmus, Spec]) -> None:
        with suppress(UndeterminedError):
            if found := find_differences(*asked, carry):
                raise AssertionError(found)

    asked = list(islice(cases, count))
    start = perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, asked))
    return (perf_counter() - start) / len(asked)


def rows(kind: str, count: int, rounds: int, carry: RunsTests) -> Iterator[str]:
    cases = KINDS[kind](random.Random(1), WARM + count * rounds * len(AT_ONCE))
    carry_out(cases, WARM, max(AT_ONCE), carry)
    times: dict[int, list[float]] = {n: [] for n in AT_ONCE}
    for _ in range(rounds):
        for n in AT_ONCE:
            times[n].append(carry_out(cases, count, n, carry))
    medians = {n: statistics.median(times[n]) for n in AT_ONCE}
    for n, seconds in medians.items():
        cells = (
            kind,
            f"{n}",
            f"{seconds:.2f} s",
            f"{3600 / seconds:,.0f}",
            f"{medians[1] / seconds:.1f}",
        )
        yield f"| {' | '.join(cells)} |\n"


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    asked.add_argument("--cases", type=int, default=30)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    sys.stdout.write(
        f"| tests | at a time | one | an hour | one at a time / this |\n|{'---|' * 5}\n"
    )
    with open_engine("delta") as carry:
        for kind in options.kinds:
            for row in rows(kind, options.cases, options.rounds, carry):
                sys.stdout.write(row)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
