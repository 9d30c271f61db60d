"""Plain names of relations in statements, and the queries that a statement names.

A table of a workload has a name without a schema. So each relation of a project gets a name that is
unique in it, and statements are rewritten by words, without parsing: what does not parse is
reported later, with its place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

HIDDEN = re.compile(
    r"""'(?:[^'\\]|\\.?)*+(?:'|\Z)|"(?:[^"\\]|\\.?)*+(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)""",
    re.DOTALL,
)
"""Strings and comments; one without an end lasts to the end of the text."""
RESERVED = {
    "and", "case", "cross", "except", "from", "full", "function", "group", "having", "inner",
    "intersect", "join", "lateral", "left", "limit", "minus", "natural", "not", "null", "on", "or",
    "order", "right", "select", "table", "union", "using", "values", "when", "where", "with",
}  # fmt: skip
"""Words that are no name of a table without quotes."""
WITH = re.compile(r"\s*with\b", re.IGNORECASE)


def choose_table_names(
    relations: Mapping[str, str], written: Collection[str] = ()
) -> dict[str, str]:
    """Return a name for each relation: its last part, with its schema if another one has the same.

    Parameters
    ----------
    relations : mapping of str to str
        Relations by their ids.
    written : collection of str
        Ids of the relations that keep their last part if others have the same.

    Examples
    --------
    >>> choose_table_names({"a": "raw.orders", "b": "`dev`.`orders`", "c": "dev.on"}, ["b"])
    {'b': 'orders', 'a': 'raw_orders', 'c': 'dev_on'}
    """
    parts = {key: _parts(relation) for key, relation in relations.items()}
    last = [of[-1].lower() for of in parts.values()]
    found: dict[str, str] = {}
    taken = {*RESERVED}
    for key, of in sorted(parts.items(), key=lambda item: item[0] not in written):
        plain = of[-1] if last.count(of[-1].lower()) == 1 or key in written else "_".join(of[-2:])
        name = re.sub(r"\W", "_", plain)
        whole = re.sub(r"\W", "_", "_".join(of))
        names = [name, whole, *(f"{name}_{k}" for k in range(2, len(parts) + 3))]
        found[key] = next(one for one in names if one.lower() not in taken)
        taken.add(found[key].lower())
    return found


def _parts(relation: str) -> list[str]:
    """Return the parts of a relation's name, without quotes."""
    return [part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", relation)] or [relation]


def match_relation(written: str, names: Mapping[str, str]) -> str | None:
    """Return the plain name of the relation that a statement names; None if it names no single one.

    A name without a schema is that of the relation with this plain name. A catalog or schema that
    is left out on one side may be any.

    Parameters
    ----------
    written : str
        Name in a statement, perhaps with a schema and a catalog.
    names : mapping of str to str
        Plain names by relation.

    Examples
    --------
    >>> names = {"dev.orders": "orders", "main.raw.orders": "raw_orders"}
    >>> match_relation("raw.orders", names), match_relation("orders", names)
    ('raw_orders', 'orders')
    >>> match_relation("other.orders", names) is None
    True
    """
    parts = [part.lower() for part in _parts(written)]
    if len(parts) == 1:
        return next((name for name in names.values() if name.lower() == parts[0]), None)
    found = set()
    for relation, name in names.items():
        own = [part.lower() for part in _parts(relation)]
        if own == parts:
            return name
        shared = min(len(own), len(parts))
        if own[-shared:] == parts[-shared:]:
            found.add(name)
    return found.pop() if len(found) == 1 else None


class RelationRenaming:
    """Plain names in place of relations in statements, but not in strings and comments.

    Examples
    --------
    >>> renaming = RelationRenaming({"dev.orders": "orders", "raw.orders": "raw_orders"})
    >>> renaming.apply("select dev.orders.id, 'dev.orders' from `dev`.`orders`, raw . orders")
    "select orders.id, 'dev.orders' from orders, raw_orders"
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {
            tuple(part.lower() for part in _parts(relation)): name
            for relation, name in names.items()
        }
        options = sorted(
            (r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in parts) for parts in self.names),
            key=len,
            reverse=True,
        )
        plain = (
            rf"(?<![\w.`])(?P<relation>{'|'.join(options)})(?![\w`])"
            if options
            else r"(?!)(?P<relation>)"
        )
        self.pattern = re.compile(f"{HIDDEN.pattern}|{plain}", re.DOTALL | re.IGNORECASE)

    def apply(self, text: str) -> str:
        """Return a statement with plain names."""

        def written(found: re.Match[str]) -> str:
            relation = found["relation"]
            if relation is None:
                return found[0]
            key = tuple(part.strip("` \n\t").lower() for part in relation.split("."))
            return self.names.get(key, found[0])

        return self.pattern.sub(written, text)


def has_word(text: str, name: str) -> bool:
    """Return whether a text has this name as a word, without a schema before it.

    Examples
    --------
    >>> has_word("select * from `Orders`", "orders"), has_word("from dev.orders", "orders")
    (True, False)
    """
    return re.search(rf"(?<![.\w])`?{re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def find_qualified_tables(text: str) -> set[str]:
    """Return the names with a schema that follow FROM or JOIN.

    Examples
    --------
    >>> find_qualified_tables("select 'from a.b' from c.d join e on x.y = 1")
    {'c.d'}
    """
    plain = HIDDEN.sub(" ", text)
    return set(re.findall(r"(?i)\b(?:from|join)\s+([\w`]+\.[\w`.]+)", plain))


def put_with(statement: str, queries: Sequence[tuple[str, str]]) -> str:
    r"""Return a statement with named queries before it.

    Examples
    --------
    >>> put_with("with b as (select 1) select * from a, b", [("a", "select 2")])
    'WITH a AS (select 2\n), b as (select 1) select * from a, b'
    """
    if not queries:
        return statement
    listed = ", ".join(f"{name} AS ({query.strip()}\n)" for name, query in queries)
    if begun := WITH.match(statement):
        return f"WITH {listed},{statement[begun.end() :]}"
    return f"WITH {listed} {statement}"
