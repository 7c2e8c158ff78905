"""The paper's reading of n-grams: significant grams, pairs above delta, cliques, Bonferroni.

Steps 4 to 6 of the paper's protocol. Reports are grouped by pairs of positions. The joint
distribution of each group over the significant grams and Other is fitted by EM, and pairs more
frequent than delta become edges of a graph, whose cliques are the candidates. Of the r+1 reports of
a client, only that of the full string tests a candidate, and all candidates have the same cut-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod, sqrt

import numpy as np

from deniable.columns import Column, ReportBatch
from deniable.compute.arrays import ArrayKernels
from deniable.compute.rows import LikelihoodRows
from deniable.discovery.ngrams.cliques import Cliques, PartiteGraph, find_cliques
from deniable.discovery.ngrams.gram_reports import (
    GramReports,
    Position,
    ScoredStrings,
    gram_columns,
    paired_reports,
)
from deniable.discovery.ngrams.grams import Pair, assemble, compatible, gram_mechanisms
from deniable.discovery.shared.run import SearchSummary
from deniable.discovery.shared.strings import Rows
from deniable.inference.joint.evidence import evidence_of
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.other import mixture_other
from deniable.kernels.array_types import Floats, Indices, Singles
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import GramGraph

MAX_GRAMS = 63
"""Grams of a position that are categories: tables then have at most 64 × 64 cells."""
EM_STEPS = 100
"""The certified maximum puts most rare cells at 0 where a pair of positions has few reports: at
q = .32 no string of the URL trial then keeps all of its 45 edges."""
MAX_CANDIDATES = 200_000
MAX_SECONDS = 30.0
"""Time for the search of cliques."""
MAX_NODES_DRAWN, MAX_CLIQUES_DRAWN = 60, 40
END = "·"
Shards = dict[Pair, list[tuple[Singles, ...]]]


@dataclass(frozen=True, eq=False)
class GramAxis:
    """The categories of one position: its most frequent significant grams, and Other."""

    grams: Rows
    model: BloomModel
    position: Position

    @classmethod
    def of(cls, position: Position) -> GramAxis:
        """Return the categories of a position, `MAX_GRAMS` grams at most."""
        chosen = position.significant[:MAX_GRAMS]
        other = mixture_other(position.marginal, position.design, chosen)
        model = position.design.take(chosen).with_other(other)
        return cls(position.grams[chosen], model, position)

    @property
    def categories(self) -> int:
        """Number of categories, with Other."""
        return len(self.grams) + (self.model.other is not None)

    def rows(self, part: int, column: Column, rows: Indices) -> Singles:
        """Return the likelihood rows of some reports of one gram part at this position."""
        stratum = self.position.stratum(part, column.cohort[rows])
        return np.asarray(self.model.likelihood(column.bits[rows], stratum).rows)


def pair_threshold(protocol: NGrams, reports: int) -> float:
    """Return the paper's delta, by the formula that gives its .0062 at p = .25, q = .32, N = 10^6.

    sqrt(p2 (1 - p2) / N) / (q2 - p2); the paper prints q2 - p2 under the root. If gram parts have
    different noise, the noisiest counts.
    """
    each = [mechanism.support for mechanism in gram_mechanisms(protocol)]
    return max(sqrt(p * (1 - p) / reports) / abs(q - p) for p, q in each)


def read_paper(reports: GramReports, delta: float | None) -> tuple[ScoredStrings, SearchSummary]:
    """Return candidates as the paper finds them, tested with Bonferroni over the candidates."""
    run, protocol = reports.run, reports.protocol
    axes = [GramAxis.of(position) for position in reports.positions]
    threshold = pair_threshold(protocol, run.reports) if delta is None else delta
    graph, pairs = _build_graph(reports, axes, threshold)
    run.stage(f"pairs above {threshold:.4g}", len(graph.edges), pairs - len(graph.edges))
    cliques = find_cliques(graph, max_count=MAX_CANDIDATES, max_seconds=MAX_SECONDS)
    run.stage("cliques", len(cliques.nodes), 0, cliques.truncation)
    grams = (cliques.nodes - graph.offsets[:-1]).T
    rows = assemble(protocol, [axis.grams[gram] for axis, gram in zip(axes, grams, strict=True)])
    wanted = run.accepted(rows)
    run.candidates = count = int(wanted.sum())
    run.stage("accepted", count, len(rows) - count)
    cutoff = run.alpha / max(count, 1)
    tested = reports.estimate(rows[wanted])
    found = ScoredStrings(
        rows[wanted], tested.p_value, np.full(count, cutoff), cliques.evidence[wanted]
    ).take(tested.detected)
    run.stage("tested on full strings", len(found), count - len(found))
    kept = f"cliques ({cliques.truncation}): all above {cliques.complete_above:.4g} are in"
    return found, SearchSummary(
        reading="paper",
        correction=f"Bonferroni: each of {count:,} candidates at {run.alpha:g}/{count}",
        detection_threshold=reports.detection_threshold(cutoff),
        mass_at_end=reports.mass_at_end,
        evidence_name="weakest pair's frequency",
        truncation=kept if cliques.truncation else "",
        graph=_drawn(protocol, axes, graph, cliques),
    )


def _build_graph(
    reports: GramReports, axes: Sequence[GramAxis], delta: float
) -> tuple[PartiteGraph, int]:
    """Return the graph of grams, edges weighted by their joint frequency, and the number of pairs.

    Pairs that no string can hold (overlapping grams that disagree, text after the end) are no
    edges, whatever their frequency.
    """
    run = reports.run
    rows = run.source.hold(run.executor, partial(_rows, run.question.name, axes))
    sizes = tuple(len(a.grams) for a in axes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ends, weights, pairs = [np.empty((0, 2), np.int64)], [np.empty(0)], 0
    for g, h in sorted(set[Pair]().union(*rows.map(set))):
        left, right = axes[g], axes[h]
        if not (sizes[g] and sizes[h]):
            continue
        shape = left.categories, right.categories
        pieces = rows.hold(partial(_laid_out, run.executor.arrays, (g, h), shape))
        evidence = evidence_of(pieces, shape, run.executor.arrays)
        table: Floats = np.full(evidence.folded, 1 / prod(shape))
        for _ in range(EM_STEPS):
            table = evidence.evaluate(table).em_step(table)
        table = table.reshape(shape)[: sizes[g], : sizes[h]]
        pairs += table.size
        joined = (table > delta) & compatible(reports.protocol, g, h, left.grams, right.grams)
        ends.append(np.argwhere(joined) + offsets[[g, h]])
        weights.append(table[joined])
    return PartiteGraph(sizes, np.concatenate(ends), np.concatenate(weights)), pairs


def _rows(question: str, axes: Sequence[GramAxis], batch: ReportBatch) -> Shards:
    """Return the likelihood rows of one batch, by pair of positions."""
    columns, shards = gram_columns(question, batch), Shards({})
    for places, parts, both in paired_reports(columns, len(axes)):
        ends = zip(places, parts, strict=True)
        rows = tuple(axes[g].rows(i, columns[i], both) for g, i in ends)
        shards.setdefault(places, []).append(rows)
    return shards


def _laid_out(arrays: ArrayKernels, pair: Pair, shape: Pair, shards: Shards) -> LikelihoodRows:
    """Lay out all rows of one pair of positions."""
    none = tuple(np.empty((0, size), np.float32) for size in shape)
    joined = zip(none, *shards.get(pair, []), strict=True)
    return arrays.lay_out([np.concatenate(parts) for parts in joined])


def _drawn(
    protocol: NGrams, axes: list[GramAxis], graph: PartiteGraph, cliques: Cliques
) -> GramGraph | None:
    """Return the graph for drawing, or None if it is too large."""
    if sum(graph.sizes) > MAX_NODES_DRAWN or len(cliques.nodes) > MAX_CLIQUES_DRAWN:
        return None
    labels = tuple(tuple(_text(protocol, row) for row in axis.grams) for axis in axes)
    partition = graph.partition[graph.edges]
    ends = np.stack([partition, graph.edges - graph.offsets[partition]], axis=2)
    edges = tuple((a, b, c, d) for a, b, c, d in ends.reshape(-1, 4).tolist())
    strings = tuple(map(tuple, (cliques.nodes - graph.offsets[:-1]).tolist()))
    return GramGraph(labels, edges, tuple(graph.weight.tolist()), strings)


def _text(protocol: NGrams, row: Rows) -> str:
    """Return a gram as text, with a middle dot for each symbol after the end of a string."""
    content = row.tobytes().rstrip(bytes([PAD]))
    return protocol.alphabet.text(content) + END * (len(row) - len(content))
