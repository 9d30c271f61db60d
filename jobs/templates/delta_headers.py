"""Metadata of the table of a symbolic statement, as formulas over an unknown header.

The header is one of those that the table may have while jobs run (``templates.header_states``):
a number, 0 for the declared one. What a statement does to each of them is known by execution, so
relations that only the metadata decide are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.templates.header_states import ALTERING, header_states
from isolitmus.model.delta.footprint import ROW_TRACKING_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from isolitmus.jobs.templates.header_states import HeaderChange, HeaderChanges, HeaderStates
    from isolitmus.jobs.templates.statement_template import Template
    from isolitmus.model.sql.statement import Statement


@dataclass
class InstanceHeader:
    """Header that an instance of a statement has read of its table, and its change of it.

    ``alterations`` are the statements of all jobs that alter the table.
    """

    template: Template
    alterations: tuple[Statement, ...] = ()

    @cached_property
    def known(self) -> HeaderStates:
        """Headers that the table may have."""
        target = self.template.target
        assert target is not None
        return header_states(target, self.alterations)

    @cached_property
    def changes(self) -> HeaderChanges | None:
        """Possible effects on each header; None for a statement that alters none."""
        if not isinstance(self.template.written, ALTERING):
            return None
        return self.known.changes(self.template.written)

    @cached_property
    def state(self) -> Any:
        """Number of the header, as a term."""
        return self.template.z3.Int(f"{self.template.terms.name} header")

    @property
    def varies(self) -> bool:
        """True if the table may have several headers."""
        return bool(self.alterations) and len(self.known.headers) > 1

    def among(self, some: Collection[int]) -> Any:
        """Return the formula that the header is one of these."""
        z3 = self.template.z3
        if not some or len(some) == len(self.known.headers):
            return z3.BoolVal(bool(some))
        return z3.Or(*(self.state == k for k in sorted(some)))

    @cached_property
    def chosen(self) -> Any:
        """Number of the effect among the possible ones, as a term."""
        return self.template.z3.Int(f"{self.template.terms.name} effect")

    def where(self, holds: Callable[[HeaderChange], bool]) -> Any:
        """Return the formula that the effect on the header is such; the statement does not fail."""
        assert self.changes is not None
        z3 = self.template.z3
        every = {
            (k, n): holds(one) for k, some in enumerate(self.changes) for n, one in enumerate(some)
        }
        if all(every.values()) or not any(every.values()):
            return z3.BoolVal(all(every.values()))
        several = max(map(len, self.changes)) > 1
        return z3.Or(
            *(
                z3.And(self.state == k, self.chosen == n) if several else self.state == k
                for (k, n), said in every.items()
                if said
            )
        )

    @property
    def replaced(self) -> Any:
        """Formula that the table was replaced, and so lost the isolation level of the protocol."""
        return self.among(self.known.replaced)

    @property
    def bounds(self) -> list[Any]:
        """Formulas that the header is a known one, with which the statement does not fail."""
        z3, changes = self.template.z3, self.changes
        many = len(self.known.headers)
        several = changes is not None and max(map(len, changes)) > 1
        if not self.varies and not several:
            return []
        fit = (k for k in range(many) if changes is None or changes[k])
        found = [z3.Or(*(self.state == k for k in fit))]
        if changes is not None and several:
            found.append(z3.Or(*(self.chosen == n for n in range(max(map(len, changes))))))
        return found

    def follows(self, winner: InstanceHeader) -> list[Any]:
        """Return formulas that it is the header that a winning commit on the table has read."""
        return [self.state == winner.state] if self.varies else []

    def alterations_to(self, state: int) -> Sequence[tuple[str, bool]]:
        """Return statements that lead to a header, each with whether the table loses its rows."""
        return self.known.paths[state] or ()

    @property
    def shown(self) -> Any:
        """Formula that an example can begin with the header: statements lead to it."""
        return self.among({k for k, path in enumerate(self.known.paths) if path is not None})

    def relation(self, name: str, winner: InstanceHeader) -> Any:
        """Return the condition for a relation that the metadata decide.

        A winner that writes metadata has read the newest ones. So what it changes decides whether
        the loser, which has adopted all changes before, can adopt this one.
        """
        z3 = self.template.z3
        if winner.changes is None:
            return z3.BoolVal(False)
        if name != "same-domain":
            return winner.where(lambda change: name in change.clashes)
        if self.changes is None:
            return z3.BoolVal(False)
        domains = {
            domain
            for some in winner.changes
            for change in some
            for domain in change.footprint.actions.domains - {ROW_TRACKING_DOMAIN}
        }
        both = [
            z3.And(winner.where(partial(_sets, one)), self.where(partial(_sets, one)))
            for one in sorted(domains)
        ]
        return z3.Or(*both) if both else z3.BoolVal(False)

    def retried(self, winner: InstanceHeader) -> tuple[Any, Any]:
        """Return the conditions that the statement may commit after a winning commit, and that it
        may be a no-op then.
        """
        z3 = self.template.z3
        if self.changes is None:
            return z3.BoolVal(True), z3.BoolVal(True)
        theirs = winner.changes if winner.template.target == self.template.target else None
        commits: list[int] = []
        idles: list[int] = []
        for k in range(len(self.known.headers)):
            after = {k} if theirs is None else {change.after for change in theirs[k]}
            again = [change for n in after for change in self.changes[n]]
            if any(not change.footprint.empty for change in again):
                commits.append(k)
            if any(change.footprint.empty for change in again):
                idles.append(k)
        return self.among(commits), self.among(idles)


def _sets(domain: str, change: HeaderChange) -> bool:
    """Return whether a change sets a metadata domain."""
    return domain in change.footprint.actions.domains
