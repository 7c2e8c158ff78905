"""Shrinkage of a joint table towards independence, for point estimates of weak signals.

At small ε, a maximum-likelihood table of many cells is mostly noise: at 10 × 10, q = .41 and 50,000
reports, its absolute errors sum to .61. `shrunk` maximises l(p) + λN Σ_c μ_c log p_c instead, where
μ is the fitted independence table. This adds λN imaginary reports without noise, distributed as
under independence. Cross-validation chooses λ by the likelihood of held-out reports; 0 is among the
choices, so a strong association in plenty of data is not shrunk. Tests and intervals belong to the
maximum-likelihood fit; a shrunk table has none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from deniable.compute.rows import LikelihoodRows
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evidence, evidence_of
from deniable.inference.joint.solver import JointFit, maximise
from deniable.kernels.array_types import Floats

STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.0)
"""Strengths λ that are tried."""
_FOLDS = 5
"""Number of folds."""
_HELD_OUT = 2
"""Number of folds that are held out, one after the other."""


@dataclass(frozen=True)
class ShrunkFit:
    """A table that is shrunk towards independence.

    Parameters
    ----------
    fit : JointFit
        The penalised fit. Its log-likelihood is that of the real reports only.
    strength : float
        The chosen λ: number of imaginary reports per real one. 0 means maximum likelihood.
    held_out : dict of float to float
        Log-likelihood per held-out report, in nats, of each strength that was tried.
    """

    fit: JointFit
    strength: float
    held_out: dict[float, float]


def shrunk(
    evidence: Evidence,
    *,
    rng: np.random.Generator,
    strengths: Sequence[float] = STRENGTHS,
    nats: float = 0.01,
) -> ShrunkFit:
    """Fit a table that is shrunk towards independence, by cross-validation.

    Parameters
    ----------
    evidence : Evidence
        Likelihood rows of all reports.
    rng : numpy.random.Generator
        Splits the reports into five folds, two of which are held out in turn.
    strengths : sequence of float
        Values of λ to try; 0 must be among them.
    nats : float
        Tolerance of the final fit.
    """
    if 0.0 not in strengths or min(strengths) < 0:
        raise InputError(f"strengths must be at least 0 and include 0, got {tuple(strengths)}")
    ordered = sorted(strengths, reverse=True)
    totals = dict.fromkeys(ordered, 0.0)
    weight = 0.0
    for training, test in _splits(evidence, rng):
        weight += test.weight
        for strength, fit in zip(ordered, _path(training, ordered, 0.1), strict=True):
            folded = fit.table.reshape(test.folded)
            # A held-out report may need a cell estimated at 0: that costs much, but not infinity.
            opened = 0.9999 * folded + 0.0001 / folded.size
            totals[strength] += test.evaluate(opened).log_likelihood
    best = max(ordered, key=lambda strength: totals[strength])
    fit = _path(evidence, [best], nats)[0]
    unpenalised = evidence.evaluate(fit.table.reshape(evidence.folded)).log_likelihood
    fit = replace(fit, log_likelihood=unpenalised)
    return ShrunkFit(fit, best, {strength: totals[strength] / weight for strength in ordered})


def _path(evidence: Evidence, strengths: Sequence[float], nats: float) -> list[JointFit]:
    """Return the penalised fits, strongest penalty first, each started from the one before."""
    margins = [maximise(evidence.only(v), nats=nats).table for v in range(len(evidence.shape))]
    independent: Floats = reduce(np.multiply.outer, margins)
    start, fits = independent, []
    for strength in strengths:
        pseudocounts = (strength * evidence.weight * independent).reshape(evidence.folded)
        fit = maximise(
            evidence, nats=nats, start=start, pseudocounts=pseudocounts if strength > 0 else None
        )
        fits.append(fit)
        start = fit.table
    return fits


def _splits(evidence: Evidence, rng: np.random.Generator) -> Iterator[tuple[Evidence, Evidence]]:
    """Yield training and test evidence for each fold that is held out."""
    seeds = rng.integers(1 << 63, size=len(evidence.rows)).tolist()
    for fold in range(_HELD_OUT):
        parts = [
            evidence.rows.hold(partial(_part, fold, held_out), seeds) for held_out in (False, True)
        ]
        training, test = (evidence_of(rows, evidence.shape) for rows in parts)
        yield training, test


def _part(fold: int, held_out: bool, rows: LikelihoodRows, seed: int) -> LikelihoodRows:
    """Return the reports in a fold, or in all other folds."""
    counts = _fold_counts(rows, np.random.default_rng(seed))
    return rows.weighted(counts[:, fold] if held_out else np.delete(counts, fold, 1).sum(axis=1))


def _fold_counts(rows: LikelihoodRows, rng: np.random.Generator) -> Floats:
    """Return how many of each row's reports fall in each fold, [N, 5]."""
    weights = rows.weights
    if weights is None:
        return np.eye(_FOLDS)[rng.integers(_FOLDS, size=rows.count)]
    if np.any(weights != np.round(weights)):
        raise InputError("shrinkage holds out whole reports, so weights must be whole numbers")
    return rng.multinomial(weights.astype(np.int64), [1 / _FOLDS] * _FOLDS).astype(np.float64)
