"""Reads as nodes in the table circuit: what ``checker.execution.row_reads`` says of an execution, symbolically.

After the transactions come the initial one and a node for each transaction, read of it, and row; a
node is there if the statement has so many reads, and somebody wrote the row or the read matched it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.checker.judge.matrix_semantics import Matrices
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS

if TYPE_CHECKING:
    from isolitmus.checker.delta.table_circuit import FileRows, TableCircuit
    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix

__all__ = ["with_reads"]

B = TypeVar("B")


def with_reads(circuit: TableCircuit[B], frames: Matrices[B]) -> Matrices[B]:
    """The frames of a circuit, with the initial transaction and the reads."""
    builder = _ReadMatrices(circuit)
    for j in range(circuit.size):
        most = max(len(outline.partition_reads) for outline in circuit.menu[j])
        for number in range(most):
            for row in circuit.files:
                builder.read(j, number, row)
    return builder.frames(frames)


class _ReadMatrices(Generic[B]):
    def __init__(self, circuit: TableCircuit[B]) -> None:
        self.circuit, self.gates = circuit, circuit.booleans
        self.init = circuit.size
        self.exists = [self.gates.true] * (circuit.size + 1)
        self.pairs: dict[str, dict[tuple[int, int], list[B]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for j in range(circuit.size):
            self.pairs["so"][self.init, j].append(self.gates.true)

    def read(self, j: int, number: int, row: FileRows) -> None:
        """The node of a read of transaction j and a row."""
        circuit, gates, neg = self.circuit, self.gates, self.gates.neg
        p = row.partition
        wrote = [circuit.wrote[k].get(row, gates.false) for k in range(circuit.writers)]
        reads = circuit.chosen(
            j, lambda o: any(p in k.whole for k in o.partition_reads[number:][:1])
        )
        may_read = circuit.chosen(
            j, lambda o: any(p in k.partly for k in o.partition_reads[number:][:1])
        )
        is_one = circuit.chosen(j, lambda o: number < len(o.partition_reads))
        node = len(self.exists)
        there = gates.both(is_one, gates.disj([*wrote, reads, may_read]))
        self.exists.append(there)
        self.add("in", node, j, there)
        initially = gates.false if row.writer else gates.true
        alive = [*(gates.both(w, circuit.lives(k, row)) for k, w in enumerate(wrote)), initially]
        visible = [gates.both(w, circuit.seen(k, j)) for k, w in enumerate(wrote)]
        saw: dict[int, B] = {}
        later = gates.false
        for k in reversed(range(circuit.writers)):
            saw[k] = gates.both(visible[k], neg(later))
            later = gates.disj([later, visible[k]])
        saw[self.init] = neg(later)
        version = {k: alive[k] for k in range(circuit.writers)} | {self.init: alive[-1]}
        matched = gates.disj(gates.both(saw[k], version[k]) for k in version)
        may = circuit.maybe(gates.both(may_read, there))
        for k in version:
            if k == j:
                continue
            self.add("rf", k, node, gates.both(there, saw[k]))
            if k == self.init:
                self.add("wr", k, j, gates.both(there, saw[k]))
            installed = gates.true if k == self.init else wrote[k]
            concerned = gates.disj([gates.both(reads, gates.disj([matched, version[k]])), may])
            self.add("rival", k, node, gates.conj([there, installed, neg(saw[k]), concerned]))

    def add(self, name: str, i: int, j: int, pair: B) -> None:
        if pair != self.gates.false:
            self.pairs[name][i, j].append(pair)

    def frames(self, frames: Matrices[B]) -> Matrices[B]:
        size = len(self.exists)
        beside = [self.gates.false] * (size - self.circuit.size)
        relations: dict[str, BooleanMatrix[B]] = {
            name: [*map(dict, matrix), *({} for _ in beside)]
            for name, matrix in frames.relations.items()
        }
        for name in ("so", "wr", *READ_RELATIONS):
            matrix = relations.setdefault(name, [{} for _ in range(size)])
            for (i, j), parts in self.pairs[name].items():
                matrix[i][j] = self.gates.disj([*parts, matrix[i].get(j, self.gates.false)])
        sets = {name: [*members, *beside] for name, members in frames.sets.items()}
        first = [self.gates.true if i == self.init else self.gates.false for i in range(size)]
        return Matrices(self.gates, self.exists, relations, sets | dict.fromkeys(NODE_SETS, first))
