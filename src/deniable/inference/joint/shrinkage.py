"""Shrinkage towards independence, for point estimates at low signal.

At small ε a maximum-likelihood table of many cells is mostly noise: at 10 × 10, q = .41 and 50,000
reports its absolute errors sum to .61. `shrunk` maximises l(p) + λN Σ_c μ_c log p_c instead, μ the
fitted independence table: λN imaginary reports seen without noise, in independence's proportions.
λ is chosen by the likelihood of reports held out, 0 among the choices, so a strong association in
plenty of data is left alone. Tests and intervals belong to the maximum-likelihood fit; a shrunk
table has none.
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
_FOLDS = 5
_HELD_OUT = 2


@dataclass(frozen=True)
class ShrunkFit:
    """A table shrunk towards independence: no maximum-likelihood estimate, and without intervals.

    strength : the chosen λ, imaginary reports per real one; 0 is maximum likelihood.
    held_out : held-out log-likelihood per report, in nats, of every strength tried.
    fit : the penalised fit; its log-likelihood is that of the real reports alone.
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
    """Fit a table shrunk towards independence as much as held-out reports like.

    rng : splits the reports into five folds, of which two are held out in turn.
    strengths : the λ to try; 0 must be among them.
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
            # A cell at 0 that a held-out report needs must cost much, not everything.
            opened = 0.9999 * folded + 0.0001 / folded.size
            totals[strength] += test.evaluate(opened).log_likelihood
    best = max(ordered, key=lambda strength: totals[strength])
    fit = _path(evidence, [best], nats)[0]
    honest = evidence.evaluate(fit.table.reshape(evidence.folded)).log_likelihood
    fit = replace(fit, log_likelihood=honest)
    return ShrunkFit(fit, best, {strength: totals[strength] / weight for strength in ordered})


def _path(evidence: Evidence, strengths: Sequence[float], nats: float) -> list[JointFit]:
    """Penalised fits from the strongest down, each started from the one before."""
    margins = [maximise(evidence.only(v), nats=nats).table for v in range(len(evidence.shape))]
    independent: Floats = reduce(np.multiply.outer, margins)
    start, fits = independent, []
    for strength in strengths:
        pseudo = (strength * evidence.weight * independent).reshape(evidence.folded)
        fit = maximise(evidence, nats=nats, start=start, pseudo=pseudo if strength > 0 else None)
        fits.append(fit)
        start = fit.table
    return fits


def _splits(evidence: Evidence, rng: np.random.Generator) -> Iterator[tuple[Evidence, Evidence]]:
    """Training and test evidence for each fold held out."""
    seeds = rng.integers(1 << 63, size=len(evidence.rows)).tolist()
    for fold in range(_HELD_OUT):
        parts = [
            evidence.rows.hold(partial(_part, fold, held_out), seeds) for held_out in (False, True)
        ]
        training, test = (evidence_of(rows, evidence.shape, evidence.arrays) for rows in parts)
        yield training, test


def _part(fold: int, held_out: bool, rows: LikelihoodRows, seed: int) -> LikelihoodRows:
    """The reports in the fold, or in all others."""
    counts = _fold_counts(rows, np.random.default_rng(seed))
    return rows.weighted(counts[:, fold] if held_out else np.delete(counts, fold, 1).sum(axis=1))


def _fold_counts(rows: LikelihoodRows, rng: np.random.Generator) -> Floats:
    """How many of each row's reports fall in each fold, [N, 5]."""
    weights = rows.weights
    if weights is None:
        return np.eye(_FOLDS)[rng.integers(_FOLDS, size=rows.count)]
    if np.any(weights != np.round(weights)):
        raise InputError("shrinkage holds out whole reports: weights must be whole numbers")
    return rng.multinomial(weights.astype(np.int64), [1 / _FOLDS] * _FOLDS).astype(np.float64)
