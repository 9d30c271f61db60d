"""Statements of jobs before they are resolved: plain forms, statements without effect, reasons.

A statement that commits nothing is passed over. One that is not modelled in jobs has a reason, and
commits to known tables only: no commit to another table makes it abort, and it makes no statement
abort that commits to another table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import near
from isolitmus.specs.sql.parameters import BLANK, PIECE
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

VERBS = (
    "ADD", "ALTER", "ANALYZE", "APPLY", "BEGIN", "CACHE", "CALL", "CLEAR", "COMMENT", "COMMIT",
    "CONVERT", "COPY", "CREATE", "DECLARE", "DELETE", "DENY", "DESC", "DESCRIBE", "DROP", "EXECUTE",
    "EXPLAIN", "EXPORT", "FROM", "FSCK", "GENERATE", "GET", "GRANT", "IF", "INSERT", "LIST", "LOAD",
    "MERGE", "MSCK", "OPTIMIZE", "PUT", "REFRESH", "REMOVE", "REORG", "REPAIR", "REPLACE", "RESET",
    "RESTORE", "REVOKE", "ROLLBACK", "SELECT", "SET", "SHOW", "SIGNAL", "START", "SYNC", "TABLE",
    "TRUNCATE", "UNCACHE", "UNDROP", "UNSET", "UPDATE", "USE", "VACUUM", "VALUES", "WHILE", "WITH",
)  # fmt: skip
"""First words of statements in Spark and Databricks."""
FIRST = re.compile(rf"{BLANK}(?P<word>[A-Za-z_]\w*)")
COLUMNS = re.compile(
    rf"{BLANK}(?:ALTER\s+TABLE\s.*\b(?:ADD|RENAME|REPLACE)\b|MERGE\s+WITH\s+SCHEMA\b)",
    re.IGNORECASE | re.DOTALL,
)
NAMESPACE = r"(?:SCHEMA|DATABASE|NAMESPACE)"
PASSED = re.compile(
    rf"""{BLANK}(?:
    (?:SET|RESET|USE|DESCRIBE|DESC|SHOW|EXPLAIN|ANALYZE|REFRESH|GRANT|REVOKE|DECLARE|LIST)\b
    |(?:CREATE|REMOVE)\s+WIDGET\b
    |ADD\s+(?:JAR|FILE|ARCHIVE)S?\b
    |UNCACHE\s+TABLE\b|CLEAR\s+CACHE\b
    |(?:CREATE|ALTER)\s+{NAMESPACE}\b
    |DROP\s+{NAMESPACE}\b(?!(?s:.*)\bCASCADE\s*$)
    |COMMENT\s+ON\s+{NAMESPACE}\b
    |CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?FUNCTION\b
    |DROP\s+(?:TEMPORARY\s+)?(?:FUNCTION|VARIABLE|VIEW)\b
    |INSERT\s+OVERWRITE\s+(?:LOCAL\s+)?DIRECTORY\b
    |GENERATE\s+\w+\s+FOR\s+TABLE\b
    |CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\s+\S+\s+(?:\([^()]*\)\s*)?
        USING\s+(?!delta\b)
    |VACUUM\b(?s:.*)\bDRY\s+RUN\s*$
    |IF\b(?s:.*)\bTHEN\s*$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Statements that commit nothing to a table."""

REASONS = tuple(
    (
        re.compile(rf"{BLANK}(?:{pattern})", re.IGNORECASE | re.DOTALL),
        f"{said} {OUTSIDE}; {instead}",
    )
    for pattern, said, instead in (
        (r"BEGIN\b", "an SQL script", "write its statements one after the other"),
        (r"EXECUTE\s+IMMEDIATE\b", "EXECUTE IMMEDIATE", "write the statement that it runs"),
        (r"CALL\b", "a procedure", "write the statements that it runs"),
        (
            r"FROM\b.*\bINSERT\b",
            "an INSERT into several tables",
            "write an INSERT for each, which is a transaction of its own",
        ),
        (
            r"ALTER\s+TABLE\s+\S+\s+(?:ALTER|CHANGE)\b.*\s(?:FIRST|AFTER\s+\S+)\s*$",
            "the position of a column",
            "omit FIRST and AFTER",
        ),
        (r"DROP\s+TABLE\b", "DROP TABLE", "no statement can follow on its table"),
        (r"DROP\s+\w+\b.*\bCASCADE\b", "DROP … CASCADE", "it drops tables"),
        (
            r"CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\b|ALTER\s+VIEW\b",
            "a view that other files may name",
            "write CREATE TEMPORARY VIEW in the file of each job that names it",
        ),
        (
            r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\b",
            "this form of a temporary view",
            "write CREATE TEMPORARY VIEW name AS SELECT …",
        ),
        (
            r"CACHE\b",
            "CACHE TABLE in a job",
            "statements of its session then read an older state of the table",
        ),
        (r"COPY\s+INTO\b", "COPY INTO", "open-source Delta does not have it; write INSERT INTO"),
        (r"LOAD\s+DATA\b", "LOAD DATA", "Delta does not have it; write INSERT INTO"),
        (r"(?:MSCK\s+)?REPAIR\s+TABLE\b", "REPAIR TABLE", "Delta finds partitions in its log"),
        (
            r"ALTER\s+TABLE\s+\S+\s+RENAME\s+TO\b",
            "RENAME TO",
            "no statement can follow on the old name",
        ),
        (
            r"(?:CREATE|REPLACE)\b.*\bSHALLOW\s+CLONE\b|CONVERT\s+TO\s+DELTA\b",
            "a clone or a conversion in a job",
            "try it in a litmus test",
        ),
        (r"CREATE\s+TABLE\s+\S+\s+LIKE\b", "CREATE TABLE … LIKE", "write its columns"),
        (r"(?:CREATE|DROP)\s+INDEX\b", "an index", "Delta does not have it"),
        (
            r"INSERT\b.*?\bREPLACE\s+USING\b",
            "REPLACE USING",
            "the predicate that it records is not evaluated in the commit check",
        ),
        (r"INSERT\b.*?\bREPLACE\s+ON\b", "REPLACE ON", "write MERGE, or DELETE and INSERT"),
    )
)
"""Statements that jobs cannot have, each with the reason."""
NAME = r"(?P<name>(?:`?\w++`?\s*+\.\s*+)*`?(?P<table>\w+)`?)"
ALTERED = re.compile(
    rf"{BLANK}(?:CREATE(?:\s+OR\s+REPLACE)?|REPLACE|ALTER|DROP)\s+TABLE\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{NAME}(?![\w.`])(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
RENAMED = re.compile(r"\s+RENAME\s+TO\s+(?:`?\w+`?\.)*`?(?P<table>\w+)`?\s*$", re.IGNORECASE)


DROPPED = re.compile(
    rf"{BLANK}DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?{NAME}(?:\s+PURGE)?\s*", re.IGNORECASE
)
CREATED = re.compile(
    rf"{BLANK}(?:CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"|CREATE\s+OR\s+REPLACE\s+TABLE\s+(?=\S+\s+SHALLOW\s+CLONE\b))"
    rf"{NAME}(?![\w.`])(?!(?s:.*)\bLOCATION\b)"
    rf"|{BLANK}CONVERT\s+TO\s+DELTA\s+(?P<format>parquet\s*\.\s*`[^`]*`)",
    re.IGNORECASE,
)
"""Creation of a table that fails or does nothing if the table exists; and a clone."""
CACHED = re.compile(
    rf"{BLANK}CACHE\s+(?:LAZY\s+)?TABLE\s+{NAME}(?P<query>\s+AS\b.*)?\s*", re.IGNORECASE | re.DOTALL
)
VIEWED = re.compile(
    rf"{BLANK}(?:CREATE\s+(?:OR\s+REPLACE\s+)?|ALTER\s+)VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}",
    re.IGNORECASE,
)
IMMEDIATE = re.compile(
    rf"{BLANK}EXECUTE\s+IMMEDIATE\s+(?:'(?P<one>[^'\\]*)'|\"(?P<two>[^\"\\]*)\")\s*", re.IGNORECASE
)
NAMED = re.compile(r"\bIDENTIFIER\s*\(\s*'(?P<name>[\w.`]+)'\s*\)", re.IGNORECASE)


def plain_statement(text: str) -> str:
    """Return a statement with the text that EXECUTE IMMEDIATE runs, and the names that IDENTIFIER
    gives, if these are literals.

    Examples
    --------
    >>> plain_statement("EXECUTE IMMEDIATE 'DELETE FROM orders'")
    'DELETE FROM orders'
    >>> plain_statement("OPTIMIZE IDENTIFIER('shop.orders')")
    'OPTIMIZE shop.orders'
    """
    found = IMMEDIATE.fullmatch(text)
    plain = text if found is None else found["one"] or found["two"] or text
    return NAMED.sub(lambda one: one["name"], plain)


MULTIPLE = re.compile(
    rf"(?P<start>{BLANK}(?:WITH\b(?>.*?\)\s*+(?=FROM\b)))?)(?P<source>FROM\b.*?)(?P<first>\bINSERT\s+(?:INTO|OVERWRITE)\b)",
    re.IGNORECASE | re.DOTALL,
)
INSERTS = re.compile(r"\bINSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE)
QUERIED = re.compile(r"\bSELECT\b", re.IGNORECASE)
CREATES = re.compile(
    rf"{BLANK}CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w.`$]+(?:\s*\.\s*[\w`$]+)*\s*\(",
    re.IGNORECASE,
)
BEGIN = re.compile(rf"{BLANK}BEGIN\s+(?:NOT\s+ATOMIC\s+)?", re.IGNORECASE)
ATOMIC = re.compile(rf"{BLANK}(?:\w+\s*:\s*)?BEGIN\s+ATOMIC(?=\s+\S)", re.IGNORECASE)
END = re.compile(rf"{BLANK}END\s*", re.IGNORECASE)
BRANCH = re.compile(
    rf"{BLANK}(?:(?P<if>(?:ELSE)?IF\b.*?\bTHEN\b)|ELSE\b|END\s+IF\b)", re.IGNORECASE | re.DOTALL
)
DECIDES = re.compile(
    rf"{BLANK}(?:(?P<condition>IF)\b|DECLARE\b|SET\s+VAR(?:IABLE)?\b)", re.IGNORECASE
)
CONTROL = re.compile(
    rf"{BLANK}(?:(?:WHILE|FOR|LOOP|REPEAT|CASE|DECLARE|LEAVE|ITERATE|BEGIN|END|SET|FETCH|OPEN|CLOSE)\b"
    r"|\w+\s*:)",
    re.IGNORECASE,
)
"""Statements of an SQL script that are no plain SQL."""


VIEW = re.compile(
    rf"{BLANK}CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+`?(?P<name>\w+)`?\s+AS\s+"
    r"(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
WITH = re.compile(rf"{BLANK}WITH\b", re.IGNORECASE)


def temporary_view(text: str) -> tuple[str, str] | None:
    """Return the name, in lower case, and the query of a temporary view; None if a statement
    creates none, or one that reads itself, which Spark refuses.

    Examples
    --------
    >>> temporary_view("CREATE OR REPLACE TEMP VIEW S AS SELECT 1 AS id")
    ('s', 'SELECT 1 AS id')
    >>> temporary_view("CREATE OR REPLACE TEMP VIEW s AS SELECT * FROM s") is None
    True
    """
    found = VIEW.fullmatch(text)
    if found is None or names_view(found["query"], found["name"]):
        return None
    return found["name"].lower(), found["query"]


def names_view(text: str, view: str) -> bool:
    """Return whether a text has a name without a schema.

    Examples
    --------
    >>> names_view("SELECT V.id FROM v", "v"), names_view("SELECT id FROM s.v", "v")
    (True, False)
    """
    return re.search(rf"(?<![.\w]){re.escape(view)}\b", text, re.IGNORECASE) is not None


def with_views(statement: str, views: Mapping[str, str]) -> str:
    """Return the statement with the views that it names as common table expressions.

    Examples
    --------
    >>> with_views("INSERT INTO t SELECT * FROM s", {"s": "SELECT 1 AS id", "r": "SELECT 2 AS id"})
    'WITH s AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM s'
    """
    named = {name: query for name, query in views.items() if names_view(statement, name)}
    if not named:
        return statement
    listed = ", ".join(f"{name} AS ({query.strip()})" for name, query in named.items())
    if begun := WITH.match(statement):
        return f"WITH {listed},{statement[begun.end() :]}"
    return f"WITH {listed} {statement}"


def split_inserts(text: str) -> tuple[str, ...]:
    """Return the INSERTs of a statement ``FROM s INSERT INTO a SELECT … INSERT INTO b SELECT …``.

    Each is a transaction of its own. Another statement is returned unchanged.

    Examples
    --------
    >>> split_inserts("FROM s INSERT INTO a SELECT id INSERT INTO b SELECT id WHERE id > 1")
    ('INSERT INTO a FROM s SELECT id', 'INSERT INTO b FROM s SELECT id WHERE id > 1')
    """
    found = MULTIPLE.match(text)
    if found is None:
        return (text,)
    places = [one.start() for one in INSERTS.finditer(text, found.start("first"))]
    made = []
    for start, end in zip(places, [*places[1:], len(text)], strict=True):
        query = QUERIED.search(text, start)
        if query is None or query.start() > end:
            return (text,)
        head, rest = text[start : query.start()].rstrip(), text[query.start() : end].strip()
        made.append(f"{found['start']}{head} {found['source'].strip()} {rest}".lstrip())
    return tuple(made)


def without_block(
    statements: Sequence[tuple[int, str]],
) -> Sequence[tuple[int, str]]:
    """Return the statements of an SQL script without its BEGIN and END, with their positions.

    The condition of an IF is a statement of its own, which commits nothing. A script with loops,
    handlers or variables is returned unchanged, as is what is no script.

    Examples
    --------
    >>> without_block([(0, "BEGIN DELETE FROM t"), (20, "OPTIMIZE t"), (31, "END")])
    [(6, 'DELETE FROM t'), (20, 'OPTIMIZE t')]
    >>> without_block([(0, "BEGIN IF 1 = 1 THEN DELETE FROM t"), (33, "END IF"), (40, "END")])
    [(6, 'IF 1 = 1 THEN'), (19, ' DELETE FROM t')]
    >>> without_block([(0, "BEGIN LOOP DELETE FROM t"), (25, "END LOOP"), (34, "END")])[0]
    (0, 'BEGIN LOOP DELETE FROM t')
    """
    found: list[tuple[int, str]] = []
    left = [*statements]
    blocks = find_transactions([text for _, text in statements])
    together = {statements[k] for one in blocks for k in range(one.first, one.last + 1)}
    while left:
        start, text = left.pop(0)
        if (start, text) in together:
            first = ATOMIC.match(text)
            cut = 0 if first is None else first.end()
            found += [(start, text[:cut]), (start + cut, text[cut:])] if cut else [(start, text)]
            continue
        begun = BEGIN.match(text)
        last = next((k for k, (_, one) in enumerate(left) if END.fullmatch(one)), None)
        if begun is None or last is None:
            found.append((start, text))
            continue
        inner = [*_branches((start + begun.end(), text[begun.end() :]), *left[:last])]
        if any(CONTROL.match(one) for _, one in inner):
            inner = [(start, text), *left[: last + 1]]
        found += inner
        del left[: last + 1]
    return found


def _branches(*statements: tuple[int, str]) -> Iterator[tuple[int, str]]:
    """Yield the statements in the branches of IF, and the conditions."""
    for place, text in statements:
        at = 0
        while found := BRANCH.match(text, at):
            if found["if"]:
                yield place + at, re.sub(r"^\s*ELSE(?=IF)", "", found[0], flags=re.IGNORECASE)
            at = found.end()
        rest = text[at:]
        if rest.strip():
            yield place + at, rest


OPENER = re.compile(
    r"""\s*(?:\w+\s*:(?!:)\s*)?(?:
    (?P<opens>BEGIN\b(?!\s+(?:TRAN|TRANSACTION|WORK)\b|\s*$)(?:\s+(?:NOT\s+)?ATOMIC\b)?
        |(?:IF|CASE)\b.*?\bTHEN\b|(?:WHILE|FOR)\b.*?\bDO\b|LOOP\b|REPEAT\b
        |DECLARE\b.*?\bBEGIN\b)
    |ELSE\b|(?:ELSEIF|WHEN)\b.*?\bTHEN\b
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Beginning of a nested block of an SQL script, or of another branch of one."""
CLOSER = re.compile(r"\s*(?:UNTIL\b.*\s)?END\b", re.IGNORECASE | re.DOTALL)
STARTED = re.compile(
    r"""(?P<atomic>\bBEGIN\s+ATOMIC\b)
    |(?P<plain>\b(?:BEGIN\s+(?:TRAN|TRANSACTION|WORK)|START\s+TRANSACTION)\b|^\s*BEGIN\s*$)
    |(?P<auto>^\s*SET\s+AUTOCOMMIT(?:\s*=\s*|\s+)(?![=\s]|(?:TRUE|1|ON)\s*$))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Beginning of a transaction of several statements."""
ENDED = re.compile(
    r"\s*(?:COMMIT|ROLLBACK|ABORT|END(?=\s*$|\s+(?:TRAN|TRANSACTION|WORK)\b))\b(?!\s+TO\b|.*\bCHAIN\b)",
    re.IGNORECASE | re.DOTALL,
)
ALONE = re.compile(r"\s*(?:COMMIT|ROLLBACK)\b(?!\s+TO\b)", re.IGNORECASE)
"""End of a transaction whose beginning the text may lack."""
RESUMED = re.compile(r"\s*SET\s+AUTOCOMMIT(?:\s*=\s*|\s+)(?:TRUE|1|ON)\s*$", re.IGNORECASE)
"""End of transactions that begin by themselves."""
NAMELESS = re.compile(r"\s*(?:SET|RESET|USE)\b[^()]*$", re.IGNORECASE)
"""Settings, which name no table."""


class TransactionBlock(NamedTuple):
    """Statements of a job that commit together."""

    first: int
    """Index of its first text."""
    last: int
    """Index of its last text."""
    is_ended: bool = True
    """Whether the texts contain its end."""


def find_transactions(texts: Sequence[str]) -> list[TransactionBlock]:
    """Return the transactions of several statements among the texts of a job.

    A transaction that is not ended reaches to the last text. A COMMIT without a beginning ends one
    of all statements before it, because a session may begin transactions by itself.

    Examples
    --------
    >>> find_transactions(["OPTIMIZE t", "BEGIN TRANSACTION", "DELETE FROM t", "COMMIT"])
    [TransactionBlock(first=1, last=3, is_ended=True)]
    >>> find_transactions(["BEGIN DELETE FROM t", "END", "BEGIN ATOMIC DELETE FROM t"])
    [TransactionBlock(first=2, last=2, is_ended=False)]
    """
    found: list[TransactionBlock] = []
    first, depth, kind = None, 0, ""
    for k, text in enumerate(texts):
        for piece in _without_comments(plain_statement(text)).split(";"):
            if first is None and (started := STARTED.search(piece)):
                first, kind, depth = k, str(started.lastgroup), int(started.lastgroup == "atomic")
                piece = piece[started.end() :]  # noqa: PLW2901 - the rest of it is in the block
            opened, rest = _opened(piece)
            if first is None:
                if ALONE.match(rest):
                    _add(found, TransactionBlock(found[-1].last + 1 if found else 0, k))
                continue
            depth += opened
            ends = {"plain": ENDED, "auto": RESUMED}.get(kind)
            over = depth <= 0 and ends is not None and ends.match(rest) is not None
            if not over and CLOSER.match(rest):
                depth -= 1
                over = kind == "atomic" and depth <= 0
            if over:
                _add(found, TransactionBlock(first, k))
                first = None
    if first is not None:
        _add(found, TransactionBlock(first, len(texts) - 1, is_ended=False))
    return found


def _add(blocks: list[TransactionBlock], block: TransactionBlock) -> None:
    """Add a block to those before it; those of one text are one."""
    if blocks and block.first <= blocks[-1].last:
        block = block._replace(first=blocks.pop().first)
    blocks.append(block)


def _without_comments(text: str) -> str:
    """Return a text with blanks in place of comments, and without the contents of strings."""
    return PIECE.sub(lambda one: (" " if one[0][:2] in ("--", "/*") else "x") * len(one[0]), text)


def _opened(piece: str) -> tuple[int, str]:
    """Return how many nested blocks a piece of a script begins, and the rest of it."""
    count, start = 0, 0
    while begun := OPENER.match(piece, start):
        count, start = count + (begun["opens"] is not None), begun.end()
    return count, piece[start:]


def transaction_reason(block: TransactionBlock) -> str:
    """Return why a transaction of several statements is not understood."""
    end = "" if block.is_ended else " without COMMIT or ROLLBACK"
    rest = "no part of it is judged" if block.is_ended else "it reaches to the end of the job"
    return f"a transaction block{end} {OUTSIDE}; {rest}"


def transaction_statements(text: str) -> tuple[str, ...]:
    """Return the statements of a transaction of several statements, but for those that begin and
    end it.

    Examples
    --------
    >>> transaction_statements("BEGIN ATOMIC DELETE FROM t; OPTIMIZE t; END")
    ('DELETE FROM t', 'OPTIMIZE t')
    """
    plain, start, found = _without_comments(text), 0, []
    for piece in plain.split(";"):
        begun = STARTED.search(piece)
        inside = begun.end() if begun is not None and not begun["auto"] else 0
        rest, end = piece[inside:], start + len(piece)
        if rest.strip() and not (ENDED.match(rest) or NAMELESS.match(rest)):
            found.append(text[start + inside : end].strip())
        start = end + 1
    return tuple(found)


def creates_table(text: str) -> bool:
    """Return whether a statement is a CREATE TABLE with columns.

    Examples
    --------
    >>> creates_table("/* once */ CREATE TABLE IF NOT EXISTS shop.t (id INT)")
    True
    >>> creates_table("CREATE TABLE t AS SELECT 1 AS id")
    False
    """
    return CREATES.match(text) is not None


def decided_later(text: str) -> str:
    """Return which part of a statement that commits nothing decides what later ones do: its
    ``condition`` or its ``value``; empty if neither does.

    Examples
    --------
    >>> decided_later("IF (SELECT count(*) FROM t) = 0 THEN"), decided_later("SET VAR x = 1")
    ('condition', 'value')
    >>> decided_later("SET spark.sql.shuffle.partitions = 4")
    ''
    """
    found = DECIDES.match(text)
    return "" if found is None else "condition" if found["condition"] else "value"


def commits_nothing(text: str) -> bool:
    """Return whether a statement commits nothing to a Delta table, whatever the tables are.

    Examples
    --------
    >>> commits_nothing("DROP VIEW IF EXISTS today"), commits_nothing("DROP TABLE orders")
    (True, False)
    """
    return PASSED.match(text) is not None


def concerns_no_table(
    text: str, declared: Collection[str], written: Collection[str], texts: Iterable[str]
) -> bool:
    """Return whether a statement has no effect on the statements of a workload.

    That is so for the creation or DROP of a table without DDL, for CACHE TABLE of tables that no
    job writes to, and for a view that no other statement names.

    Parameters
    ----------
    text : str
        The statement.
    declared, written : collection of str
        Tables with DDL, and tables that jobs write to, in lower case.
    texts : iterable of str
        Statements of the workload.

    Examples
    --------
    >>> concerns_no_table("DROP TABLE IF EXISTS old_orders", {"orders"}, {"orders"}, [])
    True
    >>> concerns_no_table("CACHE TABLE orders", {"orders"}, {"orders"}, [])
    False
    """
    if found := DROPPED.fullmatch(text) or CREATED.match(text):
        return not found["table"] or found["table"].lower() not in declared
    if found := CACHED.fullmatch(text):
        named = {*re.findall(r"\w+", text.lower())}
        known = bool(found["query"]) or found["table"].lower() in declared
        return known and not named & {*written}
    if found := VIEWED.match(text):
        other = re.compile(rf"\b{found['table']}\b", re.IGNORECASE)
        return not any(other.search(one) for one in texts if one != text)
    return False


def unsupported_reason(text: str) -> str | None:
    """Return why a statement is not modelled in jobs, or None if its kind may be modelled.

    Examples
    --------
    >>> unsupported_reason("DROP TABLE orders").partition(";")[2].strip()
    'no statement can follow on its table'
    >>> unsupported_reason("DELETE FROM orders") is None
    True
    """
    return next((reason for pattern, reason in REASONS if pattern.match(text)), None)


def altered_tables(text: str) -> frozenset[str] | None:
    """Return the tables that a CREATE, REPLACE, ALTER or DROP TABLE commits to, in lower case.

    None is returned for another statement, and if the table may have another name as well.

    Examples
    --------
    >>> sorted(altered_tables("CREATE TABLE shop.Late AS SELECT * FROM orders"))
    ['late']
    >>> sorted(altered_tables("ALTER TABLE orders RENAME TO sales"))
    ['orders', 'sales']
    >>> altered_tables("DROP TABLE IDENTIFIER(:name)") is None
    True
    >>> altered_tables("CREATE TABLE late LOCATION '/lake/orders' AS SELECT 1 AS id") is None
    True
    """
    found = ALTERED.match(text)
    if found is None or re.match(r"delta\s*\.|IDENTIFIER\s*$", found["name"], re.IGNORECASE):
        return None
    if re.search(r"\bLOCATION\b", found["rest"], re.IGNORECASE):
        return None
    renamed = RENAMED.match(found["rest"])
    return frozenset(one["table"].lower() for one in (found, renamed) if one is not None)


def unknown_verb(text: str) -> str:
    """Return the message about a first word with which no statement begins; empty if one does.

    Examples
    --------
    >>> unknown_verb("-- all" + chr(10) + "SELEC * FROM t"), unknown_verb("select * FROM t")
    ("no statement begins with 'SELEC'; did you mean 'SELECT'?", '')
    """
    found = FIRST.match(text)
    if found is None or found["word"].upper() in VERBS:
        return ""
    meant = near(found["word"].upper(), VERBS)
    known = meant if "did you mean" in meant else ""
    return f"no statement begins with '{found['word']}'{known}"


def adds_columns(text: str) -> bool:
    """Return whether a statement may add or rename columns of a table.

    Examples
    --------
    >>> adds_columns("ALTER TABLE t ADD COLUMN x INT"), adds_columns("DELETE FROM t")
    (True, False)
    """
    return COLUMNS.match(text) is not None
