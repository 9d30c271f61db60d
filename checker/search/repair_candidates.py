"""Candidates that a protocol admits, grouped for the search for a repair.

A candidate is bad if the level forbids it, or, if asked, if no serial order produces its tables.
Candidates with equal graphs are one group; its first candidate stands for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import recording_spec
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.checker.search.rule_terms import pair_types, rule_terms
from isolitmus.checker.universes.tables import candidates
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.checker.search.rule_terms import RuleTerm
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.budget import Budget
    from isolitmus.model.frame import Frame
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec


@dataclass(slots=True)
class CandidateGroup:
    """Candidates with one graph and one verdict."""

    first: Candidate
    """First of them, with the fewest transactions."""
    is_forbidden: bool
    """Whether the level forbids them."""
    is_bad: bool
    """Whether the level forbids them, or, if asked, no serial order produces their tables."""
    is_released: bool
    """Whether the released protocol admits them as well."""
    count: int = 0
    """Number of candidates."""

    @property
    def frame(self) -> Frame:
        """Dependency graph of each of them."""
        return self.first.frame


@dataclass(slots=True)
class CandidateGroups:
    """Groups of the candidates that a protocol admits in some scopes."""

    protocol: Spec
    level: Spec
    released: Spec | None
    """Protocol of the release whose checks it changes; None if it is one itself."""
    explained: bool
    """Whether a candidate is also bad if no serial order produces its tables."""
    budget: Budget
    groups: dict[Hashable, CandidateGroup] = field(default_factory=dict)
    sizes: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of transactions that were enumerated to the end, by scope."""
    scopes: dict[str, Scope] = field(default_factory=dict)
    """Enumerated scopes by name."""
    examined: int = 0
    """Number of candidates, those that the protocol aborts among them."""

    def collect(self, scope: Scope, n: int, tell: Callable[[str], None]) -> None:
        """Add the candidates of a scope with n transactions.

        Raises
        ------
        Limit
            If the budget is spent; what was found so far stays.
        """
        frame = format_named(scope.format).frame
        judges = [_judge(spec, frame) for spec in (self.protocol, self.level)]
        released = None if self.released is None else _judge(self.released, frame)
        keep = compile_spec(self.protocol) if _prunes(self.protocol) else _anything
        recorder = recording_spec(self.protocol, self.level) if scope.noops == "keep" else None
        for candidate in candidates(scope, n, keep, self.budget.check, recorder=recorder):
            self.examined += 1
            if self.examined % 200 == 0:
                tell(f"scope {scope.name}, {n} transactions, {self.examined:,} examined")
            if candidate is None or not judges[0](candidate):
                continue
            is_forbidden = not judges[1](candidate)
            is_bad = is_forbidden or (self.explained and candidate.unexplained())
            key = (scope.format, _graph_key(candidate.frame), is_bad)
            if key not in self.groups:
                is_released = released is not None and released(candidate)
                self.groups[key] = CandidateGroup(candidate, is_forbidden, is_bad, is_released)
            self.groups[key].count += 1
        self.sizes.setdefault(scope.name, []).append(n)
        self.scopes[scope.name] = scope

    def __iter__(self) -> Iterator[CandidateGroup]:
        return iter(self.groups.values())

    @property
    def bad(self) -> list[CandidateGroup]:
        """Groups of bad candidates, those with the fewest transactions first."""
        groups = [group for group in self if group.is_bad]
        return sorted(groups, key=lambda group: len(group.first.events))

    def number(self, *, bad: bool | None = None) -> int:
        """Return the number of admitted candidates: all, the bad, or the good ones."""
        return sum(group.count for group in self if bad in (None, group.is_bad))

    def shared_terms(self) -> tuple[RuleTerm, ...]:
        """Return the terms whose names every graph has: others are undetermined for some pair."""
        frames = [group.frame for group in self]
        names = [frozenset(frame.every_relation()) for frame in frames]
        sets = [frozenset(frame.sets) for frame in frames]
        return rule_terms(frozenset.intersection(*names), frozenset.intersection(*sets))


@dataclass(slots=True)
class PairClasses:
    """Groups by the terms that hold for their concurrent pairs."""

    bad: dict[frozenset[int], CandidateGroup] = field(default_factory=dict)
    """First group of each class with a bad candidate."""
    good: Counter[frozenset[int]] = field(default_factory=Counter)
    """Number of good candidates of each class."""
    good_groups: dict[frozenset[int], CandidateGroup] = field(default_factory=dict)
    """First group of each class with a good candidate."""

    @property
    def indistinct(self) -> tuple[CandidateGroup, CandidateGroup] | None:
        """A bad and a good group that no term tells apart; None if there are none."""
        both = (kinds for kinds in self.bad if kinds in self.good)
        return next(((self.bad[kinds], self.good_groups[kinds]) for kinds in both), None)


def classify(groups: CandidateGroups, terms: Sequence[RuleTerm]) -> PairClasses:
    """Return the groups by the terms that hold for their concurrent pairs."""
    classes = PairClasses()
    for group in groups:
        kinds = pair_types(group.frame, terms)
        if group.is_bad:
            known = classes.bad.setdefault(kinds, group)
            if len(group.first.events) < len(known.first.events):
                classes.bad[kinds] = group
        else:
            classes.good[kinds] += group.count
            classes.good_groups.setdefault(kinds, group)
    return classes


def _graph_key(frame: Frame) -> Hashable:
    relations = tuple((name, relation.rows) for name, relation in frame.every_relation().items())
    return relations, tuple(frame.sets.items())


def _judge(spec: Spec, frame: Callable[..., Frame]) -> Callable[[Candidate], bool]:
    """Return whether a spec admits a candidate, as a function."""
    admits = compile_spec(spec)
    if needs_reads(spec):
        return lambda candidate: admits(frame(candidate.events, reasons=False, reads=True))
    return lambda candidate: admits(candidate.frame)


def _prunes(spec: Spec) -> bool:
    return is_monotone(spec) and not needs_reads(spec)


def _anything(_frame: Frame) -> bool:
    return True
