"""Repairs of a protocol: the weakest strengthenings of its rule that keep a level in some scopes.

The candidates of the scopes are enumerated once (`repair_candidates`). Clauses over what a commit
checker holds (`rule_terms`) are then chosen such that every bad candidate aborts, and as few good
ones as possible (`repair_front`). Every repair is checked again by other means: its text is parsed
and judges all graphs, `separate` searches the scopes for a counterexample, and the prover tries
to prove it for any number of transactions. Each part of it is shown to be needed by a history.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.prove.arguments import Question
from isolitmus.checker.prove.proof import prove
from isolitmus.checker.search.repair_candidates import CandidateGroups, classify
from isolitmus.checker.search.repair_front import (
    ClassMasks,
    Cover,
    RuleClause,
    priced_clauses,
    repair_front,
    telling_terms,
)
from isolitmus.checker.search.repair_result import NeededPart, RuleRepair, RuleRepairs
from isolitmus.checker.search.separation import TABLE, separate
from isolitmus.checker.search.separation_result import table_assumptions
from isolitmus.checker.universes.catalogue_histories import shipped_run
from isolitmus.checker.universes.recheck import read_again
from isolitmus.checker.universes.tables import of_format
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import Disagreement, IsolitmusError, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.model.vocabulary import relations_of
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import every_level
from isolitmus.specs.files.spec_catalogue import level as named_level
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.prove.proof import Proof
    from isolitmus.checker.search.repair_candidates import CandidateGroup, PairClasses
    from isolitmus.checker.search.rule_terms import RuleTerm
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

VECTOR_SCOPES = ("vectors", "vectors-two-files")
"""Default scopes of rules that look below the level of files, or that a conf switches on."""
FEW = 2
"""Number of transactions up to which `separate` searches again."""
LARGER = 3
"""Number of transactions that is tried if no counterexample has fewer."""
KINDS = frozenset(("operation", "new field"))
"""Needs of terms about kinds of statements."""
ALONE = 12
"""Maximum number of single terms that are listed."""


def repair(
    protocol: SpecLike,
    keeps: SpecLike,
    universes: Sequence[Scope | NameOrPath] = (),
    *,
    transactions: int | None = None,
    explained: bool = False,
    proofs: bool = True,
    budget: Budget | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> RuleRepairs:
    """Return the weakest strengthenings of a protocol's rule that keep a level.

    Parameters
    ----------
    protocol : Spec, str or path
        Protocol, its name or its file.
    keeps : Spec, str or path
        Level that it should keep.
    universes : sequence of Scope, str or path
        Scopes whose candidates are enumerated. By default scope ``table``; for rules that look
        below the level of files, or that a conf switches on, those with deletion vectors.
    transactions : int, optional
        Maximum number of transactions, readers included. By default that of each scope, and 3 if
        no candidate with 2 is bad.
    explained : bool
        Whether a candidate is also bad if no serial order produces its tables.
    proofs : bool
        Whether to try to prove the repairs for any number of transactions.
    budget : Budget, optional
        Limits of time and memory. Once spent, the result has what was found so far.
    progress : callable, optional
        Receives a text about the work.

    Returns
    -------
    RuleRepairs
        The front of repairs, or the reason why there is none.

    Raises
    ------
    IsolitmusError
        If the specs or scopes do not fit together.

    Examples
    --------
    >>> repairs = repair("case-2-serializable", "log-serializable", ["vectors"], proofs=False)
    >>> repairs.outcome, repairs.bad
    ('repaired', 21)
    >>> [one.cover.clauses[0].text for one in repairs.front][:2]
    ['unseen & removes-meets-reads', 'unseen ; [Merging]']
    """
    start = monotonic()
    rule, level = rule_of(protocol), named_level(keeps)
    scopes = [named_scope(one) for one in universes or _default_scopes(rule)]
    for scope in scopes:
        _check_scope(scope, rule, level)
    budget = budget or Budget()
    groups = CandidateGroups(rule, level, _released_protocol(rule), explained, budget)
    ended = _collect(groups, scopes, transactions, progress)
    result = RuleRepairs(
        rule.name, level.name, "unknown", _bound(groups, ended), explained,
        groups.number(), groups.number(bad=True),
        assumptions=table_assumptions(rule, format_named(scopes[0].format)), ended=ended,
    )  # fmt: skip
    bad = groups.bad
    if bad:
        result = replace(result, hole=_litmus(bad[0], rule, level))
        result = _find_repairs(result, groups, progress, proofs=proofs and not explained)
    elif ended is None:
        form = format_named(scopes[0].format).name
        beside = shipped_run(rule, level, unexplained=False, format=form)
        result = replace(result, outcome="holds", beside=beside)
    return replace(result, seconds=monotonic() - start)


def rule_of(protocol: SpecLike) -> Spec:
    """Return the protocol to repair.

    Raises
    ------
    IsolitmusError
        If there is no such protocol, or it is a level.
    """
    if isinstance(protocol, str) and protocol in every_level():
        raise IsolitmusError(
            f"'{protocol}' is a level, and a repair changes the rule of a protocol; name a"
            " protocol, and the level with --keeps"
        )
    rule = named_protocol(protocol)
    other = next((axiom for axiom in rule.axioms if axiom.test != "empty"), None)
    if other is not None or not rule.axioms:
        why = "no axiom" if other is None else f"axiom {other.name} is {other.test} …"
        raise IsolitmusError(
            f"{rule.name} is no rule for pairs of commits: {why}; name a protocol whose axioms are"
            " empty …"
        )
    return rule


def _default_scopes(rule: Spec) -> tuple[str, ...]:
    """Return the names of the scopes that exercise a rule's vocabulary."""
    below_files = not rule.needs.isdisjoint(relations_of("delta-rows"))
    return VECTOR_SCOPES if below_files or rule.confs else (TABLE,)


def _released_protocol(rule: Spec) -> Spec | None:
    """Return the released protocol with the same setting as a rule; None if it is one itself."""
    if rule.format is None:
        return None
    usual = [named_protocol(name) for name in format_named(rule.format).protocols]
    same = (one for one in usual if one.setting == rule.setting and one.name != rule.name)
    return next(same, None) if rule.confs else None


def _check_scope(scope: Scope, rule: Spec, level: Spec) -> None:
    """Raise IsolitmusError if a scope is of another format, or its graphs lack a name."""
    form = of_format(scope, rule, level)
    if form.carry_out is not None:
        raise IsolitmusError(
            f"scope {scope.name} has schedules of an engine with locks, where commits are not"
            " checked; name a scope over tables"
        )
    for spec in (rule, level):
        lacking = sorted(spec.needs - form.terms.keys())
        if lacking:
            raise IsolitmusError(
                f"{spec.name} needs {', '.join(lacking)}, which candidates of scope {scope.name} do"
                " not have"
            )


def _collect(
    groups: CandidateGroups,
    scopes: Sequence[Scope],
    transactions: int | None,
    progress: Callable[[str], None],
) -> str | None:
    """Enumerate the scopes; return the limit that ended it, or None."""
    try:
        for scope in scopes:
            most = max(scope.transactions) if transactions is None else transactions
            for n in range(1, most + 1):
                groups.collect(scope, n, progress)
        if transactions is None and not groups.bad:
            for scope in scopes:
                for n in range(max(scope.transactions) + 1, LARGER + 1):
                    groups.collect(scope, n, progress)
    except (Limit, MemoryError) as limit:
        return str(limit) or "memory limit"
    return None


def _bound(groups: CandidateGroups, ended: str | None) -> str:
    """Return what was enumerated, in words."""
    parts = [
        f"scope {name} with up to {count_of(max(sizes), 'transaction')}"
        for name, sizes in groups.sizes.items()
    ]
    where = " and ".join(parts) or "no scope to its end"
    partly = f"; {ended}, so larger ones are not covered" if ended else ""
    return f"{where} ({count_of(groups.examined, 'candidate')} checked{partly})"


def _find_repairs(
    result: RuleRepairs, groups: CandidateGroups, progress: Callable[[str], None], *, proofs: bool
) -> RuleRepairs:
    """Return the result with its repairs, after the candidates are collected."""
    rule, level = groups.protocol, groups.level
    terms = groups.shared_terms()
    classes = classify(groups, terms)
    alone = classes.bad.get(frozenset())
    if alone is not None:
        hole = _litmus(alone, rule, level)
        return replace(result, outcome="impossible", hole=hole)
    kinds = list(classes.bad)
    masks = ClassMasks(kinds, classes.good, len(terms))
    # After a limit, what was collected is still searched: that takes seconds, and ends.
    check = (lambda: None) if result.ended else groups.budget.check
    covers: list[Cover] = []
    progress("clauses")
    try:
        clauses = priced_clauses(masks, terms, check=check)
        for cover in repair_front(clauses, len(kinds), check=check):
            covers.append(cover)
            progress(f"{count_of(len(covers), 'repair')} found")
        if proofs and not result.ended:
            # What may be proved has a front of its own: a rule that only fits the scope beats it.
            provable = priced_clauses(masks, terms, among=_is_provable_term, check=check)
            covers += repair_front(provable, len(kinds), check=check)
    except (Limit, MemoryError) as limit:
        result = replace(result, ended=str(limit) or "memory limit")
    covers = sorted(dict.fromkeys(covers), key=lambda c: (c.rank, c.size, c.needless))
    equal = {terms[k].text: [terms[o].text for o in same if terms[o].side == terms[k].side]
             for k, same in telling_terms(masks, terms).items()}  # fmt: skip
    released = groups.released
    result = replace(
        result,
        outcome="repaired" if covers else "unknown",
        released=None if released is None else released.name,
        excused=None if released is None else _saved(groups, rule),
        alone=_single_relations(masks, terms, len(kinds)),
        indistinct=_indistinct(classes, rule, level),
    )
    front = [_repair_of(cover, k, groups, equal) for k, cover in enumerate(covers, 1)]
    result = replace(result, front=tuple(front))
    if not result.ended:
        result = _confirm(result, groups, progress, proofs=proofs)
    return replace(result, front=_without_beaten(result.front, rule))


def _without_beaten(repairs: Sequence[RuleRepair], rule: Spec) -> tuple[RuleRepair, ...]:
    """Return the repairs that no other one beats, and the proved ones that no proved one beats.

    They are numbered in their order.
    """
    proved = [one for one in repairs if one.proved_for is not None]

    def is_beaten(one: RuleRepair) -> bool:
        rivals = proved if one in proved else repairs
        return any(_beats(other.cover, one.cover) for other in rivals)

    kept = [one for one in repairs if not is_beaten(one)]
    specs = (repaired_spec(rule, one.cover.clauses, k) for k, one in enumerate(kept, 1))
    return tuple(replace(one, spec=spec) for one, spec in zip(kept, specs, strict=True))


def _beats(a: Cover, b: Cover) -> bool:
    """Return whether a cover is at least as good in everything, and better in something."""
    price_a, price_b = (a.needless, a.rank, a.size), (b.needless, b.rank, b.size)
    return price_a != price_b and all(x <= y for x, y in zip(price_a, price_b, strict=True))


def _single_relations(
    masks: ClassMasks, terms: Sequence[RuleTerm], n_bad: int
) -> tuple[Cover, ...]:
    """Return the repairs by a single relation between winner and loser."""
    everything = (1 << n_bad) - 1
    covers = []
    for k, term in enumerate(terms):
        effect = masks.effect(masks.columns[k])
        if term.side == "pair" and effect.bad == everything:
            covers.append(Cover((RuleClause((term,)),), effect.good.bit_count()))
    covers.sort(key=lambda cover: (cover.needless, cover.rank))
    return tuple(covers[:ALONE])


def _indistinct(classes: PairClasses, rule: Spec, level: Spec) -> tuple[Litmus, Litmus] | None:
    pair = classes.indistinct
    if pair is None:
        return None
    bad, good = pair
    return _litmus(bad, rule, level), _litmus(good, rule, level)


def _litmus(group: CandidateGroup, rule: Spec, level: Spec) -> Litmus:
    """Return the first candidate of a group as a litmus test, read back from its text."""
    verdict = f"{'forbidden' if group.is_forbidden else 'allowed'} by {level.name}"
    if group.is_bad and not group.is_forbidden:
        verdict += ", its tables are of no serial order"
    plain = group.first.litmus(
        f"{rule.name}-{'violation' if group.is_bad else 'allowed'}",
        f"Admitted by {rule.name}, {verdict}",
        f"isolitmus repair {rule.name} --keeps {level.name}",
    )
    litmus = read_again(plain)
    assert isinstance(litmus, Litmus)
    return litmus


def repaired_spec(protocol: SpecLike, clauses: Sequence[RuleClause], number: int = 1) -> Spec:
    """Return a protocol with clauses as further axioms, as it is read from its text.

    Examples
    --------
    >>> spec = repaired_spec("case-2-serializable", [RuleClause(())])
    >>> spec.name, str(spec.axioms[-1])
    ('case-2-serializable-repaired-1', 'empty unseen as repair')
    """
    rule = named_protocol(protocol)
    quote = rule.text.index('"') + 1
    end = rule.text.index('"', quote)
    text = f"{rule.text[:end]}, repaired{rule.text[end:].rstrip()}\n"
    for k, clause in enumerate(clauses, 1):
        name = "repair" if len(clauses) == 1 else f"repair-{k}"
        text += f"\n(* Aborts if {clause.words}. *)\nempty {clause.text} as {name}\n"
    read = read_spec(text, f"{rule.name}-repaired-{number}", rule.path, runtime=rule.runtime)
    return replace(read, path=None)


def _repair_of(
    cover: Cover, number: int, groups: CandidateGroups, equal: dict[str, list[str]]
) -> RuleRepair:
    """Return a cover as a repaired protocol, judged again on every graph by its text."""
    spec = repaired_spec(groups.protocol, cover.clauses, number)
    admits = compile_spec(spec)
    needless = 0
    for group in groups:
        if group.is_bad and admits(group.frame):
            raise Disagreement(f"{spec.name} admits what it should abort:\n{spec.text}")
        needless += group.count * (not group.is_bad and not admits(group.frame))
    if needless != cover.needless:
        raise Disagreement(
            f"{spec.name} aborts {needless} candidates for nothing, not {cover.needless}"
        )
    saved = None if groups.released is None else _saved(groups, spec)
    terms = (term for clause in cover.clauses for term in clause.terms)
    relations = dict.fromkeys(term.text for term in terms if term.side == "pair")
    same = tuple((name, other) for name in relations for other in equal.get(name, [])[:1])
    return RuleRepair(spec, cover, saved, equal_here=same)


def _saved(groups: CandidateGroups, spec: Spec) -> int:
    """Return the number of good candidates that a spec admits and the released one aborts."""
    admits = compile_spec(spec)
    return sum(
        group.count
        for group in groups
        if not group.is_bad and not group.is_released and admits(group.frame)
    )


def _confirm(
    result: RuleRepairs, groups: CandidateGroups, progress: Callable[[str], None], *, proofs: bool
) -> RuleRepairs:
    """Return the result with searches, proofs, and histories that show what is needed.

    Repairs that a limit leaves unconfirmed stay in the front without these.
    """
    rule, level, budget = groups.protocol, groups.level, groups.budget
    front = list(result.front)
    try:
        # What is not proved of the strictest rule is not proved of a weaker one.
        strictest = repaired_spec(rule, [RuleClause(())])
        tries = proofs and _try_proof(strictest, level, budget) is not None
        for k, one in enumerate(front):
            progress(f"check {k + 1} of {len(front)}")
            _search_again(one.spec, groups)
            front[k] = replace(one, needed=_needed_parts(one, groups))
            if tries and all(map(_is_provable, one.cover.clauses)):
                front[k] = replace(front[k], proof=_try_proof(one.spec, level, budget))
            budget.check()
    except (Limit, MemoryError) as limit:
        result = replace(result, ended=str(limit) or "memory limit")
    return replace(result, front=tuple(front))


def _is_provable(clause: RuleClause) -> bool:
    """Return whether a proof is worth an attempt."""
    return all(map(_is_provable_term, clause.terms))


def _is_provable_term(term: RuleTerm) -> bool:
    """Return whether premises of proofs are about a term: none is about kinds of statements."""
    return not any(cost.name in KINDS for cost in term.costs)


def _try_proof(spec: Spec, level: Spec, budget: Budget) -> Proof | None:
    """Return a proof for any number of transactions; None if there is none."""
    proof = prove(Question(spec, level), budget=budget)
    return proof if proof.holds else None


def _search_again(spec: Spec, groups: CandidateGroups) -> None:
    """Raise Disagreement if `separate` finds a counterexample of a repair in the scopes."""
    for name, sizes in groups.sizes.items():
        few = [n for n in sizes if n <= FEW]
        if few:
            answer = separate(
                spec, groups.level, groups.scopes[name], transactions=few, shipped=False,
                by="exhaustive", budget=groups.budget,
            )  # fmt: skip
            if answer.found:
                raise Disagreement(f"{spec.name} still admits what it should abort: {answer}")
            groups.budget.check()


def _needed_parts(one: RuleRepair, groups: CandidateGroups) -> tuple[NeededPart, ...]:
    """Return, for each clause and each term, a history that shows that it is needed."""
    clauses = one.cover.clauses
    admits = compile_spec(one.spec)
    parts = []
    for k, clause in enumerate(clauses):
        others = (*clauses[:k], *clauses[k + 1 :])
        rest = compile_spec(repaired_spec(groups.protocol, others))
        hole = next(group for group in groups.bad if rest(group.frame))
        test = _litmus(hole, groups.protocol, groups.level)
        parts.append(NeededPart(clause.text, "violation", test))
        for t, term in enumerate(clause.terms):
            wider = RuleClause((*clause.terms[:t], *clause.terms[t + 1 :]))
            stricter = compile_spec(repaired_spec(groups.protocol, (*others, wider)))
            needless = (g for g in groups if not g.is_bad and admits(g.frame))
            lost = min(
                (g for g in needless if not stricter(g.frame)),
                key=lambda g: len(g.first.events),
            )
            test = _litmus(lost, one.spec, groups.level)
            parts.append(NeededPart(term.text, "needless abort", test))
    return tuple(parts)
