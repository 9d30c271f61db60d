"""Relations that the text of a statement names: names, scans, and what a session defines before it.

This reading shares no code with the resolver of statements (``specs.sql.queries``) or with the
rewritings of jobs: it says which relations a text reads, so that ``jobs.sql.relation_account`` can
hold that against the statement as modelled. It counts scans: a query of WITH or a view counts as
often as it is used. Each word of the text that the parser has not made a name is kept as well, so
that nothing depends on the parser having seen everything.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.specs.sql.parameters import BLANK, PIECE, with_markers
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.source_text import DIALECT
from isolitmus.specs.sql.syntax import without_evolution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PART = r"(?:`(?:[^`]|``)*`|[\w$]+)"
NAME = rf"{PART}(?:\s*\.\s*{PART})*"
"""Name of a relation, perhaps with a schema and a catalog."""
PARTS = re.compile(r"`((?:[^`]|``)*)`|([\w$]+)")
WORD = re.compile(PART)
QUOTED = re.compile(r"`(?:[^`]|``)+`")
NAMELESS = re.compile(
    r"\.\s*+\.|\.\s*+$|(?:^|[^\w\")\]}\s.]|\b(?:FROM|INTO|JOIN|UPDATE|TABLE|USING)\s)\s*+\.\s*+[a-z_\"]"
    r"|`|\"\w|\w\"",
    re.IGNORECASE,
)
"""Name of which a part is empty, or has other text beside its quotes, which are all ``\"``."""
CHAIN = re.compile(rf"{NAME}(?!\s*\.)")
FORMATS = {"avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text", "xml"}
"""Formats of files that a query reads by their path."""
OPEN_ENDED = (exp.Column, exp.Func, exp.Placeholder, exp.Parameter, exp.Query)
"""Parts of a version that may differ between runs."""
CHANGES = {"TABLE_CHANGES", "TABLE_CHANGES_BY_PATH"}
"""Functions that read the changes of a table."""
DEFINED = re.compile(
    rf"{BLANK}(?:CREATE\s+(?:OR\s+(?:REPLACE|REFRESH)\s+)?|ALTER\s+)"
    r"(?P<temporary>(?:(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+)?)"
    r"(?:(?:MATERIALIZED|STREAMING|LIVE|RECURSIVE)\s+)*(?P<kind>VIEW|FUNCTION)\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?P<name>{NAME})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
CACHED = re.compile(
    rf"{BLANK}CACHE\s+(?:LAZY\s+)?TABLE\s+(?P<name>{NAME})(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
OPEN = re.compile(r"\{|(?<![\w`])\$\w")
"""A placeholder outside quotes."""
USED = re.compile(
    rf"{BLANK}(?:USE|SET)\s+(?:(?P<kind>CATALOG|SCHEMA|DATABASE|NAMESPACE)\s+)?(?P<name>{NAME})\s*",
    re.IGNORECASE,
)
DROPPED = re.compile(
    rf"{BLANK}DROP\s+(?:TEMPORARY\s+)?VIEW\s+(?:IF\s+EXISTS\s+)?(?P<name>{NAME})\s*",
    re.IGNORECASE,
)
BODY = {
    "view": re.compile(r"\bAS\b", re.IGNORECASE),
    "cache": re.compile(r"\bAS\b", re.IGNORECASE),
    "function": re.compile(r"\bRETURN\b", re.IGNORECASE),
}
"""Word before the query of a definition."""


class RelationName(NamedTuple):
    """Name of a relation: its parts in lower case, the last one that of the relation.

    A part with ``$`` is a placeholder, with one value wherever it is spelled the same.
    """

    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        """The part without schema and catalog."""
        return self.parts[-1]

    def may_be(self, other: RelationName) -> bool:
        """Return whether two names may be those of one relation.

        Parts that one of them lacks may be any; different literals are different relations.

        Examples
        --------
        >>> name = relation_name("main.bronze.e")
        >>> [name.may_be(relation_name(text)) for text in ("e", "bronze.E", "silver.e", "$s.e")]
        [True, True, False, True]
        """
        pairs = zip(reversed(self.parts), reversed(other.parts), strict=False)
        return all(a == b or "$" in a or "$" in b for a, b in pairs)

    def agrees(self, other: RelationName) -> bool:
        """Return whether each part that both names have is spelled the same.

        Examples
        --------
        >>> name = relation_name("$c.bronze.e")
        >>> [name.agrees(relation_name(text)) for text in ("e", "bronze.e", "main.bronze.e")]
        [True, True, False]
        """
        pairs = zip(reversed(self.parts), reversed(other.parts), strict=False)
        return all(a == b for a, b in pairs)

    def __str__(self) -> str:
        return ".".join(part if part.isidentifier() else f"`{part}`" for part in self.parts)


def relation_name(text: str) -> RelationName:
    """Return the name of a relation in a text.

    Examples
    --------
    >>> relation_name("Main . `a``b`.T")
    RelationName(parts=('main', 'a`b', 't'))
    """
    parts = (quoted.replace("``", "`") or plain for quoted, plain in PARTS.findall(text))
    return RelationName(tuple(part.lower() for part in parts))


def name_of_node(node: exp.Table) -> RelationName | None:
    """Return the name that a node of a tree has; None for a function.

    Examples
    --------
    >>> name_of_node(text_tree("SELECT * FROM a.b.c.d").find(exp.Table))
    RelationName(parts=('a', 'b', 'c', 'd'))
    """
    parts: list[str] = []
    last = node.this
    if isinstance(last, exp.Dot):
        parts += [part.name for part in last.flatten() if isinstance(part, exp.Identifier)]
    elif isinstance(last, exp.Identifier):
        parts.append(last.name)
    else:
        return None
    before = (node.args.get("catalog"), node.args.get("db"))
    parts = [part.name for part in before if isinstance(part, exp.Expr)] + parts
    return RelationName(tuple(part.lower() for part in parts))


def with_schema(name: RelationName, used: tuple[str, ...]) -> RelationName:
    """Return a name with the catalog and schema that USE has set, as far as it lacks them.

    Examples
    --------
    >>> str(with_schema(relation_name("e"), ("main", "bronze")))
    'main.bronze.e'
    """
    lacking = {1: used, 2: used[:-1]}.get(len(name.parts), ())
    return RelationName((*lacking, *name.parts))


def is_use(text: str) -> bool:
    """Return whether a statement sets the current catalog or schema, and does nothing else.

    Examples
    --------
    >>> is_use("USE SCHEMA shop"), is_use("SET x = 1")
    (True, False)
    """
    return used_schema(text, ()) != ()


def used_schema(text: str, used: tuple[str, ...]) -> tuple[str, ...]:
    """Return the catalog and schema that are current after a statement; a part may be missing.

    Examples
    --------
    >>> used_schema("USE CATALOG main", ()), used_schema("USE main.bronze", ())
    (('main', '$schema of main'), ('main', 'bronze'))
    >>> used_schema("USE silver", ("main", "bronze"))
    ('main', 'silver')
    """
    found = USED.fullmatch(text)
    if found is None or (found["kind"] is None and text.lstrip()[:3].upper() == "SET"):
        return used
    parts = relation_name(found["name"]).parts
    if (found["kind"] or "").upper() == "CATALOG":
        return (*parts, f"$schema of {parts[-1]}")  # its default schema has no known name
    return (*used[:-1], *parts) if len(parts) == 1 else parts


@dataclass(frozen=True, slots=True)
class DefinedRelation:
    """View, function or cached table that a statement defines for later ones."""

    name: RelationName
    kind: str
    """"view", "function" or "cache"."""
    temporary: bool
    """True if only statements of its session see it."""
    text: str
    """Its query; the whole statement if that is not understood."""
    is_query: bool
    """Whether ``text`` is a query, or the expression of a function."""
    session: SqlSession = field(repr=False, compare=False)
    """Its session before it."""


@dataclass(frozen=True, slots=True)
class SqlSession:
    """What the statements before one have set in its session."""

    definitions: Mapping[str, DefinedRelation] = field(default_factory=dict)
    """Temporary views and functions, by name."""
    cached: tuple[DefinedRelation, ...] = ()
    """What CACHE TABLE keeps: later scans may read an older state."""
    used: tuple[str, ...] = ()
    """Catalog and schema that USE has set; empty if it has not."""

    def after(self, text: str) -> SqlSession:
        """Return the session after a statement.

        Examples
        --------
        >>> session = SqlSession().after("USE a").after("CREATE TEMP VIEW v AS SELECT 1")
        >>> session.used, [*session.definitions]
        (('a',), ['v'])
        """
        if (dropped := dropped_view(text)) in self.definitions:
            left = {name: one for name, one in self.definitions.items() if name != dropped}
            return replace(self, definitions=left)
        definition = definition_of(text, self)
        if definition is None or not definition.temporary:
            used = used_schema(text, self.used)
            return self if used == self.used else replace(self, used=used)
        cached = self.cached
        if definition.kind == "cache":
            cached = (*cached, definition)
            if BODY["cache"].search(hide_pieces(text)) is None:  # a table, which keeps its name
                return replace(self, cached=cached)
            definition = replace(definition, kind="view")
        definitions = {**self.definitions, definition.name.last: definition}
        return replace(self, definitions=definitions, cached=cached)


def dropped_view(text: str) -> str:
    """Return the temporary view that a statement drops; empty if it drops none.

    Examples
    --------
    >>> dropped_view("DROP VIEW IF EXISTS V"), dropped_view("DROP TABLE v")
    ('v', '')
    """
    found = DROPPED.fullmatch(text)
    name = None if found is None else relation_name(found["name"])
    return name.last if name is not None and len(name.parts) == 1 else ""


def definition_of(text: str, session: SqlSession) -> DefinedRelation | None:
    """Return what a statement defines for later ones; None if it defines nothing.

    Examples
    --------
    >>> sql = "CREATE OR REPLACE GLOBAL TEMP VIEW v (a) AS SELECT id FROM t"
    >>> view = definition_of(sql, SqlSession())
    >>> str(view.name), view.text, view.temporary
    ('global_temp.v', 'SELECT id FROM t', False)
    >>> sql = "CREATE VIEW v USING delta OPTIONS (path '/lake/t')"
    >>> definition_of(sql, SqlSession()).is_query
    False
    """
    found = DEFINED.match(text) or CACHED.match(text)
    if found is None:
        return None
    kind = (found.groupdict().get("kind") or "cache").lower()
    scope = (found.groupdict().get("temporary") or "").upper()
    name = relation_name(found["name"])
    body = BODY[kind].search(hide_pieces(found["rest"]))
    query = "" if body is None else found["rest"][body.end() :].strip()
    if kind == "cache" and body is None:
        query = f"SELECT * FROM {found['name']}"
    tree = text_tree(query)
    is_query = isinstance(tree, exp.Query) or (kind == "function" and tree is not None)
    temporary = kind == "cache" or "TEMP" in scope.replace("GLOBAL TEMP", "")
    if "GLOBAL" in scope:
        name, temporary = RelationName(("global_temp", name.last)), False
    elif not temporary:
        name = with_schema(name, session.used)
    return DefinedRelation(name, kind, temporary, query if is_query else text, is_query, session)


@dataclass(slots=True)
class RelationScans:
    """Relations that a text reads."""

    counts: Counter[RelationName] = field(default_factory=Counter)
    """Number of scans of the newest version of each relation."""
    others: set[RelationName] = field(default_factory=set)
    """Relations of which it reads the changes, or an older version that differs between runs; no
    transaction records that.
    """
    paths: set[str] = field(default_factory=set)
    """Paths that it reads, in lower case."""
    words: Counter[str] = field(default_factory=Counter)
    """Words, in lower case, that are neither names of relations nor of columns for the parser."""
    problems: list[str] = field(default_factory=list)
    """Reasons why it may read any relation."""

    def add(self, other: RelationScans) -> None:
        """Add the scans of a part, which may be read several times."""
        self.counts.update(other.counts)
        self.others |= other.others
        self.paths |= other.paths
        self.words.update(other.words)
        self.problems += [one for one in other.problems if one not in self.problems]


def find_scans(
    text: str, session: SqlSession | None = None, elsewhere: Iterable[DefinedRelation] = ()
) -> RelationScans:
    """Return what a statement or query reads; the table that it writes to is no scan.

    Parameters
    ----------
    text : str
        The statement as written.
    session : SqlSession, optional
        What the statements before it have set.
    elsewhere : iterable of DefinedRelation
        Views and functions that any session sees.

    Examples
    --------
    >>> sql = "WITH w AS (SELECT n FROM T) INSERT INTO t SELECT n FROM w HAVING 1 < (SELECT n FROM \
w)"
    >>> find_scans(sql).counts
    Counter({RelationName(parts=('t',)): 2})
    >>> session = SqlSession().after("USE a").after("CREATE TEMP VIEW v AS SELECT 1 FROM t")
    >>> find_scans("INSERT INTO u SELECT * FROM v", session).counts
    Counter({RelationName(parts=('a', 't')): 1})
    """
    return _Finder(session or SqlSession(), tuple(elsewhere), ()).statement(text)


def target_node(tree: exp.Expr | None) -> exp.Table | None:
    """Return the node of the table that a statement writes to."""
    if not isinstance(tree, exp.Insert | exp.Merge | exp.Update | exp.Delete | exp.Create):
        return None
    into = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return into if isinstance(into, exp.Table) else None


@lru_cache(maxsize=512)
def text_tree(text: str) -> exp.Expr | None:
    """Return the tree of a text, with positions in it, which must not be changed.

    None is returned for what does not parse, and for statements that sqlglot keeps as text.

    Examples
    --------
    >>> text_tree("VACUUM t") is None, text_tree("SELECT 1").key
    (True, 'select')
    """
    marked = with_markers(without_evolution(text))
    # sqlglot reads {name} as the name, and drops the $ of $name
    if not text.strip() or OPEN.search(hide_pieces(marked)):
        return None
    try:
        tree = parse_one(marked, DIALECT)
    except (SqlglotError, RecursionError, ValueError):
        return None
    return None if isinstance(tree, exp.Command) else tree


def hide_pieces(text: str) -> str:
    """Return the text with blanks for its strings and comments, and quoted names as they are.

    Examples
    --------
    >>> hide_pieces("SELECT 'a', `b` -- c")
    'SELECT    , `b`     '
    """
    return PIECE.sub(
        lambda piece: " " * len(piece[0]) if piece[0][0] in "'\"-/" else piece[0], text
    )


class _Finder:
    """Reading of the relations of one statement, or of one query that it names."""

    def __init__(
        self,
        session: SqlSession,
        elsewhere: tuple[DefinedRelation, ...],
        around: tuple[DefinedRelation, ...],
    ) -> None:
        self.session = session
        self.elsewhere = elsewhere
        self.around = around
        """Definitions that are being read."""

    def statement(self, text: str) -> RelationScans:
        """Return the scans of a statement or query."""
        tree = text_tree(text)
        scans = RelationScans()
        if tree is not None:
            try:
                scans.add(self.part(tree, {}, target_node(tree)))
            except RecursionError:
                scans.problems.append("it is nested too deep")
        self.words(text, tree, scans)
        plain = QUOTED.sub(lambda name: '"' * len(name[0]), hide_pieces(text))
        if (wrong := NAMELESS.search(plain)) is not None:
            scans.problems.append(f"'{text[wrong.start() : wrong.end()].strip()}' is no name")
        if OPEN.search(hide_pieces(with_markers(text))) is not None:
            scans.problems.append("a placeholder in it is none that is understood")
        return scans

    def words(self, text: str, tree: exp.Expr | None, scans: RelationScans) -> None:
        """Add the words that the parser did not make names, and the bodies of functions."""
        plain = hide_pieces(text)
        named = set()
        if tree is not None:
            named = {one.meta.get("start") for one in tree.find_all(exp.Identifier)}
        # without a tree, a name before a dot may qualify a column, and is a relation elsewhere
        for word in (WORD if tree is not None else CHAIN).finditer(plain):
            name = RelationName(relation_name(word[0]).parts or ("",))
            called = plain.startswith("(", word.end())
            if called and (function := self.defined(name, "function")) is not None:
                scans.add(self.definition(function))
            if tree is None or (word.start() not in named and not called):
                scans.words[name.last] += 1

    def part(
        self, node: exp.Expr, visible: Mapping[str, RelationScans], target: exp.Expr | None
    ) -> RelationScans:
        """Return the scans of a part of a tree, in which some queries of WITH are visible."""
        scans = RelationScans()
        if (named := node.args.get("with_")) is not None:
            visible = self.with_queries(named, visible)
        if isinstance(node, exp.Table) and node is not target:
            scans.add(self.table(node, visible))
        for key, value in node.args.items():
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr) and key not in ("with_", "hint"):
                    scans.add(self.part(child, visible, target))
        return scans

    def with_queries(
        self, named: exp.Expr, visible: Mapping[str, RelationScans]
    ) -> dict[str, RelationScans]:
        """Return the scans of the queries of a WITH and around it, by name."""
        queries = dict(visible)
        for query in named.expressions:
            inside = (
                {**queries, query.alias.lower(): RelationScans()}
                if named.args.get("recursive")
                else queries
            )
            queries[query.alias.lower()] = self.part(query.this, inside, None)
        return queries

    def table(self, node: exp.Table, visible: Mapping[str, RelationScans]) -> RelationScans:
        """Return the scans of an item of FROM."""
        name = name_of_node(node)
        if name is None:
            return self.function(node)
        scans = RelationScans()
        if len(name.parts) == 1 and name.last in visible:
            return visible[name.last]
        if len(name.parts) == 2 and name.parts[0] in FORMATS:
            scans.paths.add(name.last)
            return scans
        definition = self.defined(name, "view")
        full = with_schema(name, self.session.used)
        read = (
            RelationScans(Counter({full: 1})) if definition is None else self.definition(definition)
        )
        alias = node.args.get("alias")
        at = (
            alias is not None
            and alias.this is not None
            and not isinstance(alias.this, exp.Identifier)
        )
        version = node.args.get("version")
        if version is not None or node.args.get("when") or at:  # `t@v3` has an alias
            # a version that is named once and for all has the same rows in each run
            fixed = at or (version is not None and version.find(*OPEN_ENDED) is None)
            others = read.others if fixed else read.others | {*read.counts}
            return replace(read, counts=Counter(), others=others)
        return read

    def function(self, node: exp.Table) -> RelationScans:
        """Return the scans of a function that gives rows."""
        scans = RelationScans()
        called = node.this
        if called is None:  # DROP SCHEMA has a schema alone
            return scans
        if not isinstance(called, exp.Func):
            scans.problems.append(f"the table {called.sql(DIALECT)} is not known")
            return scans
        literals = [one.name for one in called.find_all(exp.Literal) if one.is_string]
        word = called.name.upper() if isinstance(called, exp.Anonymous) else called.key.upper()
        if word in CHANGES or word == "IDENTIFIER":
            first = called.expressions[0] if called.expressions else None
            if not isinstance(first, exp.Literal) or not first.is_string:
                scans.problems.append(f"the table of {word} is not known")
            elif word == "IDENTIFIER":
                scans.counts[with_schema(relation_name(first.name), self.session.used)] += 1
            else:
                scans.others.add(with_schema(relation_name(first.name), self.session.used))
                scans.paths.add(first.name.lower())
            return scans
        for text in literals:
            scans.paths.add(text.lower())
        for inner in called.find_all(exp.Anonymous):
            if inner.name.upper() == "TABLE":
                scans.words.update(one.name.lower() for one in inner.find_all(exp.Identifier))
        return scans

    def defined(self, name: RelationName, kind: str) -> DefinedRelation | None:
        """Return the view or function of this name that the statement sees."""
        own = self.session.definitions.get(name.last)
        if own is not None and own.kind == kind and len(name.parts) == 1:
            return own
        name = with_schema(name, self.session.used)
        seen = [one for one in self.elsewhere if one.kind == kind and name.may_be(one.name)]
        return seen[0] if len({one.text for one in seen}) == 1 else _several(seen)

    def definition(self, definition: DefinedRelation) -> RelationScans:
        """Return the scans of a view or function that is used once."""
        scans = RelationScans()
        if definition in self.around:
            scans.problems.append(f"{definition.name} reads itself")
            return scans
        inner = _Finder(definition.session, self.elsewhere, (*self.around, definition))
        if definition.is_query:
            return inner.statement(definition.text)
        for word in CHAIN.findall(hide_pieces(definition.text)):
            scans.words.update(relation_name(word).parts)
        for piece in PIECE.finditer(definition.text):
            if piece[0][0] in "'\"`":
                text = piece[0][1:-1].lower()
                scans.paths.add(text)
                scans.words.update(relation_name(text).parts)
        return scans


def _several(definitions: Iterable[DefinedRelation]) -> DefinedRelation | None:
    """Return a definition with the text of several ones, of which one is meant; None for none."""
    texts = [one.text for one in definitions]
    first = next(iter(definitions), None)
    if first is None:
        return None
    joined = " ; ".join(texts)
    return DefinedRelation(first.name, first.kind, first.temporary, joined, False, first.session)
