"""Results of searches in lines: separation, portrait, mutants, interleavings.

The answer to ``separate`` in lines for a person.

A protocol's portrait in words.

What became of a spec's mutants, in lines for a person.

What comes out of all interleavings of a litmus test, in lines for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.verdicts import because, other_ways, serial_words, view_words
from isolitmus.checker.universes.abstract import NAMES
from isolitmus.model.display import count_of
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.specs.files.catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.locking.interleavings import CountedEnd, Interleavings
    from isolitmus.checker.prove.proof import Proof
    from isolitmus.checker.search.mutant_separation import JudgedMutant, Kill, MutantReport
    from isolitmus.checker.search.portrait import AbortShare, NeedlessAbort, Portrait, Promise
    from isolitmus.checker.search.separation_result import Separation

__all__ = [
    "beside_lines",
    "interleaving_lines",
    "mutant_lines",
    "portrait_lines",
    "separation_lines",
]

NAMED = 40
"""So many litmus tests are named, more are counted; ``--json`` has them all."""


def separation_lines(answer: Separation) -> Iterator[str]:
    """What was found, why the one spec forbids it, and how far was searched; or the proof."""
    question = f"admitted by {answer.a}, forbidden by {answer.b}"
    if answer.unexplained:
        question += ", explained by no serial order"
    if answer.proof is not None:
        yield from _proof(answer, answer.proof)
        if answer.proved or answer.proof.question.every_version_read:
            return
    if answer.litmus is None or answer.forbidden is None:
        verdict = "None" if answer.none else "Unknown"
        yield f"{verdict} {question}: {answer.bound}; {_effort(answer)}."
        yield from beside_lines(answer)
        return
    yield (
        f"{count_of(answer.transactions or 0, 'transaction')} {question} ({answer.bound}; {_effort(answer)})."
    )
    yield ""
    if isinstance(answer.litmus, Litmus):
        yield from run_lines(answer.litmus)
        yield ""
        yield from timeline(answer.litmus.schedule).split("\n")
    else:
        yield from _history(answer.litmus)
    yield ""
    for violation in answer.forbidden.violations:
        if violation.supposing:
            yield f"If {' and '.join(map(str, violation.supposing))}:"
        indent = "  " if violation.supposing else ""
        for line in because(violation):
            yield f"{indent}{line}"
    yield from other_ways(answer.forbidden)
    if answer.serial is not None:
        yield serial_words(answer.serial.orders, answer.serial.unexplained)
    beside = answer.explained
    if beside is not None and beside.reads:
        yield view_words(beside)


def beside_lines(answer: Separation) -> Iterator[str]:
    """Return the lines about the catalogue's test, which is no part of the answer."""
    if answer.beside is None:
        return
    test = answer.beside
    yield (
        f"Outside of that search, {answer.a} admits and {answer.b} forbids {test.test.name} of the catalogue"
        f" ({count_of(test.transactions, 'transaction')}):"
    )
    for line in because(test.forbidden.violations[0]):
        yield f"  {line}"


def _proof(answer: Separation, proof: Proof) -> Iterator[str]:
    for step in proof.steps:
        outcome = "" if step.outcome == "holds" else f"{step.outcome}: "
        yield f"  {step.lemma}: {outcome}{step.words} ({step.seconds:.1f} s)"
        for line in step.counterexample:
            yield f"    {line}"
    claim = f"{answer.a} admits nothing that {answer.b} forbids"
    if proof.holds:
        number, _, statements = answer.bound.partition(", ")
        yield (
            f"Proved in universe '{answer.universe}', for any {statements}: {claim}, with {number}."
        )
        if (proof.question.a.needs | proof.question.b.needs) <= NAMES:
            yield "Of universe 'abstract', which is asked without --unbounded, that says nothing."
        yield from _outside(answer)
        return
    last = proof.steps[-1]
    how = "fails" if last.outcome == "fails" else "is unknown"
    yield f"Not proved: that {claim}; lemma {last.lemma} {how}."


def _outside(answer: Separation) -> Iterator[str]:
    """The litmus tests that a theorem does not speak of; those where its claim fails by what is wrong."""
    failing: dict[str, list[str]] = {}
    for test in answer.outside:
        if test.fails:
            failing.setdefault(", ".join(test.why), []).append(test.litmus)
    if failing:
        yield "The claim fails in these litmus tests, which are outside of that:"
        yield from (f"  {', '.join(names)}: {why}" for why, names in failing.items())
    holding = [test.litmus for test in answer.outside if not test.fails]
    if holding:
        few = ": " + ", ".join(holding) if len(holding) <= NAMED else ""
        yield f"It holds in {count_of(len(holding), 'other litmus test')} outside of that{few}."


def _effort(answer: Separation) -> str:
    comma = "," if answer.found is None else ""
    return f"{answer.effort}{comma} in {answer.seconds:.1f} s"


def _history(test: HistoryTest) -> Iterator[str]:
    for transaction in test.history.transactions:
        yield f"{transaction.name}  {transaction}"
    for transaction in test.history.transactions:
        if transaction.status != "committed":
            yield f"{transaction.status}: {transaction.name}"
    for session in test.history.sessions:
        if len(session) > 1:
            yield f"one session: {' '.join(f'T{number}' for number in session)}"
    for first, second in test.history.order:
        yield f"observed: {first} < {second}"
    if test.history.schedule:
        yield f"in time: {test.history.to_table()['schedule']}"
    for name, members in test.history.sets:
        yield f"{name}: {' '.join(f'T{number}' for number in members) or 'nobody'}"


DONE = frozenset({"committed", "no-op"})


def portrait_lines(portrait: Portrait) -> Iterator[str]:
    """The portrait in lines for a person, histories with their schedules."""
    for promise in portrait.promises:
        yield from _promise(portrait.protocol, promise)
    for abort in portrait.aborts:
        if abort.raised:
            yield ""
            yield from _abort(abort)
    silent = [abort.exception for abort in portrait.aborts if not abort.raised]
    if silent:
        yield ""
        yield f"Nothing in universe '{portrait.universe}' raises {', '.join(silent)}."
    if portrait.shares:
        yield ""
        yield from map(_share, portrait.shares)
    for scope in portrait.uncounted:
        yield f"Not counted to the end: {scope}."


def _promise(name: str, promise: Promise) -> Iterator[str]:
    worst = promise.unexplained
    found = worst if worst is not None and worst.found else promise.hole
    if promise.hole.found is None:
        yield f"It promises {promise.level}; whether it keeps that is unknown: {found.bound}."
    elif not promise.hole.found:
        yield f"It promises {promise.level}, and keeps it {found.bound}."
    else:
        more = ", explained by no serial order" if found is worst else ""
        yield (
            f"It promises {promise.level}, and does not keep it:"
            f" {count_of(found.transactions or 0, 'transaction')} that {name} admits and {promise.level} forbids{more} ({found.bound})."
        )
        yield from _indented_history(found)
        if found.serial is not None:
            yield f"  {serial_words(found.serial.orders, found.serial.unexplained)}"
        aborting = {
            other: aborted
            for other, outcomes in promise.elsewhere.items()
            if (aborted := {t: o for t, o in outcomes.items() if o not in DONE})
            and protocol(other).setting
        }
        for other, aborted in aborting.items():
            what = ", ".join(f"{t} ({outcome})" for t, outcome in aborted.items())
            yield f"  What to do: {_set(other)} aborts {what}."


def _abort(abort: NeedlessAbort) -> Iterator[str]:
    found = abort.found
    if not found.found:
        verdict = "never" if found.found is False else "unknown whether"
        yield f"{abort.exception} for nothing, {verdict}: {found.bound}."
        return
    yield (
        f"{abort.exception} for nothing, for {abort.level} allows it:"
        f" {count_of(found.transactions or 0, 'transaction')} ({found.bound})."
    )
    yield from _indented_history(found)
    admitting = [
        name
        for name, outcomes in abort.elsewhere.items()
        if _all_end_well(outcomes) and protocol(name).setting
    ]
    for name in admitting:
        promised = ", ".join(protocol(name).promises)
        yield f"  What to do: {_set(name)} aborts nothing; it promises {promised}."
    if abort.layouts:
        yield f"  What to do: nothing aborts with the table {' or '.join(abort.layouts)}."
    if not admitting and not abort.layouts:
        yield (
            "  What to do: run the aborted statement again; no level that the table can be set to, and"
            " no layout that was tried, admits it."
        )


def _set(name: str) -> str:
    """A protocol by what gives it to a table."""
    return f"{protocol(name).setting} ({name})"


def _all_end_well(outcomes: Mapping[str, str]) -> bool:
    return DONE.issuperset(outcomes.values())


def _indented_history(found: Separation) -> Iterator[str]:
    litmus = found.litmus
    assert isinstance(litmus, Litmus)
    lines = (*run_lines(litmus), "", *timeline(litmus.schedule).split("\n"))
    yield from (f"  {line}".rstrip() for line in lines)


def _share(share: AbortShare) -> str:
    silent = f"; on {count_of(share.silent, 'candidate')} it is silent" if share.silent else ""
    return (
        f"Of {share.scope} with {count_of(share.transactions, 'transaction')} {share.level} allows"
        f" {count_of(share.allowed, 'candidate')}, of which it aborts {share.aborted:,}"
        f"{_percent(share.aborted, share.allowed)}; of the {share.admitted:,} that it admits"
        f" {share.level} forbids {share.broken:,}{_percent(share.broken, share.admitted)}{silent}."
    )


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if part else ""


def mutant_lines(report: MutantReport) -> Iterator[str]:
    """Each mutant: its statement, and what tells it from the spec or why nothing does; then how many there are."""
    for one in report.judged:
        yield f"{one.mutant.number:>3}. {one.mutant.change}"
        yield from (f"     {line}" for line in _why(one))
    told, argued = len(report.told), len(report.argued)
    argues = f"{argued} argued to be equivalent, " if argued else ""
    left = [str(one.mutant.number) for one in report.survivors]
    rest = f"{len(left)} not told apart: {', '.join(left)}" if left else "none left"
    yield (
        f"{count_of(len(report.judged), 'mutant')} of {report.spec.name} in {report.seconds:.1f} s:"
        f" {told} told apart, {argues}{rest}."
    )


def _why(one: JudgedMutant) -> Iterator[str]:
    if one.kills:
        first, *others = one.kills
        more = f" (and {count_of(len(others), 'other test')})" if others else ""
        yield f"told by {_named(first)}: {first.words}{more}"
        return
    if one.argument:
        yield f"equivalent: {one.argument}"
    word = "unknown" if one.ended is not None else "none tells it apart"
    yield f"{word}: {one.bound}"


def _named(kill: Kill) -> str:
    """A test of the catalogue by its name; a history that was found as it is, if it is short."""
    if not kill.found:
        return kill.name
    if isinstance(kill.test, HistoryTest):
        history = kill.test.history
        parts = [f"{one.name} {one}" for one in history.transactions]
        parts += [
            f"{one.name} {one.status}" for one in history.transactions if one.status != "committed"
        ]
        parts += [f"session {' '.join(f'T{n}' for n in s)}" for s in history.sessions if len(s) > 1]
        return "; ".join(parts)
    statements = "; ".join(f"{name}: {one.sql}" for name, one in kill.test.transactions.items())
    return f"{kill.test.schedule} ({statements})"


def interleaving_lines(done: Interleavings) -> Iterator[str]:
    """How many there are, what no serial order gives, which postconditions break, and an example of each."""
    yield (
        f"{done.litmus.name} under {done.protocol}: {count_of(done.number, 'interleaving')},"
        f" {count_of(done.states, 'state')}, {count_of(len(done.outcomes), 'outcome')}"
    )
    for outcome in done.outcomes:
        yield f"  {outcome.number:>9,} {_like(outcome)}{_breaks(outcome)}: {outcome.schedule}"
    timeless = sum(outcome.number for outcome in done.outcomes if outcome.timeless)
    if timeless:
        plausible = sum(outcome.number for outcome in done.outcomes if outcome.plausible)
        yield f"  {timeless:>9,} read what was so at no time while they ran; of these {plausible:,} what some serial order has"
    for order, broken in done.alone.items():
        if broken:
            yield f"  the serial order {order} breaks {', '.join(broken)}, too"


def _like(outcome: CountedEnd) -> str:
    ended = [told for told in outcome.end.told if told.outcome != "committed"]
    how = "".join(f", {told.name} {told.outcome}" for told in ended)
    if not outcome.serial:
        return f"like no serial order{how}"
    return f"like {' or '.join(order or 'none of them' for order in outcome.serial)}{how}"


def _breaks(outcome: CountedEnd) -> str:
    return f", breaking {', '.join(outcome.breaks)}" if outcome.breaks else ""
