"""Category model of strings reported as Bloom filters.

A string differs from the empty filter in h bits only, so a likelihood row needs m·h bit tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from deniable.columns import Column
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.detection import Correction
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.base import Candidates, informative_rows, register
from deniable.inference.models.likelihood import Likelihood, checked_strata, ones_per_report
from deniable.inference.models.other import ProductOther, check_frequencies
from deniable.inference.models.strings import StringModel, hashed_positions
from deniable.kernels.array_types import Bytes, Floats, Indices, Integers, Mask
from deniable.kernels.likelihood import bit_rows
from deniable.kernels.likelihood.bit_rows import BloomTables
from deniable.results.marginal import Marginal

MAX_STRATA = 1 << 16
"""Maximum number of strata, which likelihood kernels number with 16 bits."""


@dataclass(frozen=True, eq=False)
class BloomModel(BloomDesign, StringModel[BitCounts]):
    """Model of strings by the bits that they set in each stratum; see `BloomDesign`."""

    @classmethod
    def of(cls, candidates: Candidates) -> BloomModel:
        """Return the model of a question's candidates."""
        mechanism, slots = candidates.question.protocol.mechanisms[0], len(candidates.informative)
        if (strata := slots * mechanism.cohorts) > MAX_STRATA:
            raise InputError(
                f"question {candidates.question.name!r} has {strata} strata, more than the limit "
                f"of {MAX_STRATA}"
            )
        return cls(
            hashed_positions(candidates),
            mechanism.width,
            float(mechanism.noise.p_star),
            float(mechanism.noise.q_star),
            labels=candidates.names,
            slot=np.repeat(np.arange(slots), mechanism.cohorts),
        )

    # --- marginals ------------------------------------------------------------------------------

    def counter(self) -> Callable[[Column], BitCounts]:
        """Return a function that counts the reports of a batch."""
        return partial(_count, self.informative_strata)

    def counts_from_bits(self, counts: BitCounts) -> BitCounts:
        """Convert counts of all outcomes to the counts of this model."""
        kept = self.informative_strata
        return BitCounts(counts.ones * kept[:, None], counts.total * kept)

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        """Estimate how common each candidate is."""
        return estimate_marginal(counts, self, alpha=alpha, correction=correction)

    # --- likelihoods ----------------------------------------------------------------------------

    def string_rows(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | string) for each report; only bits that strings set are read."""
        stratum = checked_strata(bits, stratum, self.strata, self.bits)
        out, ones = Likelihood.empty(len(bits), self.candidates), ones_per_report(bits, self.bits)
        bit_rows.bloom_rows(bits, stratum, ones, self.tables, out.rows, out.log_scale)
        return out

    def mixture_log_likelihood(self, bits: Bytes, stratum: Integers, share: Floats) -> Floats:
        """Return the log-likelihood of each report under a mixture of strings."""
        stratum = checked_strata(bits, stratum, self.strata, self.bits)
        out, ones = np.empty(len(bits)), ones_per_report(bits, self.bits)
        bit_rows.mixture_column(bits, stratum, ones, self.tables, share, out)
        return np.asarray(np.log(out) + self.tables.empty[stratum, ones])

    @cached_property
    def tables(self) -> BloomTables:
        """Lookup tables of the kernels."""
        self._check_noise()
        one, zero = self.q / self.p, (1 - self.q) / (1 - self.p)
        # Likelihood ratio by [stratum, distinct bits, ones among them].
        number = np.arange(self.hashes + 1)
        zeros = np.maximum(number[:, None] - number[None, :], 0)
        ratio = one[:, None, None] ** number[None, None, :] * zero[:, None, None] ** zeros
        # The bits of an unlisted string may be any: the mean of the ratios of all strings.
        unlisted = np.einsum("sdj,djn->sn", ratio, _random_bits(self.bits, self.hashes))
        ones = np.arange(self.bits + 1)
        # Log-likelihood of a value that sets no bits, by number of ones in the report.
        log_one, log_zero = np.log(self.p)[:, None], np.log1p(-self.p)[:, None]
        empty = np.asarray(ones * log_one + (self.bits - ones) * log_zero)
        return BloomTables(self.bits, *self.distinct_first(), ratio, unlisted, empty)

    def _check_noise(self) -> None:
        """Raise InputError for probabilities of 0 or 1, which make some reports impossible."""
        both = np.concatenate([self.p, self.q])
        if both.size and not (both.min() > 0 and both.max() < 1):
            raise InputError(
                "likelihoods need p* and q* strictly between 0 and 1, got "
                f"[{both.min()}, {both.max()}]; reports without noise can simply be counted"
            )

    # --- categories -----------------------------------------------------------------------------

    @property
    def unlisted_bit_probability(self) -> float:
        """Probability that an unlisted string sets a given bit."""
        return float(1.0 - (1.0 - 1.0 / self.bits) ** self.hashes)

    def theta(self, strata: Indices) -> Floats:
        """Return P(outcome | string) in some strata, float64[S, m + 1, k]; last, unlisted ones."""
        positions = self.positions[strata]
        member = np.zeros((len(strata), self.candidates + 1, self.bits))
        np.put_along_axis(member[:, :-1], np.maximum(positions, 0), 1.0, axis=2)
        member[:, :-1][positions[:, :, 0] < 0] = self.unlisted_bit_probability
        member[:, -1] = self.unlisted_bit_probability
        p, q = self.p[strata, None, None], self.q[strata, None, None]
        return np.asarray(p + (q - p) * member)

    def product_other(
        self, question: str, counts: BitCounts, estimate: Floats
    ) -> ProductOther | None:
        """Return the bits of Other: the counts less the share of these strings.

        Each probability is clipped to lie between p* and q*, so that no report is impossible.
        Strata without reports, or without evidence for some string, get the bits of a random
        string.
        """
        self._check_noise()
        check_frequencies(self, estimate)
        mass = 1.0 - float(estimate.sum())
        if mass <= 0:
            return None
        p, q = self.p[:, None], self.q[:, None]
        covered = np.asarray(self.indicator() @ estimate).reshape(self.strata, self.bits)
        expected = p * estimate.sum() + (q - p) * covered
        observed = counts.ones / np.maximum(counts.total, 1)[:, None]
        theta = (observed - expected) / mass
        # Strings for which a stratum has no evidence cannot be subtracted from its counts.
        usable = (counts.total > 0) & self.informative.all(axis=1)
        theta = np.where(usable[:, None], theta, p + (q - p) * self.unlisted_bit_probability)
        return ProductOther(np.clip(theta, np.minimum(p, q), np.maximum(p, q)), mass)


def _random_bits(bits: int, hashes: int) -> Floats:
    """Return the probabilities of how a random string meets a report, float64[h+1, h+1, k+1].

    Entry [d, j, n] is the probability that the string sets d bits, j of which are among the n ones
    of the report. Several of its hashes may choose the same bit, which counts once.
    """
    ones = np.arange(bits + 1)
    chance = np.zeros((hashes + 1, hashes + 1, bits + 1))
    chance[0, 0] = 1.0
    for _ in range(hashes):
        before, chance = chance, np.zeros_like(chance)
        for d in range(hashes):
            chance[d] += before[d] * (d / bits)
            for j in range(d + 1):
                chance[d + 1, j + 1] += before[d, j] * np.maximum(ones - j, 0) / bits
                chance[d + 1, j] += before[d, j] * np.maximum(bits - ones - (d - j), 0) / bits
    return chance


def _count(strata: Mask, column: Column) -> BitCounts:
    """Count the bits of the informative strata of a batch."""
    return count_bits(informative_rows(column, strata), threads=1)


register("bloom", BloomModel)
register("bloom-asymmetric", BloomModel)
