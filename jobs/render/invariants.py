"""Invariants of jobs as text and as an HTML page.

The text has the answer in one line, a table of invariants and levels, proofs, violations with their
repairs, and assumptions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.jobs.invariant import GroupLimit, Reference, Total
from isolitmus.jobs.render.job_examples import job_example
from isolitmus.jobs.render.prediction import enumeration
from isolitmus.jobs.render.robustness import (
    answer_style,
    cell_lines,
    cost_lines,
    level_word,
)
from isolitmus.model.display import capitalized, count_of, first_reasons
from isolitmus.model.sql.values import show_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.jobs.invariants.invariant_runs import InvariantViolation
    from isolitmus.jobs.invariants.invariants import InvariantAnswer
    from isolitmus.jobs.robust.repairs import Repair

UNLESS_NULL = "kept unless NULL"
WORDS = {
    "kept": "every version satisfies it: proved for any number of runs, all parameter values and"
    " all rows",
    UNLESS_NULL: "kept if no parameter is NULL, which is proved; otherwise violated or unknown",
    "broken alone": "one run violates it, with no other run beside it",
    "broken by overlap": "overlapping runs violate it; no run violates it by itself, which is"
    " proved",
    "broken": "overlapping runs violate it; it is not proved that no run does by itself",
    "half done": "only versions inside a job's run violate it, between its statements",
    "unknown": "neither proved nor violated",
}
"""Meaning of the answers."""
SHOWN = 4
"""Maximum number of reasons, and of rows of a violation, that are printed."""


def invariant_cell(answer: InvariantAnswer) -> str:
    """Return an answer in a table: kept, kept unless NULL, broken alone, broken by overlap, half
    done, or unknown.
    """
    found = answer.violation
    if answer.not_null is not None:
        return UNLESS_NULL
    if found is None:
        return answer.word
    if found.half_done:
        return "half done"
    if found.alone:
        return "broken alone"
    return "broken by overlap" if answer.keeps_alone else "broken"


def invariants_line(answers: Sequence[InvariantAnswer]) -> str:
    """Return the answer in one line: the levels at which each invariant is kept, or broken."""
    parts = []
    for name in dict.fromkeys(one.invariant.name for one in answers):
        by_word: dict[str, list[str]] = {}
        for one in answers:
            if one.invariant.name == name:
                half = "broken half done" if invariant_cell(one) == "half done" else one.word
                cell = "kept unless a parameter is NULL" if one.not_null else half
                by_word.setdefault(cell, []).append(level_word(one.protocol))
        said = (f"{word} at {enumeration(levels)}" for word, levels in by_word.items())
        parts.append(f"{name} is {', '.join(said)}")
    return f"{answers[0].workload.title}: {'; '.join(parts)}."


def invariant_lines(
    answers: Sequence[InvariantAnswer], repairs: Mapping[tuple[str, str], Sequence[Repair]]
) -> Iterator[str]:
    """Yield the table of answers, and for each invariant its proof, or its violation and repairs.

    ``repairs`` holds those of an answer, by invariant and protocol, if they were asked for.
    """
    yield "Invariants of every version. Row: invariant. Column: isolation level."
    cells = {(one.invariant.name, level_word(one.protocol)): invariant_cell(one) for one in answers}
    yield from cell_lines(cells)
    yield ""
    used = [word for word in WORDS if word in cells.values()]
    for word in used:
        yield f"  {word:<{max(map(len, used))}}  {WORDS[word]}"
    for name in dict.fromkeys(one.invariant.name for one in answers):
        own = [one for one in answers if one.invariant.name == name]
        yield ""
        yield f"{name}: no rows from {own[0].invariant.query}"
        for alike in _alike(own):
            yield ""
            yield from _evidence(alike)
            key = name, alike[0].protocol
            if key in repairs:
                yield ""
                yield from (f"  {line}" for line in _repairs(name, repairs[key]))


def _alike(answers: Sequence[InvariantAnswer]) -> list[list[InvariantAnswer]]:
    """Group the answers with the same evidence."""
    found: dict[tuple[object, ...], list[InvariantAnswer]] = {}
    for one in answers:
        tests = [each.test for each in one.violations]
        shown = [(str(test.schedule), *(each.sql for each in test.init)) for test in tests]
        found.setdefault((invariant_cell(one), *shown, one.why), []).append(one)
    return list(found.values())


def _evidence(alike: Sequence[InvariantAnswer]) -> Iterator[str]:
    """Yield the proof, the violation, or the reasons of answers with the same evidence."""
    one = alike[0]
    levels = enumeration([level_word(each.protocol) for each in alike])
    if one.word == "kept":
        yield f"  At {levels}: kept, at every version."
        yield from (f"    {line}" for line in proof_of_invariant(one))
        return
    if one.violation is None:
        yield f"  At {levels}: unknown{_unless_null(one)}."
        yield from (f"    {why}" for why in first_reasons(one.why, SHOWN))
        return
    yield f"  At {levels}: broken{_unless_null(one)}. {violation_words(one, one.violation)}"
    yield from _violation_lines(one, one.violation)
    for other in one.violations[1:SHOWN]:
        yield ""
        yield f"  At {levels}, too: {violation_words(one, other)}"
        yield from _violation_lines(one, other)
    if len(one.violations) > SHOWN:
        yield f"  {count_of(len(one.violations) - SHOWN, 'more violation')} by other jobs"


def _unless_null(answer: InvariantAnswer) -> str:
    return "" if answer.not_null is None else " if a parameter is NULL; otherwise kept (proved)"


def _violation_lines(answer: InvariantAnswer, found: InvariantViolation) -> Iterator[str]:
    """Yield a violation: its statements, its schedule, and the rows that are too many."""
    yield ""
    yield from (f"    {line}".rstrip() for line in run_lines(found.test))
    yield ""
    yield from (f"    {line}" for line in timeline(found.test.schedule).split("\n"))
    yield ""
    yield from (f"    {line}" for line in rows_of_violation(answer, found))


def proof_of_invariant(answer: InvariantAnswer) -> Iterator[str]:
    """Yield the facts of a proof, as sentences."""
    if not answer.alone and not answer.pairs:
        does = "changes" if isinstance(answer.invariant, Total) else "adds rows to"
        yield f"No statement {does} {answer.invariant.table}."
    if answer.alone:
        yield f"By itself, no statement violates it: {', '.join(answer.alone)}."
    for one in answer.lasting:
        yield (
            f"When {one} commits, there are no more such rows than its client found: no statement"
            " that may run at the same time adds one."
        )
    if isinstance(answer.invariant, Reference):
        parent = answer.invariant.parent
        yield (
            f"No statement removes a row of {parent} to which one refers, so the rows that the"
            " others have read stay."
        )
    if isinstance(answer.invariant, Total):
        yield "What a statement adds and removes does not depend on commits that it did not see."
    if answer.pairs:
        many = count_of(len(answer.pairs), "pair")
        yield (
            f"No two concurrent statements violate it together ({many} checked): if both would, the"
            " one that commits last aborts."
        )
    if answer.given:
        yield f"The proof uses {enumeration(list(answer.given))}, which the jobs keep as well."


def violation_words(answer: InvariantAnswer, found: InvariantViolation) -> str:
    """Return who violates an invariant, as a sentence."""
    if found.alone:
        return f"One run of {found.jobs[0]} violates it, with no other run beside it."
    a, b = found.jobs
    who = f"Two runs of {a} that overlap" if a == b else f"Runs of {a} and {b} that overlap"
    alone = (
        " No statement violates it by itself, so no serial order of the runs does."
        if answer.keeps_alone
        else ""
    )
    return f"{who} violate it.{alone}"


def rows_of_violation(answer: InvariantAnswer, found: InvariantViolation) -> Iterator[str]:
    """Yield the version of a violation, and its rows that are too many."""
    invariant = answer.invariant
    schema = answer.workload.tables[invariant.table]
    keys = invariant.violations(found.versions)
    if isinstance(invariant, Total):
        ((old, new),) = keys
        yield f"Version {found.version} of {schema.name} violates it: {old} before, {new} now."
    else:
        rows = keys
        if isinstance(invariant, GroupLimit):
            rows = invariant.violating_rows(found.versions)
        yield f"Version {found.version} of {schema.name} violates it by these rows:"
        yield from (f"  {show_row(row)}" for row in rows[:SHOWN])
        if len(rows) > SHOWN:
            yield f"  {count_of(len(rows) - SHOWN, 'more row')}"
    if found.half_done:
        yield "After all statements of the runs, the table satisfies it again."


def _repairs(name: str, repairs: Sequence[Repair]) -> Iterator[str]:
    """Yield the repairs with their costs."""
    if not repairs:
        yield f"No repair was found with which {name} is proved."
        return
    yield f"Repairs: with each of these changes, {name} is proved. The cheapest comes first."
    for repair in repairs:
        yield f"- {capitalized(repair.title)}"
        yield from (f"    {line}" for line in cost_lines(repair))


def invariants_page(
    answers: Sequence[InvariantAnswer],
    repairs: Mapping[tuple[str, str], Sequence[Repair]],
    made: PageOrigin,
) -> str:
    """Return the HTML page, without scripts or external resources, and with every text escaped."""
    return render_template(
        "invariants.html.j2",
        "isolitmus.jobs.render",
        workload=answers[0].workload,
        answer=invariants_line(answers).removeprefix(f"{answers[0].workload.title}: "),
        invariants=invariants_shown(answers, repairs),
        made=made,
        assumptions=list(dict.fromkeys(one for answer in answers for one in answer.assumptions)),
        capitalized=capitalized,
        level_words=level_word,
        costs=cost_lines,
        style=answer_style,
        example=partial(job_example, workload=answers[0].workload),
        has_examples=any(one.violations for one in answers),
    )


def invariants_shown(
    answers: Sequence[InvariantAnswer], repairs: Mapping[tuple[str, str], Sequence[Repair]]
) -> dict[str, object]:
    """Return what a page shows of invariants: answers, repairs, and the words for them."""
    cells = {(one.invariant.name, one.protocol): one for one in answers}
    used = {invariant_cell(one) for one in answers}
    return {
        "names": list(dict.fromkeys(name for name, _ in cells)),
        "levels": list(dict.fromkeys(level for _, level in cells)),
        "cells": cells,
        "words": {word: meaning for word, meaning in WORDS.items() if word in used},
        "repairs": repairs,
        "cell": invariant_cell,
        "proof": proof_of_invariant,
        "violation": violation_words,
        "rows": rows_of_violation,
    }
