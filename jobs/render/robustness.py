"""Robustness as text and as an HTML page.

The text has the answer in one line, a table of promises and levels, evidence, and assumptions. The
page has the same, with pictures of the smallest counterexamples and the litmus files.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.jobs.questions.cycle_patterns import LEMMAS
from isolitmus.jobs.render.job_examples import job_example
from isolitmus.jobs.render.prediction import alternatives, enumeration, pair_sentences
from isolitmus.jobs.robust.robustness import UNLESS_NULL
from isolitmus.model.display import capitalized, count_of, first_reasons
from isolitmus.model.sql.statement import Read
from isolitmus.specs.files.spec_catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.jobs.questions.cycle_patterns import CyclePattern
    from isolitmus.jobs.robust.repairs import Repair
    from isolitmus.jobs.robust.robustness import Robustness

MEANT = {
    "write-serializable": "the final table equals that of some serial order",
    "update-serializable": "every reader sees a state of some serial order",
    "log-serializable": "all readers see states of one serial order, that of the log",
}
"""Meaning of the promises."""
EXPLAINED = "unsafe, explained"
VERDICTS = {
    "safe": "proved for any number of runs, all parameter values and all rows",
    "unsafe": "a counterexample was executed by the model",
    UNLESS_NULL: "proved if no parameter is NULL; otherwise violated or unknown",
    EXPLAINED: "violated by conflicts only, in every run that was found",
    "unknown": "neither proved nor violated",
}
"""Meaning of the verdicts."""
SAID = {
    "safe": "safe",
    "unsafe": "violated",
    UNLESS_NULL: "safe unless a parameter is NULL",
    EXPLAINED: "violated by conflicts only",
    "unknown": "unknown",
}
"""Verdicts in sentences."""
STYLES = {
    "safe": "never",
    "kept": "never",
    EXPLAINED: "sometimes",
    UNLESS_NULL: "sometimes",
    "half done": "sometimes",
    "unknown": "unknown",
}
"""Classes of cells that are not red."""
COUNTS = {2: "Both", 3: "All three", 4: "All four"}


def answer_line(answers: Sequence[Robustness]) -> str:
    """Return the answer in one line: the promises that hold at each level."""
    title = answers[0].workload.title
    promises = list(dict.fromkeys(one.promise for one in answers))
    levels = list(dict.fromkeys(one.protocol for one in answers))
    cells = {(one.promise, one.protocol): one.verdict for one in answers}
    if len(promises) == 1:
        found = _verdicts({level_word(one): cells[promises[0], one] for one in levels})
        return f"{title}: {promises[0]} is {found}."
    safe = [one for one in levels if all(cells[p, one] == "safe" for p in promises)]
    said = [f"safe at {enumeration([level_word(one) for one in safe])}"] if safe else []
    by_parts: dict[str, list[str]] = {}
    for level in levels:
        parts = []
        for verdict, word in SAID.items():
            some = [p for p in promises if cells[p, level] == verdict]
            if some and verdict != "safe":
                named = "all promises" if len(some) == len(promises) else enumeration(some)
                parts.append(f"{named} {'is' if len(some) == 1 else 'are'} {word}")
        if parts:
            by_parts.setdefault(", ".join(parts), []).append(level_word(level))
    said += [f"at {enumeration(some)}, {parts}" for parts, some in by_parts.items()]
    return f"{title}: {'; '.join(said)}."


def _verdicts(by_level: Mapping[str, str]) -> str:
    """Return the levels with each verdict.

    >>> _verdicts({"Serializable": "safe", "WriteSerializable": "unsafe"})
    'safe at Serializable, violated at WriteSerializable'
    """
    parts = []
    for verdict, said in SAID.items():
        some = [level for level, found in by_level.items() if found == verdict]
        if some:
            parts.append(f"{said} at {enumeration(some)}")
    return ", ".join(parts)


def table_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """Yield the table of verdicts: a row for each promise, a column for each level."""
    cells = {(one.promise, level_word(one.protocol)): one.verdict for one in answers}
    yield from cell_lines(cells, max(map(len, VERDICTS)))


def cell_lines(cells: Mapping[tuple[str, str], str], wide: int = 0) -> Iterator[str]:
    """Yield a table in text: a row for each first part of the keys, a column for each second part.

    The columns are at least ``wide``.

    Examples
    --------
    >>> for line in cell_lines({("unique(id)", "Serializable"): "kept"}):
    ...     print(line)
                Serializable
    unique(id)  kept
    """
    rows, columns = (list(dict.fromkeys(key[k] for key in cells)) for k in (0, 1))
    widths = [
        max(len(column), wide, *(len(cells[row, column]) for row in rows)) for column in columns
    ]
    for head in ("", *rows):
        texts = [cells[head, column] if head else column for column in columns]
        line = "  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True))
        yield f"{head:<{max(map(len, rows))}}  {line}".rstrip()


def legend_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """Yield the meaning of each verdict in the table."""
    used = [one for one in VERDICTS if one in {answer.verdict for answer in answers}]
    for verdict in used:
        yield f"{verdict:<{max(map(len, used))}}  {VERDICTS[verdict]}"


def need_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """Yield the meaning of each promise, and the levels that keep it."""
    for promise in dict.fromkeys(a.promise for a in answers):
        asked = [a for a in answers if a.promise == promise]
        safe = [level_word(a.protocol) for a in asked if a.verdict == "safe"]
        others = {a.verdict for a in asked if a.verdict != "safe"}
        if len(safe) == 1 and others == {"unsafe"}:
            need = f"needs {safe[0]}"
        else:
            need = _verdicts({level_word(a.protocol): a.verdict for a in asked})
        yield f"{promise} ({MEANT[promise]}): {need}"


def level_word(name: str) -> str:
    """Return the isolation level that a commit protocol is for, or the protocol's name.

    >>> level_word("delta-write-serializable"), level_word("databricks-serializable-newest-rows")
    ('WriteSerializable', 'Serializable (row-level concurrency)')
    """
    level, _, more = protocol(name).setting.rpartition("= ")[2].partition(", ")
    return f"{level} ({more})" if more else level or name


def evidence_lines(
    answers: Sequence[Robustness], ways: Mapping[tuple[str, str], Sequence[Repair]]
) -> Iterator[str]:
    """Yield each proof once for all its answers, then counterexamples with their repairs."""
    for alike in _same_proof(answers):
        yield ""
        yield from proof_lines(alike)
    yield from _unknown_lines([one for one in answers if one.word == "unknown"])
    for k, answer in enumerate(answers):
        if answer.word != "unsafe":
            continue
        yield ""
        yield from robust_lines(answer, answers[:k])
        key = answer.promise, answer.protocol
        if key in ways:
            yield ""
            yield from (f"  {line}" for line in _repairs(answer, answers[:k], ways))


def _repairs(
    answer: Robustness,
    before: Sequence[Robustness],
    ways: Mapping[tuple[str, str], Sequence[Repair]],
) -> Iterator[str]:
    """Yield the repairs of an answer, or the promise before it that has the same ones."""
    own = list(map(_cost, ways[answer.promise, answer.protocol]))
    for other in before:
        known = ways.get((other.promise, other.protocol), ())
        if own and other.protocol == answer.protocol and own == list(map(_cost, known)):
            yield f"Repairs: those of {other.promise} above; with each, {answer.promise} is proved."
            return
    yield from repair_lines(answer, ways[answer.promise, answer.protocol])


def _cost(repair: Repair) -> tuple[object, ...]:
    return repair.title, repair.brings, repair.waits, repair.needless


def _unknown_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """Yield the unknown answers with their reasons, common ones once."""
    alike: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for one in answers:
        levels = alike.setdefault(one.why, {}).setdefault(one.promise, [])
        levels.append(level_word(one.protocol))
    for why, promises in alike.items():
        yield ""
        for promise, levels in promises.items():
            yield f"{promise} at {enumeration(levels)}: unknown{_unless_null(answers, promise)}"
        yield from _reasons(why)


def _unless_null(answers: Sequence[Robustness], promise: str) -> str:
    """Return that some answers about a promise are unknown only if a parameter is NULL."""
    only = [level_word(one.protocol) for one in answers if one.promise == promise and one.not_null]
    return f" (at {enumeration(only)} only if a parameter is NULL)" if only else ""


def _reasons(why: Sequence[str]) -> Iterator[str]:
    """Yield the first reasons of an unknown answer, and the number of others."""
    yield from (f"  unknown: {one}" for one in first_reasons(why))


def _same_proof(answers: Sequence[Robustness]) -> list[list[Robustness]]:
    """Group the proved answers by promises and numbers of patterns."""
    by_level: dict[tuple[object, ...], list[Robustness]] = {}
    for one in answers:
        if one.word == "safe":
            by_level.setdefault((one.protocol, *sorted(one.lemmas.items())), []).append(one)
    found: dict[tuple[object, ...], list[Robustness]] = {}
    for (_, *lemmas), alike in by_level.items():
        key = (tuple(lemmas), *(one.promise for one in alike))
        found.setdefault(key, []).extend(alike)
    return list(found.values())


def proof_lines(alike: Sequence[Robustness]) -> Iterator[str]:
    """Yield the proved statement, and the number of patterns that are proved impossible."""
    promises = enumeration(list(dict.fromkeys(one.promise for one in alike)))
    levels = list(dict.fromkeys(level_word(one.protocol) for one in alike))
    yield (
        f"Proved: {promises} at {enumeration(levels)}, for any number of runs, all parameter values"
        " and all rows."
    )
    each = " at each level" if len(levels) > 1 else ""
    yield from (f"  {line}" for line in lemma_lines(alike[0], each))


def lemma_lines(answer: Robustness, each: str = "") -> Iterator[str]:
    """Yield the number of patterns of each lemma, and their consequence.

    ``each`` says where they occur.
    """
    numbers = answer.lemmas
    if not numbers:
        yield "Nothing to check: no statement reads what a concurrent one changes."
    for name, lemma in LEMMAS.items():
        if name in numbers:
            many = count_of(numbers[name], lemma.one, lemma.several)
            proved = (
                f"checked{each}, all impossible"
                if set(numbers) == {"nothing goes back"}
                else f"proved impossible{each}"
            )
            yield f"{many} {proved}: {lemma.fact}"


def robust_lines(answer: Robustness, before: Sequence[Robustness] = ()) -> Iterator[str]:
    """Yield the proof, a counterexample not shown ``before``, or the reasons for unknown."""
    if answer.word == "safe":
        yield from proof_lines([answer])
        return
    yield f"{answer.promise} at {level_word(answer.protocol)}: {answer.verdict}"
    yield from _reasons(answer.why)
    worst = answer.worst
    if worst is None:
        return
    other = earlier_counterexample(answer, before)
    if other is not None:
        yield f"  {pattern_words(answer, told=False)}."
        yield f"  The smallest counterexample is that of {other.promise} above."
        return
    yield f"  {pattern_words(answer)}."
    only_conflicts = [one for one in answer.counterexamples if one.explained]
    by_results = "" if worst.explained or not only_conflicts else " whose results violate it"
    if worst.nulls:
        by_results += f" has NULL as {enumeration(list(worst.nulls))}"
    yield f"  The smallest counterexample{by_results}:"
    yield ""
    yield from (f"  {line}".rstrip() for line in run_lines(worst.test))
    yield ""
    yield from (f"  {line}" for line in timeline(worst.test.schedule).split("\n"))
    yield ""
    yield from (f"  {line}" for line in end_words(answer))
    yield from (f"  {line}" for line in across_words(worst.danger))
    for table in worst.unshown:
        yield f"  It is not shown that the query of {table} returns these rows."


def earlier_counterexample(answer: Robustness, before: Sequence[Robustness]) -> Robustness | None:
    """Return the answer before this one whose smallest counterexample has the same pattern."""
    worst = answer.worst
    if worst is None:
        return None
    for other in before:
        if (
            other.worst is not None
            and other.worst.danger.key == worst.danger.key
            and other.protocol == answer.protocol
        ):
            return other
    return None


def end_words(answer: Robustness) -> list[str]:
    """Return the outcome of the smallest counterexample as sentences; empty without one."""
    worst, promise = answer.worst, answer.promise
    if worst is None:
        return []
    number = len(worst.test.transactions)
    commit = f"{COUNTS.get(number, f'All {number} transactions')} commit."
    several = len(worst.danger.tables) > 1
    final = "final tables" if several else "final table"
    equals = "The final tables equal those of" if several else "The final table equals that of"
    if worst.explained:
        order = alternatives(list(map(_arrows, worst.explained)))
        said = {
            "write-serializable": f"{equals} the serial order {order}.",
            "update-serializable": (
                f"In the serial order {order}, all reads and the {final} are the same."
            ),
            "log-serializable": f"The serial order {order} produces every version.",
        }
        return [
            f"{commit} Their conflicts violate {promise}, but their results do not.",
            said[promise],
        ]
    if not worst.serial or promise == "write-serializable":
        return [f"{commit} No serial order of the writers produces the {final}."]
    table = f"{equals} the serial order {alternatives(list(map(_arrows, worst.serial)))}"
    if promise == "log-serializable":
        return [
            (
                f"{commit} Executed serially in the order of the log, they do not produce these"
                " tables."
            ),
            f"{table}.",
        ]
    readers = [name for name, one in worst.test.transactions.items() if isinstance(one, Read)]
    if len(readers) == 1 and len(worst.serial) == 1:
        return [commit, f"{table}, in which {readers[0]} would not have read what it read."]
    return [commit, f"{table}, but not all transactions would have read what they read."]


def _arrows(order: str) -> str:
    """Return a serial order with arrows between its transactions."""
    return " → ".join(order.split(" "))


def across_words(danger: CyclePattern) -> list[str]:
    """Return why no level prevents a pattern on several tables; empty for one table."""
    if len(danger.tables) < 2:
        return []
    names = list(
        dict.fromkeys(one.name for one in danger.members if not isinstance(one.statement, Read))
    )
    return [
        (
            f"This involves the tables {enumeration(danger.tables)}. A commit is checked against"
            " the log of one table only, so no isolation level prevents it."
        ),
        (
            f"Remedy: one table for both, at Serializable; or never run {enumeration(names)} at the"
            " same time (one job without overlapping runs, or a scheduler)."
        ),
    ]


def pattern_words(answer: Robustness, *, told: bool = True) -> str:
    """Return the number of patterns that violate a promise.

    If ``told``, add the number of those that do so by conflicts only.
    """
    patterns = count_of(len(answer.counterexamples), "pattern")
    violates = "violates" if len(answer.counterexamples) == 1 else "violate"
    return f"{patterns} of statements {violates} it{_only_conflicts(answer) if told else ''}"


def _only_conflicts(answer: Robustness) -> str:
    """Return the number of counterexamples that violate the promise by conflicts only, in words."""
    number = len(answer.counterexamples)
    explained = sum(1 for one in answer.counterexamples if one.explained)
    if not explained:
        return ""
    if explained == number:
        return (
            " by conflicts only: a serial order explains each run that was found. For other runs"
            " that is not proved"
        )
    return f", {explained} of them by conflicts only"


def repair_lines(answer: Robustness, repairs: Sequence[Repair]) -> Iterator[str]:
    """Yield the repairs with their costs."""
    if not repairs:
        yield (
            f"No repair was found that makes the jobs {answer.promise} at"
            f" {level_word(answer.protocol)}."
        )
        return
    yield (
        f"Repairs: with each of these changes, {answer.promise} is proved. The cheapest comes"
        " first."
    )
    yield "Needless aborts and waits are in no pattern that was found to violate the promise."
    for repair in repairs:
        yield f"- {capitalized(repair.title)}"
        yield from (f"    {line}" for line in cost_lines(repair))


def cost_lines(repair: Repair) -> Iterator[str]:
    """Yield the new aborts and waits of a repair, and those that no counterexample needs."""
    needless = set(repair.needless)
    for words, pairs, form in (
        ("new aborts", repair.brings, "if {} commits meanwhile"),
        ("new waits", repair.waits, "for {}"),
    ):
        if pairs:
            yield f"{words}: {'; '.join(pair_sentences(pairs, form))}"
            some = [pair for pair in pairs if pair in needless]
            said = "; ".join(pair_sentences(some, form)) if some else "none"
            yield f"needless {words.removeprefix('new ')}: {said}"
    if not repair.brings and not repair.waits:
        yield "no new aborts, no new waits"
    yield from repair.costs


def robust_page(
    answers: Sequence[Robustness],
    repairs: Mapping[tuple[str, str], Sequence[Repair]],
    made: PageOrigin,
    invariants: Mapping[str, object] | None = None,
) -> str:
    """Return the HTML page, without scripts or external resources, and with every text escaped.

    ``repairs`` holds those of an answer, by promise and protocol, if they were asked for, and
    ``invariants`` what the page shows of invariants.
    """
    proofs = _same_proof(answers)
    first = {(one.promise, one.protocol): alike for alike in proofs for one in alike[:1]}
    later = [one for alike in proofs for one in alike[1:]]
    return render_template(
        "robust.html.j2",
        "isolitmus.jobs.render",
        workload=answers[0].workload,
        answers=[one for one in answers if not any(one is other for other in later)],
        alike=first,
        same={
            (one.promise, one.protocol): earlier_counterexample(one, answers[:k])
            for k, one in enumerate(answers)
        },
        answer=answer_line(answers).removeprefix(f"{answers[0].workload.title}: "),
        repairs=repairs,
        invariants=invariants,
        made=made,
        promises=list(dict.fromkeys(one.promise for one in answers)),
        levels=list(dict.fromkeys(one.protocol for one in answers)),
        cells={(one.promise, one.protocol): one for one in answers},
        verdicts={k: v for k, v in VERDICTS.items() if k in {one.verdict for one in answers}},
        need=list(need_lines(answers)),
        assumptions=list(dict.fromkeys(one for answer in answers for one in answer.assumptions)),
        proof=proof_lines,
        capitalized=capitalized,
        style=answer_style,
        level_words=level_word,
        patterns=pattern_words,
        costs=cost_lines,
        end=end_words,
        across=across_words,
        example=partial(job_example, workload=answers[0].workload),
    )


def answer_style(word: str) -> str:
    """Return the class of a cell with a verdict, or with an answer about an invariant."""
    return STYLES.get(word, "always")
