"""Formulas of a statement and one that commits between its snapshot and its commit.

They are built once for all pairs of statements with the same shapes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.questions.simple_examples import QuestionSolver
from isolitmus.jobs.templates.instance_frames import SymbolicFrame
from isolitmus.model.sql.query import Values
from isolitmus.model.sql.statement import Definition, Insert, Merge, Optimize, Restore, Vacuum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.jobs.questions.counterexamples import Proposal
    from isolitmus.jobs.questions.instances import Instances
    from isolitmus.jobs.templates.expression_formulas import RowTerm
    from isolitmus.jobs.templates.statement_shapes import StatementShape
    from isolitmus.jobs.workload import JobStatement
    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec


@dataclass(slots=True)
class AbortExample:
    """Smallest test that ends with an exception."""

    test: Litmus
    run: Execution
    """Execution of the test."""
    proposal: Proposal
    """Values from which the test was made."""
    fails: bool = False
    """True if a retry failed in some test with this exception."""

    @property
    def size(self) -> tuple[int, int]:
        """Number of initial rows, and of statements that insert them."""
        inserts = [one for one in self.test.init if isinstance(one, Insert)]
        values = [b for one in inserts for b in one.query if isinstance(b, Values)]
        return sum(len(branch.rows) for branch in values), len(inserts)


class ExampleFormulas(NamedTuple):
    """Formulas that an example of an abort satisfies, or may satisfy."""

    busy: Any
    """There is some row for each statement to write."""
    goes: Any
    """The winner removes a file that the loser has read, and adds none that the loser has read."""
    goes_in_tests: Any
    """This is possible in a litmus test, where a file is skipped by the statistics of its rows."""
    file: tuple[tuple[str, RowTerm], ...]
    """Rows of that file, each with its table."""
    finds_rows: Any
    """A retry of the loser may write."""
    finds_no_row: Any
    """A retry of the loser may be a no-op."""
    as_declared: Any
    """The tables have their declared metadata."""
    as_altered: Any
    """The tables have other metadata, to which statements of jobs lead."""


class PairFormulas:
    """Formulas of a pair of statements, with unknowns for their literals.

    Attributes
    ----------
    loser, winner : Participant
        The statement that starts first and commits last, and the one that commits in between.
    stops : list of (str, formula)
        Axioms that the loser's commit may violate: name of the exception, and its condition.
    asked : QuestionSolver
        Solver of the pair, with free literals.
    found : dict of str to AbortExample
        Examples of the first pair of these shapes, by exception.
    shared : bool
        Whether there are other pairs of these shapes.
    """

    def __init__(
        self, cast: Instances, loser: JobStatement, winner: JobStatement, protocol: Spec
    ) -> None:
        self.cast = cast.anew()
        self.loser, self.winner = self.cast.pair(loser, winner)
        frame = SymbolicFrame([self.winner.instance, self.loser.instance], alone=True)
        self.stops = frame.stops(protocol, loser=1)
        self._frame = frame
        if isinstance(loser.statement, Restore):  # any commit that is recorded makes it abort
            recorded = self.winner.terms.z3.Not(frame.dropped(protocol, 0))
            self.stops = [
                (name, self.winner.terms.z3.And(stop, recorded)) for name, stop in self.stops
            ]
        given = [*frame.given, *self.cast.differing(self.loser, [self.winner])]
        self.asked = QuestionSolver((self.loser, self.winner), given, free=True)
        self.z3 = self.asked.z3
        self.found: dict[str, AbortExample] = {}
        self.shared = False

    def number_texts(self, shapes: Iterable[StatementShape]) -> None:
        """Give the texts of these shapes their numbers, in the order of the texts."""
        for text in sorted({text for shape in shapes for text in shape.texts}):
            self.cast.codes.number(text)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Forget, after a block, the unknowns that are made in it, and the numbers of strings.

        So the examples of a pair do not depend on the pairs before it.
        """
        with self.loser.terms.aside(), self.winner.terms.aside(), self.cast.codes.aside():
            yield

    @cached_property
    def anything(self) -> Any:
        """Formula that the loser aborts."""
        return self.z3.Or(*(stop for _, stop in self.stops))

    @cached_property
    def exceptions(self) -> Mapping[str, Any]:
        """Formula of each exception that some literals allow.

        It is the first one raised, since axioms are checked in protocol order.
        """
        ways: dict[str, list[Any]] = {}
        for k, (name, stop) in enumerate(self.stops):
            before = [self.z3.Not(other) for called, other in self.stops[:k] if called != name]
            ways.setdefault(name, []).append(self.z3.And(stop, *before))
        every = {name: self.z3.Or(*some) for name, some in ways.items()}
        return {
            name: first for name, first in every.items() if self.asked.possible(first) is not False
        }

    @cached_property
    def both_write(self) -> Any:
        """Formula that both commits are recorded."""
        both = self.loser.instance, self.winner.instance
        known = (formula for one in both for formula in one.known)
        return self.z3.And(*(one.writes for one in both), *known)

    @cached_property
    def of_examples(self) -> ExampleFormulas:
        """Formulas for examples, all made at once, so that examples depend on no earlier pair."""
        busy = self.z3.And(self.loser.instance.busy, self.winner.instance.busy)
        rows = self.loser.terms.rows
        known = len(rows)
        goes = self._frame.alone_in_tests("removes-meets-reads", 0, 1)
        schema = self.loser.instance.template.target
        file = tuple(one for one in rows[known:] if schema and one[0] == schema.name)
        headers = [role.instance.header for role in (self.loser, self.winner)]
        commits, idles = headers[0].retried(headers[1])
        return ExampleFormulas(
            busy,
            *goes,
            file,
            self.z3.And(commits, self._finds_rows()),
            self.z3.And(idles, self._finds_no_row()),
            declared := self.z3.And(*(header.state == 0 for header in headers)),
            self.z3.And(self.z3.Not(declared), *(header.shown for header in headers)),
        )

    def _finds_rows(self) -> Any:
        """Formula that a retry of the loser may write.

        It is true for a query; otherwise it needs a matching row that is kept or added.
        """
        z3, terms, own = self.z3, self.loser.terms, self.loser.instance.template
        schema = own.target
        if schema is None or isinstance(
            own.statement, Insert | Merge | Optimize | Vacuum | Definition | Restore
        ):
            return z3.BoolVal(True)
        old, new = (terms.row(schema, f"{schema.name} {word}") for word in ("before", "after"))
        winner = self.winner.instance.template
        if winner.target != schema:
            return own.removes(old)
        return z3.Or(
            z3.And(own.removes(old), winner.keeps(old)), z3.And(winner.adds(new), own.removes(new))
        )

    def _finds_no_row(self) -> Any:
        """Formula that a retry of the loser may be a no-op: no row certainly added by the winner
        triggers a write.
        """
        z3, own = self.z3, self.loser.instance.template
        if own.always or isinstance(own.statement, Vacuum):
            return z3.BoolVal(False)
        put = (
            self.winner.instance.template.certain
            if own.target == self.winner.instance.template.target
            else ()
        )
        return z3.And(*(own.keeps(row) for row in put))
