"""Every candidate of a scope, many at a time: the table circuit over bits instead of literals.

A batch is a product: for each commit position a statement and the version that it reads. A relation
of the frame is one integer for each pair of transactions, with a bit for each candidate, so a spec
is read once for all of them. What looks at values has no outline and cannot be counted in this way.
It shares nothing with ``checker.sweeps`` but the specs, and is what that is held against.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as cartesian
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.delta.table_circuit import TableCircuit
from isolitmus.checker.delta.table_solver import scope_outlines, unsupported_scope
from isolitmus.checker.judge.matrix_semantics import spec_holds
from isolitmus.checker.universes.abstract_enumeration import Product
from isolitmus.checker.universes.tables import candidate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement

LARGEST = 1 << 20
"""The most candidates of one batch: so that its bits stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """Candidates on one initial table, in the order in which enumeration has them."""

    scope: Scope
    """Whose candidates."""
    init: tuple[Statement, ...]
    """The statements that fill the table."""
    options: tuple[tuple[tuple[int, int], ...], ...]
    """The choices at each position: statement and read version."""
    product: Product
    """Candidate k takes the member k of the product of the options."""
    circuit: TableCircuit[int]
    """What holds of them, a bit for each."""

    @property
    def size(self) -> int:
        """The number of candidates."""
        return self.product.size

    def active(self) -> int:
        """The candidates in which every statement changes some file, as a bitset."""
        return self.product.booleans.conj(self.circuit.acts(j) for j in range(len(self.options)))

    def admits(self, *specs: Spec) -> list[int]:
        """For each spec the candidates that it admits, as a bitset."""
        frames = self.circuit.frames(frozenset[str]().union(*(spec.needs for spec in specs)))
        return [spec_holds(frames, spec) for spec in specs]

    def candidate(self, k: int) -> Candidate:
        """Candidate k, executed; every statement of it must change some file."""
        chosen = [
            options[i] for options, i in zip(self.options, self.product.member(k), strict=True)
        ]
        made = candidate(self.scope, self.init, chosen, ())
        assert made is not None
        return made


def uncountable(scope: Scope) -> str | None:
    """Why the candidates of a scope cannot be counted as bits; None if they can.

    >>> from isolitmus.specs import scope
    >>> uncountable(scope("two-partitions")) is None
    True
    >>> uncountable(scope("table"))[:40]
    "'MERGE INTO t USING (SELECT 100 AS id, 0"
    """
    why = unsupported_scope(scope)
    for init in scope.inits if why is None else ():
        for statement, found in zip(scope.statements, scope_outlines(scope, init)[0], strict=True):
            if not found.sure:
                return f"'{statement[0].sql}' looks at values"
    return why


def candidate_batches(scope: Scope, n: int) -> Iterator[CandidateBatch]:
    """All candidates of a scope with n writers. Unfit if a statement of it looks at values.

    >>> from isolitmus.specs import scope, spec
    >>> batch, _ = candidate_batches(scope("two-partitions"), 2)
    >>> (admitted,) = batch.admits(spec("delta-serializable"))
    >>> batch.size, (admitted & batch.active()).bit_count()
    (98, 48)
    """
    (schema,) = scope.tables.values()
    for init in scope.inits:
        statements, _, live, partitions = scope_outlines(scope, init)
        every = [[(s, v) for s in range(len(statements)) for v in range(j + 1)] for j in range(n)]
        fixed = next(k for k in range(n + 1) if prod(len(o) for o in every[k:]) <= LARGEST)
        for prefix in cartesian(*every[:fixed]):
            options = (*(((choice),) for choice in prefix), *map(tuple, every[fixed:]))
            product = Product(tuple(len(o) for o in options))
            runs = [
                [
                    product.plane(np.array([choice[0] == s for choice in o]), j)
                    for s in range(len(statements))
                ]
                for j, o in enumerate(options)
            ]
            sees = [
                [product.plane(np.array([choice[1] > v for choice in o]), j) for v in range(j)]
                for j, o in enumerate(options)
            ]
            made = TableCircuit(
                product.booleans, schema, [statements] * n, live, partitions,
                runs=runs, sees=sees, writers=n,
            )  # fmt: skip
            yield CandidateBatch(scope, init, options, product, made)
