"""Graph files of google/rappor: n-grams as nodes, whose cliques are candidate strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.discovery.ngrams.cliques import PartiteGraph, find_cliques
from deniable.errors import InputError
from deniable.rappor.csv_files import input_lines

LARGEST_SIZE = 255
"""Largest number of partitions, and of characters per n-gram."""


@dataclass(frozen=True)
class GramEdges:
    """A k-partite graph of n-grams.

    gram : characters per n-gram; edges : pairs of (partition, n-gram).
    """

    partitions: int
    gram: int
    edges: tuple[tuple[tuple[int, str], tuple[int, str]], ...]


def read_graph(path: str | Path) -> GramEdges:
    """Read a graph: `num_partitions 3`, `ngram_size 2`, then lines such as `edge 0.ab 1.cd`."""
    sizes: dict[str, int] = {}
    edges = []
    for number, line in enumerate(input_lines(path), 1):
        words = line.rstrip("\r").split(" ")
        try:
            if words[0] in ("num_partitions", "ngram_size"):
                if not 1 <= int(words[1]) <= LARGEST_SIZE:
                    raise ValueError
                sizes[words[0]] = int(words[1])
            elif words[0] == "edge":
                edges.append(_edge(line.rstrip("\r")[5:], sizes))
            elif words != [""]:
                raise ValueError
        except (ValueError, IndexError, KeyError):
            raise InputError(
                f"{path}, line {number}: expected num_partitions N, ngram_size N (N from 1 to "
                f"{LARGEST_SIZE}) or edge P.GRAM P.GRAM; got {line!r:.80}"
            ) from None
    if len(sizes) != 2:
        missing = " and ".join({"num_partitions", "ngram_size"} - sizes.keys())
        raise InputError(f"{path}: no line gives {missing}")
    return GramEdges(sizes["num_partitions"], sizes["ngram_size"], tuple(edges))


def _edge(text: str, sizes: Mapping[str, int]) -> tuple[tuple[int, str], tuple[int, str]]:
    """Parse `0.ab 1.cd`; an n-gram may contain spaces and full stops, because its size is known.

    Raises ValueError if the text has another form.
    """
    ends = []
    for _ in range(2):
        number, _, remainder = text.partition(".")
        gram, text = (
            remainder[: sizes["ngram_size"]],
            remainder[sizes["ngram_size"] :].removeprefix(" "),
        )
        partition = int(number)
        if len(gram) != sizes["ngram_size"] or not 0 <= partition < sizes["num_partitions"]:
            raise ValueError
        ends.append((partition, gram))
    if text or ends[0][0] == ends[1][0]:
        raise ValueError
    return ends[0], ends[1]


def graph_strings(
    graph: GramEdges, *, most: int, seconds: float | None = None
) -> tuple[list[str], str]:
    """Return the strings of all cliques, and why the search stopped early ("" if it did not).

    The edges of a graph file have no weights: strings are in the order of their last edge.
    """
    grams = sorted({end for edge in graph.edges for end in edge})
    number = {end: i for i, end in enumerate(grams)}
    sizes = tuple(sum(g == part for g, _ in grams) for part in range(graph.partitions))
    pairs = dict.fromkeys(tuple(sorted((number[a], number[b]))) for a, b in graph.edges)
    edges = np.array(list(pairs), np.int64).reshape(-1, 2)
    weighted = PartiteGraph(sizes, edges, -np.arange(len(edges), dtype=np.float64))
    cliques = find_cliques(weighted, max_count=most, max_seconds=seconds)
    return ["".join(grams[i][1] for i in row) for row in cliques.nodes.tolist()], cliques.truncation
