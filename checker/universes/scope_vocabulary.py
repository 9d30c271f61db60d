"""Vocabulary of scopes: the names that their candidates make non-empty.

A scope is watched by enumeration of its candidates, or by questions to a solver. Its vocabulary is
computed from the candidates with one and two transactions, which takes a tenth of a second for a
scope that ships. Some names may need three transactions: the vocabulary is a lower bound.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING

from isolitmus.checker.judge.read_nodes import READ_BY_READ
from isolitmus.checker.universes.exercised_names import EVERYTHING, ExerciseRecord
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.spec import Axiom, Bracket, Name, Spec
from isolitmus.model.spec_algebra import names_in
from isolitmus.model.vocabulary import relations_of
from isolitmus.specs.disk.input_files import HOME, shipped_files
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.budget import Budget
    from isolitmus.model.format import ScopeSolver
    from isolitmus.model.scope import Scope


NAMES_FILE = "scope_names.toml"
"""File with the vocabulary of each scope that ships."""
MANY = 2_000
"""Number of choices of statements beyond which a scope is not searched unless it is named, or has a
name of the specs that no smaller one has.
"""
PAIR = 2
"""Number of transactions up to which the candidates of a scope are enumerated for this alone."""


def watch_scope(record: ExerciseRecord, scope: Scope, most: int, check: Callable[[], None]) -> None:
    """Look at the candidates of a scope with at most `most` transactions, until no part is open."""
    form = format_named(scope.format)
    for n in range(1, most + 1):
        for found in candidates(scope, n, lambda _: True, check):
            if not record.open:
                return
            if found is not None:
                record.look_at(found.events, found.frame, form.frame)


def watch_proposals(
    record: ExerciseRecord,
    solver: ScopeSolver,
    scope: Scope,
    sizes: Iterable[int],
    budget: Budget,
) -> None:
    """Ask the solver for candidates that make open parts non-empty, until it knows of none."""
    form = format_named(scope.format)
    for n in sizes:
        parts = record.open
        while parts:
            axioms = tuple(part.emptiness for part in parts)
            needs = names_in([axiom.expr for axiom in axioms], {})
            empty = Spec("empty", "Empty", "", "", axioms, {}, needs=needs)

            def exercises(found: Candidate, left: int = len(parts)) -> bool:
                record.look_at(found.events, found.frame, form.frame)
                return len(record.open) < left

            found, _ = solver.search(EVERYTHING, empty, scope, n, exercises, budget=budget)
            if found is None:
                break
            parts = record.open


def scope_names(scope: Scope) -> frozenset[str]:
    """Return the base names that candidates with one or two transactions make non-empty.

    Names of single reads are left out. Where candidates are schedules, the vocabulary is empty.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> "Vectors" in scope_names(scope("table")), "Vectors" in scope_names(scope("rows"))
    (False, True)
    """
    form = format_named(scope.format)
    if form.carry_out is not None:
        return frozenset()
    names = frozenset(form.terms) - READ_BY_READ
    axioms = tuple(
        Axiom("empty", Name(name) if Name(name).kind == "relation" else Bracket(Name(name)), name)
        for name in sorted(names)
    )
    record = ExerciseRecord(Spec("names", "Names", "", "", axioms, {}, needs=names))
    watch_scope(record, scope, min(PAIR, max(scope.transactions)), lambda: None)
    return names.difference(part.name for part in record.open)


@cache
def shipped_scope_names(name: str) -> frozenset[str]:
    """Return the vocabulary of a scope that ships, as its file of names has it.

    To compute it for all takes seconds (`scope_names`); a test compares.
    """
    return frozenset(_names_by_scope()[name])


@cache
def _names_by_scope() -> dict[str, list[str]]:
    text = (HOME / NAMES_FILE).read_text("utf-8")
    names: dict[str, list[str]] = tomllib.loads(text)
    return names


def scopes_with_names(first: Scope, names: Collection[str]) -> Iterator[Scope]:
    """Yield a scope, and then those that ship and exercise the names that it does not.

    The fewest are chosen (`covering_scopes`), when they are asked for. Names below the level of
    files concern every statement that shares a file: for these, all scopes that exercise one.

    Parameters
    ----------
    first : Scope
        Scope that ships.
    names : collection of str
        Base names.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> [one.name for one in scopes_with_names(scope("table"), {"ww", "Blind"})]
    ['table']
    >>> [one.name for one in scopes_with_names(scope("table"), {"ww", "Meta"})]
    ['table', 'altered']
    """
    yield first
    left = frozenset(names) - (shipped_scope_names(first.name) if names else frozenset())
    below = left.intersection(relations_of("delta-rows"))
    row_level = [
        scope
        for scope in (_shipped_scopes(first.format) if below else ())
        if below & shipped_scope_names(scope.name)
    ]
    yield from sorted(row_level, key=lambda scope: len(scope.statements))
    left = left.difference(*(shipped_scope_names(scope.name) for scope in row_level))
    yield from (scope for scope, _ in covering_scopes(first.format, left))


def covering_scopes(form: str, names: Collection[str]) -> Iterator[tuple[Scope, frozenset[str]]]:
    """Yield few scopes of a format that ship and together exercise names, with the names of each.

    They are chosen greedily: the most new names first, then the fewest statements. Names that no
    scope exercises are ignored.

    Examples
    --------
    >>> [(one.name, sorted(some)) for one, some in covering_scopes("delta", ["Meta", "Large"])]
    [('altered', ['Meta'])]
    """
    left = frozenset(names)
    while left:
        gains = [(one, left & shipped_scope_names(one.name)) for one in _shipped_scopes(form)]
        best, gained = max(gains, key=lambda gain: (len(gain[1]), -len(gain[0].statements)))
        if not gained:
            return
        yield best, gained
        left -= gained


def other_scopes(form: str, searched: Collection[str]) -> tuple[list[Scope], list[Scope]]:
    """Return the scopes of a format that ship and were not searched: small ones, and large ones.

    Parameters
    ----------
    form : str
        Table format.
    searched : collection of str
        Names of scopes.

    Returns
    -------
    small, large : list of Scope
        Both with the fewest choices of statements first; at most MANY are few.

    Examples
    --------
    >>> small, large = other_scopes("delta", {"table"})
    >>> small[0].name, [scope.name for scope in large]
    ('compactions', ['fourteen-writers'])
    """

    def choices(scope: Scope) -> float:
        return float(len(scope.statements)) ** max(scope.transactions)

    left = sorted((one for one in _shipped_scopes(form) if one.name not in searched), key=choices)
    small = [scope for scope in left if choices(scope) <= MANY]
    return small, left[len(small) :]


@cache
def _shipped_scopes(form: str) -> tuple[Scope, ...]:
    """Return the scopes of a format that ship, sorted by name."""
    scopes = (named_scope(name) for name in sorted(shipped_files("scopes")))
    return tuple(one for one in scopes if one.format == form)
