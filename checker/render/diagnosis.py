"""Why a commit aborted, in lines for a person: by the text of its exception, by the table's log, by an example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.auditing.diagnosis import BY_FILES
from isolitmus.checker.render.text_pictures import timeline
from isolitmus.checker.render.verdicts import refusal_words
from isolitmus.model.delta.conflict import CONFLICTS, UNKNOWN, ConflictFacts
from isolitmus.model.display import count_of
from isolitmus.model.errors import brief
from isolitmus.specs.files.exceptions_file import exception_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.auditing.diagnosis import ConflictingCommits, Diagnosis, ReplayedExample
    from isolitmus.model.delta.conflict import ConflictException
    from isolitmus.model.delta.log import LogCommit

__all__ = ["diagnosis_lines", "example_lines", "general_lines", "stopped_lines"]

FILES = 3
"""So many files are named."""
FEW = 3
"""So many transactions of an example are shown, or those that met."""
OPEN_SOURCE = " by the rules of open-source Delta on Spark, which compares files"
"""Said of examples beside the text of another engine."""
HINTS = ("WITHOUT_HINT", "WITH_PARTITION_HINT", "CONFLICTING_COMMIT")
"""What an error class has after its dot and is no cause."""
ENDS = {"committed": "commits", "no-op": "finds nothing left to do"}


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    """The diagnosis for a person: what to do in three lines, then the rest."""
    known, pasted = found.known, found.pasted
    first, *others = found.changes
    yield f"Retry? {known.retry.capitalize()}. {known.retried(found.facts)}"
    yield f"What stopped it? {known.title}{_winner(found)}."
    yield f"What to change? {first}"
    yield ""
    said = filter(None, (pasted.error_class, pasted.engine.replace(UNKNOWN, "")))
    named = f" ({words})" if (words := ", ".join(said)) else ""
    checks = "docs/delta.md, 2.3; " if "ConflictChecker.scala" in known.place else ""
    if _foreign(found) and pasted.condition is None and known.name in CONFLICTS:
        checks = f"in Delta on Spark: {checks}"
    yield f"{known.name}{named}: {known.check} ({checks}{known.place})"
    yield from (f"  {line}" for line in _source(found))
    yield from (f"  {line}" for line in (*_details_of(found), *_where(found), *_mine(found)))
    yield f"  What it means: {known.means(found.facts)}"
    if others:
        yield "  What else to change:"
        yield from (f"    - {one}" for one in others)
    if found.example is not None:
        yield from (f"  {line}" for line in example_lines(found.example, _kind(found)))
    yield from (f"  Next: {step}" for step in found.next_steps())
    yield f"  More: {found.known.page}"
    if pasted.others:
        further = [f"another {one}" if one == pasted.name else one for one in pasted.others]
        yield f"  The text has {', '.join(further)}, too: give it alone to have that explained."


def _kind(found: Diagnosis) -> str:
    """What an example is one of."""
    assert found.example is not None
    of, facts = found.example.example, found.facts
    *_, winner, mine, _ = of.likeness(facts) or (False,) * 5
    said = [f" of {of.mine}" * mine, f" beside {of.winner}" * winner]
    unlike = (facts.mine is not None and not mine) or (facts.winner is not None and not winner)
    pair = " with other commands" if unlike else "".join(said)
    return pair + (OPEN_SOURCE if _foreign(found) else "")


def _foreign(found: Diagnosis) -> str:
    """How the engine's checks differ from those of Delta on Spark; empty: they do not, or it is not known."""
    engine = exception_table().engines.get(found.pasted.engine)
    return "" if engine is None else engine.note


def _winner(found: Diagnosis) -> str:
    """The commit that stopped it, in a few words, after what it did."""
    if found.stopped is not None:
        return f": {found.stopped.commit.words}"
    facts, pasted = found.facts, found.pasted
    said = [
        facts.winner,
        {True: "a blind append", False: "not a blind append", None: None}[facts.blind],
        facts.level and f"checked at {facts.level}",
        None if found.read_by_winner is None else f"which had read version {found.read_by_winner}",
    ]
    words = ", ".join(filter(None, said))
    of = f" of {pasted.table}" if pasted.table else ""
    version = "a commit" if facts.version is None else f"version {facts.version}"
    domain = f" that sets {pasted.domain}" if pasted.domain else ""
    if not (words or of or domain or facts.version is not None):
        return "; the text does not name the commit"
    where = f", in partition {pasted.partition}" if pasted.partition else ""
    return f": {version}{of}{words and f' ({words})'}{domain}{where}"


def _source(found: Diagnosis) -> Iterator[str]:
    """Whose words the text has, and what is not known of them."""
    if _foreign(found) and found.known.name in CONFLICTS:
        yield _foreign(found)
    unknown = found.pasted.sub_condition
    if unknown and unknown not in (*HINTS, found.pasted.condition):
        yield f"{unknown} is not known to isolitmus; what follows is of {found.known.name} in general"


def _details_of(found: Diagnosis) -> Iterator[str]:
    """Further things that are known of the commit that stopped it."""
    if found.stopped is not None:
        yield from _details(found.stopped.commit)
        return
    predicate = (found.pasted.commit.get("operationParameters") or {}).get("predicate")
    if predicate:
        yield f"its condition: {brief(str(predicate), 200)}"


def _where(found: Diagnosis) -> Iterator[str]:
    met = found.met
    if found.pasted.partition is not None:
        yield f"where: partition {found.pasted.partition}"
    elif (
        found.facts.where == "table"
        and found.known.name in BY_FILES
        and found.pasted.condition is None
    ):
        yield "where: no partition is named; any file of the table counts"
    names = [file.path for file in met] or list(filter(None, [found.pasted.file]))
    if names:
        more = f" and {count_of(len(names) - FILES, 'other file')}" if len(names) > FILES else ""
        yield f"{'files' if len(names) > 1 else 'file'}: {', '.join(names[:FILES])}{more}"


def _mine(found: Diagnosis) -> Iterator[str]:
    if found.pasted.mine is not None:
        yield f"your job: {found.pasted.mine}, by the {found.pasted.told}"
    if found.later is not None:
        yield f"since then: {found.later.words}; perhaps your job, run again"


def example_lines(example: ReplayedExample, kind: str = "") -> Iterator[str]:
    """The example for a person; ``kind`` says of what it is one."""
    of = example.example
    yield f"An example{kind}, {of.test} under {example.under}:"
    statements = example.judged.litmus.transactions
    met = {name for edge in example.why.cycle for name in (edge.source, edge.target)}
    shown = [name for name in statements if len(statements) <= FEW or name in met]
    width = max(map(len, shown))
    for name in shown:
        yield f"  {name:<{width}}  {brief(statements[name].sql)}"
    for line in timeline(example.judged.litmus.schedule, example.judged.run).splitlines():
        if line.split()[0] in shown:
            yield f"  {line}"
    if len(shown) < len(statements):
        yield f"  ({count_of(len(statements) - len(shown), 'other transaction')} of it left out here)"
    yield from (f"  {line}" for line in refusal_words(example.why))
    yield f"  Run after the others, {of.loser} {ENDS.get(example.again, f'ends with {example.again}')}."
    yield f"  See it on Delta: isolitmus run {of.test} --protocol {example.under} --engine delta"


def stopped_lines(found: ConflictingCommits) -> Iterator[str]:
    """The commits for a person."""
    if not found.commits and found.ended is None:
        yield f"{found.table}: nothing was committed after version {found.after}: no conflict stopped your job"
    for one in found.commits:
        yield one.commit.words
        yield from (f"  {line}" for line in _details(one.commit))
        yield from (f"  {name}: {whom}" for name, whom in one.stops.items())


def _details(commit: LogCommit) -> Iterator[str]:
    """What a commit says of itself besides."""
    said = [
        None if commit.read_version is None else f"it had read version {commit.read_version}",
        commit.level and f"was checked at {commit.level}",
        commit.engine and f"by {commit.engine}",
    ]
    if any(said):
        yield ", ".join(filter(None, said))
    parameters = {k: v for k, v in commit.parameters.items() if v not in ("", "[]", None, [])}
    if parameters:
        yield ", ".join(f"{k}: {brief(str(v), 120)}" for k, v in parameters.items())


def general_lines(known: ConflictException) -> Iterator[str]:
    """What an exception means, and what to do, whatever the conflict was."""
    yield f"What it means: {known.means(ConflictFacts())}"
    yield f"Retry? {known.retry.capitalize()}. {known.retrying}"
    yield "What to change:"
    yield from (f"  - {one.text}" for one in known.changes)
    table = exception_table()
    causes = [one for one in table.conditions.values() if known.name in one.of]
    if causes and known is table.every[known.name]:
        yield "Causes with advice of their own (isolitmus explain says it):"
        yield from (f"  - {one.name}: {one.instead['title']}" for one in causes)
