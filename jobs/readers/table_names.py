"""Names of the tables of a workload: full names, and the plain names by which statements are read.

Statements are read with names of one part (``specs.sql``). Where the last parts of two declared
tables are the same, or a statement names a table of another schema, each relation gets a name of
its own here, and the texts are changed before they are read. Different literal parts are different
tables. A name that lacks parts is the one declared table that it fits, and a placeholder has one
value in all texts. Where a name may be one of several tables, the statement is not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.jobs.sql.relation_account import RelationAccount
from isolitmus.jobs.sql.relations import (
    NAME,
    RelationName,
    SqlSession,
    definition_of,
    hide_pieces,
    name_of_node,
    relation_name,
    target_node,
    text_tree,
    with_schema,
)
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.files.toml_reader import Node
from isolitmus.specs.sql.parameters import BLANK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.sql.relations import DefinedRelation
    from isolitmus.jobs.workload import UnreadTable

CREATED = re.compile(
    rf"{BLANK}CREATE\s+(?:OR\s+REPLACE\s+)?(?:EXTERNAL\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"(?P<name>{NAME})",
    re.IGNORECASE,
)
LOCATION = re.compile(r"\bLOCATION\s+['\"]([^'\"]*)['\"]", re.IGNORECASE)
VERB = re.compile(
    rf"{BLANK}(?:OPTIMIZE|VACUUM|(?:REORG|ALTER|TRUNCATE|CACHE|CACHE\s+LAZY|ANALYZE|REFRESH)\s+TABLE"
    r"|RESTORE(?:\s+TABLE)?|COMMENT\s+ON\s+TABLE|DROP\s+TABLE(?:\s+IF\s+EXISTS)?|COPY\s+INTO"
    rf"|FSCK\s+REPAIR\s+TABLE|(?:MSCK\s+)?REPAIR\s+TABLE|UPDATE|DELETE\s+FROM)\s+(?P<name>{NAME})",
    re.IGNORECASE,
)
"""Statements with one table, which sqlglot does not parse, or not all."""
LOCAL = re.compile(
    r"\bTEMP(?:ORARY)?\s+VIEW\s+`?(?P<view>\w+)|(?<![\w`])`?(?P<query>\w+)`?\s*+(?:\([^()]*\)\s*+)?AS\s*+\(",
    re.IGNORECASE,
)
"""Temporary view, or query of WITH."""
QUALIFIED = (exp.Select, exp.Update, exp.Delete, exp.Merge, exp.Insert)
"""Queries and statements whose tables qualify columns."""


def created_name(text: str) -> RelationName | None:
    """Return the full name of the table that a CREATE TABLE creates.

    Examples
    --------
    >>> created_name("CREATE TABLE IF NOT EXISTS a.B (id INT)")
    RelationName(parts=('a', 'b'))
    """
    found = CREATED.match(text)
    return None if found is None else relation_name(found["name"])


def created_text(text: str, used: tuple[str, ...]) -> str:
    """Return a CREATE TABLE with the schema that USE has set.

    Examples
    --------
    >>> created_text("CREATE TABLE e (id INT)", ("bronze",))
    'CREATE TABLE `bronze`.e (id INT)'
    """
    found = CREATED.match(text)
    if found is None or not used:
        return text
    name = relation_name(found["name"])
    before = with_schema(name, used).parts[: -len(name.parts)]
    start = found.start("name")
    return text[:start] + "".join(f"`{part}`." for part in before) + text[start:]


def text_after_name(create: str) -> str:
    """Return what follows the name in a CREATE TABLE.

    Examples
    --------
    >>> text_after_name("CREATE TABLE IF NOT EXISTS a.t (id INT)")
    ' (id INT)'
    """
    found = CREATED.match(create)
    return create if found is None else create[found.end() :]


class NamedTexts(NamedTuple):
    """Statements of jobs with names of one part."""

    statements: dict[str, list[str]]
    """Texts of each job."""
    originals: dict[str, str]
    """Text as written of each text that was changed."""
    problems: dict[str, str]
    """Why the name of a table in a text is not understood."""
    assumptions: tuple[Assumption, ...]


@dataclass(slots=True)
class TableNames:
    """Declared tables by their full names.

    Examples
    --------
    >>> names = TableNames.of(["bronze.e", "silver.e", "t"])
    >>> names.plain
    {RelationName(parts=('bronze', 'e')): 'bronze_e', RelationName(parts=('silver', 'e')): \
'silver_e', RelationName(parts=('t',)): 't'}
    >>> names.resolve(relation_name("main.silver.e")), names.resolve(relation_name("gold.e"))
    ('silver_e', 'gold_e')
    >>> names.resolve(relation_name("e")) is None
    True
    """

    plain: dict[RelationName, str]
    """Plain name of each table."""
    contested: set[RelationName] = field(default_factory=set)
    """Tables that several names fit which are, or may be, those of different tables."""
    undeclared: dict[str, str] = field(default_factory=dict)
    """Names of relations that are no declared table, by the plain names that they got."""
    local: frozenset[str] = frozenset()
    """Names of temporary views and queries of WITH: no plain names of tables with a schema."""

    @classmethod
    def of(
        cls, names: Iterable[str | RelationName], local: frozenset[str] = frozenset()
    ) -> TableNames:
        """Return the names of declared tables, as they are written."""
        full = [relation_name(name) if isinstance(name, str) else name for name in names]
        last = [name.last for name in full]
        plain: dict[RelationName, str] = {}
        for name in dict.fromkeys(full):
            taken = {*plain.values(), *local} | {one for one in last if last.count(one) == 1}
            same = sum(1 for other in dict.fromkeys(full) if other.last == name.last)
            alone = same == 1 and (name.last not in local or len(name.parts) == 1)
            own = name.last if alone else _joined(name.parts[-2:])
            options = [own, _joined(name.parts), *(f"{own}_{k}" for k in range(2, len(full) + 2))]
            plain[name] = own if alone else next(one for one in options if one not in taken)
        return cls(plain, local=local)

    @property
    def renamed(self) -> dict[str, str]:
        """Full names of the tables whose plain name is not their last part, by plain name."""
        return {plain: str(name) for name, plain in self.plain.items() if plain != name.last}

    def fitting(self, name: RelationName) -> list[RelationName]:
        """Return the declared tables that a name may be."""
        return [table for table in self.plain if name.may_be(table)]

    def resolve(self, name: RelationName) -> str | None:
        """Return the plain name of a relation; None if it may be one of several.

        A relation that is no declared table keeps its last part, unless a table has it.
        """
        tables = self.fitting(name)
        if not tables:
            taken = {*self.plain.values(), *self.local} | {table.last for table in self.plain}
            return name.last if name.last not in taken else _joined(name.parts[-2:])
        if len(tables) > 1 or not tables[0].agrees(name) or tables[0] in self.contested:
            return None
        return self.plain[tables[0]]

    def add_uses(self, names: Collection[RelationName]) -> None:
        """Find the tables that names of different relations fit, and names that are changed."""
        for name in names:
            plain = "" if self.fitting(name) else self.resolve(name)
            if plain and plain != name.last:
                self.undeclared[plain] = str(name)
        for table in self.plain:
            uses = [name for name in names if table.agrees(name)]
            if any(not a.agrees(b) for k, a in enumerate(uses) for b in uses[:k]):
                self.contested.add(table)

    def shown(self, message: str) -> str:
        """Return a message in which relations that are no declared table have their names."""
        for plain, name in self.undeclared.items():
            message = message.replace(f"'{plain}'", f"'{name}'")
        return message

    def renamed_creation(self, text: str) -> str:
        """Return a CREATE TABLE with the plain name of its table."""
        found = CREATED.match(text) if isinstance(text, str) else None
        name = None if found is None else relation_name(found["name"])
        if found is None or name is None or self.plain.get(name, name.last) == name.last:
            return text
        return text[: found.start("name")] + self.plain[name] + text[found.end("name") :]

    def reason(self, name: RelationName) -> str:
        """Return why a name is not understood, and what would be."""
        tables = self.fitting(name)
        listed = " or ".join(map(str, tables))
        if len(tables) == 1 and tables[0] in self.contested:
            return (
                f"names of different tables fit the declared table {listed}, one of them '{name}';"
                " declare each with its schema"
            )
        return f"'{name}' may be {listed}; write its schema, or the name as it is declared"


def _joined(parts: Sequence[str]) -> str:
    return re.sub(r"\W+", "_", "_".join(parts)).strip("_") or "t"


def name_texts(
    names: TableNames, jobs: Mapping[str, Sequence[str]], aliases: Collection[str] = ()
) -> NamedTexts:
    """Return the statements of jobs with plain names of their tables.

    Parameters
    ----------
    names : TableNames
        Declared tables; what is found of their uses is added.
    jobs : mapping of str to sequence of str
        Statements of each job, in their order.
    aliases : collection of str
        Plain names, in lower case, that stand in the texts for names with a schema.

    Examples
    --------
    >>> names = TableNames.of(["bronze.e", "silver.e"])
    >>> named = name_texts(names, {"a": ["USE silver", "INSERT INTO e SELECT e.id FROM bronze.e"]})
    >>> named.statements["a"][1]
    'INSERT INTO silver_e SELECT bronze_e.id FROM bronze_e'
    """
    texts: dict[str, list[str]] = {}
    found = NamedTexts(texts, {}, {}, ())
    places = {job: [*_placed(statements)] for job, statements in jobs.items()}
    uses = {
        name
        for statements in places.values()
        for text, used, views in statements
        if used or _may_need_names(text, names, aliases)
        for name, _ in _named_nodes(text, used, views)
    }
    names.add_uses(uses)
    plain = not names.contested and all(
        names.resolve(name) == name.last for name in (*uses, *names.plain)
    )
    for job, statements in places.items():
        texts[job] = []
        for text, used, views in statements:
            try:
                changed = text if plain else _renamed(text, names, used, views)
            except _Unclear as error:
                found.problems[text] = str(error)
                changed = text
            if changed != text:
                found.originals[changed] = text
            texts[job].append(changed)
    return found._replace(assumptions=tuple(_assumptions(names, uses, aliases)))


def _may_need_names(text: str, names: TableNames, aliases: Collection[str]) -> bool:
    """Return whether a statement has to be parsed to know what its names of tables are.

    A name of one part is that of the one table with this name, if that has one part as well or a
    door has given the name; most statements need no tree here.
    """
    last = [*(table.last for table in names.plain), *names.local]
    longer = {table.last for table in names.plain if len(table.parts) > 1} - {*aliases}
    alone = longer | {name for name in last if last.count(name) > 1}
    chains = (relation_name(chain[0]) for chain in re.finditer(NAME, hide_pieces(text)))
    return "$" in text or any(
        chain.last in (last if len(chain.parts) > 1 else alone) for chain in chains if chain.parts
    )


class _Unclear(Exception):
    """Name that may be that of several tables."""


Placed = tuple[str, tuple[str, ...], frozenset[str]]
"""Statement, the schema that USE has set before it, and the temporary views of its session."""


def _placed(statements: Sequence[str]) -> Iterator[Placed]:
    """Yield each statement with what those before it set."""
    session = SqlSession()
    for text in statements:
        yield text, session.used, frozenset(session.definitions)
        session = session.after(text)


def _named_nodes(
    text: str, used: tuple[str, ...], views: Collection[str]
) -> Iterator[tuple[RelationName, tuple[int, int] | exp.Table]]:
    """Yield the relations of a statement, each with its node or, without a tree, its place."""
    tree = text_tree(text)
    if tree is None or target_node(tree) is None:
        verb = VERB.match(text)
        if verb is not None:
            yield with_schema(relation_name(verb["name"]), used), verb.span("name")
            return
    if tree is None:
        return
    is_view = isinstance(tree, exp.Create) and tree.kind != "TABLE"
    defined = target_node(tree) if is_view else None
    target = target_node(tree)
    for node in tree.find_all(exp.Table):
        name = name_of_node(node)
        hinted = node.find_ancestor(exp.Hint) is not None
        if name is None or hinted or node is defined:
            continue
        local = name.last in views or (node is not target and _is_query_of_with(node, name.last))
        if len(name.parts) == 1 and local:
            continue
        if "/" in name.last or "{" in name.last:  # a path
            continue
        yield with_schema(name, used), node


def _is_query_of_with(node: exp.Expr, name: str) -> bool:
    """Return whether a name at a node is that of a query of WITH, which its own query cannot see
    unless it is recursive.
    """
    inside = None
    while node.parent is not None:
        node = node.parent
        if isinstance(node, exp.CTE):
            inside = node
        elif (named := node.args.get("with_")) is not None:
            for query in named.expressions:
                if query is inside and not named.args.get("recursive"):
                    break
                if query.alias.lower() == name:
                    return True
    return False


def _renamed(text: str, names: TableNames, used: tuple[str, ...], views: Collection[str]) -> str:
    """Return a statement with plain names; `_Unclear` if a name may be that of several tables."""
    edits: dict[tuple[int, int], str] = {}
    renamed: dict[int, str] = {}
    tree = text_tree(text)
    for name, node in _named_nodes(text, used, views):
        plain = names.resolve(name)
        if plain is None:
            raise _Unclear(names.reason(name))
        if isinstance(node, tuple):
            if plain != name.last:
                edits[node] = plain
            continue
        if plain != name.last:
            parts = [
                *node.this.find_all(exp.Identifier),
                node.args.get("db"),
                node.args.get("catalog"),
            ]
            edits[_span(part for part in parts if part is not None)] = plain
            renamed[id(node)] = plain
    if tree is None:
        return _checked_words(text, names, edits)
    qualifiers = _qualifiers(tree, renamed)
    for column in tree.find_all(exp.Column) if renamed else ():
        table = column.args.get("table")
        plains = _meant(column, qualifiers)
        if table is None or not plains - {column.table.lower()}:
            continue
        before = [part for part in (column.args.get("catalog"), column.args.get("db")) if part]
        if before:
            name = RelationName(tuple(part.name.lower() for part in (*before, table)))
            resolved = names.resolve(with_schema(name, used))
            plains = {resolved} if resolved is not None else set()
        if len(plains) != 1:
            raise _Unclear(f"'{column.table}' names several tables here; give each an alias")
        edits[_span((*before, table))] = next(iter(plains))
    return _edited(text, edits)


def _qualifiers(tree: exp.Expr, renamed: Mapping[int, str]) -> dict[tuple[int, str], set[str]]:
    """Return what qualifies columns in each query or statement, by its node and the name as
    written.
    """
    found: dict[tuple[int, str], set[str]] = {}
    stored = target_node(tree) if isinstance(tree, exp.Insert | exp.Create) else None
    for source in tree.find_all(exp.Table, exp.Subquery):
        name = source.alias_or_name.lower()
        query = source.find_ancestor(*QUALIFIED)
        if source is not stored and query is not None:
            found.setdefault((id(query), name), set())
            found[id(query), name].add(name if source.alias else renamed.get(id(source), name))
    return found


def _meant(column: exp.Column, qualifiers: Mapping[tuple[int, str], set[str]]) -> set[str]:
    """Return what the qualifier of a column is called, in the innermost query that has it."""
    query = column.find_ancestor(*QUALIFIED)
    while query is not None:
        if (plains := qualifiers.get((id(query), column.table.lower()))) is not None:
            return plains
        query = query.find_ancestor(*QUALIFIED)
    return set()


def _span(parts: Iterable[exp.Expr]) -> tuple[int, int]:
    """Return the place of a name with several parts."""
    places = [part.meta for part in parts if "start" in part.meta]
    return min(one["start"] for one in places), max(one["end"] for one in places) + 1


def _edited(text: str, edits: Mapping[tuple[int, int], str]) -> str:
    for (start, end), plain in sorted(edits.items(), reverse=True):
        text = text[:start] + plain + text[end:]
    return text


def _checked_words(text: str, names: TableNames, edits: Mapping[tuple[int, int], str]) -> str:
    """Return a text that does not parse with plain names, if no other word may be one."""
    unsure = {table.last for table, plain in names.plain.items() if plain != table.last}
    unsure |= {table.last for table in names.contested}
    for word in re.finditer(NAME, hide_pieces(text)):
        inside = any(start <= word.start() < end for start, end in edits)
        name = relation_name(word[0])
        if not inside and unsure & {*name.parts}:
            last = next(part for part in name.parts if part in unsure)
            raise _Unclear(f"'{last}' may be one of several tables in a text that does not parse")
    return _edited(text, edits)


def _assumptions(
    names: TableNames, uses: Collection[RelationName], aliases: Collection[str]
) -> Iterator[Assumption]:
    """Yield what is assumed of names; the plain names that a door has given are ``aliases``."""
    if renamed := names.renamed:
        words = (
            ("are different tables", "they are") if len(renamed) > 1 else ("is a table", "it is")
        )
        yield AssumptionKind.DIFFERENT_NAMES.says(
            f"{_listed(renamed.values())} {words[0]}; here {words[1]} {_listed(renamed)}."
        )
    same = []
    for name in sorted(uses):
        fitting = names.fitting(name)
        is_alias = len(name.parts) == 1 and name.last in aliases
        if is_alias or len(fitting) != 1 or names.resolve(name) is None:
            continue
        if len(fitting[0].parts) != len(name.parts):
            same.append(f"{name} is the declared {fitting[0]}")
    if same:
        yield AssumptionKind.SHORT_NAME.says(
            f"What a name of a table lacks is the same as in its declaration: {', '.join(same)}."
        )
    held = {part for name in (*uses, *names.plain) for part in name.parts if "$" in part}
    if held:
        listed = _listed(sorted(part.strip("$") for part in held))
        yield AssumptionKind.PLACEHOLDER.says(
            f"A placeholder in a name has one value in all files: {listed}."
        )


def _listed(words: Iterable[object]) -> str:
    *most, last = map(str, words)
    return f"{', '.join(most)} and {last}" if most else last


def _with_used_schema(texts: Iterable[str]) -> Iterator[str]:
    """Yield the statements of a DDL, each CREATE TABLE with the schema that USE has set."""
    session = SqlSession()
    for text in texts:
        session = session.after(text)
        yield created_text(text, session.used)


def _local_names(jobs: object) -> Iterator[str]:
    """Yield the names of temporary views and queries of WITH in the texts of jobs."""
    for _, texts in _job_texts(jobs):
        for text in texts:
            for found in LOCAL.finditer(hide_pieces(text)):
                yield (found["view"] or found["query"]).lower()


def _job_texts(jobs: object) -> Iterator[tuple[str, list[str]]]:
    """Yield the statements of each job that has a text or a list of texts."""
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        sql = job.get("sql") if isinstance(job, dict) else job
        texts = [sql] if isinstance(sql, str) else sql
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            yield name, texts


def name_tables(
    document: Node,
    logged: Sequence[LoggedDeclaration],
    relations: Mapping[str, str],
    unread: Iterable[UnreadTable] = (),
) -> tuple[Node, TableNames]:
    """Return the document with a name of one part for each table of its DDL, and the names.

    A table with a log may have any schema; so has one of the DDL that has a log as well.
    """
    ddl = document.value.get("ddl", [])
    texts = [ddl] if isinstance(ddl, str) else ddl
    full = {name.lower(): relation_name(relation) for name, relation in relations.items()}
    written: list[RelationName] = []
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        texts = [*_with_used_schema(texts)]
        written = [name for text in texts if (name := created_name(text)) is not None]
    written += [relation_name(name) for name in document.value.get("tables", {})]
    if "table" in document.value:
        written.append(RelationName(("t",)))
    written += [relation_name(one.name) for one in unread]
    for one in logged:
        name = relation_name(one.declared.name)
        if not any(other.agrees(name) for other in written):
            written.append(name)
    known = [
        RelationName((*full[name.last].parts[:-1], name.last)) if name.last in full else name
        for name in written
    ]
    local = frozenset(_local_names(document.value.get("jobs", {}))) - full.keys()
    names = TableNames.of(known, local)
    changed = [names.renamed_creation(text) for text in texts]
    if not isinstance(texts, list) or changed == ([ddl] if isinstance(ddl, str) else ddl):
        return document, names
    return Node({**document.value, "ddl": changed}, document.path, document.source), names


def plain_names(text: str, full_names: Mapping[str, str]) -> str:
    """Return a text in which full names of tables are their plain names.

    Examples
    --------
    >>> plain_names("silver.e: id references bronze . e(id)", {"bronze_e": "bronze.e"})
    'silver.e: id references bronze_e(id)'
    """
    wanted = {relation_name(full): plain for plain, full in full_names.items()}

    def plain(found: re.Match[str]) -> str:
        return wanted.get(relation_name(found[0]), found[0])

    return re.sub(NAME, plain, text) if wanted else text


def name_jobs(
    given: Node, names: TableNames, aliases: Iterable[str] = ()
) -> tuple[Node, NamedTexts]:
    """Return the jobs with names of one part for their tables."""
    listed = dict(_job_texts(given.value))
    named = name_texts(names, listed, {alias.lower() for alias in aliases})
    jobs = dict(given.value)
    for name, texts in named.statements.items():
        if texts != listed[name]:
            job = jobs[name]
            jobs[name] = {**job, "sql": texts} if isinstance(job, dict) else texts
    return Node(jobs, given.path, given.source), named


def relation_account(
    names: TableNames,
    tables: Iterable[str],
    given: NamedTexts,
    document: Node,
    views: Mapping[str, str],
    *,
    logged: Sequence[LoggedDeclaration] = (),
) -> RelationAccount:
    """Return the account of the relations that statements name, on these declared tables."""
    ddl = document.value.get("ddl", [])
    ddl = [ddl] if isinstance(ddl, str) else ddl
    elsewhere: list[DefinedRelation] = []
    for texts in (*given.statements.values(), ddl):
        session = SqlSession()
        for text in texts:
            written = given.originals.get(text, text)
            definition = definition_of(written, session)
            if definition is not None and not definition.temporary:
                elsewhere.append(definition)
            session = session.after(written)
    for relation, query in views.items():
        view = definition_of(f"CREATE VIEW `{relation}` AS {query}", SqlSession())
        assert view is not None
        elsewhere.append(view)
    locations = {one.declared.name.lower(): str(real_path(one.folder)) for one in logged}
    for text in ddl:
        name, folder = created_name(text), LOCATION.search(text)
        if name is not None and folder is not None:
            locations[names.plain.get(name, name.last)] = folder[1]
    full = {plain.lower(): name for name, plain in names.plain.items()}
    return RelationAccount(
        {name: full.get(name.lower(), RelationName((name.lower(),))) for name in tables},
        {name: locations[name.lower()] for name in tables if name.lower() in locations},
        tuple(elsewhere),
    )
