"""Dependency graphs of statement instances as formulas: a protocol's verdict for all parameters.

The instances are two or three statements with unknown parameters and rows. A relation between two
instances is an unknown truth value that is bounded from both sides. It may hold only if some row
of the two coincides (``may``), and it has to if an assumed fact implies it (``sure``). A spec is
folded over these relations as over any other dependency graph, so differences and complements are
as sound as the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from isolitmus.checker.execution.commit_loop import NO_OP
from isolitmus.checker.judge.matrix_semantics import Matrices
from isolitmus.checker.solver.smt import fast_z3
from isolitmus.model.errors import SpecError
from isolitmus.model.format import never_retries
from isolitmus.model.spec import Fold
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix
    from isolitmus.jobs.templates.expression_formulas import RowTerm
    from isolitmus.jobs.templates.statement_template import Template
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Read, Statement


class TemplateRead(NamedTuple):
    """Read of a statement with parameters."""

    table: str
    """Table that is read."""
    matches: Callable[[RowTerm], Any]
    """Formula that the read matches a row."""
    recorded: Callable[[RowTerm], Any] | None = None
    """Formula that a row is in the read set of the commit check; None if the check has no read set.
    """
    files: bool = False
    """True if the commit check also knows the files in which the rows were."""
    every_file: bool = False
    """True if these are all files of the recorded partitions: data skipping excludes none."""
    outside: bool = False
    """True if the client reads before the transaction starts."""
    removed: bool = False
    """True if the statement removes or changes every row that this read matches."""
    surely: Callable[[RowTerm], Any] | None = None
    """Formula of the rows that are certainly recorded; None if none are."""
    doubtful: bool = False
    """True if perhaps not all of the read set is recorded."""


class TableHeader(Protocol):
    """Metadata of the table of an instance, as its table format sees them.

    They are one of finitely many; their number is unknown.
    """

    @property
    def state(self) -> Any:
        """Their number, as a term; 0 for those that are declared."""
        ...

    @property
    def varies(self) -> bool:
        """True if there are several."""
        ...

    @property
    def bounds(self) -> Sequence[Any]:
        """Formulas that the number is one with which the instance does not fail."""
        ...

    def follows(self, winner: Any) -> Sequence[Any]:
        """Return formulas that they are those that a winning commit on the table has read."""
        ...

    def alterations_to(self, state: int) -> Sequence[tuple[str, bool]]:
        """Return statements that lead to them, each with whether the table loses its rows."""
        ...

    @property
    def shown(self) -> Any:
        """Formula that an example can begin with them."""
        ...

    def relation(self, name: str, winner: Any) -> Any:
        """Return the condition for a relation of `HEADERS` from a winning commit; it is exact."""
        ...

    def retried(self, winner: Any) -> tuple[Any, Any]:
        """Return the conditions that the instance may commit after a winning commit, and that it
        may be a no-op then.
        """
        ...


class Instance(Protocol):
    """Instance of a statement, as its table format sees it.

    Conditions are Z3 formulas over the unknowns of the instances.
    """

    template: Template

    @property
    def header(self) -> TableHeader:
        """Metadata of the table that it writes to."""
        ...

    @property
    def parts(self) -> Sequence[object]:
        """Statements and conditions from which the formulas are built."""
        ...

    @property
    def reads(self) -> Sequence[TemplateRead]:
        """Reads of the statement, row by row, including those that no commit check records."""
        ...

    def sets(self) -> Mapping[str, Any]:
        """Return, by name, the formulas that the instance belongs to a set of a graph."""
        ...

    def may(self, relation: str, winner: Instance) -> Any | None:
        """Return a necessary condition for a relation from a winning commit to this instance.

        None if the table format does not define the relation.
        """
        ...

    def must(self, relation: str, winner: Instance, *, alone: bool) -> Any:
        """Return a sufficient condition for a relation from a winning commit, for any table.

        With ``alone``, no other transaction commits meanwhile, so that this instance has found
        every row that the winning commit finds.
        """
        ...

    def sure(self, relation: str, winner: Instance, fact: AssumedChange) -> Any:
        """Return a sufficient condition for a relation from a winning commit, given a fact."""
        ...

    def without(
        self, relation: str, winner: Instance, *, measured: bool = False
    ) -> tuple[str, Any] | None:
        """Return another relation, and the condition for this one to hold without that one.

        None if this relation may always hold without another. With ``measured``, each file has
        statistics, and of all its rows, as in a litmus test.
        """
        ...

    @property
    def items(self) -> Mapping[str, ItemAccess]:
        """Items besides rows that it reads or writes, by name: the definition of a table."""
        ...

    @property
    def persists(self) -> str | None:
        """Relation without which the statement retries by itself instead of aborting, if any."""
        ...

    @property
    def writes(self) -> Any:
        """Formula that its commit is recorded, with rows or metadata that it changed."""
        ...

    @property
    def known(self) -> Sequence[Any]:
        """Formulas that hold of the instance in any case."""
        ...

    @property
    def busy(self) -> Any:
        """Formula that there is some row for it to write, or to write for."""
        ...


@dataclass(frozen=True, slots=True)
class InstanceBuilder:
    """Constructor of the instances of a table format."""

    name: str
    """Name of the format."""
    instance: Callable[[Template, Sequence[Read], Sequence[str], tuple[Statement, ...]], Instance]
    """Return the instance of a statement, given the queries of its client, tables of which any row
    may matter, and the statements of all jobs that alter its table.
    """


class ItemAccess(NamedTuple):
    """Formulas that a statement reads an item that is no row, and that it writes it."""

    reads: Any
    writes: Any


class AssumedChange(NamedTuple):
    """Assumed fact: an instance changed what another reads: a row, or an item that is no row."""

    kind: Literal["came", "went", "item"]
    """"came" for a row that was inserted, "went" for a row that was there before."""
    writer: int
    """Index of the instance that inserted, removed or changed the row."""
    reader: int
    """Index of the instance that has read the row, or would have."""
    row: RowTerm
    """The row; empty for an item."""
    read: TemplateRead
    """Read that the row matches."""
    when: Any = None
    """Condition under which the fact is assumed; None if in any case."""
    sources: tuple[tuple[Any, str, RowTerm], ...] = ()
    """Rows from which the writer made the new row: condition, table and row of each."""


class Bit:
    """Formula as an entry of a Boolean matrix, built lazily; equal only to itself as an object."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    @property
    def formula(self) -> Any:
        """Z3 formula of the entry."""
        return self._make()


class _Bits:
    """Boolean algebra of matrix entries that are formulas; constants are simplified."""

    def __init__(self) -> None:
        self.z3: Any = fast_z3()
        self.true = Bit(lambda: self.z3.BoolVal(True))
        self.false = Bit(lambda: self.z3.BoolVal(False))

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
        """Return the conjunction: constants are simplified, the formula is built on demand."""
        left = [part for part in parts if part is not self.true]
        if any(part is self.false for part in left):
            return self.false
        if len(left) < 2:
            return left[0] if left else self.true
        return Bit(lambda: self.z3.And(*(part.formula for part in left)))

    def disj(self, parts: Iterable[Bit]) -> Bit:
        """Return the disjunction: constants are simplified, the formula is built on demand."""
        left = [part for part in parts if part is not self.false]
        if any(part is self.true for part in left):
            return self.true
        if len(left) < 2:
            return left[0] if left else self.false
        return Bit(lambda: self.z3.Or(*(part.formula for part in left)))


NONE = ("so", "writes-read-app")
"""Relations that never hold between jobs, each in a session of its own."""
HEADERS = ("same-domain", "protocol-clashes", "metadata-clashes")
"""Relations that only the metadata of a table decide."""
LOGGED = ("log", "vis", "unseen")
DEPENDENCIES = ("wr", "ww", "rw")


@dataclass
class SymbolicFrame:
    """Dependency graph, as formulas, of instances in log order with given snapshots.

    The entries of its relations are unknown truth values.
    """

    instances: Sequence[Instance]
    """Instances in the order of the log."""
    seen: frozenset[tuple[int, int]] = frozenset()
    """Pairs (earlier, later) of indices such that the later instance sees the earlier one."""
    facts: Sequence[AssumedChange] = ()
    """Assumed facts."""
    alone: bool = False
    """True if no other transaction commits after the snapshot of the first instance."""
    given: list[Any] = field(default_factory=list)
    """Bounds of the unknowns; no formula of the graph has a meaning without them."""
    _folds: dict[str, tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]] = field(
        default_factory=dict
    )

    def stops(self, spec: Spec, loser: int) -> list[tuple[str, Any]]:
        """Return the axioms of a protocol that the commit of an instance may violate.

        Parameters
        ----------
        spec : Spec
            Commit protocol.
        loser : int
            Index of the instance.

        Returns
        -------
        list of (str, formula)
            Name of the exception, and the condition for it.
        """
        bits, fold = self._folded(spec)
        found = []
        for axiom in spec.axioms:
            column = [row[loser] for row in fold.relation(axiom.expr) if loser in row]
            said = bits.disj(column)
            if said is not bits.false:
                found.append((axiom.name, self._final(said.formula, spec, loser)))
        return found

    def _final(self, stop: Any, spec: Spec, loser: int) -> Any:
        """Return when a conflict ends an instance, which may retry by itself.

        Among several commits, an instance stands for its last attempt, which has seen more.
        """
        relation = self.instances[loser].persists
        if (
            not self.alone
            or relation is None
            or spec.format is None
            or format_named(spec.format).retries is never_retries
        ):
            return stop
        bits, _ = self._folded(spec)
        winners = [
            bit
            for i in range(loser)
            if (i, loser) not in self.seen
            and (bit := self._pair(relation, i, loser, bits, spec)) is not bits.false
        ]
        return bits.z3.And(stop, bits.disj(winners).formula)

    def dropped(self, spec: Spec, instance: int) -> Any:
        """Return the formula that, under a protocol, the commit of an instance is not recorded."""
        bits, fold = self._folded(spec)
        said = [fold.members(one.expr)[instance] for one in spec.labels if one.name == NO_OP]
        return bits.disj(said).formula

    def _folded(self, spec: Spec) -> tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]:
        """Return the fold of a spec over the graph, computed once per spec name."""
        if spec.name not in self._folds:
            self._folds[spec.name] = self._fold(spec)
        return self._folds[spec.name]

    def _fold(self, spec: Spec) -> tuple[_Bits, Fold[BooleanMatrix[Bit], list[Bit]]]:
        """Return the algebra and the evaluation of a spec; raise SpecError if jobs lack a set."""
        bits = _Bits()
        sets = [instance.sets() for instance in self.instances]
        names = sorted(spec.needs)
        lacking = [n for n in names if n[0].isupper() and any(n not in one for one in sets)]
        if lacking:
            raise SpecError(f"{spec.name} needs {', '.join(lacking)}, which jobs do not have")
        every = {n: [bits.of(one[n]) for one in sets] for n in names if n[0].isupper()}
        relations = {n: self._matrix(n, bits, spec) for n in names if not n[0].isupper()}
        exists = [bits.true] * len(self.instances)
        for k, instance in enumerate(self.instances):
            if instance.template.target is not None:
                self.given += instance.header.bounds
            if self.alone and k and self._one_table(0, k):
                self.given += instance.header.follows(self.instances[0].header)
        return bits, Fold(Matrices(bits, exists, relations, every), spec.definitions)

    def _matrix(self, name: str, bits: _Bits, spec: Spec) -> list[dict[int, Bit]]:
        """Return a relation as one row per instance, without pairs that are constantly false."""
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
        """Return the bit of a pair: a constant if snapshots or tables decide it, else unknown."""
        if i == j or name in NONE:
            return bits.false
        if name in LOGGED:
            there = i < j and (name == "log" or ((i, j) in self.seen) == (name == "vis"))
            return (
                bits.true if there and (name != "unseen" or self._one_table(i, j)) else bits.false
            )
        if name not in DEPENDENCIES and not self._one_table(i, j):
            return bits.false
        if name in HEADERS:
            return bits.of(self.instances[j].header.relation(name, self.instances[i].header))
        return Bit(lambda: self._unknown(name, i, j, spec))

    def _unknown(self, name: str, i: int, j: int, spec: Spec) -> Any:
        """Return the unknown for a pair of a relation, and add its bounds to `given`."""
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

    def alone_in_tests(self, name: str, i: int, j: int) -> tuple[Any, Any]:
        """Return that a relation holds without another one, and when it may in a litmus test.

        In a litmus test each file has statistics.
        """
        first, second = self.instances[i], self.instances[j]
        z3 = first.template.z3
        one_table = self._one_table(i, j)
        found = second.without(name, first, measured=True) if one_table else None
        if found is None:
            return z3.BoolVal(False), z3.BoolVal(True)
        other, when = found
        return z3.And(z3.Bool(f"{name} {i} {j}"), z3.Not(z3.Bool(f"{other} {i} {j}"))), when

    def _one_table(self, i: int, j: int) -> bool:
        a, b = (self.instances[k].template.target for k in (i, j))
        return a is not None and b is not None and a.name == b.name

    def depends(self, kind: str, i: int, j: int) -> Any:
        """Return a necessary condition for a dependency of kind wr, ww or rw between two instances.

        It says that some row is read by one and written by the other, or written by both.
        """
        a, b = self.instances[i], self.instances[j]
        z3 = a.template.z3
        if kind == "ww":
            return z3.Or(*_overwritten(a, b), *items_of_both(a, b))
        reader, writer = (b, a) if kind == "wr" else (a, b)
        return z3.Or(*(met for _, met in may_miss(reader, writer)))


def may_miss(reader: Instance, writer: Instance) -> list[tuple[AssumedChange, Any]]:
    """Return the ways in which a writer may change rows that a reader reads.

    Returns
    -------
    list of (AssumedChange, formula)
        The fact, with the reader as instance 0 and the writer as instance 1, and its condition.
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
    item = TemplateRead(table.name, lambda _: z3.BoolVal(False))
    both = items_of_both(writer, reader, read=True)
    return found + [(AssumedChange("item", 1, 0, (), item), formula) for formula in both]


def items_of_both(a: Instance, b: Instance, *, read: bool = False) -> list[Any]:
    """Return the conditions that two instances write one item that is no row.

    With ``read``, the second one reads it.
    """
    z3 = a.template.z3
    found = []
    for name in a.items.keys() & b.items.keys():
        writes, theirs = a.items[name].writes, b.items[name]
        other = theirs.reads if read else theirs.writes
        if not z3.is_false(writes) and not z3.is_false(other):
            found.append(z3.And(writes, other))
    return found


def _overwritten(a: Instance, b: Instance) -> list[Any]:
    """Return the ways in which `b` may overwrite a row that `a` wrote or removed."""
    first, second = a.template.target, b.template.target
    if first is None or second is None or first.name != second.name:
        return []
    row = b.template.terms.row(first, f"{first.name} that both write")
    z3 = a.template.z3
    return [z3.And(z3.Or(a.template.adds(row), a.template.removes(row)), b.template.removes(row))]
