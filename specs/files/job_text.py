r"""The text of a job as people keep it: templates, settings and temporary views beside the statements that write.

A template is a parameter, a temporary view is a query that later statements name. SET of a conf that is modelled is
kept; what else a session is told is passed over, which is said, unless a commit may hang on it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from isolitmus.specs.sql.configuration import JOB_CONFS, SET
from isolitmus.specs.sql.parameters import BLANK, PIECE
from isolitmus.specs.sql.written import located

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.specs.files.toml_reader import Source

__all__ = ["JobText", "job_text", "parametrised", "statements_in"]

NAMED = r"(?:\$\{\s*(?P<{0}a>\w+)\s*\}|\{\{\s*(?P<{0}b>\w+)\s*\}\})"
TEMPLATE = re.compile(
    "|".join(
        f"{quote}{NAMED.replace('{0}', name)}{quote}"
        for quote, name in (("'", "s"), ('"', "d"), ("", "p"))
    )
)
"""What a template engine puts a value in for, perhaps as a text."""
LEFT = re.compile(r"\{\{|\{%|\$\{")
PASSED = re.compile(rf"{BLANK}(SET|RESET|USE|DESCRIBE|DESC|SHOW|ANALYZE|REFRESH)\b", re.IGNORECASE)
MATTERS = re.compile(r"spark\.databricks\.|partitionOverwriteMode", re.IGNORECASE)
"""Settings on which commits may hang."""
VIEW = re.compile(
    rf"{BLANK}CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+`?(?P<name>\w+)`?\s+AS\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
WITH = re.compile(rf"{BLANK}WITH\b", re.IGNORECASE)


class JobText(NamedTuple):
    """The statements of a job, the SET of a conf that is modelled among them, and what is passed over."""

    statements: tuple[str, ...]
    passed_over: tuple[str, ...]


def job_text(source: Source) -> JobText:
    """What a job's file holds; SqlError for what the statements may hang on.

    >>> from isolitmus.specs.files.toml_reader import Source
    >>> text = "USE shop; CREATE TEMP VIEW s AS SELECT 1 AS id; INSERT INTO t SELECT * FROM s"
    >>> job_text(Source("a.sql", text))
    JobText(statements=('WITH s AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM s',), passed_over=('USE shop',))
    """
    if left := LEFT.search(source.text):
        word = source.text[left.start() :].partition("\n")[0]
        _refuse(source, left.start(), f"'{word}' is of a template; write the SQL that it makes")
    found: list[str] = []
    passed: list[str] = []
    views: dict[str, str] = {}
    for statement in statements_in(source.text):
        if view := VIEW.fullmatch(statement):
            views[view["name"]] = _with_views(view["query"], views)
        elif (conf := SET.fullmatch(statement)) and conf["key"] in JOB_CONFS:
            found.append(statement)
        elif PASSED.match(statement):
            if MATTERS.search(statement):
                problem = f"'{statement}' may change what commits do, which is not modelled"
                _refuse(source, source.text.index(statement), f"{problem}; leave it out")
            passed.append(statement)
        else:
            found.append(_with_views(statement, views))
    return JobText(tuple(found), tuple(passed))


def _refuse(source: Source, start: int, problem: str) -> NoReturn:
    raise located(source.label, source.text, start, problem)


def _with_views(statement: str, views: dict[str, str]) -> str:
    """The statement, the views that it names as its own queries."""
    named = {
        name: query
        for name, query in views.items()
        if re.search(rf"(?<![.\w]){name}\b", statement, re.IGNORECASE)
    }
    if not named:
        return statement
    listed = ", ".join(f"{name} AS ({query.strip()})" for name, query in named.items())
    if begun := WITH.match(statement):
        return f"WITH {listed},{statement[begun.end() :]}"
    return f"WITH {listed} {statement}"


def parametrised(text: str) -> str:
    """The text with parameters for what a template engine puts values in for; nothing else is moved.

    >>> parametrised("DELETE FROM t WHERE day = '{{ ds }}' AND id = ${id}")
    'DELETE FROM t WHERE day = :ds        AND id = :id  '
    """

    def parameter(found: re.Match[str]) -> str:
        name = next(name for name in found.groups() if name)
        return f":{name}".ljust(len(found[0]))

    return TEMPLATE.sub(parameter, text)


def statements_in(text: str) -> Iterator[str]:
    r"""The statements of a text, without the semicolons that end them.

    >>> list(statements_in("DELETE FROM t; -- done;\nINSERT INTO t VALUES (';')"))
    ['DELETE FROM t', "-- done;\nINSERT INTO t VALUES (';')"]
    """
    hidden = PIECE.sub(lambda found: "x" * len(found[0]), text)
    start = 0
    for end in [*(k for k, sign in enumerate(hidden) if sign == ";"), len(text)]:
        statement = text[start:end].strip()
        if re.sub(r"--[^\n]*|/\*.*?\*/", "", statement, flags=re.DOTALL).strip():
            yield statement
        start = end + 1
