"""The score test of independence: are two variables' likelihood ratios correlated?

With α_k = a_k / (a_k · p̂_X) and β_k = b_k / (b_k · p̂_Y) at the two *marginal* fits, the score of
the joint log-likelihood at the independence table is U = Σ_k (α_k − 1)(β_k − 1)ᵀ. No joint fit is
needed, so cells estimated at 0, which ruin the other tests, do not matter.

We centre α and β and take the variance that U has when reports of Y are shuffled against reports of
X: under independence every such shuffle is as likely as what was seen. That holds whatever the
likelihoods are, so an imprecise row for "Other" cannot make the test reject. Where cohorts are
shared by the two variables, shuffles stay within a cohort (`strata`).

The statistic is compared with χ²((m−1)(n−1)). With fewer than 200 reports per degree of freedom, or
with categories so rare that heavy tails widen the statistic's variance by 2% or more, that would
reject too often, and the statistic is compared with its own value over random shuffles instead.
That is exact at any size if reports are exchangeable within strata: where variables share cohorts,
pass the cohorts as strata. The smallest p-value is then 1 / (shuffles + 1).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.special import chdtrc

from deniable.compute.executor import one_blas_thread
from deniable.errors import InputError
from deniable.inference.evidence import Evidence, Floats, Rows
from deniable.inference.solver import maximise_evidence
from deniable.results.association import AssociationTest

REPORTS_PER_FREEDOM = 200
TAIL_TOLERANCE = 0.02
_CHUNK = 2048


def score_test(
    evidence: Evidence,
    *,
    strata: npt.ArrayLike | None = None,
    shuffles: int = 999,
    rng: np.random.Generator | None = None,
) -> AssociationTest:
    """Test the independence of two variables without fitting their joint distribution.

    strata : one integer per report row, in the order of the shards, or None for one stratum.
    rng : draws the shuffles, where they are needed; seeded with 0 unless given.
    """
    if len(evidence.shape) != 2:
        raise InputError(f"the score test is for two variables, got {len(evidence.shape)}")
    weights = _weights(evidence)
    with one_blas_thread():
        x, y = (_ratios(evidence.only(variable)) for variable in (0, 1))
        whitened = _Whitened.of(x, y, weights, _layers(strata, len(x)))
        statistic, freedom = whitened.statistic(), whitened.freedom
        few = evidence.weight < REPORTS_PER_FREEDOM * freedom
        heavy = whitened.tail_weight() > TAIL_TOLERANCE
        if freedom > 0 and (few or heavy) and np.all(weights == np.round(weights)):
            rng = rng or np.random.default_rng(0)
            p_value = whitened.shuffled_p_value(statistic, shuffles, rng)
            return AssociationTest("score", statistic, freedom, p_value, "shuffles")
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def chi2_tail(freedom: int, statistic: float) -> float:
    """P(χ² ≥ statistic); 1 where there is nothing to test."""
    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def _ratios(evidence: Evidence) -> Rows:
    """α − 1 for one variable, float32[N, m], at its own maximum-likelihood margin."""
    margin = maximise_evidence(evidence).table.astype(np.float32)
    rows = np.concatenate([piece.rows[0] for piece in evidence.pieces])
    rows /= np.maximum(rows @ margin, np.float32(1e-30))[:, None]
    rows -= 1.0
    return rows


def _weights(evidence: Evidence) -> Floats:
    return np.concatenate(
        [np.ones(p.count) if p.weights is None else p.weights for p in evidence.pieces]
    )


def _layers(strata: npt.ArrayLike | None, count: int) -> list[npt.NDArray[np.intp]]:
    """Row numbers of each stratum."""
    if strata is None:
        return [np.arange(count)]
    labels = np.asarray(strata)
    if labels.shape != (count,):
        raise InputError(f"strata must be {count} integers, one per row, got shape {labels.shape}")
    order = np.argsort(labels, kind="stable")
    edges = np.flatnonzero(np.diff(labels[order])) + 1
    return list(np.split(order, edges))


@dataclass(frozen=True)
class _Whitened:
    """Centred ratios stratum by stratum, and a factor that whitens the vectorised score.

    parts : per stratum (x float32[n, r], y float32[n, s], weights float64[n])
    root : float64[rs, dof], rootᵀ·vec(U) has covariance 1 under shuffling
    """

    parts: list[tuple[Rows, Rows, Floats]]
    root: Floats

    @classmethod
    def of(
        cls, x: Rows, y: Rows, weights: Floats, layers: list[npt.NDArray[np.intp]]
    ) -> "_Whitened":
        parts = []
        for layer in layers:
            w = weights[layer]
            if w.sum() > 1:
                parts.append((_centred(x[layer], w), _centred(y[layer], w), w))
        if not parts:
            raise InputError("every stratum holds a single report; pass coarser strata")
        scatters = [(_product(a, a, w), _product(b, b, w), w.sum()) for a, b, w in parts]
        left = _range(np.sum([xx for xx, _, _ in scatters], axis=0))
        right = _range(np.sum([yy for _, yy, _ in scatters], axis=0))
        # Shuffling n reports gives vec(U) the covariance Sxx ⊗ Syy / (n − 1), exactly.
        if len(scatters) == 1:
            xx, yy, count = scatters[0]
            sides = [
                side @ _inverse_root(side.T @ scatter @ side)
                for side, scatter in ((left, xx), (right, yy / (count - 1)))
            ]
            return cls(parts, np.asarray(np.kron(*sides), np.float64))
        spread = np.zeros((left.shape[1] * right.shape[1],) * 2)
        for xx, yy, count in scatters:
            spread += np.kron(left.T @ xx @ left, right.T @ yy @ right / (count - 1))
        root = np.kron(left, right) @ _inverse_root(spread)
        return cls(parts, root)

    @property
    def freedom(self) -> int:
        """Dimensions of the score: (m − 1)(n − 1), fewer where categories cannot be told apart."""
        return int(self.root.shape[1])

    def statistic(self) -> float:
        """Squared length of the whitened score."""
        score = sum((_product(x, y, w) for x, y, w in self.parts), np.zeros(()))
        return float(np.sum((score.ravel() @ self.root) ** 2))

    def tail_weight(self) -> float:
        """Share by which rare, large ratios widen the variance of the statistic over χ²'s.

        For whitened x of dimension r, b = E|x|⁴ − r(r+2) is 0 if x is normal; shuffling n pairs
        gives the statistic the variance 2·dof + b_x·b_y / n, to first order.
        """
        if not self.freedom:
            return 0.0
        count = sum(float(w.sum()) for _, _, w in self.parts)
        left = _excess_kurtosis([(x, w) for x, _, w in self.parts])
        right = _excess_kurtosis([(y, w) for _, y, w in self.parts])
        return left * right / (2.0 * count * self.freedom)

    def shuffled_p_value(self, statistic: float, shuffles: int, rng: np.random.Generator) -> float:
        """Share of shuffles, the one seen among them, with a score at least as long."""
        whole = [
            (np.repeat(x, w.astype(np.int64), axis=0), np.repeat(y, w.astype(np.int64), axis=0))
            for x, y, w in self.parts
        ]
        root = self.root.astype(np.float32)
        as_long = 1
        for _ in range(shuffles):
            score = sum((x.T @ y[rng.permutation(len(y))] for x, y in whole), np.zeros(()))
            length = float(np.sum((score.ravel().astype(np.float32) @ root) ** 2))
            as_long += length >= statistic * (1 - 1e-6)
        return as_long / (shuffles + 1)


def _centred(rows: Rows, weights: Floats) -> Rows:
    mean = (weights @ rows.astype(np.float64)) / weights.sum()
    centred: Rows = rows - mean.astype(np.float32)
    return centred


def _product(x: Rows, y: Rows, weights: Floats) -> Floats:
    """Σ_k w_k x_k y_kᵀ in float64, so that rounding does not pass for a direction in `_range`."""
    total = np.zeros((x.shape[1], y.shape[1]))
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        total += (x[chunk] * weights[chunk, None]).T @ y[chunk].astype(np.float64)
    return total


def _excess_kurtosis(parts: list[tuple[Rows, Floats]]) -> float:
    """E|x|⁴ − r(r+2) of centred rows, whitened to dimension r."""
    count = sum(float(w.sum()) for _, w in parts)
    scatter = np.sum([_product(x, x, w) for x, w in parts], axis=0) / count
    basis = _range(scatter)
    root = (basis @ _inverse_root(basis.T @ scatter @ basis)).astype(np.float32)
    fourth = sum(float(w @ np.sum((x @ root) ** 2, axis=1) ** 2) for x, w in parts)
    return fourth / count - float(root.shape[1] * (root.shape[1] + 2))


def _range(scatter: Floats) -> Floats:
    """Orthonormal basis of the directions in which centred ratios vary at all.

    One direction never does: p̂, because α_k · p̂ = 1 for every report, up to float32's 1e-7.
    """
    values, vectors = eigh(scatter)
    basis: Floats = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    return basis


def _inverse_root(spread: Floats) -> Floats:
    """R with RᵀSR = 1 on the range of S."""
    if not spread.size:
        return spread
    values, vectors = eigh(spread)
    kept = values > 1e-9 * values[-1]
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root
