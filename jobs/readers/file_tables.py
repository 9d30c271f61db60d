"""Tables that SQL files create with CREATE TABLE, by their full names.

The same creation in several files is one table. Creations that differ in columns, partitions or
properties leave it open which table there is: it is declared, but not understood.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.readers.reading_cache import cached_reading
from isolitmus.jobs.readers.table_names import created_name, created_text, text_after_name
from isolitmus.jobs.readers.unread_tables import unread_table
from isolitmus.jobs.readers.workload_file import workload_tables
from isolitmus.jobs.sql.job_statements import creates_table
from isolitmus.jobs.sql.relations import RelationName, SqlSession
from isolitmus.jobs.workload import UnreadTable
from isolitmus.model.assumption import AssumptionKind
from isolitmus.model.errors import LitmusError, SqlError
from isolitmus.specs.files.table_ddl import read_ddl
from isolitmus.specs.files.toml_reader import Node, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.model.assumption import Assumption


class _Creation(NamedTuple):
    """CREATE TABLE of a table."""

    text: str
    place: str

    def creates_same(self, other: _Creation) -> bool:
        """Return whether another one creates the same table."""
        return self._plain() == other._plain() or self._declared() == other._declared()

    def _plain(self) -> str:
        """Return what follows the name, in one line."""
        return " ".join(text_after_name(self.text).lower().split())

    def _declared(self) -> tuple[object, ...]:
        """Return what matters of the table that it creates."""
        found = workload_tables(Node({"ddl": self.text}, "", Source(self.place)), ())
        (schema,) = found.schemas.values()
        columns = tuple(replace(one, name=one.name.lower()) for one in schema.columns)
        partitions = tuple(map(str.lower, schema.partitioned_by))
        schema = replace(schema, name="", columns=columns, partitioned_by=partitions)
        return schema, found.level, (*found.formats.values(),)


@dataclass(slots=True)
class FileTables:
    """Tables that SQL files create.

    Examples
    --------
    >>> tables = FileTables()
    >>> for text in ("CREATE TABLE a.t (id INT)", "CREATE TABLE a.t (n INT)"):
    ...     told = [*tables.take([text], Source("x.sql", text))]
    >>> tables.texts, [str(one) for one in tables.unread]
    ([], ['a.t is declared, but not understood (x.sql:1 and x.sql:1): they declare it differently'])
    """

    store: ReadingStore | None = None
    """Readings of earlier runs."""
    _created: dict[RelationName, _Creation] = field(default_factory=dict)
    _unread: dict[RelationName, UnreadTable] = field(default_factory=dict)
    _differing: set[RelationName] = field(default_factory=set)
    _own: set[RelationName] = field(default_factory=set)
    """Those of a DDL, which count for all files, and keep their names."""

    @property
    def texts(self) -> list[str]:
        """CREATE TABLE statements of the tables that no DDL creates."""
        return [one.text for name, one in self._created.items() if name not in self._own]

    @property
    def unread(self) -> list[UnreadTable]:
        """Tables that are not understood."""
        return [one for name, one in self._unread.items() if name not in self._created]

    def add_ddl(self, statements: Sequence[str], source: Source) -> None:
        """Add the tables of a DDL."""
        list(self.take([*statements], source))
        self._own |= self._created.keys()
        self._unread.clear()  # the reader of the DDL tells them

    def take(self, statements: list[str], source: Source) -> Iterator[Assumption]:
        """Move each CREATE TABLE of a job from its statements to the tables, or to those that are
        not understood.

        Yields what is assumed about one that creates a table of a DDL again.
        """
        session = SqlSession()
        for one in [*statements]:
            session = session.after(one)
            if not creates_table(one):
                continue
            statements.remove(one)
            creation = _Creation(
                created_text(one, session.used),
                f"{source.label}:{source.text.count(chr(10), 0, source.text.find(one)) + 1}",
            )
            full = created_name(creation.text)
            assert full is not None
            try:
                read = partial(_created_table, one, creation.place)
                name = cached_reading(self.store, "created", one, read)
            except (LitmusError, SqlError) as error:
                problem = str(error).partition("\n")[0].partition(": ")[2]
                table = unread_table(one, error, creation.place)
                table = replace(table, name=str(full), place=creation.place, problem=problem)
                self._unread.setdefault(full, table)
                continue
            if self._add(full, creation):
                yield AssumptionKind.DECLARATION.says(
                    f"The CREATE TABLE of {creation.place} is passed over: another one creates"
                    f" {name}."
                )

    def _add(self, full: RelationName, creation: _Creation) -> bool:
        """Add a table; return whether a DDL creates it otherwise."""
        known = [*self._created]
        same = [name for name in known if name == full] or [n for n in known if n.agrees(full)]
        if len(same) != 1:
            if not any(name.agrees(full) for name in self._differing):
                self._created[full] = creation
            return False
        name, first = same[0], self._created[same[0]]
        is_same = first.creates_same(creation)
        if name in self._own:
            return not is_same
        if not is_same:
            del self._created[name]
            self._differing.add(full)
            places = f"{first.place} and {creation.place}"
            self._unread[full] = UnreadTable(str(full), places, "they declare it differently")
        elif len(full.parts) > len(name.parts):
            # the longer name says more
            del self._created[name]
            text = created_text(first.text, full.parts[: -len(name.parts)])
            self._created[full] = first._replace(text=text)
        return False


def _created_table(create: str, place: str) -> str:
    """Return the table that a CREATE TABLE creates; LitmusError or SqlError if it is not
    understood.
    """
    name = read_ddl(create, place, source=True).name
    workload_tables(Node({"ddl": create}, "", Source(place)), ())
    return name
