"""Wrapper of sqlglot's parser, without log messages and with a uniform ParseError.

The fallback to a Command, of which sqlglot warns, is visible in the tree. For some texts that do
not parse, sqlglot raises other exceptions than ParseError.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import Token
    from sqlglot.expressions import Expr

LITERAL = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?(?:\*/|\Z)|`[^`]*`|(?<!\w)r'[^']*'|(?<!\w)r"[^"]*")"""
    r"""|(?P<text>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")|['"].*""",
    re.DOTALL | re.IGNORECASE,
)
"""Comment or quoted name, which contains no string literal; or a string literal, doubled quotes
included.
"""
TRIPPED = (AssertionError, AttributeError, LookupError, TypeError)
"""Exceptions of sqlglot's parser other than its own errors."""

# Without a handler, Python prints warnings of the library.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


@contextmanager
def quiet_logging() -> Iterator[None]:
    """Suppress log messages of sqlglot for the duration of the block."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def parse_sql(text: str, dialect: str) -> list[Expr | None]:
    """Return the trees of some statements.

    Raises
    ------
    ParseError
        If the text does not parse.
    RecursionError
        If it is nested too deeply.

    Examples
    --------
    >>> parse_sql("SELECT map('a')", "databricks")
    Traceback (most recent call last):
    sqlglot.errors.ParseError: some part of it is of a form that the parser does not know
    >>> parse_sql("DELETE FROM t WHERE id = :from", "databricks")[0].sql()
    'DELETE FROM t WHERE id = :from'
    """
    from sqlglot import Dialect
    from sqlglot.errors import ParseError

    reader = Dialect.get_or_raise(dialect)
    try:
        with quiet_logging():
            escaped = _escaped(text) if dialect == "databricks" else text
            tokens = reader.tokenize(escaped)
            _name_parameters(tokens)
            return reader.parser().parse(tokens, escaped)
    except ValueError:  # wrong arguments of a function that sqlglot knows
        raise ParseError("the arguments of some function") from None
    except TRIPPED:
        raise ParseError("some part of it is of a form that the parser does not know") from None


def _name_parameters(tokens: Sequence[Token]) -> None:
    """Make a keyword the name of a parameter if it follows a colon: ``:from``."""
    from sqlglot import TokenType

    for colon, word in pairwise(tokens):
        if (
            colon.token_type is TokenType.COLON
            and colon.end + 1 == word.start
            and word.text.isidentifier()
        ):
            word.token_type = TokenType.VAR


def _escaped(text: str) -> str:
    r"""Return the text with a backslash instead of the first of two quotes in a literal.

    Two quotes are one quote in Spark 4, but two adjacent literals in sqlglot. Positions do not
    change.

    Examples
    --------
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
    """Return the tree of one statement; ParseError for anything else."""
    from sqlglot.errors import ParseError

    try:
        trees = parse_sql(text, dialect)
    except RecursionError:
        raise ParseError("it is nested too deeply") from None
    if len(trees) != 1 or trees[0] is None:
        raise ParseError("expected one statement")
    return trees[0]
