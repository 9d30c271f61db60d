"""Headers that a table may have while jobs run, and what each statement does to each of them.

Jobs that alter a table run again and again, so a statement finds the table as it was declared, or
as some of them left it. The headers are found by execution: each statement is executed on an empty
table with each header that is known so far, until no new header comes about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.delta.frame import rebase_conflict
from isolitmus.checker.delta.metadata_changes import definition_row
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import CLUSTERING, Header
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql.statement import Definition, Replace, Restore
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.execution import Effect
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement

ALTERING = (Definition, Replace, Restore)
"""Statement types that may change the header of a table."""
MOST = 48
"""Maximum number of headers of one table."""
WRITER = "job"
REPLACED = "replaced"
"""Identity of a table that was replaced."""


class HeaderChange(NamedTuple):
    """Effect of a statement on a table with a certain header."""

    footprint: Footprint
    """Its footprint if the table is empty."""
    after: int
    """Index of the header afterwards."""
    clashes: frozenset[str]
    """Relations to transactions that read the header before: they cannot adopt the change."""
    changes: bool
    """True if it changes the header, or sets a domain."""
    redefines: bool
    """True if it changes the columns or the constraints."""


HeaderChanges = tuple[tuple[HeaderChange, ...], ...]
"""Possible effects of a statement on each header; several for RESTORE, none where it fails."""


class Alteration(NamedTuple):
    """Statement, as text without parameters, that leads from one header to another."""

    sql: str
    replaces: bool
    """True if the table loses its rows."""


@dataclass(frozen=True)
class HeaderStates:
    """Headers that a table may have, the declared one first.

    Attributes
    ----------
    headers : tuple of Header
        The headers.
    paths : tuple of (tuple of Alteration or None)
        Statements that lead from the declared header to each of them; None if only RESTORE does.
    known : list of (Statement, tuple of tuple of HeaderChange)
        Possible effects of each statement on each header; none where it fails.
    """

    headers: tuple[Header, ...]
    paths: tuple[tuple[Alteration, ...] | None, ...]
    known: Sequence[tuple[Statement, HeaderChanges]]

    def changes(self, statement: Statement) -> HeaderChanges | None:
        """Return the possible effects of a statement on each header; None if it changes none."""
        for one, found in self.known:
            if one is statement or one == statement:
                return found
        return None

    @property
    def replaced(self) -> frozenset[int]:
        """Headers without the isolation level of the protocol: the table is Serializable."""
        return frozenset(k for k, one in enumerate(self.headers) if not one.metadata.levelled)


@memoize_by_identity
def header_states(schema: Schema, statements: tuple[Statement, ...]) -> HeaderStates:
    """Return the headers that a table may have if these statements alter it, in any order.

    Parameters
    ----------
    schema : Schema
        The table as declared.
    statements : tuple of Statement
        Statements of the types `ALTERING` on this table.

    Raises
    ------
    LitmusError
        If there are too many headers, or the effect of a statement is not modelled.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> alter = read_statement("ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')", {"t": t})
    >>> found = header_states(t, (alter,))
    >>> [sorted(one.metadata.configuration.items()) for one in found.headers]
    [[], [('team', 'us')]]
    >>> [sorted(change.clashes) for (change,) in found.changes(alter)]
    [['metadata-clashes'], []]
    """
    headers = [Header.of(schema)]
    paths: list[tuple[Alteration, ...] | None] = [()]

    def number(header: Header, path: tuple[Alteration, ...] | None) -> int:
        if header not in headers:
            if len(headers) == MOST:
                raise LitmusError(
                    f"the jobs leave {schema.name} with more than {MOST} different definitions and"
                    " properties; at most that many are searched"
                )
            headers.append(header)
            paths.append(path)
        return headers.index(header)

    restores = any(isinstance(one, Restore) for one in statements)
    done = many = 0
    while done < len(headers) or many < len(headers):
        while done < len(headers):
            for one in statements:
                if not isinstance(one, Restore):
                    after = _executed(schema, headers[done], one)
                    if after is not None:
                        path = paths[done]
                        step = _alteration(schema, one)
                        number(after[1], None if path is None else (*path, step))
            done += 1
        many = len(headers)
        if restores:
            for now, earlier in product(range(many), repeat=2):
                number(_restored(headers[now], headers[earlier]), None)
    known = [
        (one, tuple(_changes(schema, headers, k, one) for k in range(many))) for one in statements
    ]
    return HeaderStates(tuple(headers), tuple(paths), known)


def _changes(
    schema: Schema, headers: Sequence[Header], before: int, statement: Statement
) -> tuple[HeaderChange, ...]:
    """Return the possible effects of a statement on a header."""
    if not isinstance(statement, Restore):
        done = _executed(schema, headers[before], statement)
        return () if done is None else (_change(done[0], headers, before, headers.index(done[1])),)
    now = headers[before]
    idle = Footprint(schema, data_change=False, changes_data=False, header=now)
    found = [_change(idle, headers, before, before)]
    for earlier in headers:
        after = _restored(now, earlier)
        footprint = Footprint(
            schema,
            actions=Actions(
                after.metadata, after.features, (earlier.domains | now.domains) & {CLUSTERING}
            ),
            settings=Settings(large=True),
            header=now,
        )
        found.append(_change(footprint, headers, before, headers.index(after)))
    return tuple(found)


def _restored(now: Header, earlier: Header) -> Header:
    """Return the header after RESTORE to a version with an earlier one."""
    return now.after(
        earlier.metadata, earlier.features | now.features, earlier.domains & {CLUSTERING}, {}
    )


def _executed(
    schema: Schema, header: Header, statement: Statement
) -> tuple[Footprint, Header] | None:
    """Return the footprint of a statement and the header afterwards; None if it fails."""
    done = _effect(schema, header, statement)
    if done.error is not None or done.footprint is None:
        return None
    actions = done.footprint.actions
    after = header.after(actions.metadata, actions.features, actions.domains, actions.apps)
    metadata = after.metadata
    if metadata.id == WRITER:
        metadata = replace(metadata, id=REPLACED, created=REPLACED)
    return done.footprint, replace(after, metadata=metadata)


def _effect(schema: Schema, header: Header, statement: Statement) -> Effect:
    """Return the effect of a statement on an empty table with a header."""
    if isinstance(statement, Replace):
        statement = replace(statement, query=None)
    state = {schema.name: TableState((), header)}
    try:
        return statement_effect(statement, state, WRITER, {schema.name: schema})
    except UndeterminedError as error:
        raise LitmusError(str(error)) from None


def _change(
    footprint: Footprint, headers: Sequence[Header], before: int, after: int
) -> HeaderChange:
    """Return the effect of a statement with this footprint."""
    old, actions = headers[before], footprint.actions
    reader = Footprint(footprint.schema, header=old)
    protocol, metadata, _ = rebase_conflict(footprint, reader, old)
    clashes = {"protocol-clashes": protocol, "metadata-clashes": metadata}
    wrote = actions.metadata
    return HeaderChange(
        footprint,
        after,
        frozenset(name for name, why in clashes.items() if why is not None),
        before != after or wrote not in (None, old.metadata) or bool(actions.domains),
        wrote is not None and definition_row(wrote) != definition_row(old.metadata),
    )


def _alteration(schema: Schema, statement: Statement) -> Alteration:
    """Return a statement as a text without parameters that has the same effect on the header."""
    if not isinstance(statement, Replace):
        return Alteration(statement.sql, replaces=False)
    return Alteration(" ".join(_replacement(schema, statement)), replaces=True)


def _replacement(schema: Schema, statement: Replace) -> Iterator[str]:
    """Yield the parts of a REPLACE TABLE without a query."""
    yield f"CREATE OR REPLACE TABLE {schema.name} ({schema.ddl()}) USING delta"
    if schema.partitioned_by:
        yield f"PARTITIONED BY ({', '.join(schema.partitioned_by)})"
    if statement.properties:
        pairs = (f"{literal(k)} = {literal(v)}" for k, v in statement.properties.items())
        yield f"TBLPROPERTIES ({', '.join(pairs)})"


def alteration_problem(schema: Schema, statement: Statement) -> str | None:
    """Return why a statement cannot alter a table as it was declared; None if it can.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> drop = read_statement("ALTER TABLE t DROP CONSTRAINT few", {"t": t})
    >>> alteration_problem(t, drop)
    'DeltaAnalysisException (no constraint few)'
    """
    if isinstance(statement, Restore):
        return None
    try:
        done = _effect(schema, Header.of(schema), statement)
    except LitmusError as error:
        return str(error)
    return None if done.error is None else f"{done.error.exception} ({done.error})"
