"""A key–value store as a format: transactions of several statements, reads of a snapshot, writes on
keys.

``GET k`` reads a key, ``PUT k v`` writes it, ``PUT k a + 1`` writes what was read of ``a`` and one
more, ``DEL k`` deletes it. A transaction reads the snapshot of its start and its own writes; which
writers a commit refuses is the business of its protocol (first committer wins: ``empty unseen &
ww``). The table has the columns ``key STRING, value INT``; a row is called after its key.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations

from formats.drawn_store import store_tests

from isolitmus.checker.execution.frame import RELATIONS, SETS, add_row_reads, dependencies
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import SqlError
from isolitmus.model.execution import Effect, RowRead, RowWrite
from isolitmus.model.format import Format, RandomTests
from isolitmus.model.sql.data_file import File, TableRow
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.vocabulary import Term, terms_of
from isolitmus.specs.registries import FORMATS

NOTHING = Effect()
WRITES_READ = Term("writes-read", "store", "one wrote what the other read", "writes a key read by")
DELETES = Term("Deletes", "store", "they delete", "", "{} deletes a key", "{} deletes no key")


@dataclass(frozen=True)
class Get:
    sql: str
    target: str
    key: str


@dataclass(frozen=True)
class Put:
    sql: str
    target: str
    key: str
    value: int | None = None
    of: str | None = None
    """The key whose value it adds to, None where it adds to nothing; no value and no such key: a
    DEL.
    """


@dataclass(frozen=True)
class Keys:
    """What others may know of a commit: the keys that it read and wrote, and whether it deleted
    one.
    """

    table: str
    read: frozenset
    written: frozenset
    deletes: bool
    empty: bool = False


def statement(text, tables, place):
    ((table, _),) = tables.items()
    match text.split():
        case ["GET", key]:
            return Get(text, table, key)
        case ["DEL", key]:
            return Put(text, table, key)
        case ["PUT", key, value] if value.lstrip("-").isdigit():
            return Put(text, table, key, int(value))
        case ["PUT", key, of, "+", value] if value.isdigit():
            return Put(text, table, key, int(value), of)
    raise SqlError(f"{place}: '{text}' is not one of GET k, PUT k v, PUT k a + v, DEL k")


def rows(database, table):
    return {row.id: row for file in database[table].files for row in file.rows}


def step(one, database, done):
    """What a transaction has done after one more statement."""
    table = one.target
    before = {w.id: w.after for w in done.writes}
    seen = rows(database, table)

    def current(key):
        if key in before:
            return before[key]
        return seen[key].values if key in seen else None

    read = one.key if isinstance(one, Get) else one.of
    if read is not None and read not in before:  # its own writes are no reads of others'
        matched = (seen[read],) if read in seen else ()
        looked = RowRead(table, read, lambda row: row[0] == read, matched)
        done = replace(done, reads=(*done.reads, looked))
    if isinstance(one, Get):
        found = () if current(read) is None else (current(read),)
        more = replace(done, rows=(*(done.rows or ()), *found))
        return checked(done, table) if done.footprint else more
    base = None if one.of is None else current(one.of)
    after = None if one.value is None else (one.key, one.value + (base[1] if base else 0))
    old = seen[one.key].values if one.key in seen else None
    others = tuple(w for w in done.writes if w.id != one.key)
    writes = (*others, RowWrite(table, one.key, old, after))
    return checked(replace(done, writes=writes, rows=None, operation="PUT"), table)


def checked(done, table):
    """The same with the footprint of what it has done."""
    keys = frozenset(r.words for r in done.reads), frozenset(w.id for w in done.writes)
    deletes = any(w.after is None for w in done.writes)
    return replace(done, footprint=Keys(table, *keys, deletes))


def effect(transaction, database, _writer, _tables):
    done = NOTHING
    for one in statements_of(transaction):
        done = step(one, database, done)
    return done


def after(database, event):
    """Each key is a file of its own."""
    if event.effect.footprint is None:
        return database
    table = event.effect.footprint.table
    kept = rows(database, table)
    for write in event.effect.writes:
        kept.pop(write.id, None)
        if write.after is not None:
            kept[write.id] = TableRow(write.id, event.name, write.after)
    files = tuple(File.of(key, (), (kept[key],)) for key in sorted(kept))
    return {**database, table: TableState(files)}


def frame(events, *, reasons=True, reads=False):
    """What any log has, and two terms of the store's own."""
    builder = dependencies(events, [WRITES_READ], [DELETES], reasons=reasons)
    if reads:
        add_row_reads(events, builder)
    writers = [(i, e.name, e.effect.footprint) for i, e in enumerate(events) if e.effect.footprint]
    for i, _, keys in writers:
        if keys.deletes:
            builder.put("Deletes", i)
    for (i, a, wrote), (j, b, looked) in permutations(writers, 2):
        for key in sorted(wrote.written & looked.read):
            builder.add("writes-read", i, j, "{a} wrote {key}, which {b} read", a=a, key=key, b=b)
    return builder.build()


class Driver:
    def __init__(self, litmus, _inits, _choices):
        self.litmus, self.ran = litmus, Counter()

    def take(self, step, now): ...
    def begun(self, name, done, step): ...
    def ended(self, name): ...

    def effect(self, name, states, version, so_far=None):
        one = statements_of(self.litmus.transactions[name])[self.ran[name]]
        self.ran[name] += 1
        return step(one, states[version], so_far or NOTHING)


class Dictionary:
    """The independent executor of serial orders: a dictionary and the texts."""

    def __init__(self, litmus):
        self.litmus = litmus

    def after(self, order):
        ((table, _),) = self.litmus.tables.items()
        kept = {}
        texts = [s.sql for s in self.litmus.init]
        for name in order:
            texts += self.litmus.transactions[name].sql.split("; ")
        for text in texts:
            verb, key, *rest = text.split()
            if verb == "DEL":
                kept.pop(key, None)
            elif verb == "PUT":
                kept[key] = int(rest[-1]) + (kept.get(rest[0], 0) if len(rest) > 1 else 0)
        return {table: tuple(sorted(kept.items()))}


STORE = FORMATS.offer(
    Format(
        name="store",
        title="a key–value store",
        log="store",
        terms=terms_of(*RELATIONS, *SETS, WRITES_READ, DELETES),
        statement=statement,
        empty=lambda _schema: TableState(),
        effect=effect,
        after=after,
        frame=frame,
        drive=Driver,
        alone=lambda litmus, name, database, _inits: effect(
            litmus.transactions[name], database, name, litmus.tables
        ),
        independent=Dictionary,
        random=(RandomTests("sequences", "sequences on two keys", store_tests),),
    )
)
