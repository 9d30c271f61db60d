"""Search of the table search space by a solver: propose a candidate, execute it, ask again.

Proposals (statements and read versions) come in the order of the enumeration
(``checker.universes.tables``), so both give the same answer. If execution rejects a proposal,
because values decide what the circuit leaves open, or because some serial order explains it, the
proposal is excluded and the solver is asked again. If the solver has no further proposal, there is
no counterexample.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.delta.frame import ROW_RELATIONS
from isolitmus.checker.delta.partition_abstraction import UnsupportedScope, outline, partitions
from isolitmus.checker.delta.table_circuit import (
    NO_FILE_MERGED,
    QUIET,
    TableCircuit,
    add_read_nodes,
)
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.solver.circuit_semantics import assert_admitted, assert_forbidden
from isolitmus.checker.solver.circuits import Gates, Solver
from isolitmus.checker.solver.refutation import refute_clauses
from isolitmus.checker.universes.tables import candidate
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import Limit
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.delta.partition_abstraction import Outline
    from isolitmus.checker.solver.circuits import Model
    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement

    Accept = Callable[[Candidate], bool]

Choice = tuple[int, int]
"""Number of a statement (or reader) of the scope, and the version that it reads."""


def unsupported_scope(scope: Scope, *specs: Spec) -> str | None:
    """Return why the solver cannot search this scope exactly for these specs; None if it can.

    >>> from isolitmus.specs import scope
    >>> unsupported_scope(scope("table")) is None
    True
    """
    needs = frozenset[str]().union(*(one.needs for one in specs))
    below = sorted(needs.intersection(ROW_RELATIONS).difference(QUIET, NO_FILE_MERGED))
    if below:
        return f"{below[0]} depends on single rows or statistics"
    if len(scope.tables) != 1:
        return "the universe has several tables"
    try:
        for init in scope.inits:
            scope_outlines(scope, init)
    except UnsupportedScope as error:
        return str(error)
    return None


def scope_outlines(
    scope: Scope, init: tuple[Statement, ...]
) -> tuple[list[Outline], list[Outline], list[int], int]:
    """Return the outlines of a scope's statements and readers on one initial table.

    Returns
    -------
    statements, readers : list of Outline
        The outlines.
    live : list of int
        Partition of each initial file.
    count : int
        Number of partitions.

    Raises
    ------
    UnsupportedScope
        If a statement or the table has no outline.
    """
    ((name, schema),) = scope.tables.items()
    live = [
        file.partition
        for file in initial_database(format_named(scope.format), scope.tables, init)[name].files
    ]
    menu = [positions[0] for positions in scope.statements]
    known = partitions(schema, menu, live)
    return (
        [outline(statement, schema, known) for statement in menu],
        [outline(statement, schema, known) for statement in scope.readers],
        [known.index(partition) for partition in live],
        len(known),
    )


def build_circuit(
    gates: Gates, scope: Scope, init: tuple[Statement, ...], writers: int, readers: int
) -> TableCircuit[int]:
    """Return the circuit of a scope's candidates with these numbers of writers and readers.

    Parameters
    ----------
    gates : Gates
        Receives the clauses.
    scope : Scope
        The scope.
    init : tuple of Statement
        Statements that make the initial table.
    writers, readers : int
        Numbers of writers and readers.
    """
    (schema,) = scope.tables.values()
    statements, queries, live, count = scope_outlines(scope, init)
    menu = [statements] * writers + [queries] * readers
    runs = [[gates.new() for _ in choices] for choices in menu]
    for choices in runs:
        gates.one_of(choices)
    sees = [[gates.new() for _ in range(min(j, writers))] for j in range(writers + readers)]
    for versions in sees:
        for earlier, later in pairwise(versions):
            gates.add(earlier, -later)
    made = TableCircuit(
        gates, schema, menu, live, count, runs=runs, sees=sees, writers=writers,
        free=gates.new, require=gates.add,
    )  # fmt: skip
    if scope.noops == "skip":
        for j in range(writers):
            gates.add(made.acts(j))
    return made


def search(
    a: Spec,
    b: Spec,
    scope: Scope,
    n: int,
    accept: Accept,
    *,
    budget: Budget | None = None,
    refuted: list[Refutation] | None = None,
) -> tuple[Candidate | None, int]:
    """Return the first candidate with n transactions that ``a`` admits and ``b`` forbids.

    Parameters
    ----------
    a, b : Spec
        The specs.
    scope : Scope
        The scope.
    n : int
        Number of transactions.
    accept : callable
        Executes and judges a candidate; a rejected one is skipped.
    budget : Budget, optional
        Limits.
    refuted : list of Refutation, optional
        Receives the unsatisfiable questions, one for each number of writers and each initial table.

    Returns
    -------
    candidate : Candidate or None
        The candidate; None if there is none.
    examined : int
        Number of proposals.

    Raises
    ------
    Limit
        With the number of proposals, once the budget is spent.
    """
    budget = budget or Budget()
    examined = 0
    try:
        for writers in range(1, n + 1):
            if writers < n and not scope.readers:
                continue
            for k, init in enumerate(scope.inits, 1):
                space = _CandidateSpace(a, b, scope, init, (writers, n - writers), budget)
                apart = []
                for chosen in space.proposals():
                    examined += 1
                    proposal = candidate(scope, init, chosen[:writers], chosen[writers:])
                    if proposal is not None and accept(proposal):
                        return proposal, examined
                    apart.append(chosen)
                if refuted is not None:
                    refuted.append(
                        space.refuted(f"{n}-transactions-{writers}-writers-table-{k}", apart)
                    )
    except Limit as limit:
        limit.examined = examined
        raise
    return None, examined


class _CandidateSpace:
    """Candidates of one shape (writers, readers) that one spec admits and another forbids."""

    def __init__(  # noqa: PLR0917
        self,
        a: Spec,
        b: Spec,
        scope: Scope,
        init: tuple[Statement, ...],
        shape: tuple[int, int],
        budget: Budget,
    ) -> None:
        writers, readers = shape
        self.scope, self.init, self.writers = scope, init, writers
        self.specs = a, b
        self.gates = Gates()
        self.circuit = build_circuit(self.gates, scope, init, writers, readers)
        plain = self.circuit.frames(a.needs | b.needs)
        for spec, say in ((a, assert_admitted), (b, assert_forbidden)):
            say(
                self.gates,
                add_read_nodes(self.circuit, plain) if needs_reads(spec) else plain,
                spec,
            )
        self.options = [self._options(j) for j in range(writers + readers)]
        for j in range(writers, writers + readers - 1):
            self._ascending(self.options[j], self.options[j + 1])
        self.solver = Solver(self.gates, budget)

    def _options(self, j: int) -> list[tuple[Choice, int]]:
        """Return the choices of transaction j in order, each with its literal."""
        sees = self.circuit.sees[j]
        versions = [
            self.gates.conj([*sees[:v], *(-later for later in sees[v:])])
            for v in range(len(sees) + 1)
        ]
        return [
            ((k, v), self.gates.both(run, version))
            for k, run in enumerate(self.circuit.runs[j])
            for v, version in enumerate(versions)
        ]

    def _ascending(self, first: list[tuple[Choice, int]], second: list[tuple[Choice, int]]) -> None:
        """Require ascending choices of two readers, since readers have no order."""
        for k, (_, one) in enumerate(first):
            for _, other in second[:k]:
                self.gates.add(-one, -other)

    def proposals(self) -> Iterator[list[Choice]]:
        """Yield all proposals of the solver, each once."""
        if self.solver.check() is None:
            return
        runs = self.circuit.runs[: self.writers]
        for vocabulary in range(1, len(self.scope.statements) + 1):
            uses = self.gates.disj(run[vocabulary - 1] for run in runs)
            beyond = [-literal for run in runs for literal in run[vocabulary:]]
            yield from self._below([uses, *beyond], [])

    def refuted(self, name: str, apart: Sequence[Sequence[Choice]]) -> Refutation:
        """Return the proof that only the proposals ``apart``, which execution rejects, are left."""
        first, second = self.specs
        clauses = {}
        for chosen in apart:
            literals = [
                dict(options)[one] for options, one in zip(self.options, chosen, strict=True)
            ]
            clauses[tuple(-literal for literal in literals)] = self._words(chosen)
        readers = len(self.options) - self.writers
        shape = count_of(self.writers, "writer")
        shape += f" and {count_of(readers, 'reader')}" if readers else ""
        start = "; ".join(str(statement) for statement in self.init) or "an empty table"
        but = (
            f", but for {count_of(len(apart), 'one', 'those')} that execution rejects"
            if apart
            else ""
        )
        says = (
            f"no candidate with {shape} on {start} is admitted by {first.name} and forbidden by"
            f" {second.name}{but}"
        )
        return refute_clauses(name, says, self.gates, clauses)

    def _words(self, chosen: Sequence[Choice]) -> str:
        """Return the statements and read versions of a candidate, in words."""
        menu = [[one[0] for one in self.scope.statements]] * self.writers
        menu += [list(self.scope.readers)] * (len(chosen) - self.writers)
        done = (f"{menu[j][k]} at version {v}" for j, (k, v) in enumerate(chosen))
        return "; ".join(done)

    def _below(self, assumed: Sequence[int], chosen: list[Choice]) -> Iterator[list[Choice]]:
        """Yield the proposals that extend some choices, in order."""
        depth = len(chosen)
        if depth == len(self.options):
            yield chosen
            return
        options = self.options[depth]
        start = 0
        while True:
            k = self._least(assumed, options, start)
            if k is None:
                return
            choice, literal = options[k]
            yield from self._below([*assumed, literal], [*chosen, choice])
            start = k + 1

    def _least(
        self, assumed: Sequence[int], options: list[tuple[Choice, int]], start: int
    ) -> int | None:
        """Return the first option from ``start`` on that is consistent; None if there is none."""
        best: int | None = None
        end = len(options)
        while True:
            # each model lowers the bound: next, only options before the one it chose are allowed
            outside = [-literal for k, (_, literal) in enumerate(options) if not start <= k < end]
            model = self.solver.check([*assumed, *outside])
            if model is None:
                return best
            best = end = _chosen(model, options)
            if best == start:
                return best


def _chosen(model: Model, options: list[tuple[Choice, int]]) -> int:
    return next(k for k, (_, literal) in enumerate(options) if model[literal])
