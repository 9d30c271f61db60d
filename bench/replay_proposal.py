"""Replay histories of a proposed rule on the code of its pull request, and compare with the model.

The histories are the candidates of a scope. All are taken that the protocol admits and the released
rule aborts, and of those that it aborts a sample; the seed draws. Each is executed by the engine
``delta:FOLDER``, and compared with the model's run under the protocol: outcomes, exceptions,
versions, and the rows at each version. With ``--evidence`` the runs are recorded in a file, which
``tests/conformance/test_recorded_proposals.py`` compares with the model without Spark.

    python bench/replay_proposal.py case-2-serializable --scope vectors --folder FOLDER --count 200
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.universes.tables import Candidate, candidates, of_format
from isolitmus.conformance.class_folder import read_class_folder
from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.conformance.engines import run_cases
from isolitmus.model.errors import IsolitmusError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.scope import Scope
from isolitmus.model.spec import Spec
from isolitmus.specs import protocol
from isolitmus.specs.files.catalogue import scope as read_scope

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from proposal_runs import ProposalRun, add_proposal_runs, is_code_of

SOURCE = "Candidate of the scope {}"
LEAST_ABORTED = 1 / 4
"""Share of aborted histories, at least."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Histories of a scope that are replayed, and how many there were of each kind."""

    gained: Sequence[Litmus]
    """Admitted by the protocol, aborted by the released rule."""
    aborted: Sequence[Litmus]
    lost: Sequence[Litmus]
    """Aborted by the protocol, admitted by the released rule."""
    counts: str


def admits(spec: Spec, scope: Scope) -> Callable[[Candidate], bool]:
    """Return a predicate on candidates: whether a spec admits them."""
    check, frame, reads = compile_spec(spec), of_format(scope, spec).frame, needs_reads(spec)
    if reads:
        return lambda candidate: check(frame(candidate.events, reasons=False, reads=True))
    return lambda candidate: check(candidate.frame)


def named_candidates(scope: Scope, sizes: Sequence[int]) -> Iterator[tuple[str, Candidate]]:
    """Yield all candidates of these numbers of transactions, each with its name."""
    for n in sizes:
        found = candidates(scope, n, lambda _: True)
        for number, candidate in enumerate(found, 1):
            assert candidate is not None
            yield f"{scope.name}-{n}-{number}", candidate


def choose(
    scope: Scope, sizes: Sequence[int], specs: tuple[Spec, Spec], count: int, seed: int
) -> Choice:
    """Return the histories to replay; if there are more than ``count``, the seed draws.

    ``specs`` are the protocol and the released rule.
    """
    spec, released = specs
    allowed, allowed_before = admits(spec, scope), admits(released, scope)
    kinds: dict[tuple[bool, bool], list[Litmus]] = {
        (now, before): [] for now in (False, True) for before in (False, True)
    }
    for name, candidate in named_candidates(scope, sizes):
        kind = kinds[allowed(candidate), allowed_before(candidate)]
        kind.append(candidate.litmus(name, "", SOURCE.format(scope.name)))
    gained, lost, aborted = kinds[True, False], kinds[False, True], kinds[False, False]
    draw = random.Random(seed)
    counts = (
        f"{sum(map(len, kinds.values())):,} candidates: {len(gained):,} admitted by {spec.name} and"
        f" aborted by {released.name}, {len(aborted):,} aborted by both, {len(lost):,} aborted by"
        f" {spec.name} only, {len(kinds[True, True]):,} admitted by both"
    )
    most = max(count - max(int(count * LEAST_ABORTED), 1), 1)
    gained = draw.sample(gained, min(len(gained), most))
    lost = draw.sample(lost, min(len(lost), max(count - len(gained), 1)))
    left = max(count - len(gained) - len(lost), 1)
    return Choice(gained, draw.sample(aborted, min(len(aborted), left)), lost, counts)


def tell(*lines: str) -> None:
    """Print lines at once: a replay takes minutes."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def replay_all(
    engine: str, tests: Sequence[Litmus], spec: Spec, at_once: int | None
) -> tuple[list[ProposalRun], list[str]]:
    """Return the runs, and the mismatches and errors in words, printed as they come."""
    runs, wrong = [], []
    with closing(run_cases(engine, [(test, spec) for test in tests], at_once)) as answers:
        for number, (test, answer) in enumerate(zip(tests, answers, strict=True), 1):
            if isinstance(answer, IsolitmusError):
                found = [f"{test.name}: {answer}"]
            else:
                runs.append(ProposalRun.record(test, spec, answer))
                found = runs[-1].differences(spec)
            if found:
                wrong.append(test.name)
                tell(str(test), *found, "")
            if number % 20 == 0:
                sys.stderr.write(f"{number}/{len(tests)}, {len(wrong)} mismatches\n")
    return runs, wrong


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("protocol", help="proposed protocol: its name or the path of its text")
    asked.add_argument("--scope", required=True, help="name or path of a scope")
    asked.add_argument("--folder", required=True, help="folder of classes of the pull request")
    asked.add_argument("--released", help="released protocol; default: that of the level")
    asked.add_argument("--transactions", default="2", metavar="N[,N...]")
    asked.add_argument("--count", type=int, default=200, help="number of histories")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--at-once", type=int, default=None)
    asked.add_argument("--evidence", type=Path, help="file of recorded runs to add to")
    given = asked.parse_args()
    try:
        spec, scope = protocol(given.protocol), read_scope(given.scope)
        level = spec.setting.rpartition("= ")[2]
        usual = next((name for name, known in PROTOCOLS.items() if known == level), None)
        if given.evidence is not None and not is_code_of(read_class_folder(given.folder), spec):
            sys.exit(
                f"replay_proposal: {given.folder} is not of the commits that {spec.name} names as"
                " its source, and cannot be its evidence; leave --evidence out"
            )
        released = protocol(given.released or usual or "delta-serializable")
        sizes = [int(n) for n in given.transactions.split(",")]
        chosen = choose(scope, sizes, (spec, released), given.count, given.seed)
        tell(chosen.counts)
        tests = [*chosen.gained, *chosen.lost, *chosen.aborted]
        start = perf_counter()
        runs, wrong = replay_all(f"delta:{given.folder}", tests, spec, given.at_once)
    except (IsolitmusError, UndeterminedError) as error:
        sys.exit(f"replay_proposal: {error}")
    version = runs[0].observed.run.engine_version if runs else "nothing"
    tell(
        f"{len(tests)} histories replayed on {version} in {perf_counter() - start:.0f} s:"
        f" {len(chosen.gained)} gained, {len(chosen.lost)} lost, {len(chosen.aborted)} aborted;"
        f" {len(tests) - len(wrong)} as the model predicts, {len(wrong)} mismatches"
    )
    if given.evidence is not None:
        add_proposal_runs(given.evidence, runs)
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
