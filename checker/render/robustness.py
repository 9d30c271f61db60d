"""Robustness in lines and as a page.

Whether jobs are safe, in lines for a person: a table of promises and levels, then each answer.

The page of what jobs keep: promises and levels, the smallest schedule that breaks each, proofs, and repairs.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.timeline import timeline_svg
from isolitmus.model.display import count_of
from isolitmus.model.sql.statement import Read
from isolitmus.specs.files.catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.workloads.cycle_patterns import CyclePattern
    from isolitmus.checker.workloads.repairs import Repair
    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.litmus import Litmus

__all__ = [
    "LEMMAS",
    "across_words",
    "assumption_lines",
    "end_words",
    "level_word",
    "need_lines",
    "pair_words",
    "pattern_words",
    "repair_lines",
    "robust_head",
    "robust_lines",
    "robust_page",
    "robust_row",
]

MEANT = {
    "write-serializable": "the table is one that the jobs could have made one by one",
    "update-serializable": "each reader alone sees a table that the jobs could have made one by one",
    "log-serializable": "the jobs could have run one by one in the order of the log, whoever looks",
}
LEMMAS = {
    "no dependency": "that one statement depends on another in some way",
    "nothing goes back": "that a statement commits though it missed one that changed what it read",
    "no reader in between": "that a reader sees what such a statement missed, and not what it did",
    "no cycle": "that what it missed was built upon by others, which missed it in turn",
    "no way back": "that what it missed was built upon by others in its window",
}
SHOWN = 3
VERDICT = len("unsafe, explained")
BROKEN = {
    "write-serializable": "",
    "update-serializable": "The table that is left is that of {}, but so not all read what they did read.",
    "log-serializable": "In the order of the log they do not give the tables; the last one is that of {}.",
}
"""How a run breaks a promise by what one sees, though some orders give the table that is left."""
EXPLAINED = {
    "write-serializable": "the table that is left is that of {}",
    "update-serializable": "in {} all read what they did read, and the table is the one that is left",
    "log-serializable": "{} gives every version",
}
"""How a run keeps a promise by what one sees, though its conflicts do not."""


def robust_head(promises: Sequence[str], levels: Sequence[str]) -> str:
    """The head of a table with a row for each promise, a column for each commit check."""
    return _row("", promises, [(level, level_word(level)) for level in levels])


def robust_row(promise: str, promises: Sequence[str], answers: Sequence[Robustness]) -> str:
    """The row of one of these promises, by its answers under each commit check."""
    return _row(promise, promises, [(one.protocol, one.verdict) for one in answers])


def _row(head: str, heads: Sequence[str], cells: Sequence[tuple[str, str]]) -> str:
    """A row, whose cells are as wide as the name of their level, or the longest verdict."""
    said = "  ".join(f"{text:<{max(len(level_word(level)), VERDICT)}}" for level, text in cells)
    return f"{head:<{max(map(len, heads))}}  {said}".rstrip()


def need_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """What each promise means, and which of the levels that were asked keep it."""
    for promise in dict.fromkeys(a.promise for a in answers):
        safe = [
            level_word(a.protocol) for a in answers if a.promise == promise and a.word == "safe"
        ]
        need = (
            f"each of {' and '.join(safe)} will do"
            if len(safe) > 1
            else f"{safe[0]} it takes"
            if safe
            else "no level that was asked is known to do"
        )
        yield f"{promise}, {MEANT[promise]}: {need}."


def level_word(name: str) -> str:
    """What the level is called that a commit check is for."""
    return protocol(name).setting.rpartition("= ")[2] or name


def robust_lines(answer: Robustness, before: Sequence[Robustness] = ()) -> Iterator[str]:
    """The proof, or the smallest counterexample, unless one ``before`` has shown it, or why it is unknown."""
    yield f"{answer.promise} at {level_word(answer.protocol)}: {answer.verdict}"
    if answer.word == "safe":
        yield "  Proved of the conflicts, so of all that one sees, for any number of runs, any parameters and any rows."
        yield "  Refuted was"
        for lemma, number in answer.lemmas.items():
            yield f"    {LEMMAS[lemma]}: {count_of(number, 'way')}"
        if not answer.lemmas:
            yield "    nothing: no two of these jobs are about one row"
        return
    for why in answer.why[:SHOWN]:
        yield f"  unknown: {why}"
    worst = answer.worst
    if worst is None:
        return
    for other in before:
        if (
            other.worst is not None
            and other.worst.danger.key == worst.danger.key
            and other.protocol == answer.protocol
        ):
            yield f"  {pattern_words(answer, told=False)}, among them that of {other.promise}."
            return
    yield f"  {pattern_words(answer)}; the smallest:"
    yield ""
    yield from (f"  {line}".rstrip() for line in run_lines(worst.test))
    yield ""
    yield from (f"  {line}" for line in timeline(worst.test.schedule).split("\n"))
    yield ""
    yield f"  {end_words(answer)}"
    if across := across_words(worst.danger):
        yield from (f"  {line}" for line in wrap(across, 98))


def end_words(answer: Robustness) -> str:
    """What becomes of the smallest counterexample; empty if there is none."""
    worst, promise = answer.worst, answer.promise
    if worst is None:
        return ""
    if worst.explained:
        said = EXPLAINED[promise].format("; or ".join(worst.explained))
        return f"All commit. Their conflicts break it; what one sees does not: {said}."
    if not worst.serial or not BROKEN[promise]:
        return "All commit, and no serial order of them gives the table."
    return f"All commit. {BROKEN[promise].format('; or '.join(worst.serial))}"


def across_words(danger: CyclePattern) -> str:
    """What prevents a pattern that is about several tables; empty for one that is about one."""
    if len(danger.tables) < 2:
        return ""
    names = list(
        dict.fromkeys(one.name for one in danger.members if not isinstance(one.statement, Read))
    )
    return (
        f"It spans {' and '.join(danger.tables)}. A commit is checked against the log of one table, so no isolation"
        f" level prevents it. What does: one table for both, at Serializable; or never running {' and '.join(names)}"
        " at the same time (one job without overlapping runs, or a scheduler)."
    )


def pattern_words(answer: Robustness, *, told: bool = True) -> str:
    """How many patterns break a promise; as it is ``told``, how many of them only by conflicts."""
    patterns = count_of(len(answer.counterexamples), "pattern")
    breaks = "breaks" if len(answer.counterexamples) == 1 else "break"
    return f"{patterns} of statements {breaks} it{_told_apart(answer) if told else ''}"


def _told_apart(answer: Robustness) -> str:
    """Of how many counterexamples one sees that the promise is broken, and of how many only conflicts do."""
    number = len(answer.counterexamples)
    explained = sum(1 for one in answer.counterexamples if one.explained)
    if not explained:
        return ", by what one sees"
    if explained == number:
        return " by conflicts only: of each run that was found an order explains what one sees; of others that is not proved"
    return f", {explained} of them by conflicts only"


def assumption_lines(answers: Sequence[Robustness]) -> Iterator[str]:
    """What these answers take for granted."""
    said = dict.fromkeys(one for answer in answers for one in answer.assumptions)
    yield f"Assumed: {'; '.join(said)}."


def repair_lines(answer: Robustness, repairs: Sequence[Repair]) -> Iterator[str]:
    """What would make it safe, and the price."""
    if not repairs:
        yield f"Nothing that was tried makes it {answer.promise} at {level_word(answer.protocol)}."
        return
    yield f"What would make it {answer.promise}, each proved, with whom it stops or lets wait:"
    for repair in repairs:
        yield f"  {repair.title}"
        for words, pairs in (("then may be stopped", repair.brings), ("then wait", repair.waits)):
            if pairs:
                yield f"    {words}: {pair_words(pairs)}"
        yield f"    needlessly: {pair_words(repair.needless) or 'nobody'}"


def pair_words(pairs: Sequence[tuple[str, str]]) -> str:
    """Who is stopped by whom."""
    return ", ".join(f"{loser} by {winner}" for loser, winner in pairs)


def robust_page(
    answers: Sequence[Robustness],
    repairs: Mapping[tuple[str, str], Sequence[Repair]],
    made: PageOrigin,
) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped. ``repairs``: those of an answer, by
    promise and commit check, if they were asked for.
    """
    return render_template(
        "robust.html.j2",
        workload=answers[0].workload,
        answers=answers,
        repairs=repairs,
        made=made,
        promises=list(dict.fromkeys(one.promise for one in answers)),
        levels=list(dict.fromkeys(one.protocol for one in answers)),
        cells={(one.promise, one.protocol): one for one in answers},
        need=list(need_lines(answers)),
        assumptions=list(dict.fromkeys(one for answer in answers for one in answer.assumptions)),
        lemmas=LEMMAS,
        level_words=level_word,
        patterns=pattern_words,
        pairs=pair_words,
        end=end_words,
        across=across_words,
        statements=_statements,
        picture=_picture,
    )


def _statements(test: Litmus) -> dict[str, str]:
    several = len(test.init) > 1
    rows = {
        f"at the start{f' {k}' if several else ''}": one.sql for k, one in enumerate(test.init, 1)
    }
    return rows | {name: one.sql for name, one in test.transactions.items()}


def _picture(answer: Robustness) -> str:
    """The smallest schedule that breaks it, with what became of each transaction."""
    assert answer.worst is not None
    test = answer.worst.test
    return timeline_svg(test.schedule, run(test, protocol(answer.protocol)).run)
