"""How likely a search by n-grams is to find a string that a given share of clients holds.

The grams of a string must be among those that are kept at their positions, the search must not
drop the string on its way from the last position to the first, and the string must pass the test by
the full-string reports, at a cut-off that depends on the evidence of the grams. A `GramSearch`
records these limits for the passes of a search, and follows strings that took no part in it,
with noise drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from deniable.inference.power.cutoffs import cutoffs_at
from deniable.inference.power.half_found import half_found_by
from deniable.kernels.array_types import Floats, Mask

MIN_CUTOFF = 1e-30
"""A cut-off that no string passes (11 standard errors): the string counts, but is not tested."""


def gram_prior(
    unexplained: Floats, variance: Floats, f: float, left: float, possible: int
) -> Floats:
    """Return how likely grams are to belong to a string of frequency f, as log-probabilities.

    A gram is present because a string of frequency f holds it, or its estimate is noise.

    unexplained, variance : estimates of what known strings leave, and their variances
    left : share of clients that known strings leave; possible : number of possible grams
    """
    ratio = (f * unexplained - f * f / 2) / variance
    noise_odds = np.log(possible * f / left) - ratio
    holders = np.log(np.maximum(unexplained / f, 1.0)) + np.log(f / left)
    return np.asarray(holders - np.logaddexp(0.0, noise_odds))


def own_share(unexplained: Floats, left: float) -> Floats:
    """Return the part of a pair's excess that remains if others hold the gram, too."""
    return np.asarray(1.0 - np.minimum(np.clip(unexplained, 0.0, left) / left, 0.98))


def pair_gain(excess: Floats, information: Floats, effect: Floats) -> Floats:
    """Return log-likelihood ratios of pairs with this effect against none."""
    return np.asarray((effect * excess - effect**2 / 2) * information)


@dataclass(frozen=True, eq=False)
class PassLimits:
    """The limits of one pass.

    frequency, left : of the pass, see `gram_prior`
    least : float64[k], least score kept after each position
    height, share : λ and α of the cut-offs, see `cutoffs`; no string's cut-off exceeds the share
    learnt : whether the pass had learnt which grams follow each other
    error : standard error of the frequency of a string in the test
    """

    frequency: float
    left: float
    least: Floats
    height: float
    share: float
    learnt: bool
    error: float


@dataclass(frozen=True, eq=False)
class GramNoise:
    """Standard normal noise of n strings.

    grams : float64[k, n]; pairs : by pair of positions, float64[n]; whole : float64[n]
    """

    grams: Floats
    pairs: Mapping[tuple[int, int], Floats]
    whole: Floats


@dataclass(frozen=True, eq=False)
class GramSearch:
    """The passes of a search, and what it sees of n strings besides their own mass and noise.

    error : float64[k, n], standard errors of the gram of each position
    shared : float64[k, n], mass of other strings with the same gram
    least_gram : float64[k], least estimate of the grams that are kept
    excess, information : by pair of positions, float64[n], excess of the pair of grams by other
        strings, and one over its variance
    follows : float64[k, n], what was learnt about the gram after that of each position
    possible : number of possible grams
    expected_error : standard error by which a pass expects the z of its tests
    """

    passes: Sequence[PassLimits]
    error: Floats
    shared: Floats
    least_gram: Floats
    excess: Mapping[tuple[int, int], Floats]
    information: Mapping[tuple[int, int], Floats]
    follows: Floats
    possible: int
    expected_error: float

    def threshold(self) -> float:
        """Return the frequency at which half of the strings are found."""
        rng, count = np.random.default_rng(0), self.error.shape[1]
        noise = GramNoise(
            grams=rng.standard_normal(self.error.shape),
            pairs={pair: rng.standard_normal((count,)) for pair in self.excess},
            whole=rng.standard_normal((count,)),
        )
        error = self.passes[-1].error
        return half_found_by(lambda mass: float(self.found(mass, noise).mean()), error)

    def found(self, mass: float, noise: GramNoise) -> Mask:
        """bool[n]: which strings of this mass any pass finds."""
        found = np.zeros(len(noise.whole), bool)
        for each in self.passes:
            kept, score = self.scored(each, mass, noise)
            z = np.full(len(score), each.frequency / self.expected_error)
            cutoff = np.minimum(cutoffs_at(each.height, score, z), each.share)
            passed = mass / each.error + noise.whole >= -ndtri(np.maximum(cutoff, MIN_CUTOFF))
            found |= kept & (cutoff > MIN_CUTOFF) & passed
        return found

    def scored(self, each: PassLimits, mass: float, noise: GramNoise) -> tuple[Mask, Floats]:
        """Return which strings of this mass a pass keeps, and their scores."""
        f, left, shared = each.frequency, each.left, self.shared
        unexplained = mass + shared + self.error * noise.grams
        prior = gram_prior(unexplained, self.error**2, f, left, self.possible)
        own = own_share(unexplained, left)
        kept: Mask = np.all(unexplained > self.least_gram[:, np.newaxis], axis=0)
        score = np.zeros(len(noise.whole))
        for g in reversed(range(len(prior))):
            score = score + prior[g] + self.follows[g] * each.learnt
            for h in range(g + 1, len(prior)):
                information = self.information[g, h]
                independent = mass * (shared[g] + shared[h] + mass) / left
                excess = mass - independent + self.excess[g, h]
                excess = excess + noise.pairs[g, h] / np.sqrt(information)
                score = score + pair_gain(excess, information, f * own[g] * own[h])
            kept &= score >= each.least[g]
        return kept, score + np.log(left / f)
