"""PL-CS and PL-2L against the graphs of Adya's thesis: the labelled one, and the one unfolded at
one transaction.
"""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import completions, frames
from isolitmus.checker.judge.graph_semantics import admits
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies import histories
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead, PredicateRead, Version, Write
from isolitmus.specs import level


@st.composite
def shuffled(draw):
    """Histories in which transactions read and write in any order, each its own writes once it has
    them.
    """
    history = draw(histories(most=3, predicates=draw(st.booleans()), observed=True))
    table = history.to_table()
    for t in history.transactions:
        operations = draw(st.permutations(t.operations))
        wrote, words = set(), []
        for operation in operations:
            if isinstance(operation, Write):
                wrote.add(operation.version.object)
            elif not wrote.isdisjoint(objects(operation, history)):
                continue
            words.append(str(operation))
        table[t.name] = " ".join(words)
    names = [t.name for t in history.transactions]
    if draw(st.booleans()):
        table["aborted"] = [draw(st.sampled_from(names))]
        table.pop("order", None)
    return History.from_table(table)


def objects(operation, history):
    if isinstance(operation, ItemRead):
        return {operation.version.object}
    return {version.object for _, version in history.matches()}


class Graph:
    """The dependencies of a completion, by the operations that make them: (kind, object, from, to),
    each end a transaction and the place of its operation.
    """

    def __init__(self, completion):
        self.history, self.committed = completion.history, completion.committed
        self.by = {t.number: t for t in self.history.transactions}
        self.orders = {x: (0, *order) for x, order in completion.orders.items()}
        self.bits = self.history.matches()
        self.edges = [*self.dependencies()]

    def wrote(self, t, x):
        done = self.by[t].operations
        return t, next(k for k, op in enumerate(done) if op == Write(Version(x, t)))

    def dependencies(self):
        for x, order in self.orders.items():
            for i, j in pairwise(order[1:]):
                yield "ww", x, self.wrote(i, x), self.wrote(j, x)
        for t in sorted(self.committed):
            for k, op in enumerate(self.by[t].operations):
                if isinstance(op, ItemRead):
                    yield from self.of_item((t, k), op.version)
                elif isinstance(op, PredicateRead):
                    seen = {match.version.object: match.version.writer for match in op.seen}
                    for x in {v.object for p, v in self.bits if p == op.predicate}:
                        yield from self.of_predicate((t, k), op.predicate, x, seen.get(x, 0))

    def of_item(self, reader, version):
        x, writer = version.object, version.writer
        order = self.orders.get(x, (0,))
        if writer not in (0, reader[0]):
            yield "wr", x, self.wrote(writer, x), reader
        if writer in order[:-1] and writer != reader[0]:
            following = order[order.index(writer) + 1]
            if following != reader[0]:
                yield "rw", x, reader, self.wrote(following, x)

    def of_predicate(self, reader, predicate, x, seen):
        order = self.orders.get(x, (0,))
        if seen not in order:
            yield "wr", None, self.wrote(seen, x), reader
            return
        for k, (i, j) in enumerate(pairwise(order)):
            old, new = (self.bit(predicate, Version(x, n)) for n in (i, j))
            if j != reader[0] and (old is None or new is None or old != new):
                if k < order.index(seen):
                    yield "wr", None, self.wrote(j, x), reader
                else:
                    yield "rw", None, reader, self.wrote(j, x)

    def bit(self, predicate, version):
        return self.bits.get((predicate, version), None if version.writer else False)

    def reads_aborted(self):
        return any(kind == "wr" and i not in self.committed for kind, _, (i, _), _ in self.edges)

    def circular(self):
        flow = nx.DiGraph([(i, j) for kind, _, (i, _), (j, _) in self.edges if kind != "rw"])
        return not nx.is_directed_acyclic_graph(flow)

    def cursor(self):
        """G-cursor: a cycle of an anti-dependency and one or more write dependencies, all on one
        object.
        """
        for x in self.orders:
            of = [(kind, i, j) for kind, key, (i, _), (j, _) in self.edges if key == x]
            writes = nx.DiGraph([(i, j) for kind, i, j in of if kind == "ww"])
            for kind, i, j in of:
                if kind == "rw" and {i, j} <= {*writes} and nx.has_path(writes, j, i):
                    return True
        return False

    def monotonic(self):
        """G-monotonic, of some transaction: in the graph unfolded there, a cycle with one
        anti-dependency, from a read.
        """
        return any(self.unfolded(t) for t in self.committed)

    def unfolded(self, t):
        def node(end):
            return end if end[0] == t else end[0]

        graph = nx.DiGraph()
        places = range(len(self.by[t].operations))
        graph.add_edges_from(((t, k), (t, k + 1)) for k in places[:-1])
        graph.add_edges_from((node(i), node(j)) for kind, _, i, j in self.edges if kind != "rw")
        missed = [(i, node(j)) for kind, _, i, j in self.edges if kind == "rw" and i[0] == t]
        return any(
            {read, other} <= {*graph} and nx.has_path(graph, other, read) for read, other in missed
        )


@pytest.mark.slow
@settings(deadline=None)
@given(shuffled())
def test_the_levels_are_those_of_the_graphs(history):
    for completion in completions(history):
        graph, frame = Graph(completion), completion.frame(operations=True)
        committed = not (graph.reads_aborted() or graph.circular())
        assert admits(frame, level("pl-cs")) == (committed and not graph.cursor())
        assert admits(frame, level("pl-2l")) == (committed and not graph.monotonic())


IMPLIED = [
    ("pl-2-99", "pl-cs"),
    ("pl-2-plus", "pl-cs"),
    ("pl-2-plus", "pl-2l"),
    ("pl-cs", "read-committed"),
    ("pl-2l", "read-committed"),
]


@settings(deadline=None)
@given(shuffled())
def test_where_they_stand_among_the_others(history):
    for completion in completions(history):
        frame = completion.frame(operations=True)
        for stronger, weaker in IMPLIED:
            assert admits(frame, level(weaker)) or not admits(frame, level(stronger))


@pytest.mark.parametrize(
    ("text", "holds", "fails"),
    [
        ("w1(x1) w1(y1) r2(x1) r2(y0)", ["pl-cs"], ["pl-2l"]),
        ("w1(x1) w1(y1) r2(y0) r2(x1)", ["pl-cs", "pl-2l"], ["pl-2-plus"]),
        ("w1(x1) w1(y1) w2(y2) r2(x0) [y1 < y2]", ["pl-cs"], ["pl-2l"]),
        ("w1(x1) w1(y1) r2(x0) w2(y2) [y1 < y2]", ["pl-cs", "pl-2l"], ["pl-2-plus"]),
        ("r1(x0) w1(x1) w2(x2) [x2 < x1]", ["pl-2l"], ["pl-cs"]),
        ("r1(P: x0* | x1*, x2) w1(x1) w2(x2) [x2 < x1]", ["pl-cs", "pl-2l"], ["pl-2-plus"]),
        ("w1(x1:1) r2(x1:1) w1(x1)", [], ["pl-cs", "pl-2l"]),
    ],
)
def test_what_they_admit_and_forbid(text, holds, fails):
    frame = next(frames(History.parse(text), operations=True))
    assert [name for name in (*holds, *fails) if admits(frame, level(name))] == holds


@pytest.mark.slow
def test_what_is_taken_for_granted_of_operations_is_said():
    said = separate(level("pl-cs"), level("pl-2l")).assumptions
    assert "each transaction writes its keys in their order" in said
    assert not any(
        "order of the keys" in one for one in separate(level("pl-3"), level("causal")).assumptions
    )
