"""Cliques: compared with brute force, in the order of evidence, lazily, within limits."""

from __future__ import annotations

from itertools import combinations, product

import networkx
import numpy as np
import pytest

from deniable.discovery.ngrams.cliques import PartiteGraph, find_cliques, iterate_cliques
from deniable.errors import InputError


def brute_force(graph: PartiteGraph) -> dict[tuple[int, ...], float]:
    """Return every choice of one node per partition with all edges, and its weakest edge."""
    weight = {}
    for (a, b), w in zip(graph.edges.tolist(), graph.weight.tolist(), strict=True):
        weight[a, b] = weight[b, a] = w
    ranges = [range(a, b) for a, b in zip(graph.offsets, graph.offsets[1:], strict=False)]
    found = {}
    for nodes in product(*ranges):
        edges = [weight.get(pair) for pair in combinations(nodes, 2)]
        if all(e is not None for e in edges):
            found[nodes] = min(e for e in edges if e is not None)
    return found


def random_graph(
    rng: np.random.Generator, sizes: list[int], density: float, *, ties: bool = False
) -> PartiteGraph:
    offset = np.concatenate([[0], np.cumsum(sizes)])
    edges = [
        np.argwhere(rng.random((sizes[i], sizes[j])) < density) + offset[[i, j]]
        for i, j in combinations(range(len(sizes)), 2)
    ]
    joined = np.concatenate(edges)
    rng.shuffle(joined)
    weight = rng.integers(0, 4, len(joined)).astype(float) if ties else rng.random(len(joined))
    return PartiteGraph(tuple(sizes), joined, weight)


@pytest.mark.slow
def test_all_cliques_in_order_of_their_weakest_edge() -> None:
    rng = np.random.default_rng(1)
    total = 0
    for _ in range(2000):
        sizes = rng.integers(0, 6, rng.integers(2, 6)).tolist()
        graph = random_graph(rng, sizes, rng.random(), ties=bool(rng.random() < 0.5))
        found, expected = find_cliques(graph), brute_force(graph)
        assert len(found.nodes) == len(expected)
        listed = {tuple(n): e for n, e in zip(found.nodes.tolist(), found.evidence, strict=True)}
        assert listed == expected
        assert np.all(np.diff(found.evidence) <= 0)
        assert found.truncation == "" and found.complete_above == -np.inf
        total += len(expected)
    assert total > 5000


@pytest.mark.slow
def test_the_same_cliques_as_networkx() -> None:
    """Graphs too large for brute force: a maximal clique with a node of every part is one of ours.

    No clique has two nodes of one part, so cliques of k nodes are maximal.
    """
    rng = np.random.default_rng(2)
    total = 0
    for _ in range(1000):
        sizes = rng.integers(1, 12, rng.integers(3, 7)).tolist()
        graph = random_graph(rng, sizes, rng.uniform(0.2, 0.75))
        drawn = networkx.Graph(graph.edges.tolist())
        theirs = {tuple(sorted(c)) for c in networkx.find_cliques(drawn) if len(c) == len(sizes)}
        ours = [tuple(row) for row in find_cliques(graph).nodes.tolist()]
        assert len(ours) == len(theirs) and set(ours) == theirs
        total += len(ours)
    assert total > 20_000


@pytest.mark.slow
def test_partitions_wider_than_a_word() -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, [70, 130, 64], 0.03)
    found = find_cliques(graph)
    assert {tuple(n) for n in found.nodes.tolist()} == set(brute_force(graph))
    assert len(found.nodes) > 0


def test_a_truncated_search_lists_the_strongest_cliques() -> None:
    rng = np.random.default_rng(3)
    graph = random_graph(rng, [9, 9, 9, 9], 0.8)
    everything = find_cliques(graph)
    few = find_cliques(graph, max_count=100)
    assert few.truncation and len(few.nodes) == 100 < len(everything.nodes)
    np.testing.assert_array_equal(few.evidence, everything.evidence[:100])
    sure = everything.nodes[everything.evidence > few.complete_above].tolist()
    assert all(nodes in few.nodes.tolist() for nodes in sure)
    late = find_cliques(graph, max_pieces=0)
    assert late.truncation
    assert np.all(everything.evidence[len(late.nodes) :] <= late.complete_above)


def test_interrupting_the_search_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is interrupted after every few nodes finds the same, in the same order."""
    graph = random_graph(np.random.default_rng(4), [8, 8, 8, 8], 0.6)
    whole = find_cliques(graph)
    monkeypatch.setattr("deniable.discovery.ngrams.cliques.STEPS", 3)
    monkeypatch.setattr("deniable.discovery.ngrams.cliques.CHUNK", 2)
    pieces = [nodes for nodes, _, _ in iterate_cliques(graph)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole.nodes)


def test_nodes_that_cannot_be_in_a_clique_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 chains a-b-c one is a triangle, so the graph fits where three nodes do."""
    a, b, c = np.arange(300).reshape(3, 100)
    edges = np.concatenate([np.stack([a, b], 1), np.stack([b, c], 1), np.stack([a, c], 1)])
    monkeypatch.setattr("deniable.discovery.ngrams.cliques.MAX_WORDS", 64 * 3 * 3)
    one = PartiteGraph((100, 100, 100), edges[:201], np.ones(201))
    assert find_cliques(one).nodes.tolist() == [[0, 100, 200]]
    with pytest.raises(InputError, match="300 nodes with an edge into every other partition"):
        find_cliques(PartiteGraph((100, 100, 100), edges, np.ones(300)))


def test_planted_cliques_among_random_edges() -> None:
    rng = np.random.default_rng(5)
    graph = random_graph(rng, [50] * 10, 0.3)
    planted = rng.integers(0, 50, (8, 10)) + 50 * np.arange(10)
    more = [list(pair) for row in planted.tolist() for pair in combinations(row, 2)]
    edges = np.unique(np.concatenate([np.sort(graph.edges, axis=1), more]), axis=0)
    found = find_cliques(PartiteGraph((50,) * 10, edges, rng.random(len(edges))))
    assert found.truncation == ""
    assert {tuple(r) for r in planted.tolist()} <= {tuple(r) for r in found.nodes.tolist()}


@pytest.mark.slow
def test_a_million_edges() -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, [500] * 10, 0.09)
    planted = rng.integers(0, 500, 10) + 500 * np.arange(10)
    more = np.array(list(combinations(planted.tolist(), 2)))
    edges = np.unique(np.concatenate([np.sort(graph.edges, axis=1), more]), axis=0)
    assert len(edges) > 1_000_000
    found = find_cliques(PartiteGraph((500,) * 10, edges, rng.random(len(edges))))
    assert planted.tolist() in found.nodes.tolist()


def test_a_graph_that_misleads_the_finder_of_google_rappor() -> None:
    """It reports false cliques; the only one is gghhii."""
    grams = ["aa", "dd", "gg", "bb", "ee", "hh", "cc", "ff", "ii"]
    pairs = ["aa bb", "bb cc", "dd ee", "ee ff", "gg hh", "hh ii", "gg ii"]
    edges = np.array([[grams.index(gram) for gram in pair.split()] for pair in pairs])
    (nodes,) = find_cliques(PartiteGraph((3, 3, 3), edges, np.ones(7))).nodes.tolist()
    assert "".join(grams[node] for node in nodes) == "gghhii"


@pytest.mark.parametrize(
    ("edges", "message"),
    [([[0, 1]], "inside one partition"), ([[0, 2], [2, 0]], "twice"), ([[0, 9]], "expected nodes")],
)
def test_invalid_graphs_are_refused(edges: list[list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PartiteGraph((2, 2), np.array(edges), np.ones(len(edges)))
