"""Tests of independence of two variables given all the others.

The hypothesis is p(a, b, c) = p(a | c) p(b | c) p(c), where c stands for a cell of the other
variables. Nobody sees c, so reports cannot be shuffled within it. The test uses the efficient score
instead. A table near the hypothesis moves in two kinds of directions. With
δ_a = e_a − p(· | c) and δ_b = e_b − p(· | c):

interest   δ_a ⊗ δ_b ⊗ e_c: the two variables become dependent given c
nuisance   δ_a ⊗ p(· | c) ⊗ e_c, p(· | c) ⊗ δ_b ⊗ e_c, and changes of p(c): they stay independent

With the score U = l′(p) and the information I = Σ_k w_k v_k v_kᵀ / d_k² at a table p that satisfies
the hypothesis, the efficient score of the interest x, with the nuisance n projected out, and its
variance are
    e = U_x − I_xn I_nn⁻¹ U_n        C = I_xx − I_xn I_nn⁻¹ I_nx
and T = eᵀC⁻¹e follows χ². This is Neyman's C(α) test. Because of the term in U_n, p need not be at
the maximum of the likelihood, only close to it. So cells estimated at 0, where U_n is not 0, do not
matter. They make a likelihood ratio too small.

The information must be the one expected under the hypothesis. That of the reports themselves is too
small where a rare cell got no reports, and then T is far too large. So reports are drawn anew from
the fitted table: each draws a cell, then for each variable one of the rows of its cohort, row k of
category a in proportion to a_k(a) / (a_k · p̂). If some cells expect fewer than MIN_EXPECTED
reports, the statistic is also compared with those of redrawn reports.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.linalg import block_diag, eigh

from deniable.inference.joint.evidence import Evaluation, Evidence
from deniable.inference.joint.solver import maximise
from deniable.inference.marginal.tails import chi2_tail
from deniable.kernels.array_types import Floats
from deniable.results.association import AssociationTest

MIN_EIGENVALUE = 1e-7
"""Smallest eigenvalue of an information matrix with unit diagonal that is not due to rounding."""
MIN_EXPECTED = 5.0
"""Expected number of reports of a cell below which p-values come from redrawn reports."""
INFORMATION_DRAWS = 8
"""Number of times that reports are redrawn to compute the expected information."""
P_VALUE_DRAWS = 199
"""Maximum number of times that reports are redrawn to compute a p-value."""
MIN_AS_LARGE = 20
"""Number of statistics as large as that of the reports after which no more are redrawn."""


@dataclass(frozen=True)
class ConditionalFit:
    """The most likely table in which two variables are independent given the others.

    table : float64 of the variables' shape; evaluation : likelihood and gradient at it.
    """

    table: Floats
    evaluation: Evaluation


def fit_conditional(
    evidence: Evidence, table: Floats, pair: tuple[int, int], max_passes: int = 2000
) -> ConditionalFit:
    """Maximise the likelihood of p = p(x, z) p(y, z) / p(z), by EM.

    EM starts from the unrestricted fit. The model is not concave, so the distance to the maximum
    has no proven bound. Increases by EM shrink geometrically, and EM stops when the remaining
    increase, Δ·r / (1 − r) with r the ratio of the last two increases, is below 0.002 nats.
    """
    table = _conditioned(0.99 * table + 0.01 / table.size, pair)
    evaluation = evidence.evaluate(table.reshape(evidence.folded))
    last = np.inf
    for _ in range(max_passes):
        expected = table * evaluation.gradient.reshape(table.shape)
        new_table = _conditioned(expected / expected.sum(), pair)
        new = evidence.evaluate(new_table.reshape(evidence.folded))
        increase = new.log_likelihood - evaluation.log_likelihood
        if increase <= 0:
            break
        table, evaluation = new_table, new
        ratio = increase / last if np.isfinite(last) else 1.0
        if ratio < 1 and increase * ratio < 0.002 * (1 - ratio):
            break
        last = increase
    return ConditionalFit(table, evaluation)


def _conditioned(table: Floats, pair: tuple[int, int]) -> Floats:
    """Return the closest table in which two variables are independent given the others."""
    first, second = pair
    without_first = table.sum(axis=first, keepdims=True)
    without_second = table.sum(axis=second, keepdims=True)
    conditions = table.sum(axis=pair, keepdims=True)
    shares: Floats = without_first * without_second / np.where(conditions > 0, conditions, 1.0)
    return shares


def efficient_score_test(
    evidence: Evidence, fit: ConditionalFit, pair: tuple[int, int], draws: int = P_VALUE_DRAWS
) -> AssociationTest:
    """Test conditional independence by the efficient score; draws : see P_VALUE_DRAWS."""
    folded, rng = fit.table.reshape(evidence.folded), np.random.default_rng(0)
    margins = [maximise(evidence.only(v)).table for v in range(len(evidence.shape))]
    redrawn = evidence.redrawn(fit.table, margins, rng)
    drawn = islice(redrawn, INFORMATION_DRAWS)
    information = sum(each.information(folded) for each in drawn) / INFORMATION_DRAWS
    root = _whitening(fit.table, pair, np.asarray(information))

    def statistic_of(evaluation: Evaluation) -> float:
        return float(np.sum((evidence.weight * evaluation.gradient.ravel() @ root) ** 2))

    statistic, freedom = statistic_of(fit.evaluation), root.shape[1]
    if freedom > 0 and evidence.weight * float(fit.table.min()) < MIN_EXPECTED:
        drawn = islice(redrawn, draws)
        p_value = sequential_p_value(
            statistic_of(each.evaluate(folded)) >= statistic for each in drawn
        )
        return AssociationTest("score", statistic, freedom, p_value, "bootstrap")
    return AssociationTest("score", statistic, freedom, chi2_tail(freedom, statistic), "chi2")


def sequential_p_value(as_large: Iterable[bool]) -> float:
    """Return a p-value from statistics of redrawn reports, as few as decide the matter.

    After MIN_AS_LARGE statistics as large as that of the reports, the p-value is their share. It is
    as valid as one from all draws (Besag and Clifford, "Sequential Monte Carlo p-values", 1991).

    as_large : whether each statistic is as large; more are computed only as needed
    """
    count, draws = 0, 0
    for draws, large in enumerate(as_large, start=1):
        count += large
        if count == MIN_AS_LARGE:
            return count / draws
    return (1 + count) / (1 + draws)


def _whitening(table: Floats, pair: tuple[int, int], information: Floats) -> Floats:
    """Return the matrix float64[cells, dof] that maps the score to C^(−½) e."""
    interest, nuisance = _directions(table, pair)
    directions, split = np.hstack([interest, nuisance]), interest.shape[1]
    information = directions.T @ information @ directions
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(information), 1e-300))
    information, directions = information * np.outer(scale, scale), directions * scale
    root = _inverse_root(information[split:, split:])
    projection = information[:split, split:] @ root @ root.T
    variance = information[:split, :split] - projection @ information[split:, :split]
    efficient = directions[:, :split] - directions[:, split:] @ projection.T
    whitening: Floats = efficient @ _inverse_root(variance)
    return whitening


def _inverse_root(information: Floats) -> Floats:
    """Return R with R Rᵀ = the inverse of a matrix with diagonal ≤ 1, without null directions."""
    values, vectors = eigh(information)
    kept = values > MIN_EIGENVALUE
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root


def _directions(table: Floats, pair: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the directions of interest and of nuisance, float64[cells, ·] each."""
    m, n = (table.shape[variable] for variable in pair)
    # Cells in the order (condition, first, second).
    order = np.moveaxis(np.arange(table.size).reshape(table.shape), pair, (-2, -1)).ravel()
    slabs = table.ravel()[order].reshape(-1, m, n)
    shares = slabs.sum(axis=(1, 2))
    interest, keeping, levels = [], [], []
    for slab, share in zip(slabs, shares, strict=True):
        given = slab / share if share > 0 else slabs.sum(axis=0)
        rows, columns = given.sum(axis=1), given.sum(axis=0)
        row_moves, column_moves = _moves(rows), _moves(columns)
        interest.append(np.kron(row_moves, column_moves))
        keeping.append(np.kron(row_moves, columns[:, None]))
        keeping[-1] = np.hstack([keeping[-1], np.kron(rows[:, None], column_moves)])
        levels.append(np.kron(rows, columns)[:, None])
    changes = np.delete(block_diag(*levels), shares.argmax(), axis=1) - slabs.reshape(-1, 1)
    back = np.argsort(order)
    return block_diag(*interest)[back], np.hstack([block_diag(*keeping), changes])[back]


def _moves(shares: Floats) -> Floats:
    """Return e_a − p for all categories a but the most common one, float64[m, m − 1]."""
    return np.delete(np.eye(len(shares)) - shares[:, None], shares.argmax(), axis=1)
