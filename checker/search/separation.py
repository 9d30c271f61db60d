"""Separation of two specs: the smallest history that one admits and the other forbids.

There are two search spaces, abstract histories and runs over tables. Each is searched in two ways:
by a solver, and by enumeration, which checks the solver. A counterexample is written as a litmus
file and judged again from its text (``checker.universes.recheck``); only then is it an answer. If
none is found, the answer is "none" up to a stated bound, never more.

After an answer "none", the parts of both specs that no candidate made non-empty are collected: of
these, the answer says nothing. Without a search space, the shipped scopes are searched that have
the names of both specs (`checker.universes.scope_vocabulary`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.checker.search.separation_result import By, Separation, together
from isolitmus.checker.search.space_searches import (
    ABSTRACT,
    HistorySearch,
    SpaceSearch,
    TableSearch,
)
from isolitmus.checker.solver.refutation import Certificate
from isolitmus.checker.universes import abstract
from isolitmus.checker.universes.exercised_names import Unexercised, always_empty
from isolitmus.checker.universes.scope_vocabulary import other_scopes, scopes_with_names
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import is_designed, spec
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

TABLE = "table"


def separate(
    a: SpecLike,
    b: SpecLike,
    universe: Scope | NameOrPath | None = None,
    *,
    by: By | None = None,
    transactions: Sequence[int] | None = None,
    unexplained: bool = False,
    sessions: bool = True,
    aborts: bool = True,
    observed: bool = False,
    shipped: bool = True,
    certify: bool = False,
    exercise: bool = True,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Separation:
    """Return the smallest history in a search space that ``a`` admits and ``b`` forbids.

    Parameters
    ----------
    a, b : Spec, str or path
        Specs, their names or their files.
    universe : Scope, str or path, optional
        Search space: a scope over tables, or ``"abstract"``. By default abstract if it has all
        names that both specs need, else the scope of the format, and then the fewest shipped scopes
        that exercise those names of the specs that it does not.
    by : {"symbolic", "exhaustive"}, optional
        Solver or enumeration. By default a solver where it can be exact.
    transactions : sequence of int, optional
        Numbers of transactions to try. By default those of the search space.
    unexplained : bool
        Only a history with a version whose tables no serial order of the writers so far produces.
    sessions, aborts : bool
        Whether to search histories with sessions of several transactions, and with aborted
        transactions.
    observed : bool
        Whether the version orders of abstract histories are observed. Otherwise they are open,
        unless a spec needs them.
    shipped : bool
        Whether to judge the catalogue's histories if the search finds none. One of them is
        ``beside`` the answer, which stays "none".
    certify : bool
        Whether to keep the solver's refutations as ``certificate`` of an answer "none".
    exercise : bool
        Whether an answer "none" has the parts of both specs that no candidate exercised.
    budget : Budget, optional
        Limit of time and memory, by default three quarters of the free memory. Once it is spent,
        the answer is unknown, with the bound reached.
    progress : callable, optional
        Receives the size and the number of candidates so far.

    Returns
    -------
    Separation
        The history as a litmus test, or "none" with the bound that was reached.

    Raises
    ------
    IsolitmusError
        If a spec needs names that the search space does not have, or an option does not apply to
        it.

    Examples
    --------
    >>> answer = separate("delta-write-serializable", "log-serializable")
    >>> answer.transactions, str(answer.litmus.schedule)
    (2, 'delete.start insert delete.commit')
    >>> answer = separate("prefix-consistency", "snapshot-isolation")
    >>> [str(transaction) for transaction in answer.litmus.history.transactions]
    ['r(x0) w(x1)', 'r(x0) w(x2)']
    >>> answer = separate("causal", "read-committed")
    >>> answer.found, answer.ships
    (False, 'history-write-cycle')
    """
    a, b = spec(a), spec(b)
    if universe is not None and universe != ABSTRACT:
        universe = named_scope(universe)
    form = same_format(a, b)
    if universe is None:
        universe = default_universe(a, b, unexplained=unexplained)
        if universe != ABSTRACT and by is None and not certify:
            return search_shipped_scopes(
                universe, a, b, transactions=transactions, unexplained=unexplained,
                sessions=sessions, shipped=shipped, exercise=exercise, budget=budget or Budget(),
                progress=progress,
            )  # fmt: skip
    search: SpaceSearch
    if universe == ABSTRACT:
        vary = abstract.variation_for(a, b, sessions=sessions, aborts=aborts, observed=observed)
        search = HistorySearch(
            a, b, by, vary, unexplained=unexplained, sessions=sessions, aborts=aborts
        )
    else:
        search = _search_tables(
            form, a, b, named_scope(universe), by, unexplained=unexplained, sessions=sessions
        )
    if certify and search.by != "symbolic":
        raise IsolitmusError(
            f"--certificate needs a solver, and {search.where} is enumerated; leave out"
            " --certificate or --by"
        )
    sizes, examined = _checked_sizes(search, transactions), 0
    start = monotonic()
    search.budget = budget or Budget()
    search.refuted = [] if certify else None
    if not exercise:
        search.record.exercise(search.record.open)

    limits = (f"{s.name} admits at most what it says: {s.at_most}" for s in (a, b) if s.at_most)
    assumed = (*search.assumptions, *limits)

    def answer(found: bool | None, bound: str) -> Separation:
        return Separation(
            a.name, b.name, search.name, found, bound, examined, monotonic() - start, search.by,
            assumed, unexplained,
        )  # fmt: skip

    for n in sizes:
        if progress is not None:
            progress(n, examined)
            search.tell = _teller(progress, n, examined)
        try:
            found, seen = search.find(n)
        except (Limit, MemoryError) as limit:
            examined += getattr(limit, "examined", 0)
            why = str(limit) or "memory limit"
            done = answer(None, f"{why}, at {count_of(n, 'transaction')} in {search.where}")
            return replace(done, ended=why)
        examined += seen
        if found is not None:
            done = replace(
                answer(True, _smaller(sizes, n, search.where)), transactions=n,
                unexercised=Unexercised(always_empty=always_empty(a, b)),
            )  # fmt: skip
            return replace(found(done), seconds=monotonic() - start)
    bound = f"up to {count_of(max(sizes), 'transaction')}{search.among} in {search.where}"
    try:
        silent, counted = search.silent(sizes)
    except (Limit, MemoryError):
        silent, counted = ", silent candidates not counted", None
    none = replace(answer(False, bound + silent), silent=counted)
    if exercise:
        none = replace(none, unexercised=_unexercised(search, sizes))
    none = _certified(none, a, b, search.refuted)
    ours = search.shipped() if shipped else None
    if ours is None:
        return none
    larger = transactions is not None and ours.transactions > max(transactions)
    return replace(none, beside=ours, is_beside_larger=search.confined or larger)


def default_universe(a: SpecLike, b: SpecLike, *, unexplained: bool) -> Scope | Literal["abstract"]:
    """Return the search space of two specs; abstract histories if they have all names."""
    form, both = same_format(a, b), (spec(a), spec(b))
    if not unexplained and all(one.needs <= abstract.available_names(one) for one in both):
        return ABSTRACT
    return scope_that_ships(form)


def _search_tables(
    form: str, a: Spec, b: Spec, scope: Scope, by: By | None, *, unexplained: bool, sessions: bool
) -> SpaceSearch:
    """Return the search of a scope for the execution model of its format."""
    if format_named(form).carry_out is None:
        return TableSearch(a, b, scope, by, unexplained=unexplained, sessions=sessions)
    from isolitmus.checker.universes.schedule_search import ScheduleSearch

    return ScheduleSearch(a, b, scope, by, unexplained=unexplained)


def _checked_sizes(search: SpaceSearch, transactions: Sequence[int] | None) -> list[int]:
    """Return the numbers of transactions to try, ascending; refuse those out of range."""
    wanted = transactions or search.sizes
    few = wanted[: search.largest + 1]  # `wanted` may be a long range
    if not 1 <= min(few) <= max(few) <= search.largest:
        raise IsolitmusError(
            f"{count_of(wanted[-1], 'transaction')} are too many; 1 to {search.largest} can be"
            f" searched in {search.where}"
        )
    return sorted(few)


def _unexercised(search: SpaceSearch, sizes: Sequence[int]) -> Unexercised:
    """Return the parts of the specs that no candidate of these sizes makes non-empty."""
    try:
        search.complete_record(sizes)
    except (Limit, MemoryError):
        return search.record.result(unknown=True)
    return search.record.result()


def search_shipped_scopes(
    first: Scope,
    a: SpecLike,
    b: SpecLike,
    *,
    transactions: Sequence[int] | None = None,
    **search: Any,
) -> Separation:
    """Return the smallest counterexample of the scopes that suit two specs, or "none".

    These are the first scope and the fewest others that ship and have the names of the specs, in
    this order, up to the first that has a counterexample. If one of the specs is a rule that is
    being designed, they are all small scopes, since rules may differ on tables of a certain kind
    only; the counterexample is then the smallest of all of them.

    Parameters
    ----------
    first : Scope
        Scope that ships.
    a, b : Spec, str or path
        Specs, their names or their files.
    transactions : sequence of int, optional
        Numbers of transactions to try, as in `separate`.
    **search
        Further options of `separate`. The catalogue's histories are judged once.
    """
    a, b = spec(a), spec(b)
    scopes: Iterable[Scope] = scopes_with_names(first, a.needs | b.needs)
    large: list[Scope] = []
    bounds: list[int] = []
    if is_designed(a) or is_designed(b):
        fitting = [*scopes]
        small, large = other_scopes(first.format, {scope.name for scope in fitting})
        scopes = [*fitting, *small]
        bounds = sorted({n for scope in scopes for n in transactions or scope.transactions})
    answers: dict[str, Separation] = {}
    quick = {**search, "shipped": False, "exercise": False}
    for bound in bounds[:-1]:
        for scope in scopes:
            sizes = [n for n in transactions or scope.transactions if n <= bound]
            if not sizes:
                continue
            answer = separate(a, b, scope, transactions=sizes, **quick)
            if answer.found is not False:
                return _after(answers, scope, answer)
            answers[scope.name] = answer
    for scope in scopes:
        answer = separate(a, b, scope, transactions=transactions, **search)
        if answer.found is not False:
            return _after(answers, scope, answer)
        answers[scope.name] = answer
        search["shipped"] = False
    whole = together([*answers.values()])
    return replace(whole, unsearched=tuple(scope.name for scope in large))


def _after(answers: Mapping[str, Separation], scope: Scope, last: Separation) -> Separation:
    """Return the answer of a scope together with the latest ones of the other scopes."""
    return together([*(one for name, one in answers.items() if name != scope.name), last])


def _certified(
    none: Separation, a: Spec, b: Spec, refuted: Sequence[Refutation] | None
) -> Separation:
    """Return an answer "none" with its certificate, if the refutations were kept."""
    if refuted is None:
        return none
    trusted = (
        (
            "the clauses have a model for every history, up to names, that the one admits and the"
            " other forbids"
        ),
        (
            "these clauses are made of the texts below by checker/solver/circuit_semantics.py, and"
            " an enumeration finds the same"
        ),
        "the candidates that the clauses exclude by name were executed, and are no counterexamples",
        *none.assumptions,
    )
    claim = f"{a.name} admits nothing that {b.name} forbids: {none.bound}"
    name = f"{a.name}-within-{b.name}"
    return replace(none, certificate=Certificate(name, claim, tuple(refuted), trusted, (a, b)))


def same_format(*specs: SpecLike) -> str:
    """Return the table format of the specs; that of search space TABLE if they are levels.

    Raises
    ------
    IsolitmusError
        If they have different formats.
    """
    named = {
        format_named(one.format).searched_as or one.format: one.name
        for one in map(spec, specs)
        if one.format is not None
    }
    if len(named) > 1:
        parts = " and ".join(f"{name} of format {form}" for form, name in named.items())
        raise IsolitmusError(
            f"{parts}: no history is of both, since a commit does not do the same in both; compare"
            " protocols of one format, or one with a level"
        )
    return next(iter(named), None) or _usual_format()


def format_of(one: Spec) -> str:
    """Return the format of a protocol; for a level, that of search space TABLE."""
    return one.format or _usual_format()


@cache
def _usual_format() -> str:
    return named_scope(TABLE).format


def _teller(progress: Callable[[int, int], None], n: int, so_far: int) -> Callable[[int], None]:
    return lambda seen: progress(n, so_far + seen)


def _smaller(sizes: Sequence[int], n: int, where: str) -> str:
    """Return the bound of a search that ended at n transactions, in words."""
    smaller = [k for k in sizes if k < n]
    if not smaller:
        return f"searched from {count_of(n, 'transaction')} in {where}"
    several = f"{smaller[0]} to {smaller[-1]} transactions"
    few = several if len(smaller) > 1 else count_of(smaller[0], "transaction")
    return f"no counterexample with {few} in {where}"


def scope_that_ships(form: str) -> Scope:
    """Return the default scope over tables of a format."""
    ships = format_named(form).universe
    if not ships:
        raise IsolitmusError(
            f"format {form} has no universe that ships; name a scope, --universe FILE"
        )
    return named_scope(ships)
