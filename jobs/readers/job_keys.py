"""Keys of a job in a workload file besides its statements: types, settings and condition."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError, SqlError, near
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import NAMED_TYPES, column_type
from isolitmus.specs.files.client_file import conf_value
from isolitmus.specs.files.toml_reader import NAME, Node, show_value
from isolitmus.specs.sql.configuration import JOB_CONFS, OVERWRITE_MODE, conf_problem
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.source_text import NameScope, Side, SqlText, errors_in_file
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.types import Type

NOT_NULL = re.compile(r"(\S)\s+NOT\s+NULL\s*\Z", re.IGNORECASE)
"""End of the type of a parameter that is never NULL."""

OVERWRITE_OPTION = "partitionOverwriteMode"
"""Option of a DataFrame writer for the overwrite mode of one write."""


def types_in(node: Node) -> dict[str, Type]:
    """Return parameters with their types, which may end with NOT NULL."""
    found: dict[str, Type] = {}
    for name, given in node.items():
        if not NAME.fullmatch(name):
            given.refuse(f"{given}: invalid name of a parameter; use letters, digits and _")
        text = given.value
        type_ = column_type(NOT_NULL.sub(r"\1", text)) if isinstance(text, str) else None
        if type_ is None:
            meant = near(str(given.value).upper(), NAMED_TYPES)
            given.refuse(f"{given}: unknown type {show_value(given.value)}{meant}")
        if type_ == "BOOLEAN":
            given.refuse(
                f"{given}: BOOLEAN parameters are unsupported; write one job for TRUE and one for"
                " FALSE"
            )
        found[name] = type_
    return found


def not_null_in(node: Node) -> frozenset[str]:
    """Return the parameters that are declared NOT NULL."""
    types = ((name, given.value) for name, given in node.items())
    return frozenset(
        name for name, text in types if isinstance(text, str) and NOT_NULL.search(text)
    )


def job_confs(node: Node) -> dict[str, str]:
    """Return the settings in ``conf``, overridden by the writer's option partitionOverwriteMode."""
    given = node.inner("conf", {})
    confs = {key: job_conf(given, key, value) for key, value in given.value.items()}
    options = node.inner("options", {})
    with _job_left_out():
        options.keys((OVERWRITE_OPTION,))
        for value in options.value.values():
            confs[OVERWRITE_MODE] = conf_value(options, OVERWRITE_MODE, value)
    return confs


def job_conf(node: Node, key: str, value: object) -> str:
    """Return the value of a setting that jobs may use; SqlError for another one."""
    with _job_left_out():
        if isinstance(value, str) and (why := conf_problem(key, value, JOB_CONFS)):
            node.refuse(f"{node}: {why}")
        return conf_value(node, key, value)


@contextmanager
def _job_left_out() -> Iterator[None]:
    """Raise an error about a setting as one about the statements of its job, which leaves the job
    out, and the others their answers.
    """
    try:
        yield
    except LitmusError as error:
        raise SqlError(str(error)) from None


def in_file(node: Node, key: str, text: str) -> AbstractContextManager[None]:
    """Return a context in which errors in the text of a key point into the file."""
    source = node.source
    return errors_in_file(source.label, source.text, source.offset(node.under(key), text))


def job_condition(node: Node, types: Mapping[str, Type]) -> tuple[Expr | None, str]:
    """Return the condition on the parameters of a job, and its text."""
    if "where" not in node:
        return None, ""
    text = node.get("where", str)
    if not types:
        node.refuse(f"{node}.where: the job has no parameters; remove the condition")
    columns = tuple(Column(name, type_) for name, type_ in types.items())
    syntax = Syntax(text, f"{node.at('where').place}, where of {node}")
    place = SqlText(text, syntax.label)
    none = "a condition on parameters has no subquery"
    with in_file(node, "where", text):
        found = read_expression(NameScope(place, (Side("", columns),), none), syntax.tree())
    if found.type != "BOOLEAN":
        node.refuse(f"{node}.where is '{text}'; write a condition on {', '.join(types)}")
    return found, text
