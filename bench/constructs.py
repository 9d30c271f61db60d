"""Benchmark of the SQL that ``predict`` understands: statements that sample Spark's and Delta's
grammars, each beside five partners.

``constructs.toml`` has the statements. The partners of a statement are another run of itself, an
INSERT into the same and into another partition, a DELETE of one row, and OPTIMIZE. Each pair is
asked in both directions. Without an argument, all pairs are predicted and the shares printed; with
the name of a rule only those of its statements.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.predict.prediction import PairPredictor
from isolitmus.jobs.questions.table_alterations import leave_out_failing
from isolitmus.jobs.readers.sql_jobs import read_job_text
from isolitmus.jobs.readers.workload_file import build_workload
from isolitmus.model.errors import IsolitmusError, brief
from isolitmus.model.sql.expression import Opaque
from isolitmus.model.sql.query import unknown_parts
from isolitmus.model.sql.statement import Read
from isolitmus.specs import protocol
from isolitmus.specs.files.toml_reader import Node, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.jobs.questions.pair_prediction import PairPrediction
    from isolitmus.jobs.workload import Workload

FILE = Path(__file__).with_name("constructs.toml")
OBSERVED = Path(__file__).with_name("constructs-on-delta.toml")
LEVEL = "delta-serializable"
WORDS = (
    "modelled", "any rows", "any value", "commits nothing", "always fails", "not understood",
)  # fmt: skip
"""Outcome of a statement."""
TAKEN = "taken"
"""Outcome of a statement on Delta that raises nothing."""


class Construct(NamedTuple):
    """Statement that samples a construct of a grammar."""

    grammar: str
    """``spark`` or ``delta``."""
    rule: str
    """Rule or labelled alternative of the grammar, and perhaps what of it is sampled."""
    sql: str
    """The statement, or the statements of a job."""

    @property
    def table(self) -> str:
        """Table that the partners write to."""
        return (
            "events"
            if re.search(r"\bevents\b(?! LATERAL)", self.sql) and "orders" not in self.sql
            else "orders"
        )


class Treatment(NamedTuple):
    """Outcome of a statement in ``predict``."""

    word: str
    """One of `WORDS`."""
    part: str = ""
    """The part that is not modelled, or the reason."""


class Sample(NamedTuple):
    """Contents of ``constructs.toml``."""

    tables: tuple[str, ...]
    partners: Mapping[str, Mapping[str, str]]
    constructs: tuple[Construct, ...]
    other: Mapping[str, tuple[str, ...]]
    """Rules and alternatives that no statement samples, by the reason."""


def read_constructs() -> Sample:
    """Return the statements, their tables and their partners."""
    found = tomllib.loads(FILE.read_text("utf-8"))
    constructs = [
        Construct(grammar, rule, sql)
        for grammar in ("spark", "delta")
        for rule, written in found[grammar].items()
        for sql in ([written] if isinstance(written, str) else written)
    ]
    other = {why: tuple(names.split()) for why, names in found["other"].items()}
    return Sample(tuple(found["tables"]), found["partners"], tuple(constructs), other)


def construct_workload(sample: Sample, construct: Construct, *, partners: bool = True) -> Workload:
    """Return the workload of a statement and its partners; it may be not understood."""
    source = Source("construct.sql", construct.sql)
    jobs: dict[str, object] = {}
    if statements := read_job_text(source).statements:
        jobs["construct"] = {"sql": list(statements)}
    sources = {"construct": source}
    for name, sql in sample.partners[construct.table].items() if partners else ():
        jobs[name], sources[name] = {"sql": sql}, Source(f"{name}.sql", sql)
    whole = {"ddl": list(sample.tables), "jobs": jobs}
    node = Node(whole, "", Source("constructs.toml"))
    return build_workload(node, "constructs", sources=sources, each=True, partial=True)


def treatment(sample: Sample, construct: Construct) -> Treatment:
    """Return the outcome of a statement in ``predict``."""
    work = construct_workload(sample, construct, partners=False)
    if not work.jobs and not work.unread:
        return Treatment("commits nothing")
    if work.jobs:
        try:
            work = leave_out_failing(work)
        except IsolitmusError as error:
            return Treatment("always fails", str(error).partition(" fails with ")[2])
    if work.unread:
        return Treatment("not understood", work.unread[0].problem)
    if all(isinstance(one.statement, Read) for one in work.statements):
        return Treatment("commits nothing")
    stand_ins = [one for one in work.left_out if "any rows" in one]
    if stand_ins:
        return Treatment("any rows", stand_ins[0])
    parts = [
        str(part)
        for one in work.statements
        for part in unknown_parts(one.statement)
        if isinstance(part, Opaque)
    ]
    return Treatment("any value", parts[0]) if parts else Treatment("modelled")


def read_observed() -> dict[str, str]:
    """Return the outcome of each statement on Delta, by its text: ``taken`` or the error class."""
    return tomllib.loads(OBSERVED.read_text("utf-8"))


def cells(sample: Sample, construct: Construct) -> Iterator[PairPrediction | None]:
    """Yield the predictions for a statement and its partners, in both directions.

    None stands for a pair with a statement that commits nothing.
    """
    work = construct_workload(sample, construct)
    predictor = PairPredictor(leave_out_failing(work), protocol(LEVEL), examples=True)
    own = [one for one in predictor.every.values() if one.job == "construct"]
    others = [one for one in predictor.every.values() if one.job != "construct"]
    if not own:
        yield from [None] * (2 * len(others) + 1)
        return
    for one in own:
        yield predictor.pair(one, one)
        for other in others:
            yield predictor.pair(one, other)
            yield predictor.pair(other, one)


def word_of(cell: PairPrediction | None) -> str:
    """Return the class of a cell."""
    if cell is None or cell.word == "never":
        return "never"
    if "not understood" in cell.why:
        return "not understood"
    if not cell.exceptions:
        named = "is not modelled" in cell.why
        return "unknown, the part is named" if named else "unknown, no example was found"
    return "always, with an example" if cell.certain else "sometimes, with an example"


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    sample, asked = read_constructs(), set(sys.argv[1:])
    observed = read_observed()
    taken = [one for one in sample.constructs if observed[one.sql] == TAKEN]
    start = process_time()
    words: Counter[str] = Counter()
    for construct in taken:
        rule = construct.rule.partition(":")[0]
        if asked and rule not in asked:
            continue
        began = process_time()
        found = [*cells(sample, construct)]
        each = Counter(map(word_of, found))
        words += each
        told = ", ".join(f"{word} {count}" for word, count in each.most_common())
        sql = brief(construct.sql, 60)
        say(f"{process_time() - began:4.1f} s  {construct.rule}: {told}: {sql}")
        for why in sorted({cell.why for cell in found if cell is not None and cell.why}):
            say(f"        {brief(why, 150)}")
    say("\n| prediction | cells | share |\n|---|---|---|")
    for word, count in words.most_common():
        say(f"| {word} | {count:,} | {100 * count / words.total():.1f} % |")
    refused = [one for one in taken if treatment(sample, one).word == "not understood"]
    say(f"\n{len(taken)} statements, {len(refused)} not understood")
    say(f"{process_time() - start:.0f} s of one processor")


if __name__ == "__main__":
    main()
