"""Frames of instances as formulas: what a protocol says of two or three statements, whatever their
parameters.

A relation between two instances is an unknown truth value that is bounded: it may hold only if
something in the two does meet (``may``), and has to if a fact is supposed that makes it so
(``sure``). A spec is folded over that as over any other frame, so differences and complements are
as sound as the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from isolitmus.checker.execution.commit_loop import NO_OP
from isolitmus.checker.judge.matrix_semantics import Matrices
from isolitmus.model.errors import SpecError
from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix
    from isolitmus.checker.templates.expression_formulas import RowTerm
    from isolitmus.checker.templates.statement_template import Template
    from isolitmus.model.spec import Spec

__all__ = ["AssumedChange", "Instance", "SymbolicFrame", "TemplateRead"]


class TemplateRead(NamedTuple):
    """A read of a statement with parameters."""

    table: str
    """The table that it reads."""
    matches: Callable[[RowTerm], Any]
    """Whether it reads a row."""
    recorded: Callable[[RowTerm], Any] | None = None
    """Whether a row is in what the commit check knows that it read; None: it knows of nothing."""
    files: bool = False
    """The check knows the files, too, in which the rows were."""
    every_file: bool = False
    """These are all files of the partitions that are recorded: none is skipped for what it says of
    its rows.
    """
    outside: bool = False
    """The client reads it before the transaction starts."""
    removed: bool = False
    """The statement takes out, or changes, every row that it reads so."""
    surely: Callable[[RowTerm], Any] | None = None
    """What ``recorded`` says, where that is certain; None: it never is."""
    doubtful: bool = False
    """Perhaps not all of that is recorded."""


class Instance(Protocol):
    """One instance of a statement, as its format sees it."""

    template: Template

    @property
    def reads(self) -> Sequence[TemplateRead]:
        """What it reads, row by row; also what no commit check knows of."""
        ...

    def sets(self) -> Mapping[str, Any]:
        """In which sets of a frame it is, by name."""
        ...

    def may(self, relation: str, winner: Instance) -> Any | None:
        """A condition without which a relation of the format does not lead from a winner to it;
        None: the format does not say.
        """
        ...

    def must(self, relation: str, winner: Instance, *, alone: bool) -> Any:
        """A condition with which it does, whatever is in the table; ``alone``: nobody else commits
        meanwhile, so that what the winner finds the other one has found, too.
        """
        ...

    def sure(self, relation: str, winner: Instance, fact: AssumedChange) -> Any:
        """A condition with which it does, if the fact holds."""
        ...

    def without(self, relation: str, winner: Instance) -> tuple[str, Any] | None:
        """Another relation, and the condition on which this one leads from a winner to it without
        that one; None: it always may.
        """
        ...

    @property
    def writes(self) -> Any:
        """That its commit is recorded with rows that it changed."""
        ...

    @property
    def known(self) -> Sequence[Any]:
        """What holds of it in any case."""
        ...

    @property
    def busy(self) -> Any:
        """That there is some row for it to write, or to write for."""
        ...


class AssumedChange(NamedTuple):
    """What is supposed of two instances: that a row came, or went, which the other one has read."""

    kind: Literal["came", "went"]
    """Whether the row is one that was put in, or one that was there."""
    writer: int
    """Who put it in, took it out or changed it, by its place."""
    reader: int
    """Who has read it, or would have."""
    row: RowTerm
    """The row."""
    read: TemplateRead
    """By which of its reads."""
    when: Any = None
    """Under which condition it is supposed; None: in any case."""
    sources: tuple[tuple[Any, str, RowTerm], ...] = ()
    """Of which rows of which tables the writer made the row that came, each with the condition that
    it did so.
    """


class Bit:
    """A formula, as a Boolean of a matrix, made when it is asked for; two are one if they are the
    same object.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    @property
    def formula(self) -> Any:
        """The formula."""
        return self._make()


class _Bits:
    """Formulas as the Booleans of matrices."""

    def __init__(self) -> None:
        import z3

        self.z3: Any = z3
        self.true = Bit(lambda: z3.BoolVal(True))
        self.false = Bit(lambda: z3.BoolVal(False))

    def of(self, formula: Any) -> Bit:
        if self.z3.is_true(formula):
            return self.true
        return self.false if self.z3.is_false(formula) else Bit(lambda: formula)

    def neg(self, a: Bit) -> Bit:
        if a is self.true or a is self.false:
            return self.false if a is self.true else self.true
        return Bit(lambda: self.z3.Not(a.formula))

    def both(self, a: Bit, b: Bit) -> Bit:
        return self.conj((a, b))

    def conj(self, parts: Iterable[Bit]) -> Bit:
        left = [part for part in parts if part is not self.true]
        if any(part is self.false for part in left):
            return self.false
        if len(left) < 2:
            return left[0] if left else self.true
        return Bit(lambda: self.z3.And(*(part.formula for part in left)))

    def disj(self, parts: Iterable[Bit]) -> Bit:
        left = [part for part in parts if part is not self.false]
        if any(part is self.true for part in left):
            return self.true
        if len(left) < 2:
            return left[0] if left else self.false
        return Bit(lambda: self.z3.Or(*(part.formula for part in left)))


NONE = ("so", "same-domain", "writes-read-app", "protocol-clashes", "metadata-clashes")
"""Relations that are never there between jobs that write rows, each in a session of its own."""
LOGGED = ("log", "vis", "unseen")
DEPENDENCIES = ("wr", "ww", "rw")


@dataclass
class SymbolicFrame:
    """Instances in the order of the log, each of which has seen some of those before it.

    Its formulas are about unknown truth values.
    """

    instances: Sequence[Instance]
    """Who they are."""
    seen: frozenset[tuple[int, int]] = frozenset()
    """Who is seen by whom: (earlier, later)."""
    facts: Sequence[AssumedChange] = ()
    """What is supposed."""
    alone: bool = False
    """Nobody else commits from the first one's snapshot on."""
    given: list[Any] = field(default_factory=list)
    """What bounds the unknowns: without it no formula of the frame says anything."""
    _folds: dict[str, tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]] = field(
        default_factory=dict
    )

    def stops(self, spec: Spec, loser: int) -> list[tuple[str, Any]]:
        """For each axiom of a protocol that it breaks if this instance commits: the exception, and
        when.
        """
        bits, fold = self._folded(spec)
        found = []
        for axiom in spec.axioms:
            column = [row[loser] for row in fold.relation(axiom.expr) if loser in row]
            said = bits.disj(column)
            if said is not bits.false:
                found.append((axiom.name, said.formula))
        return found

    def dropped(self, spec: Spec, instance: int) -> Any:
        """That a protocol says of an instance's commit that it is not recorded."""
        bits, fold = self._folded(spec)
        said = [fold.members(one.expr)[instance] for one in spec.labels if one.name == NO_OP]
        return bits.disj(said).formula

    def _folded(self, spec: Spec) -> tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]:
        """The frame for the text of a spec, made once."""
        if spec.name not in self._folds:
            self._folds[spec.name] = self._fold(spec)
        return self._folds[spec.name]

    def _fold(self, spec: Spec) -> tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]:
        bits = _Bits()
        sets = [instance.sets() for instance in self.instances]
        names = sorted(spec.needs)
        lacking = [n for n in names if n[0].isupper() and any(n not in one for one in sets)]
        if lacking:
            raise SpecError(f"{spec.name} needs {', '.join(lacking)}, which jobs do not have")
        every = {n: [bits.of(one[n]) for one in sets] for n in names if n[0].isupper()}
        relations = {n: self._matrix(n, bits, spec) for n in names if not n[0].isupper()}
        exists = [bits.true] * len(self.instances)
        return bits, Fold(Matrices(bits, exists, relations, every), spec.definitions)

    def _matrix(self, name: str, bits: _Bits, spec: Spec) -> list[dict[int, Bit]]:
        n = len(self.instances)
        return [
            {
                j: bit
                for j in range(n)
                if (bit := self._pair(name, i, j, bits, spec)) is not bits.false
            }
            for i in range(n)
        ]

    def _pair(self, name: str, i: int, j: int, bits: _Bits, spec: Spec) -> Bit:
        if i == j or name in NONE:
            return bits.false
        if name in LOGGED:
            there = i < j and (name == "log" or ((i, j) in self.seen) == (name == "vis"))
            return (
                bits.true if there and (name != "unseen" or self._one_table(i, j)) else bits.false
            )
        if name not in DEPENDENCIES and not self._one_table(i, j):
            return bits.false
        return Bit(lambda: self._unknown(name, i, j, spec))

    def _unknown(self, name: str, i: int, j: int, spec: Spec) -> Any:
        """An unknown that stands for a pair of a relation, and what bounds it."""
        first, second = self.instances[i], self.instances[j]
        z3 = first.template.z3
        may = self.depends(name, i, j) if name in DEPENDENCIES else second.may(name, first)
        if may is None:
            raise SpecError(f"{spec.name} needs {name}, which jobs do not have")
        holds = z3.Bool(f"{name} {i} {j}")
        self.given.append(z3.Implies(holds, may))
        if name not in DEPENDENCIES:
            self.given.append(z3.Implies(second.must(name, first, alone=self.alone), holds))
            self.given += first.known
            if (found := second.without(name, first)) is not None:
                other, alone = found
                self.given.append(z3.Implies(holds, z3.Or(z3.Bool(f"{other} {i} {j}"), alone)))
        for fact in self.facts:
            when = z3.BoolVal(True) if fact.when is None else fact.when
            if name == "rw" and (fact.reader, fact.writer) == (i, j):
                self.given.append(z3.Implies(when, holds))
            if (fact.writer, fact.reader) == (i, j) and name not in DEPENDENCIES:
                self.given.append(z3.Implies(z3.And(when, second.sure(name, first, fact)), holds))
        return holds

    def _one_table(self, i: int, j: int) -> bool:
        a, b = (self.instances[k].template.target for k in (i, j))
        return a is not None and b is not None and a.name == b.name

    def depends(self, kind: str, i: int, j: int) -> Any:
        """That the one may depend on the other: some row that one reads and the other writes, or
        both write.
        """
        a, b = self.instances[i], self.instances[j]
        z3 = a.template.z3
        if kind == "ww":
            return z3.Or(*_overwritten(a, b))
        reader, writer = (b, a) if kind == "wr" else (a, b)
        return z3.Or(*(met for _, met in may_miss(reader, writer)))


def may_miss(reader: Instance, writer: Instance) -> list[tuple[AssumedChange, Any]]:
    """The ways in which a writer may change what a reader reads: the fact, as of instances 0 and 1,
    and when it is one.
    """
    table = writer.template.target
    if table is None:
        return []
    z3 = reader.template.z3
    found = []
    for read in reader.reads:
        if read.table != table.name:
            continue
        came = reader.template.terms.row(table, f"{table.name} that came")
        went = reader.template.terms.row(table, f"{table.name} that went")
        ways = [
            (writer.template.terms.choice("made so"), way)
            for way in writer.template.additions(came)
        ]
        made = z3.Or(*(z3.And(chosen, way.when) for chosen, way in ways))
        sources = tuple((chosen, *source) for chosen, way in ways for source in way.sources)
        found += [
            (
                AssumedChange("came", 1, 0, came, read, sources=sources),
                z3.And(read.matches(came), made),
            ),
            (
                AssumedChange("went", 1, 0, went, read),
                z3.And(read.matches(went), writer.template.removes(went)),
            ),
        ]
    return found


def _overwritten(a: Instance, b: Instance) -> list[Any]:
    """The ways in which the one may overwrite what the other wrote."""
    first, second = a.template.target, b.template.target
    if first is None or second is None or first.name != second.name:
        return []
    row = b.template.terms.row(first, f"{first.name} that both write")
    z3 = a.template.z3
    return [z3.And(z3.Or(a.template.adds(row), a.template.removes(row)), b.template.removes(row))]
