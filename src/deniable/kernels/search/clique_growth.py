"""Find cliques of a k-partite graph, one node per partition, while edges are added one by one.

Nodes are bits: each partition starts with a new word, so the possible nodes of a partition are a
few words, and the nodes adjacent to two nodes are one AND of words. Edges are added in a given
order. A clique is found when its last edge is added, so each clique is found once, and those whose
last edge comes early are found first. All state is in arrays: the search can stop at any step and
continue from there.
"""

from __future__ import annotations

import numpy as np

from deniable.kernels.array_types import Int64s, Mask, Words
from deniable.kernels.compiled import compiled, inlined
from deniable.kernels.words import population_count

ONE = np.uint64(1)


@inlined
def _lowest(word: np.uint64) -> int:
    """Return the index of the lowest set bit of a word that is not 0."""
    return int(population_count((word & (~word + ONE)) - ONE))


@inlined
def _narrowest(open_nodes: Words, bounds: Int64s, taken: Mask) -> int:
    """Return the free partition with the fewest possible nodes; -1 if one has none."""
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
    """Continue the search, and return the number of cliques that were written to `out`.

    edges : int64[E, 2], nodes as numbers of bits (64 * word + bit), in the order of addition;
    partition_of : int64[bits]; bounds : int64[k + 1], first word of each partition;
    adjacent : uint64[bits, W], filled as edges are added, zeroed before the first call;
    open_nodes : uint64[k, W], branch : int64[k] and chosen : int64[k], the stack of the search;
    state : int64[2], number of edges added, and depth (0 between edges), both 0 at first;
    steps : maximum number of nodes to try; out : int64[C, k], one node per partition; the search
    stops when it is full; last : int64[C], index of the last edge of each clique.
    """
    partitions = len(bounds) - 1
    words = adjacent.shape[1]
    taken = np.zeros(partitions, np.bool_)
    count = 0
    for depth in range(state[1]):
        taken[branch[depth]] = True
    if state[1] > 0:
        u, v = edges[state[0], 0], edges[state[0], 1]
        taken[partition_of[u]] = True
        taken[partition_of[v]] = True
    while steps > 0 and count < len(out):
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
                out[count] = chosen
                last[count] = state[0]
                count += 1
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
            depth = state[1] - 1
            partition = branch[depth]
            word = bounds[partition]
            while word < bounds[partition + 1] and open_nodes[depth, word] == 0:
                word += 1
            if word < bounds[partition + 1]:
                steps -= 1
                value = open_nodes[depth, word]
                node = 64 * word + _lowest(value)
                open_nodes[depth, word] = value & (value - ONE)
                chosen[partition] = node
                if depth == partitions - 3:
                    out[count] = chosen
                    last[count] = state[0]
                    count += 1
                    continue
                for w in range(words):
                    open_nodes[depth + 1, w] = open_nodes[depth, w] & adjacent[node, w]
                following = _narrowest(open_nodes[depth + 1], bounds, taken)
                if following >= 0:
                    branch[depth + 1] = following
                    taken[following] = True
                    state[1] += 1
                continue
            taken[partition] = False
            state[1] -= 1
            if state[1] > 0:
                continue
        u, v = edges[state[0], 0], edges[state[0], 1]
        adjacent[u, v >> 6] |= ONE << np.uint64(v & 63)
        adjacent[v, u >> 6] |= ONE << np.uint64(u & 63)
        state[0] += 1
    return count
