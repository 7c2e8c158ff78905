"""The algorithm of `reading="paper"`: find strings from n-grams as Fanti et al. (2016) do.

This module implements steps 4 to 6 of the protocol in "Building a RAPPOR with the Unknown". Reports
are grouped by pairs of positions. The joint distribution of each group over the significant grams
and Other is fitted by EM, and pairs more frequent than a threshold, delta, become edges of a graph,
whose cliques are the candidates. Each client reports r grams and the full string; only the latter
is used to test candidates, with a Bonferroni correction. Marginals and the model of Other are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod, sqrt

import numpy as np

from deniable.columns import Column, ReportBatch
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
from deniable.kernels.array_types import Floats, Indices, Singles
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import GramGraph

MAX_GRAMS = 63
"""Maximum number of grams per position that are categories, for at most 64 × 64 cells per table."""
EM_STEPS = 100
"""Number of EM steps. A fit until convergence would put most rare cells at 0 if a pair of positions
has few reports: in the URL experiment at q = .32, no string would keep all of its 45 edges."""
MAX_CANDIDATES = 200_000
"""Number of cliques at which the search stops; `find_cliques` also limits its steps."""
MAX_NODES_DRAWN, MAX_CLIQUES_DRAWN = 60, 40
"""Size above which a graph is not drawn."""
END = "·"
"""Shown for each symbol after the end of a string."""
RowsByPair = dict[Pair, list[tuple[Singles, ...]]]
"""Likelihood rows by pair of positions: per chunk of reports, one array for each position."""


@dataclass(frozen=True, eq=False)
class GramAxis:
    """The categories of one position: its most frequent significant grams, and Other."""

    grams: Rows
    model: BloomModel
    position: Position

    @classmethod
    def of(cls, position: Position, reports: GramReports) -> GramAxis:
        """Return the categories of a position, `MAX_GRAMS` grams at most."""
        chosen = position.significant[:MAX_GRAMS]
        model = position.design.take(chosen).with_other(reports.other(position, chosen))
        return cls(position.grams[chosen], model, position)

    @property
    def categories(self) -> int:
        """Number of categories, with Other."""
        return len(self.grams) + (self.model.other is not None)

    def likelihood_rows(self, part: int, column: Column, chosen: Indices) -> Singles:
        """Return the likelihood rows of the chosen reports, which have this position in a part.

        part : which of the r grams of a client, from 0; column : the reports of this part
        """
        stratum = self.position.stratum(part, column.cohort[chosen])
        return np.asarray(self.model.likelihood(column.bits[chosen], stratum).rows)


def pair_threshold(protocol: NGrams, reports: int) -> float:
    """Return the paper's threshold delta for the frequency of a pair of grams.

    It is sqrt(p (1 - p) / N) / (q - p). The paper prints q - p under the root, but only this
    formula gives its value .0062 at p = .25, q = .32 and N = 10^6. If gram parts have different
    noise, the noisiest counts.
    """
    probabilities = [mechanism.support for mechanism in gram_mechanisms(protocol)]
    return max(sqrt(p * (1 - p) / reports) / abs(q - p) for p, q in probabilities)


def read_paper(reports: GramReports, delta: float | None) -> tuple[ScoredStrings, SearchSummary]:
    """Find candidates with the paper's algorithm, and test them with a Bonferroni correction.

    delta : minimum frequency of a pair of grams; None for the paper's formula
    """
    run, protocol = reports.run, reports.protocol
    axes = [GramAxis.of(position, reports) for position in reports.positions]
    dropped = sum(len(axis.position.significant) - len(axis.grams) for axis in axes)
    if dropped:
        kept = sum(len(axis.grams) for axis in axes)
        run.stage("grams used", kept, dropped, f"at most {MAX_GRAMS} per position")
    delta = pair_threshold(protocol, run.reports) if delta is None else delta
    graph, pairs = _build_graph(reports, axes, delta)
    run.stage(f"pairs above {delta:.4g}", len(graph.edges), pairs - len(graph.edges))
    cliques = find_cliques(graph, max_count=MAX_CANDIDATES)
    run.stage("cliques", len(cliques.nodes), 0, cliques.truncation)
    grams = (cliques.nodes - graph.offsets[:-1]).T
    rows = assemble(protocol, [axis.grams[gram] for axis, gram in zip(axes, grams, strict=True)])
    accepted = run.accepted(rows)
    run.candidates = count = int(accepted.sum())
    run.stage("accepted", count, len(rows) - count)
    cutoff = run.alpha / max(count, 1)
    tested = reports.estimate(rows[accepted])
    cutoffs, evidence = np.full(count, cutoff), cliques.evidence[accepted]
    found = ScoredStrings(rows[accepted], tested.p_value, cutoffs, evidence, cutoffs)
    found = found.take(tested.detected)
    run.stage("tested on full strings", len(found), count - len(found))
    cuts = []
    if dropped:
        cuts.append(f"{dropped} significant n-grams left out ({MAX_GRAMS} per position are used)")
    if cliques.truncation:
        above = f"all above {cliques.complete_above:.4g} are in"
        cuts.append(f"cliques ({cliques.truncation}): {above}")
    return found, SearchSummary(
        reading="paper",
        correction=f"Bonferroni: each of {count:,} candidates at {run.alpha:g}/{count}",
        detection_threshold=reports.detection_threshold(cutoff),
        mass_at_end=reports.mass_at_end,
        evidence_name="weakest pair's frequency",
        truncation="; ".join(cuts),
        graph=_graph_to_draw(protocol, axes, graph, cliques),
    )


def _build_graph(
    reports: GramReports, axes: Sequence[GramAxis], delta: float
) -> tuple[PartiteGraph, int]:
    """Return the graph of grams, and how many pairs of grams were considered as edges.

    The weight of an edge is the joint frequency of its grams. Pairs that no string can contain
    (overlapping grams that disagree, text after the end) are no edges, whatever their frequency.
    """
    run = reports.run
    rows = run.source.hold(run.executor, partial(_rows_by_pair, run.question.name, axes))
    sizes = tuple(len(axis.grams) for axis in axes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    edges, weights, pairs = [np.empty((0, 2), np.int64)], [np.empty(0)], 0
    for g, h in sorted(set[Pair]().union(*rows.map(set))):
        left, right = axes[g], axes[h]
        if not (sizes[g] and sizes[h]):
            continue
        shape = left.categories, right.categories
        pieces = rows.hold(partial(_lay_out_pair, (g, h), shape))
        evidence = evidence_of(pieces, shape)
        table: Floats = np.full(evidence.folded, 1 / prod(shape))
        for _ in range(EM_STEPS):
            table = evidence.evaluate(table).em_step(table)
        table = table.reshape(shape)[: sizes[g], : sizes[h]]
        pairs += table.size
        is_edge = (table > delta) & compatible(reports.protocol, g, h, left.grams, right.grams)
        edges.append(np.argwhere(is_edge) + offsets[[g, h]])
        weights.append(table[is_edge])
    return PartiteGraph(sizes, np.concatenate(edges), np.concatenate(weights)), pairs


def _rows_by_pair(question: str, axes: Sequence[GramAxis], batch: ReportBatch) -> RowsByPair:
    """Return the likelihood rows of one batch, by pair of positions."""
    columns, by_pair = gram_columns(question, batch), RowsByPair({})
    for positions, parts, chosen in paired_reports(columns, len(axes)):
        rows = tuple(
            axes[position].likelihood_rows(part, columns[part], chosen)
            for position, part in zip(positions, parts, strict=True)
        )
        by_pair.setdefault(positions, []).append(rows)
    return by_pair


def _lay_out_pair(pair: Pair, shape: tuple[int, int], by_pair: RowsByPair) -> LikelihoodRows:
    """Lay out all rows of one pair of positions; there may be none."""
    empty = tuple(np.empty((0, size), np.float32) for size in shape)
    chunks_by_position = zip(empty, *by_pair.get(pair, []), strict=True)
    return LikelihoodRows.laid_out([np.concatenate(chunks) for chunks in chunks_by_position])


def _graph_to_draw(
    protocol: NGrams, axes: list[GramAxis], graph: PartiteGraph, cliques: Cliques
) -> GramGraph | None:
    """Return the graph for drawing, or None if it is too large."""
    if sum(graph.sizes) > MAX_NODES_DRAWN or len(cliques.nodes) > MAX_CLIQUES_DRAWN:
        return None
    labels = tuple(tuple(_gram_text(protocol, row) for row in axis.grams) for axis in axes)
    position = graph.partition[graph.edges]
    ends = np.stack([position, graph.edges - graph.offsets[position]], axis=2)
    edges = tuple((g, a, h, b) for g, a, h, b in ends.reshape(-1, 4).tolist())
    strings = tuple(map(tuple, (cliques.nodes - graph.offsets[:-1]).tolist()))
    return GramGraph(labels, edges, tuple(graph.weight.tolist()), strings)


def _gram_text(protocol: NGrams, row: Rows) -> str:
    """Return a gram as text, with a middle dot for each symbol after the end of a string."""
    content = row.tobytes().rstrip(bytes([PAD]))
    return protocol.alphabet.text(content) + END * (len(row) - len(content))
