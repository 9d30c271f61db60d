"""Result of ``separate``, and the assumptions of searches over tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.commit_loop import execution_frame, observed_run
from isolitmus.checker.execution.serial_orders import strongest_explanations
from isolitmus.checker.universes.exercised_names import NONE_OPEN, Unexercised
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult, TextResult, count_of
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.spec_catalogue import spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.checker.execution.serial_orders import Explanation, SerialOrders
    from isolitmus.checker.prove.proof import OutsideTest, Proof
    from isolitmus.checker.solver.refutation import Certificate
    from isolitmus.checker.universes.catalogue_histories import ShippedTest
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.execution import Execution
    from isolitmus.model.format import Format
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.run import Run
    from isolitmus.model.verdict import Forbidden, Violation
    from isolitmus.specs.files.spec_catalogue import SpecLike

By = Literal["symbolic", "exhaustive"]
SPACE = " in search space "
"""Words before the name of a search space in a bound."""
FEW = 5
"""Maximum number of search spaces of which a bound says the numbers of statements."""

TABLE_ASSUMPTIONS = (
    "statements are deterministic, and each transaction is one statement in its own session",
    "each version of the log is written once (put if absent), and file statistics are correct",
    "only the tables, statements and readers of the search space",
)


def table_assumptions(admitting: SpecLike, form: Format) -> tuple[str, ...]:
    """Return the assumptions of a search of tables for histories that a spec admits."""
    return tuple(filter(None, (*TABLE_ASSUMPTIONS, form.supposed(spec(admitting)))))


@dataclass(frozen=True, slots=True, repr=False)
class Separation(TextResult, PageResult, GraphResult):
    """Result of ``separate``: a counterexample, none up to the bound, or unknown.

    After a failed attempt at a proof, a search that found nothing is unknown, even if it was
    ``searched`` up to its bound.
    """

    a: str
    """Spec that has to admit the history."""
    b: str
    """Spec that has to forbid the history."""
    universe: str
    """Search space: ``abstract``, or the name of a scope."""
    found: bool | None
    """True if there is a counterexample; None if unknown."""
    bound: str
    """Bound of the search as text."""
    examined: int
    """Number of candidates enumerated, or of solver proposals, as ``by`` says."""
    seconds: float
    """Run time in seconds."""
    by: By = "exhaustive"
    """Method of the search."""
    assumptions: tuple[str, ...] = TABLE_ASSUMPTIONS
    """Assumptions of the answer."""
    unexplained: bool = False
    """True if only histories were searched whose tables no serial order produces."""
    transactions: int | None = None
    """Number of transactions of the counterexample."""
    litmus: Litmus | HistoryTest | None = None
    """Counterexample."""
    forbidden: Forbidden | None = None
    """Verdict of ``b`` on the counterexample."""
    execution: Execution | None = None
    """Execution of a counterexample over tables under ``a``."""
    serial: SerialOrders | None = None
    """Serial orders that produce the tables of a counterexample over tables."""
    proof: Proof | None = None
    """Attempt at a proof, if one was made."""
    searched: bool = False
    """True if the search covered everything up to the bound."""
    ended: str | None = None
    """Limit that ended the search; None if none did."""
    silent: int | None = None
    """Number of candidates neither found nor refuted because ``a`` or ``b`` is silent on them.

    Only where nothing was found; a solver counts up to a hundred. None if not counted.
    """
    outside: tuple[OutsideTest, ...] = ()
    """Litmus tests outside of the proof's scope."""
    beside: ShippedTest | None = None
    """Test of the catalogue, outside of the searched bound, that ``a`` admits and ``b`` forbids.

    None if the catalogue has none or was not searched.
    """
    is_beside_larger: bool = False
    """True if that test exceeds the requested size, or has other tables than the scope."""
    certificate: Certificate | None = None
    """Refutations of the solver, if they were kept and nothing was found."""
    unexercised: Unexercised = NONE_OPEN
    """Parts of the specs that no candidate made non-empty, if nothing was found."""
    unsearched: tuple[str, ...] = ()
    """Shipped scopes that are too large to be searched unless they are named."""

    @property
    def explained(self) -> Explanation | None:
        """Serial explanation of a counterexample over tables, if ``b`` judges conflicts."""
        if not isinstance(self.litmus, Litmus) or self.execution is None:
            return None
        return strongest_explanations(self.litmus, self.execution, [self.b], self.serial).get(
            self.b
        )

    @property
    def file(self) -> Litmus | HistoryTest | None:
        """Counterexample as a litmus file, with the model's predictions."""
        from isolitmus.checker.universes.recheck import with_expectations

        return None if self.litmus is None else with_expectations(self.litmus, self.a, self.b)

    @property
    def proved(self) -> bool:
        """True if it is proved that there is no counterexample."""
        return self.proof is not None and self.proof.holds

    @property
    def violation(self) -> Violation | None:
        """First violation by which ``b`` forbids the counterexample."""
        return None if self.forbidden is None else self.forbidden.violations[0]

    @property
    def none(self) -> bool:
        """True if there is no counterexample up to the bound, or at all."""
        return self.found is False or self.searched

    @property
    def ships(self) -> str | None:
        """Name of the catalogue's test in `beside`; None if there is none."""
        return None if self.beside is None else self.beside.test.name

    @property
    def exhausted(self) -> bool:
        """True if the search found nothing up to its bound.

        The catalogue's test may count as found even so.
        """
        return self.none or self.beside is not None

    def with_catalogue(self) -> Separation:
        """Return the answer with the catalogue's test as counterexample, if not too large."""
        if self.beside is None or self.is_beside_larger:
            return self
        return replace(
            self,
            found=True,
            bound=f"{self.ships} of the catalogue; no counterexample with {self.bound}",
            transactions=self.beside.transactions,
            litmus=self.beside.test,
            forbidden=self.beside.forbidden,
            execution=self.beside.execution,
            serial=self.beside.serial,
            certificate=None,
        )

    @property
    def effort(self) -> str:
        """Number of candidates or proposals checked, as text."""
        ended = self.found is None and not self.searched
        if self.by == "exhaustive":
            checked = f"{count_of(self.examined, 'candidate')} checked"
            return f"{checked} before the limit" if ended else checked
        if not self.examined:
            return "refuted by the solver" if self.exhausted else "no solver proposal yet"
        proposals = count_of(self.examined, "solver proposal", "solver proposals")
        if ended:
            return f"{proposals} before the limit, all refuted"
        return f"{proposals}, all refuted" if self.exhausted else proposals

    @property
    def run(self) -> Run | None:
        """Run of the counterexample under ``a``; None unless it is a test over tables."""
        if not isinstance(self.litmus, Litmus) or self.execution is None:
            return None
        return observed_run(self.litmus, self.execution, self.a)

    @property
    def graph(self) -> DependencyGraph:
        """Dependency graph of the counterexample, with the cycle that ``b`` forbids highlighted.

        The graph is empty if there is no counterexample.
        """
        from isolitmus.checker.execution.dependency_graph import graph, transaction_graph
        from isolitmus.model.dependency_graph import DependencyGraph

        if self.litmus is None or self.violation is None:
            return DependencyGraph({})
        if isinstance(self.litmus, Litmus) and self.execution is not None:
            of = transaction_graph(self.litmus, execution_frame(self.execution))
        else:
            of = graph(self.litmus)
        return of.around(self.violation.cycle)

    def to_json(self) -> dict[str, object]:
        """Return the answer in the form of docs/interface.md, 6."""
        document: dict[str, object] = {
            "a": self.a,
            "b": self.b,
            "universe": self.universe,
            "by": self.by,
            "found": self.found,
            "transactions": self.transactions,
            "litmus": None if (file := self.file) is None else file.text,
            "violation": None if self.violation is None else self.violation.to_json(),
            "explained_by": [] if self.serial is None else list(self.serial.orders),
            "explained": None if (beside := self.explained) is None else beside.to_json(),
            "unexplained_versions": [] if self.serial is None else list(self.serial.unexplained),
            "bound": self.bound,
            "proved": self.proved,
            "assumptions": list(self.assumptions),
            "ended": self.ended,
            "examined": None if self.proved else self.examined,
            "ships": self.ships,
            "silent": self.silent,
            "unsearched": list(self.unsearched),
            **self.unexercised.to_json(),
            "seconds": round(self.seconds, 3),
        }
        if self.proved:
            document["outside"] = [test.to_json() for test in self.outside]
        if self.proof is not None:
            document["lemmas"] = [step.to_json() for step in self.proof.steps]
        return document


def together(answers: Sequence[Separation]) -> Separation:
    """Return one answer for searches of several scopes, all but the last of which found nothing."""
    *before, last = answers
    if not before:
        return last
    silent = [answer.silent for answer in answers if answer.silent is not None]
    bound = _together(answer.bound for answer in answers)
    if last.found:
        bound = (
            f"no counterexample with {_together(answer.bound for answer in before)}; then"
            f" {last.bound}"
        )
    unexercised = before[0].unexercised
    for answer in answers[1:]:
        unexercised = unexercised.within(answer.unexercised)
    return replace(
        last,
        universe=", ".join(answer.universe for answer in answers),
        bound=bound,
        examined=sum(answer.examined for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
        by="exhaustive" if any(one.by == "exhaustive" for one in answers) else "symbolic",
        assumptions=tuple(dict.fromkeys(a for answer in answers for a in answer.assumptions)),
        silent=sum(silent) if len(silent) == len(answers) else None,
        beside=None if last.found else before[0].beside,
        is_beside_larger=before[0].is_beside_larger,
        unexercised=unexercised,
    )


def _together(bounds: Iterable[str]) -> str:
    """Return the bounds of several scopes in words, those of one size together.

    Of many scopes, only the names are said.
    """
    inside: dict[str, list[str]] = {}
    every = tuple(bounds)
    for bound in every:
        size, _, where = bound.partition(SPACE)
        if len(every) > FEW:
            name, _, rest = where.partition(" (")
            where = name + rest.partition(")")[2]
        inside.setdefault(size, []).append(where)
    return "; ".join(
        f"{size} in search space{'s' * (len(where) > 1)} {', '.join(where)}"
        for size, where in inside.items()
    )
