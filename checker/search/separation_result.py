"""The answer to ``separate a b``, and what is assumed of tables where one is looked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.commit_loop import execution_frame, observed_run
from isolitmus.checker.execution.serial_orders import strongest_explanations
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult, TextResult, count_of
from isolitmus.model.litmus import Litmus

if TYPE_CHECKING:
    from isolitmus.checker.execution.serial_orders import Explanation, SerialOrders
    from isolitmus.checker.prove.proof import OutsideTest, Proof
    from isolitmus.checker.solver.refutation import Certificate
    from isolitmus.checker.universes.catalogue_histories import ShippedTest
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.run import Run
    from isolitmus.model.verdict import Forbidden, Violation

__all__ = ["TABLE_ASSUMPTIONS", "By", "Separation"]

By = Literal["symbolic", "exhaustive"]

TABLE_ASSUMPTIONS = (
    "statements are deterministic, and each transaction is one statement in its own session",
    "each version of the log is written once (put if absent), and file statistics are correct",
    "only the tables, statements and readers of the search space",
)


@dataclass(frozen=True, slots=True, repr=False)
class Separation(TextResult, PageResult, GraphResult):
    """The answer to ``separate a b``: found, none up to the bound, or unknown (``found`` None).

    With an attempt at a proof that failed, what the search did not find is unknown, even where it
    was ``searched`` up to its bound.
    """

    a: str
    """The spec that is to admit it."""
    b: str
    """The spec that is to forbid it."""
    universe: str
    """``abstract``, or the name of a scope."""
    found: bool | None
    """None: unknown."""
    bound: str
    """How far the search went, in words."""
    examined: int
    """What was looked at: candidates, if ``by`` enumeration; proposals, if by a solver."""
    seconds: float
    """What it took."""
    by: By = "exhaustive"
    """How it was searched."""
    assumptions: tuple[str, ...] = TABLE_ASSUMPTIONS
    """What the answer rests on."""
    unexplained: bool = False
    """Whether no serial order was to give the table, either."""
    transactions: int | None = None
    """How many what was found has."""
    litmus: Litmus | HistoryTest | None = None
    """What was found."""
    forbidden: Forbidden | None = None
    """What ``b`` says of it."""
    execution: Execution | None = None
    """On tables, how it was carried out under ``a``."""
    serial: SerialOrders | None = None
    """On tables, the serial orders that explain its table."""
    proof: Proof | None = None
    """The attempt at a proof, where one was made."""
    searched: bool = False
    """Whether all up to the bound was looked at."""
    ended: str | None = None
    """The limit that made it unknown."""
    silent: int | None = None
    """How many candidates are neither found nor refuted because ``a`` or ``b`` is silent on them,
    where nothing was found; a solver counts no further than to a hundred. None: not counted."""
    outside: tuple[OutsideTest, ...] = ()
    """The litmus tests that a proof does not speak of."""
    beside: ShippedTest | None = None
    """A test of the catalogue that ``a`` admits and ``b`` forbids, outside of what was searched;
    None: the catalogue has none, or was not asked."""
    is_beside_larger: bool = False
    """Whether that test has more transactions than were asked for, or is on other tables than the
    scope of the caller.
    """
    certificate: Certificate | None = None
    """What a solver refuted, where that was to be kept and nothing was found."""

    @property
    def explained(self) -> Explanation | None:
        """What a serial order explains of what was found on tables, if ``b`` judges conflicts."""
        if not isinstance(self.litmus, Litmus) or self.execution is None:
            return None
        return strongest_explanations(self.litmus, self.execution, [self.b], self.serial).get(
            self.b
        )

    @property
    def file(self) -> Litmus | HistoryTest | None:
        """What was found as a file has it: with what the model predicts of it."""
        from isolitmus.checker.universes.recheck import with_expectations

        return None if self.litmus is None else with_expectations(self.litmus, self.a, self.b)

    @property
    def proved(self) -> bool:
        """Whether it is a proof that there is nothing to be found."""
        return self.proof is not None and self.proof.holds

    @property
    def violation(self) -> Violation | None:
        """The first of the violations by which ``b`` forbids what was found."""
        return None if self.forbidden is None else self.forbidden.violations[0]

    @property
    def none(self) -> bool:
        """Whether nothing is to be found up to the bound, or at all."""
        return self.found is False or self.searched

    @property
    def ships(self) -> str | None:
        """The name of the catalogue's test beside the search."""
        return None if self.beside is None else self.beside.test.name

    @property
    def exhausted(self) -> bool:
        """Whether the search found nothing up to its bound; the catalogue's test may count as found
        all the same.
        """
        return self.none or self.beside is not None

    def with_catalogue(self) -> Separation:
        """Return the answer that counts the catalogue's test as found, if it is no larger than what
        was asked for.
        """
        if self.beside is None or self.is_beside_larger:
            return self
        return replace(
            self,
            found=True,
            bound=f"{self.ships} of the catalogue; no counterexample {self.bound}",
            transactions=self.beside.transactions,
            litmus=self.beside.test,
            forbidden=self.beside.forbidden,
            execution=self.beside.execution,
            serial=self.beside.serial,
            certificate=None,
        )

    @property
    def effort(self) -> str:
        """How much was looked at, in words."""
        ended = self.found is None and not self.searched
        if self.by == "exhaustive":
            checked = f"{count_of(self.examined, 'candidate')} checked"
            return f"{checked} before the limit" if ended else checked
        if not self.examined:
            return "the solver refuted all" if self.exhausted else "no solver proposal yet"
        proposals = count_of(self.examined, "solver proposal", "solver proposals")
        if ended:
            return f"{proposals} before the limit, all refuted"
        return f"{proposals}, all refuted" if self.exhausted else proposals

    @property
    def run(self) -> Run | None:
        """How what was found is carried out under ``a``; None if it is no test on tables."""
        if not isinstance(self.litmus, Litmus) or self.execution is None:
            return None
        return observed_run(self.litmus, self.execution, self.a)

    @property
    def graph(self) -> DependencyGraph:
        """The graph of what was found, in which the cycle stands out that ``b`` forbids; of
        nothing, nothing.
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
        """The answer as docs/interface.md, 6, has it."""
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
            "seconds": round(self.seconds, 3),
        }
        if self.proved:
            document["outside"] = [test.to_json() for test in self.outside]
        if self.proof is not None:
            document["lemmas"] = [step.to_json() for step in self.proof.steps]
        return document
