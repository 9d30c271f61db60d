"""Diagnosis of an aborted commit as text: its exception, the table's log, an example."""

from __future__ import annotations

import json
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

    from isolitmus.checker.auditing.diagnosis import (
        ConflictingCommits,
        Diagnosis,
        OtherDiagnosis,
        ReplayedExample,
    )
    from isolitmus.model.delta.conflict import ConflictException
    from isolitmus.model.delta.log import LogCommit

FILES = 3
"""Maximum number of files that are named."""
FEW = 3
"""Maximum number of transactions of an example.

Of a longer one, only the conflicting transactions are shown.
"""
OPEN_SOURCE = " (by the rules of open-source Delta on Spark, which compares files)"
"""Note on examples for the exception of another engine."""
RETRY = {"yes": "yes", "no": "no", "after a look": "only after a check"}
"""Words for each value of `retry`."""
HINTS = ("WITHOUT_HINT", "WITH_PARTITION_HINT", "CONFLICTING_COMMIT")
"""Suffixes of error classes that are no causes."""
ENDS = {"committed": "succeeds", "no-op": "is a no-op"}


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    """Yield the diagnosis: event, cause, change, retry; then the details and an example."""
    known, pasted = found.known, found.pasted
    first, *others = found.changes
    yield f"{known.name}: {_lowered(known.title)}. Retry: {RETRY[known.retry]}."
    yield f"Cause: {_winner(found)}."
    yield f"Change: {first}"
    when = "When" if known.retry == "yes" else "Before"
    yield f"{when} you retry: {known.retried(found.facts)}"
    yield ""
    yield "Details:"
    yield from (f"  {line}" for line in _source(found))
    yield f"  Check: {known.check} ({_place(found)})."
    yield from (f"  {line}" for line in (*_details_of(found), *_where(found), *_mine(found)))
    yield f"  Meaning: {known.means(found.facts)}"
    if others:
        yield "Other changes:"
        yield from (f"  - {one}" for one in others)
    if found.example is not None:
        yield from example_lines(found.example, _kind(found))
    yield from (f"Next: {step}" for step in found.next_steps())
    yield f"More: {found.known.page}"
    if pasted.others:
        further = [f"another {one}" if one == pasted.name else one for one in pasted.others]
        yield (
            f"Note: the text also contains {', '.join(further)}. To explain that one, pass its text"
            " alone."
        )


def other_lines(found: OtherDiagnosis) -> Iterator[str]:
    """Yield the meaning and remedy of an error other than a conflict of commits."""
    error = found.error
    name = error.name or "This"
    if error.format:
        article = "an" if error.format[0] in "AEIOU" else "a"
        of = f"{article} {error.format} table"
        yield f"{name} is a conflict in {of}, which isolitmus does not model."
    else:
        yield f"{name} is not a conflict of commits to a Delta table."
    yield f"Meaning: {error.says}"
    if error.change:
        yield f"Change: {error.change}"
    yield from (f"{what[0].upper()}{what[1:]}: {n}" for what, n in error.versions.items())


def _lowered(title: str) -> str:
    """Return a title in the form it has inside a sentence."""
    return f"{title[0].lower()}{title[1:]}"


def _place(found: Diagnosis) -> str:
    """Return references to the documentation and implementation of the check."""
    known = found.known
    checks = "docs/delta.md, 2.3; " if "ConflictChecker.scala" in known.place else ""
    if _foreign(found) and found.pasted.condition is None and known.name in CONFLICTS:
        checks = f"in Delta on Spark: {checks}"
    return f"{checks}{known.place}"


def _kind(found: Diagnosis) -> str:
    """Return the kind of an example in words."""
    assert found.example is not None
    of, facts = found.example.example, found.facts
    *_, winner, mine, _ = of.likeness(facts) or (False,) * 5
    unlike = (facts.mine is not None and not mine) or (facts.winner is not None and not winner)
    if unlike:
        pair = " with other commands"
    elif mine and winner:
        pair = f" of {of.mine} in conflict with {of.winner}"
    elif mine or winner:
        pair = f" of an aborted {of.mine}" if mine else f" of a conflict with {of.winner}"
    else:
        pair = ""
    return pair + (OPEN_SOURCE if _foreign(found) else "")


def _foreign(found: Diagnosis) -> str:
    """Return the differences of the engine's checks from those of Delta on Spark.

    Empty if there are none, or if they are unknown.
    """
    engine = exception_table().engines.get(found.pasted.engine)
    return "" if engine is None else engine.note


def _winner(found: Diagnosis) -> str:
    """Return the winning commit in a few words."""
    if found.stopped is not None:
        return found.stopped.commit.words
    facts, pasted = found.facts, found.pasted
    said = [
        _operation(found),
        {True: "a blind append", False: "not a blind append", None: None}[facts.blind],
        facts.level and f"checked at {facts.level}",
        None if found.read_by_winner is None else f"read version {found.read_by_winner}",
    ]
    words = ", ".join(filter(None, said))
    of = f" of {pasted.table}" if pasted.table else ""
    version = "a concurrent commit" if facts.version is None else f"version {facts.version}"
    domain = f" that sets {pasted.domain}" if pasted.domain else ""
    if not (words or of or domain or facts.version is not None):
        return "a concurrent commit, which the text does not name"
    where = f", in partition {pasted.partition}" if pasted.partition else ""
    return f"{version}{of}{words and f' ({words})'}{domain}{where}"


def _operation(found: Diagnosis) -> str | None:
    """Return the operation of the winning commit, and whether it is about every row."""
    if found.facts.winner == "AUTO COMPACTION":
        return f"{found.operation}, an auto compaction"
    of_all_rows = found.operation in ("DELETE", "UPDATE") and _condition(found) == "true"
    return f"{found.operation} of all rows" if of_all_rows else found.operation


def _condition(found: Diagnosis) -> str:
    """Return the condition of the winning commit; empty if the text has none.

    Delta writes a list of conditions as JSON, Spark's own names of columns with it.
    """
    predicate = (found.pasted.commit.get("operationParameters") or {}).get("predicate")
    if isinstance(predicate, str) and predicate.startswith("["):
        try:
            predicate = json.loads(predicate)
        except ValueError:
            return predicate
    parts = predicate if isinstance(predicate, list) else [predicate]
    return " AND ".join(str(part) for part in parts if part not in (None, "", "[]"))


def _source(found: Diagnosis) -> Iterator[str]:
    """Yield the error class and the engine, and what is unknown about them."""
    if found.pasted.error_class is not None:
        yield f"Error class: {found.pasted.error_class}"
    unknown = found.pasted.sub_condition
    if unknown and unknown not in (*HINTS, found.pasted.condition):
        yield (
            f"Unknown part of the error class: {unknown}. The following is about {found.known.name}"
            " in general."
        )
    shown_by = " (by the winning commit alone)" if found.pasted.is_engine_of_winner else ""
    if _foreign(found) and found.known.name in CONFLICTS:
        yield f"Engine: {_foreign(found)}{shown_by}"
    elif found.pasted.engine != UNKNOWN:
        yield f"Engine: {found.pasted.engine}{shown_by}"


def _details_of(found: Diagnosis) -> Iterator[str]:
    """Yield further facts about the winning commit."""
    if found.stopped is not None:
        yield from _details(found.stopped.commit, "Winning commit")
        return
    condition = _condition(found)
    if condition:
        all_rows = " (all rows)" if condition == "true" else ""
        yield f"Condition of the winning commit: {brief(condition, 200)}{all_rows}"


def _where(found: Diagnosis) -> Iterator[str]:
    """Yield the lines on the partition and the files of the conflict."""
    met = found.met
    if found.pasted.partition is not None:
        yield f"Partition: {found.pasted.partition}"
    elif (
        found.facts.where == "table"
        and found.known.name in BY_FILES
        and found.pasted.condition is None
        and found.pasted.file is None
    ):
        yield "Partition: none is named, so any file of the table counts"
    names = [file.path for file in met] or list(filter(None, [found.pasted.file]))
    if names:
        more = f" and {count_of(len(names) - FILES, 'other file')}" if len(names) > FILES else ""
        yield f"{'Files' if len(names) > 1 else 'File'}: {', '.join(names[:FILES])}{more}"


def _mine(found: Diagnosis) -> Iterator[str]:
    """Yield the lines on the job that aborted and on a later commit that may be its retry."""
    if found.pasted.mine is not None:
        yield f"Your job: {found.pasted.mine} (according to the {found.pasted.told})"
    if found.later is not None:
        yield f"Later commit: {found.later.words}; perhaps a retry of your job"


def example_lines(example: ReplayedExample, kind: str = "") -> Iterator[str]:
    """Yield the example in lines; ``kind`` says what it is an example of."""
    of = example.example
    yield f"Example{kind}: litmus test {of.test} under {example.under}"
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
        yield f"  ({count_of(len(statements) - len(shown), 'other transaction')} not shown)"
    yield from (f"  {line}" for line in refusal_words(example.why))
    yield f"  Retry of {of.loser}: {ENDS.get(example.again, f'ends with {example.again}')}."
    yield f"  Run it on Delta: isolitmus run {of.test} --protocol {example.under} --engine delta"


def stopped_lines(found: ConflictingCommits) -> Iterator[str]:
    """Yield, for each commit, the concurrent transactions that conflict with it."""
    if not found.commits and found.ended is None:
        yield (
            f"{found.table}: no commit after version {found.after}, so no conflict made your job"
            " abort."
        )
    elif found.commits:
        versions = [one.commit.version for one in found.commits]
        span = f"version {versions[0]}"
        if len(versions) > 1:
            span = f"versions {versions[0]}–{versions[-1]}"
        yield f"{found.table}: concurrent transactions that {span} can make abort:"
    for one in found.commits:
        yield one.commit.words
        yield from (f"  {line}" for line in _details(one.commit))
        yield from (f"  {name}: {whom}" for name, whom in one.stops.items())


def _details(commit: LogCommit, label: str = "Commit") -> Iterator[str]:
    """Yield what a commit records about itself, after a label."""
    facts = [
        None if commit.read_version is None else f"read version {commit.read_version}",
        commit.level and f"checked at {commit.level}",
        commit.engine and f"by {commit.engine}",
    ]
    if any(facts):
        yield f"{label}: {', '.join(filter(None, facts))}"
    parameters = {k: v for k, v in commit.parameters.items() if v not in ("", "[]", None, [])}
    if parameters:
        shown = ", ".join(f"{k}: {brief(str(v), 120)}" for k, v in parameters.items())
        yield f"Parameters: {shown}"


def general_lines(known: ConflictException) -> Iterator[str]:
    """Yield the meaning of an exception, and what to do, for any conflict."""
    yield f"Retry: {RETRY[known.retry]}. {known.retrying}"
    yield f"Meaning: {known.means(ConflictFacts())}"
    yield "What to change:"
    yield from (f"  - {one}" for one in known.changes)
    table = exception_table()
    causes = [one for one in table.conditions.values() if known.name in one.of]
    if causes and known is table.every[known.name]:
        yield "Causes with their own advice (isolitmus explain prints it):"
        yield from (f"  - {one.name}: {one.instead['title']}" for one in causes)
