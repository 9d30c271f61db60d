"""The catalogue on engines: its cases, what the model predicts, what was observed, and which cases are asked again.

Whether an engine does what the model says is compared for every case in every run, without the engine: what it did is
recorded (``observed_runs``). It is asked again where the question has another digest than when it was recorded, and for
a fifth of the cases, which the seed draws.
"""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from case_checks import sample
from observed_runs import ObservedRun, case_digest, read_runs, write_runs

from isolitmus.checker.comparing import run_differences
from isolitmus.checker.runs import Judged, run
from isolitmus.conformance.agreement import unlike
from isolitmus.conformance.deltalake import RELEASES
from isolitmus.conformance.derby.server import jars
from isolitmus.conformance.postgres.server import binaries
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_names
from isolitmus.specs.engines import engine_named

EVIDENCE = Path(__file__).parents[1] / "conformance" / "evidence" / "catalogue"


@cache
def predicted(name, under):
    """Return the model's run of a litmus test of the catalogue under a protocol, judged; once for all tests."""
    return run(litmus(name), protocol(under))


def delta_release():
    return f"delta-spark {metadata.version('delta-spark')}, Spark {metadata.version('pyspark')}"


def derby_release():
    (release,) = {m[1] for jar in jars() if (m := re.search(r"derby-([\d.]+)\.jar$", str(jar)))}
    return release


def postgres_release():
    asked = [binaries() / "postgres", "--version"]
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


def differences(case, observed, earlier=None):
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
    name, under = case
    found = []
    if earlier is not None and (earlier.run is None) != (observed is None):
        found.append("executed once and not executed once")
    elif earlier is not None and observed is not None:
        found += [f"recorded, then now: {each}" for each in run_differences(earlier.run, observed)]
    if observed is not None:
        judged = Judged(litmus(name), observed)
        found += [f"expected: {each}" for each in judged.differences]
        if not judged.apart:
            found += unlike(predicted(name, under), judged)
    return [f"{name} under {under}: {each}" for each in found]


@dataclass
class CatalogueRuns:
    """What an engine was observed to do with the catalogue."""

    engine: str
    recorded: dict[tuple[str, str], ObservedRun]

    @classmethod
    def read(cls, engine):
        """Return what is recorded of an engine."""
        return cls(engine, read_runs(EVIDENCE / f"{engine}.jsonl"))

    def digest(self, case):
        """Return the digest of a case as the engine would be asked today."""
        name, under = case
        return case_digest(self.engine, ENGINES[self.engine](), litmus(name), under)

    def is_current(self, case):
        """Whether the engine would be asked the question to which the answer is recorded."""
        return case in self.recorded and self.recorded[case].digest == self.digest(case)

    def recorded_differences(self, case):
        """Return where a recorded run is not what the model predicts today."""
        return differences(case, self.recorded[case].run)

    def to_ask(self, seed, *, whole=False):
        """Return the cases about which the engine is asked in a run, and why, in words."""
        every = cases(self.engine)
        if whole:
            return every, f"{self.engine}: asked about all {len(every)} cases"
        changed = {case for case in every if not self.is_current(case)}
        drawn = {*sample(every, seed)}
        asked = [case for case in every if case in changed or case in drawn]
        why = (
            f"{self.engine}: asked about {len(asked)} of {len(every)} cases: {len(drawn)} drawn by the seed,"
            f" {len(changed)} not recorded as they are asked now"
        )
        return asked, why

    def compare(self, case, observed):
        """Return where a new answer is not what is predicted, expected and, to the same question, recorded."""
        return differences(case, observed, self.recorded[case] if self.is_current(case) else None)

    def record(self, observed):
        """Write the answers to some cases beside those that are kept; cases that are gone are left out."""
        fresh = {
            case: ObservedRun(*case, self.digest(case), seen) for case, seen in observed.items()
        }
        known = self.recorded | fresh
        write_runs(
            EVIDENCE / f"{self.engine}.jsonl", [known[c] for c in cases(self.engine) if c in known]
        )
