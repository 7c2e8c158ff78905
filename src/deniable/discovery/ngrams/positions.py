"""Steps 2 and 3 of the paper's protocol: which grams stand at each position.

Reports are grouped by position, and each group's marginal over all D^n grams is decoded like any
other. Beyond 65,536 grams a screen comes first: each gram's score against a background alone,
block by block; only the best are decoded, but all of them are counted by the correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.ngrams.grams import (
    bloom,
    gram_blocks,
    gram_count,
    gram_mechanisms,
    row_bits,
)
from deniable.discovery.shared.strings import Rows
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.clipping import CLIP, scores
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.models.bloom import BloomModel
from deniable.protocols import NGrams
from deniable.results import Marginal

DECODED = 1 << 16
SCREENED = 1 << 15
PER_CANDIDATE = ("estimate", "standard_error", "low", "high", "p_value", "detected", "identified")


@dataclass(frozen=True, eq=False)
class Position:
    """The grams decoded at one position, most frequent first.

    grams : uint8[A, n]; marginal : of these, in the same order; design : their bits, strata as in
    `counts`: kinds of noise times cohorts; kind : int[r], the kind of noise of each gram part;
    looked_at : grams that were possible, all of which the correction counts.
    """

    grams: Rows
    marginal: Marginal
    design: BloomModel
    counts: BitCounts
    kind: tuple[int, ...]
    looked_at: int

    @property
    def significant(self) -> NDArray[np.intp]:
        """Indices of the detected grams, most frequent first."""
        return np.flatnonzero(self.marginal.detected)

    def stratum(self, part: int, cohort: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Return the strata of reports of the gram part `part` (from 0) at this position."""
        cohorts = self.counts.total.size // (max(self.kind) + 1)
        return (cohort + self.kind[part] * cohorts).astype(np.uint16)


def decode_position(
    protocol: NGrams, parts: Sequence[BitCounts], position: int, alpha: float
) -> Position:
    """Decode every gram at one position; parts : counts of each gram part."""
    noises = [m.support for m in gram_mechanisms(protocol)]
    kinds = list(dict.fromkeys(noises))
    kind = tuple(map(kinds.index, noises))
    slot = bloom(protocol.parts[1].slots[position].mechanism)
    here = slice(position * slot.cohorts, (position + 1) * slot.cohorts)
    # Parts with the same noise are added up.
    merged = [
        reduce(
            add,
            (
                BitCounts(c.ones[here], c.total[here])
                for c, k in zip(parts, kind, strict=True)
                if k == i
            ),
        )
        for i in range(len(kinds))
    ]
    counts = BitCounts(
        *(np.concatenate(a) for a in zip(*((c.ones, c.total) for c in merged), strict=True))
    )
    p, q = np.repeat(kinds, slot.cohorts, axis=0).T

    def design_of(grams: Rows) -> BloomModel:
        bits = row_bits(slot, grams)
        return BloomModel(np.tile(bits, (len(kinds), 1, 1)), slot.width, p, q)

    total = gram_count(protocol)
    if total <= DECODED:
        grams = np.concatenate(list(gram_blocks(protocol)))
    else:
        grams = _screen(protocol, counts, design_of)
    design = design_of(grams)
    marginal = estimate_marginal(counts, design, alpha=alpha * len(grams) / total)
    order = np.argsort(-np.nan_to_num(marginal.estimate, nan=-np.inf), kind="stable")
    ordered = _ordered(marginal, order)
    return Position(grams[order], ordered, design.take(order), counts, kind, total)


def _screen(protocol: NGrams, counts: BitCounts, design_of: Callable[[Rows], BloomModel]) -> Rows:
    """Return the grams of best score against a background alone."""
    grams, best = np.empty((0, protocol.gram), np.uint8), np.empty(0)
    background = design_of(grams)
    table = BitTable.of(counts, background, True)
    fit = fit_columns(table, background.indicator())
    for block in gram_blocks(protocol):
        sums, _ = scores(table, design_of(block), fit, np.zeros(len(block)), CLIP)
        grams = np.concatenate([grams, block])
        best = np.concatenate([best, sums[1] / np.sqrt(np.maximum(sums[0], 1e-300))])
        if len(grams) > SCREENED:
            chosen = np.argpartition(-best, SCREENED)[:SCREENED]
            grams, best = grams[chosen], best[chosen]
    return grams


def _ordered(marginal: Marginal, order: NDArray[np.intp]) -> Marginal:
    """Return the marginal with its candidates in another order."""
    rank = np.argsort(order)
    groups = tuple(tuple(int(rank[i]) for i in group) for group in marginal.groups)
    arrays = {name: getattr(marginal, name)[order] for name in PER_CANDIDATE}
    return replace(marginal, groups=groups, **arrays)
