"""Verdict of a spec on a history in which something was not observed, by its completions.

Choices. A flaw (``checker.judge.completion``) of a committed transaction forbids the history at
once: every completion has it. The outcome of an unknown transaction may always be assumed. The
version order may be assumed only if the spec says so (``with ww from versions``); else a spec that
uses it gets the answer "needs version order". Assumptions are made in the history's favour: one
completion that the spec admits is enough. If the spec is silent on one, and admits none, it is
silent on the history. If none is admitted, the violation shown is one that every completion has, if
there is one; else one of each of the first completions, with its assumptions.

Up to FEW completions are tried. With more, and if the spec permits it
(``checker.judge.completion_search``), the pairs common to all are judged first, and then a solver
proposes completions; else they are tried up to a limit.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.completion import completions
from isolitmus.checker.judge.completion_search import CompletionSearch, is_monotone_in_assumptions
from isolitmus.checker.judge.graph_semantics import admits, judge, missing_names
from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.checker.judge.spec_properties import is_increasing
from isolitmus.checker.judge.total_orders import LinearCompletion, linear_completions
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.model.spec_algebra import without_silences
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Silent, Unknown
from isolitmus.model.vocabulary import BY_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.judge.completion import Completion
    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.reason import Reason
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict, Violation

SHOWN = 3
"""Maximal number of completions whose violation is shown."""
FEW = 200
"""Number of completions that are tried one after another, for any spec."""


def check_history(
    history: History, spec: Spec, *, limit: int = 100_000, budget: Budget | None = None
) -> Verdict:
    """Return the verdict of a spec on a history.

    Parameters
    ----------
    history : History
        History to judge.
    spec : Spec
        Level.
    limit : int
        Maximal number of completions to try, or to propose; the verdict is Unknown if there are
        more.
    budget : Budget, optional
        Limits (default: three quarters of the free memory); once spent, the verdict is Unknown.

    Returns
    -------
    Verdict
        An allowed verdict has an order of the committed transactions as its witness.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> lost = History.parse("r1(x0) r2(x0) w1(x1) w2(x2) c1 c2")
    >>> print(check_history(lost, level("snapshot-isolation")))
    forbidden
    >>> check_history(History.parse("r1(x0) w1(x1) r2(x1) c1 c2"), level("serializable")).witness
    ('T1', 'T2')
    """
    budget = budget or Budget()
    orders = _uses_orders(history, spec)
    first = next(_possible(history, spec, orders=orders))
    bare = _frame(first, spec, reasons=False)
    lacking = missing_names(bare, spec)
    if lacking:
        return Needs(lacking)
    flaws = _certain_flaws(history, bare)
    if flaws:
        return Forbidden(flaws)
    if orders and "ww" not in spec.bound and history.unordered():
        return Needs(("version order",))
    many = next(islice(_possible(history, spec, orders=orders), FEW, None), None) is not None
    if many and is_monotone_in_assumptions(spec):
        return _proposed(CompletionSearch(history, spec, orders=orders), limit, budget)
    holds, permits = compile_spec(spec), compile_spec(without_silences(spec))
    silent: Completion | LinearCompletion | None = None
    common: Frame | None = None
    for tried, completion in enumerate(islice(_possible(history, spec, orders=orders), limit + 1)):
        if tried == limit:
            return Unknown(f"none of the first {limit} completions is allowed, and there are more")
        ended = budget.spent()
        if ended is not None:
            return Unknown(f"{ended}; {tried:,} completions until then, none allowed")
        frame = _frame(completion, spec, reasons=False)
        if holds(frame):
            return _allowed(completion, spec)
        if spec.silences and silent is None and permits(frame):
            silent = completion
        common = frame if common is None else _meet(common, frame)
    if silent is not None:
        verdict = judge(_frame(silent, spec), spec)
        assert isinstance(verdict, Silent)
        return verdict
    shown = _frame(first, spec)
    if common is not None and common.sets == shown.sets and is_increasing(spec):
        forced = judge(replace(common, reasons=shown.reasons), spec)
        if isinstance(forced, Forbidden):
            return forced
    if not tried:
        return judge(shown, spec)
    violations = _some_violations(history, spec, orders=orders)
    return Forbidden(violations, tried + 1 - len(violations))


def _certain_flaws(history: History, frame: Frame) -> tuple[Violation, ...]:
    """Return the flaws of transactions that certainly committed."""
    committed = {t.name for t in history.transactions if t.status == "committed"}
    return tuple(flaw for flaw in frame.flaws if flaw.cycle[0].target in committed)


def _frame(completion: Completion | LinearCompletion, spec: Spec, *, reasons: bool = True) -> Frame:
    """Return the dependency graph of a completion, with the nodes that the spec uses."""
    operations = needs_operations(spec)
    return completion.frame(reasons=reasons, reads=needs_reads(spec), operations=operations)


def _possible(
    history: History, spec: Spec, *, orders: bool
) -> Iterator[Completion | LinearCompletion]:
    """Return an iterator over all completions that the spec may assume."""
    if "co" in spec.bound:
        return linear_completions(history, spec, orders=orders)
    return completions(history, orders=orders)


def _proposed(proposing: CompletionSearch, limit: int, budget: Budget) -> Verdict:
    """Return the verdict by a solver, where there are too many completions to try."""
    history, spec, orders = proposing.history, proposing.spec, proposing.orders
    common = proposing.common()
    if common is not None and not admits(common, spec):
        shown = _frame(proposing.first, spec)
        return judge(replace(common, reasons=shown.reasons), spec)
    try:
        found = proposing.admitted(limit, budget)
    except Limit as ended:
        return Unknown(str(ended))
    if found is not None:
        return _allowed(found, spec)
    return Forbidden(_some_violations(history, spec, orders=orders), None)


def _allowed(completion: Completion | LinearCompletion, spec: Spec) -> Allowed:
    """Return the verdict on a completion that the spec admits."""
    verdict = judge(_frame(completion, spec), spec)
    assert isinstance(verdict, Allowed)
    committed = {f"T{number}" for number in completion.committed}
    found = [
        tuple(name for name in order if name in committed)
        for order in (verdict.witness, *verdict.alone)
    ]
    return Allowed(found[0], tuple(found[1:]))


def _some_violations(history: History, spec: Spec, *, orders: bool) -> tuple[Violation, ...]:
    """Return one violation of each of the first completions."""
    some = islice(_possible(history, spec, orders=orders), SHOWN)
    return tuple(_supposing(completion, spec) for completion in some)


def _supposing(completion: Completion | LinearCompletion, spec: Spec) -> Violation:
    """Return a violation of one completion, with the assumptions in front, not at each edge."""
    verdict = judge(_frame(completion, spec), spec)
    assert isinstance(verdict, Forbidden)
    violation = verdict.violations[0]
    cycle = tuple(replace(edge, reason=_supposed(edge.reason)) for edge in violation.cycle)
    return replace(violation, cycle=cycle, supposing=completion.supposing())


def _supposed(reason: Reason) -> Reason:
    """Return the reason without its mark that it is assumed."""
    if "doubt" in reason.nouns:
        return reason.but(doubt=False)
    if "parts" in reason.nouns:
        return reason.but(parts=tuple(map(_supposed, reason["parts"])))
    if "steps" in reason.nouns:
        return reason.but(
            steps=tuple((_supposed(one), instead) for one, instead in reason["steps"])
        )
    return reason


def _uses_orders(history: History, spec: Spec) -> bool:
    """Return whether the version order matters to the spec.

    It does for ww, rw and fr, and for wr if predicates were read.
    """
    by_predicate = any(True for _ in history.predicate_reads())
    of_predicates = {"wr", "wr-predicate", "wr-read"} if by_predicate else set()
    return bool(spec.needs & (BY_VERSIONS | of_predicates))


def _meet(a: Frame, b: Frame) -> Frame:
    """Return the intersection of two dependency graphs on the same nodes."""
    return replace(
        a,
        relations={name: relation & b.relations[name] for name, relation in a.relations.items()},
        sets={name: members & b.sets[name] for name, members in a.sets.items()},
        flaws=tuple(flaw for flaw in a.flaws if flaw in b.flaws),
    )
