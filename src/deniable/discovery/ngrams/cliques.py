"""All k-cliques of a k-partite graph: the candidate strings of the paper's section IV-B.

A candidate has one node (gram) in each partition (position), and an edge (a pair that occurs
together) between every two of them. The evidence for a clique is its weakest edge. Cliques come
lazily in the order of their evidence, strongest first: edges are added heaviest first, and a clique
appears with its last edge. If a search stops early, it has missed only cliques whose weakest edge
is at most `complete_above`, and reports that. The limits are numbers of cliques and of steps, so
that a graph gives the same cliques on every machine; a limit in seconds is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Int64s
from deniable.kernels.search.clique_growth import advance

MAX_WORDS = 1 << 28
"""64-bit words of the adjacency matrix."""
STEPS = 1 << 18
"""Steps of the search per piece: between two looks at the limits."""
MAX_PIECES = 1 << 12
"""Pieces after which a search stops by default: 10⁹ steps, about half a minute of one core."""
CHUNK = 1 << 12
"""Cliques per piece."""


@dataclass(frozen=True, eq=False)
class PartiteGraph:
    """A k-partite graph, k ≥ 2.

    sizes : nodes in each partition; nodes are numbered partition after partition
    edges : int64[E, 2], each between two partitions, at most one between two nodes
    weight : float64[E], evidence for each edge, finite
    """

    sizes: tuple[int, ...]
    edges: Int64s
    weight: Floats

    def __post_init__(self) -> None:
        edges = np.ascontiguousarray(self.edges, np.int64).reshape(-1, 2)
        weight = np.ascontiguousarray(self.weight, np.float64)
        if len(self.sizes) < 2 or min(self.sizes) < 0:
            raise InputError(f"expected two or more partitions, got sizes {self.sizes}")
        if weight.shape != (len(edges),) or not np.isfinite(weight).all():
            raise InputError(f"expected one finite weight for each of {len(edges)} edges")
        total = sum(self.sizes)
        if edges.size and not (edges.min() >= 0 and edges.max() < total):
            raise InputError(f"expected nodes 0 to {total - 1}, got {edges.min()}..{edges.max()}")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weight", weight)
        inside = np.flatnonzero(self.partition[edges[:, 0]] == self.partition[edges[:, 1]])
        if inside.size:
            raise InputError(
                f"edge {edges[inside[0]].tolist()} lies inside one partition; expected edges "
                "between two"
            )
        ends = np.sort(edges, axis=1)
        if len(np.unique(ends[:, 0] * total + ends[:, 1])) != len(edges):
            raise InputError("expected each edge once, got one twice")

    @cached_property
    def offsets(self) -> Int64s:
        """int64[k + 1]: first node of each partition, and the number of nodes."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def partition(self) -> Int64s:
        """int64[nodes]: partition of each node."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int64), self.sizes)


@dataclass(frozen=True, eq=False)
class Cliques:
    """Cliques in the order of their evidence.

    nodes : int64[C, k], node of each partition; evidence : float64[C], weakest edge, descending
    truncation : why the search stopped early, empty if it did not
    complete_above : every clique with a heavier weakest edge is listed (minus infinity for all)
    """

    nodes: Int64s
    evidence: Floats
    truncation: str
    complete_above: float


def find_cliques(
    graph: PartiteGraph,
    *,
    max_count: int = 1_000_000,
    max_pieces: int = MAX_PIECES,
) -> Cliques:
    """Return all cliques, or the strongest `max_count`, or those found within `max_pieces`.

    max_pieces : pieces of the search, see `iterate_cliques`

    >>> edges = np.array([[0, 1], [1, 2], [0, 2]])
    >>> find_cliques(PartiteGraph((1, 1, 1), edges, np.ones(3))).nodes
    array([[0, 1, 2]])
    """
    nodes, evidence = [np.empty((0, len(graph.sizes)), np.int64)], [np.empty(0)]
    count, truncation, reached = 0, "", -np.inf
    for piece, (more, weakest, weight) in enumerate(iterate_cliques(graph), 1):
        nodes.append(more)
        evidence.append(weakest)
        count += len(more)
        if count > max_count:
            truncation = f"more than {max_count:,} cliques"
        elif piece > max_pieces:
            truncation = f"more than {max_pieces * STEPS:,} steps"
        if truncation:
            reached = weight
            break
    every = np.concatenate(evidence)
    if count > max_count:
        reached = max(reached, float(every[max_count]))
    return Cliques(np.concatenate(nodes)[:max_count], every[:max_count], truncation, reached)


def iterate_cliques(graph: PartiteGraph) -> Iterator[tuple[Int64s, Floats, float]]:
    """Yield cliques in pieces: nodes int64[c, k], evidence, and weight of the current edge.

    Cliques that follow have no more evidence than that weight. A piece is at most `STEPS` steps of
    the search or `CHUNK` cliques, and may be empty, so that the caller can stop.
    """
    kept, edges = _pruned(graph)
    partition, k = graph.partition[kept], len(graph.sizes)
    sizes = np.bincount(partition, minlength=k)
    bounds = np.concatenate([[0], np.cumsum(-(-sizes // 64))]).astype(np.int64)
    words = int(bounds[-1])
    if 64 * words * words > MAX_WORDS:
        raise InputError(
            f"the graph has {len(kept):,} nodes with an edge into every other partition, more than "
            f"the limit of {int(8 * MAX_WORDS**0.5):,}: raise the threshold of the edges"
        )
    first = np.cumsum(sizes) - sizes
    bit = 64 * bounds[partition] + np.arange(len(kept)) - first[partition]
    node_of = np.zeros(64 * words, np.int64)
    node_of[bit] = kept
    partition_of = np.repeat(np.arange(k, dtype=np.int64), 64 * np.diff(bounds))
    place = np.zeros(sum(graph.sizes), np.int64)
    place[kept] = bit
    # Heaviest first; equal weights in the given order.
    order = edges[np.argsort(-graph.weight[edges], kind="stable")]
    ends, weight = place[graph.edges[order]], graph.weight[order]
    adjacent = np.zeros((64 * words, words), np.uint64)
    stack = np.zeros((k, words), np.uint64)
    branch, chosen, state = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(2, np.int64)
    out, last = np.empty((CHUNK, k), np.int64), np.empty(CHUNK, np.int64)
    while state[0] < len(ends):
        count = advance(
            ends, partition_of, bounds, adjacent, stack, branch, chosen, state, STEPS, out, last
        )
        current = float(weight[min(int(state[0]), len(weight) - 1)])
        yield node_of[out[:count]], weight[last[:count]], current


def _pruned(graph: PartiteGraph) -> tuple[Int64s, Int64s]:
    """Return the nodes with a neighbour in every other partition, and the edges among them.

    No other node can be in a clique. Dropping nodes may leave others without a neighbour, so this
    repeats until nothing changes.
    """
    k, total = len(graph.sizes), sum(graph.sizes)
    alive = np.ones(total, bool)
    edges = np.arange(len(graph.edges), dtype=np.int64)
    while True:
        a, b = graph.edges[edges].T
        seen = np.zeros((total, k), bool)
        seen[a, graph.partition[b]] = True
        seen[b, graph.partition[a]] = True
        still = seen.sum(axis=1) == k - 1
        if np.array_equal(still, alive):
            return np.flatnonzero(alive).astype(np.int64), edges
        alive = still
        edges = edges[alive[a] & alive[b]]
