"""Conformance suite of a protocol: the fewest litmus tests that kill all its killable mutants.

The suite is for authors of clients of a table format. A client whose commit check differs from the
protocol by one operator, such as a check too few or too many, behaves differently in at least one
test. The smallest set of tests is a minimal hitting set, found by a MaxSAT solver (pysat's Hitman:
Davies and Bacchus, Solving MAXSAT by solving a sequence of simpler SAT instances, CP 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.search.mutant_separation import AskedTest, find_kills
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.litmus import Expectation, Litmus, expectation_lines
from isolitmus.model.toml_text import is_bare_key, quoted
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from isolitmus.checker.search.mutant_separation import Kill, MutantReport
    from isolitmus.specs.language.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Suite:
    """Smallest set of tests that kills all killable mutants of a protocol."""

    report: MutantReport
    """Report on the mutants."""
    tests: tuple[Kill, ...]
    """Tests, sorted by name."""

    def tells(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the mutants that a test of the suite kills."""
        return tuple(
            one.mutant.number for one in self.report.told if name in {k.name for k in one.kills}
        )


def smallest_hitting_set(sets: Collection[Collection[str]]) -> list[str]:
    """Return a smallest set of names that intersects each of the sets, sorted.

    Examples
    --------
    >>> smallest_hitting_set([["a", "b"], ["b", "c"], ["c", "d"], ["d"]])
    ['b', 'd']
    """
    from pysat.examples.hitman import Hitman

    if not sets:
        return []
    with Hitman(bootstrap_with=[sorted(one) for one in sets], htype="sorted") as solver:
        return sorted(solver.get())


def smallest_suite(report: MutantReport) -> Suite:
    """Return the smallest set of tests that kills every mutant that some test kills.

    Raises
    ------
    IsolitmusError
        If the spec is a level, which checks no commits, or if no mutant is killed.
    """
    if not PACKAGE.is_commit_check(report.spec):
        raise IsolitmusError(
            "--suite is for those who write a client of a table format, and"
            f" {report.spec.name} is not a protocol of one"
        )
    if not report.told:
        raise IsolitmusError(f"no mutant of {report.spec.name} was separated, so there is no suite")
    names = smallest_hitting_set([[kill.name for kill in one.kills] for one in report.told])
    by_name = {kill.name: kill for one in report.told for kill in one.kills}
    return Suite(report, tuple(by_name[name] for name in names))


def with_single_expectation(test: Litmus, suite: Suite) -> Litmus:
    """Return the test, read back from its text, with the protocol's run as its only expectation."""
    spec = suite.report.spec
    done = run(test, spec).run
    expect = Expectation(
        outcome={name: (t.outcome,) for name, t in done.transactions.items()},
        log={
            name: {"level": t.isolation_level}
            for name, t in done.transactions.items()
            if t.isolation_level is not None
        },
        reads={name: t.rows for name, t in done.transactions.items() if t.rows is not None},
        tables={} if test.raw else done.tables,
    )
    text = _without_expectations(test.text) if test.raw else str(replace(test, expect={}))
    table = spec.name if is_bare_key(spec.name) else quoted(spec.name)
    lines = (text.rstrip(), "", f"[expect.{table}]", *expectation_lines(expect))
    again = read_litmus("\n".join(lines) + "\n", test.name)
    assert isinstance(again, Litmus)
    same = replace(again, expect={}, text="", path=None)
    if same != replace(test, expect={}, text="", path=None):
        raise Disagreement(f"{test.name}: its text in the suite is another test:\n{again.text}")
    return again


def _without_expectations(text: str) -> str:
    """Return the text of a litmus file up to its expectations and the comments just above them."""
    kept: list[str] = []
    for line in text.splitlines():
        if line.startswith("[expect"):
            break
        kept.append(line)
    while kept and (not kept[-1].strip() or kept[-1].startswith("#")):
        kept.pop()
    return "\n".join(kept)


def write_suite(suite: Suite, folder: Path) -> list[str]:
    """Write each test as a litmus file into a folder, with an index, and return the file names.

    Before that each test is judged again from its text. The protocol has to behave as expected. The
    mutants that the test kills have to behave differently, or to record a commit at two levels,
    which no file can state.

    Raises
    ------
    Disagreement
        If a test fails this check.
    """
    told = {one.mutant.number: one.mutant for one in suite.report.told}
    spec = suite.report.spec
    tests = []
    for kill in suite.tests:
        assert isinstance(kill.test, Litmus)
        test = with_single_expectation(kill.test, suite)
        if run(test, spec).expected != "met":
            raise Disagreement(f"{test.name}: {spec.name} does not do as its file expects")
        asked = AskedTest(test, spec)
        for number in suite.tells(kill.name):
            if not any(find_kills(told[number], [asked])):
                raise Disagreement(f"{test.name}: from its text it does not tell mutant {number}")
        tests.append(test)
    missed = [number for number, mutant in told.items() if not is_caught(mutant, tests, spec.name)]
    folder.mkdir(parents=True, exist_ok=True)
    for test in tests:
        write_whole(folder / f"{test.name}.toml", test.text)
    write_whole(folder / "README.md", index_text(suite, missed))
    return [f"{test.name}.toml" for test in tests]


def is_caught(mutant: Mutant, tests: Iterable[Litmus], name: str) -> bool:
    """Return whether a client that checks commits by a mutant fails one of the tests.

    The tests expect what the protocol `name` does.
    """
    client = replace(mutant.spec, name=name)
    return any(run(test, client).expected == "not met" for test in tests)


def index_text(suite: Suite, missed: Collection[int] = ()) -> str:
    """Return the index of a suite: what each test shows, and which mutants it kills.

    `missed` are the numbers of mutants that differ only in a second level of a commit.
    """
    spec = suite.report.spec
    told = {one.mutant.number: one.mutant for one in suite.report.told}
    lines = [f"# A conformance suite for {spec.title}", "", _about(spec.name, len(told)), ""]
    lines += ["| test | shows | tells |", "|---|---|---|"]
    for kill in suite.tests:
        tells = ", ".join(map(str, suite.tells(kill.name)))
        lines.append(f"| [{kill.name}]({kill.name}.toml) | {kill.test.title} | {tells} |")
    lines += ["", "The separated specs:", ""]
    for number, mutant in told.items():
        twice = "; it gives a commit two levels, which no client can" if number in missed else ""
        lines.append(f"{number}. `{mutant.change}`: {mutant.what}{twice}")
    return "\n".join(lines) + "\n"


def _about(name: str, mutants: int) -> str:
    """Return the description of the suite."""
    return (
        f"The fewest litmus tests that tell all {mutants} specs apart from `{name}` which differ"
        " from its text by one operator and do not say the same. A client that checks commits by"
        f" one of these fails in a test below.\n`isolitmus run . --protocol {name}` carries them"
        f" out on the model; each file says under `[expect.{name}]` how every transaction ends and"
        " at what level it is recorded."
    )
