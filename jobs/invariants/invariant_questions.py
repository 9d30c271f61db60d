"""Questions whose answers decide an invariant of a workload, as formulas.

If the formulas of all questions are unsatisfiable, each version of the tables satisfies the
invariant (docs/semantics.md, theorem 14). Each question is about the rows that one statement adds
to a table that satisfies the assumed invariants: beside a row that it keeps, beside another one
that it adds, or beside one of a commit that it does not see.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from isolitmus.jobs.invariant import GroupLimit, Invariant
from isolitmus.jobs.questions.counterexamples import MOST
from isolitmus.jobs.questions.simple_examples import QuestionSolver
from isolitmus.jobs.templates.instance_frames import AssumedChange, SymbolicFrame
from isolitmus.jobs.templates.statement_template import are_equal
from isolitmus.model.sql.expression import (
    TRUE,
    Aggregate,
    And,
    Compare,
    Const,
    IsNull,
    Not,
    conjuncts,
)
from isolitmus.model.sql.query import Select
from isolitmus.model.sql.statement import Insert, Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.jobs.questions.instances import Instances, Participant
    from isolitmus.jobs.templates.expression_formulas import RowTerm, Terms
    from isolitmus.jobs.templates.statement_template import Addition
    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.schema import Schema

Kind = TypeVar("Kind", bound=Invariant)


class InvariantQuestion(NamedTuple):
    """Question whose formulas hold if an invariant may be violated."""

    about: str
    """Statements in words."""
    roles: tuple[Participant, ...]
    formulas: tuple[Any, ...]
    at_once: tuple[Any, ...] = ()
    """Formulas that hold as well if the client has read the version that the statement changes."""
    wanted: Any = None
    """Formula of rows with which a violation is more likely."""


class AddedRow(NamedTuple):
    """Row that a statement adds, and the way in which it does."""

    row: RowTerm
    way: Addition
    number: int
    """Number of the way; ways with different numbers add different rows."""
    required: tuple[tuple[str, RowTerm], ...] = ()
    """Rows without which it is not added, each with its table."""


class ClientRow(NamedTuple):
    """Row that a statement's client reads before."""

    table: str
    row: RowTerm
    told: Any
    """Formula that the value read tells that there is such a row."""
    there: Any
    """Formula that holds of the row, if there is one."""


def table_writers(workload: Workload, table: str) -> list[JobStatement]:
    """Return the statements that write to a table."""
    return [
        one
        for one in workload.statements
        if not isinstance(one.statement, Read) and one.statement.target == table
    ]


class InvariantQuestions(Generic[Kind]):
    """Questions about one kind of invariants of a workload under a protocol.

    Parameters
    ----------
    instances : Instances
        Statements of the workload.
    spec : Spec
        Commit protocol.
    assumed : sequence of Invariant
        Invariants that the tables of every version satisfy.

    Attributes
    ----------
    needs_pairs : bool
        Whether the proof also needs that no two concurrent statements violate the invariant.
    lemmas : list of (InvariantQuestion, QuestionSolver)
        Further questions, proved impossible, on which the others depend.
    lasting : set of str
        Statements whose clients count rows that cannot be more when the statement commits.
    """

    needs_pairs = True

    def __init__(self, instances: Instances, spec: Spec, assumed: Sequence[Invariant]) -> None:
        self.instances = instances
        self.workload = instances.workload
        self.spec = spec
        self.assumed = assumed
        self.z3 = instances.everybody.z3
        self.lemmas: list[tuple[InvariantQuestion, QuestionSolver]] = []
        self.lasting: set[str] = set()
        self._groups: dict[tuple[str, str, str, int], bool] = {}

    @abstractmethod
    def alone(self, invariant: Kind) -> Iterator[InvariantQuestion]:
        """Yield the questions whether one statement violates the invariant by itself."""

    @abstractmethod
    def pairs(self, invariant: Kind) -> Iterator[InvariantQuestion]:
        """Yield the questions whether a statement and a commit that it does not see violate it."""

    def _additions(self, role: Participant, invariant: Kind, word: str) -> Iterator[AddedRow]:
        """Yield the rows that a statement adds to the table, one for each way."""
        template = role.instance.template
        statement = template.statement
        streams = isinstance(statement, Insert) and statement.options.stream
        row = _row(role.terms, self._schema(invariant), word)
        for number, way in enumerate(template.additions(row)):
            if streams:
                way = way._replace(limits=(), required=())  # noqa: PLW2901 - of another version
            required = [
                (
                    one.table,
                    role.terms.row(self.workload.tables[one.table], f"that is required {k}"),
                )
                for k, one in enumerate(way.required)
            ]
            yield AddedRow(row, way, number, tuple(required))

    def _schema(self, invariant: Kind) -> Schema:
        return self.workload.tables[invariant.table]

    def _counted(self, role: Participant, invariant: Kind, added: AddedRow) -> tuple[Any, ...]:
        """Return the formulas that a row is added and counts; the rows that it is made of satisfy
        the assumed invariants.
        """
        read = (*added.way.sources, *added.required)
        facts = [self._satisfies(role, table, row) for table, row in read]
        facts += [
            one.holds(table, row)
            for one, (table, row) in zip(added.way.required, added.required, strict=True)
        ]
        return added.way.when, role.terms.holds(invariant.where, (added.row,)), *facts

    def _joins(self, role: Participant, invariant: Kind, added: AddedRow) -> tuple[Any, ...]:
        """Return the formula that the changed row, if any, did not count for the same values."""
        before = added.way.replaced
        if before is None:
            return ()
        z3 = self.z3
        counted = role.terms.holds(invariant.where, (before,))
        return (z3.Not(z3.And(counted, self._agree(role, invariant, before, added.row))),)

    def _agree(self, role: Participant, invariant: Kind, a: RowTerm, b: RowTerm) -> Any:
        """Return the formula that two rows have the same values in the invariant's columns."""
        return are_equal(role.terms, a, b, dict.fromkeys(invariant.columns))

    def _client_reads(self, role: Participant) -> Iterator[ClientRow]:
        """Yield a row of each query of a statement's client, as far as its value tells of one.

        A count above 0 and a value other than NULL come from a row: that of a minimum, a maximum or
        a selected column has this value.
        """
        z3, terms = self.z3, role.terms
        for name, read in role.statement.let.items():
            match read.query:
                case (Select(items=(item,), keys=(), version=None) as branch,):
                    schema = self.workload.tables[branch.table]
                    row = terms.row(schema, f"that the client reads for {name}")
                    given, there = terms.parameters[name], terms.holds(branch.where, (row,))
                    told = z3.Not(given.null)
                    if isinstance(item, Aggregate) and item.function == "count":
                        told = z3.And(told, given.value >= 1)
                    elif not isinstance(item, Aggregate) or item.function in ("min", "max"):
                        operand = item.operand if isinstance(item, Aggregate) else item
                        assert operand is not None
                        value = terms.value(operand, (row,))
                        if value.value.sort() == given.value.sort():
                            there = z3.And(there, are_equal(terms, (value,), (given,)))
                    yield ClientRow(branch.table, row, told, there)

    def _reading(self, *roles: Participant) -> Any:
        """Return the formula that each query of the clients of statements reads a row."""
        read = (row for role in roles for row in self._client_reads(role))
        return self.z3.And(*(self.z3.And(one.told, one.there) for one in read))

    def _satisfies(self, role: Participant, table: str, row: RowTerm) -> Any:
        """Return the formula that a row may be in a table that satisfies the assumed invariants."""
        z3 = self.z3
        return z3.And(
            *(
                z3.Not(role.terms.holds(one.where, (row,)))
                for one in self.assumed
                if isinstance(one, GroupLimit) and one.table == table and one.most == 0
            )
        )


class GroupLimitQuestions(InvariantQuestions[GroupLimit]):
    """Questions whether there may be too many rows in a group."""

    def alone(self, invariant: GroupLimit) -> Iterator[InvariantQuestion]:
        """Yield the questions whether one statement violates the invariant by itself."""
        for one in table_writers(self.workload, invariant.table):
            role = self.instances.role(one, one.name)
            ways = list(self._additions(role, invariant, "new"))
            for added in ways:
                if invariant.most == 1:
                    yield self._beside_kept(role, invariant, added)
                else:
                    yield self._beside_many(role, invariant, added)
            if invariant.most:
                again = list(self._additions(role, invariant, "another"))
                for first, second in combinations_with_replacement(range(len(ways)), 2):
                    found = self._added_twice(role, invariant, ways[first], again[second])
                    if found is not None:
                        yield found

    def _full(self, role: Participant, invariant: GroupLimit, added: AddedRow, many: int) -> Any:
        """Return the formula that there are many rows beside an added one: rows that are kept, and
        others that the statement adds in the same way.
        """
        z3, many = self.z3, min(many, MOST)
        kept = self._kept_rows(role, invariant, added, many)
        if not added.way.identity and added.way.replaced is None:
            return z3.And(*kept)
        made, every = [], [added]
        for k in range(many):
            ways = list(self._additions(role, invariant, f"{invariant.table} added {k}"))
            other = ways[added.number]
            made.append(
                z3.And(
                    *self._counted(role, invariant, other),
                    self._agree(role, invariant, other.row, added.row),
                    *(self._unlike(role, one, other) for one in every),
                )
            )
            every.append(other)
        splits = range(many + 1)
        return z3.Or(*(z3.And(*kept[:k], *made[: many - k]) for k in splits))

    def _kept_rows(
        self, role: Participant, invariant: GroupLimit, added: AddedRow, many: int
    ) -> list[Any]:
        """Return for each of several rows the formula that it is kept, counts, and is another one.

        The limits of the added row count only as many of them as they allow.
        """
        schema, z3 = self._schema(invariant), self.z3
        rows = [role.terms.row(schema, f"{schema.name} beside {k}") for k in range(many)]
        return [
            z3.And(
                role.terms.holds(invariant.where, (row,)),
                self._agree(role, invariant, row, added.row),
                role.instance.template.keeps(row),
                *(z3.Not(are_equal(role.terms, row, before)) for before in rows[:k]),
                *(z3.Not(one.rows(schema.name, row)) for one in added.way.limits if one.most <= k),
            )
            for k, row in enumerate(rows)
        ]

    def _differ(self, role: Participant, table: str, a: RowTerm, b: RowTerm) -> Any:
        """Return the formula that two rows may be different rows of a table that satisfies the
        assumed invariants.
        """
        z3, found = self.z3, []
        for one in self.assumed:
            if isinstance(one, GroupLimit) and one.table == table and one.most == 1:
                both = (role.terms.holds(one.where, (row,)) for row in (a, b))
                found.append(z3.Not(z3.And(*both, self._agree(role, one, a, b))))
        for keys in self.workload.keys.get(table, ()):
            same = are_equal(role.terms, a, b, dict.fromkeys(keys))
            found.append(z3.Not(same))
        return z3.And(*found)

    def _beside_kept(
        self, role: Participant, invariant: GroupLimit, added: AddedRow
    ) -> InvariantQuestion:
        """Return the question whether a statement adds a row beside one that it keeps."""
        z3, template, terms = self.z3, role.instance.template, role.terms
        table = invariant.table
        kept = terms.row(self._schema(invariant), "that is kept")
        formulas = [
            *self._counted(role, invariant, added),
            template.keeps(kept),
            terms.holds(invariant.where, (kept,)),
            self._agree(role, invariant, kept, added.row),
            self._satisfies(role, table, kept),
            *(z3.Not(no(table, kept)) for no in added.way.excluded),
            *self._leaves(role, added, kept),
        ]
        if added.way.replaced is not None:
            formulas.append(self._differ(role, table, kept, added.way.replaced))
        at_once, likely = (
            tuple(
                z3.Or(enough, z3.Not(terms.holds(where, (kept,))))
                for enough, where in self._client_counts(role, invariant, certain=certain)
            )
            for certain in (True, False)
        )
        formulas += self._counted_before(role, invariant, added)
        wanted = z3.And(*likely) if likely else None
        return InvariantQuestion(role.name, (role,), tuple(formulas), at_once, wanted)

    def _beside_many(
        self, role: Participant, invariant: GroupLimit, added: AddedRow
    ) -> InvariantQuestion:
        """Return the question whether a statement adds a row beside as many as the invariant
        allows.

        It does not if a limit of the snapshot is lower, and counts all rows that the invariant
        counts for the same values.
        """
        z3, terms, table = self.z3, role.terms, invariant.table
        formulas = [*self._counted(role, invariant, added), *self._joins(role, invariant, added)]

        def missed(number: int, counts: Callable[[RowTerm], Any]) -> Any:
            kept = terms.row(self._schema(invariant), f"that count {number} misses")
            return z3.And(
                role.instance.template.keeps(kept),
                terms.holds(invariant.where, (kept,)),
                self._agree(role, invariant, kept, added.row),
                self._satisfies(role, table, kept),
                z3.Not(counts(kept)),
            )

        low = [one for one in added.way.limits if one.most < invariant.most]
        formulas += [missed(number, partial(limit.rows, table)) for number, limit in enumerate(low)]
        at_once = tuple(
            z3.Or(enough, missed(number, partial(self._matches, role, where)))
            for number, (enough, where) in enumerate(self._client_counts(role, invariant), len(low))
        )
        formulas += self._counted_before(role, invariant, added)
        wanted = self._full(role, invariant, added, invariant.most)
        return InvariantQuestion(role.name, (role,), tuple(formulas), at_once, wanted)

    def _matches(self, role: Participant, where: Expr | None, row: RowTerm) -> Any:
        """Return the formula that a row satisfies a condition."""
        return role.terms.holds(where, (row,))

    def _counted_before(
        self, role: Participant, invariant: GroupLimit, added: AddedRow
    ) -> Iterator[Any]:
        """Yield what the client tells of the group of an added row, if no statement adds a row to
        that group while the job runs.

        The group had then at least as many rows when they were counted: as many as the invariant
        allows, unless the count misses one of them.
        """
        counts = list(self._client_counts(role, invariant))
        if not counts or any(
            self._joined(role.statement, other, invariant, added.number)
            for other in table_writers(self.workload, invariant.table)
            if self.workload.overlap(role.statement.job, other.job)
        ):
            return
        self.lasting.add(role.name)
        z3, terms = self.z3, role.terms
        for number, (enough, where) in enumerate(counts):
            row = terms.row(self._schema(invariant), f"that client count {number} misses")
            missed = z3.And(
                terms.holds(invariant.where, (row,)),
                self._agree(role, invariant, row, added.row),
                self._satisfies(role, invariant.table, row),
                z3.Not(terms.holds(where, (row,))),
            )
            yield z3.Or(enough, missed)

    def _joined(
        self, one: JobStatement, other: JobStatement, invariant: GroupLimit, number: int
    ) -> bool:
        """Return whether another statement may add a row to a group to which one adds a row."""
        key = one.name, other.name, invariant.name, number
        if key not in self._groups:
            last, first = self.instances.pair(one, other)
            own = list(self._additions(last, invariant, "new"))[number]
            asked = QuestionSolver((last, first))
            questions = [
                InvariantQuestion(
                    f"{other.name} while {one.name} runs",
                    (last, first),
                    (
                        *self._counted(first, invariant, new),
                        *self._joins(first, invariant, new),
                        *self._counted(last, invariant, own),
                        self._agree(last, invariant, new.row, own.row),
                    ),
                )
                for new in self._additions(first, invariant, "that joins")
            ]
            self._groups[key] = any(
                asked.possible(*question.formulas) is not False for question in questions
            )
            if not self._groups[key]:
                self.lemmas += [(question, asked) for question in questions]
        return self._groups[key]

    def _client_counts(
        self, role: Participant, invariant: GroupLimit, *, certain: bool = True
    ) -> Iterator[tuple[Any, Expr | None]]:
        """Yield what the client finds: the formula that it is as many rows as the invariant allows,
        and the condition on them.

        It may count rows, or look for one: a minimum, a maximum, or a value. If ``certain``, no row
        has this value as NULL; else another row may. The client of a job with several statements
        may have read before the first one.
        """
        z3, parameters = self.z3, role.terms.parameters
        if not invariant.most or len(self.workload.jobs[role.statement.job].statements) > 1:
            return
        for name, read in role.statement.let.items():
            match read.query:
                case (Select(items=(item,), keys=(), version=None) as branch,):
                    if branch.table != invariant.table or name not in parameters:
                        continue
                    found, where = parameters[name], branch.where
                    if item == Aggregate("count", None, item.type):
                        enough = found.value >= invariant.most
                        yield z3.And(z3.Not(found.null), enough), where
                    elif invariant.most == 1:
                        known = _known_rows(item, where, certain=certain)
                        if known is not None:
                            yield z3.Not(found.null), known

    def _leaves(self, role: Participant, added: AddedRow, kept: RowTerm) -> Iterator[Any]:
        """Yield formulas: an overwrite of the partitions of its rows, or of equal rows, keeps a
        row beside an added one.
        """
        statement, schema = role.statement.statement, role.instance.template.target
        if not isinstance(statement, Insert) or not statement.overwrite or schema is None:
            return
        options = statement.options
        columns = options.using or (schema.partition_indexes if options.dynamic else ())
        if columns:
            same = are_equal(role.terms, added.row, kept, dict.fromkeys(columns))
            yield self.z3.Not(same)

    def _added_twice(
        self, role: Participant, invariant: GroupLimit, one: AddedRow, other: AddedRow
    ) -> InvariantQuestion | None:
        """Return the question whether a statement adds two rows that count for the same values."""
        z3, table = self.z3, invariant.table
        differ = self._are_two(role, one, other)
        if differ is None:
            return None
        formulas = [
            *self._counted(role, invariant, one),
            *self._counted(role, invariant, other),
            self._agree(role, invariant, one.row, other.row),
            differ,
        ]
        if invariant.most > 1:  # of one group's rows, several may change within it
            formulas += self._joins(role, invariant, one)
            formulas += self._joins(role, invariant, other)
        for a, b in ((one, other), (other, one)):
            if b.way.replaced is not None:
                formulas += [z3.Not(no(table, b.way.replaced)) for no in a.way.excluded]
        wanted = self._unlike(role, one, other) if one.number == other.number else None
        if invariant.most > 1:
            wanted = self._full(role, invariant, one, invariant.most)
        return InvariantQuestion(role.name, (role,), tuple(formulas), wanted=wanted)

    def _unlike(self, role: Participant, one: AddedRow, other: AddedRow) -> Any:
        """Return the formula that the parts by which two added rows may differ are not all equal.

        Equal rows of a source are two rows as well, but a test has each row once.
        """
        z3 = self.z3
        if one.way.replaced is not None and other.way.replaced is not None:
            return z3.Not(are_equal(role.terms, one.way.replaced, other.way.replaced))
        parts = zip(one.way.identity, other.way.identity, strict=True)
        return z3.Or(*(z3.Not(are_equal(role.terms, x, y)) for (_, x), (_, y) in parts))

    def _are_two(self, role: Participant, one: AddedRow, other: AddedRow) -> Any | None:
        """Return the formula that two added rows are two rows; None if they are the same one."""
        z3, table = self.z3, role.instance.template.target
        assert table is not None
        a, b = one.way, other.way
        if a.replaced is not None and b.replaced is not None:
            return self._differ(role, table.name, a.replaced, b.replaced)
        if one.number != other.number:
            return z3.BoolVal(True)
        ways, same = [], [self.z3.BoolVal(True)]
        for (name, x), (_, y) in zip(a.identity, b.identity, strict=True):
            equal = are_equal(role.terms, x, y)
            apart = z3.Not(equal) if name is None else self._differ(role, name, x, y)
            ways.append(z3.And(apart, *same))
            same.append(equal)
        return z3.Or(*ways) if ways else None

    def pairs(self, invariant: GroupLimit) -> Iterator[InvariantQuestion]:
        """Yield the questions whether a statement and a commit that it does not see violate it."""
        if not invariant.most:
            return
        for winner, loser in product(table_writers(self.workload, invariant.table), repeat=2):
            if self.workload.overlap(winner.job, loser.job):
                yield from self._concurrent(invariant, winner, loser)

    def _concurrent(
        self, invariant: GroupLimit, winner: JobStatement, loser: JobStatement
    ) -> Iterator[InvariantQuestion]:
        """Yield the question of each way in which two statements add rows for the same values."""
        last, first = self.instances.pair(loser, winner)
        theirs = list(self._additions(first, invariant, "new"))
        own = list(self._additions(last, invariant, "new"))
        about = f"{winner.name} commits while {loser.name} runs"
        for a, b in product(theirs, own):
            facts = [
                AssumedChange("came", 0, 1, a.row, read)
                for read in last.instance.reads
                if read.table == invariant.table and not read.outside
            ]
            frame = SymbolicFrame([first.instance, last.instance], frozenset(), facts)
            stops = [stop for _, stop in frame.stops(self.spec, loser=1)]
            dropped = [frame.dropped(self.spec, k) for k in (0, 1)]
            formulas = (
                *self._counted(first, invariant, a),
                *self._joins(first, invariant, a),
                *self._counted(last, invariant, b),
                *self._joins(last, invariant, b),
                self._agree(last, invariant, a.row, b.row),
                first.instance.writes,
                *(self.z3.Not(no) for no in (*stops, *dropped)),
                *frame.given,
                *self.instances.differing(last, [first]),
            )
            wanted = (
                self._full(last, invariant, b, invariant.most - 1) if invariant.most > 1 else None
            )
            yield InvariantQuestion(about, (last, first), formulas, wanted=wanted)


def _known_rows(item: Expr, where: Expr | None, *, certain: bool) -> Expr | None:
    """Return the condition on rows of which a query, if there is one, returns a value other than
    NULL; None if that is not ``certain``.
    """
    extreme = isinstance(item, Aggregate) and item.function in ("min", "max")
    operand = item.operand if isinstance(item, Aggregate) else item
    if operand is None or (isinstance(item, Aggregate) and not extreme):
        return None
    compared = (
        side
        for part in conjuncts(where)
        if isinstance(part, Compare)
        for side in (part.left, part.right)
    )
    constant = isinstance(operand, Const) and operand.value is not None
    if constant or operand in compared:
        return where or TRUE
    known = Not(IsNull(operand))
    return And(where or TRUE, known) if extreme or not certain else None


def _row(terms: Terms, schema: Schema, name: str) -> RowTerm:
    """Return a row that is not in the initial table."""
    found = terms.row(schema, name)
    terms.rows.pop()
    return found
