"""Other: the likelihood of a report whose value is none of the fitted categories.

A joint estimate without Other is badly biased (paper, "Handling the Other category"). There are two
models:

- The paper's: the bits of Other are independent, with the frequencies that remain when the share of
  the known categories is subtracted from the counts. The paper prints N - T_s where it means the
  noise of the known categories, N * sum(p) - T_s; as printed, every probability is too low by p*.
- A mixture, the default: a real report of Other sets h particular bits, which independent bits do
  not describe. Its value is one of the strings that the marginal saw outside the categories, or
  else a random string. A random string sets any h bits, of which some may be the same; its
  likelihood is the mean over all choices. If reports are numbers, each is equally likely.

With five known of 100 Zipf strings, N = 50,000 and four runs, the sum of the known shares is off by
-.030 with the product, -.0005 with the mixture, and +.56 without Other (weights i^20: -.003, -.001,
+.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from deniable.errors import InputError
from deniable.inference.models.base import Components
from deniable.inference.models.likelihood import channel_rows
from deniable.kernels.array_types import Bytes, Floats, Indices, Integers
from deniable.results.marginal import Marginal

if TYPE_CHECKING:
    from deniable.inference.models.strings import StringModel

    Strings = StringModel[Any]

TAIL_P_VALUE = float(special.ndtr(-2.0))
"""p-value below which a string outside the categories becomes part of Other's mixture."""


@dataclass(frozen=True, eq=False)
class ProductOther:
    """Other as independent bits.

    Parameters
    ----------
    bits : float64 array of shape (S, k)
        P(bit = 1).
    mass : float
        Share of Other in all reports.
    """

    bits: Floats
    mass: float

    def log_likelihood(self, bits: Bytes, stratum: Integers) -> Floats:
        """Return the log-likelihood of each report, float64[N]."""
        return channel_rows(self.bits[:, None, :], bits, stratum).log_scale

    def components(self, known: Strings) -> Components:
        """Return the known strings' components, with Other as the last category."""

        def theta(strata: Indices) -> Floats:
            out = known.theta(strata)
            out[:, -1] = self.bits[strata]
            return out

        return Components(theta, np.eye(known.candidates + 1))


@dataclass(frozen=True, eq=False)
class MixtureOther:
    """Other as a mixture of strings seen in the marginal, and of random strings.

    Parameters
    ----------
    tail : StringModel
        The strings that were seen.
    shares : float64 array of shape (tail + 1,)
        Share of each string in Other, and last of random strings; they sum to 1.
    mass : float
        Share of Other in all reports.
    """

    tail: Strings
    shares: Floats
    mass: float

    def log_likelihood(self, bits: Bytes, stratum: Integers) -> Floats:
        """Return the log-likelihood of each report, float64[N]."""
        return self.tail.mixture_log_likelihood(bits, stratum, self.shares)

    def components(self, known: Strings) -> Components:
        """Return the known strings' components, with Other as the last category."""
        size, both = known.candidates, known.joined(self.tail)
        mixing = np.zeros((size + 1, both.candidates + 1))
        mixing[:size, :size] = np.eye(size)
        mixing[size, size:] = self.shares
        return Components(both.theta, mixing, known.exclusive)


Other = ProductOther | MixtureOther
"""A model of all values that are not categories."""


def mixture_other(
    marginal: Marginal, model: Strings, known: Indices, *, max_tail: int = 200
) -> MixtureOther | None:
    """Return the mixture model of Other, or None if the known categories sum to 1 or more.

    The tail consists of the candidates that have no category of their own and were detected or are
    more than two standard errors above 0; at most `max_tail`, the most common ones. Random strings
    get the remaining share of the reports, but at least 1% of Other's mass plus .001: estimates of
    the tail are noisy, and reports of other strings must not become impossible.

    Parameters
    ----------
    marginal : Marginal
        Marginal of all candidates of `model`.
    model : StringModel
        Model of all candidates.
    known : intp array
        Candidates that have their own category.
    max_tail : int
        Maximum number of strings in the tail.
    """
    estimate = marginal.estimate
    if estimate.size != model.candidates:
        raise InputError(
            f"the marginal has {estimate.size} candidates, but the model has {model.candidates}"
        )
    check_frequencies(model.take(known), estimate[known])
    total = float(estimate[known].sum())
    if total >= 1:
        return None
    seen = (marginal.detected | (marginal.p_value < TAIL_P_VALUE)) & (estimate > 0)
    seen[known] = False
    tail = np.flatnonzero(seen)
    tail = tail[np.argsort(-estimate[tail], kind="stable")][:max_tail]
    mass = 1.0 - total
    remainder = max(mass - float(estimate[tail].sum()), 0.01 * mass + 0.001)
    weights = np.append(estimate[tail], remainder)
    return MixtureOther(model.take(tail), weights / weights.sum(), mass)


def check_frequencies(model: Strings, estimate: Floats) -> None:
    """Raise InputError if the frequency of a category is not known."""
    if estimate.shape != (model.candidates,) or not np.isfinite(estimate).all():
        raise InputError(
            f"expected {model.candidates} finite frequencies of the known categories, got "
            f"shape {estimate.shape} with {int((~np.isfinite(estimate)).sum())} not finite; "
            "a candidate without an estimate cannot be a category"
        )
