"""Category model of options that clients report as a random subset; see `mechanisms.subset`.

Bit i of a report says whether the subset contains category i; the last category is "none". A report
has one of two probabilities given a category, depending on whether the subset contains it. Each bit
by itself is a randomised response, so shares and their tests are those of one bit per option. All
reports set w bits, so bits are correlated; sums of shares and tables from counts allow for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.closed_form import covariance_of_options, estimate_basic
from deniable.inference.marginal.detection import Correction
from deniable.inference.models.base import Candidates, Components, register
from deniable.inference.models.likelihood import Likelihood, checked_strata, rows_by_logits
from deniable.inference.models.options import OptionModel
from deniable.kernels.array_types import Bytes, Floats, Integers
from deniable.kernels.likelihood.bit_rows import ChannelTables
from deniable.mechanisms import Subset
from deniable.results.marginal import Marginal


@dataclass(frozen=True, eq=False)
class SubsetModel(OptionModel):
    """Model of options whose reports are subsets of the options and "none".

    Parameters
    ----------
    pairs : tuple of float
        P(both bits = 1) of two categories that are not the client's, and of the client's own and
        another.
    subset_probability : tuple of float
        Logarithm of the probability of a subset without the client's category, and of one with it.
    """

    pairs: tuple[float, float] = (0.0, 0.0)
    subset_probability: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, candidates: Candidates) -> SubsetModel:
        """Return the model of a question's candidates."""
        mechanism = cast(Subset, candidates.question.protocol.mechanisms[0])
        p, q = mechanism.support
        with_own, without = map(math.log, mechanism.subsets)
        return cls(
            mechanism.labels,
            p,
            q,
            pairs=mechanism.pair_support,
            subset_probability=(math.log1p(-q) - without, math.log(q) - with_own),
        )

    @property
    def theta(self) -> Floats:
        """P(bit = 1 | category), float64[1, m, d]."""
        return self._by_membership(self.p, self.q)[np.newaxis]

    def _by_membership(self, other: float, own: float) -> Floats:
        """Return float64[m, d]: a number for each category's own bit, another for other bits."""
        return np.where(np.eye(len(self.labels), len(self.options) + 1, dtype=bool), own, other)

    @property
    def pair_covariances(self) -> tuple[float, float]:
        """Covariances of two bits, given that neither is the client's, and that one is."""
        return self.pairs[0] - self.p**2, self.pairs[1] - self.p * self.q

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        """Estimate how common each option is."""
        return estimate_basic(
            BitCounts(counts.ones[:, :-1], counts.total, counts.repetition),
            self.p,
            self.q,
            alpha=alpha,
            correction=correction,
            labels=self.options,
            pairs=self.pair_covariances,
        )

    def covariance(self, marginal: Marginal) -> Floats:
        """Return the covariance of the estimated shares of all options, float64[m, m]."""
        return covariance_of_options(marginal, self.q - self.p, self.pair_covariances)

    def silent_share(self, counts: BitCounts, alpha: float) -> tuple[float, float]:
        """Return the share of clients that chose no option, and its standard error."""
        none = BitCounts(counts.ones[:, -1:], counts.total, counts.repetition)
        marginal = estimate_basic(none, self.p, self.q, alpha=alpha)
        return float(marginal.estimate[0]), float(marginal.standard_error[0])

    def likelihood(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | category) for each report."""
        without, with_own = self.subset_probability
        gain = np.ascontiguousarray(self._by_membership(0.0, with_own - without).T)
        tables = ChannelTables(gain[np.newaxis], np.full((1, len(self.labels)), without))
        strata = checked_strata(bits, stratum, 1, len(self.options) + 1)
        return rows_by_logits(tables, bits, strata)

    def components(self) -> Components:
        """Return the categories as mixtures of components."""
        # With the covariances c₀ of two other bits and c₁ of the own and another bit, the variance
        # of Σ a_b x_b with Σ a_b = 0 is Σ a_b² v_b, where v_b = Var(x_b) − c₀ for other bits, and
        # Var(x_b) − 2c₁ + c₀ for the own bit.
        neither, one = self.pair_covariances
        other, own = self.p * (1 - self.p), self.q * (1 - self.q)
        variance = self._by_membership(other - neither, own - 2 * one + neither)
        return Components(
            self.theta.__getitem__, np.eye(len(self.labels)), contrast_variance=variance
        )


register("subset", SubsetModel)
