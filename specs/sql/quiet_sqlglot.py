"""sqlglot without its warnings, and with one error: that it falls back to a Command is no news for
whoever reads the tree, and of some texts its parser does not say that they do not parse, but trips
over them.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.expressions import Expr

__all__ = ["parse_one", "parse_sql", "quiet_logging"]

LITERAL = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|`[^`]*`|(?<!\w)r'[^']*'|(?<!\w)r"[^"]*")"""
    r"""|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""",
    re.DOTALL | re.IGNORECASE,
)
"""What has no text literal in it though there are quotes; and a text literal, doubled quotes among
it.
"""
TRIPPED = (AssertionError, AttributeError, LookupError, TypeError)
"""What parsing ends in besides an error of sqlglot's own."""

logging.getLogger("sqlglot").addHandler(
    logging.NullHandler()
)  # else Python prints what it warns of


@contextmanager
def quiet_logging() -> Iterator[None]:
    """Nothing of what sqlglot logs is shown meanwhile."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def parse_sql(text: str, dialect: str) -> list[Expr | None]:
    """The trees of some statements; sqlglot's ParseError for whatever does not parse,
    RecursionError for what is too deep.

    >>> parse_sql("SELECT map('a')", "databricks")
    Traceback (most recent call last):
    sqlglot.errors.ParseError: some part of it is of a form that the parser does not know
    """
    import sqlglot
    from sqlglot.errors import ParseError

    try:
        with quiet_logging():
            return sqlglot.parse(_escaped(text) if dialect == "databricks" else text, read=dialect)
    except ValueError:  # sqlglot takes a function for another one
        raise ParseError("the arguments of some function") from None
    except TRIPPED:
        raise ParseError("some part of it is of a form that the parser does not know") from None


def _escaped(text: str) -> str:
    r"""The text with a backslash for the first of two quotes in a literal: to Spark 4 they are one
    quote, to sqlglot two literals side by side. What follows stays where it is.

    >>> print(_escaped("SELECT 'it''s', 'a' 'b', '' -- isn''t"))
    SELECT 'it\'s', 'a' 'b', '' -- isn''t
    """

    def literal(found: re.Match[str]) -> str:
        whole = found[0]
        if found["text"] is None:
            return whole
        quote = whole[0]
        parts = re.split(rf"(\\.|{quote}{quote})", whole[1:-1], flags=re.DOTALL)
        inner = (f"\\{quote}" if part == quote * 2 else part for part in parts)
        return f"{quote}{''.join(inner)}{quote}"

    return LITERAL.sub(literal, text)


def parse_one(text: str, dialect: str) -> Expr:
    """The tree of one statement; sqlglot's ParseError for whatever is none."""
    from sqlglot.errors import ParseError

    try:
        trees = parse_sql(text, dialect)
    except RecursionError:
        raise ParseError("it is nested too deeply") from None
    if len(trees) != 1 or trees[0] is None:
        raise ParseError("expected one statement")
    return trees[0]
