"""Reader of one job of a workload file: statements, parameters, client queries, conditions."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.readers.job_keys import (
    in_file,
    job_condition,
    job_conf,
    job_confs,
    not_null_in,
    types_in,
)
from isolitmus.jobs.readers.statement_places import (
    LINE,
    begun_wrong,
    placed_error,
    statement_label,
    statement_places,
    unread_job,
    word_place,
)
from isolitmus.jobs.readers.unread_tables import named_unread_table, refuse_unread_table
from isolitmus.jobs.sql.created_tables import creation_as_overwrite, overwrite_as_creation
from isolitmus.jobs.sql.generated_columns import with_generated_columns
from isolitmus.jobs.sql.job_statements import (
    adds_columns,
    altered_tables,
    commits_nothing,
    concerns_no_table,
    decided_later,
    find_transactions,
    names_view,
    plain_statement,
    temporary_view,
    transaction_reason,
    transaction_statements,
    unsupported_reason,
    with_views,
)
from isolitmus.jobs.sql.parameter_types import infer_types
from isolitmus.jobs.sql.relation_account import RelationAccount
from isolitmus.jobs.sql.relations import SqlSession, is_use
from isolitmus.jobs.sql.undeclared_sources import (
    UNPARSED,
    replace_undeclared_sources,
    replace_unparsed_query,
)
from isolitmus.jobs.sql.uninterpreted_sources import changed_table, find_uninterpreted_sources
from isolitmus.jobs.workload import Job, JobStatement, UnreadStatement, UnreadTable
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import (
    IsolitmusError,
    LitmusError,
    SqlError,
    brief,
    near,
)
from isolitmus.model.sql.expression import TRUE, ColumnRef, Opaque, walk
from isolitmus.model.sql.query import items_of, unknown_parts
from isolitmus.model.sql.statement import (
    Definition,
    Delete,
    Insert,
    Merge,
    Optimize,
    Read,
    Replace,
    Restore,
    Truncate,
    Update,
    Vacuum,
)
from isolitmus.model.sql.types import NAMED_TYPES
from isolitmus.specs.files.client_file import apply_confs
from isolitmus.specs.files.toml_reader import NAME, Node, show_value
from isolitmus.specs.sql.configuration import (
    SET,
    SKIPPING,
    is_dynamic_overwrite,
)
from isolitmus.specs.sql.definitions import property_parameters, with_any_version
from isolitmus.specs.sql.parameters import BLANK, is_unnamed, one_line, parameters
from isolitmus.specs.sql.run_constants import unnamed_parameters
from isolitmus.specs.sql.source_text import locate_error
from isolitmus.specs.sql.statements import refused_part, resolve
from isolitmus.specs.sql.syntax import Syntax, well_formed
from isolitmus.specs.sql.table_creations import without_location

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from isolitmus.jobs.sql.job_statements import TransactionBlock
    from isolitmus.jobs.sql.undeclared_sources import UndeclaredSource
    from isolitmus.jobs.sql.uninterpreted_sources import UninterpretedSource
    from isolitmus.model.assumption import Place
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type

OF_JOB = ("sql", "parameters", "where", "let", "alone", "after", "conf", "options")
UNLESS = re.compile(
    rf"{BLANK}CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s+(?:`?\w+`?\.)*`?(?P<table>\w+)`?",
    re.IGNORECASE,
)
NO_EFFECT = "no effect on conflicts"
WITHOUT_DDL = "no effect on conflicts of statements on tables with DDL"
SHOWN = 120
"""Maximum length of a statement in an assumption."""
QUOTED = re.compile(r"'([^']+)'")
UNKNOWN_TABLE = re.compile(r"unknown table '(\w*[A-Za-z_])'")
"""Message about a table without DDL; its name may not end in a number, as a copy's does."""
MISSPELLED = 0.9
"""Similarity (difflib's ratio) from which a table's name is a misspelled one."""
STATEMENTS = (
    Insert, Delete, Update, Merge, Truncate, Optimize, Vacuum, Read, Definition, Replace, Restore,
)  # fmt: skip

OTHERS = (
    "unsupported statement '{}'; jobs may have INSERT, UPDATE, DELETE, MERGE, TRUNCATE, OPTIMIZE,"
    " VACUUM, SELECT, ALTER TABLE, COMMENT ON, RESTORE and CREATE OR REPLACE TABLE"
)


class _Query(NamedTuple):
    """Query of a ``let``, with the type of its value and its own parameters."""

    read: Read
    type: Type
    parameters: tuple[str, ...]
    reads: frozenset[str]
    """Tables that its text reads otherwise than it is understood."""


class _GivenStatement(NamedTuple):
    """Statement of a job before it is read."""

    text: str
    """Text, with the temporary views that it names in WITH."""
    written: str
    """Text as written."""
    place: Place
    session: SqlSession
    """What the statements before it have set."""
    problem: str
    """Why the name of a table is not understood; empty if all are."""


class _ReadWith(NamedTuple):
    """Types, queries and configuration with which a statement of a job is parsed."""

    types: Mapping[str, Type]
    let: Mapping[str, _Query]
    confs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobReader:
    """Reader of jobs on given tables with shared parameters."""

    schemas: dict[str, Schema]
    """Schemas of the tables; uninterpreted sources are added during parsing."""
    shared: Mapping[str, Type]
    """Parameters that have one value in all concurrent runs."""
    formats: Mapping[str, str]
    """Formats of tables that are not Delta tables."""
    besides: str
    """Fix in the message about an unknown table."""
    written: frozenset[str]
    """Tables that jobs write to."""
    texts: tuple[str, ...] = ()
    """Statements of all jobs."""
    hints: Mapping[str, Schema] = field(default_factory=dict)
    """Some columns of tables without DDL, by name in lower case."""
    unread_tables: Mapping[str, UnreadTable] = field(default_factory=dict)
    """Tables and views that are declared, but not understood, by name in lower case."""
    instead: list[UninterpretedSource] = field(default_factory=list)
    """Uninterpreted sources of unsupported queries."""
    passed: list[Assumption] = field(default_factory=list)
    """Assumptions about statements that commit nothing."""
    sources: list[UndeclaredSource] = field(default_factory=list)
    """Tables without DDL that are only read."""
    unread: list[tuple[UnreadStatement, IsolitmusError]] = field(default_factory=list)
    """Statements that are not understood, each with the error about it."""
    account: RelationAccount = field(default_factory=partial(RelationAccount, {}))
    """Account of the relations that statements name."""
    originals: Mapping[str, str] = field(default_factory=dict)
    """Text as written of each statement with other names of its tables."""
    unclear: Mapping[str, str] = field(default_factory=dict)
    """Why the name of a table in a text is not understood."""
    branches: list[tuple[str, str]] = field(default_factory=list)
    """Jobs of which some statements are only executed under a condition, each with the reason."""

    def job(self, name: str, node: Node, spans: Sequence[tuple[int, int]] = ()) -> Job:
        """Return a job; refuse parameters that no statement uses or that are shared already.

        `spans` are the positions of its statements in the file, if these are known.
        """
        if not NAME.fullmatch(name):
            node.refuse(f"job '{name}': invalid name; use letters, digits and _")
        if isinstance(node.value, str | list):
            node = Node({"sql": node.value}, node.path, node.source)
        node.table()
        node.keys(OF_JOB)
        declared = node.at("parameters", node.get("parameters", dict, {}))
        own = types_in(declared)
        for parameter in own:
            if parameter in self.shared:
                node.refuse(
                    f"{node}.parameters: '{parameter}' is declared as shared already; remove it"
                    " here"
                )
        sql = node.value.get("sql")
        texts = [sql] if isinstance(sql, str) else sql
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
            node.refuse(f"{node} needs the key 'sql', a string or a list of strings")
        queries = node.inner("let", {})
        given = [*self.given(node, texts, spans)]
        types = {**self.shared, **own}
        named = [one.text for one in given]
        types |= self.undeclared(node, named, queries, {*types, *queries.value})
        let = {key: self.let(key, queries, types) for key in queries.value}
        every = {**types, **{key: query.type for key, query in let.items()}}
        statements = tuple(self.statements(name, given, node, every, let))
        where, known = job_condition(node, types)
        used = {p for one in statements for p in one.types}
        used |= {part.name for part in walk(where or TRUE) if isinstance(part, ColumnRef)}
        used |= {parameter for text in texts for parameter in parameters(text)}
        for parameter in own:
            if parameter not in used:
                node.refuse(
                    f"{node}.parameters: no statement of the job uses ':{parameter}'; remove it"
                )
        return Job(name, statements, types, where, known, node.place, not_null_in(declared))

    def given(
        self, node: Node, texts: Sequence[str], spans: Sequence[tuple[int, int]]
    ) -> Iterator[_GivenStatement]:
        """Yield the statements of a job, each with the views that those before it create."""
        views: dict[str, str] = {}
        unknown: set[str] = set()
        declared = {name.lower() for name in (*self.schemas, *self.unread_tables)}
        session = SqlSession()
        written = [self.originals.get(text, text) for text in texts]
        for text, original, place in zip(
            texts, written, statement_places(node, written, spans), strict=True
        ):
            view = temporary_view(text)
            problem = self.unclear.get(text, "")
            for name in unknown:
                if not problem and names_view(text, name) and (view is None or view[0] != name):
                    problem = f"'{name}' is a temporary view that is not understood"
            after = session.after(original)
            defined = {
                name
                for name, one in after.definitions.items()
                if session.definitions.get(name) is not one
            }
            if view is not None and not problem:
                views[view[0]] = with_views(view[1], views)
                unknown -= defined
            else:
                full = text if defined else with_views(text, views)
                yield _GivenStatement(full, original, place, session, problem)
                # the name means neither the view before it nor a table any more
                unknown |= {name for name in defined if name in views or name in declared}
                views = {name: query for name, query in views.items() if name not in defined}
            session = after
            views = {name: query for name, query in views.items() if name in after.definitions}
            unknown &= after.definitions.keys()

    def statements(
        self,
        name: str,
        given: Sequence[_GivenStatement],
        node: Node,
        types: Mapping[str, Type],
        let: Mapping[str, _Query],
    ) -> Iterator[JobStatement]:
        """Yield the statements of a job, each with the session configuration at that point."""
        confs = job_confs(node)
        sets = [SET.fullmatch(one.text) for one in given]
        blocks = {one.first: one for one in find_transactions([one.written for one in given])}
        inside = {k for one in blocks.values() for k in range(one.first, one.last + 1)}
        over = [
            found is None and k not in inside and self.is_passed(one.text)
            for k, (one, found) in enumerate(zip(given, sets, strict=True))
        ]
        alone = [k for k, found in enumerate(sets) if found is None and k not in inside]
        several = len(alone) + len(blocks) - sum(over) > 1
        number = 0
        before: frozenset[str] = frozenset()
        for k, (one_given, found, passed) in enumerate(zip(given, sets, over, strict=True)):
            text, place = one_given.text, one_given.place
            if k in blocks:
                number += 1
                title = (name, number if several else 0)
                together = given[k : blocks[k].last + 1]
                self.unread.append(self._transaction(title, blocks[k], together, node))
            if (k in inside and found is None) or (passed and is_use(text)):
                continue
            if passed and (decided := decided_later(text)):
                # the client reads what a condition or a variable is computed from
                before |= self.account.read_by(one_given.written, one_given.session)
                if decided == "condition":
                    said = f"whether a run of {name} executes all of its statements depends on"
                    self.branches.append((name, f"{said} '{brief(one_line(text), SHOWN)}'"))
            if passed:
                said = "no effect, because the table exists" if self.exists(text) else NO_EFFECT
                said = said if self.exists(text) or commits_nothing(text) else WITHOUT_DDL
                said = f"{name}: '{brief(one_line(text), SHOWN)}' has {said}."
                self.passed.append(AssumptionKind.NO_EFFECT.says(said))
                continue
            if found is not None:
                confs[found["key"]] = job_conf(node, found["key"], found["value"])
                continue
            number += 1
            title = (name, number if several else 0)
            assumed: list[list[Any]] = [self.sources, self.instead, self.passed]
            counts = [*map(len, assumed)]
            try:
                with in_file(node, "sql", text):
                    plain = plain_statement(text)
                    refuse_unread_table(
                        plain, statement_label(node, one_given.written), self.unread_tables
                    )
                one = self.accounted(title, one_given, node, _ReadWith(types, let, confs), before)
                changed = apply_confs(one.statement, confs, node.refuse, f"{node}.sql")
            except (LitmusError, SqlError) as error:
                for some, count in zip(assumed, counts, strict=True):
                    del some[count:]  # nothing is assumed about what is not understood
                problem = begun_wrong(placed_error(error, node, text), text, place, node.source)
                left_out = replace(
                    self._unread(title, one_given, problem), location=place, sql=text
                )
                wrong = self._mistake(left_out, problem)
                self.unread.append((replace(left_out, mistake=wrong), problem))
                continue
            yield replace(one, statement=changed, conf=dict(confs), location=place)

    def accounted(
        self,
        title: tuple[str, int],
        given: _GivenStatement,
        node: Node,
        read_with: _ReadWith,
        before: frozenset[str],
    ) -> JobStatement:
        """Return a statement with all tables that its text reads; SqlError if it may read its own
        otherwise than it is understood.

        Whether and how it is executed depends on the tables that were read ``before``.
        """
        if given.problem:
            raise SqlError(f"{given.place}: {given.problem}", problem=given.problem)
        one = self.statement(title, given.text, node, read_with)
        text = plain_statement(given.written)
        tables, problem = self.account.close(text, one.statement, given.session, one.reads)
        if problem:
            raise SqlError(f"{given.place}: {problem}", problem=problem)
        tables = tables.union(before, *(read_with.let[name].reads for name in one.let))
        more = [n for n in self.schemas if n in tables and n.lower() in self.written]
        return replace(one, reads=tuple(dict.fromkeys((*one.reads, *more)))) if more else one

    def is_passed(self, text: str) -> bool:
        """Return whether a statement is passed over, as one without effect on conflicts."""
        declared = {name.lower() for name in (*self.schemas, *self.unread_tables)}
        return (
            commits_nothing(text)
            or self.exists(text)
            or concerns_no_table(text, declared, self.written, self.texts)
        )

    def exists(self, text: str) -> bool:
        """Return whether a statement creates a declared Delta table, unless it exists."""
        found = UNLESS.match(text)
        named = (
            set() if found is None else {found["table"].lower()} - {*map(str.lower, self.formats)}
        )
        return bool(named & {name.lower() for name in self.schemas})

    def leave_out(self, job: str, node: Node, error: IsolitmusError) -> None:
        """Leave out a job with a mistake as not understood."""
        self.unread[:] = [one for one in self.unread if one[0].job != job]
        self.unread.append((unread_job(job, error, node.source), error))

    def _mistake(self, one: UnreadStatement, error: LitmusError | SqlError) -> Place | None:
        """Return the place of the word that makes a statement fail in any case; None if its text
        and the DDL do not show that.
        """
        if not isinstance(error, SqlError):
            return None
        certain = error.kind == "no column" and not any(map(adds_columns, self.texts))
        if error.kind == "syntax":  # templates, and what only sqlglot does not parse
            certain = "{" not in one.sql and UNPARSED.search(one.sql) is None
        if error.kind == "no table" and (named := UNKNOWN_TABLE.match(error.problem)):
            # the DDL may have only a part of the tables
            certain = bool(get_close_matches(named[1].lower(), self.schemas, 1, MISSPELLED))
        found = LINE.search(one.place)
        if not certain or one.location is None:
            return None
        if found is None or found[2] is None:  # the error is about a text made of the statement
            named = QUOTED.search(error.problem)
            return one.location if named is None else word_place(one, named[1])
        line = int(found[1])
        return one.location._replace(line=line, column=int(found[2]), end_line=line)

    def _unread(
        self, title: tuple[str, int], given: _GivenStatement, error: LitmusError | SqlError
    ) -> UnreadStatement:
        """Return a statement that is not understood.

        Its tables are known if it alters one, or if it parses, and names no relation that is not
        declared, which might be a view of one that is.
        """
        text = given.text
        tables = altered_tables(text)
        if tables is not None and not given.problem:
            return replace(self._told(title, given, error), tables=tables)
        if undeclared := self.account.undeclared_target(given.written, given.session):
            said = f"{_name(title)} writes to no declared table under another name."
            self.passed.append(AssumptionKind.DIFFERENT_NAMES.says(said))
            return replace(
                self._told(title, given, error),
                tables=frozenset({undeclared}),
                target=undeclared,
            )
        named = self.account.named_in(given.written, given.session)
        target = changed_table(text)
        views = {name for name, one in self.unread_tables.items() if one.is_view}
        known = {name.lower() for name in (*self.schemas, *self.unread_tables)} - views
        return replace(
            self._told(title, given, error),
            tables=None if named is None else frozenset(map(str.lower, named)),
            target=target if target in known and not given.problem else None,
        )

    def _told(
        self, title: tuple[str, int], given: _GivenStatement, error: LitmusError | SqlError
    ) -> UnreadStatement:
        """Return what an error tells of a statement, at its line also if names were changed."""
        told = replace(unread_job(title[0], error), name=_name(title))
        if given.text == given.written or LINE.search(told.place):
            return told
        place = given.place
        return replace(told, place=f"{place.file}:{place.line}:{place.column}")

    def _transaction(
        self,
        title: tuple[str, int],
        block: TransactionBlock,
        given: Sequence[_GivenStatement],
        node: Node,
    ) -> tuple[UnreadStatement, SqlError]:
        """Return a transaction of several statements, as one that is not understood."""
        first, place = given[0].written, given[0].place
        named = [
            frozenset() if one.problem else self.account.named_in(text, one.session)
            for one in given
            for text in transaction_statements(one.written)
        ]
        # an empty set is that of a text whose tables are not told, such as OPTIMIZE
        tables = {table.lower() for some in named for table in some or ()}
        try:
            with in_file(node, "sql", first):
                raise locate_error(
                    statement_label(node, first), first, 0, transaction_reason(block)
                )
        except SqlError as error:
            left_out = replace(
                unread_job(title[0], error),
                name=_name(title),
                tables=frozenset(tables) if all(named) else None,
                location=place._replace(end_line=given[-1].place.end_line),
                sql=";\n".join(one.text for one in given),
            )
            return left_out, error

    def undeclared(
        self, node: Node, texts: Sequence[str], queries: Node, known: Container[str]
    ) -> dict[str, Type]:
        """Return the types of undeclared parameters, taken from the columns that determine them."""
        given = [(text, statement_label(node, text)) for text in texts]
        given += [
            (one.value, _let_label(name, one))
            for name, one in queries.items()
            if isinstance(one.value, str)
        ]
        open_ = []
        schemas = dict(self.schemas)
        for written, label in given:
            if SET.fullmatch(written) or all(p in known for p in parameters(written)):
                continue
            if named_unread_table(written, self.unread_tables) is not None:
                continue
            # a text that does not parse determines nothing
            with suppress(SqlError), well_formed(written, label):
                text, sources = replace_undeclared_sources(
                    creation_as_overwrite(written) or written,
                    schemas,
                    by_run=False,
                    hints=self.hints,
                )
                schemas |= {one.schema.name: one.schema for one in sources}
                syntax = Syntax(text, label)
                syntax.tree()
                open_.append(syntax)
        found = infer_types(open_, schemas)
        for written, _ in given:
            found |= dict.fromkeys(property_parameters(written), "STRING")
        return {name: type_ for name, type_ in found.items() if name not in known}

    def let(self, name: str, queries: Node, types: Mapping[str, Type]) -> _Query:
        """Return a client query of a job; refuse one without exactly one column."""
        query = queries.at(name)
        text = query.value
        if not NAME.fullmatch(name) or name in types:
            query.refuse(f"{query}: the name '{name}' is invalid or already a parameter; rename it")
        if not isinstance(text, str):
            query.refuse(f"{query} is {show_value(text)}; write a query as a string")
        with in_file(queries, name, text):
            refuse_unread_table(text, _let_label(name, query), self.unread_tables)
            found = self.resolved(self.typed(text, _let_label(name, query), query, types))
        if not isinstance(found, Read) or len(items_of(found.query[0])) != 1:
            query.refuse(f"{query} is '{text}'; write a query with one column")
        tables, problem = self.account.close(text, found, SqlSession(), ())
        if problem:
            query.refuse(f"{query}: {problem}")
        return _Query(found, items_of(found.query[0])[0].type, parameters(text), tables)

    def typed(self, text: str, label: str, node: Node, types: Mapping[str, Type]) -> Syntax:
        """Return the syntax with typed parameters; refuse a parameter whose type is unknown."""
        open_ = [parameter for parameter in parameters(text) if parameter not in types]
        if open_:
            self._refuse_names(
                Syntax(text, label).typed({**types, **dict.fromkeys(open_, "STRING")}, opaque=True)
            )
        for parameter in open_:
            written = (
                f"a line -- :{parameter} DATE"
                if node.source.label.endswith(".sql")
                else f'parameters = {{ {parameter} = "DATE" }}'
            )
            node.refuse(
                f"{node}: no single column determines the type of"
                f" ':{parameter}'{near(parameter, types)}; write {written}, or one of"
                f" {', '.join(NAMED_TYPES)}"
            )
        return Syntax(text, label).typed(types, opaque=True)

    def _refuse_names(self, syntax: Syntax) -> None:
        """Refuse an unknown table or column: a parameter compared with it has no type."""
        try:
            self.resolved(syntax)
        except SqlError as error:
            if error.kind in ("no table", "no column", "syntax"):
                raise

    def resolved(self, syntax: Syntax) -> Statement:
        """Return the resolved statement; tables that it only reads have to be declared as well."""
        try:
            return resolve(syntax, self.schemas)
        except SqlError as error:
            if error.kind != "no table" or error.start is None:
                raise
            problem = f"{error.problem}; {self.besides}"
            raise locate_error(
                syntax.label, syntax.text, error.start, problem, error.kind
            ) from None

    def modelled(
        self, syntax: Syntax, confs: Mapping[str, str]
    ) -> tuple[Statement, UninterpretedSource | None]:
        """Return the statement, with an uninterpreted source for an unsupported query if that
        suffices.
        """
        problem: SqlError | None = None
        found: Statement | None = None
        try:
            found = self.resolved(syntax)
        except SqlError as error:
            created = creation_as_overwrite(syntax.text) is not None
            if error.kind != "outside" and not (created and error.kind == "no table"):
                raise
            problem = error
        if found is not None and not _opaque(found):
            return found, None
        if found is not None and (refused := refused_part(found)) is not None:
            start = max(syntax.text.find(str(refused.part)), 0)
            said = (
                f"{refused.problem}; it is allowed in INSERT … SELECT and in the source of a MERGE"
            )
            raise locate_error(syntax.label, syntax.text, start, said)
        dynamic = is_dynamic_overwrite(confs)
        with well_formed(syntax.text, syntax.label):
            for one in self.sources_of(syntax, dynamic=dynamic):
                schemas = {**self.schemas, one.schema.name: one.schema}
                other = Syntax(one.sql, syntax.label).typed(
                    {**syntax.types, **one.types}, opaque=True, constants=syntax.constants
                )
                with suppress(SqlError):
                    instead = resolve(other, schemas)
                    if not _opaque(instead):
                        self.schemas[one.schema.name] = one.schema
                        self.instead.append(one)
                        return instead, one
        if found is None:
            assert problem is not None
            raise problem
        return found, None

    def sources_of(self, syntax: Syntax, *, dynamic: bool) -> Iterator[UninterpretedSource]:
        """Yield replacements of a query of a statement, the smallest queries first."""
        overwrite = creation_as_overwrite(syntax.text)
        if overwrite is None:
            yield from find_uninterpreted_sources(
                syntax.text, self.schemas, syntax.types, dynamic=dynamic
            )
            return
        for one in find_uninterpreted_sources(overwrite, self.schemas, syntax.types):
            made = overwrite_as_creation(one.sql, syntax.text, self.schemas, typed=True)
            if made is not None:
                yield replace(one, sql=made)

    def declared(
        self, text: str, types: Mapping[str, Type], *, versions: bool
    ) -> tuple[str, tuple[UndeclaredSource, ...]]:
        """Return a statement with a table in place of each table without DDL that it reads."""
        if (unparsed := replace_unparsed_query(text, self.schemas)) is not None:
            made, name, query = unparsed
            other, sources = replace_undeclared_sources(made, self.schemas, types, hints=self.hints)
            if [one.name for one in sources] == [name]:
                return other, (replace(sources[0], query=query),)
        overwrite = creation_as_overwrite(text)
        if overwrite is None:
            return replace_undeclared_sources(
                text, self.schemas, types, versions=versions, hints=self.hints
            )
        other, found = replace_undeclared_sources(
            overwrite, self.schemas, types, versions=versions, hints=self.hints
        )
        created = overwrite_as_creation(other, text, self.schemas) if found else None
        return (text, ()) if created is None else (created, found)

    def statement(
        self, title: tuple[str, int], text: str, node: Node, given: _ReadWith
    ) -> JobStatement:
        """Return a statement of a job with its parameters and client queries."""
        types, let, confs = given
        with in_file(node, "sql", text):
            label = statement_label(node, text)
            written = parameters(text)
            text = plain_statement(text)
            if reason := unsupported_reason(text):
                raise locate_error(label, text, 0, reason)
            text, location = without_location(with_any_version(text))
            if location:
                self.passed.append(
                    AssumptionKind.SHORT_NAME.says(
                        f"{_name(title)}: {location} is the folder of its table."
                    )
                )
            original, text = text, with_generated_columns(text, self.schemas)
            versions = confs.get(SKIPPING, "").lower() != "false"
            with well_formed(text, label):
                other, sources = self.declared(text, types, versions=versions)
            runs = {one.run: one.schema.columns[-1].type for one in sources}
            before = set(self.schemas)
            self.schemas.update({one.schema.name: one.schema for one in sources})
            try:
                # an expression of a value that the client reads is not any value
                read = replace(
                    self.typed(other, label, node, {**types, **runs}),
                    constants=not let.keys() & {*written},
                )
                found, instead = self.modelled(read, confs)
            except SqlError as error:
                for name in set(self.schemas) - before:
                    del self.schemas[name]
                if other == original:
                    raise
                said = f"{label}: {error.problem}"
                raise SqlError(said, problem=error.problem, kind=error.kind) from None
            self.sources.extend(sources)
            if not isinstance(found, STATEMENTS):
                raise locate_error(label, text, 0, OTHERS.format(text.split(maxsplit=1)[0]))
        if not isinstance(found, Read) and found.target in self.formats:
            node.refuse(
                f"{node}.sql: '{text.split(maxsplit=1)[0]}' writes to {found.target}, which has the"
                f" format {self.formats[found.target]} and no commit protocol; jobs may only read"
                " such a table"
            )
        used = [name for name in parameters(other) if name not in runs]
        own = {name: query.read for name, query in let.items() if name in used}
        named = dict.fromkeys((*used, *(p for name in own for p in let[name].parameters)))
        name = _name(title)
        typed = {p: types[p] for p in named} | unnamed_parameters(found) | runs
        self.passed.extend(
            AssumptionKind.ANY_VALUE.says(
                f"{name}: '{one}' may be any {type_} or NULL, one value in each run."
            )
            for one, type_ in unnamed_parameters(found).items()
            if is_unnamed(one)
        )
        if isinstance(found, Restore):
            self.passed.append(
                AssumptionKind.ANY_VALUE.says(
                    f"{name}: any earlier version of {found.target} may be restored."
                )
            )
        if isinstance(found, Restore) or any(one.query for one in sources):
            typed |= {p: types[p] for p in written if p in types}
        reads: tuple[str, ...] = ()
        if instead is not None:
            text, typed = instead.sql, typed | dict(instead.types)
            reads = tuple(n for n in self.schemas if n.lower() in self.written & {*instead.reads})
        else:
            text = other
            named_in = {word for one in sources for word in re.findall(r"\w+", one.query.lower())}
            reads = tuple(n for n in self.schemas if n.lower() in self.written & named_in)
        return JobStatement(name, title[0], text, found, typed, own, reads=reads)


def _name(title: tuple[str, int]) -> str:
    """Return the name of a statement: of its job, with its number if there are several."""
    job, number = title
    return f"{job}_{number}" if number else job


def _opaque(statement: Statement) -> bool:
    return any(isinstance(part, Opaque) for part in unknown_parts(statement))


def _let_label(name: str, query: Node) -> str:
    return f"{query.place}, let {name}"
