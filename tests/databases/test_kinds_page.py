"""docs/results/locking-engines.md is what the locking litmus tests expect, and what Derby and PostgreSQL
were observed to do.

After a change of those tests: ``pytest --whole --record-runs
tests/conformance/test_recorded_catalogue.py`` asks the engines, then ISOLITMUS_UPDATE=1 pytest
tests/databases/test_kinds_page.py writes the page.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from catalogue_runs import RecordedRuns

from isolitmus.checker.execution.run_result import RunResult
from isolitmus.model.sql.values import show_row
from isolitmus.specs import litmus
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import protocols

PAGE = Path(__file__).parents[2] / "docs" / "results" / "locking-engines.md"
TESTS = litmus_names("locking")
KINDS = {
    "read-uncommitted": "RU",
    "read-committed": "RC",
    "read-committed-coupled": "RC coupled",
    "read-committed-page": "RC page",
    "read-committed-table": "RC table",
    "repeatable-read": "RR",
    "repeatable-read-escalating": "RR escalating",
    "serializable": "S",
    "read-committed-snapshot": "RC snapshot",
    "latest-committed": "latest",
    "oldest-committed": "oldest",
    "snapshot": "snapshot",
}
LEVELS = {
    "read-uncommitted": "RU",
    "read-committed": "RC",
    "repeatable-read": "RR",
    "serializable": "S",
}
COLUMNS = {
    "kinds": {f"locking-{name}": head for name, head in KINDS.items()},
    "engines": {
        f"{engine}-{name}": f"{called} {head}"
        for engine, called, names in (
            ("derby", "Derby", LEVELS),
            ("postgresql", "PostgreSQL", ("read-committed", "repeatable-read", "serializable")),
        )
        for name, head in ((name, LEVELS[name]) for name in names)
    },
}
ENGINES = {"derby": "Derby", "postgres": "PostgreSQL"}


def said(expect):
    """What an expectation says, in words of the page."""
    outcomes = {outcome for outcomes in expect.outcome.values() for outcome in outcomes}
    if "row-once" in expect.fails:
        met = [max(Counter(row[0] for row in rows).values()) for rows in expect.emitted.values()]
        yield {1: "missed", 2: "twice", 3: "three times"}[max(met)]
    elif "one-moment" in expect.fails:
        yield "no moment"
    if "no-dirty-read" in expect.fails:
        yield "dirty"
    yield from (f"breaks {name}" for name in expect.breaks or ())
    if expect.serial == ():
        yield "no serial order"
    if "Deadlock" in outcomes:
        yield "deadlock"
    elif expect.waits:
        yield "waits"
    if "SerializationFailure" in outcomes:
        yield "serialization failure"
    if "error:DuplicateKey" in outcomes:
        yield "duplicate key"


def word(expect):
    if expect is None:  # tests/databases/locking/test_catalogue.py says of which that may be
        return "no hints"
    found = list(said(expect))
    if not {*found} - {"waits"} and "serializable" in expect.fails:
        found.insert(0, "not serializable")
    if not expect.holds and not expect.fails:  # no levels are asked: what is read says it
        found += [f"reads {show_row(row)}" for rows in expect.reads.values() for row in rows]
    return ", ".join(found) or "clean"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def expected(columns):
    rows = [
        [f"`{name}`", *(word(litmus(name).expect.get(under)) for under in columns)]
        for name in TESTS
    ]
    return table(["litmus test", *columns.values()], rows)


def replayed():
    """What each engine was observed to do with each test, at all its levels."""
    seen = {(name, engine): [] for name in TESTS for engine in ENGINES}
    for engine in ENGINES:
        for (name, under), one in RecordedRuns.of_catalogue(engine).recorded.items():
            answer = "refused" if one.run is None else RunResult(litmus(name), one.run).expected
            seen[name, engine].append((under, answer))
    rows = [[f"`{name}`", *(did(seen[name, engine]) for engine in ENGINES)] for name in TESTS]
    return table(["litmus test", *ENGINES.values()], rows)


def did(runs):
    """The levels with one answer, together: as expected (met), another, or not run."""
    words = {"met": "as expected", "refused": "not run"}
    answers = {}
    for under, answer in sorted(runs, key=lambda run: [*COLUMNS["engines"]].index(run[0])):
        head = COLUMNS["engines"][under].split(" ")[1]
        answers.setdefault(words.get(answer, "differs"), []).append(head)
    if len(answers) == 1:
        return next(iter(answers))
    return "; ".join(f"{answer}: {', '.join(heads)}" for answer, heads in answers.items())


def parts(text):
    return dict(re.findall(r"<!-- made: (\w+) -->\n\n(.*?)\n<!-- end -->", text, re.DOTALL))


def compared(part, made):
    text = PAGE.read_text("utf-8")
    if os.environ.get("ISOLITMUS_UPDATE"):
        begin, end = f"<!-- made: {part} -->\n\n", "\n<!-- end -->"
        PAGE.write_text(
            text.replace(f"{begin}{parts(text)[part]}{end}", f"{begin}{made}{end}"), "utf-8"
        )
    else:
        assert parts(text)[part] == made, "ISOLITMUS_UPDATE=1 writes it anew"


def test_every_protocol_has_a_column():
    assert {*COLUMNS["kinds"], *COLUMNS["engines"]} == {*protocols("locking")}


@pytest.mark.slow
@pytest.mark.parametrize("part", COLUMNS)
def test_the_page_has_what_the_tests_expect(part):
    compared(part, expected(COLUMNS[part]))


@pytest.mark.slow
def test_the_page_has_what_engines_did():
    compared("replays", replayed())
