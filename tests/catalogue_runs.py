"""Litmus tests on engines: those of the catalogue, what the model predicts, what was observed, and
which are asked again.

Whether an engine does what the model says is compared for every case in every run, without the
engine: what it did is recorded (``observed_runs``). It is asked again where the question has
another digest than when it was recorded, and for a fifth of the cases, which the seed draws.
"""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path

from case_checks import sample
from formats.conditions import condition_tests
from observed_runs import ObservedRun, case_digest, read_runs, write_runs

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.conformance.agreement import describe_differences
from isolitmus.conformance.deltalake import RELEASES
from isolitmus.databases.derby.server import derby_jars
from isolitmus.databases.postgres.server import postgres_programs
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.registries import engine_named

EVIDENCE = Path(__file__).parents[1] / "conformance" / "evidence"


CONDITIONS_UNDER = "delta-serializable"


@cache
def predicted(name, under):
    """Return the model's run of a litmus test of the catalogue under a protocol, judged; once for
    all tests.
    """
    return run(litmus(name), protocol(under))


def delta_release():
    return f"delta-spark {metadata.version('delta-spark')}, Spark {metadata.version('pyspark')}"


def derby_release():
    (release,) = {
        m[1] for jar in derby_jars() if (m := re.search(r"derby-([\d.]+)\.jar$", str(jar)))
    }
    return release


def postgres_release():
    asked = [postgres_programs() / "postgres", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return re.search(r"\d[\d.]*", said)[0]


NEWEST, OLDER = RELEASES
ENGINES = {
    "delta": delta_release,
    "deltalake": lambda: NEWEST,
    f"deltalake-{OLDER}": lambda: OLDER,
    "derby": derby_release,
    "postgres": postgres_release,
}
"""The engines, and what their runs say of their release, as it is known without a start."""


def cases(engine):
    """Return the cases of an engine, a litmus test and a protocol by their names.

    Delta executes what expects something of it; the others whatever they do not refuse.
    """
    if engine in ("derby", "postgres"):
        names = litmus_names("locking")
    else:
        names = [n for n in litmus_names() if isinstance(litmus(n), Litmus)]
    if engine.startswith("deltalake"):
        names = [name for name in names if not litmus(name).raw]
    return [
        (name, under)
        for name in names
        for under in engine_named(engine).protocols
        if engine != "delta" or under in litmus(name).expect
    ]


@dataclass
class RecordedRuns:
    """What an engine was observed to do with some litmus tests, and what the model predicts of
    them.
    """

    engine: str
    path: Path
    """Of the record."""
    tests: Mapping[tuple[str, str], Litmus]
    """The litmus tests by their cases: name and protocol."""
    predict: Callable[[str, str], RunResult]
    """The model's run of a case."""

    @classmethod
    def of_catalogue(cls, engine):
        """Return what is recorded of an engine and the catalogue."""
        tests = {case: litmus(case[0]) for case in cases(engine)}
        return cls(engine, EVIDENCE / "catalogue" / f"{engine}.jsonl", tests, predicted)

    @classmethod
    def of_conditions(cls):
        """Return what is recorded of Delta and the tests of conditions and joins."""
        tests = {(test.name, CONDITIONS_UNDER): test for test in condition_tests()}
        path = EVIDENCE / "conditions" / "delta.jsonl"
        return cls("delta", path, tests, lambda *case: run(tests[case], protocol(case[1])))

    @cached_property
    def recorded(self):
        """The observed runs by their cases."""
        return read_runs(self.path)

    def digest(self, case):
        """Return the digest of a case as the engine would be asked today."""
        return case_digest(self.engine, ENGINES[self.engine](), self.tests[case], case[1])

    def is_current(self, case):
        """Whether the engine would be asked the question to which the answer is recorded."""
        return case in self.recorded and self.recorded[case].digest == self.digest(case)

    def differences(self, case, observed, earlier=None):
        """Return where an observed run is not what is predicted and expected, a sentence each.

        Parameters
        ----------
        case : tuple of str
            Litmus test and protocol.
        observed : Run or None
            What the engine did; None if it did not execute the test, which is no difference.
        earlier : ObservedRun or None
            What the same question had as its answer before.
        """
        found = []
        if earlier is not None and (earlier.run is None) != (observed is None):
            found.append("executed once and not executed once")
        elif earlier is not None and observed is not None:
            found += [
                f"recorded, then now: {each}" for each in run_differences(earlier.run, observed)
            ]
        if observed is not None:
            judged = RunResult(self.tests[case], observed)
            found += [f"expected: {each}" for each in judged.differences]
            if not judged.apart:
                found += describe_differences(self.predict(*case), judged)
        return [f"{' under '.join(case)}: {each}" for each in found]

    @property
    def recorded_differences(self):
        """Where recorded runs are not what the model predicts today."""
        every = self.recorded.items()
        return [each for case, one in every for each in self.differences(case, one.run)]

    def to_ask(self, seed, *, whole=False):
        """Return the cases about which the engine is asked in a run, and why, in words."""
        if whole:
            return [*self.tests], f"{self.engine}: asked about all {len(self.tests)} cases"
        changed = {case for case in self.tests if not self.is_current(case)}
        drawn = {*sample(self.tests, seed)}
        asked = [case for case in self.tests if case in changed or case in drawn]
        why = (
            f"{self.engine}: asked about {len(asked)} of {len(self.tests)} cases: {len(drawn)}"
            f" drawn by the seed, {len(changed)} not recorded as they are asked now"
        )
        return asked, why

    def compare(self, case, observed):
        """Return where a new answer is not what is predicted, expected and, to the same question,
        recorded.
        """
        earlier = self.recorded[case] if self.is_current(case) else None
        return self.differences(case, observed, earlier)

    def record(self, observed):
        """Write the answers to some cases beside those that are kept; cases that are gone are left
        out.
        """
        fresh = {
            case: ObservedRun(*case, self.digest(case), seen) for case, seen in observed.items()
        }
        known = self.recorded | fresh
        write_runs(self.path, [known[case] for case in self.tests if case in known])
