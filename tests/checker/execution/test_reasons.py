"""Every reason of every pair of a frame is true of the tables of the run, and its words have its
nouns.

Nothing here asks where a frame had its reasons from. A row is looked for in the files that the
table has at the version in question; who put it in, changed it or took it out, in the two versions
around a commit. A reason of no known kind is a failure, too.
"""

import pytest
from case_checks import check_cases
from hypothesis import given, reject
from hypothesis import strategies as st

from isolitmus.checker.delta.delta_rs_read_set import READ_SETS
from isolitmus.checker.delta.row_overlaps import add_unseen_deletions
from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies import litmus_tests
from isolitmus.checker.universes.tables import candidate
from isolitmus.model.delta.header import Header
from isolitmus.model.litmus import Litmus
from isolitmus.model.reason import Item
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.values import show_row
from isolitmus.specs import litmus, protocol, scope, spec
from isolitmus.specs.files.catalogue import litmus_names as shipped
from isolitmus.specs.files.spec_catalogue import protocols


class Tables:
    """What a run shows: the rows, by their identities, of every table at every version."""

    def __init__(self, test, execution, *, checked):
        took_effect = [event for event in execution.events if not event.aborted]
        self.events = {event.name: event for event in add_unseen_deletions(took_effect)}
        self.states, self.schemas, self.checked = execution.states, test.tables, checked
        removed = (e.effect.footprint.removes for e in self.events.values() if e.effect.footprint)
        self.unmade = frozenset().union(*removed) if test.raw else frozenset()
        """What raw transactions say to remove, though it may not be there."""

    def rows(self, table, version):
        state = self.states[version].get(table)
        return {r.id: r for f in state.files for r in f.rows} if state is not None else {}

    def around(self, name, table):
        """The rows before and after a commit."""
        version = self.events[name].version
        return self.rows(table, version - 1), self.rows(table, version)

    def last(self, table, id_, version):
        """The row at a version, or when it was last there."""
        earlier = (self.rows(table, k) for k in range(version, -1, -1))
        return next(rows[id_] for rows in earlier if id_ in rows)

    def reads(self, name, predicate, table):
        """The reads of a transaction that a reason means."""
        reads = self.events[name].effect.reads
        return [r for r in reads if r.words == predicate and r.table == table]

    def read_row(self, reader, item):
        """Whether a transaction used an item as it was in the version that it read, and whose that
        was.
        """
        event = self.events[reader]
        for read in event.effect.reads:
            there = self.rows(read.table, event.seen_by(read)).get(item.id)
            if there in read.matched and read.table == item.table and there.values == item.values:
                return there.writer
        return None

    def header(self, table, version):
        state = self.states[version].get(table)
        return None if state is None else state.header


class Life:
    """One row over all versions, as one read has it, and what a reason says that it once was."""

    def __init__(self, tables, read, item):
        self.tables, self.read, self.id, self.values = tables, read, item.id, item.values

    def at(self, version):
        row = self.tables.rows(self.read.table, version).get(self.id)
        return None if row is None else row.values

    def sees(self, version, values=None):
        now = self.at(version)
        return now is not None and self.read.matches(now) and values in (None, now)

    def by(self, name):
        version = self.tables.events[name].version
        return version is not None and version - 1, version

    def put_in(self, name, values=None):
        before, after = self.by(name)
        return after and not self.sees(before) and self.sees(after, values)

    def took_out(self, name, values=None):
        before, after = self.by(name)
        return after and self.sees(before, values) and not self.sees(after)

    def wrote(self, name, values):
        _, after = self.by(name)
        if not after or not self.sees(after, values):
            return False
        return self.tables.rows(self.read.table, after)[self.id].writer == name

    def had(self, version):
        """The read had the row, as the reason shows it."""
        return self.sees(version, self.values) and self.id in {r.id for r in self.read.matched}

    def ordered(self, version, *names):
        versions = [version, *(self.tables.events[name].version for name in names)]
        return versions == sorted(set(versions))

    def same(self, version):
        """The row is there as shown, but for the columns that came since it was written."""
        now = self.at(version)
        if now is None:
            return False
        one, other = sorted((now, self.values), key=len)
        return other[: len(one)] == one and set(other[len(one) :]) <= {None}


def of_a_row(law):
    """A law about one row and one read of it."""

    def holds(t, reader, predicate, item, version=None, **who):
        lives = [Life(t, read, item) for read in t.reads(reader, predicate, item.table)]
        seen = [(life, t.events[reader].seen_by(life.read)) for life in lives]
        return any(law(life, at, **who) for life, at in seen if version in (None, at))

    return holds


def saw(t, reader, version):
    return t.events[reader].read_version == version


def missed(t, reader, version, writer, became):
    return t.events[reader].read_version == version < t.events[writer].version == became


def order_of_the_log(t, first, version, second, later):
    return t.events[first].version == version < t.events[second].version == later


def one_session(t, session, first, second):
    names = list(t.events)
    both = [t.events[name].session for name in (first, second)]
    return both == [session] * 2 and names.index(first) < names.index(second)


def initial(t, init, node):
    return init == "init" and node in t.events


@of_a_row
def came(life, at, writer):
    put_in = life.put_in(writer, life.values)
    return not life.sees(at) and put_in and life.ordered(at, writer)


@of_a_row
def came_and_went(life, at, writer, last, came):
    there = life.put_in(writer, life.values) if came else life.wrote(writer, life.values)
    return not life.sees(at) and there and life.took_out(last) and life.ordered(at, writer, last)


@of_a_row
def went(life, at, writer):
    return life.had(at) and life.took_out(writer, life.values) and life.ordered(at, writer)


@of_a_row
def changed_and_went(life, at, *, writer, last, then, was_gone):
    before, _ = life.by(writer)
    changed = life.wrote(writer, then) and (life.at(before) is None) == was_gone
    return life.had(at) and changed and life.took_out(last, then) and life.ordered(at, writer, last)


@of_a_row
def went_and_came(life, at, writer, last, now):
    back = life.took_out(writer) and life.put_in(last, now)
    return life.had(at) and back and life.ordered(at, writer, last)


@of_a_row
def read_after(life, at, writer, came):
    done = life.put_in(writer, life.values) if came else life.took_out(writer, life.values)
    return done and life.tables.events[writer].version <= at


def read_item(t, reader, item, writer):
    """A version of one writer, read."""
    if item.named:
        version = t.events[writer].version
        return (
            described(t, item.id, version) == item.values
            and version <= t.events[reader].read_version
        )
    return t.read_row(reader, item) == writer


def overwritten(t, reader, item, writer, after):
    if item.named:
        was = described(t, item.id, t.events[reader].read_version)
        return was == item.values and described(t, item.id, t.events[writer].version) == after
    if t.read_row(reader, item) is None:
        return False
    before, now = t.around(writer, item.table)
    if after is None:
        was = before.get(item.id)
        return item.id not in now and (was is None or was.values == item.values)
    return item.id in now and now[item.id].values == after


def read_gone(t, reader, item, writer):
    """A row that a commit had taken out before the reader's snapshot."""
    at, (before, after) = t.events[reader].read_version, t.around(writer, item.table)
    there = item.id in before and item.id not in after and t.events[writer].version <= at
    return there and item.id not in t.rows(item.table, at) and before[item.id].values == item.values


def brought_back(t, reader, item, writer, after):
    """A row that was not in the reader's snapshot, and that a later commit put in."""
    at, (before, now) = t.events[reader].read_version, t.around(writer, item.table)
    gone = item.id not in t.rows(item.table, at) and item.id not in before
    return gone and t.events[writer].version > at and now[item.id].values == item.values == after


def overwrote(t, *, writer, item, before, deleted, was_deleted):
    """Where commits were not checked, several may delete one row, as it last was: each had seen
    it.
    """
    first, second = t.events[before].version, t.events[writer].version
    if item.named:
        return described(t, item.id, first) == item.values and second > first
    was = t.last(item.table, item.id, first)
    mid, after = t.rows(item.table, first), t.rows(item.table, second)
    mine = item.id not in mid if was_deleted else was.writer == before
    return mine and was.values == item.values and deleted == (item.id not in after)


def described(t, name, version):
    """An item that is no row as values, from what the log says of the table; () if there is no
    table yet.
    """
    table = name.rpartition(" ")[2]
    header = t.header(table, version) or (
        t.states[version].get(table) and Header.of(t.schemas[table])
    )
    if not header:
        return ()
    m = header.metadata
    if "identity" in name:
        ids = [c for c in m.columns if c.identity is not None]
        return tuple(next_of(c, m.reached) for c in ids)
    checks = sorted(
        (k, v) for k, v in m.configuration.items() if k.startswith("delta.constraints.")
    )
    columns = (f"{c.name} {c.type}" for c in m.columns if c.name)
    return (*columns, *(f"CHECK ({v})" for _, v in checks))


def next_of(column, reached):
    last = reached.get(column.name.lower())
    start, step = column.identity.start, column.identity.step
    return f"next {column.name} {start if last is None else last + step}"


def had_item(t, *, reader, predicate, version, item, writer):
    at_start = writer == "init" or t.events[writer].version <= version
    return (
        reader in t.events
        and predicate == item.id
        and at_start
        and described(t, item.id, version) == item.values
    )


def new_files(t, x, table):
    """The files that a version has and the one before has not, or not with the same rows. Where
    commits were not checked, or row by row on files that others had changed since, what a commit
    said to add may not have come.
    """
    event = t.events[x]
    read, before, now = (
        {(f.path, f.dead, len(f.rows)): f for f in getattr(t.states[k].get(table), "files", ())}
        for k in (event.read_version, event.version - 1, event.version)
    )
    removes = event.effect.footprint.removes
    as_read = {key for key, f in read.items() if f.path in removes} <= before.keys()
    there = [f for key, f in now.items() if key not in before]
    return there if t.checked and as_read else [*there, *event.effect.adds]


def removed(t, winner, file, table):
    """Whether a commit removes a file of a table that was there, or that raw transactions talk
    of.
    """
    event = t.events[winner]
    footprint = event.effect.footprint
    there = {f.path for f in t.states[event.read_version][table].files} | t.unmade
    return file in footprint.removes & there and footprint.schema.name == table


def removed_read(t, *, winner, loser, file, table, whole):
    reads = t.events[loser].effect.footprint
    return removed(t, winner, file, table) and (reads.whole_table if whole else file in reads.files)


def removed_removed(t, winner, loser, file, table):
    return removed(t, winner, file, table) and file in t.events[loser].effect.footprint.removes


def added(t, winner, table, loser):
    read = t.events[loser].effect.footprint
    return bool(new_files(t, winner, table)) and not read.schema.partitioned_by and not read.blind


def added_where(t, *, winner, table, folder, predicate, loser):
    read = t.events[loser].effect.footprint
    there = [f for f in new_files(t, winner, table) if read.schema.folder(f.partition) == folder]
    rows = [(read.schema.spread(f.partition),) for f in there]
    met = any(all(evaluate(p, row) is True for p in predicate) for row in rows)
    return met and predicate in read.predicates


def same_domain(t, winner, loser, domain):
    return all(domain in t.events[n].effect.footprint.actions.domains for n in (winner, loser))


def looked_up(t, winner, app, loser):
    wrote, read = (t.events[n].effect.footprint for n in (winner, loser))
    return app in wrote.actions.apps and app in read.looked_up


def clash(t, winner, clash, loser):
    """What a commit made of the header is other than what the loser, or whoever was before,
    knew.
    """
    event = t.events[winner]
    table = event.effect.footprint.schema.name
    now = t.header(table, event.version)
    known = [
        t.header(table, k) or Header.of(t.schemas[table])
        for k in (t.events[loser].read_version, event.version - 1)
    ]
    later = event.version > t.events[loser].read_version
    return later and any(differs(k, now, clash) for k in known)


def differs(known, now, clash):
    a, b = known.metadata, now.metadata
    match clash.kind:
        case "took feature":
            return clash["feature"] in known.features - now.features
        case "added feature":
            return clash["feature"] in now.features - known.features
        case "took property":
            return clash["key"] in a.configuration.keys() - b.configuration.keys()
        case "set property":
            key = clash["key"]
            return key in b.configuration and a.configuration.get(key) != b.configuration[key]
        case "changed metadata":
            return getattr(a, clash["what"]) != getattr(b, clash["what"])
    return clash.kind == "wrote metadata"


@of_a_row
def had_row(life, at, writer):
    if writer == "init":
        return life.same(at) and life.same(0)
    return life.same(at) and life.tables.rows(life.read.table, at)[life.id].writer == writer


@of_a_row
def row_was_gone(life, at, writer):
    """As the commit found the table, or had seen it: two that were not checked may take out one
    row.
    """
    before, after = life.by(writer)
    had = life.same(before) or life.same(life.tables.events[writer].read_version)
    return after <= at and had and life.at(after) is None and life.at(at) is None


@of_a_row
def row_never_came(life, at, writer):
    return writer == "init" and life.at(0) is None and life.at(at) is None


def reads(t, reader, predicate):
    return any(r.words == predicate for r in t.events[reader].effect.reads) or predicate.startswith(
        ("the definition of ", "the identity values of ")
    )


def rival(t, *, writer, item, before, after, last, first):
    """What a commit did, or what was there at the start; who deletes what is gone knew it to be
    there.
    """
    version = 0 if first else t.events[writer].version
    if first != (writer == "init"):
        return False
    if item.named:
        was = () if first else described(t, item.id, version - 1)
        return (was, described(t, item.id, version)) == (before or (), after or ())
    was, now = (t.rows(item.table, k).get(item.id) for k in (max(version - 1, 0), version))
    if (None if now is None else now.values) != after:
        return False
    if first:
        return before is None
    if before is None and after is None:
        known = item.id in t.rows(item.table, t.events[writer].read_version)
        return was is None and known and t.last(item.table, item.id, version).values == last
    return (None if was is None else was.values) == before


LAWS = {
    "so": {"one session": one_session, "initial": initial},
    "vis": {"saw": saw},
    "log": {"log order": order_of_the_log},
    "unseen": {"missed": missed},
    "ww": {"overwrote": overwrote},
    "wr": {
        "read item": read_item,
        "read gone": read_gone,
        "read after": read_after,
        "had item": had_item,
        "had row": had_row,
        "row never came": row_never_came,
    },
    "rw": {
        "overwritten": overwritten,
        "brought back": brought_back,
        "came": came,
        "came and went": came_and_went,
        "went": went,
        "changed and went": changed_and_went,
        "went and came": went_and_came,
    },
    "rf": {
        "had item": had_item,
        "had row": had_row,
        "row was gone": row_was_gone,
        "row never came": row_never_came,
    },
    "in": {"in": reads},
    "rival": {"rival": rival},
    "adds-meets-reads": {"added": added, "added where": added_where},
    "removes-meets-reads": {"removed, read": removed_read},
    "removes-meets-removes": {"removed, removed": removed_removed},
    "same-domain": {"same domain": same_domain},
    "writes-read-app": {"looked up": looked_up},
    "protocol-clashes": {"clash": clash},
    "metadata-clashes": {"clash": clash},
}
"""By relation, the kinds of its reasons, each with what makes one true of its nouns."""


OF_ONE = ("vis", "rf", "in", "rival")
"""The relations whose reasons need not name both ends: one is a read, or goes without saying."""


def untrue(test, under=None, kinds=None):
    """Yield the reasons of a test's frame that are not true of its tables, or of no known form;
    executed under a protocol, or with every commit as it stands. ``kinds``, a set, collects the
    kinds that were looked at.
    """
    kinds = set() if kinds is None else kinds
    execution = execute(test, under)
    tables = Tables(test, execution, checked=under is not None)
    seen = execution_frame(execution, reads=True)
    for (relation, *pair), reason in seen.reasons.items():
        if relation in READ_SETS:
            continue
        kinds.add((relation, reason.kind))
        law = LAWS[relation].get(reason.kind)
        meant = relation in OF_ONE or {seen.nodes[k] for k in pair} <= {
            noun for noun in reason.nouns.values() if isinstance(noun, str)
        }
        if law is None or not law(tables, **reason.nouns) or not meant or not all(told(reason)):
            yield relation, reason


def told(reason):
    """Whether the words of a reason have each of its nouns."""
    words = str(reason)
    for name, noun in reason.nouns.items():
        match name, noun:
            case _, bool() | None:
                continue
            case "last", tuple():  # as the row last was, for who takes out what is gone
                yield {reason["before"], reason["after"]} != {None} or show_row(noun) in words
            case "file", _:
                folder, _, file = noun.rpartition("/")
                writer = file.rpartition("-")[0]
                yield folder in words and ("there before" if writer[:1] == "+" else writer) in words
            case "predicate", tuple():
                yield all(str(part) in words for part in noun)
            case _, Item(values=values):
                yield not values or show_row(values) in words
            case _, tuple():
                yield show_row(noun) in words
            case "writer", _ if reason.kind == "had item" and not reason["item"].values:
                continue
            case _:
                yield str(noun) in words


@pytest.mark.slow
def test_every_reason_in_the_catalogue_is_true_of_the_tables():
    """And each other kind of reason is in it."""
    kinds = set()

    def look(name, under):
        assert not list(untrue(litmus(name), under and protocol(under), kinds))

    tests = [test for test in map(litmus, shipped()) if isinstance(test, Litmus)]
    check_cases(
        look,
        [(t.name, u) for t in tests for u in (None, *t.expect) if u is None or u in protocols()],
    )
    every = {(relation, kind) for relation, laws in LAWS.items() for kind in laws}
    assert every == kinds


@pytest.mark.slow
@given(litmus_tests(most=4))
def test_every_reason_of_a_drawn_test_is_true_of_its_tables(test):
    assert not list(untrue(test))


@st.composite
def candidates(draw):
    """Writers of a scope that ships, each on a version of the table that it draws."""
    inside = scope(draw(st.sampled_from(["table", "two-partitions", *CLOSE])))
    n = draw(st.integers(3, 4))
    most = len(inside.statements) - 1
    choices = [(draw(st.integers(0, most)), draw(st.integers(0, k))) for k in range(n)]
    found = candidate(inside, draw(st.sampled_from(inside.inits)), choices, ())
    return found or reject()


CLOSE = ("rows", "lattice", "writers-partitioned", "writers-unpartitioned")
"""The scopes whose statements write the rows that others look for."""


@pytest.mark.slow
@given(candidates())
def test_every_reason_in_a_scope_that_ships_is_true_of_the_tables(found):
    assert not list(untrue(found.litmus("drawn", "", "")))


SEPARATED = [
    ("delta-write-serializable", "write-serializable"),
    ("delta-write-serializable", "log-serializable"),
    ("snapshot-isolation", "write-serializable"),
]


def look_at_separation(where, a, b):
    """Check the reasons of what tells two specs apart in a scope; return whether anything does."""
    answer = separate(spec(a), spec(b), scope(where), transactions=[2, 3])
    if answer.litmus is None:
        return False
    assert not list(untrue(answer.litmus))
    assert not list(untrue(answer.litmus, spec(a)) if a in protocols() else ())
    said = set(execution_frame(execute(answer.litmus)).reasons.values())
    assert {edge.reason for edge in answer.violation.cycle} <= said
    return True


@pytest.mark.slow
def test_what_is_said_of_what_separate_finds_is_true():
    cases = [(w, a, b) for w in ("table", "two-partitions", *CLOSE) for a, b in SEPARATED]
    found = check_cases(look_at_separation, cases)
    assert [case for case, there in zip(cases, found, strict=True) if not there] == [
        ("rows", "delta-write-serializable", "write-serializable")
    ]


@pytest.mark.slow
def test_a_row_that_came_and_went_unseen_was_not_seen():
    """The shipped search of issue 16 said of a row that came in version 1 that version 0 had it."""
    found = separate(
        spec("delta-write-serializable"), spec("write-serializable"), scope("writers-unpartitioned")
    )
    assert [edge.why for edge in found.violation.cycle][1] == (
        "merge read t ON part = 0 AND id >= 100 at version 0, without row (100, 0), which insert"
        " added and delete then removed"
    )
    assert not list(untrue(found.litmus))
