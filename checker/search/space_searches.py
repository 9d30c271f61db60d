"""Searches of one search space: tables by a scope, or abstract histories; by solver or enumeration.

Each finds candidates that one spec admits and another forbids, and confirms them from their text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from isolitmus.checker.execution.commit_loop import recording_spec
from isolitmus.checker.prove.structural_implication import derive_from_texts
from isolitmus.checker.search.separation_result import By, Separation, table_assumptions
from isolitmus.checker.universes import abstract
from isolitmus.checker.universes.catalogue_histories import shipped_history, shipped_run
from isolitmus.checker.universes.exercised_names import ExerciseRecord
from isolitmus.checker.universes.recheck import recheck_candidate, recheck_history
from isolitmus.checker.universes.scope_vocabulary import PAIR, watch_proposals, watch_scope
from isolitmus.checker.universes.tables import Witnesses, of_format
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.scope import LARGEST
from isolitmus.model.spec_algebra import names_in, with_silences_as_axioms, without_silences
from isolitmus.specs.disk.input_files import HOME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.checker.universes.catalogue_histories import ShippedTest
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.budget import Budget
    from isolitmus.model.history import History
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Axiom, Label, Spec, Unsaid

ABSTRACT: Literal["abstract"] = "abstract"
"""Search space of abstract histories."""
ABSTRACT_LARGEST = 12
ALL_RECORDED = "a transaction that finds nothing to do is recorded, as an empty commit"
ABSTRACT_SIZES = range(1, 5)
ABSTRACT_SIZES_ENUMERATED = range(1, 4)
Confirm = Callable[["Separation"], "Separation"]
"""Function that adds the counterexample, judged again, to an answer."""


def scope_words(scope: Scope) -> str:
    """Return the description of a scope over tables with its numbers of statements and tables."""
    parts = (
        count_of(len(scope.statements), "statement"),
        count_of(len(scope.readers), "reader"),
        count_of(len(scope.inits), "initial table"),
    )
    return f"search space '{scope.name}' ({', '.join(parts)})"


class SpaceSearch(Protocol):
    """Search of one search space with one method."""

    by: By
    budget: Budget
    tell: Callable[[int], None] | None
    refuted: list[Refutation] | None
    record: ExerciseRecord

    @property
    def name(self) -> str: ...
    @property
    def sizes(self) -> Sequence[int]: ...
    @property
    def largest(self) -> int: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    @property
    def where(self) -> str: ...
    @property
    def among(self) -> str: ...
    @property
    def confined(self) -> bool: ...
    def shipped(self) -> ShippedTest | None: ...
    def silent(self, sizes: Sequence[int]) -> tuple[str, int | None]: ...
    def complete_record(self, sizes: Sequence[int]) -> None: ...
    def find(self, n: int) -> tuple[Confirm | None, int]: ...


class TableSearch:
    """Search of a scope over tables."""

    largest = LARGEST
    budget: Budget
    tell: Callable[[int], None] | None = None
    refuted: list[Refutation] | None = None

    def __init__(
        self,
        a: Spec,
        b: Spec,
        scope: Scope,
        by: By | None,
        *,
        unexplained: bool,
        sessions: bool,
    ) -> None:
        form = of_format(scope, a, b)
        _require(a, form.terms.keys(), "searches of tables do")
        _require(b, form.terms.keys(), "searches of tables do")
        self.assumptions = table_assumptions(a, form)
        kept = scope.noops == "keep"
        self.recorder = recording_spec(a, b) if kept else None
        if kept and self.recorder is None and a.format is None and b.format is None:
            self.assumptions = (*self.assumptions, ALL_RECORDED)
        self.solver = None if form.solver is None else form.solver()
        if self.solver is None:
            why: str | None = f"format {form.name} has no solver"
        elif self.recorder is not None:
            why = f"{self.recorder.name} does not record every commit that finds nothing to do"
        else:
            why = self.solver.unsupported_scope(scope, a, b)
        if by == "symbolic" and why is not None:
            raise IsolitmusError(f"a solver cannot search this exactly: {why}; try --by exhaustive")
        self.a, self.b, self.scope, self.unexplained = a, b, scope, unexplained
        self.by: By = by or ("symbolic" if why is None else "exhaustive")
        self.name, self.sizes = scope.name, scope.transactions
        self.confined = scope.name != form.universe
        self.shipped = partial(
            shipped_run, a, b, unexplained=unexplained, sessions=sessions, format=form.name
        )
        self.among = ", readers among them," if scope.readers else ""
        self.witnesses = Witnesses(a, b, form.frame, unexplained=unexplained)
        self.record = ExerciseRecord(a, b)

    @property
    def where(self) -> str:
        return scope_words(self.scope)

    def find(self, n: int) -> tuple[Confirm | None, int]:
        """Return a candidate of n transactions to confirm, or None, and the number examined."""
        if self.by == "symbolic" and self.solver is not None:
            found, examined = self.solver.search(
                self.a, self.b, self.scope, n, self.witnesses.accept,
                budget=self.budget, refuted=self.refuted,
            )  # fmt: skip
        else:
            from isolitmus.checker.universes import tables as table_exhaustive

            found, examined = table_exhaustive.search(
                self.a, self.scope, n, self.witnesses.accept,
                record=self.record, recorder=self.recorder, budget=self.budget, progress=self.tell,
            )  # fmt: skip
        return None if found is None else partial(self.confirm, found), examined

    def silent(self, sizes: Sequence[int]) -> tuple[str, int | None]:
        solver = self.solver if self.by == "symbolic" else None
        words = self.witnesses.words(solver, self.scope, sizes, self.budget)
        return words, self.witnesses.silent

    def complete_record(self, sizes: Sequence[int]) -> None:
        """Look for candidates that exercise what is open; the enumeration has seen them all."""
        if self.by == "exhaustive" or self.solver is None:
            return
        watch_scope(self.record, self.scope, min(PAIR, max(sizes)), self.budget.check)
        larger = [n for n in sizes if n > PAIR]
        watch_proposals(self.record, self.solver, self.scope, larger, self.budget)

    def confirm(self, found: Candidate, answer: Separation) -> Separation:
        """Return the answer with the candidate's litmus test, after its recheck."""
        litmus, forbidden, execution, serial = recheck_candidate(
            found, self.a, self.b, unexplained=self.unexplained
        )
        return replace(
            answer, litmus=litmus, forbidden=forbidden, execution=execution, serial=serial
        )


def _shipped(a: Spec, b: Spec, *, sessions: bool, aborts: bool) -> ShippedTest | None:
    """Return the smallest history of the catalogue that separates the specs.

    The result is None, without a check of the histories, if the texts imply that there is none.
    """
    if derive_from_texts(a, b) is not None:
        return None
    return shipped_history(a, b, sessions=sessions, aborts=aborts)


class HistorySearch:
    """Search of the abstract histories."""

    name = ABSTRACT
    among = ""
    confined = False
    largest = ABSTRACT_LARGEST
    budget: Budget
    tell: Callable[[int], None] | None = None
    refuted: list[Refutation] | None = None

    def __init__(
        self,
        a: Spec,
        b: Spec,
        by: By | None,
        vary: abstract.Variation,
        *,
        unexplained: bool,
        sessions: bool,
        aborts: bool,
    ) -> None:
        if unexplained:
            raise IsolitmusError(
                "--unexplained asks for statements, which search space 'abstract' does not have;"
                " try --universe table"
            )
        _require(a, abstract.available_names(a), "abstract histories do")
        _require(b, abstract.available_names(b), "abstract histories do")
        self.reticent = bool(a.silences or b.silences)
        self.a, self.b = with_silences_as_axioms(a), without_silences(b)
        self.specs, self.record = (a, b), ExerciseRecord(a, b)
        self.vary = vary
        known = ", version orders observed" if vary.observed else ""
        self.where = f"search space 'abstract' (at most {len(abstract.KEYS)} keys{known})"
        self.options = "" if sessions else " --no-sessions"
        self.options += "" if aborts else " --no-aborts"
        needed = abstract.observes_versions(a, b)
        self.options += " --observed" if vary.observed and not needed else ""
        self.shipped = partial(_shipped, a, b, sessions=sessions, aborts=aborts)
        self.by: By = by or "symbolic"
        if vary.moments and self.by == "exhaustive":
            raise IsolitmusError(
                f"{a.name if 'time' in a.needs else b.name} looks at time, and the orders of"
                " operations in time are too many to be listed; leave out --by exhaustive"
            )
        self.sizes = ABSTRACT_SIZES if self.by == "symbolic" else ABSTRACT_SIZES_ENUMERATED
        self.assumptions = abstract.assumptions(a, b, sessions=sessions, aborts=aborts)

    def find(self, n: int) -> tuple[Confirm | None, int]:
        """Return a history of n transactions to confirm, or None, and the number examined."""
        if self.by == "symbolic":
            from isolitmus.checker.universes import abstract_solver as abstract_symbolic

            found, examined = abstract_symbolic.search(
                self.a, self.b, n, self.vary, budget=self.budget, refuted=self.refuted
            )
        else:
            from isolitmus.checker.universes import abstract_enumeration as abstract_exhaustive

            found, examined = abstract_exhaustive.search(
                self.a, self.b, n, self.vary, budget=self.budget, progress=self.tell
            )
        return None if found is None else partial(self.confirm, found), examined

    def silent(self, _sizes: Sequence[int]) -> tuple[str, int | None]:
        return (", silent ones left out", None) if self.reticent else ("", 0)

    def complete_record(self, sizes: Sequence[int]) -> None:
        """Ask a solver for histories that exercise each part of the specs."""
        from isolitmus.checker.universes.abstract_solver import watch_histories

        watch_histories(self.record, self.specs, sizes, self.vary, self.budget)

    def confirm(self, found: History, answer: Separation) -> Separation:
        litmus, forbidden = recheck_history(found, self.a, self.b, self.options)
        return replace(answer, litmus=litmus, forbidden=forbidden)


def _require(asked: Spec, names: AbstractSet[str], who: str) -> None:
    """Raise IsolitmusError, with the first place, if a spec needs a name that is not among some."""
    lacking = sorted(asked.needs - names)
    if lacking:
        statements: tuple[Axiom | Unsaid | Label, ...]
        statements = (*asked.axioms, *asked.silences, *asked.labels)
        using = (s for s in statements if lacking[0] in names_in([s.expr], asked.definitions))
        places = (asked.places.get(one, "") for one in using)
        first = next((place for place in places if not place.startswith(str(HOME))), "")
        place = f"{first}: " if first else ""
        raise IsolitmusError(
            f"{place}{asked.name} needs {', '.join(lacking)}, which {who} not have"
        )
