"""All k-cliques of a k-partite graph: the candidate strings of the paper's section IV-B.

A candidate has one node (gram) in each partition (position), every two of them joined by an edge
(a pair that occurs together). The evidence for a clique is its weakest edge. Cliques come lazily
in order of evidence, strongest first: edges are added heaviest first, and a clique appears with
its last edge. So a search that was cut short has missed only cliques whose weakest edge is at most
`complete_above`, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.kernels.search.clique_growth import advance

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_WORDS = 1 << 28
STEPS = 1 << 18
CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class PartiteGraph:
    """A k-partite graph, k >= 2.

    sizes : nodes in each partition; nodes are numbered partition after partition.
    edges : int64[E, 2], each between two partitions, at most one between two nodes
    weight : float64[E], the evidence for each edge, finite
    """

    sizes: tuple[int, ...]
    edges: Indices
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

    @property
    def offsets(self) -> Indices:
        """First node of each partition, and their number: int64[k + 1]."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def partition(self) -> Indices:
        """Each node's partition, int64[nodes]."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int64), self.sizes)


@dataclass(frozen=True, eq=False)
class Cliques:
    """Cliques in order of evidence.

    nodes : int64[C, k], node of each partition; evidence : float64[C], weakest edge, descending;
    cut : why the search stopped early, "" if it did not; complete_above : every clique whose
    weakest edge is heavier than this is listed (minus infinity if all are).
    """

    nodes: Indices
    evidence: Floats
    cut: str
    complete_above: float


def find_cliques(graph: PartiteGraph, *, most: int = 1_000_000, seconds: float = 30.0) -> Cliques:
    """All cliques, or the strongest `most` of them, or those found within `seconds`.

    >>> edges = np.array([[0, 1], [1, 2], [0, 2]])
    >>> find_cliques(PartiteGraph((1, 1, 1), edges, np.ones(3))).nodes
    array([[0, 1, 2]])
    """
    deadline = time.monotonic() + seconds
    parts, count, cut, reached = [], 0, "", -np.inf
    for nodes, evidence, level in iterate_cliques(graph):
        parts.append((nodes, evidence))
        count += len(nodes)
        if count > most:
            cut = f"more than {most:,} cliques"
        elif time.monotonic() > deadline:
            cut = f"more than {seconds:g} seconds"
        if cut:
            reached = level
            break
    nodes = np.concatenate([p[0] for p in parts] or [np.empty((0, len(graph.sizes)), np.int64)])
    evidence = np.concatenate([p[1] for p in parts] or [np.empty(0)])
    if len(nodes) > most:
        reached = max(reached, float(evidence[most]))
    return Cliques(nodes[:most], evidence[:most], cut, reached)


def iterate_cliques(graph: PartiteGraph) -> Iterator[tuple[Indices, Floats, float]]:
    """Cliques some at a time: nodes int64[c, k], their evidence, and where the search stands.

    The last is the weight of the edge being added: what is still to come is no heavier. A piece
    may be empty, so that the caller can look at the clock.
    """
    kept, edges = _pruned(graph)
    sizes = np.array(
        [np.count_nonzero(graph.partition[kept] == i) for i, _ in enumerate(graph.sizes)]
    )
    k = len(sizes)
    bounds = np.concatenate([[0], np.cumsum(-(-sizes // 64))]).astype(np.int64)
    words = int(bounds[-1])
    if 64 * words * words > MOST_WORDS:
        raise InputError(
            f"expected at most {int(8 * MOST_WORDS**0.5):,} nodes with an edge into every other "
            f"partition, got {len(kept):,}: raise the threshold of the edges"
        )
    partition = graph.partition[kept]
    first = np.concatenate([[0], np.cumsum(sizes)])
    bit = 64 * bounds[partition] + np.arange(len(kept)) - first[partition]
    node_of = np.zeros(64 * words, np.int64)
    node_of[bit] = kept
    partition_of = np.repeat(np.arange(k, dtype=np.int64), 64 * np.diff(bounds))
    place = np.zeros(sum(graph.sizes), np.int64)
    place[kept] = bit
    # Heaviest first; equal ones as given.
    order = edges[np.argsort(-graph.weight[edges], kind="stable")]
    ends, weight = place[graph.edges[order]], graph.weight[order]
    adjacent = np.zeros((64 * words, words), np.uint64)
    stack = np.zeros((k, words), np.uint64)
    branch, chosen, state = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(2, np.int64)
    out, last = np.empty((CHUNK, k), np.int64), np.empty(CHUNK, np.int64)
    while state[0] < len(ends):
        found = advance(
            ends, partition_of, bounds, adjacent, stack, branch, chosen, state, STEPS, out, last
        )
        standing = float(weight[min(int(state[0]), len(weight) - 1)])
        yield node_of[out[:found]], weight[last[:found]], standing


def _pruned(graph: PartiteGraph) -> tuple[Indices, Indices]:
    """Nodes that have a neighbour in every other partition, and the edges among them.

    Nothing else can be in a clique; dropping it may strand others, so until nothing changes.
    """
    k, total = len(graph.sizes), sum(graph.sizes)
    alive = np.ones(total, bool)
    edges = np.arange(len(graph.edges), dtype=np.int64)
    while True:
        a, b = graph.edges[edges].T
        seen = np.zeros((total, k), bool)
        seen[a, graph.partition[b]] = True
        seen[b, graph.partition[a]] = True
        still = alive & (seen.sum(axis=1) == k - 1)
        if np.array_equal(still, alive):
            return np.flatnonzero(alive).astype(np.int64), edges
        alive = still
        edges = edges[alive[a] & alive[b]]
