"""Steps 2 and 3 of the paper's protocol: which grams stand at each position.

Reports are grouped by position, and each group's marginal over all D^n grams is decoded like any
other. Beyond 65,536 grams a screen comes first: each gram's score against a background alone,
block by block; only the best are decoded, but all of them are counted by the correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from deniable.columns import ReportBatch
from deniable.discovery.ngrams.grams import Rows, check_grams, gram_blocks, gram_count, row_bits
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.kernels.counting.gather import gather_sums
from deniable.mechanisms import Mechanism
from deniable.protocols import NGrams
from deniable.results import Marginal

Floats = NDArray[np.float64]
DECODED = 1 << 16
SCREENED = 1 << 15


@dataclass(frozen=True, eq=False)
class Tallies:
    """Bit counts of all that was reported: of the full strings, and of each gram part.

    full : strata are cohorts; grams[i] : of part i + 1, strata are positions times cohorts
    """

    full: BitCounts
    grams: tuple[BitCounts, ...]

    def __add__(self, other: Tallies) -> Tallies:
        grams = tuple(a + b for a, b in zip(self.grams, other.grams, strict=True))
        return Tallies(self.full + other.full, grams)


def tally(question: str, batch: ReportBatch) -> Tallies:
    """Count one batch."""
    parts = len(batch.survey.question(question).protocol.parts)
    full, *grams = (count_bits(batch.column(question, i)) for i in range(parts))
    return Tallies(full, tuple(grams))


@dataclass(frozen=True, eq=False)
class Position:
    """The grams decoded at one position, most frequent first.

    grams : uint8[A, n]; marginal : of these, in the same order; design : their bits, strata as in
    `counts`: kinds of noise times cohorts; kind : int[r], the kind of noise of each gram part;
    looked_at : grams that were possible, all of which the correction counts.
    """

    grams: Rows
    marginal: Marginal
    design: BloomDesign
    counts: BitCounts
    kind: tuple[int, ...]
    looked_at: int

    @property
    def significant(self) -> NDArray[np.intp]:
        """Indices of the detected grams, most frequent first."""
        return np.flatnonzero(self.marginal.detected)

    def stratum(self, part: int, cohort: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Strata of reports of the gram part `part` (from 0) at this position."""
        cohorts = self.counts.total.size // (max(self.kind) + 1)
        return (cohort + self.kind[part] * cohorts).astype(np.uint16)


def decode_position(protocol: NGrams, tallies: Tallies, position: int, alpha: float) -> Position:
    """Decode every gram at one position."""
    check_grams(protocol)
    counts, noises = _position_counts(protocol, tallies, position)
    slot = protocol.parts[1].slots[position].mechanism
    total = gram_count(protocol)

    def design_of(grams: Rows) -> BloomDesign:
        one = row_bits(slot, grams)
        p, q = np.repeat(noises, one.shape[0], axis=0).T
        stacked = one if len(noises) == 1 else np.concatenate([one] * len(noises))
        return BloomDesign(stacked, slot.width, p, q)

    if total <= DECODED:
        grams = np.concatenate(list(gram_blocks(protocol)))
    else:
        grams = _screen(protocol, counts, design_of)
    design = design_of(grams)
    found = estimate_marginal(counts, design, alpha=alpha * len(grams) / total)
    order = np.argsort(-np.nan_to_num(found.estimate, nan=-np.inf), kind="stable")
    kind = tuple(noises.index(_noise(m)) for m in protocol.grams)
    ordered = _taken(found, order)
    return Position(grams[order], ordered, design.take(order), counts, kind, total)


def _position_counts(
    protocol: NGrams, tallies: Tallies, position: int
) -> tuple[BitCounts, list[tuple[float, float]]]:
    """Counts of one position, parts with the same noise added up; and (p*, q*) of each kind."""
    cohorts = check_grams(protocol).cohorts
    rows = slice(position * cohorts, (position + 1) * cohorts)
    kinds: dict[tuple[float, float], list[BitCounts]] = {}
    for mechanism, counts in zip(protocol.grams, tallies.grams, strict=True):
        here = BitCounts(counts.ones[rows], counts.total[rows])
        kinds.setdefault(_noise(mechanism), []).append(here)
    merged = [reduce(add, of_kind) for of_kind in kinds.values()]
    ones = np.concatenate([c.ones for c in merged])
    return BitCounts(ones, np.concatenate([c.total for c in merged])), list(kinds)


def _noise(mechanism: Mechanism) -> tuple[float, float]:
    return float(mechanism.noise.p_star), float(mechanism.noise.q_star)


def _screen(protocol: NGrams, counts: BitCounts, design_of: object) -> Rows:
    """The grams of best score against a background alone."""
    assert callable(design_of)
    kept: list[Rows] = []
    scores: list[Floats] = []
    fit = None
    for block in gram_blocks(protocol):
        design = design_of(block)
        if fit is None:
            table = BitTable.of(counts, design, True)
            fit = fit_columns(table, design.indicator(np.zeros(0, np.intp)))
            inverse = np.where(table.live, 1.0 / np.maximum(table.total, 1.0), 0.0)
            mass = np.where(table.live, 1.0 / np.maximum(fit.weight.sum(axis=1), 1e-300), 0.0)
        sums = np.zeros((7, len(block)))
        gather_sums(
            design.positions, fit.weight, fit.residual, np.full_like(fit.residual, np.inf),
            np.zeros_like(fit.residual), np.zeros(len(block)), mass, np.zeros_like(mass), inverse,
            np.zeros_like(mass), sums,
        )  # fmt: skip
        kept.append(block)
        scores.append(sums[1] / np.sqrt(np.maximum(sums[0], 1e-300)))
        if sum(map(len, kept)) > 4 * SCREENED:
            kept, scores = _best(kept, scores)
    return _best(kept, scores)[0][0]


def _best(kept: Sequence[Rows], scores: Sequence[Floats]) -> tuple[list[Rows], list[Floats]]:
    rows, score = np.concatenate(kept), np.concatenate(scores)
    if len(rows) > SCREENED:
        chosen = np.argpartition(-score, SCREENED)[:SCREENED]
        rows, score = rows[chosen], score[chosen]
    return [rows], [score]


def _taken(found: Marginal, order: NDArray[np.intp]) -> Marginal:
    """The marginal in another order."""
    from dataclasses import replace

    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    fields = ("estimate", "standard_error", "low", "high", "p_value", "detected", "identified")
    groups = tuple(tuple(int(rank[i]) for i in group) for group in found.groups)
    return replace(found, groups=groups, **{f: getattr(found, f)[order] for f in fields})
