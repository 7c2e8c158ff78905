"""Joint distribution of two questions from pair counts, by generalised least squares.

Let a_i and b_j be the linear likelihood ratios of a report's two answers (see `ratios`). The sums
R = Σ_k a_k b_kᵀ are linear in pair counts and bit counts, and in stratum s their mean is
n_s·A_sᵀ p B_s with known A_s and B_s. The table p solves this equation. Under independence this is
generalised least squares on all products of bits of the two questions and on the bits themselves;
without the latter, estimates of cells with Other would be poor.

The covariance is a sandwich: the solution is linear in R, and the covariance of R under the
estimated table includes the noise of both answers and the sampling of clients. As for the
likelihood, it covers all cells, it is widened if strata differ by more, and intervals are clipped.
With the heaviest of 60 Zipf strings unlisted and N = 10⁶, intervals cover .95; without the
widening, .87.

The test: U = Σ_s Σ_k (a_k − ā)(b_k − b̄)ᵀ has the mean 0 if answers are independent within strata.
Its covariance is then Σ_s (n_s − 1) V_X ⊗ V_Y, where V is the covariance of the ratios at the
margins. The test needs no joint fit, so cells estimated at 0 do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deniable.errors import InputError
from deniable.inference.association.independence import inverse_root, range_of
from deniable.inference.joint.collapse import collapse_influence
from deniable.inference.joint.uncertainty import invert_on_simplex, widen_errors
from deniable.inference.joint.unlisted import add_unlisted
from deniable.inference.linear.joint_counts import PairCounts
from deniable.inference.linear.ratios import LinearRatios, fit_margin, linear_ratios, on_simplex
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.tails import chi2_tail
from deniable.inference.models.base import Axis, Components
from deniable.kernels.array_types import Floats, Indices
from deniable.results.association import AssociationTest
from deniable.results.covariance import Covariance

STRATA_PER_PRODUCT = 64
"""Number of strata whose covariances are multiplied together."""


@dataclass(frozen=True, eq=False)
class QuestionRatios:
    """Linear likelihood ratios of one question in the strata of pair counts.

    Parameters
    ----------
    components : Components
        The question's categories as mixtures of components.
    margin : float64 array of shape (m,)
        Shares of the categories.
    known : intp array
        Strata of the question that have reports.
    place : intp array of shape (S,)
        Index into `known` of the question's stratum, for each stratum of the pair counts; arbitrary
        for strata without reports.
    """

    components: Components
    margin: Floats
    known: Indices
    place: Indices

    @classmethod
    def of(cls, components: Components, counts: BitCounts, strata: Indices) -> QuestionRatios:
        """Return the ratios at margins that are fitted to the counts.

        counts : bit counts of the question's strata
        strata : intp[S], the question's stratum for each stratum of the pair counts
        """
        known = np.flatnonzero(counts.total)
        place = np.minimum(np.searchsorted(known, strata), len(known) - 1)
        return cls(components, fit_margin(counts, components), known, place)

    @cached_property
    def ratios(self) -> LinearRatios:
        """Ratios in the known strata."""
        return linear_ratios(self.components, self.known, self.margin)

    def collapsed(self, groups: Indices) -> QuestionRatios:
        """Return the ratios of added-up categories; groups[i] is the new category of i."""
        margin = np.asarray(np.bincount(groups, self.margin), np.float64)
        return replace(
            self, components=self.components.collapsed(groups, self.margin), margin=margin
        )


@dataclass(frozen=True, eq=False)
class LinearFit:
    """An estimated table.

    Parameters
    ----------
    covariance : Covariance
        Estimate with p ≥ 0 and Σp = 1, and its covariance.
    unconstrained : float64 array of shape (m, n)
        Estimate without p ≥ 0, which is unbiased.
    influence : float64 array of shape (S, m, n)
        How far each stratum moves the unconstrained estimate.
    """

    covariance: Covariance
    unconstrained: Floats
    influence: Floats

    def shown(self, axes: Sequence[Axis]) -> LinearFit:
        """Return the table of the categories that are shown, with errors for unlisted strings."""
        groups = [axis.groups for axis in axes]
        left, right = (np.eye(int(group.max()) + 1)[group].T for group in groups)
        influence = collapse_influence(self.influence, groups)
        widened = add_unlisted(self.covariance, self.influence, [axis.unlisted for axis in axes])
        with_other = [axis.ends_with_other for axis in axes]
        shown = widen_errors(widened.collapsed(groups), influence, with_other)
        return LinearFit(shown, left @ self.unconstrained @ right.T, influence)


def linear_joint(counts: PairCounts, first: QuestionRatios, second: QuestionRatios) -> LinearFit:
    """Estimate the table of both questions' categories, float64[m, n], and its covariance."""
    if not counts.reports:
        raise InputError("the counts hold no reports")
    m, n = first.ratios.categories, second.ratios.categories
    total = counts.total.astype(np.float64)
    moments = _moments(counts, first, second)
    observed = moments.sum(axis=0).ravel() / total.sum()
    gain_x = first.ratios.gain[first.place].reshape(len(total), -1)
    gain_y = second.ratios.gain[second.place].reshape(len(total), -1)
    normal = _cells((gain_x * total[:, None]).T @ gain_y, m, n) / total.sum()
    bread = invert_on_simplex(normal)
    table = on_simplex(normal, observed)
    unconstrained = table + bread @ (observed - normal @ table)
    spread = _spread(total, first, second, table.reshape(m, n)) / total.sum() ** 2
    covariance = Covariance(table.reshape(m, n), bread @ spread @ bread)
    expected = _means(first, second, unconstrained.reshape(m, n)) * total[:, None, None]
    influence = (moments - expected).reshape(len(total), -1) @ bread / total.sum()
    return LinearFit(covariance, unconstrained.reshape(m, n), influence.reshape(moments.shape))


def linear_test(
    counts: PairCounts, first: QuestionRatios, second: QuestionRatios
) -> AssociationTest:
    """Test whether two questions are independent; χ² with (m − 1)(n − 1) degrees of freedom."""
    score = _moments(counts, first, second, centred=True).sum(axis=0)
    weight = np.maximum(counts.total - 1.0, 0.0)
    spread_x, spread_y = (s.ratios.variance[s.place] for s in (first, second))
    left, right = (range_of(np.tensordot(weight, v, 1)) for v in (spread_x, spread_y))
    x = np.einsum("ia,sij,jb->sab", left, spread_x, left, optimize=True)
    y = np.einsum("ia,sij,jb->sab", right, spread_y, right, optimize=True)
    flat = (x.reshape(len(x), -1) * weight[:, None]).T @ y.reshape(len(y), -1)
    root = inverse_root(_cells(flat, left.shape[1], right.shape[1]))
    statistic = float(np.sum(((left.T @ score @ right).ravel() @ root) ** 2))
    freedom = int(root.shape[1])
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def _moments(
    counts: PairCounts, first: QuestionRatios, second: QuestionRatios, *, centred: bool = False
) -> Floats:
    """Return Σ_k a_k b_kᵀ of each stratum, float64[S, m, n]; about its means if centred."""
    moments = np.zeros((len(counts.total), first.ratios.categories, second.ratios.categories))
    for s in np.flatnonzero(counts.total):
        n = float(counts.total[s])
        i, j = first.place[s], second.place[s]
        x, y = counts.first[s].astype(np.float64), counts.second[s].astype(np.float64)
        slope_x, slope_y = first.ratios.slope[i], second.ratios.slope[j]
        if centred:
            moments[s] = slope_x.T @ (counts.both[s] - np.outer(x, y) / n) @ slope_y
            continue
        centre_x, centre_y = first.ratios.centre[i], second.ratios.centre[j]
        about = counts.both[s] - np.outer(x, centre_y) - np.outer(centre_x, y - n * centre_y)
        off_x, off_y = (x - n * centre_x) @ slope_x, (y - n * centre_y) @ slope_y
        moments[s] = n + off_x[:, None] + off_y[None, :] + slope_x.T @ about @ slope_y
    return moments


def _spread(total: Floats, first: QuestionRatios, second: QuestionRatios, table: Floats) -> Floats:
    """Return the covariance of Σ_k a_k ⊗ b_k under a table, float64[mn, mn].

    In each stratum, E(aaᵀ ⊗ bbᵀ) = Σ_uv p_uv E(aaᵀ | u) ⊗ E(bbᵀ | v), less the square of the mean.
    """
    m, n = table.shape
    square = np.zeros((m * m, n * n))
    for start in range(0, len(total), STRATA_PER_PRODUCT):
        chunk = slice(start, start + STRATA_PER_PRODUCT)
        i, j, weight = first.place[chunk], second.place[chunk], total[chunk]
        second_moment = table @ second.ratios.square[j] * weight[:, None, None]
        square += first.ratios.square[i].reshape(-1, m * m).T @ second_moment.reshape(-1, n * n)
    means = _means(first, second, table).reshape(len(total), -1)
    return _cells(square, m, n) - (means * total[:, None]).T @ means


def _means(first: QuestionRatios, second: QuestionRatios, table: Floats) -> Floats:
    """Return the mean of a bᵀ in each stratum under a table, float64[S, m, n]."""
    gain_x, gain_y = first.ratios.gain[first.place], second.ratios.gain[second.place]
    return np.asarray(gain_x.transpose(0, 2, 1) @ table @ gain_y)


def _cells(flat: Floats, m: int, n: int) -> Floats:
    """Reorder float64[m·m, n·n] from [(i, i′), (j, j′)] to [(i, j), (i′, j′)]."""
    return flat.reshape(m, m, n, n).transpose(0, 2, 1, 3).reshape(m * n, m * n)
