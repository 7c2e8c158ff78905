"""Steps 4 to 6 of the paper's protocol: which grams stand together.

Reports are grouped by pairs of positions. Each group's joint distribution over the significant
grams and Other is fitted by EM, and pairs more frequent than delta become edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from deniable.columns import Column, ReportBatch
from deniable.compute.arrays import ArrayKernels
from deniable.compute.rows import LikelihoodRows
from deniable.discovery.ngrams.cliques import PartiteGraph
from deniable.discovery.ngrams.grams import compatible, gram_mechanisms
from deniable.discovery.ngrams.positions import Position
from deniable.discovery.ngrams.state import GramReports, Pair, gram_columns, paired_reports
from deniable.discovery.shared.strings import Floats, Rows
from deniable.inference.joint.evidence import Evidence, evidence_of
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.other import mixture_other
from deniable.protocols import NGrams

MOST_KNOWN = 63
"""Grams of a position that get a category: tables then have at most 64 × 64 cells."""
PASSES = 100
"""Of EM. Its certified maximum puts most light cells at 0 where a pair of positions has few
reports: at q = .32 no string of the trial with URLs then keeps all of its 45 edges."""
Shards = dict[Pair, list[tuple[NDArray[np.float32], ...]]]


@dataclass(frozen=True, eq=False)
class GramAxis:
    """One position's categories: its most frequent significant grams, and Other."""

    grams: Rows
    model: BloomModel
    position: Position

    @classmethod
    def of(cls, position: Position) -> GramAxis:
        """Return the categories of a position, `MOST_KNOWN` grams at most."""
        chosen = position.significant[:MOST_KNOWN]
        other = mixture_other(position.marginal, position.design, chosen)
        model = position.design.take(chosen).with_other(other)
        return cls(position.grams[chosen], model, position)

    @property
    def categories(self) -> int:
        return len(self.grams) + (self.model.other is not None)

    def rows(self, part: int, column: Column, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the likelihood rows of some reports of one gram part at this position."""
        stratum = self.position.stratum(part, column.cohort[rows])
        return np.asarray(self.model.likelihood(column.bits[rows], stratum).rows)


def pair_threshold(protocol: NGrams, reports: int) -> float:
    """The paper's delta, as its own number .0062 at p = .25, q = .32 and N = 10^6 needs it.

    sqrt(p2 (1 - p2) / N) / (q2 - p2); the paper prints q2 - p2 under the root. Where gram parts
    differ in noise, the noisiest counts.
    """
    each = [mechanism.support for mechanism in gram_mechanisms(protocol)]
    return max(sqrt(p * (1 - p) / reports) / abs(q - p) for p, q in each)


def build_graph(
    reports: GramReports, axes: Sequence[GramAxis], delta: float
) -> tuple[PartiteGraph, int]:
    """Return the graph of grams, edges weighted by their joint frequency, and the number of pairs.

    Pairs that no string can hold (overlapping grams that disagree, text after the end) are no
    edges, whatever their frequency.
    """
    run = reports.run
    rows = run.source.hold(run.executor, partial(_rows, run.question.name, axes))
    offsets = np.concatenate([[0], np.cumsum([len(a.grams) for a in axes])])
    ends, weights, pairs = [np.empty((0, 2), np.int64)], [np.empty(0)], 0
    for g, h in sorted({pair for shards in rows.map(_positions) for pair in shards}):
        left, right = axes[g], axes[h]
        if not (len(left.grams) and len(right.grams)):
            continue
        shape = left.categories, right.categories
        pieces = rows.hold(partial(_laid_out, run.executor.arrays, (g, h), shape))
        table = _expected(evidence_of(pieces, shape, run.executor.arrays))
        table = table[: len(left.grams), : len(right.grams)]
        pairs += table.size
        joined = (table > delta) & compatible(reports.protocol, g, h, left.grams, right.grams)
        ends.append(np.argwhere(joined) + offsets[[g, h]])
        weights.append(table[joined])
    sizes = tuple(len(a.grams) for a in axes)
    return PartiteGraph(sizes, np.concatenate(ends), np.concatenate(weights)), pairs


def _expected(evidence: Evidence) -> Floats:
    """Return the joint table after `PASSES` of the paper's EM from a uniform start."""
    table: Floats = np.full(evidence.folded, 1.0 / prod(evidence.shape))
    for _ in range(PASSES):
        table = evidence.evaluate(table).em_step(table)
    return table.reshape(evidence.shape)


def _positions(shards: Shards) -> list[Pair]:
    return list(shards)


def _laid_out(arrays: ArrayKernels, pair: Pair, shape: Pair, shards: Shards) -> LikelihoodRows:
    """Lay out all rows of one pair of positions."""
    none = tuple(np.empty((0, size), np.float32) for size in shape)
    joined = zip(none, *shards.get(pair, []), strict=True)
    return arrays.lay_out([np.concatenate(parts) for parts in joined])


def _rows(question: str, axes: Sequence[GramAxis], batch: ReportBatch) -> Shards:
    """Return the likelihood rows of one batch, by pair of positions."""
    columns, shards = gram_columns(question, batch), Shards({})
    for places, parts, both in paired_reports(columns, len(axes)):
        ends = zip(places, parts, strict=True)
        rows = tuple(axes[g].rows(i, columns[i], both) for g, i in ends)
        shards.setdefault(places, []).append(rows)
    return shards
