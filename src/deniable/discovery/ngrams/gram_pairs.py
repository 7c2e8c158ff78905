"""Steps 4 to 6 of the paper's protocol: which grams stand together.

Reports are grouped by pairs of positions. Each group's joint distribution over the significant
grams and Other is fitted by EM, and pairs more frequent than delta become edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.source import Source
from deniable.columns import ReportBatch
from deniable.compute.backend import Executor
from deniable.compute.cpu.pieces import Piece
from deniable.discovery.ngrams.cliques import PartiteGraph
from deniable.discovery.ngrams.grams import Rows, check_grams, compatible
from deniable.discovery.ngrams.positions import Position
from deniable.inference.joint.evidence import Evidence, evidence_of, layout_of
from deniable.inference.joint.fit import em_step, starting_table
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.models.other import (
    MixtureOther,
    NoOther,
    likelihood_with_other,
    mixture_other,
)
from deniable.protocols import NGrams

MOST_KNOWN = 63
"""Grams of a position that get a category: tables then have at most 64 × 64 cells."""
PASSES = 100
"""Of EM. Its certified maximum puts most light cells at 0 where a pair of positions has few
reports: at q = .32 no string of the trial with URLs then keeps all of its 45 edges."""
Shards = dict[tuple[int, int], list[tuple[NDArray[np.float32], ...]]]


@dataclass(frozen=True, eq=False)
class GramAxis:
    """One position's categories: its significant grams, and Other."""

    grams: Rows
    known: BloomDesign
    other: MixtureOther | NoOther
    position: Position

    @classmethod
    def of(cls, position: Position) -> GramAxis:
        """The most frequent significant grams, up to `MOST_KNOWN`."""
        chosen = position.significant[:MOST_KNOWN]
        other = mixture_other(position.marginal, position.design, chosen)
        return cls(position.grams[chosen], position.design.take(chosen), other, position)

    @property
    def categories(self) -> int:
        return len(self.grams) + (not isinstance(self.other, NoOther))

    def rows(
        self, part: int, bits: NDArray[np.uint8], cohort: NDArray[np.uint16]
    ) -> NDArray[np.float32]:
        """Likelihood rows of reports of one gram part at this position."""
        stratum = self.position.stratum(part, cohort)
        return np.asarray(likelihood_with_other(bits, stratum, self.known, self.other).rows)


def pair_threshold(protocol: NGrams, reports: int) -> float:
    """The paper's delta, as its own number .0062 at p = .25, q = .32 and N = 10^6 needs it.

    sqrt(p2 (1 - p2) / N) / (q2 - p2); the paper prints q2 - p2 under the root. Where gram parts
    differ in noise, the noisiest counts.
    """
    noises = [check_grams(protocol).noise, *(m.noise for m in protocol.grams)]
    each = [(float(n.p_star), float(n.q_star)) for n in noises]
    return max(sqrt(p * (1 - p) / reports) / abs(q - p) for p, q in each)


def build_graph(
    protocol: NGrams,
    source: Source,
    question: str,
    axes: Sequence[GramAxis],
    delta: float,
    executor: Executor,
) -> tuple[PartiteGraph, int]:
    """The graph of grams, edges weighted by their joint frequency; and how many pairs there were.

    Pairs that no string can hold (overlapping grams that disagree, text after the end) are no
    edges, whatever their frequency.
    """
    rows = source.hold(executor, partial(_rows, question, axes))
    found = {pair for some in rows.map(_pairs_in) for pair in some}
    offsets = np.concatenate([[0], np.cumsum([len(a.grams) for a in axes])])
    ends, weights, pairs = [], [], 0
    for g, h in sorted(found):
        left, right = axes[g], axes[h]
        if not (len(left.grams) and len(right.grams)):
            continue
        shape = left.categories, right.categories
        pieces = rows.hold(partial(_piece, layout_of(executor), (g, h), shape))
        evidence = evidence_of(pieces, shape, executor)
        table = _expected(evidence)[: len(left.grams), : len(right.grams)]
        pairs += table.size
        joined = (table > delta) & compatible(protocol, g, h, left.grams, right.grams)
        a, b = np.nonzero(joined)
        ends.append(np.stack([a + offsets[g], b + offsets[h]], axis=1))
        weights.append(table[joined])
    edges = np.concatenate(ends) if ends else np.empty((0, 2), np.int64)
    weight = np.concatenate(weights) if weights else np.empty(0)
    return PartiteGraph(tuple(len(a.grams) for a in axes), edges, weight), pairs


def _expected(evidence: Evidence) -> NDArray[np.float64]:
    """The joint table after `PASSES` of the paper's EM from a uniform start."""
    table = starting_table(None, evidence)
    for _ in range(PASSES):
        evaluation = evidence.evaluate(table)
        table = em_step(table, evaluation)
    return table.reshape(evidence.shape)


def _pairs_in(shards: Shards) -> list[tuple[int, int]]:
    return list(shards)


def _piece(layout: Any, pair: tuple[int, int], shape: tuple[int, int], shards: Shards) -> Piece:
    """All rows of one pair of positions."""
    none = tuple(np.empty((0, size), np.float32) for size in shape)
    joined = zip(none, *shards.get(pair, []), strict=True)
    piece: Piece = layout([np.concatenate(arrays) for arrays in joined], None, None)
    return piece


def _rows(question: str, axes: Sequence[GramAxis], batch: ReportBatch) -> Shards:
    """Likelihood rows of one batch, by pair of positions."""
    parts = len(batch.survey.question(question).protocol.parts) - 1
    columns = [batch.column(question, i + 1) for i in range(parts)]
    made: list[list[tuple[NDArray[np.intp], NDArray[np.float32]]]] = []
    for i, column in enumerate(columns):
        slots = [np.flatnonzero(column.slot == g) for g in range(len(axes))]
        made.append(
            [
                (rows, axis.rows(i, column.bits[rows], column.cohort[rows]))
                for rows, axis in zip(slots, axes, strict=True)
            ]
        )
    place = np.zeros(len(batch), np.int64)
    found: Shards = {}
    for i, j in combinations(range(parts), 2):
        for g, h in combinations(range(len(axes)), 2):
            both = np.flatnonzero((columns[i].slot == g) & (columns[j].slot == h))
            if both.size == 0:
                continue
            pieces = []
            for part, slot in ((i, g), (j, h)):
                rows, likelihood = made[part][slot]
                place[rows] = np.arange(len(rows))
                pieces.append(likelihood[place[both]])
            found.setdefault((g, h), []).append(tuple(pieces))
    return found
