"""Search of schedules of a scope: each is executed under one spec and judged by another."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import observed_run
from isolitmus.checker.execution.serial_orders import explain_serially
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.universes.catalogue_histories import shipped_run
from isolitmus.checker.universes.exercised_names import ExerciseRecord
from isolitmus.checker.universes.recheck import recheck_candidate
from isolitmus.checker.universes.schedules import ScheduledCandidate, casts, judged_orders
from isolitmus.checker.universes.tables import of_format
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.scope import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.checker.universes.catalogue_histories import ShippedTest
    from isolitmus.model.budget import Budget
    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

ASSUMPTIONS = (
    "a reader can pause at each index entry, a writer between its statements",
    "no index page splits, and no scan follows the order of pages",
    "only the tables, statements and readers of the search space",
)


class ScheduleSearch:
    """Search for a schedule whose run ``a`` admits and ``b`` forbids.

    All transactions must commit. ``a`` is a protocol, under which the schedule is executed, or a
    level: then no reads are locked.
    """

    largest = LARGEST
    assumptions = ASSUMPTIONS
    by: Literal["symbolic", "exhaustive"] = "exhaustive"
    budget: Budget
    tell: Callable[[int], None] | None = None
    refuted: list[Refutation] | None = None

    def __init__(
        self, a: Spec, b: Spec, scope: Scope, by: str | None, *, unexplained: bool
    ) -> None:
        self.form = of_format(scope, a, b)
        for spec in (a, b):
            lacking = sorted(spec.needs - self.form.terms.keys())
            if lacking:
                raise IsolitmusError(
                    f"{spec.name} needs {', '.join(lacking)}, which searches of tables do not have"
                )
        if by == "symbolic":
            raise IsolitmusError("a solver cannot search schedules; try --by exhaustive")
        if b.clauses:
            raise IsolitmusError(
                f"{b.name} says what an engine does, not which runs it forbids; compare {a.name}"
                " with a level"
            )
        self.a, self.b, self.scope, self.unexplained = a, b, scope, unexplained
        self.name, self.sizes = scope.name, scope.transactions
        self.confined = scope.name != self.form.universe
        self.among = ", readers among them," if scope.readers else ""
        self.admits, self.permits = compile_spec(a), compile_spec(b)
        self.record = ExerciseRecord(a, b)

    @property
    def where(self) -> str:
        """Description of the search space."""
        some = (
            f"{len(things)} {kind}{'' if len(things) == 1 else 's'}"
            for things, kind in (
                (self.scope.statements, "statement"),
                (self.scope.readers, "reader"),
                (self.scope.inits, "initial table"),
            )
        )
        return f"search space '{self.scope.name}' ({', '.join(some)}; every order of steps)"

    def shipped(self) -> ShippedTest | None:
        """Return the test of the catalogue that separates the specs, if there is one."""
        return shipped_run(self.a, self.b, unexplained=self.unexplained, format=self.form.name)

    def silent(self, _sizes: Sequence[int]) -> tuple[str, Literal[0]]:
        """Return that no schedule is left out for a silence."""
        return "", 0

    def complete_record(self, _sizes: Sequence[int]) -> None:
        """Do nothing: every schedule was looked at."""

    def find(self, n: int) -> tuple[Callable[[Any], Any] | None, int]:
        """Return a function that completes an answer by the first result, and the number examined.

        The function is None if no schedule with n transactions is a result.
        """
        examined = 0
        under = self.a if self.a.clauses else None
        try:
            for cast in casts(self.scope, n):
                found = judged_orders(cast, [under], self.accepts, self.budget.check)
                if True in found:
                    first = found[True].path
                    examined += cast.place(first)
                    return partial(self.confirm, ScheduledCandidate(cast, first)), examined
                examined += cast.size
                if self.tell is not None:
                    self.tell(examined)
        except Limit as limit:
            limit.examined = examined
            raise
        return None, examined

    def accepts(self, litmus: Litmus, executions: Sequence[Execution]) -> bool:
        """Return whether ``a`` admits the run and ``b`` forbids it."""
        (execution,) = executions
        aborts = any(event.aborted for event in execution.events)
        if aborts and not self.record.open:
            return False
        seen = self.form.frame(execution.events, reasons=False)
        self.record.look(seen)
        if aborts:
            return False
        if not self.admits(seen) or self.permits(seen):
            return False
        if not self.unexplained:
            return True
        return bool(
            explain_serially(litmus, observed_run(litmus, execution, self.a.name)).unexplained
        )

    def confirm(self, found: ScheduledCandidate, answer: Any) -> Any:
        """Return the answer with the result, judged again from its file."""
        litmus, forbidden, execution, serial = recheck_candidate(
            found, self.a, self.b, unexplained=self.unexplained
        )
        return replace(
            answer, litmus=litmus, forbidden=forbidden, execution=execution, serial=serial
        )
