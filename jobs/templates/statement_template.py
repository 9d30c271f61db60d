"""Write and read sets of a statement with parameters, as formulas over rows.

The formulas say which rows the statement may insert, remove or change. They over-approximate: they
admit whatever an instance of the statement can do, and more where a condition has no formula. Rows
of other tables, and of the source of a MERGE, are unknowns of the instance.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.templates.expression_formulas import ValueTerm
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import FLIPPED, NEGATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.jobs.templates.expression_formulas import RowTerm, Terms
    from isolitmus.model.sql.schema import Schema

TEMPLATES = (
    st.Insert,
    st.Delete,
    st.Update,
    st.Merge,
    st.Truncate,
    st.Optimize,
    st.Vacuum,
    st.Read,
    st.Definition,
    st.Replace,
    st.Restore,
)
"""Statement types that a `Template` supports."""


SourceRow = tuple[str, "RowTerm"]
"""Name of a table, and a row that is read from it."""


RowIdentity = tuple[tuple["str | None", "RowTerm"], ...]
"""Parts by which two rows of a query differ: a table and its row, or None and values of GROUP BY.

Without parts, there is only one row.
"""


class RowLimit(NamedTuple):
    """Largest number of rows of the snapshot that satisfy a formula, by table and row."""

    most: int
    rows: Callable[[str, RowTerm], Any]


class RequiredRow(NamedTuple):
    """Row that a table of the snapshot has: it satisfies a formula, by table and row."""

    table: str
    holds: Callable[[str, RowTerm], Any]


class GivenRow(NamedTuple):
    """Row of a query result: the condition for it, its values, and its source rows."""

    when: Any
    values: RowTerm
    sources: tuple[SourceRow, ...] = ()
    limits: tuple[RowLimit, ...] = ()
    """Limits that the snapshot keeps if the query returns the row: those of NOT EXISTS, of an anti
    join, and of a count.
    """
    required: tuple[RequiredRow, ...] = ()
    """Rows without which the query does not return it: those of EXISTS, of IN, and of a count."""
    identity: RowIdentity = ()
    """Parts by which rows of this branch differ."""


class Addition(NamedTuple):
    """Way in which a row may be inserted: its condition, and the source rows."""

    when: Any
    sources: tuple[SourceRow, ...] = ()
    limits: tuple[RowLimit, ...] = ()
    """Limits that the snapshot keeps if the row is added."""
    identity: RowIdentity = ()
    """Parts by which rows that are added this way differ."""
    replaced: RowTerm | None = None
    """Row that is changed into the added one."""
    required: tuple[RequiredRow, ...] = ()
    """Rows without which it is not added."""

    @property
    def excluded(self) -> tuple[Callable[[str, RowTerm], Any], ...]:
        """Formulas of the rows that a table of the snapshot does not have if the row is added."""
        return tuple(one.rows for one in self.limits if not one.most)


class RowEnd(NamedTuple):
    """Way in which a row may be removed or changed: its condition, and the row afterwards.

    `after` is None if the row is removed.
    """

    when: Any
    after: RowTerm | None


def are_equal(
    terms: Terms, a: RowTerm, b: RowTerm, columns: Mapping[int, object] | None = None
) -> Any:
    """Return the formula that two rows have equal values, where NULL equals NULL.

    Parameters
    ----------
    terms : Terms
        Builder of the formulas.
    a, b : RowTerm
        The rows.
    columns : mapping whose keys are column indices, optional
        Columns to compare; all by default.
    """
    indexes = range(len(a)) if columns is None else columns
    return terms.z3.And(*(are_same(terms, a[k], b[k]) for k in indexes))


def are_same(terms: Terms, a: ValueTerm, b: ValueTerm) -> Any:
    """Return the formula that two values are equal or both NULL."""
    z3 = terms.z3
    one_sort = z3.is_bool(a.value) == z3.is_bool(b.value)
    said = a.value == b.value if one_sort else terms.some("equal")
    return z3.And(z3.equal(a.null, b.null), z3.Or(a.null, said))


def are_in_one_partition(terms: Terms, schema: Schema, a: RowTerm, b: RowTerm) -> Any:
    """Return the formula that two rows of a table are in one partition."""
    return are_equal(terms, a, b, dict.fromkeys(schema.partition_indexes))


def _empty(row: RowTerm, true: Any) -> RowTerm:
    """Return the row with NULL in each column."""
    return tuple(ValueTerm(one.value, true) for one in row)


def _compared_count(part: ex.Expr) -> tuple[ex.Subquery, str, int] | None:
    """Return the rows that a comparison counts, its operator, and its number; None for another."""
    inner = part.operand if isinstance(part, ex.Not) else part
    assert isinstance(inner, ex.Compare)
    op, left, right = inner.op, inner.left, inner.right
    if isinstance(part, ex.Not):
        op = NEGATED[op]
    if isinstance(left, ex.Const):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(left, ex.Subquery) or not isinstance(right, ex.Const):
        return None
    if left.item != ex.Aggregate("count", None, left.type) or not isinstance(right.value, int):
        return None
    return left, op, right.value


def _counted_below(part: ex.Expr) -> tuple[ex.Subquery, int] | None:
    """Return the rows that a comparison counts, and their largest number; None if it has none."""
    found = _compared_count(part)
    if found is None or found[1] not in ("<", "<=", "="):
        return None
    most = found[2] - (found[1] == "<")
    return (found[0], most) if most >= 0 else None


def _counted_from(part: ex.Expr) -> tuple[ex.Subquery, int] | None:
    """Return the rows that a comparison counts, and their smallest number; None if it has none."""
    found = _compared_count(part)
    if found is None:
        return None
    rows, op, number = found
    if op in (">", ">=", "="):
        return rows, number + (op == ">")
    return (rows, 1) if (op, number) == ("<>", 0) else None


class _From(NamedTuple):
    """Rows in the FROM clause of a branch, one per side: their condition, and the source rows."""

    rows: tuple[RowTerm | None, ...]
    when: Any
    sources: tuple[SourceRow, ...] = ()
    limits: tuple[RowLimit, ...] = ()
    identity: RowIdentity = ()
    required: tuple[RequiredRow, ...] = ()


class Template:
    """Instance of a statement whose parameters and other unknowns are those of ``terms``.

    ``statement`` is what it does to rows: for REPLACE TABLE, an overwrite of all rows. ``written``
    is the statement itself.
    """

    def __init__(
        self, statement: st.Statement, schemas: Mapping[str, Schema], terms: Terms
    ) -> None:
        assert isinstance(statement, TEMPLATES)
        self.written = statement
        self.statement: st.Statement = (
            st.Insert(statement.sql, statement.target, statement.query or (), overwrite=True)
            if isinstance(statement, st.Replace)
            else statement
        )
        self.schemas = schemas
        self.terms = terms
        self.z3 = terms.z3

    @property
    def target(self) -> Schema | None:
        """Table that the statement writes; None if it only reads."""
        return None if isinstance(self.statement, st.Read) else self.schemas[self.statement.target]

    def stored(self, values: RowTerm) -> RowTerm:
        """Return a row as the table stores it: some strings become NULL in a partition column."""
        z3, schema = self.z3, self._schema
        texts = {i for i in schema.partition_indexes if schema.columns[i].type == "STRING"}
        if not texts:
            return values
        return tuple(
            ValueTerm(v.value, z3.Or(v.null, self.terms.is_null_partition(v.value)))
            if i in texts
            else v
            for i, v in enumerate(values)
        )

    def adds(self, row: RowTerm) -> Any:
        """Return the formula that the statement may insert the row, or change some row into it."""
        return self.z3.Or(*(way.when for way in self.additions(row)))

    def additions(self, row: RowTerm) -> Iterator[Addition]:
        """Yield the ways in which the statement may insert the row, or change some row into it."""
        z3 = self.z3
        match self.statement:
            case st.Insert(query=query, where=where, generates=generated):
                columns = {k: None for k in range(len(row)) if k not in generated}
                kept = self.terms.holds(where, (row,))  # Delta rejects other rows
                for given in self.given(query):
                    same = are_equal(self.terms, self.stored(given.values), row, columns)
                    yield Addition(
                        z3.And(given.when, same, kept),
                        given.sources,
                        given.limits,
                        given.identity,
                        required=given.required,
                    )
            case st.Update(where=where, sets=sets):
                before = self._row_of_target("before")
                after = self._set(sets, before, (before,))
                when = z3.And(self.terms.holds(where, (before,)), are_equal(self.terms, after, row))
                yield Addition(when, ((self._schema.name, before),), replaced=before)
            case st.Merge():
                yield from self._merged(row)
            case st.Restore():
                yield Addition(self.terms.some("restored"))

    @property
    def certain(self) -> tuple[RowTerm, ...]:
        """Rows that the statement inserts whatever the tables hold."""
        match self.statement:
            case st.Insert(query=query, generates=()):
                return tuple(self.stored(row) for branch in query for row in self._surely(branch))
        return ()

    @property
    def always(self) -> bool:
        """True if the statement inserts or changes some row, whatever the tables hold."""
        match self.statement:
            case st.Insert(query=query):
                return any(True for branch in query for _ in self._surely(branch))
            case st.Merge(source=source, matched=matched, not_matched=new):
                rows = any(True for branch in source for _ in self._surely(branch))
                return rows and all(
                    any(clause.condition is None for clause in clauses)
                    for clauses in (matched, new)
                )
        return False

    def _surely(self, branch: qu.Branch) -> Iterator[RowTerm]:
        """Yield the rows that a branch returns, whatever the tables hold."""
        if isinstance(branch, qu.Select):
            if branch.grouped and not branch.keys:
                yield tuple(self.terms.value(item, ()) for item in branch.items)
        elif isinstance(branch, qu.Values) and branch.where is None:
            for values in branch.rows:
                yield tuple(self.terms.value(item, ()) for item in values)

    def removes(self, row: RowTerm) -> Any:
        """Return the formula that the statement may remove or change the row."""
        z3 = self.z3
        match self.statement:
            case st.Insert(overwrite=True, where=where, options=options, query=query):
                if options.using:
                    return self.terms.some("replaced")
                if not (options.dynamic and self._schema.partition_indexes):
                    return self.terms.holds(where, (row,))
                return z3.Or(
                    *(
                        z3.And(
                            given.when,
                            are_in_one_partition(
                                self.terms, self._schema, self.stored(given.values), row
                            ),
                        )
                        for given in self.given(query)
                    )
                )
            case st.Delete(where=where) | st.Update(where=where):
                return self.terms.holds(where, (row,))
            case st.Truncate():
                return z3.BoolVal(True)
            case st.Restore():
                return self.terms.some("not restored")
            case st.Merge(matched=matched, by_source=by_source):
                pairs = [
                    (given, (row, given.values)) for given in self.given(self.statement.source)
                ]
                gone = [
                    z3.And(given.when, self._paired(rows), self.terms.holds(c.condition, rows))
                    for given, rows in pairs
                    for c in matched
                ]
                gone += [self.terms.holds(c.condition, (row,)) for c in by_source]
                return z3.Or(*gone)
        return z3.BoolVal(False)

    def keeps(self, row: RowTerm) -> Any:
        """Return the formula that the statement may leave the row unchanged."""
        z3, kept = self.z3, self.z3.Not(self.removes(row))
        match self.statement:
            case st.Merge(source=source, matched=matched, by_source=by_source) if by_source:
                paired = []
                for given in self.given(source):
                    rows = (row, given.values)
                    changed = (self.terms.holds(clause.condition, rows) for clause in matched)
                    met = z3.And(given.when, self._paired(rows), z3.Not(z3.Or(*changed)))
                    paired.append(met)
                return z3.Or(kept, *paired)
        return kept

    def paired_with(self, row: RowTerm, table: str, source_row: RowTerm) -> Any:
        """Return the formula that a MERGE's ON pairs a row with what its source makes of a row of
        another table; false for other statements.
        """
        z3 = self.z3
        if not isinstance(self.statement, st.Merge):
            return z3.BoolVal(False)
        made = self.made_of(table, source_row)
        return z3.Or(*(z3.And(one.when, self._paired((row, one.values))) for one in made))

    def made_of(self, table: str, row: RowTerm) -> Iterator[GivenRow]:
        """Yield the rows that an INSERT's query or a MERGE's source makes of a row that it reads.

        Only branches that read the table row by row count: neither grouped nor of another version.
        """
        statement = self.statement
        assert isinstance(statement, st.Insert | st.Merge)
        inserts = isinstance(statement, st.Insert)
        query = statement.query if isinstance(statement, st.Insert) else statement.source
        for branch in query:
            if (
                isinstance(branch, qu.Select)
                and branch.table == table
                and branch.version is None
                and not branch.grouped
            ):
                values = tuple(self.terms.value(item, (row,)) for item in branch.items)
                if inserts:
                    values = self.stored(values)
                yield GivenRow(self.terms.holds(branch.where, (row,)), values)

    @property
    def needs_row_of(self) -> str | None:
        """Table without a row of which the statement writes nothing, as its only query reads it.

        None if there is no such table.
        """
        match self.statement:
            case st.Insert(overwrite=False, query=(qu.Select() as branch,)):
                pass
            case st.Merge(by_source=(), source=(qu.Select() as branch,)):
                pass
            case _:
                return None
        return None if branch.grouped or branch.version is not None else branch.table

    def ends(self, row: RowTerm) -> Iterator[RowEnd]:
        """Yield the ways in which an UPDATE or a MERGE may remove or change the row."""
        z3 = self.z3
        match self.statement:
            case st.Update(where=where, sets=sets):
                yield RowEnd(self.terms.holds(where, (row,)), self._set(sets, row, (row,)))
            case st.Merge(source=source, matched=matched, by_source=by_source):
                for given in self.given(source):
                    rows = (row, given.values)
                    paired = z3.And(given.when, self._paired(rows))
                    for clause in matched:
                        when = z3.And(paired, self.terms.holds(clause.condition, rows))
                        yield RowEnd(when, self._after(clause, row, rows))
                for clause in by_source:
                    when = self.terms.holds(clause.condition, (row,))
                    yield RowEnd(when, self._after(clause, row, (row,)))

    def _after(
        self, clause: st.MatchedClause, row: RowTerm, rows: tuple[RowTerm, ...]
    ) -> RowTerm | None:
        return self._set(clause.sets, row, rows) if clause.action == "update" else None

    def pairs(self, row: RowTerm) -> Any:
        """Return the formula that a MERGE reads the row.

        ON pairs it with a source row, or a WHEN NOT MATCHED BY SOURCE clause applies to it.
        """
        z3, merge = self.z3, self.statement
        assert isinstance(merge, st.Merge)
        read = [
            z3.And(
                given.when,
                self._paired((row, given.values)),
                z3.BoolVal(True)
                if merge.not_matched
                else z3.Or(
                    *(self.terms.holds(c.condition, (row, given.values)) for c in merge.matched)
                ),
            )
            for given in self.given(merge.source)
        ]
        read += [self.terms.holds(c.condition, (row,)) for c in merge.by_source]
        return z3.Or(*read)

    def given(self, query: qu.Query) -> Iterator[GivenRow]:
        """Yield the rows that a query may return."""
        for branch in query:
            if isinstance(branch, qu.Values):
                limits = tuple(self._limits(branch.where, ()))
                required = tuple(self._required(branch.where, ()))
                for row in branch.rows:
                    when = self.terms.holds(branch.where, ())
                    values = tuple(self.terms.value(item, ()) for item in row)
                    yield GivenRow(when, values, limits=limits, required=required)
                continue
            for side in self._sides(branch):
                when = self.z3.And(side.when, self.terms.holds(branch.where, side.rows))
                values = tuple(self._item(item, side.rows) for item in branch.items)
                if branch.grouped and not branch.keys:  # one row, even of an empty table
                    yield GivenRow(self.z3.BoolVal(True), values)
                    continue
                limits = (*side.limits, *self._limits(branch.where, side.rows))
                identity = side.identity
                if branch.grouped:
                    keys = tuple(self.terms.value(column, side.rows) for column in branch.keys)
                    identity = ((None, keys),)
                required = (*side.required, *self._required(branch.where, side.rows))
                yield GivenRow(when, values, side.sources, limits, required, identity)

    def _required(
        self, where: ex.Expr | None, rows: tuple[RowTerm | None, ...]
    ) -> Iterator[RequiredRow]:
        """Yield the rows that a condition requires: those of EXISTS, of IN, and of a count."""
        for part in ex.conjuncts(where):
            found: ex.Subquery | None = None
            match part:
                case ex.Subquery(kind="exists" | "in", grouped=False):
                    found = part
                case ex.Compare() | ex.Not(ex.Compare()):
                    counted = _counted_from(part)
                    found = counted[0] if counted is not None and counted[1] > 0 else None
            if found is not None and found.side == len(rows):
                yield RequiredRow(found.table, partial(self._is_in, found, rows))

    def _limits(
        self, where: ex.Expr | None, rows: tuple[RowTerm | None, ...]
    ) -> Iterator[RowLimit]:
        """Yield the limits that a condition sets: of NOT EXISTS, of NOT IN, and of a count."""
        for part in ex.conjuncts(where):
            match part:
                case ex.Not(ex.Subquery(kind="exists" | "in", grouped=False) as found):
                    yield RowLimit(0, partial(self._is_in, found, rows))
                case ex.Compare() | ex.Not(ex.Compare()):
                    counted = _counted_below(part)
                    if counted is not None:
                        yield RowLimit(counted[1], partial(self._is_in, counted[0], rows))

    def _is_in(
        self, found: ex.Subquery, rows: tuple[RowTerm | None, ...], table: str, row: RowTerm
    ) -> Any:
        """Return the formula that EXISTS or IN is true because of a row of a table, or that a
        count counts the row.
        """
        if found.table != table or found.side != len(rows):
            return self.z3.BoolVal(False)
        met = self.terms.holds(found.where, (*rows, row))
        if found.kind != "in":
            return met
        assert found.operand is not None
        same = ex.Compare("=", found.operand, found.item)
        return self.z3.And(met, self.terms.holds(same, (*rows, row)))

    def _is_joined(
        self, source: qu.JoinSource, rows: tuple[RowTerm | None, ...], table: str, row: RowTerm
    ) -> Any:
        """Return the formula that a row of a table is joined with rows of the sides before."""
        found = [
            self.z3.And(
                self.terms.holds(branch.where, (row,)),
                self.terms.holds(
                    source.on,
                    (*rows, tuple(self.terms.value(item, (row,)) for item in branch.items)),
                ),
            )
            for branch in source.query
            if isinstance(branch, qu.Select)
            and branch.table == table
            and branch.version is None
            and not branch.grouped
        ]
        return self.z3.Or(*found)

    def _sides(self, branch: qu.Select | qu.Joined) -> list[_From]:
        """Return the combinations of FROM rows of a branch, with their conditions.

        The row is None for a side that only must not match (an anti join).
        """
        true = self.z3.BoolVal(True)
        if isinstance(branch, qu.Select):
            row = self.terms.row(self.schemas[branch.table], branch.table)
            read: tuple[SourceRow, ...] = ((branch.table, row),)
            return [_From((row,), true, read, (), read)]
        found = [_From((), true)]
        for source in branch.sources:
            more: list[_From] = []
            for rows, when, read, limits, identity, required in found:
                without = (*limits, RowLimit(0, partial(self._is_joined, source, rows)))
                if source.how == "anti":
                    more.append(_From((*rows, None), when, read, without, identity, required))
                    continue
                for given in self.given(source.query):
                    joined = (*rows, given.values)
                    met = self.z3.And(when, given.when, self.terms.holds(source.on, joined))
                    both = (*limits, *given.limits)
                    paired = identity if source.how == "semi" else (*identity, *given.identity)
                    needed = (*required, *given.required)
                    more.append(_From(joined, met, (*read, *given.sources), both, paired, needed))
                    if source.how in ("left", "full"):
                        empty = _empty(given.values, true)
                        more.append(_From((*rows, empty), when, read, without, identity, required))
                    if source.how in ("right", "full"):
                        missed = (row and _empty(row, true) for row in rows)
                        more.append(
                            _From(
                                (*missed, given.values),
                                given.when,
                                given.sources,
                                given.limits,
                                given.identity,
                                given.required,
                            )
                        )
            found = more
        return found

    def _item(self, item: ex.Expr, rows: tuple[RowTerm | None, ...]) -> Any:
        """Return the value of an item of a select list; COUNT is never NULL."""
        value = self.terms.value(item, rows)
        if isinstance(item, ex.Aggregate) and item.function == "count":
            return value._replace(null=self.z3.BoolVal(False))
        return value

    @property
    def _schema(self) -> Schema:
        assert not isinstance(self.statement, st.Read)
        return self.schemas[self.statement.target]

    def _row_of_target(self, name: str) -> RowTerm:
        return self.terms.row(self._schema, name)

    def _paired(self, rows: tuple[RowTerm, ...]) -> Any:
        assert isinstance(self.statement, st.Merge)
        return self.terms.holds(self.statement.on, rows)

    def _set(
        self, sets: tuple[tuple[int, ex.Expr], ...], row: RowTerm, rows: tuple[RowTerm, ...]
    ) -> RowTerm:
        """Return the row after the assignments of an UPDATE, as the table stores it."""
        new = dict(sets)
        return self.stored(
            tuple(
                self.terms.value(new[k], rows) if k in new else value for k, value in enumerate(row)
            )
        )

    def _merged(self, row: RowTerm) -> Iterator[Addition]:
        """Yield the ways in which a MERGE may have made a row."""
        z3, merge = self.z3, self.statement
        assert isinstance(merge, st.Merge)
        for given in self.given(merge.source):
            for new in merge.not_matched:
                rows = ((), given.values)
                values = self.stored(tuple(self.terms.value(value, rows) for value in new.values))
                made = z3.And(given.when, self.terms.holds(new.condition, rows))
                unmatched = RowLimit(0, partial(self._is_matched, given.values))
                limits = (*given.limits, unmatched)
                same = are_equal(self.terms, values, row)
                yield Addition(
                    z3.And(made, same),
                    given.sources,
                    limits,
                    given.identity,
                    required=given.required,
                )
            for clause in merge.matched:
                if clause.action == "update":
                    before = self._row_of_target("before")
                    both = (before, given.values)
                    met = z3.And(
                        given.when, self._paired(both), self.terms.holds(clause.condition, both)
                    )
                    same = are_equal(self.terms, self._set(clause.sets, before, both), row)
                    read = ((self._schema.name, before), *given.sources)
                    yield Addition(
                        z3.And(met, same),
                        read,
                        given.limits,
                        replaced=before,
                        required=given.required,
                    )
        for clause in merge.by_source:
            if clause.action == "update":
                before = self._row_of_target("before")
                met = self.terms.holds(clause.condition, (before,))
                same = are_equal(self.terms, self._set(clause.sets, before, (before,)), row)
                yield Addition(z3.And(met, same), ((self._schema.name, before),), replaced=before)

    def _is_matched(self, source: RowTerm, table: str, row: RowTerm) -> Any:
        """Return the formula that ON pairs a row of a table with a row of the MERGE's source."""
        return self._paired((row, source)) if table == self._schema.name else self.z3.BoolVal(False)
