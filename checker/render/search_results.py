"""Results of searches as text: separation, guarantees of a protocol, mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.verdicts import because, other_ways, serial_words, view_words
from isolitmus.checker.universes.abstract import NAMES
from isolitmus.model.display import count_of
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.specs.files.spec_catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.prove.proof import Proof
    from isolitmus.checker.search.mutant_separation import JudgedMutant, Kill, MutantReport
    from isolitmus.checker.search.portrait import AbortShare, NeedlessAbort, Portrait, Promise
    from isolitmus.checker.search.separation_result import Separation

NAMED = 40
"""Maximum number of litmus tests that one line names; `--json` has them all."""


def separation_lines(answer: Separation) -> Iterator[str]:
    """Yield the answer, the history with the reason or the proof, and the bounds of the search."""
    if answer.proof is not None:
        yield from _proof(answer, answer.proof)
        if answer.proved or answer.proof.question.every_version_read:
            yield from answer.unexercised.lines()
            return
    yield f"{separation_words(answer)}."
    if answer.litmus is None or answer.forbidden is None:
        yield f"Search: {_effort(answer)}."
        if answer.unsearched:
            names = ", ".join(answer.unsearched)
            yield f"Not searched, since larger: {names} (--universe NAME)."
        yield from beside_lines(answer)
        yield from answer.unexercised.lines()
        return
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
    yield f"Search: {answer.bound}; {_effort(answer)}."
    yield from answer.unexercised.lines()


def separation_words(answer: Separation) -> str:
    """Return the answer of a search in one sentence without its full stop."""
    extra = " and no serial order explains" if answer.unexplained else ""
    if answer.litmus is None or answer.forbidden is None:
        claim = f"{answer.a} admits nothing that {answer.b} forbids{extra}"
        if answer.none:
            return f"No counterexample with {answer.bound}: {claim}"
        return f"Unknown whether {claim}: {answer.bound}"
    return (
        f"Found: {count_of(answer.transactions or 0, 'transaction')} that {answer.a} admits and"
        f" {answer.b} forbids{extra}"
    )


def beside_lines(answer: Separation) -> Iterator[str]:
    """Yield the lines about a test of the catalogue that lies outside the search."""
    if answer.beside is None:
        return
    test = answer.beside
    more = f"; {test.released} admits it, too" if test.released else ""
    yield (
        f"Outside the search: {answer.a} admits and {answer.b} forbids {test.test.name} of the"
        f" catalogue ({count_of(test.transactions, 'transaction')}{more}):"
    )
    for line in because(test.forbidden.violations[0]):
        yield f"  {line}"


def _proof(answer: Separation, proof: Proof) -> Iterator[str]:
    """Yield the lines of a proof: its claim and scope, or the lemma that fails, and all lemmas."""
    claim = f"{answer.a} admits nothing that {answer.b} forbids"
    number, _, statements = answer.bound.partition(", ")
    if proof.holds:
        yield f"Proved: {claim}, with {number}."
        yield f"Scope: search space '{answer.universe}'; any {statements}."
        if (proof.question.a.needs | proof.question.b.needs) <= NAMES:
            yield "The proof says nothing of search space 'abstract'; ask that without --unbounded."
    else:
        last = proof.steps[-1]
        yield f"Not proved that {claim}: lemma {last.lemma} {last.status}."
    yield ""
    yield "Lemmas:"
    for step in proof.steps:
        rests = f" (rests on {', '.join(step.rests_on)})" if step.rests_on else ""
        outcome = "" if step.outcome == "holds" else f"{step.outcome}{rests}: "
        yield f"  {step.lemma}: {outcome}{step.words} ({step.seconds:.1f} s)"
        for line in step.counterexample:
            yield f"    {line}"
    if proof.holds:
        yield from _outside(answer)
    yield ""


def _outside(answer: Separation) -> Iterator[str]:
    """Yield the litmus tests outside a theorem's scope that break its claim, with the reason."""
    failing: dict[str, list[str]] = {}
    for test in answer.outside:
        if test.fails:
            failing.setdefault(", ".join(test.why), []).append(test.litmus)
    if failing:
        yield ""
        yield "Outside this scope the claim fails in these litmus tests:"
        yield from (f"- {why}: {', '.join(names)}" for why, names in failing.items())
    holding = [test.litmus for test in answer.outside if not test.fails]
    if holding:
        few = ": " + ", ".join(holding) if len(holding) <= NAMED else ""
        yield f"It holds in {count_of(len(holding), 'other litmus test')} outside this scope{few}."


def _effort(answer: Separation) -> str:
    return f"{answer.effort}; {answer.seconds:.1f} s"


def _history(test: HistoryTest) -> Iterator[str]:
    """Yield the lines of an abstract history: transactions, sessions, order, schedule, sets."""
    for transaction in test.history.transactions:
        yield f"{transaction.name}  {transaction}"
    for transaction in test.history.transactions:
        if transaction.status != "committed":
            yield f"{transaction.status}: {transaction.name}"
    for session in test.history.sessions:
        if len(session) > 1:
            yield f"session: {' '.join(f'T{number}' for number in session)}"
    for first, second in test.history.order:
        yield f"observed: {first} < {second}"
    if test.history.schedule:
        yield f"schedule: {test.history.to_table()['schedule']}"
    for name, members in test.history.sets:
        yield f"{name}: {' '.join(f'T{number}' for number in members) or 'none'}"


DONE = frozenset({"committed", "no-op"})


def portrait_lines(portrait: Portrait) -> Iterator[str]:
    """Yield the guarantees of a protocol, their violations, and its needless aborts."""
    if not portrait.promises:
        yield "It promises no level: violations and needless aborts are shown if its text does."
    for promise in portrait.promises:
        yield from _promise(portrait, promise)
    for abort in portrait.aborts:
        if abort.raised:
            yield ""
            yield from _abort(portrait, abort)
    silent = [abort.exception for abort in portrait.aborts if not abort.raised]
    if silent:
        yield ""
        yield f"No run of search space '{portrait.universe}' raises {', '.join(silent)}."
    if portrait.shares:
        yield ""
        yield from map(_share, portrait.shares)
    for scope in portrait.uncounted:
        yield f"Count incomplete (limit): {scope}."


def _promise(portrait: Portrait, promise: Promise) -> Iterator[str]:
    """Yield the lines on a promised level: its violation, if there is one, and remedies."""
    worst = promise.unexplained
    found = worst if worst is not None and worst.found else promise.hole
    if promise.hole.found is None:
        yield f"Promised level {promise.level}: unknown whether it holds ({found.bound})."
    elif not promise.hole.found:
        yield f"Promised level {promise.level}: no violation {found.bound}."
    else:
        more = " and no serial order explains" if found is worst else ""
        number = count_of(found.transactions or 0, "transaction")
        yield (
            f"Promised level {promise.level}: violated by {number} that {portrait.protocol} admits"
            f" and {promise.level} forbids{more} ({found.bound})."
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
            what = " and ".join(f"{t} aborts with {outcome}" for t, outcome in aborted.items())
            yield f"  {_under(other, portrait)}, {what}."


def _abort(portrait: Portrait, abort: NeedlessAbort) -> Iterator[str]:
    """Yield the lines on one exception: a history that it aborts needlessly, and remedies."""
    found = abort.found
    if not found.found:
        verdict = "none found" if found.found is False else "unknown"
        yield f"Needless {abort.exception}: {verdict} {found.bound}."
        return
    yield (
        f"Needless {abort.exception}: {abort.level} allows these"
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
        yield f"  {_under(name, portrait)}, which promises {promised}, nothing aborts."
    if abort.layouts:
        yield f"  Remedy: nothing aborts with the table {' or '.join(abort.layouts)}."
    if not admitting and not abort.layouts:
        yield (
            "  Remedy: retry the aborted statement; no level that a table can have, and no layout"
            " that was tried, admits this run."
        )


def _under(other: str, portrait: Portrait) -> str:
    """Return what selects another protocol than the portrayed one, and its name.

    A table cannot choose between a rule that is being designed and the rule that ships.
    """
    if portrait.is_designed:
        return f"Under {other}, which ships"
    return f"Remedy: with {protocol(other).setting} ({other})"


def _all_end_well(outcomes: Mapping[str, str]) -> bool:
    return DONE.issuperset(outcomes.values())


def _indented_history(found: Separation) -> Iterator[str]:
    """Yield the indented lines of the run and the timeline of a counterexample."""
    litmus = found.litmus
    assert isinstance(litmus, Litmus)
    lines = (*run_lines(litmus), "", *timeline(litmus.schedule).split("\n"))
    yield from (f"  {line}".rstrip() for line in lines)


def _share(share: AbortShare) -> str:
    """Return the sentence with the shares of needless aborts and of violations in a scope."""
    silent = f"; silent on {count_of(share.silent, 'candidate')}" if share.silent else ""
    return (
        f"{share.scope}, {count_of(share.transactions, 'transaction')}: it aborts {share.aborted:,}"
        f" of {count_of(share.allowed, 'candidate')} that {share.level}"
        f" allows{_percent(share.aborted, share.allowed)}; {share.level} forbids {share.broken:,}"
        f" of the {share.admitted:,} that it"
        f" admits{_percent(share.broken, share.admitted)}{silent}."
    )


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if part else ""


def mutant_lines(report: MutantReport) -> Iterator[str]:
    """Yield each mutant with a distinguishing test, or the reason for none; then a summary."""
    for one in report.judged:
        yield f"{one.mutant.number:>3}. {one.mutant.change}"
        yield from (f"     {line}" for line in _why(one))
    told, argued = len(report.told), len(report.argued)
    argues = f"{argued} argued equivalent, " if argued else ""
    left = [str(one.mutant.number) for one in report.survivors]
    rest = f"{len(left)} not distinguished: {', '.join(left)}" if left else "none left"
    yield (
        f"{count_of(len(report.judged), 'mutant')} of {report.spec.name} in {report.seconds:.1f} s:"
        f" {told} distinguished, {argues}{rest}."
    )


def _why(one: JudgedMutant) -> Iterator[str]:
    """Yield the line on a mutant: the test that distinguishes it, or why there is none."""
    if one.kills:
        first, *others = one.kills
        more = f" (and {count_of(len(others), 'other test')})" if others else ""
        yield f"distinguished by {_named(first)}: {first.words}{more}"
        return
    if one.argument:
        yield f"equivalent: {one.argument}"
    word = "unknown" if one.ended is not None else "no test distinguishes it"
    yield f"{word}: {one.bound}"


def _named(kill: Kill) -> str:
    """Return the name of a catalogue test, or the full text of a history that was found."""
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
