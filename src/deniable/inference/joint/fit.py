"""Fits of a joint distribution, their certificate, and the step of expectation maximisation.

The log-likelihood Σ_k w_k log Σ_c p_c v_kc is concave in the table p, so its maximum can be
*certified*. With the gradient per report g_c = (1/N) Σ_k w_k v_kc / d_k, Jensen's inequality gives
for any table q
    l(q) − l(p) = Σ_k w_k log(Σ_c q_c v_kc / d_k) ≤ N log Σ_c q_c g_c ≤ N log max_c g_c.
That gap, in nats for the whole data set, decides when to stop; small steps prove nothing.

The paper's algorithm repeats `em_step`, p_c ← p_c g_c, until nothing moves.
"""

from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from deniable.errors import InputError
from deniable.inference.joint.evidence import Evaluation, Evidence
from deniable.kernels.array_types import Floats


@dataclass(frozen=True)
class JointFit:
    """A maximum-likelihood table and how surely it is one.

    table : float64 of the variables' shape, non-negative, sums to 1
    log_likelihood : nats, all reports together, up to the constant of the row scaling
    gap_nats : the maximum lies at most this far above log_likelihood
    passes : passes over the data (passes over subsamples not counted)
    """

    table: Floats
    log_likelihood: float
    gap_nats: float
    passes: int
    converged: bool


class NotConvergedWarning(UserWarning):
    """A fit stopped before its certificate was reached."""


def certified_gap(evaluation: Evaluation, weight: float) -> float:
    """Nats by which the maximum may exceed the log-likelihood, at a table that sums to 1."""
    if not isfinite(evaluation.log_likelihood):
        return float("inf")
    # max g ≥ Σ p g = 1; rounding may put it a hair below.
    return weight * max(0.0, log(float(evaluation.gradient.max())))


def starting_table(start: Floats | None, evidence: Evidence) -> Floats:
    """Return `start` as a matrix with every cell above 0 (EM never revives one), or uniform."""
    cells = int(np.prod(evidence.shape, dtype=np.int64))
    if start is None:
        return np.full(evidence.folded, 1.0 / cells)
    table = np.asarray(start, np.float64)
    if table.shape != evidence.shape or not np.all(table >= 0) or not table.sum() > 0:
        raise InputError(
            f"start must be a non-negative table of shape {evidence.shape} with a positive sum, "
            f"got shape {table.shape}"
        )
    folded = table.reshape(evidence.folded) / table.sum()
    opened: Floats = 0.999 * folded + 0.001 / cells
    return opened


def em_step(table: Floats, evaluation: Evaluation) -> Floats:
    """Return the next EM iterate p_c g_c, rescaled against rounding."""
    following: Floats = table * evaluation.gradient
    following /= following.sum()
    return following
