"""Maximum-likelihood joint tables, by sequential quadratic programming.

The solver minimises f(p) = −l(p)/N + Σp over p ≥ 0. The sum replaces the constraint Σp = 1, which
then holds at the optimum. Each step minimises a quadratic model of f over p ≥ 0. The gradient is
exact and takes one pass over all reports. The curvature comes from a subsample, and is corrected by
what the passes show (BFGS): errors in it only cost time, since convergence is decided by the
gradient alone.

Early passes run in float32. When the gap per report comes near the resolution of float32, passes
run in float64, so the final gap is always computed in float64.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log, prod

import numpy as np

from deniable.compute.executors import one_blas_thread
from deniable.compute.progress import report_progress
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evaluation, Evidence
from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.kernels.array_types import Floats

MAX_CELLS = 4096
"""Maximum number of cells: the curvature of a larger table would not fit into memory."""
_PRECISE_BELOW = 2e-5
"""Gap per report, in nats, below which passes run in float64 (float32 resolves about 1e-8)."""
_MAX_HALVINGS = 4
"""Maximum number of times that a step is halved."""
_SAMPLE_GROWTH = 16
"""Maximum size of a subsample relative to the one before."""
_LAST_SAMPLE = 8
"""Number of reports relative to the size of the last subsample."""
_EM_PASSES = 30
"""EM passes over the smallest subsample. They take less time than one quadratic model."""


@dataclass(frozen=True)
class JointFit:
    """A maximum-likelihood table.

    Parameters
    ----------
    table : float64 array of the variables' shape
        Estimated distribution: non-negative, with the sum 1.
    log_likelihood : float
        Log-likelihood of all reports in nats, up to a constant from the scaling of the rows.
    gap_nats : float
        The log-likelihood is within this distance of its maximum.
    passes : int
        Number of passes over all reports, without those over subsamples.
    converged : bool
        Whether the gap is as small as required.
    """

    table: Floats
    log_likelihood: float
    gap_nats: float
    passes: int
    converged: bool


class NotConvergedWarning(UserWarning):
    """Issued if a fit stops before its log-likelihood is proven to be close to the maximum."""


def maximise(
    evidence: Evidence,
    *,
    nats: float = 0.01,
    max_passes: int = 200,
) -> JointFit:
    """Fit the joint distribution of one or more variables by maximum likelihood.

    Parameters
    ----------
    evidence : Evidence
        Likelihood rows of all reports.
    nats : float
        Tolerance: the fit has converged when its log-likelihood is within this distance of the
        maximum.
    max_passes : int
        Maximum number of passes over all reports.

    Examples
    --------
    >>> from deniable.inference.joint.evidence import gather
    >>> a = np.array([[1, 0.1], [0.1, 1], [1, 0.1]], np.float32)
    >>> maximise(gather([(a, a)], (2, 2))).table.round(2)
    array([[0.67, 0.  ],
           [0.  , 0.33]])
    """
    cells = prod(evidence.shape)
    if cells > MAX_CELLS:
        raise InputError(
            f"the table would have {cells} cells ({' × '.join(map(str, evidence.shape))}), more "
            f"than the limit of {MAX_CELLS}: use fewer questions or categories"
        )
    with one_blas_thread():
        table, curvature = _from_subsamples(evidence)
        solver = SqpSolver(evidence, curvature, "fitting the table")
        table, evaluation = solver.run(table, nats, max_passes)
    gap = evaluation.gap
    if gap > nats:
        warnings.warn(
            f"the fit has not converged after {solver.passes} passes: its log-likelihood is within "
            f"{gap:.3g} of the maximum, but {nats:.3g} is required; raise max_passes",
            NotConvergedWarning,
            stacklevel=2,
        )
    shaped = table.reshape(evidence.shape)
    return JointFit(shaped, evaluation.log_likelihood, gap, solver.passes, gap <= nats)


def _from_subsamples(evidence: Evidence) -> tuple[Floats, Floats | None]:
    """Fit growing subsamples; return a positive table near the optimum, and its curvature.

    The optimum of a subsample differs from the true table by about cells/2 nats of its likelihood,
    so a gap of a tenth of that is small enough.
    """
    table: Floats = np.full(evidence.folded, 1.0 / prod(evidence.shape))
    curvature: Floats | None = None
    for size in _sample_sizes(evidence.count, table.size):
        sample = evidence.sample(size, np.random.default_rng(size))
        if curvature is None:
            for _ in range(_EM_PASSES):
                table = sample.evaluate(table, precise=False).em_step(table)
        solver = SqpSolver(sample, curvature)
        table, _ = solver.run(table, 0.05 * table.size, 30)
        table, curvature = _opened(table), solver.curvature
        if size == evidence.count // _LAST_SAMPLE:
            # All of the last subsample: passes over all reports are worth a good curvature.
            curvature = sample.information(table) / sample.weight
    return table, curvature


def _sample_sizes(count: int, cells: int) -> Iterator[int]:
    """Yield the sizes of subsamples of `count` reports, in increasing order.

    >>> [list(_sample_sizes(count, 400)) for count in (10**4, 10**5, 10**6, 10**7)]
    [[], [8192], [8192, 125000], [8192, 131072, 1250000]]
    """
    size, last = _min_sample_size(cells), count // _LAST_SAMPLE
    if 4 * size <= count:
        yield size
    while 2 * size <= last:
        size = min(_SAMPLE_GROWTH * size, last)
        yield size


def _opened(table: Floats) -> Floats:
    """Mix in a little of the independence table and the uniform table, so that no cell is 0."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return 0.988 * table + 0.01 * independent + 0.002 / table.size


def _min_sample_size(cells: int) -> int:
    """Return the smallest subsample for a table of so many cells."""
    return max(20 * cells, 8192)


@dataclass
class SqpSolver:
    """One run of the solver.

    Parameters
    ----------
    evidence : Evidence
        Likelihood rows of all reports.
    curvature : float64 array of shape (mn, mn), optional
        Curvature of f; None if it must be sampled.
    stage : str
        Name under which progress is reported; none by default. Progress is measured in logarithms
        of the gap.
    passes : int
        Number of passes so far.
    """

    evidence: Evidence
    curvature: Floats | None = None
    stage: str = ""
    passes: int = 0
    _sampled: int = 0
    _last_sampled: Floats | None = None
    _first_gap: float = 0.0
    _best_gap: float = np.inf
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2))

    def run(self, table: Floats, nats: float, max_passes: int) -> tuple[Floats, Evaluation]:
        """Improve a positive table; return the last table and its evaluation in float64."""
        precise = False
        current = self._evaluate(table, precise)
        while True:
            gap = current.gap
            self._best_gap = min(self._best_gap, gap)
            if self.stage and 0 < nats < self._best_gap < np.inf:
                self._first_gap = max(self._first_gap, gap)
                remaining = log(self._best_gap / nats) / log(self._first_gap / nats)
                report_progress(self.stage, 1 - remaining)
            if gap <= nats or self.passes >= max_passes:
                if precise:
                    return table, current
                precise = True
                current = self._evaluate(table, precise)
                continue
            precise = precise or gap < _PRECISE_BELOW * self.evidence.weight
            new_table, new = self._step(table, current, precise)
            self._update_curvature(table, current, new_table, new, nats)
            table, current = new_table, new

    def _evaluate(self, table: Floats, precise: bool) -> Evaluation:
        """Pass over all reports."""
        self.passes += 1
        return self.evidence.evaluate(table, precise=precise)

    def _step(self, table: Floats, current: Evaluation, precise: bool) -> tuple[Floats, Evaluation]:
        """Return the next table: that of the quadratic model, or else that of EM.

        A step is halved until it increases the likelihood enough (Armijo), or halves the best gap
        so far. The gap still measures progress when rounding hides changes of the likelihood.
        """
        target = self._target(table, current)
        rise = self.evidence.weight * float(np.sum((target - table) * current.gradient))
        share = 1.0
        for _ in range(_MAX_HALVINGS if rise > 0 else 0):
            trial = table + share * (target - table)
            new = self._evaluate(trial, precise)
            if (
                new.log_likelihood >= current.log_likelihood + 1e-4 * share * rise
                or new.gap <= 0.5 * self._best_gap
            ):
                return trial, new
            share *= 0.5
        trial = current.em_step(table)
        return trial, self._evaluate(trial, precise)

    def _target(self, table: Floats, current: Evaluation) -> Floats:
        """Minimise the quadratic model of f at `table` over p ≥ 0, scaled to sum to 1."""
        if self.curvature is None:
            self.curvature = self._sampled_curvature(table, current)
        at = table.ravel()
        linear = 1.0 - current.gradient.ravel() - self.curvature @ at
        target = minimise_quadratic(self.curvature, linear, at > 0.0)
        total = float(target.sum())
        return (target / total).reshape(table.shape) if total > 0 else table

    def _sampled_curvature(self, table: Floats, current: Evaluation) -> Floats:
        """Return the curvature of f at a table, from a fresh sample.

        Near the optimum, where the table hardly changes, samples are averaged. Earlier samples
        would mislead: the curvature of a cell that a single report supports is a thousand times as
        large while the cell is near 0, and an average with that would keep it there.
        """
        sample = self.evidence.sample(self._sample_size(), self._rng)
        curvature = sample.information(table) / sample.weight
        if sample is not self.evidence:
            self._sampled += 1
            if current.gap > table.size:
                self._sampled = 0
            elif self._sampled > 2 and self._last_sampled is not None:
                curvature += (self._sampled - 2) * self._last_sampled
                curvature /= self._sampled - 1
            self._last_sampled = curvature
        # The exact curvature maps the table to its gradient.
        return _corrected(curvature, table.ravel(), current.gradient.ravel())

    def _sample_size(self) -> int:
        """Return the sample size for a curvature, which takes the time of about four passes."""
        cells = prod(self.evidence.shape)
        return max(_min_sample_size(cells), 50 * self.evidence.count // cells)

    def _update_curvature(
        self, table: Floats, current: Evaluation, new_table: Floats, new: Evaluation, nats: float
    ) -> None:
        """Correct the curvature after a step, or drop it if a new one would save time.

        Per cell, a curvature takes sample · cells / 2 multiplications, a pass 4 · reports (at the
        lower rate at which it runs), and a quadratic program about cells². A new curvature pays if
        it takes clearly less time than the steps still needed at the current rate of convergence.
        """
        before, after = current.gap, new.gap
        if after <= nats:
            return
        sample, cells = min(self._sample_size(), self.evidence.count), table.size
        relative_cost = 4.0 * (0.5 * sample * cells) / (4.0 * self.evidence.count + 1.3 * cells**2)
        if after > 0.9 * before or log(after / nats) > relative_cost * log(before / after):
            self.curvature = None
        elif self.curvature is not None:
            step, change = new_table - table, current.gradient - new.gradient
            self.curvature = _corrected(self.curvature, step.ravel(), change.ravel())


def _corrected(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """Return a curvature that maps `step` to `change`, by a symmetric rank-two update (BFGS)."""
    product = float(step @ change)
    mapped = curvature @ step
    modelled = float(step @ mapped)
    if product <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)) or modelled <= 0.0:
        return curvature
    updated = curvature + np.outer(change, change / product)
    updated -= np.outer(mapped, mapped / modelled)
    return updated
