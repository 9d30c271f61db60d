"""Questions about references between tables, and about totals, as formulas.

Each is about the rows that one statement adds, changes or removes. A reference is kept if each row
that is added refers to a row that the statement reads, or is made of one that refers to it, and if
no statement removes or changes the values that are referred to (docs/semantics.md, theorem 15). A
total is kept if no row that is added, changed or removed changes it (docs/semantics.md, theorem
16).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.invariant import Reference, Total
from isolitmus.jobs.invariants.invariant_questions import (
    InvariantQuestion,
    InvariantQuestions,
    table_writers,
)
from isolitmus.jobs.templates.statement_template import are_equal
from isolitmus.model.sql.statement import Merge, Update
from isolitmus.model.sql.types import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.jobs.invariants.invariant_questions import AddedRow
    from isolitmus.jobs.questions.instances import Participant
    from isolitmus.jobs.templates.expression_formulas import RowTerm
    from isolitmus.jobs.workload import JobStatement


class ReferenceQuestions(InvariantQuestions[Reference]):
    """Questions whether statements keep a reference to another table."""

    needs_pairs = False

    def alone(self, invariant: Reference) -> Iterator[InvariantQuestion]:
        """Yield the questions whether a statement adds a row that refers to none, or removes the
        row that one refers to.
        """
        z3 = self.z3
        for one in table_writers(self.workload, invariant.table):
            role = self.instances.role(one, one.name)
            for added in self._additions(role, invariant, "new"):
                formulas = (
                    *self._refers(role, invariant, added),
                    *self._joins(role, invariant, added),
                )
                known = self._unknown(role, invariant, added)
                wanted = self._referring(role, invariant, added)
                yield InvariantQuestion(one.name, (role,), (*formulas, *known), wanted=wanted)
        for one in table_writers(self.workload, invariant.parent):
            role = self.instances.role(one, one.name)
            row = role.terms.row(self.workload.tables[invariant.table], "that refers to it")
            counted = self._counting(role, invariant, row)
            for lost, when in self._lost(role, invariant):
                refers = z3.And(*counted, self._same(role, invariant, row, lost))
                # of one table, a row that the statement adds may refer to the lost one as well
                formulas = (when,) if invariant.parent == invariant.table else (when, refers)
                wanted = z3.And(refers, self._reading(role))
                yield InvariantQuestion(one.name, (role,), formulas, wanted=wanted)

    def pairs(self, invariant: Reference) -> Iterator[InvariantQuestion]:
        """Yield the questions whether one statement removes the row to which another one's row
        refers. Each is one of `alone` about the first, so they only lead to violations.
        """
        for adds, removes in product(
            table_writers(self.workload, invariant.table),
            table_writers(self.workload, invariant.parent),
        ):
            if not self.workload.overlap(adds.job, removes.job):
                continue
            child, parent = self.instances.pair(adds, removes)
            for added in self._additions(child, invariant, "new"):
                for lost, when in self._lost(parent, invariant):
                    formulas = (
                        *self._refers(child, invariant, added),
                        *self._joins(child, invariant, added),
                        self._same(child, invariant, added.row, lost),
                        when,
                    )
                    referring = self._referring(child, invariant, added)
                    wanted = self.z3.And(referring, self._reading(parent))
                    for a, b in ((child, parent), (parent, child)):
                        about = f"{b.name} commits while {a.name} runs"
                        yield InvariantQuestion(about, (a, b), formulas, wanted=wanted)

    def _counting(self, role: Participant, invariant: Reference, row: RowTerm) -> list[Any]:
        """Return the formulas that a row counts: it has no NULL in the columns."""
        known = [self.z3.Not(row[k].null) for k in invariant.columns]
        return [role.terms.holds(invariant.where, (row,)), *known]

    def _refers(self, role: Participant, invariant: Reference, added: AddedRow) -> list[Any]:
        """Return the formulas that a statement adds a row that counts."""
        known = self._counting(role, invariant, added.row)
        return [*self._counted(role, invariant, added), *known]

    def _same(self, role: Participant, invariant: Reference, row: RowTerm, other: RowTerm) -> Any:
        """Return the formula that a row refers to a row of the other table."""
        own = tuple(row[k] for k in invariant.columns)
        return are_equal(role.terms, own, tuple(other[k] for k in invariant.keys))

    def _unknown(self, role: Participant, invariant: Reference, added: AddedRow) -> Iterator[Any]:
        """Yield formulas: no row that the statement reads is the one to which an added row refers,
        or refers to it.
        """
        z3 = self.z3
        for table, row in (*added.way.sources, *added.required):
            if table == invariant.parent:
                yield z3.Not(self._same(role, invariant, added.row, row))
            if table == invariant.table:
                counted = self._counting(role, invariant, row)
                yield z3.Not(z3.And(*counted, self._agree(role, invariant, row, added.row)))
        for read in self._client_reads(role):  # a row that is never lost is still there
            if read.table == invariant.parent:
                same = self._same(role, invariant, added.row, read.row)
                yield z3.Or(z3.Not(read.told), z3.And(read.there, z3.Not(same)))

    def _referring(self, role: Participant, invariant: Reference, added: AddedRow) -> Any:
        """Return the formula that the rows of which a row is made refer to rows that are there."""
        z3 = self.z3
        parent = self.workload.tables[invariant.parent]
        found = [z3.And(read.told, read.there) for read in self._client_reads(role)]
        for k, (table, row) in enumerate((*added.way.sources, *added.required)):
            if table == invariant.table:
                other = role.terms.row(parent, f"that row {k} refers to")
                counted = z3.And(*self._counting(role, invariant, row))
                found.append(z3.Or(z3.Not(counted), self._same(role, invariant, row, other)))
        return z3.And(*found)

    def _lost(self, role: Participant, invariant: Reference) -> Iterator[tuple[RowTerm, Any]]:
        """Yield a row of the other table, and the formula that a statement removes it or changes
        the values that are referred to.
        """
        template, keys = role.instance.template, dict.fromkeys(invariant.keys)
        row = role.terms.row(self.workload.tables[invariant.parent], "that is lost")
        facts = self._satisfies(role, invariant.parent, row)
        if not isinstance(template.statement, Update | Merge):
            yield row, self.z3.And(template.removes(row), facts)
            return
        for end in template.ends(row):
            changed = end.after is None or self.z3.Not(are_equal(role.terms, row, end.after, keys))
            yield row, self.z3.And(end.when, changed, facts)


class TotalQuestions(InvariantQuestions[Total]):
    """Questions whether statements change a total."""

    needs_pairs = False

    def alone(self, invariant: Total) -> Iterator[InvariantQuestion]:
        """Yield the questions whether a row that a statement adds, changes or removes does so."""
        for one in table_writers(self.workload, invariant.table):
            role = self.instances.role(one, one.name)
            for formulas in self._changes(role, invariant):
                yield InvariantQuestion(one.name, (role,), formulas, wanted=self._reading(role))

    def pairs(self, invariant: Total) -> Iterator[InvariantQuestion]:
        """Yield the questions whether two concurrent statements change it, where one alone is not
        known to. Each is one of `alone` about the first, so they only lead to violations.
        """
        every = table_writers(self.workload, invariant.table)
        for one, other in product(every, repeat=2):
            if not self.workload.overlap(one.job, other.job) or not (
                self._in_parts(one) or self._in_parts(other)
            ):
                continue
            last, first = self.instances.pair(one, other)
            about = f"{first.name} commits while {last.name} runs"
            wanted = self._reading(last, first)
            both = product(self._changes(last, invariant), self._changes(first, invariant))
            for mine, theirs in both:
                formulas = (*mine, *theirs, *self.instances.differing(last, [first]))
                yield InvariantQuestion(about, (last, first), formulas, wanted=wanted)

    def _in_parts(self, one: JobStatement) -> bool:
        """Return whether a client reads for a statement, or its job has several."""
        return bool(one.let) or len(self.workload.jobs[one.job].statements) > 1

    def _changes(self, role: Participant, invariant: Total) -> Iterator[tuple[Any, ...]]:
        """Yield the formulas of each way in which a row changes the total."""
        template, table = role.instance.template, invariant.table
        nothing = self._part(role, invariant, None)
        for added in self._additions(role, invariant, "new"):
            if added.way.replaced is None:
                part = self._part(role, invariant, added.row)
                yield (
                    *self._counted(role, invariant, added),
                    self._worse(invariant, part, nothing),
                )
        row = role.terms.row(self.workload.tables[table], "that is changed")
        before, facts = self._part(role, invariant, row), self._satisfies(role, table, row)
        if not isinstance(template.statement, Update | Merge):
            worse = self._worse(invariant, nothing, before)
            yield template.removes(row), facts, worse
            return
        for end in template.ends(row):
            after = self._part(role, invariant, end.after)
            yield end.when, facts, self._worse(invariant, after, before)

    def _part(self, role: Participant, invariant: Total, row: RowTerm | None) -> Any:
        """Return what a row adds to the total: nothing if it does not count, or is NULL."""
        z3, terms, value = self.z3, role.terms, invariant.value
        zero = terms.codes.term(0)
        if value is not None and value.type not in INTEGERS:
            zero = z3.ToReal(zero)
        if row is None:
            return zero
        counted = terms.holds(invariant.where, (row,))
        if value is None:
            return z3.If(counted, terms.codes.term(1), zero)
        found = terms.value(value, (row,))
        return z3.If(z3.And(counted, z3.Not(found.null)), found.value, zero)

    def _worse(self, invariant: Total, new: Any, old: Any) -> Any:
        """Return the formula that a part of the total changes as it should not."""
        return {"=": new != old, "<=": new > old, ">=": new < old}[invariant.op]
