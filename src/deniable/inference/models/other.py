"""Other: the likelihood of a report whose value is none of the categories being fitted.

Leaving Other out biases a joint estimate badly (paper, "Handling the Other category"). Two models:

- The paper's: bits of Other are independent, with the frequency that remains when the known
  categories' share is taken off the counts. The paper prints N - T_s where the known categories'
  noise is meant, N * sum(p) - T_s; as printed every probability is too low by p*.
- A mixture, the default: a real report of Other sets h particular bits, which independent bits
  do not describe. It is one of the strings that the marginal decode saw outside the categories, or
  else a random string, whose ratio to the empty filter is (mean over bits of the bit's ratio)^h, or
  whose number, where reports are numbers, is any of them.
  Five known of 100 Zipf strings, N = 50,000, four runs: the known sum is off by -.030 with the
  product, -.0005 with the mixture, +.56 without Other (weights i^20: -.003, -.001, +.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from deniable.compute.arrays import ArrayKernels
from deniable.errors import InputError
from deniable.inference.models.base import Components
from deniable.inference.models.bit_likelihood import channel_rows
from deniable.kernels.array_types import Bytes, DeviceArray, Floats, Indices, Integers
from deniable.results.marginal import Marginal

if TYPE_CHECKING:
    from deniable.inference.models.strings import StringModel

    Strings = StringModel[Any]

TAIL_P_VALUE = float(stats.norm.sf(2.0))


@dataclass(frozen=True, eq=False)
class ProductOther:
    """Other as independent bits. bits : float64[S, k], P(bit = 1)."""

    bits: Floats
    mass: float

    def log_likelihood(self, bits: Bytes, stratum: Integers, arrays: ArrayKernels) -> DeviceArray:
        """float64[N], of every report."""
        return channel_rows(self.bits[:, None, :], bits, stratum, arrays).log_scale

    def components(self, known: Strings) -> Components:
        """Known strings, and Other as the last category."""

        def theta(strata: Indices) -> Floats:
            out = known.theta(strata)
            out[:, -1] = self.bits[strata]
            return out

        return Components(theta, np.eye(known.candidates + 1))


@dataclass(frozen=True, eq=False)
class MixtureOther:
    """Other as seen strings and random strings.

    tail : the seen strings; shares : float64[tail + 1] of sum 1, that of random strings last
    """

    tail: Strings
    shares: Floats
    mass: float

    def log_likelihood(self, bits: Bytes, stratum: Integers, arrays: ArrayKernels) -> DeviceArray:
        """float64[N], of every report."""
        return self.tail.mixture_log(bits, stratum, self.shares, arrays)

    def components(self, known: Strings) -> Components:
        """Known strings, and Other as the last category."""
        size, both = known.candidates, known.joined(self.tail)
        mixing = np.zeros((size + 1, both.candidates + 1))
        mixing[:size, :size] = np.eye(size)
        mixing[size, size:] = self.shares
        return Components(both.theta, mixing, known.exclusive)


Other = ProductOther | MixtureOther
"""A model of every value that is not listed; `mass` is its share of all reports."""


def mixture_other(
    marginal: Marginal, model: Strings, known: Indices, *, most: int = 200
) -> MixtureOther | None:
    """Return the mixture model: strings of the marginal decode outside `known`, and the remainder.

    known : candidates that have their own category. The tail is what else was detected or lies
    more than two standard errors above 0, the `most` largest of it. The remainder's share of all
    reports is what is left, but at least 1% of Other's mass plus .001: the tail's estimates are
    noisy, and a report from elsewhere must not become impossible. None if nothing is left.
    """
    estimate = marginal.estimate
    if estimate.size != model.candidates:
        raise InputError(
            f"the marginal has {estimate.size} candidates, the model {model.candidates}"
        )
    check_known(model.take(known), estimate[known])
    total = float(estimate[known].sum())
    if total >= 1:
        return None
    seen = (marginal.detected | (marginal.p_value < TAIL_P_VALUE)) & (estimate > 0)
    seen[known] = False
    tail = np.flatnonzero(seen)
    tail = tail[np.argsort(-estimate[tail], kind="stable")][:most]
    mass = 1.0 - total
    remainder = max(mass - float(estimate[tail].sum()), 0.01 * mass + 0.001)
    weights = np.append(estimate[tail], remainder)
    return MixtureOther(model.take(tail), weights / weights.sum(), mass)


def check_known(model: Strings, estimate: Floats) -> None:
    """Refuse a category whose frequency is not known."""
    if estimate.shape != (model.candidates,) or not np.isfinite(estimate).all():
        raise InputError(
            f"expected {model.candidates} finite frequencies of the known categories, got "
            f"shape {estimate.shape} with {int((~np.isfinite(estimate)).sum())} not finite; "
            "a candidate that is not identified cannot be a category"
        )
