"""Reader of workload files (TOML): tables, jobs by name, conditions on parameters.

The format is described in docs/workload-files.md. Tables come from DDL, from keys as in litmus
files, or from Delta logs. Each error is one sentence with the file, the line, the problem and a
fix; errors in SQL point into the statement.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.readers.declared_tables import refuse_differing
from isolitmus.jobs.readers.job_keys import not_null_in, types_in
from isolitmus.jobs.readers.job_reader import SHOWN, JobReader
from isolitmus.jobs.readers.job_schedule import JobSchedule, read_apart
from isolitmus.jobs.readers.reading_cache import (
    CachedJobReader,
    cached_reading,
    cached_written_tables,
)
from isolitmus.jobs.readers.recorded_functions import add_function_jobs, build_with_functions
from isolitmus.jobs.readers.table_names import (
    name_jobs,
    name_tables,
    plain_names,
    relation_account,
)
from isolitmus.jobs.readers.unread_tables import creates_no_table, unread_table
from isolitmus.jobs.sql.generated_columns import with_generated
from isolitmus.jobs.sql.invariant_text import FORMS, read_invariants_of
from isolitmus.jobs.sql.job_statements import transaction_statements
from isolitmus.jobs.sql.relations import relation_name
from isolitmus.jobs.workload import Job, QueryText, StandIn, Workload
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import LitmusError, NoLitmusTest, SqlError, brief, near
from isolitmus.model.sql.statement import Read
from isolitmus.specs.disk.input_files import ENTRIES, real_path
from isolitmus.specs.files.table_ddl import read_ddl, table_ddl
from isolitmus.specs.files.table_file import read_table, read_tables
from isolitmus.specs.files.toml_reader import DELTA, Node, Source, show_value
from isolitmus.specs.sql.configuration import LAYOUT, LEVELS, MADE
from isolitmus.specs.sql.parameters import one_line
from isolitmus.specs.sql.source_text import errors_in_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.readers.recorded_functions import FunctionForms, FunctionRunner
    from isolitmus.jobs.readers.table_names import TableNames
    from isolitmus.jobs.sql.undeclared_sources import UndeclaredSource
    from isolitmus.jobs.workload import JobStatement, UnreadTable
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.files.table_ddl import TableDeclaration
    from isolitmus.specs.files.toml_reader import TomlTable


class WorkloadTables(NamedTuple):
    """Tables of a workload, their isolation level, and the formats of tables that are not Delta
    tables.
    """

    schemas: dict[str, Schema]
    level: str | None
    formats: dict[str, str]
    left_out: tuple[Assumption, ...] = ()
    """Assumptions about properties of the file layout."""
    unread: tuple[UnreadTable, ...] = ()
    """Tables and views that are declared, but not understood."""


def workload_tables(document: Node, logged: Sequence[LoggedDeclaration]) -> WorkloadTables:
    """Return the tables from DDL, from keys as in litmus files, or from Delta logs."""
    there, found = _logged(document, logged), _declared(document)
    level = document.value.get("level")
    formats: dict[str, str] = {}
    left_out = dict.fromkeys(line for one in logged for line in _left_out(one.declared))
    unread: tuple[UnreadTable, ...] = ()
    if found is not None:
        schemas, declared, formats, said_of, unread = found
        left_out |= dict.fromkeys(said_of)
        level = level or declared
        schemas |= _beside(document, schemas, logged, there)
        if len(formats) == len(schemas) and not unread:
            known = ", ".join(formats.values())
            document.refuse(f"ddl creates no Delta table, only {known}; add one with USING delta")
    elif logged:
        schemas = there
    else:
        document.refuse(
            'no table is declared; write ddl = "CREATE TABLE …", or give a Delta table: --table'
            " FOLDER"
        )
    said, levels = _level(document, level), {one.declared.level: one for one in logged}
    if len(levels) > 1:
        document.refuse(
            f"the tables have different levels, {' and '.join(map(str, levels))}; a workload has"
            " one level"
        )
    for other, one in levels.items():
        if said not in (None, other):
            document.refuse(
                f"level is {said}, but the log of {one.folder} says {other}; remove the key"
                " (--level asks about another level)",
                "level",
            )
    said = said or next(iter(levels), None)
    return WorkloadTables(schemas, said, formats, tuple(left_out), unread)


def _kept_tables(
    document: Node, logged: Sequence[LoggedDeclaration], store: ReadingStore | None
) -> WorkloadTables:
    """Return the tables of a document, those of DDL from the store if it has them."""
    others = {key: one for key, one in document.value.items() if key != "jobs"}
    if logged or "ddl" not in others:
        return workload_tables(document, logged)
    read = cached_reading(store, "tables", others, lambda: (*workload_tables(document, ()),))
    return WorkloadTables(*read)


def _logged(document: Node, logged: Sequence[LoggedDeclaration]) -> dict[str, Schema]:
    """Return the tables that logs declare, by name."""
    found: dict[str, Schema] = {}
    for folder, declared, _ in logged:
        if declared.name.lower() in {name.lower() for name in found}:
            document.refuse(
                f"two tables have the name '{declared.name}'; write --table NAME={folder} for one"
                " of them"
            )
        node = Node(_without_layout(declared), "its log", Source(str(folder)))
        found[declared.name] = _with_values(read_table(declared.name, node), declared)
    return found


def _with_values(schema: Schema, declared: TableDeclaration) -> Schema:
    """Return the schema with the columns marked that have a DEFAULT or are generated."""
    columns = (
        replace(column, default=column.default or column.name.lower() in declared.defaults)
        for column in schema.columns
    )
    made = replace(schema, columns=tuple(columns), not_null=declared.not_null)
    return with_generated(made, declared.generated)


def _beside(
    document: Node,
    schemas: Mapping[str, Schema],
    logged: Sequence[LoggedDeclaration],
    there: Mapping[str, Schema],
) -> dict[str, Schema]:
    """Return the tables that only a log declares; refuse declarations that contradict a log."""
    found: dict[str, Schema] = {}
    jobs = str(document.value.get("jobs"))
    for one in logged:
        name = one.declared.name
        known = {each.lower(): each for each in schemas}
        asked = one.named or re.search(rf"\b{name}\b", jobs, re.IGNORECASE)
        if asked and name.lower() not in known:
            found[name] = there[name]
            continue
        # A folder without a given name may have any name.
        only = len(schemas) == len(logged) == 1 and not one.named
        of = next(iter(schemas)) if only else known.get(name.lower())
        if of is None:
            document.refuse(
                f"the DDL has no table '{name}' for {one.folder}{near(name, schemas)}; write"
                f" --table NAME={one.folder}",
                "ddl",
            )
        refuse_differing(document.source.place("ddl"), schemas[of], there[name], one.folder)
        found[of] = _with_values(schemas[of], one.declared)
    return found


def _declared(document: Node) -> WorkloadTables | None:
    """Return the declared tables, with the level of their DDL, or None if there are none."""
    ddl = document.value.get("ddl", [])
    texts = [ddl] if isinstance(ddl, str) else ddl
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        document.refuse(f"ddl is {show_value(ddl)}; write a string or a list of strings")
    if not texts:
        if "table" not in document and "tables" not in document:
            return None
        schemas, inits = read_tables(document, read_table)
        if any(inits):
            document.refuse("a workload has no init, because answers are for all rows; remove init")
        return WorkloadTables(schemas, None, {})
    for key in ("table", "tables"):
        if key in document:
            document.refuse(f"ddl and {key} both declare the tables; remove one of them", key)
    found: dict[str, Schema] = {}
    formats: dict[str, str] = {}
    left_out: list[Assumption] = []
    level = None
    unread: dict[str, UnreadTable] = {}
    errors: list[LitmusError | SqlError] = []
    for text in texts:
        if creates_no_table(text):
            statement = brief(one_line(text), SHOWN)
            said = f"'{statement}' in the DDL has no effect: answers are for all rows."
            left_out.append(AssumptionKind.NO_EFFECT.says(said))
            continue
        try:
            declared, schema = _declaration(text, document.source)
        except (LitmusError, SqlError) as error:
            table = unread_table(text, error, document.source.place_of("ddl", text))
            unread.setdefault(table.name.lower(), table)
            errors.append(error)
            continue
        if declared.name.lower() in {name.lower() for name in found}:
            document.refuse(f"ddl creates the table '{declared.name}' twice; remove one of them")
        left_out += _left_out(declared)
        found[declared.name] = schema
        level = level or declared.level
        if declared.format != DELTA:
            formats[declared.name] = declared.format
    found = {name: schema for name, schema in found.items() if name.lower() not in unread}
    if not found:
        if errors:
            raise errors[0]
        _declaration(texts[0], document.source)  # it is no CREATE TABLE, which this says
    formats = {name: format_ for name, format_ in formats.items() if name in found}
    return WorkloadTables(found, level, formats, tuple(left_out), (*unread.values(),))


def _declaration(text: str, source: Source) -> tuple[TableDeclaration, Schema]:
    """Return the table that a statement of the key `ddl` declares."""
    with errors_in_file(source.label, source.text, source.offset("ddl", text)):
        declared = read_ddl(text, f"{source.place_of('ddl', text)}, in ddl", source=True)
    node = Node(_without_layout(declared), "ddl", source)
    return declared, _with_values(read_table(declared.name, node), declared)


def _without_layout(declared: TableDeclaration) -> TomlTable:
    """Return the table without properties of the file layout: predictions consider every layout."""
    properties = declared.table.get("properties", {})
    kept = {key: value for key, value in properties.items() if key not in LAYOUT}
    return {**declared.table, "properties": kept} if properties else declared.table


def _left_out(declared: TableDeclaration) -> Iterator[Assumption]:
    """Yield assumptions about properties and constraints of a table."""
    given = {k: v for k, v in declared.table.get("properties", {}).items() if k in LAYOUT}
    for key, value in given.items():
        if LAYOUT[key] and value != MADE[key].usual:
            said = f"{declared.name} has {key} = {value}: {LAYOUT[key]}."
            yield AssumptionKind.OTHER_WRITERS.says(said)
    for name, sql in declared.generated:
        yield AssumptionKind.CONSTRAINT.says(
            f"{declared.name}.{name} is generated from {sql}: statements that do not name it have"
            " its value, and queries the conditions on it that Delta derives."
        )
    if declared.checked:
        yield AssumptionKind.CONSTRAINT.says(
            f"No statement violates {' or '.join(declared.checked)} of {declared.name}."
        )
    silent = [f"{key} = {value}" for key, value in given.items() if not LAYOUT[key]]
    if silent:
        yield AssumptionKind.NO_EFFECT.says(
            f"Conflicts do not depend on {' and '.join(silent)} of {declared.name}: every layout of"
            " its files is considered."
        )


def _level(document: Node, level: object) -> str | None:
    """Return the canonical spelling of an isolation level, or None if absent."""
    folded = {name.lower(): name for name in LEVELS}
    if level is None:
        return None
    if not isinstance(level, str) or level.lower() not in folded:
        document.refuse(f"unknown level {show_value(level)}; known: {', '.join(LEVELS)}", "level")
    return folded[level.lower()]


def run_tables(document: Node, logged: Sequence[LoggedDeclaration]) -> str:
    """Return the CREATE TABLE statements of a document's tables, and of tables with a log.

    A table with a log has its folder as LOCATION. A table of the DDL that has a log as well is
    that of the DDL.

    Examples
    --------
    >>> source = Source("f.toml", "table.columns = 'id INT'")
    >>> run_tables(source.node(), ())
    'CREATE TABLE t (id INT) USING delta'
    """
    declared = _declared(name_tables(document, logged, {})[0])
    if declared is None and not logged:
        document.refuse("no table is declared; functions run on tables, which are created empty")
    ddl = document.value.get("ddl", [])
    texts = [ddl] if isinstance(ddl, str) else [*ddl]
    schemas = {} if declared is None else declared.schemas
    if not texts:
        texts = [table_ddl(name, schema) for name, schema in schemas.items()]
    known = {name.lower() for name in schemas}
    same = len(schemas) == len(logged) == 1 and not logged[0].named
    for one, (name, schema) in zip(logged, _logged(document, logged).items(), strict=True):
        if name.lower() not in known and not same:
            folder = str(real_path(one.folder)).replace("'", "\\'")
            texts.append(f"{table_ddl(name, schema)} LOCATION '{folder}'")
    return "\n;\n".join(texts)


KNOWN = (
    "title",
    "ddl",
    "table",
    "tables",
    "shared",
    "distinct",
    "apart",
    "jobs",
    "level",
    "invariants",
)


def read_workload(
    text: str,
    name: str,
    path: Path | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    run: FunctionRunner | None = None,
) -> Workload:
    """Return the workload in a text.

    Parameters
    ----------
    text : str
        Contents of the file.
    name : str
        Name of the workload.
    path : Path, optional
        Path of the file.
    logged : sequence of LoggedDeclaration
        Existing tables, which the file need not declare.
    run : callable, optional
        Runs functions of PySpark, which are jobs beside those of the file, on its tables.

    Raises
    ------
    LitmusError, SqlError
        If the text is wrong.

    Examples
    --------
    >>> found = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"
    ... [jobs.cleanup]
    ... sql = "DELETE FROM t WHERE day = :day"
    ... parameters = { day = "DATE" }
    ... where = "day < '2026-01-01'"
    ... ''', "w")
    >>> found.jobs["cleanup"].parameters, str(found.jobs["cleanup"].where)
    ({'day': 'DATE'}, "day < DATE '2026-01-01'")
    """
    label = path.name if path is not None else f"{name}.toml"
    document = Source(label, text, path).node()
    if run is None:
        return build_workload(document, name, path, logged=logged)
    document.keys(KNOWN)
    given = document.get("jobs", dict, {})

    def build(functions: FunctionForms) -> Workload:
        jobs = dict(given)
        sources: dict[str, Source] = {}
        spans: dict[str, list[tuple[int, int]]] = {}
        add_function_jobs(functions, jobs, sources, spans)
        whole = Node({**document.value, "jobs": jobs}, "", document.source)
        return build_workload(
            whole, name, path, sources, logged, spans=spans, each={*sources}, partial=True
        )

    return build_with_functions(run(run_tables(document, logged)), build)


def build_workload(
    document: Node,
    name: str,
    path: Path | None = None,
    sources: Mapping[str, Source] | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    *,
    spans: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    schedule: JobSchedule | None = None,
    each: bool | Collection[str] = False,
    partial: bool = False,
    whole: bool = True,
    store: ReadingStore | None = None,
    hints: Mapping[str, Schema] | None = None,
    relations: Mapping[str, str] | None = None,
    views: Mapping[str, str] | None = None,
    unread: Sequence[UnreadTable] = (),
) -> Workload:
    """Return the workload of a document.

    Parameters
    ----------
    document : Node
        Document with ``[jobs.NAME]``.
    name : str
        Name of the workload.
    path : Path, optional
        Path of the file.
    sources : mapping of str to Source, optional
        File of each job that is not in the document's.
    logged : sequence of LoggedDeclaration
        Existing tables, which the document need not declare.
    spans : mapping of str to sequence of (int, int), optional
        Positions of the statements of each job in its file.
    schedule : JobSchedule, optional
        What may overlap, and which parameters are shared or distinct; by default the keys
        `shared`, `distinct` and `apart` of the document.
    each : bool or collection of str
        Whether a job with a mistake is left out as not understood, or the jobs for which that
        holds; otherwise it is an error.
    partial : bool
        Whether no statement has to be understood; otherwise that is an error.
    whole : bool
        Whether these are all jobs of the schedule, so that it must not name others.
    store : ReadingStore, optional
        Readings of earlier runs.
    hints : mapping of str to Schema, optional
        Some columns of tables without DDL, by name in lower case.
    relations : mapping of str to str, optional
        Names with schema and catalog of tables that statements name without them, by plain name.
    views : mapping of str to str, optional
        Queries of views that statements may name, by plain name.
    unread : sequence of UnreadTable
        Tables that are declared elsewhere, and not understood.
    """
    if "jobs" not in document:
        raise NoLitmusTest(f"{document.source.label}: not a workload: it has no [jobs.NAME]")
    document.keys(KNOWN)
    document, names = name_tables(document, logged, relations or {}, unread)
    unread = [replace(one, name=names.plain[relation_name(one.name)]) for one in unread]
    schemas, level, formats, left_out, unread_here = _kept_tables(document, logged, store)
    declared = {name.lower() for name in schemas}
    unread = [*unread_here, *(one for one in unread if one.name.lower() not in declared)]
    if schedule is None:
        schedule = JobSchedule(read_apart(document), place=document.source.label, node=document)
    stated = schedule.node or Node({}, "", document.source)
    common = stated.at("shared", stated.get("shared", dict, {}))
    shared = types_in(common)
    besides = (
        f"give its folder as well, or name the one given as in SQL: --table NAME={logged[0].folder}"
        if logged
        else "add its CREATE TABLE to the DDL"
    )
    given = document.inner("jobs", most=300 if sources is None else ENTRIES)
    given, named_texts = name_jobs(given, names, relations or ())
    schemas = dict(schemas)
    texts = tuple(_texts(given.value))
    written = cached_written_tables(store, texts)
    known = [*schemas, *(one.name for one in unread if not one.is_view)]
    account = relation_account(names, known, named_texts, document, views or {}, logged=logged)
    reader = JobReader(
        schemas, shared, formats, besides, written, texts, hints or {},
        {one.name.lower(): one for one in unread}, account=account,
        originals=named_texts.originals, unclear=named_texts.problems,
    )  # fmt: skip
    kept = CachedJobReader(reader, store)
    jobs: dict[str, Job] = {}
    if not given.value and not partial:
        document.refuse('jobs is empty; write [jobs.NAME] with sql = "…"')
    for job, node in given.items():
        if sources is not None and job in sources:
            node = Node(node.value, node.path, sources[job])  # noqa: PLW2901 - same job
        try:
            jobs[job] = kept.job(job, node, (spans or {}).get(job, ()))
        except (LitmusError, SqlError) as error:
            in_form = not isinstance(error, SqlError)  # a mistake in the file, not in its SQL
            if in_form and not (each if isinstance(each, bool) else job in each):
                raise
            reader.leave_out(job, node, error)
    _refuse_one_name(jobs, given)
    title = document.get("title", str, name)
    named = {*jobs, *(one.job for one, _ in reader.unread), *(sources or ())}
    if whole:
        schedule.check_jobs(named)
    apart = _apart(given, jobs) | {*schedule.pairs(dict.fromkeys(named, ()))}
    jobs = {name: job for name, job in jobs.items() if job.statements}
    if not jobs and reader.unread and not partial:
        raise reader.unread[0][1]
    if not jobs and not partial:
        document.refuse("no job commits anything; add a statement that reads or writes", "jobs")
    every = (one for job in jobs.values() for one in job.statements)
    stand_ins = _stand_ins(reader.sources)
    invariants = read_invariants(
        document.inner("invariants", {}), schemas, every, stand_ins, names.renamed
    )
    return Workload(
        name, title, schemas, jobs, shared, apart, formats,
        _distinct(stated, jobs, shared, whole=whole),
        (
            *left_out,
            *named_texts.assumptions,
            *dict.fromkeys(one.assumption for one in reader.instead),
            *dict.fromkeys(one.assumption for one in _as_written(reader.sources, names)),
            *reader.passed,
            *(AssumptionKind.NOT_READ.says(f"{one}.") for one in unread),
        ),
        tuple(replace(one, problem=names.shown(one.problem)) for one, _ in reader.unread),
        invariants,
        {one.schema.name: one.keys for one in reader.instead if one.keys},
        stand_ins, "", level, document.source.text, path,
        queries={
            **{one.schema.name: one.text for one in reader.instead if one.text is not None},
            **{one.schema.name: QueryText(one.query) for one in reader.sources if one.query},
        },
        uncertain=dict(reader.branches), full_names=names.renamed,
        not_null=not_null_in(common), format=DELTA,
    )  # fmt: skip


def _as_written(
    sources: Iterable[UndeclaredSource], names: TableNames
) -> Iterator[UndeclaredSource]:
    """Yield the sources with the names that the texts have."""
    for one in sources:
        yield replace(one, name=names.undeclared.get(one.name, one.name))


def _stand_ins(sources: Iterable[UndeclaredSource]) -> dict[str, tuple[StandIn, ...]]:
    """Return the tables that stand for sources without DDL, by the last part of their names."""
    stand_ins: dict[str, tuple[StandIn, ...]] = {}
    for source in sources:
        called = source.name.rpartition(".")[2].strip("`").lower()
        own = StandIn(source.schema.name, source.schema.columns[-1].name)
        if not (source.older or source.query) and own not in stand_ins.get(called, ()):
            stand_ins[called] = (*stand_ins.get(called, ()), own)
    return stand_ins


def read_invariants(
    given: Node,
    schemas: Mapping[str, Schema],
    statements: Iterable[JobStatement],
    stand_ins: Mapping[str, tuple[StandIn, ...]],
    full_names: Mapping[str, str],
) -> tuple[Invariant, ...]:
    """Return the invariants of a table ``[invariants]``; one without a table is about a table that
    statements write. ``stand_ins`` and ``full_names`` are those of a workload.
    """
    written = written_by(statements)
    found: list[Invariant] = []
    for name, node in given.items():
        if not isinstance(node.value, str):
            node.refuse(f"{node} is {show_value(node.value)}; write an invariant: {FORMS}")
        found += read_invariants_of(
            plain_names(node.value, full_names), schemas, written, node.place, name=name,
            stand_ins=stand_ins,
        )  # fmt: skip
    return tuple(found)


def with_invariants(work: Workload, given: Node | None) -> Workload:
    """Return the workload with the invariants of a table ``[invariants]`` of settings as well."""
    if given is None:
        return work
    stated = read_invariants(given, work.tables, work.statements, work.stand_ins, work.full_names)
    return replace(work, invariants=(*work.invariants, *stated))


def written_by(statements: Iterable[JobStatement]) -> tuple[str, ...]:
    """Return the tables that statements write to, in the order of the statements."""
    written = (one.statement.target for one in statements if not isinstance(one.statement, Read))
    return tuple(dict.fromkeys(written))


def _texts(jobs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the SQL texts of all jobs, and the statements of a text that is several."""
    for job in jobs.values():
        sql = job.get("sql") if isinstance(job, dict) else job
        for text in sql if isinstance(sql, list) else [sql]:
            if isinstance(text, str):
                yield text
                yield from transaction_statements(text) if ";" in text else ()


def _refuse_one_name(jobs: Mapping[str, Job], given: Node) -> None:
    """Refuse a job with the name of a statement of another job."""
    homes: dict[str, str] = {}
    for job in jobs.values():
        for one in job.statements:
            other = homes.setdefault(one.name, job.name)
            if other != job.name:
                given.refuse(
                    f"jobs.{job.name}: the statement {one.name} of job {other} has the same name;"
                    " rename the job",
                    f"jobs.{job.name}",
                )


def _distinct(
    document: Node, jobs: Mapping[str, Job], shared: Mapping[str, Type], *, whole: bool
) -> tuple[str, ...]:
    """Return the parameters that differ between concurrent runs."""
    where = document.under("distinct")
    found: list[str] = []
    for name in document.strings("distinct"):
        types = {job.parameters[name]: job for job in jobs.values() if name in job.parameters}
        if name in shared:
            document.refuse(
                f"distinct names '{name}', but shared parameters have one value in all runs;"
                " remove it",
                where,
            )
        if not types and not whole:
            continue
        if not types:
            known = [p for job in jobs.values() for p in job.parameters if p not in shared]
            document.refuse(
                f"distinct names '{name}', but no job has this parameter{near(name, known)}", where
            )
        if len(types) > 1:
            said = ", ".join(f"{type_} in {job.name}" for type_, job in types.items())
            document.refuse(
                f"distinct names '{name}', but the parameter has several types: {said}", where
            )
        found.append(name)
    return tuple(found)


def _apart(given: Node, jobs: Mapping[str, Job]) -> frozenset[tuple[str, str]]:
    """Return the pairs of jobs that never overlap, by their keys ``alone`` and ``after``."""
    found: set[tuple[str, str]] = set()
    after: dict[str, set[str]] = {}
    for name, node in given.items():
        if not isinstance(node.value, dict):
            continue
        if node.get("alone", bool, default=False):
            found.add((name, name))
        said = node.value.get("after", [])
        first = [said] if isinstance(said, str) else said
        if not isinstance(first, list) or not all(isinstance(job, str) for job in first):
            node.refuse(
                f"{node}.after is {show_value(said)}; write the name of a job or a list of names"
            )
        for job in first:
            if job not in jobs:
                node.refuse(f"{node}.after: unknown job '{job}'{near(job, jobs)}")
        if name in first:
            node.refuse(
                f"{node}.after: a job does not run after itself; write alone = true, so that no two"
                " of its runs overlap"
            )
        after[name] = set(first)
    before = {name: set(first) for name, first in after.items()}
    for _ in filter(None, after.values()):  # transitive closure
        before = {n: f.union(*(before.get(x, set()) for x in f)) for n, f in before.items()}
    for name, first in before.items():
        if name in first:
            around = sorted(x for x in first if name in before.get(x, set()))
            given.refuse(
                f"jobs.{name}.after: {' and '.join(around)} run after each other in a cycle;"
                " remove one 'after'",
                f"jobs.{name}.after",
            )
        for other in first:
            found |= {(name, other), (other, name), (name, name), (other, other)}
    return frozenset(found)
