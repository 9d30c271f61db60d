"""Tables and views that are declared, but not understood: statements that name them are not either.

They are never treated as tables without DDL, which are assumed to be no declared tables.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from isolitmus.jobs.sql.job_statements import commits_nothing
from isolitmus.jobs.workload import UnreadTable
from isolitmus.model.errors import IsolitmusError, SqlError
from isolitmus.specs.sql.parameters import BLANK
from isolitmus.specs.sql.source_text import locate_error
from isolitmus.specs.sql.syntax import Syntax, well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = re.compile(
    rf"{BLANK}(?:CREATE|REPLACE|ALTER)(?:\s+\w+)*?\s+(?P<kind>TABLE|VIEW)\s+"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:(?:`[^`]+`|\w+)\s*\.\s*)*"
    r"(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))",
    re.IGNORECASE,
)
"""Statement that declares a table or a view, or changes one."""
ASIDE_STATEMENT = re.compile(
    rf"{BLANK}(?:DROP\s+(?:TABLE|VIEW)"
    r"|INSERT|MERGE|UPDATE|DELETE|TRUNCATE|COMMENT|OPTIMIZE|VACUUM)\b",
    re.IGNORECASE,
)
"""Statement in a DDL that declares nothing: answers are for all rows of the declared tables."""
WORDS = re.compile(r"\w+")


def creates_no_table(text: str) -> bool:
    """Return whether a statement of a DDL declares neither a table nor a view, nor changes one.

    Examples
    --------
    >>> texts = "USE shop", "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT)", "SELEC 1"
    >>> [creates_no_table(text) for text in texts]
    [True, True, False, False]
    """
    return commits_nothing(text) or ASIDE_STATEMENT.match(text) is not None


def unread_table(text: str, error: IsolitmusError, place: str) -> UnreadTable:
    """Return the table or view that a statement declares or changes, and that is not understood.

    Parameters
    ----------
    text : str
        The statement.
    error : IsolitmusError
        What is not understood; raised if the statement names no table.
    place : str
        File and line of the statement, if the error has none.

    Examples
    --------
    >>> error = SqlError("f.sql:2:9: 'COLLATE x' on a column is not modelled")
    >>> print(unread_table("CREATE TABLE shop.`t` (s STRING COLLATE x)", error, "f.sql:2"))
    t is declared, but not understood (f.sql:2:9): 'COLLATE x' on a column is not modelled
    """
    named = NAMED.match(text)
    if named is None:
        raise error
    told, _, problem = str(error).partition("\n")[0].partition(": ")
    if isinstance(error, SqlError) and problem:
        place = told.partition(", ")[0]
    name = named["quoted"] or named["name"]
    return UnreadTable(name, place, problem or told, named["kind"].upper() == "VIEW")


def named_unread_table(text: str, unread: Mapping[str, UnreadTable]) -> UnreadTable | None:
    """Return a table or view that a statement names, and that is not understood.

    Parameters
    ----------
    text : str
        The statement.
    unread : mapping of str to UnreadTable
        Tables and views by name in lower case.

    Examples
    --------
    >>> unread = {"s": UnreadTable("s", "f.sql:1", "")}
    >>> texts = "DELETE FROM shop.S", "INSERT INTO t SELECT s.id FROM u AS s", "VACUUM s"
    >>> [named_unread_table(text, unread) is not None for text in texts]
    [True, False, True]
    """
    words = {*WORDS.findall(text.lower())} if unread else set()
    named = [one for name, one in unread.items() if {*WORDS.findall(name)} <= words]
    if not named:
        return None
    with suppress(SqlError), well_formed(text, ""):
        # aliases are no tables; a statement that sqlglot does not parse may name it anywhere
        tables = Syntax(text).named_tables()
        named = [one for one in named if one.name.lower() in tables or not tables]
    return named[0] if named else None


def refuse_unread_table(text: str, label: str, unread: Mapping[str, UnreadTable]) -> None:
    """Raise SqlError, with the place, if a statement names such a table or view."""
    table = named_unread_table(text, unread)
    if table is not None:
        place = re.search(rf"(?<!\w){re.escape(table.name)}(?!\w)", text, re.IGNORECASE)
        raise locate_error(label, text, place.start() if place else 0, str(table))
