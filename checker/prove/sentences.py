"""SMT-LIB sentences about the nodes of a dependency graph of any size.

Relations and sets are predicates of nodes. The same text is the question to the solver and the
certificate.

The closure r+ is a predicate of its own, and so is ``MISSED``, with these facts about it: it
contains r, is transitive, and begins and ends with a step of r. That it lies in every transitive
relation that contains r is a lemma where it is needed. All of this holds of the closure, so that
every consequence holds of it.

Graphs with fewer nodes are parts of those whose nodes are all operations, and the relations of a
spec are restricted to them. If transactions are the only nodes, relations are between transactions
without T0. If reads are nodes, ``in`` and ``po`` are restricted to reads with a source outside of
their transaction, and identity relations to the nodes present.
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

SAME = Unary("?", Binary("\\", Name("so"), Name("so")))
"""Identity relation, as the reflexive closure of the empty relation."""
EVERY = Name("every")
"""Relation of every node to every node."""
MISSED = Binary(";", Name("rw"), Unary("*", Name("ww")))
"""Relation from a reader to each writer of the next or a later version of what it read."""


class Sentence:
    """Closed sentence with the names of its predicates."""

    def __init__(self, words: str, text: str, exprs: Iterable[CatExpr]) -> None:
        self.words, self.text = words, text
        self.exprs = tuple(exprs)
        self.names = frozenset(
            name for name in names_in(self.exprs, {}) if Name(name).kind == "relation"
        )

    @classmethod
    def none(cls, words: str, expr: CatExpr) -> Sentence:
        """Return the sentence that a relation is empty."""
        texts = [_none(case) for case in union_branches(expr)]
        return cls(words, texts[0] if len(texts) == 1 else f"(and {' '.join(texts)})", [expr])

    @classmethod
    def some(cls, words: str, expr: CatExpr) -> Sentence:
        """Return the sentence that a relation is not empty."""
        return cls(words, f"(not {_none(expr)})", [expr])


def law_sentence(law: Law) -> Sentence:
    """Return a law as a sentence."""
    given = [_holds(relation(text), i, j, 0) for i, text, j in law.given]
    then = [_holds(relation(text), i, j, 0) for i, text, j in law.then]
    nodes = " ".join(f"({node} Node)" for node in law.nodes)
    text = f"(forall ({nodes}) (=> (and true {' '.join(given)}) (or false {' '.join(then)})))"
    return Sentence(law.sentence, text, law.relations)


def question_text(sentences: Sequence[Sentence]) -> str:
    """Return the SMT-LIB text that asks whether the sentences are satisfiable together."""
    exprs = [expr for one in sentences for expr in one.exprs]
    declared = dict.fromkeys(part for expr in exprs for part in _predicates(expr))
    lines = ["(set-logic UF)", "(declare-sort Node 0)"]
    for symbol, arity in declared:
        lines.append(f"(declare-fun {symbol} ({' '.join(['Node'] * arity)}) Bool)")
    for one in sentences:
        lines += [f"; {printable(one.words)}", f"(assert {one.text})"]
    return "\n".join([*lines, "(check-sat)"]) + "\n"


def union_branches(expr: CatExpr) -> list[CatExpr]:
    """Return relations whose union is the expression.

    Separate statements about each are easier for the solver than one about all.
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
    """Return the sentence that a relation is empty; a difference is stated as an inclusion."""
    match expr:
        case Binary("&", left, right) if right == SAME:
            return f"(forall ((a Node)) (not {_holds(left, 'a', 'a', 0)}))"
        case Binary("\\", left, right):
            inner, outer = _holds(left, "a", "b", 0), _holds(right, "a", "b", 0)
            return f"(forall ((a Node) (b Node)) (=> {inner} {outer}))"
    return f"(forall ((a Node) (b Node)) (not {_holds(expr, 'a', 'b', 0)}))"


def _holds(expr: CatExpr, i: str, j: str, depth: int) -> str:
    """Return the formula that a relation leads from one node to another.

    `depth` is the number of variables of intermediate nodes that are in use.
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
    """Return the formula that node ``i`` is in a set."""
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
    """Return the symbol of a relation that is a predicate of its own, else None."""
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
    """Yield the predicates of an expression, each with its number of arguments."""
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
    """Closures that occur in expressions, and facts about them."""

    def __init__(self, exprs: Iterable[CatExpr]) -> None:
        found = dict.fromkeys(one for expr in exprs for one in _closures(expr))
        self.closures: tuple[Unary, ...] = tuple(found)
        self.facts: list[Sentence] = []
        self.steps: list[Sentence] = []
        for closure in self.closures:
            r = closure.operand
            self.say(f"{closure} contains its steps", r, closure)
            self.say(f"{closure} is transitive", Binary(";", closure, closure), closure)
            first, last = Binary(";", r, closure), Binary(";", closure, r)
            self.say(f"{closure} begins with a step", closure, Binary("|", r, first), step=True)
            self.say(f"{closure} ends with a step", closure, Binary("|", r, last), step=True)
        rw, ww = Name("rw"), Name("ww")
        self.say("who misses a version misses it", rw, MISSED)
        self.say("and the later ones", Binary(";", MISSED, Unary("+", ww)), MISSED)
        opened = Binary("|", rw, Binary(";", rw, Unary("+", ww)))
        self.say("and no others", MISSED, opened)

    def say(self, words: str, inner: CatExpr, outer: CatExpr, *, step: bool = False) -> None:
        """Add the fact that one relation lies in another."""
        said = Sentence.none(words, Binary("\\", inner, outer))
        self.facts.append(said)
        if step:
            self.steps.append(said)


def _closures(expr: CatExpr) -> Iterator[Unary]:
    """Yield the transitive closures in an expression, outer ones first; ``r*`` counts as ``r+``."""
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
"""Committed transactions, including T0."""
THERE: Mapping[NodeKind, CatExpr] = {
    "transactions": Binary("\\", TRANSACTION, INITIAL),
    "reads": Binary("|", TRANSACTION, Name("External")),
}
"""Nodes of each kind of graph, as a set."""
FROM_INITIAL = frozenset({"so", "wr", "co", "vis"})
"""Relations that start at T0 where it is a node."""


def node_kind(spec: Spec) -> NodeKind:
    """Return the kind of nodes of the graphs in which a spec is judged."""
    if needs_operations(spec):
        return "operations"
    return "reads" if needs_reads(spec) else "transactions"


def compose(*parts: CatExpr, op: BinaryOp = ";") -> CatExpr:
    """Return the parts combined by an operator, by default composed one after the other."""
    return reduce(lambda left, right: Binary(op, left, right), parts)


def replace_orders(expr: CatExpr, orders: Mapping[str, CatExpr]) -> CatExpr:
    """Return the expression with relations substituted for names."""
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
    """Return the relation or set that an expression denotes in graphs of a kind.

    The expression must have no defined names.
    """
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
    """Return a relation restricted to the nodes that the graph of this kind has."""
    relation, served = Name(name), Bracket(Name("Served"))
    if kind == "transactions" and name in FROM_INITIAL:
        inside = Bracket(THERE[kind])
        return compose(inside, relation, inside)
    if kind == "reads" and name == "in":
        return compose(served, relation)
    if kind == "reads" and name == "po":
        return compose(served, relation, served)
    return relation
