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

Three passes over the pieces, each of which gives sums only: the strata's means, their scatters
around them, and the tails. To be shuffled, rows are brought together, up to a million of them;
more are shuffled within their pieces, which is as exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.special import chdtrc

from deniable.compute.executor import Held, one_blas_thread
from deniable.errors import InputError
from deniable.inference.evidence import Evidence
from deniable.inference.piece import Floats, Integers, Piece, Rows
from deniable.inference.solver import maximise_evidence
from deniable.results.association import AssociationTest

REPORTS_PER_FREEDOM = 200
TAIL_TOLERANCE = 0.02
_CHUNK = 2048
_TOGETHER = 1 << 20
"""Rows that are brought together to be shuffled; more stay where they are."""
_AT_A_TIME = 100
"""Shuffles whose scores are sent at a time."""


def score_test(
    evidence: Evidence,
    *,
    strata: npt.ArrayLike | None = None,
    shuffles: int = 999,
    rng: np.random.Generator | None = None,
) -> AssociationTest:
    """Test the independence of two variables without fitting their joint distribution.

    strata : one integer per report row, in the order of the shards; without, the evidence's own.
    rng : draws the shuffles, where they are needed; seeded with 0 unless given.
    """
    if len(evidence.shape) != 2:
        raise InputError(f"the score test is for two variables, got {len(evidence.shape)}")
    if strata is not None:
        evidence = evidence.stratified(strata)
    with one_blas_thread():
        margins = [
            maximise_evidence(evidence.only(variable)).table.astype(np.float32)
            for variable in (0, 1)
        ]
        ratios = evidence.pieces.hold(partial(_ratios, margins))
        means = ratios.sum(_totals).means()
        centred = ratios.hold(partial(_centred, means))
        scatters = centred.sum(partial(_scatters, len(means.labels)))
        root = _whitening(means, scatters)
        freedom = int(root.shape[1])
        statistic = float(np.sum((scatters.score.ravel() @ root) ** 2))
        few = evidence.weight < REPORTS_PER_FREEDOM * freedom
        if freedom > 0 and means.whole and (few or _heavy(means, scatters, centred, freedom)):
            rng = rng or np.random.default_rng(0)
            lengths = _shuffled_lengths(centred, evidence.count, root, shuffles, rng)
            as_long = int(np.sum(lengths >= statistic * (1 - 1e-6)))
            p_value = (1 + as_long) / (shuffles + 1)
            return AssociationTest("score", statistic, freedom, p_value, "shuffles")
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def chi2_tail(freedom: int, statistic: float) -> float:
    """P(χ² ≥ statistic); 1 where there is nothing to test."""
    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


# --- each piece's part ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Ratios:
    """α − 1 and β − 1 of a piece's rows, float32[N, m] and float32[N, n], ordered by stratum.

    weights : float64[N]; labels : the strata among them, ascending; edges : where each begins,
    and N.
    """

    x: Rows
    y: Rows
    weights: Floats
    labels: Integers
    edges: Integers

    def layers(self) -> Iterable[tuple[int, slice]]:
        """Each stratum's label and rows."""
        for i, label in enumerate(self.labels):
            yield int(label), slice(int(self.edges[i]), int(self.edges[i + 1]))


def _ratios(margins: Sequence[Rows], piece: Piece) -> _Ratios:
    """At the two maximum-likelihood margins, float32[m] and float32[n]."""
    strata = np.zeros(piece.count, np.intp) if piece.strata is None else piece.strata
    weights = np.ones(piece.count) if piece.weights is None else piece.weights
    order = np.argsort(strata, kind="stable")
    labels, starts = np.unique(strata[order], return_index=True)
    x, y = (
        rows[order] / np.maximum(rows[order] @ margin, np.float32(1e-30))[:, None] - np.float32(1)
        for rows, margin in zip(piece.rows, margins, strict=True)
    )
    return _Ratios(x, y, weights[order], labels, np.append(starts, piece.count))


@dataclass(frozen=True, eq=False)
class _Totals:
    """Per stratum: labels, reports float64[S], Σ w x and Σ w y; whether weights are whole."""

    labels: Integers
    weight: Floats
    x: Floats
    y: Floats
    whole: bool

    def __add__(self, other: _Totals) -> _Totals:
        labels = np.union1d(self.labels, other.labels)
        parts = []
        for mine, its in ((self.weight, other.weight), (self.x, other.x), (self.y, other.y)):
            total = np.zeros((len(labels), *mine.shape[1:]))
            total[np.searchsorted(labels, self.labels)] += mine
            total[np.searchsorted(labels, other.labels)] += its
            parts.append(total)
        return _Totals(labels, parts[0], parts[1], parts[2], self.whole and other.whole)

    def means(self) -> _Totals:
        """Means instead of sums, of the strata that hold more than a report: one has no other to
        be shuffled with."""
        kept = self.weight > 1
        if not kept.any():
            raise InputError("every stratum holds a single report; pass coarser strata")
        share = 1.0 / self.weight[kept, None]
        return _Totals(
            self.labels[kept], self.weight[kept], self.x[kept] * share, self.y[kept] * share,
            self.whole,
        )  # fmt: skip


def _totals(ratios: _Ratios) -> _Totals:
    weight, x, y = [], [], []
    for _, rows in ratios.layers():
        w = ratios.weights[rows]
        weight.append(w.sum())
        x.append(w @ ratios.x[rows].astype(np.float64))
        y.append(w @ ratios.y[rows].astype(np.float64))
    return _Totals(
        ratios.labels,
        np.array(weight, np.float64),
        np.array(x, np.float64).reshape(-1, ratios.x.shape[1]),
        np.array(y, np.float64).reshape(-1, ratios.y.shape[1]),
        bool(np.all(ratios.weights == np.round(ratios.weights))),
    )


def _centred(means: _Totals, ratios: _Ratios) -> _Ratios:
    """Deviations from the strata's means; labels become the strata's places among them."""
    x, y, weights, labels, sizes = [ratios.x[:0]], [ratios.y[:0]], [ratios.weights[:0]], [], [0]
    for label, rows in ratios.layers():
        place = int(np.searchsorted(means.labels, label))
        if place < len(means.labels) and means.labels[place] == label:
            x.append(ratios.x[rows] - means.x[place].astype(np.float32))
            y.append(ratios.y[rows] - means.y[place].astype(np.float32))
            weights.append(ratios.weights[rows])
            labels.append(place)
            sizes.append(len(weights[-1]))
    return _Ratios(
        np.concatenate(x), np.concatenate(y), np.concatenate(weights),
        np.array(labels, np.intp), np.cumsum(sizes),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Scatters:
    """Σ w x xᵀ and Σ w y yᵀ per stratum, float64[S, m, m] and [S, n, n]; score Σ w x yᵀ."""

    x: Floats
    y: Floats
    score: Floats

    def __add__(self, other: _Scatters) -> _Scatters:
        return _Scatters(self.x + other.x, self.y + other.y, self.score + other.score)


def _scatters(strata: int, centred: _Ratios) -> _Scatters:
    m, n = centred.x.shape[1], centred.y.shape[1]
    found = _Scatters(np.zeros((strata, m, m)), np.zeros((strata, n, n)), np.zeros((m, n)))
    for place, rows in centred.layers():
        x, y, w = centred.x[rows], centred.y[rows], centred.weights[rows]
        found.x[place] += _product(x, x, w)
        found.y[place] += _product(y, y, w)
        found.score[...] += _product(x, y, w)
    return found


def _product(x: Rows, y: Rows, weights: Floats) -> Floats:
    """Σ_k w_k x_k y_kᵀ in float64, so that rounding does not pass for a direction in `range_of`."""
    total = np.zeros((x.shape[1], y.shape[1]))
    for start in range(0, len(x), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        total += (x[chunk] * weights[chunk, None]).T @ y[chunk].astype(np.float64)
    return total


def _fourth_powers(roots: Sequence[Rows], centred: _Ratios) -> Floats:
    """Σ w |x|⁴ and Σ w |y|⁴ of whitened rows, float64[2]."""
    lengths = [
        np.sum((rows @ root) ** 2, axis=1)
        for rows, root in zip((centred.x, centred.y), roots, strict=True)
    ]
    return np.array([centred.weights @ length**2 for length in lengths], np.float64)


# --- all pieces together -------------------------------------------------------------------------


def _whitening(means: _Totals, scatters: _Scatters) -> Floats:
    """float64[mn, dof]: rootᵀ·vec(U) has covariance 1 under shuffling.

    dof is (m − 1)(n − 1), fewer where categories cannot be told apart.
    """
    left, right = (range_of(scatter.sum(axis=0)) for scatter in (scatters.x, scatters.y))
    # Shuffling n reports gives vec(U) the covariance Sxx ⊗ Syy / (n − 1), exactly.
    if len(means.labels) == 1:
        sides = [
            side @ inverse_root(side.T @ scatter @ side)
            for side, scatter in (
                (left, scatters.x[0]),
                (right, scatters.y[0] / (means.weight[0] - 1)),
            )
        ]
        return np.asarray(np.kron(*sides), np.float64)
    spread = np.zeros((left.shape[1] * right.shape[1],) * 2)
    for xx, yy, count in zip(scatters.x, scatters.y, means.weight, strict=True):
        spread += np.kron(left.T @ xx @ left, right.T @ yy @ right / (count - 1))
    root: Floats = np.kron(left, right) @ inverse_root(spread)
    return root


def _heavy(means: _Totals, scatters: _Scatters, centred: Held[_Ratios], freedom: int) -> bool:
    """Whether rare, large ratios widen the variance of the statistic much beyond χ²'s.

    For whitened x of dimension r, b = E|x|⁴ − r(r+2) is 0 if x is normal; shuffling n pairs
    gives the statistic the variance 2·dof + b_x·b_y / n, to first order.
    """
    count = float(means.weight.sum())
    roots = []
    for scatter in (scatters.x.sum(axis=0) / count, scatters.y.sum(axis=0) / count):
        basis = range_of(scatter)
        roots.append((basis @ inverse_root(basis.T @ scatter @ basis)).astype(np.float32))
    fourth = centred.sum(partial(_fourth_powers, roots)) / count
    normal = [root.shape[1] * (root.shape[1] + 2) for root in roots]
    excess = float(np.prod(fourth - normal))
    return excess / (2.0 * count * freedom) > TAIL_TOLERANCE


# --- shuffles ------------------------------------------------------------------------------------


def _shuffled_lengths(
    centred: Held[_Ratios], count: int, root: Floats, shuffles: int, rng: np.random.Generator
) -> Floats:
    """Squared lengths of the whitened score over random shuffles, float64[shuffles]."""
    single = root.astype(np.float32)
    if count <= _TOGETHER:
        scores = _shuffled(shuffles, _together(list(centred.map(_itself))), rng)
        return np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64)
    lengths = []
    for start in range(0, shuffles, _AT_A_TIME):
        some = min(_AT_A_TIME, shuffles - start)
        seeds = rng.integers(1 << 63, size=len(centred)).tolist()
        scores = centred.sum(partial(_seeded, some), seeds)
        lengths.append(np.asarray(np.sum((scores @ single) ** 2, axis=1), np.float64))
    return np.concatenate(lengths)


def _itself(centred: _Ratios) -> _Ratios:
    return centred


def _together(parts: Sequence[_Ratios]) -> _Ratios:
    """All pieces' rows as one piece's."""
    labels = np.concatenate([np.repeat(part.labels, np.diff(part.edges)) for part in parts])
    order = np.argsort(labels, kind="stable")
    unique, starts = np.unique(labels[order], return_index=True)
    return _Ratios(
        np.concatenate([part.x for part in parts])[order],
        np.concatenate([part.y for part in parts])[order],
        np.concatenate([part.weights for part in parts])[order],
        unique, np.append(starts, len(labels)),
    )  # fmt: skip


def _seeded(shuffles: int, centred: _Ratios, seed: int) -> Rows:
    return _shuffled(shuffles, centred, np.random.default_rng(seed))


def _shuffled(shuffles: int, centred: _Ratios, rng: np.random.Generator) -> Rows:
    """The score over random shuffles within strata, float32[shuffles, mn]."""
    whole = [
        [
            np.repeat(rows[layer], centred.weights[layer].astype(np.int64), axis=0)
            for rows in (centred.x, centred.y)
        ]
        for _, layer in centred.layers()
    ]
    scores = np.zeros((shuffles, centred.x.shape[1] * centred.y.shape[1]), np.float32)
    for shuffle in range(shuffles):
        score = sum((x.T @ y[rng.permutation(len(y))] for x, y in whole), np.zeros(()))
        scores[shuffle] = score.ravel()
    return scores


def range_of(scatter: Floats) -> Floats:
    """Orthonormal basis of the directions in which centred ratios vary at all.

    One direction never does: p̂, because α_k · p̂ = 1 for every report, up to float32's 1e-7.
    """
    values, vectors = eigh(scatter)
    basis: Floats = vectors[:, values > 1e-9 * max(float(values[-1]), 1e-300)]
    return basis


def inverse_root(spread: Floats) -> Floats:
    """R with RᵀSR = 1 on the range of S."""
    if not spread.size:
        return spread
    values, vectors = eigh(spread)
    kept = values > 1e-9 * values[-1]
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root
