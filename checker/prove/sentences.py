"""Sentences in SMT-LIB about the nodes of a frame: closures, restrictions, questions.

What is said of the nodes of a frame, as sentences in SMT-LIB: relations and sets as predicates, of
any number of nodes.

The closure of a relation is a predicate of its own, and so is ``MISSED``; what is known of them is
said beside (``checker.prove.sentences``). The same text is asked of our solver, and is the
certificate.

What is known of closures, and of who misses a version: predicates of their own in proofs on
histories.

Of r+ it is said that it contains r, goes on, and begins and ends with a step of r; that it lies in
whatever transitive relation r lies in is a lemma, where it is needed. All of that is so of the
closure, so what follows is so.

Frames with fewer nodes, as parts of those whose nodes are all operations: what a spec sees, said of
these.

Where transactions are the only nodes, relations lead from transactions to transactions, without T0.
Where reads are nodes, ``in`` and ``po`` are of those that have a source outside, and there is
nobody else to stay with.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.checker.prove.history_laws import relation
from isolitmus.model.errors import printable
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.spec_algebra import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.prove.history_laws import Law
    from isolitmus.model.spec import BinaryOp, CatExpr, Spec

__all__ = [
    "COMMITTED",
    "EVERY",
    "INITIAL",
    "MISSED",
    "SAME",
    "Closures",
    "Sentence",
    "compose",
    "law_sentence",
    "node_kind",
    "question_text",
    "replace_orders",
    "restrict",
    "union_branches",
]

SAME = Unary("?", Binary("\\", Name("so"), Name("so")))
"""The identity: what nothing has, or staying where one is."""
EVERY = Name("every")
"""What relates all nodes with each other."""
MISSED = Binary(";", Name("rw"), Unary("*", Name("ww")))
"""From a reader to whoever wrote the next version of what it read, or a later one."""


class Sentence:
    """A closed sentence with the predicates that it names."""

    def __init__(self, words: str, text: str, exprs: Iterable[CatExpr]) -> None:
        self.words, self.text = words, text
        self.exprs = tuple(exprs)
        self.names = frozenset(
            name for name in names_in(self.exprs, {}) if Name(name).kind == "relation"
        )

    @classmethod
    def none(cls, words: str, expr: CatExpr) -> Sentence:
        """That a relation relates nothing."""
        texts = [_none(case) for case in union_branches(expr)]
        return cls(words, texts[0] if len(texts) == 1 else f"(and {' '.join(texts)})", [expr])

    @classmethod
    def some(cls, words: str, expr: CatExpr) -> Sentence:
        """That it relates something."""
        return cls(words, f"(not {_none(expr)})", [expr])


def law_sentence(law: Law) -> Sentence:
    """A law as a sentence."""
    given = [_holds(relation(text), i, j, 0) for i, text, j in law.given]
    then = [_holds(relation(text), i, j, 0) for i, text, j in law.then]
    nodes = " ".join(f"({node} Node)" for node in law.nodes)
    text = f"(forall ({nodes}) (=> (and true {' '.join(given)}) (or false {' '.join(then)})))"
    return Sentence(law.sentence, text, law.relations)


def question_text(sentences: Sequence[Sentence]) -> str:
    """The text that asks whether all of these can be so at once."""
    exprs = [expr for one in sentences for expr in one.exprs]
    declared = dict.fromkeys(part for expr in exprs for part in _predicates(expr))
    lines = ["(set-logic UF)", "(declare-sort Node 0)"]
    for symbol, arity in declared:
        lines.append(f"(declare-fun {symbol} ({' '.join(['Node'] * arity)}) Bool)")
    for one in sentences:
        lines += [f"; {printable(one.words)}", f"(assert {one.text})"]
    return "\n".join([*lines, "(check-sat)"]) + "\n"


def union_branches(expr: CatExpr) -> list[CatExpr]:
    """Relations whose union is the expression: what is said of each is easier to use than of
    all.
    """
    match expr:
        case Binary("|", left, right) if expr.kind == "relation":
            return [*union_branches(left), *union_branches(right)]
        case Binary("\\", left, right) if expr.kind == "relation":
            return [Binary("\\", one, right) for one in union_branches(left)]
        case Binary(";" | "&" as op, left, right) if expr.kind == "relation":
            return [
                Binary(op, one, other)
                for one in union_branches(left)
                for other in union_branches(right)
            ]
    return [expr]


def _none(expr: CatExpr) -> str:
    match expr:
        case Binary("&", left, right) if right == SAME:
            return f"(forall ((a Node)) (not {_holds(left, 'a', 'a', 0)}))"
        case Binary("\\", left, right):
            inner, outer = _holds(left, "a", "b", 0), _holds(right, "a", "b", 0)
            return f"(forall ((a Node) (b Node)) (=> {inner} {outer}))"
    return f"(forall ((a Node) (b Node)) (not {_holds(expr, 'a', 'b', 0)}))"


def _holds(expr: CatExpr, i: str, j: str, depth: int) -> str:
    """That a relation leads from one node to another; ``depth``: how many nodes in between have
    names already.
    """
    if expr == SAME:
        return f"(= {i} {j})"
    symbol = _symbol(expr)
    if symbol is not None:
        return f"({symbol} {i} {j})"
    match expr:
        case Name("every"):
            return "true"
        case Bracket(operand):
            return f"(and (= {i} {j}) {_member(operand, i)})"
        case Binary("|", left, right):
            return f"(or {_holds(left, i, j, depth)} {_holds(right, i, j, depth)})"
        case Binary("&", left, right):
            return f"(and {_holds(left, i, j, depth)} {_holds(right, i, j, depth)})"
        case Binary("\\", left, right):
            return f"(and {_holds(left, i, j, depth)} (not {_holds(right, i, j, depth)}))"
        case Binary(";", Bracket(operand), right):
            return f"(and {_member(operand, i)} {_holds(right, i, j, depth)})"
        case Binary(";", left, Bracket(operand)):
            return f"(and {_holds(left, i, j, depth)} {_member(operand, j)})"
        case Binary(";", left, right):
            via = f"v{depth}"
            both = f"{_holds(left, i, via, depth + 1)} {_holds(right, via, j, depth + 1)}"
            return f"(exists (({via} Node)) (and {both}))"
        case Unary("*", operand):
            return f"(or (= {i} {j}) {_holds(Unary('+', operand), i, j, depth)})"
        case Unary("?", operand):
            return f"(or (= {i} {j}) {_holds(operand, i, j, depth)})"
        case Unary("^-1", operand):
            return _holds(operand, j, i, depth)
    raise AssertionError(f"{expr} is not a relation")


def _member(expr: CatExpr, i: str) -> str:
    match expr:
        case Name(name):
            return f"({name} {i})"
        case Unary("~", operand):
            return f"(not {_member(operand, i)})"
        case Binary("|", left, right):
            return f"(or {_member(left, i)} {_member(right, i)})"
        case Binary("&", left, right):
            return f"(and {_member(left, i)} {_member(right, i)})"
        case Binary("\\", left, right):
            return f"(and {_member(left, i)} (not {_member(right, i)}))"
    raise AssertionError(f"{expr} is not a set")


def _symbol(expr: CatExpr) -> str | None:
    """What a relation is called, if it is a predicate of its own."""
    match expr:
        case Name("every"):
            return None
        case Name(name):
            return f"|{name}|"
        case Unary("+", _):
            return f"|{str(expr).replace('|', 'or').replace(chr(92), 'less')}|"
        case _ if expr == MISSED:
            return "|missed|"
    return None


def _predicates(expr: CatExpr) -> Iterable[tuple[str, int]]:
    symbol = _symbol(expr)
    match expr:
        case _ if symbol is not None:
            yield (symbol, 2) if expr.kind == "relation" else (expr.name, 1)  # type: ignore[union-attr]
        case Binary(_, left, right):
            yield from _predicates(left)
            yield from _predicates(right)
        case Unary("*", operand):
            yield from _predicates(Unary("+", operand))
        case Unary(_, operand) | Bracket(operand):
            yield from _predicates(operand)


class Closures:
    """The closures in some expressions, and what is known of them."""

    def __init__(self, exprs: Iterable[CatExpr]) -> None:
        found = dict.fromkeys(one for expr in exprs for one in _closures(expr))
        self.closures: tuple[Unary, ...] = tuple(found)
        self.facts: list[Sentence] = []
        self.steps: list[Sentence] = []
        for closure in self.closures:
            r = closure.operand
            self.say(f"{closure} has its steps", r, closure)
            self.say(f"{closure} goes on", Binary(";", closure, closure), closure)
            first, last = Binary(";", r, closure), Binary(";", closure, r)
            self.say(f"{closure} begins with a step", closure, Binary("|", r, first), step=True)
            self.say(f"{closure} ends with a step", closure, Binary("|", r, last), step=True)
        rw, ww = Name("rw"), Name("ww")
        self.say("who misses a version misses it", rw, MISSED)
        self.say("and the later ones", Binary(";", MISSED, Unary("+", ww)), MISSED)
        opened = Binary("|", rw, Binary(";", rw, Unary("+", ww)))
        self.say("and no others", MISSED, opened)

    def say(self, words: str, inner: CatExpr, outer: CatExpr, *, step: bool = False) -> None:
        """That one relation lies in another."""
        said = Sentence.none(words, Binary("\\", inner, outer))
        self.facts.append(said)
        if step:
            self.steps.append(said)


def _closures(expr: CatExpr) -> Iterator[Unary]:
    match expr:
        case Unary("+" | "*", operand):
            yield Unary("+", operand)
            yield from _closures(operand)
        case Unary(_, operand) | Bracket(operand):
            yield from _closures(operand)
        case Binary(_, left, right):
            yield from _closures(left)
            yield from _closures(right)


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


def node_kind(spec: Spec) -> NodeKind:
    """What the nodes are where a spec is judged."""
    if needs_operations(spec):
        return "operations"
    return "reads" if needs_reads(spec) else "transactions"


def compose(*parts: CatExpr, op: BinaryOp = ";") -> CatExpr:
    """One after the other."""
    return reduce(lambda left, right: Binary(op, left, right), parts)


def replace_orders(expr: CatExpr, orders: Mapping[str, CatExpr]) -> CatExpr:
    """The expression with other relations instead of some names."""
    match expr:
        case Name(name):
            return orders.get(name, expr)
        case Bracket(operand):
            return Bracket(replace_orders(operand, orders))
        case Unary(op, operand):
            return Unary(op, replace_orders(operand, orders))
        case Binary(op, left, right):
            return Binary(op, replace_orders(left, orders), replace_orders(right, orders))


def restrict(expr: CatExpr, kind: NodeKind) -> CatExpr:
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
            return Bracket(restrict(operand, kind))
        case Unary("~", operand):
            return Binary("\\", there, restrict(operand, kind))
        case Unary("?", operand):
            return Binary("|", Bracket(there), restrict(operand, kind))
        case Unary("*", operand):
            return Binary("|", Bracket(there), Unary("+", restrict(operand, kind)))
        case Unary(op, operand):
            return Unary(op, restrict(operand, kind))
        case Binary(op, left, right):
            return Binary(op, restrict(left, kind), restrict(right, kind))


def _restricted(name: str, kind: NodeKind) -> CatExpr:
    relation, served = Name(name), Bracket(Name("Served"))
    if kind == "transactions" and name in FROM_INITIAL:
        inside = Bracket(THERE[kind])
        return compose(inside, relation, inside)
    if kind == "reads" and name == "in":
        return compose(served, relation)
    if kind == "reads" and name == "po":
        return compose(served, relation, served)
    return relation
