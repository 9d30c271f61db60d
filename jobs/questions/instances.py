"""Statements of a workload as instances with their own parameters and declared conditions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isolitmus.checker.solver.smt import ask_solver
from isolitmus.jobs.questions.pair_prediction import pair_names
from isolitmus.jobs.questions.table_alterations import table_alterations
from isolitmus.jobs.templates.expression_formulas import Codes, Terms
from isolitmus.jobs.templates.statement_shapes import StatementShape, shape_of
from isolitmus.jobs.templates.statement_template import Template, are_same
from isolitmus.model.errors import LitmusError
from isolitmus.model.registry import Registry
from isolitmus.model.sql.expression import Const
from isolitmus.model.sql.query import Values
from isolitmus.model.sql.statement import Insert
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.parameters import CLOCKS
from isolitmus.specs.sql.statements import LateOrigin, read_statement
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.jobs.templates.expression_formulas import AppliedExpression, ValueTerm
    from isolitmus.jobs.templates.instance_frames import Instance, InstanceBuilder
    from isolitmus.jobs.workload import Job, JobStatement, Workload
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row

INSTANCES: Registry[InstanceBuilder] = Registry(
    "instance", {"databricks": "delta", "delta-rs": "delta"}
)
"""Constructors of instances by format; the formats of Delta's log share one."""


@dataclass(frozen=True)
class Participant:
    """Statement in a pattern, with a unique name."""

    name: str
    """Name in tests and sentences."""
    statement: JobStatement
    instance: Instance
    """Its read set and write set, as formulas."""
    domain: Any
    """Condition on its parameters, as a formula."""
    shape: StatementShape
    """Shape of the statement; the literals are unknowns in the formulas."""
    literals: tuple[Any, ...] = ()
    """The unknowns, in the order of the shape's literals."""

    @property
    def fixed(self) -> list[Any]:
        """Formulas that the unknowns for the literals have their values."""
        codes = self.terms.codes
        return [
            unknown == codes.term(literal.value)
            for unknown, literal in zip(self.literals, self.shape.literals, strict=True)
        ]

    def sampled(self, one: AppliedExpression) -> Any:
        """Return the formula that the value of an application is one of its samples, or None."""
        return self.terms.sampled(one, (literal.value for literal in self.shape.literals))

    @property
    def terms(self) -> Terms:
        """Terms of the statement's unknowns."""
        return self.instance.template.terms

    @property
    def nulls(self) -> dict[str, Any]:
        """Formula that a parameter is NULL, for each that may be, but for results of queries."""
        terms, let = self.terms, self.statement.let
        return {
            name: terms.parameters[name].null
            for name in self.statement.types
            if name not in let and not terms.z3.is_false(terms.parameters[name].null)
        }


def value_bounds(roles: Iterable[Participant]) -> list[Any]:
    """Return the domains of all unknowns of some participants, each once."""
    bounds = (bound for role in roles for bound in role.terms.bounds)
    return list({bound.get_id(): bound for bound in bounds}.values())


@dataclass
class Instances:
    """Instances of a workload's statements over one set of values."""

    workload: Workload
    codes: Codes = field(default_factory=Codes)
    """Codes of values, common to all instances."""
    shared: dict[str, ValueTerm] = field(default_factory=dict)
    """Terms of shared parameters, by name."""
    alterations: Mapping[str, tuple[Statement, ...]] | None = None
    """Statements of the jobs that alter each table, found when they are first needed."""
    nulls: bool = True
    """Whether parameters may be NULL; results of queries may in any case."""
    everybody: Terms = field(init=False)
    """Unknowns of the shared parameters."""
    _known: dict[str, Statement] = field(default_factory=dict)
    _shapes: dict[int, tuple[JobStatement, StatementShape]] = field(default_factory=dict)
    _alike: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        everybody = Terms("all", self.codes)
        for name, type_ in self.workload.shared.items():
            nulls = self.nulls and name not in self.workload.not_null
            self.shared[name] = everybody.fresh(type_, name, nulls=nulls)
        self.everybody = everybody
        if self.alterations is None:
            self.alterations = table_alterations(self.workload)

    @property
    def may_have_nulls(self) -> bool:
        """Whether some parameter of a run may be NULL."""
        return self.nulls and any(
            parameter not in (*one.let, *CLOCKS, *job.not_null, *self.workload.not_null)
            for job in self.workload.jobs.values()
            for one in job.statements
            for parameter in one.types
        )

    def without_nulls(self) -> Instances:
        """Return the same statements with parameters that are not NULL."""
        return replace(self, codes=Codes(), shared={}, nulls=False)

    def anew(self) -> Instances:
        """Return the same statements over fresh values, independent of other questions."""
        return replace(self, codes=Codes(), shared={})

    def read(self, sql: str) -> Statement:
        """Return a statement without parameters; each text is parsed once."""
        if sql not in self._known:
            self._known[sql] = read_statement(sql, self.workload.tables, opaque=True)
        return self._known[sql]

    def insert(self, table: str, rows: Sequence[Row]) -> Statement:
        """Return an INSERT of rows, as its text is read; most are made without parsing it."""
        schema = self.workload.tables[table]
        lists = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        sql = f"INSERT INTO {table} VALUES {lists}"
        if sql not in self._known and not schema.generates and len(schema.shown) == len(rows[0]):
            types = [column.type for column in schema.columns]
            values = tuple(tuple(map(Const, row, types)) for row in rows)
            syntax = Syntax(sql).typed({}, opaque=True, queried=True)
            origin: Any = LateOrigin(syntax, self.workload.tables)
            self._known[sql] = Insert(sql, table, (Values(values),), origin=origin)
        return self.read(sql)

    def role(self, statement: JobStatement, name: str) -> Participant:
        """Return a statement as a participant with this name."""
        shape = self.shape(statement)
        terms = Terms(name, self.codes)
        terms.values += self.everybody.values
        job = self.workload.jobs[statement.job]
        for parameter, type_ in {**job.parameters, **statement.types}.items():
            known = self.shared.get(parameter)
            fixed = parameter in CLOCKS or parameter in job.not_null
            nulls = parameter in statement.let or (self.nulls and not fixed)
            terms.parameters[parameter] = (
                terms.fresh(type_, parameter, nulls=nulls) if known is None else known
            )
        terms.unknowns.clear()
        for k, given in enumerate(shape.literals):
            sort = self.codes.term(given.value).sort()
            terms.literals[given] = terms.z3.Const(f"{name}.literal {k}", sort)
        instance = self._instance(statement, terms)
        literals = tuple(terms.literals.values())
        return Participant(name, statement, instance, self._domain(job, terms), shape, literals)

    def _instance(self, statement: JobStatement, terms: Terms) -> Instance:
        """Return a statement as its table format sees it."""
        template = Template(statement.statement, self.workload.tables, terms)
        assert self.alterations is not None
        altering = self.alterations.get(template.target.name, ()) if template.target else ()
        build = INSTANCES.named(self.workload.format).instance
        return build(template, tuple(statement.let.values()), statement.reads, altering)

    def playing(self, role: Participant, statement: JobStatement, name: str) -> Participant:
        """Return a participant with the formulas of another statement of the same shape."""
        shape = self.shape(statement)
        assert shape.key == role.shape.key
        return replace(role, name=name, statement=statement, shape=shape)

    def shape(self, one: JobStatement) -> StatementShape:
        """Return the shape of a statement with its parameters and its job's condition.

        Statements with equal shapes have the same formulas, except for their names and the values
        of their literals.
        """
        if id(one) not in self._shapes:
            job = self.workload.jobs[one.job]
            known = (
                *self._instance(one, Terms(one.name, self.codes)).parts,
                tuple(one.types.items()),
                tuple(one.let),
                tuple(sorted(one.conf.items())),
                tuple(job.parameters.items()),
                tuple(sorted(job.not_null)),
                job.where,
                one in job.statements,
            )
            self._shapes[id(one)] = one, shape_of(known)
        return self._shapes[id(one)][1]

    def _domain(self, job: Job, terms: Terms) -> Any:
        row = tuple(terms.parameters[parameter] for parameter in job.parameters)
        return terms.holds(job.where, (row,))

    def alike(self, one: JobStatement) -> int:
        """Return the number of the workload's statements with the shape of a statement."""
        if not self._alike:
            self._alike.update(Counter(self.shape(each).key for each in self.workload.statements))
        return self._alike[self.shape(one).key]

    def kind(self, one: JobStatement) -> tuple[object, ...]:
        """Return a key of all that formulas contain of a statement, except its name.

        A pattern that is impossible for one statement is impossible for all statements with the
        same key.
        """
        shape = self.shape(one)
        return shape.key, shape.literals

    def differing(self, one: Participant, others: Iterable[Participant]) -> Iterator[Any]:
        """Yield formulas: distinct parameters differ between concurrent runs."""
        own = self._distinct(one)
        for other in others:
            theirs = self._distinct(other)
            for p in own.keys() & theirs.keys():
                yield one.terms.z3.Not(are_same(one.terms, own[p], theirs[p]))

    def _distinct(self, role: Participant) -> dict[str, ValueTerm]:
        """Return the distinct parameters of a run; none for a statement of no job."""
        job = self.workload.jobs[role.statement.job]
        known = role.terms.parameters if role.statement in job.statements else {}
        return {p: known[p] for p in self.workload.distinct if p in known}

    def pair(self, a: JobStatement, b: JobStatement) -> tuple[Participant, Participant]:
        """Return two participants with different names, even if they have the same statement."""
        first, second = pair_names(a, b)
        return self.role(a, first), self.role(b, second)

    def check_domains(self) -> None:
        """Raise LitmusError for a job whose condition no parameter values satisfy."""
        import z3

        for job in self.workload.jobs.values():
            solver = z3.Solver()
            role = self.role(job.statements[0], job.name)
            solver.add(role.domain, *role.fixed)
            if ask_solver(solver) == "unsat":
                raise LitmusError(
                    f"{job.place}: jobs.{job.name}.where: no parameter values satisfy"
                    f" '{job.known}', so the job never runs; remove the job or correct the"
                    " condition"
                )
