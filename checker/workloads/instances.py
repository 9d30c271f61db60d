"""Statements of a workload as instances with their own parameters and declared conditions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isolitmus.checker.solver.circuits import ask_solver
from isolitmus.checker.templates.expression_formulas import Codes, Terms
from isolitmus.checker.templates.statement_template import Template
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import LitmusError
from isolitmus.specs.registries.formats import format_named
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.checker.templates.expression_formulas import ValueTerm
    from isolitmus.checker.templates.instance_frames import Instance
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.workload import Job, JobStatement, Workload

__all__ = ["Instances", "Participant", "value_bounds"]


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

    @property
    def terms(self) -> Terms:
        """Terms of the statement's unknowns."""
        return self.instance.template.terms


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
    everybody: Terms = field(init=False)
    """Unknowns of the shared parameters."""
    _known: dict[str, Statement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        everybody = Terms("all", self.codes)
        for name, type_ in self.workload.shared.items():
            self.shared[name] = everybody.fresh(type_, name, nulls=False)
        self.everybody = everybody

    def anew(self) -> Instances:
        """Return the same statements over fresh values, independent of other questions."""
        return replace(self, codes=Codes(), shared={})

    def read(self, sql: str) -> Statement:
        """Return a statement without parameters; each text is parsed once."""
        if sql not in self._known:
            self._known[sql] = read_statement(sql, self.workload.tables, opaque=True)
        return self._known[sql]

    def role(self, statement: JobStatement, name: str = "") -> Participant:
        """Return a statement as a participant; its default name is that of the statement."""
        name = name or statement.name
        terms = Terms(name, self.codes)
        terms.values += self.everybody.values
        job = self.workload.jobs[statement.job]
        for parameter, type_ in {**job.parameters, **statement.types}.items():
            known = self.shared.get(parameter)
            read = parameter in statement.let
            terms.parameters[parameter] = (
                terms.fresh(type_, parameter, nulls=read) if known is None else known
            )
        terms.unknowns.clear()
        template = Template(statement.statement, self.workload.tables, terms)
        sees = format_named(DELTA).instance
        assert sees is not None
        instance = sees(template, tuple(statement.let.values()), statement.reads)
        return Participant(name, statement, instance, self._domain(job, terms))

    def _domain(self, job: Job, terms: Terms) -> Any:
        row = tuple(terms.parameters[parameter] for parameter in job.parameters)
        return terms.holds(job.where, (row,))

    def kind(self, one: JobStatement) -> tuple[object, ...]:
        """Return a key of all that formulas contain of a statement, except its name.

        A pattern that is impossible for one statement is impossible for all statements with the
        same key.
        """
        job = self.workload.jobs[one.job]
        queries = tuple((name, query.sql) for name, query in one.let.items())
        confs = tuple(sorted(one.conf.items()))
        return (
            one.sql,
            confs,
            one.reads,
            tuple(one.types.items()),
            queries,
            tuple(job.parameters.items()),
            job.known,
        )

    def differing(self, one: Participant, others: Iterable[Participant]) -> Iterator[Any]:
        """Yield formulas: distinct parameters differ between concurrent runs."""
        own = self._distinct(one)
        for other in others:
            theirs = self._distinct(other)
            yield from (own[p].value != theirs[p].value for p in own.keys() & theirs.keys())

    def _distinct(self, role: Participant) -> dict[str, ValueTerm]:
        """Return the distinct parameters of a run; none for a statement of no job."""
        job = self.workload.jobs[role.statement.job]
        known = role.terms.parameters if role.statement in job.statements else {}
        return {p: known[p] for p in self.workload.distinct if p in known}

    def pair(self, a: JobStatement, b: JobStatement) -> tuple[Participant, Participant]:
        """Return two participants with different names, even if they have the same statement."""
        return self.role(a), self.role(b, "" if a is not b else f"{b.name}_2")

    def check_domains(self) -> None:
        """Raise LitmusError for a job whose condition no parameter values satisfy."""
        import z3

        for job in self.workload.jobs.values():
            solver = z3.Solver()
            role = self.role(job.statements[0])
            solver.add(role.domain)
            if ask_solver(solver) == "unsat":
                raise LitmusError(
                    f"{job.place}: jobs.{job.name}.where: no parameter values satisfy"
                    f" '{job.known}', so the job never runs; remove the job or correct the"
                    " condition"
                )
