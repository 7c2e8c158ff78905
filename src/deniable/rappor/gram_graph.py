"""A graph of n-grams, as google/rappor writes it to a file, and the strings that it spells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.discovery.ngrams.cliques import PartiteGraph, find_cliques


@dataclass(frozen=True)
class GramEdges:
    """A k-partite graph of n-grams: edges between (partition, gram) pairs."""

    partitions: int
    gram: int
    edges: tuple[tuple[tuple[int, str], tuple[int, str]], ...]


def graph_strings(graph: GramEdges, *, most: int, seconds: float) -> tuple[list[str], str]:
    """The cliques of a graph file as strings, and why the search was cut, if it was.

    Its edges have no weights: strings come in the order in which their last edge is listed.
    """
    grams = sorted({end for edge in graph.edges for end in edge})
    number = {end: i for i, end in enumerate(grams)}
    sizes = tuple(sum(g == part for g, _ in grams) for part in range(graph.partitions))
    pairs = dict.fromkeys(tuple(sorted((number[a], number[b]))) for a, b in graph.edges)
    edges = np.array(list(pairs), np.int64).reshape(-1, 2)
    weighted = PartiteGraph(sizes, edges, -np.arange(len(edges), dtype=np.float64))
    cliques = find_cliques(weighted, most=most, seconds=seconds)
    return ["".join(grams[i][1] for i in row) for row in cliques.nodes.tolist()], cliques.cut
