"""The laws of the relation algebra, and networkx as a second opinion on cycles."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.model.errors import FrameError
from isolitmus.model.relation import Relation, bits

N = 5
relations = st.tuples(*[st.integers(0, 2**N - 1)] * N).map(Relation)
subsets = st.integers(0, 2**N - 1)
everything = Relation((2**N - 1,) * N)
identity = Relation.identity(N)
nothing = Relation.empty(N)


def graph_of(relation):
    graph = nx.DiGraph(relation.pairs())
    graph.add_nodes_from(range(relation.size))
    return graph


@given(relations, relations, relations)
def test_composition_and_the_lattice(r, s, t):
    assert (r @ s) @ t == r @ (s @ t)
    assert r @ (s | t) == r @ s | r @ t
    assert (r | s) @ t == r @ t | s @ t
    assert r & (s | t) == (r & s) | (r & t)
    assert r | s == s | r
    assert r & s == s & r
    assert r - (s | t) == (r - s) & (r - t)
    assert (r - s) | (r & s) == r
    assert r @ identity == r == identity @ r
    assert r @ nothing == nothing == nothing @ r


@given(relations, relations)
def test_inverse(r, s):
    assert (r @ s).inverse() == s.inverse() @ r.inverse()
    assert (r | s).inverse() == r.inverse() | s.inverse()
    assert (r & s).inverse() == r.inverse() & s.inverse()
    assert r.inverse().inverse() == r
    assert r.plus().inverse() == r.inverse().plus()


@given(relations, relations)
def test_closures(r, s):
    assert r.plus().plus() == r.plus()
    assert r.plus() == r | r @ r.plus()
    assert r.plus() @ r.plus() | r.plus() == r.plus()
    assert r.reflexive() == r | identity
    assert r.reflexive().plus() == r.plus().reflexive()
    assert (r | s).plus() == (r.plus() | s.plus()).plus()
    assert r.plus().pairs() == sorted(nx.transitive_closure(graph_of(r)).edges)


@given(relations, relations, relations)
def test_the_modular_law(r, s, t):
    left = r @ s & t
    right = (r & t @ s.inverse()) @ s
    assert left - right == nothing


@given(subsets, subsets, relations)
def test_brackets(a, b, r):
    s, t = Relation.identity(N, a), Relation.identity(N, b)
    assert s @ t == Relation.identity(N, a & b)
    assert s | t == Relation.identity(N, a | b)
    assert (s @ r @ t).pairs() == [(i, j) for i, j in r.pairs() if a >> i & 1 and b >> j & 1]


@given(relations)
def test_acyclic_agrees_with_networkx_and_with_the_closure(r):
    assert r.acyclic() == nx.is_directed_acyclic_graph(graph_of(r))
    assert r.acyclic() == (not r.plus() & identity)


@given(relations)
def test_the_core_is_what_reaches_a_cycle(r):
    graph = graph_of(r)
    cyclic = {n for c in nx.strongly_connected_components(graph) for n in c if len(c) > 1}
    cyclic |= {n for n in graph if graph.has_edge(n, n)}
    assert set(bits(r.core())) == {
        n for n in graph if n in cyclic or nx.descendants(graph, n) & cyclic
    }


@given(relations)
def test_pairs_and_membership(r):
    assert Relation.of(N, r.pairs()) == r
    assert [(i, j) for i in range(N) for j in range(N) if (i, j) in r] == r.pairs()
    assert bool(r) == bool(r.pairs())
    assert everything - (everything - r) == r


def test_pairs_outside_and_sizes_that_differ_are_errors():
    with pytest.raises(FrameError, match=r"pair \(0, 2\) is outside a relation on 2 nodes"):
        Relation.of(2, [(0, 2)])
    with pytest.raises(FrameError, match="relations on 2 and 3 nodes do not compose"):
        Relation.empty(2) @ Relation.empty(3)
