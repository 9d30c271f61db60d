"""The verb ``compare``: which levels imply which, with the smallest history on every step down."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from isolitmus.checker.execution.worker_processes import process_pool
from isolitmus.checker.search.lattice import Lattices
from isolitmus.checker.search.lattice_search import Placing
from isolitmus.checker.search.separation import ABSTRACT, same_format
from isolitmus.checker.universes import abstract
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.number import many
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.catalogue import spec as named
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["compare"]


def compare(
    specs: Sequence[SpecLike],
    universe: Scope | NameOrPath | None = None,
    *,
    focus: Sequence[str] = (),
    transactions: int | None = None,
    budget: Budget | None = None,
    processes: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Lattices:
    """Which of the specs imply which others, and the smallest histories that tell neighbours apart.

    ``specs``: specs, their names or the paths of their files; so is a scope. ``universe``: a scope over tables, or ``"abstract"`` (default: in both, whatever can be asked there).
    ``focus``: names of the specs that are to be placed among the others, which the answer's words are about
    (default: all). ``transactions``: how many a history has at most (default: what the universe says). ``budget``: once it is spent the rest is
    unknown. ``processes``: how many search beside each other. ``progress`` is told what is asked. IsolitmusError if fewer than two are given, two have one name, or no
    two can be asked of one universe.

    >>> found = compare(["serializable", "snapshot-isolation", "prefix-consistency"], "abstract")
    >>> [edge.forward.evidence for edge in found.lattices[0].edges]
    ['proved', 'proved']
    >>> [str(t) for t in found.lattices[0].edges[1].back.test.history.transactions]
    ['r(x0) w(x1)', 'r(x0) w(x2)']
    """
    asked = [named(one) for one in specs]
    _refuse(asked)
    if universe is not None and universe != ABSTRACT:
        universe = named_scope(universe)
    form = format_named(same_format(*asked))
    inside: dict[str, Callable[[Spec], frozenset[str]]] = {}
    if universe in (None, ABSTRACT) and not any(one.format for one in asked):
        inside[ABSTRACT] = abstract.names_for
    scopes: dict[str, Scope] = {}
    if universe != ABSTRACT:
        over = (
            named_scope(universe)
            if universe
            else (named_scope(form.universe) if form.universe else None)
        )
        if over is not None:
            scopes[over.name] = over
            inside[over.name] = lambda _: frozenset(form.terms)
    fitting = {
        where: [one for one in asked if one.needs <= known(one)] for where, known in inside.items()
    }
    placed = {one.name for some in fitting.values() if len(some) > 1 for one in some}
    apart = {one.name: _lacking(one, inside) for one in asked if one.name not in placed}
    if not placed:
        said = "; ".join(f"{name} {why}" for name, why in apart.items())
        raise IsolitmusError(f"no two of these can be asked in one universe: {said}")
    budget = budget or Budget()
    lattices = []
    with process_pool(processes, _ready) if processes > 1 else nullcontext() as pool:
        for where, some in fitting.items():
            if len(some) > 1:
                searched = scopes.get(where, ABSTRACT)
                placing = Placing(some, searched, transactions, budget, progress, pool, processes)
                chosen = tuple(name for name in focus if name in {one.name for one in some})
                lattices.append(placing.lattice(chosen))
        if pool is not None and budget.spent() is not None:
            pool.shutdown(
                wait=False, cancel_futures=True
            )  # nobody waits for what is being searched
    return Lattices(tuple(lattices), apart)


def _ready() -> None:
    """What a process begins with."""


def _refuse(specs: Sequence[Spec]) -> None:
    if len(specs) < 2:
        raise IsolitmusError(f"{many(len(specs), 'level')} to compare; two at least are wanted")
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise IsolitmusError(f"two of the levels are called {spec.name}; rename a file")
        if spec.silences:
            raise IsolitmusError(
                f"{spec.name} is silent on some histories, so of them nobody can say who implies whom; ask"
                f" isolitmus separate {spec.name} OTHER"
            )


def _lacking(spec: Spec, inside: Mapping[str, Callable[[Spec], frozenset[str]]]) -> str:
    lacks = [
        f"universe '{where}' does not have {', '.join(sorted(lacking))}"
        if (lacking := spec.needs - known(spec))
        else f"in universe '{where}' it is alone"
        for where, known in inside.items()
    ]
    return "; ".join(lacks)
