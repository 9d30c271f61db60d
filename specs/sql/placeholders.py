"""What stands in a statement for something that each engine has its own name for.

``{init[n]}``, after VERSION AS OF, is the version that the n-th init statement made, and
``delta.`{alias}` `` or ``delta.`{alias[t]}` ``, in a FROM, another path to the files of a table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlglot import expressions as exp

__all__ = ["aliased", "marked_version", "placed", "with_markers"]

INIT = re.compile(r"\{init\[([1-9][0-9]{0,3})\]\}")
"""The version of the n-th init statement, where it stands in SQL."""
ALIAS = re.compile(r"\{alias(?:\[(\w+)\])?\}")
"""Another path to the files of a table."""


def with_markers(sql: str) -> str:
    """The text with each ``{init[n]}`` as a SQL literal as long as itself.

    >>> with_markers("SELECT * FROM t VERSION AS OF {init[1]} WHERE id = 1")
    "SELECT * FROM t VERSION AS OF 'init 1'  WHERE id = 1"
    """
    return INIT.sub(lambda found: f"'init {found[1]}' ", sql)


def placed(sql: str, versions: Sequence[int], alias: Callable[[str | None], object]) -> str:
    """The text with an engine's own number in the place of each ``{init[n]}``, and another path to a
    table (None: to the only one) in the place of each ``{alias}``.

    >>> placed("SELECT * FROM t VERSION AS OF {init[1]}", [2], str)
    'SELECT * FROM t VERSION AS OF 2'
    >>> placed("SELECT * FROM delta.`{alias[t]}`", [], "/tmp/{}".format)
    'SELECT * FROM delta.`/tmp/t`'
    """
    numbered = INIT.sub(lambda found: str(versions[int(found[1]) - 1]), sql)
    return ALIAS.sub(lambda found: str(alias(found[1])), numbered)


def aliased(node: exp.Table, names: Collection[str]) -> str | None:
    """Which of the tables (names in lower case) a FROM names by another path to its files."""
    found = ALIAS.fullmatch(node.name)
    if node.db.lower() != "delta" or found is None:
        return None
    if found[1] is None:
        return next(iter(names)).lower() if len(names) == 1 else None
    return found[1].lower() if found[1].lower() in {name.lower() for name in names} else None


def marked_version(node: exp.Table) -> int | None:
    """The init statement that a table's VERSION AS OF names."""
    version = node.args["version"]
    text = version.expression.name if version.expression is not None else ""
    if version.name != "VERSION" or version.args.get("kind") != "AS OF":
        return None
    found = re.fullmatch(r"init ([1-9][0-9]*)", text)
    return None if found is None else int(found[1])
