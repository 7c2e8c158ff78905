"""Cliques of a k-partite graph, one node from each partition, as edges arrive one by one.

Nodes are bits: each partition starts at a word of its own, so the nodes still possible in it are a
few words, and "who is adjacent to all of these" is one AND. Edges are added in a given order;
a clique is found when its last edge arrives, and then only, so each is found once, and those
whose last edge comes early come first. All state is in arrays: the search stops anywhere and
goes on from there.
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int64s, Mask, Words
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.words import population_count

ONE = np.uint64(1)


@inlined
def _lowest(word: np.uint64) -> int:
    """Index of the lowest set bit of a word that is not 0."""
    return int(population_count((word & (~word + ONE)) - ONE))


@inlined
def _narrowest(open_nodes: Words, bounds: Int64s, taken: Mask) -> int:
    """The partition not yet taken with the fewest open nodes; -1 if one has none."""
    best, fewest = -1, 1 << 40
    for partition in range(len(taken)):
        if taken[partition]:
            continue
        count = 0
        for word in range(bounds[partition], bounds[partition + 1]):
            count += population_count(open_nodes[word])
        if count == 0:
            return -1
        if count < fewest:
            best, fewest = partition, count
    return best


@compiled
def advance(
    edges: Int64s,
    partition_of: Int64s,
    bounds: Int64s,
    adjacent: Words,
    open_nodes: Words,
    branch: Int64s,
    chosen: Int64s,
    state: Int64s,
    steps: int,
    out: Int64s,
    last: Int64s,
) -> int:
    """Go on with the search; return how many cliques were written to `out`.

    edges : int64[E, 2], nodes as bit numbers (64 * word + bit), in order of arrival;
    partition_of : int64[bits]; bounds : int64[k + 1], first word of each partition;
    adjacent : uint64[bits, W], filled as edges arrive, zeroed by the caller before the first call;
    open_nodes : uint64[k, W], branch : int64[k] and chosen : int64[k], the search's stack;
    state : int64[2]: edges that have arrived, and depth (0: between edges), both 0 at first;
    steps : stop after this many nodes tried; out : int64[C, k], node per partition, or stop when
    full; last : int64[C], index of the edge that closed each.
    """
    partitions = len(bounds) - 1
    words = adjacent.shape[1]
    taken = np.zeros(partitions, np.bool_)
    found = 0
    for level in range(state[1]):
        taken[branch[level]] = True
    if state[1] > 0:
        u, v = edges[state[0], 0], edges[state[0], 1]
        taken[partition_of[u]] = True
        taken[partition_of[v]] = True
    while steps > 0 and found < len(out):
        if state[1] == 0:
            if state[0] >= len(edges):
                break
            u, v = edges[state[0], 0], edges[state[0], 1]
            steps -= 1
            taken[:] = False
            taken[partition_of[u]] = True
            taken[partition_of[v]] = True
            chosen[partition_of[u]] = u
            chosen[partition_of[v]] = v
            if partitions == 2:
                out[found] = chosen
                last[found] = state[0]
                found += 1
            else:
                for word in range(words):
                    open_nodes[0, word] = adjacent[u, word] & adjacent[v, word]
                first = _narrowest(open_nodes[0], bounds, taken)
                if first >= 0:
                    branch[0] = first
                    taken[first] = True
                    state[1] = 1
                    continue
        else:
            level = state[1] - 1
            here = branch[level]
            word = bounds[here]
            while word < bounds[here + 1] and open_nodes[level, word] == 0:
                word += 1
            if word < bounds[here + 1]:
                steps -= 1
                value = open_nodes[level, word]
                node = 64 * word + _lowest(value)
                open_nodes[level, word] = value & (value - ONE)
                chosen[here] = node
                if level == partitions - 3:
                    out[found] = chosen
                    last[found] = state[0]
                    found += 1
                    continue
                for w in range(words):
                    open_nodes[level + 1, w] = open_nodes[level, w] & adjacent[node, w]
                following = _narrowest(open_nodes[level + 1], bounds, taken)
                if following >= 0:
                    branch[level + 1] = following
                    taken[following] = True
                    state[1] += 1
                continue
            taken[here] = False
            state[1] -= 1
            if state[1] > 0:
                continue
        u, v = edges[state[0], 0], edges[state[0], 1]
        adjacent[u, v >> 6] |= ONE << np.uint64(v & 63)
        adjacent[v, u >> 6] |= ONE << np.uint64(u & 63)
        state[0] += 1
    return found
