"""Runs on the code of pull requests, recorded for each proposed protocol.

A file of ``EVIDENCE`` has the name of a protocol, and a line is an observed run (``observed_runs``)
with the text of its litmus test, so that searched histories need no file of their own. The run's
version names the release and the pull requests. The digest is of all that the engine was asked
with: the text, the isolation level and the confs of the protocol, the version, and the harness.
The axioms of the protocol are not part of it: they predict, and do not ask.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from observed_runs import ObservedRun, _from_json, _to_json, harness_digest

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.conformance.agreement import describe_differences
from isolitmus.model.display import text_digest
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import SeveralRuns
from isolitmus.specs import litmus, protocol
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.litmus_file import read_litmus

EVIDENCE = Path(__file__).parents[1] / "conformance" / "evidence" / "proposals"
FOLDER = "proposals"
"""Folder of the protocols and the litmus tests of proposals, below those that are shipped."""
HARNESS = "isolitmus.conformance.patched_delta"


def proposed_protocols():
    """Return the names of the shipped protocols that are proposals, sorted."""
    return _shipped("protocols")


def cases():
    """Return the cases that should be recorded: litmus test and protocol, by their names.

    They are the litmus tests of proposals under each proposal that they expect something of and
    that has a flag.
    """
    return [
        (name, under)
        for name in _shipped("litmus")
        for under in proposed_protocols()
        if under in litmus(name).expect and protocol(under).confs
    ]


def is_code_of(folder, spec):
    """Whether a folder of classes has every commit that the source of a proposal names.

    A fork may have another case in an older form, with the same flag.
    """
    heads = re.findall(r"\bat ([0-9a-f]{8})\b", spec.source)
    return bool(heads) and {*heads} <= {pull.head[:8] for pull in folder.pulls}


def _shipped(kind):
    return [name for name, path in shipped_files(kind).items() if path.parent.name == FOLDER]


@dataclass(frozen=True, slots=True)
class ProposalRun:
    """Run of a litmus test under a proposal, on the code of a pull request."""

    test: Litmus
    observed: ObservedRun

    @property
    def case(self):
        """The names of litmus test and protocol."""
        return self.observed.case

    @classmethod
    def record(cls, test, spec, seen):
        """Return the record of a run; the folder of the classes is not part of it."""
        seen = replace(seen, engine="delta")
        digest = proposal_digest(test, spec, seen.engine_version)
        return cls(test, ObservedRun(test.name, spec.name, digest, seen))

    def is_current(self, spec):
        """Whether the engine would be asked the same question today."""
        version = self.observed.run.engine_version
        return self.observed.digest == proposal_digest(self.test, spec, version)

    def differences(self, spec):
        """Return where the run is not what the model predicts or the test expects, a sentence each.

        Where the model says that it cannot predict, nothing is compared.
        """
        judged = RunResult(self.test, self.observed.run)
        found = [f"expected: {each}" for each in judged.differences]
        try:
            found += describe_differences(run(self.test, spec), judged)
        except SeveralRuns as several:
            unlike = [run_differences(one, self.observed.run) for one in several.runs]
            found += min(unlike, key=len)
        except UndeterminedError:
            pass
        return [f"{' under '.join(self.case)}: {each}" for each in found]


def proposal_digest(test, spec, version):
    """Return the digest of all that an engine with the code of pull requests is asked with."""
    bare = replace(test, title="", source="", tags=(), expect={})
    asked = [str(bare), spec.setting, sorted(spec.confs.items()), version, harness_digest(HARNESS)]
    return text_digest(json.dumps(asked))


def read_proposal_runs(path) -> Sequence[ProposalRun]:
    """Return the recorded runs of a file in their order; LitmusError for a line that is none."""
    runs = []
    if not path.exists():
        return runs
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
            test = read_litmus(entry.pop("text"), entry["litmus"])
            runs.append(ProposalRun(test, _from_json(entry)))
        except (ValueError, KeyError, TypeError, LitmusError) as error:
            raise LitmusError(f"{path.name}:{number}: not a recorded run: {error!r}") from None
    return runs


def write_proposal_runs(path, runs):
    """Write recorded runs to a file, sorted by litmus test, a line each."""
    lines = [
        json.dumps(
            {**_to_json(each.observed), "text": str(each.test)},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for each in sorted(runs, key=lambda each: each.case)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def add_proposal_runs(path, runs):
    """Write runs to a file beside those that it has; a run replaces the one of its case."""
    by_case = {each.case: each for each in (*read_proposal_runs(path), *runs)}
    write_proposal_runs(path, by_case.values())
