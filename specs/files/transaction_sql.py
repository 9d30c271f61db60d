"""Where the text of a transaction's statement becomes a statement, on the tables that it may find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.errors import LitmusError, SqlError, near
from isolitmus.model.sql.query import items_of
from isolitmus.specs.files.schema_versions import resolve_late
from isolitmus.specs.sql.features import features
from isolitmus.specs.sql.parameters import parameters, without_end
from isolitmus.specs.sql.statements import unbound
from isolitmus.specs.sql.syntax import Syntax
from isolitmus.specs.sql.unsupported_pairs import refuse_together
from isolitmus.specs.sql.written import as_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from isolitmus.model.sql import statement as st
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.written import Part

__all__ = ["TransactionContext", "read_sql"]

EXAMPLES: Mapping[Type, Value] = {
    "INT": 1,
    "BIGINT": 1,
    "STRING": "a",
    "DATE": date(2000, 1, 1),
    "BOOLEAN": True,
    "DOUBLE": 1.0,
    "TIMESTAMP": datetime.fromisoformat("2000-01-01"),
}
"""What a statement's parameters are while nobody has read them."""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What the transactions of a file are read against: the tables that they may find (``reached``, first
    those that are declared), and their texts as they were parsed. ``alters``: a statement alters columns.
    """

    reached: tuple[Tables, ...]
    syntaxes: dict[str, Syntax]
    alters: bool = False

    @property
    def schemas(self) -> Tables:
        """The tables as they are declared."""
        return self.reached[0]


def _raised(problem: str) -> NoReturn:
    raise LitmusError(problem)


def _resolved(syntax: Syntax, reached: Sequence[Tables]) -> st.Statement:
    """The statement; what is not modelled in an expression of it stays in it, and leaves a run undecided."""
    try:
        return resolve_late(syntax.typed({}, queried=True), reached)
    except SqlError as error:
        if error.kind != "opaque":
            raise
    return resolve_late(syntax.typed({}, opaque=True, queried=True), reached)


def read_sql(
    text: str,
    name: str,
    given: Node,
    context: TransactionContext,
    let: Mapping[str, st.Read],
    *,
    parts: Sequence[Part] = (),
) -> st.Statement:
    """The statement of an author's text, or of its ``parts``; parameters stand for a value of their type."""
    syntax = context.syntaxes.get(name)
    if syntax is None or syntax.text != without_end(text):
        syntax = Syntax(text, f"{given.place}, transaction {name}")
    for parameter in parameters(text) if let else ():
        if parameter not in let:
            given.refuse(f"{given}: no let gives ':{parameter}'{near(parameter, let)}")
    examples = {n: EXAMPLES[items_of(read.query[0])[0].type] for n, read in let.items()}
    try:
        found = _resolved(syntax.bound(examples), context.reached)
    except SqlError as error:
        raise (as_written(error, parts) if parts else error) from None
    assert not isinstance(found, Raw)
    has = set(features(found))
    if found.origin is not None and found.origin.tables is not context.schemas:
        has.add("columns that a transaction adds or renames")
    refuse_together(has, _raised, syntax.label)
    return unbound(found)
