"""Frames with fewer nodes, as parts of those whose nodes are all operations: what a spec sees, said of these.

Where transactions are the only nodes, relations lead from transactions to transactions, without T0. Where reads are nodes,
``in`` and ``po`` are of those that have a source outside, and there is nobody else to stay with.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.model.spec import Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.spec import BinaryOp, CatExpr, Spec

__all__ = ["COMMITTED", "INITIAL", "composed", "kind_of", "restricted", "with_orders"]

NodeKind = Literal["transactions", "reads", "operations"]

OPERATION = Binary("|", Binary("|", Name("ItemRead"), Name("PredicateRead")), Name("Write"))
TRANSACTION = Unary("~", OPERATION)
INITIAL = Name("Initial")
COMMITTED = Binary("\\", TRANSACTION, Name("Aborted"))
"""The transactions that committed, T0 among them."""
THERE: Mapping[NodeKind, CatExpr] = {
    "transactions": Binary("\\", TRANSACTION, INITIAL),
    "reads": Binary("|", TRANSACTION, Name("External")),
}
"""The nodes."""
FROM_INITIAL = frozenset({"so", "wr", "co", "vis"})
"""What leads from T0, where it is a node."""


def kind_of(spec: Spec) -> NodeKind:
    """What the nodes are where a spec is judged."""
    if needs_operations(spec):
        return "operations"
    return "reads" if needs_reads(spec) else "transactions"


def composed(*parts: CatExpr, op: BinaryOp = ";") -> CatExpr:
    """One after the other."""
    return reduce(lambda left, right: Binary(op, left, right), parts)


def with_orders(expr: CatExpr, orders: Mapping[str, CatExpr]) -> CatExpr:
    """The expression with other relations instead of some names."""
    match expr:
        case Name(name):
            return orders.get(name, expr)
        case Bracket(operand):
            return Bracket(with_orders(operand, orders))
        case Unary(op, operand):
            return Unary(op, with_orders(operand, orders))
        case Binary(op, left, right):
            return Binary(op, with_orders(left, orders), with_orders(right, orders))


def restricted(expr: CatExpr, kind: NodeKind) -> CatExpr:
    """What an expression denotes in frames of a kind, without definitions."""
    if kind == "operations":
        return expr
    there = THERE[kind]
    match expr:
        case Name(name) if expr.kind == "relation":
            return _restricted(name, kind)
        case Name():
            return expr
        case Bracket(operand):
            return Bracket(restricted(operand, kind))
        case Unary("~", operand):
            return Binary("\\", there, restricted(operand, kind))
        case Unary("?", operand):
            return Binary("|", Bracket(there), restricted(operand, kind))
        case Unary("*", operand):
            return Binary("|", Bracket(there), Unary("+", restricted(operand, kind)))
        case Unary(op, operand):
            return Unary(op, restricted(operand, kind))
        case Binary(op, left, right):
            return Binary(op, restricted(left, kind), restricted(right, kind))


def _restricted(name: str, kind: NodeKind) -> CatExpr:
    relation, served = Name(name), Bracket(Name("Served"))
    if kind == "transactions" and name in FROM_INITIAL:
        inside = Bracket(THERE[kind])
        return composed(inside, relation, inside)
    if kind == "reads" and name == "in":
        return composed(served, relation)
    if kind == "reads" and name == "po":
        return composed(served, relation, served)
    return relation
