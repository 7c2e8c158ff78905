"""Estimates and intervals of strings that are reported because a test found them.

A string is found if its test statistic exceeds a cut. Strings near the cut are found when they
happened to come out high, so their estimates are too large on average. Here that is undone by
conditioning on the event that the string was found.

Let Y be the estimate of a share θ and T the estimate that the test was made on, both without bias
and jointly normal. The string was found because T > c. If T and Y come from the same reports, they
are nearly equal; if the test used only some of the reports, T given Y has a spread of its own, and
the correction is smaller. All probabilities below are those given T > c.

* *Interval*: all θ ≥ 0 for which P(|Y − θ| ≥ |y − θ|) ≥ 5%, where y is the estimate that was
  observed. It contains the true share in 95% of the cases for every θ. Far above the cut it is
  y ± 1.96 standard errors; at the cut it reaches from 0 to 1.7 standard errors above it.
* *Estimate*: the mean of θ, each θ weighted by its likelihood times the variance of Y. This weight
  makes it unbiased, within half a standard error, for shares around the cut.
* *Total*: near the cut, the density of the scaled distances t = (y − c)/σ of all strings, found or
  not, is taken as exp(−κt − qt²/2 − rt³/6). If all have one share, q = 1 and r = 0; if shares vary
  widely, q = 0; if there are common and rare strings with a gap between them, q < 0 below the
  common ones and r > 0. The mean of θ is then y − σ(κ + qt + rt²/2) (Tweedie's formula), its
  variance (1 − q − rt)σ². All κ, q and r are weighted by their likelihood, so that few strings give
  a wide interval. Summed over all strings, the excess is σ times the density at the cut: that
  alone has to be estimated well, and without r it is too low where the density has a shoulder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from deniable.formatting import Z95
from deniable.inference.power.cutoffs import deviations_at
from deniable.kernels.array_types import Floats, Int64s, Mask
from deniable.results import Measured

FAR = 8.0
"""Standard errors above the cut beyond which nothing is corrected."""
MAX_WEIGHT = 0.99
"""Largest weight of the test in the estimate: no other reports are needed, but some are simpler."""
HALVINGS = 24
GRID_SHARES = 120
NEAR = 5.0
"""Standard errors above the cut up to which strings tell the density near it."""
SLOPES = np.linspace(-6.0, 6.0, 97)
BENDS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
TWISTS = np.array([-0.5, 0.0, 0.5, 1.0])
DENSITIES = np.stack(np.meshgrid(SLOPES, BENDS, TWISTS, indexing="ij")).reshape(3, -1)
"""float64[3, densities]: κ, q and r of each density of distances."""
DISTANCES = np.linspace(-4.0, NEAR, 241)
DEVIATES = ndtri((np.arange(60) + 0.5) / 60)
REST_NODES = np.linspace(-6.0, 8.0, 113)
REST_WEIGHTS = np.exp(-(REST_NODES**2) / 2) / np.exp(-(REST_NODES**2) / 2).sum()


@dataclass(frozen=True, eq=False)
class Cut:
    """What each of n found strings had to exceed; float64[n] each.

    height : the estimate T at which the test just passed
    error : standard error of T
    weight : of T in the final estimate, Y = weight · T + (1 − weight) · U
    """

    height: Floats
    error: Floats
    weight: Floats
    moving: MovingCut | None = None

    def take(self, chosen: Int64s | Mask) -> Cut:
        """Return the cuts of some of the strings."""
        moving = None if self.moving is None else self.moving.take(chosen)
        return Cut(self.height[chosen], self.error[chosen], self.weight[chosen], moving)

    def at(self, rest: Floats) -> Floats:
        """Return the heights, had the other reports given the estimates U, float64[n, …]."""
        height = _as_column(self.height, rest)
        return height if self.moving is None else height * self.moving.ratio(rest)


@dataclass(frozen=True, eq=False)
class MovingCut:
    """How the height depends on U, if those reports set the odds; float64[n] each.

    The cut-off follows from the odds O and the mass m that are expected before the test (see
    `inference.power.cutoffs`). More evidence e raises both: O by m, and m by its variance, per unit
    of e.

    height : λ of the cut-offs
    odds, mass, variance : as they were observed; the mass is 0 if the cut-off does not depend on it
    rest : U as it was observed; precision : evidence per unit of U
    scale : test statistic per unit of mass
    """

    height: float
    odds: Floats
    mass: Floats
    variance: Floats
    rest: Floats
    precision: Floats
    scale: Floats

    def take(self, chosen: Int64s | Mask) -> MovingCut:
        """Return some of the strings."""
        return MovingCut(self.height, *(each[chosen] for each in self.arrays))

    @property
    def arrays(self) -> list[Floats]:
        """The fields that are arrays, in order."""
        return [value for name, value in vars(self).items() if name != "height"]

    def ratio(self, rest: Floats) -> Floats:
        """Return the height at estimates U, float64[n, …], over the one that was observed."""
        columns = (_as_column(x, rest) for x in self.arrays)
        odds, mass, variance, seen, precision, scale = columns
        more = np.maximum(precision * (rest - seen), -mass / np.maximum(variance, 1e-300))
        moved = odds + mass * more + variance * more**2 / 2
        height = deviations_at(self.height, moved, (mass + variance * more) * scale)
        return np.where(mass > 0, height / deviations_at(self.height, odds, mass * scale), 1.0)


def _as_column(values: Floats, like: Floats) -> Floats:
    """Return values[n] with further axes, to be combined with an array [n, …]."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


@dataclass(frozen=True, eq=False)
class SelectedStrings:
    """Estimates with standard errors of found strings, float64[n] each, and what they exceeded.

    total_error : standard error of the sum of the estimates
    reach : float64[2, n], standard errors that an interval reaches below and above an estimate if
        nothing was selected; more than 1.96 if there are few cohorts
    """

    estimate: Floats
    error: Floats
    cut: Cut
    total_error: float
    reach: Floats | None = None

    def take(self, chosen: Mask) -> SelectedStrings:
        """Return some of the strings, as if their estimates were independent."""
        error = self.error[chosen]
        whole = self.total_error if chosen.all() else float(np.sqrt(error @ error))
        reach = None if self.reach is None else self.reach[:, chosen]
        return SelectedStrings(self.estimate[chosen], error, self.cut.take(chosen), whole, reach)

    @property
    def z(self) -> Floats:
        """float64[n]: the estimates in standard errors."""
        return np.asarray(self.estimate / np.maximum(self.error, 1e-300))

    @property
    def near(self) -> Mask:
        """bool[n]: strings so near their cut that a correction matters."""
        return self.estimate < self.middle + FAR * self.error

    @cached_property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """Weight of T in the estimate, and standard errors of T and of U, float64[n] each."""
        weight = np.clip(self.cut.weight, 0.01, MAX_WEIGHT)
        test = np.minimum(self.cut.error, 0.999 * self.error / weight)
        rest = np.sqrt(self.error**2 - (weight * test) ** 2) / (1 - weight)
        return weight, test, rest

    @cached_property
    def middle(self) -> Floats:
        """float64[n]: the estimate at which each string is found about half of the time."""
        low, high = self.cut.height - 9 * self.error, self.cut.height + 9 * self.error
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = middle > self.cut.at(middle)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return high

    def found_with(self, estimate: Floats) -> Floats:
        """Return P(T > c given Y) at estimates[n, k].

        T = Y + (1 − weight) D ξ and U = Y − weight D ξ, where D² is the sum of the variances of T
        and U, and ξ is standard normal.
        """
        weight, test, rest = (x[:, np.newaxis, np.newaxis] for x in self.parts)
        y, deviation = estimate[..., np.newaxis], np.hypot(test, rest) * DEVIATES
        passed = y + (1 - weight) * deviation > self.cut.at(y - weight * deviation)
        return np.asarray(passed.mean(axis=2))

    def beyond(self, share: Floats, least: Floats) -> Floats:
        """Return P(Y ≥ least and T > c) at shares[n, …]; least : float64[n, …]."""
        weight, test, rest = (_as_column(x, share)[..., np.newaxis] for x in self.parts)
        u = share[..., np.newaxis] + rest * REST_NODES
        needed = (least[..., np.newaxis] - (1 - weight) * u) / weight
        needed = np.maximum(needed, self.cut.at(u))
        return np.asarray(ndtr((share[..., np.newaxis] - needed) / test) @ REST_WEIGHTS)

    def found(self, share: Floats) -> Floats:
        """Return P(T > c) at shares[n, …]."""
        return np.maximum(self.beyond(share, np.full_like(share, -np.inf)), 1e-300)

    def farther(self, share: Floats) -> Floats:
        """Return P(|Y − θ| ≥ |y − θ| given T > c) at shares θ[n]."""
        distance = np.abs(self.estimate - share)
        found, above = self.found(share), self.beyond(share, share + distance)
        below = found - self.beyond(share, share - distance)
        return np.asarray((above + below) / found)

    def interval(self) -> tuple[Floats, Floats]:
        """Return the ends of the 95% confidence intervals, float64[n] each."""
        inside = np.maximum(self.estimate, 0.0)
        return self._end(inside, np.zeros(len(inside))), self._end(inside, inside + 4 * self.error)

    def _end(self, inside: Floats, outside: Floats) -> Floats:
        """Halve the distance between a share inside the interval and one outside."""
        kept = self.farther(outside) >= 0.05
        inside = np.where(kept, outside, inside)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            holds = self.farther(middle) >= 0.05
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return inside

    def shrunk(self) -> tuple[Floats, Floats]:
        """Return the corrected estimates and their standard errors, float64[n] each."""
        y, error = self.estimate[:, np.newaxis], self.error[:, np.newaxis]
        step = (y + 6 * error).clip(min=0) / GRID_SHARES
        share = step * np.arange(GRID_SHARES + 1)
        log_found = np.log(self.found(share))
        # E Y = θ + σ² (log P)', and Var Y = σ² + σ⁴ (log P)''
        bend = np.gradient(np.gradient(log_found, axis=1), axis=1) / step**2
        log = np.log(np.clip(1 + error**2 * bend, 0.01, 1)) - log_found
        log -= ((y - share) / error) ** 2 / 2
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = (weight * share).sum(axis=1)
        spread = np.sqrt((weight * (share - mean[:, np.newaxis]) ** 2).sum(axis=1))
        return np.minimum(mean, self.estimate), spread


@dataclass(frozen=True, eq=False)
class CorrectedStrings:
    """Estimates that allow for selection, float64[n] each.

    shrunk_by : by how much each estimate was reduced
    """

    estimate: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    shrunk_by: Floats


def corrected(strings: SelectedStrings) -> CorrectedStrings:
    """Return estimates and intervals of found strings."""
    estimate, error = strings.estimate.copy(), strings.error.copy()
    low, high = estimate - Z95 * error, estimate + Z95 * error
    near = strings.near
    if near.any():
        chosen = strings.take(near)
        estimate[near], error[near] = chosen.shrunk()
        low[near], high[near] = chosen.interval()
    if strings.reach is not None:
        below, above = np.maximum(strings.reach / Z95, 1.0)
        low = strings.estimate - (strings.estimate - low) * below
        high = strings.estimate + (high - strings.estimate) * above
    known = np.isfinite(low)
    low, high = (np.where(known, np.clip(end, 0, 1), at) for end, at in ((low, 0.0), (high, 1.0)))
    return CorrectedStrings(estimate, error, low, high, strings.estimate - estimate)


def corrected_total(strings: SelectedStrings) -> Measured:
    """Return the share of clients that hold any of the strings."""
    strings = strings.take(np.isfinite(strings.estimate))
    total, total_error, error = float(strings.estimate.sum()), strings.total_error, strings.error
    t = (strings.estimate - strings.middle) / error
    near = t < NEAR
    if not near.any():
        return Measured.normal(total, total_error)
    t, error, chosen = t[near], error[near], strings.take(near)
    at = chosen.middle[:, np.newaxis] + error[:, np.newaxis] * DISTANCES
    weight, density_at_end = _densities(t, chosen.found_with(at).mean(axis=0))
    # What the strings beyond `NEAR` were selected by is the density there.
    excess = np.stack([error.sum(), error @ t, error @ t**2 / 2]) @ DENSITIES
    excess += error.sum() * density_at_end
    mean = total - excess
    explained = np.stack([0.0, error @ error, error**2 @ t]) @ DENSITIES
    deviation = np.sqrt(np.maximum(total_error**2 - explained, 1e-4 * total_error**2))
    middle = float((weight * mean).sum())
    spread = float(np.sqrt((weight * ((mean - middle) ** 2 + deviation**2)).sum()))
    low, high = (_quantile(p, weight, mean, deviation) for p in (0.025, 0.975))
    return Measured(max(middle, 0.0), spread, max(low, 0.0), max(high, 0.0))


def _densities(t: Floats, found: Floats) -> tuple[Floats, Floats]:
    """Return the weight of each density, and its height at `NEAR`, float64[densities] each.

    t : distances of n found strings from the cut; found : P(found) at `DISTANCES`
    """
    at = DISTANCES
    density = np.exp(-DENSITIES.T @ _powers(at)) * found
    norm = np.trapezoid(density, at)
    mean = np.trapezoid(density * at, at) / norm
    variance = (np.trapezoid(density * at**2, at) / norm - mean**2).reshape(len(SLOPES), -1)
    prior = np.log(variance / variance.sum(axis=0)).ravel()
    log = prior - DENSITIES.T @ _powers(t).sum(axis=1) - len(t) * np.log(norm)
    weight = np.exp(log - log.max())
    return weight / weight.sum(), density[:, -1] / norm


def _powers(t: Floats) -> Floats:
    """float64[3, n]: what κ, q and r are multiplied by in the logarithm of the density."""
    return np.stack([t, t**2 / 2, t**3 / 6])


def _quantile(p: float, weight: Floats, mean: Floats, deviation: Floats) -> float:
    """Return a quantile of a mixture of normal distributions."""
    low, high = float((mean - 5 * deviation).min()), float((mean + 5 * deviation).max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float((weight * ndtr((middle - mean) / deviation)).sum())
        low, high = (middle, high) if below < p else (low, middle)
    return (low + high) / 2
