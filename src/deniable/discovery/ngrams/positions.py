"""Steps 2 and 3 of the paper's protocol: which grams stand at each position.

Reports are grouped by position, and each group's marginal over all D^n grams is decoded like any
other. Beyond 65,536 grams a screen comes first: each gram's score against a background alone,
block by block; only the best are decoded, but all of them are counted by the correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
from deniable.mechanisms import Bloom
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
    looked_at : grams that were possible, all of which the correction counts; start : where in a
    string the grams stand; mechanism : that reports them.
    """

    grams: Rows
    marginal: Marginal
    design: BloomModel
    counts: BitCounts
    kind: tuple[int, ...]
    looked_at: int
    start: int
    mechanism: Bloom

    def take(self, chosen: NDArray[np.intp]) -> Position:
        """Return the position with some of its grams, in this order."""
        arrays = {name: getattr(self.marginal, name)[chosen] for name in PER_CANDIDATE}
        marginal = replace(self.marginal, groups=(), **arrays)
        design = self.design.take(chosen)
        return replace(self, grams=self.grams[chosen], marginal=marginal, design=design)

    def grams_of(self, rows: Rows) -> Rows:
        """Return the strings' own grams at this position."""
        return rows[:, self.start : self.start + self.grams.shape[1]]

    def places(self, rows: Rows) -> NDArray[np.intp]:
        """Return where each string's gram stands among those here; -1 where it does not."""
        index = {gram.tobytes(): i for i, gram in enumerate(self.grams)}
        return np.array([index.get(gram.tobytes(), -1) for gram in self.grams_of(rows)], np.intp)

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
    ones = np.zeros((len(kinds), slot.cohorts, slot.bits), np.int64)
    totals = np.zeros((len(kinds), slot.cohorts), np.int64)
    for each, part in zip(kind, parts, strict=True):
        ones[each] += part.ones[here]
        totals[each] += part.total[here]
    counts = BitCounts(ones.reshape(-1, slot.bits), totals.ravel())
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
    start = protocol.start(position)
    return Position(grams, marginal, design, counts, kind, total, start, slot).take(order)


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
