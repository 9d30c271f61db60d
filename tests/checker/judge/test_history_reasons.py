"""Every reason of every pair of an abstract history's frame is true of its operations and version
orders.
"""

import re
from collections import Counter
from itertools import chain, count, islice
from math import inf

import pytest
from case_checks import check_cases
from hypothesis import given

from isolitmus.checker.judge.completion import completions
from isolitmus.checker.strategies import histories
from isolitmus.model.operations import ItemRead, PredicateRead, Write
from isolitmus.specs import litmus
from isolitmus.specs.files.catalogue import history_names


class Told:
    """A completion, as its sentences may be asked about it: versions are words."""

    def __init__(self, completion):
        history = completion.history
        self.completion, self.history = completion, history
        self.transactions = {t.name: t for t in history.transactions}
        self.operations = {t.name: t.operations for t in history.transactions}
        self.bits = {(p, str(v)): bit for (p, v), bit in history.matches().items()}

    def order(self, version, completion=None):
        name = version.rstrip("0123456789")
        orders = (completion or self.completion).orders
        return [f"{name}{n}" for n in (0, *orders.get(name, ()))]

    def read(self, t, version):
        reads = (op for op in self.operations[t] if isinstance(op, ItemRead))
        return any(str(op.version) == version for op in reads)

    def saw(self, t, predicate, version):
        """The versions of this one's object that the reader had by a predicate."""
        name = version.rstrip("0123456789")
        for op in self.operations[t]:
            if isinstance(op, PredicateRead) and op.predicate == predicate:
                named = [str(m.version) for m in op.seen if m.version.object == name]
                yield named[0] if named else f"{name}0"

    def when(self):
        """The places in time of operations, as their nodes are called, and of transactions, where
        they ended.
        """
        counts, called = Counter(), {}
        for t, operations in self.operations.items():
            for k, op in enumerate(operations, 1):
                seen = list(map(str, versions(op)))
                if isinstance(op, PredicateRead):
                    named = {one.rpartition(" ")[2].rstrip("0123456789") for one in seen}
                    ranged = {v.rstrip("0123456789") for p, v in self.bits if p == op.predicate}
                    seen += [f"{op.predicate}: {x}0" for x in ranged - named]
                for version in seen:
                    name = f"{t} {'w' if isinstance(op, Write) else 'r'}({version})"
                    counts[name] += 1
                    said = name if counts[name] == 1 else f"{name} ({counts[name]})"
                    called.setdefault(f"{t}[{k}]", []).append(said)
        clock = count()
        when = dict.fromkeys([*self.operations, *chain.from_iterable(called.values())], inf)
        for word in self.history.to_table().get("schedule", "").split():
            t = word.partition(".")[0].partition("[")[0]
            alone = [f"{t}[{k}]" for k in range(1, len(self.operations[t]) + 1)]
            for step in alone if word == t else [word]:
                when |= dict.fromkeys(called.get(step, ()), next(clock))
            if word in (t, f"{t}.end"):
                when[t] = next(clock)
        return when

    def wrote(self, t, version):
        return version.partition(":")[0].endswith(t[1:]) and (
            t == "T0" or version in self.writes(t)
        )

    def writes(self, t):
        return [str(version) for version in self.transactions[t].written]

    def follows(self, version, other, completion=None):
        order = self.order(version, completion)
        return order.index(other) == order.index(version) + 1

    def always(self, version, other):
        """Whether it follows in all of some completions in which the same ones committed."""
        some = islice(completions(self.history), 20)
        alike = [one for one in some if one.committed == self.completion.committed]
        return all(self.follows(version, other, one) for one in alike)

    def changes(self, predicate, version, before):
        """Whether one matches and the other does not, or nobody says."""
        bits = [
            self.bits.get((predicate, v), False if v.endswith("0") else None)
            for v in (before, version)
        ]
        return None in bits or bits[0] != bits[1]

    def turned(self, predicate, version):
        order = self.order(version)
        return self.changes(predicate, version, order[order.index(version) - 1])


def seen(told, reader, predicate, version):
    """Where a version stands in the order of its object, and where those stand that a read had."""
    order = told.order(version)
    had = [order.index(s) for s in told.saw(reader, predicate, version) if s in order]
    return order.index(version), had


def after_change(told, reader, predicate, version, writer):
    place, had = seen(told, reader, predicate, version)
    late = any(place <= one for one in had)
    return late and told.wrote(writer, version) and told.turned(predicate, version)


def without_change(told, reader, predicate, version, writer):
    place, had = seen(told, reader, predicate, version)
    early = any(place > one for one in had)
    return early and told.wrote(writer, version) and told.turned(predicate, version)


def read_with(told, reader, predicate, version, writer):
    return version in told.saw(reader, predicate, version) and told.wrote(writer, version)


def read_version(told, reader, version, writer):
    return told.read(reader, version) and told.wrote(writer, version)


def next_version(told, *, writer, version, before, other, doubt):
    wrote = told.wrote(writer, version) and told.wrote(other, before)
    return wrote and told.follows(before, version) and (doubt or told.always(before, version))


def version_overwritten(told, *, reader, version, writer, following, doubt):
    wrote = told.read(reader, version) and told.wrote(writer, following)
    if ":" in version:
        name = version.partition(":")[0]
        own = [one for one in told.writes(writer) if one.partition(":")[0] == name]
        return wrote and own.index(following) == own.index(version) + 1 and not doubt
    return wrote and told.follows(version, following) and (doubt or told.always(version, following))


def read_halfway(told, reader, version, writer):
    wrote = told.writes(writer)
    return told.read(reader, version) and ":" in version and version.partition(":")[0] in wrote


def ended_before(told, first, second):
    moments = [f"T{number}.{moment}" for number, moment in told.history.schedule]
    return moments.index(f"{first}.end") < moments.index(f"{second}.start")


def initial(told, init, node):
    return init == "T0" and node in told.operations


def node_in(told, read, reader):
    return ": " in read or any(
        read in (f"r({v})", f"w({v})") for op in told.operations[reader] for v in versions(op)
    )


def program_order(told, read, later, reader):
    return node_in(told, read, reader) and node_in(told, later, reader)


def item_changes(told, writer, version, predicate):
    return told.wrote(writer, version) and any(predicate == known for known, _ in told.bits)


def session(told, first, second):
    pair = [told.transactions[t].number for t in (first, second)]
    return any([t for t in s if t in pair] == pair for s in told.history.sessions)


def versions(op):
    """A read as its node is called: of an item, or of one object by a predicate."""
    if isinstance(op, ItemRead | Write):
        yield op.version
    if isinstance(op, PredicateRead):
        yield from (f"{op.predicate}: {m.version}" for m in op.seen)


def same_object(told, first, second, name):
    when = told.when()
    on = [re.search(r"([a-z]+)\d+(?::\d+)?\)", one)[1] for one in (first, second)]
    return first != second and first in when and second in when and on == [name, name]


def came_before(told, first, second):
    when = told.when()
    return when[first.removeprefix("the end of ")] < when[second.removeprefix("the end of ")]


LAWS = {
    "session": session,
    "initial": initial,
    "next version": next_version,
    "read version": read_version,
    "read halfway": read_halfway,
    "ended before": ended_before,
    "version overwritten": version_overwritten,
    "read with": read_with,
    "saw with": read_with,
    "after change": after_change,
    "without change": without_change,
    "node in": node_in,
    "program order": program_order,
    "item wrote": lambda told, writer, version: told.wrote(writer, version),
    "item changes": item_changes,
    "same object": same_object,
    "came before": came_before,
}
"""By kind of reason, what makes one true of its nouns, which are words here."""


def untrue(history, kinds=None):
    """Yield the reasons that are not true of a history; ``kinds``, a set, collects the kinds that
    were looked at.
    """
    kinds = set() if kinds is None else kinds
    for completion in islice(completions(history), 20):
        told = Told(completion)
        frames = (completion.frame(reads=True), completion.frame(operations=True))
        for reason in chain.from_iterable(frame.reasons.values() for frame in frames):
            kinds.add(reason.kind)
            nouns = {k: n if isinstance(n, bool) else str(n) for k, n in reason.nouns.items()}
            words = [noun for noun in nouns.values() if isinstance(noun, str)]
            if not LAWS[reason.kind](told, **nouns) or not all(w in str(reason) for w in words):
                yield reason


@pytest.mark.slow
def test_every_reason_of_a_history_that_ships_is_true():
    """And each kind of reason is in one."""
    kinds = set()

    def look(name):
        assert not list(untrue(litmus(name).history, kinds))

    assert len(check_cases(look, history_names())) >= 50
    assert kinds == LAWS.keys()


@pytest.mark.slow
@given(histories(predicates=True, observed=True))
def test_every_reason_of_a_drawn_history_is_true(history):
    assert not list(untrue(history))
