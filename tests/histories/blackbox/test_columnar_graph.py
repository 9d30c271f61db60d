"""Cycles of graphs in columns, beside networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.histories.blackbox import columnar_graph
from isolitmus.histories.blackbox.columnar_graph import find_cycle

NODES = 9
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=20).map(
    lambda pairs: [(a, b) for a, b in pairs if a != b]
)


@pytest.mark.parametrize("starts", [columnar_graph.STARTS, 2])
def test_a_cycle_is_found_where_there_is_one(starts, monkeypatch):
    """With every node as a start the shortest; with few starts one, even if none is on a cycle."""
    monkeypatch.setattr(columnar_graph, "STARTS", starts)

    @given(EDGES)
    def agree(edges):
        source, target = (np.array([edge[k] for edge in edges], np.int64) for k in (0, 1))
        found = find_cycle(NODES, source, target)
        graph = nx.DiGraph(edges)
        assert (found is None) == nx.is_directed_acyclic_graph(graph)
        if found is not None:
            steps = [edges[edge] for edge in found]
            assert [head for _, head in steps] == [tail for tail, _ in [*steps[1:], steps[0]]]
            assert len({tail for tail, _ in steps}) == len(steps)
            if starts >= NODES:
                assert len(found) == min(map(len, nx.simple_cycles(graph)))

    agree()


def test_starts_that_are_on_no_cycle_do_not_hide_a_short_one():
    """Both ends of a long path are on cycles of three; the starts between are on none."""
    many = 1000
    path = [(k, k + 1) for k in range(many - 1)]
    edges = [*path, (2, 0), (many - 1, many - 3)]
    source, target = (np.array([edge[k] for edge in edges], np.int64) for k in (0, 1))
    found = find_cycle(many, source, target)
    assert found is not None
    assert len(found) == 3
