"""Fits of a joint distribution, their certificate, and plain expectation maximisation.

The log-likelihood Σ_k w_k log Σ_c p_c v_kc is concave in the table p, so its maximum can be
*certified*. With the gradient per report g_c = (1/N) Σ_k w_k v_kc / d_k, Jensen's inequality gives
for any table q
    l(q) − l(p) = Σ_k w_k log(Σ_c q_c v_kc / d_k) ≤ N log Σ_c q_c g_c ≤ N log max_c g_c.
That gap, in nats for the whole data set, decides when to stop; small steps prove nothing.

`plain_em` is the paper's algorithm, p_c ← p_c g_c, kept as the reference for faster solvers.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from deniable.compute.array_types import Floats, Shard
from deniable.compute.backend import Backend
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evaluation, Evidence, gather


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
    method: str


class NotConvergedWarning(UserWarning):
    """A fit stopped before its certificate was reached."""


def certified_gap(evaluation: Evaluation, weight: float) -> float:
    """Nats by which the maximum may exceed the log-likelihood, at a table that sums to 1."""
    if not isfinite(evaluation.log_likelihood):
        return float("inf")
    # max g ≥ Σ p g = 1; rounding may put it a hair below.
    return weight * max(0.0, log(float(evaluation.gradient.max())))


def conclude(
    evidence: Evidence,
    table: Floats,
    evaluation: Evaluation,
    *,
    nats: float,
    passes: int,
    method: str,
    weight: float | None = None,
) -> JointFit:
    """Make a Fit of the last table, and warn if its gap is wider than asked."""
    gap = certified_gap(evaluation, weight or evidence.weight)
    if gap > nats:
        warnings.warn(
            f"{method} stopped after {passes} passes with a gap of {gap:.3g} nats, "
            f"{nats:.3g} asked; raise max_passes",
            NotConvergedWarning,
            stacklevel=3,
        )
    shaped = table.reshape(evidence.shape)
    return JointFit(shaped, evaluation.log_likelihood, gap, passes, gap <= nats, method)


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


def plain_em(
    shards: Iterable[Shard],
    shape: Sequence[int],
    *,
    nats: float = 0.01,
    executor: Backend | None = None,
    start: Floats | None = None,
    max_passes: int = 10_000,
) -> JointFit:
    """Fit a table by plain EM, in float64, until its gap is at most `nats`; see `maximise`."""
    evidence = gather(shards, shape, executor=executor)
    table = starting_table(start, evidence)
    passes = 0
    while True:
        evaluation = evidence.evaluate(table)
        passes += 1
        if certified_gap(evaluation, evidence.weight) <= nats or passes >= max_passes:
            return conclude(
                evidence, table, evaluation, nats=nats, passes=passes, method="plain EM"
            )
        table = em_step(table, evaluation)


def em_step(table: Floats, evaluation: Evaluation) -> Floats:
    """Return the next EM iterate p_c g_c, rescaled against rounding."""
    following: Floats = table * evaluation.gradient
    following /= following.sum()
    return following
