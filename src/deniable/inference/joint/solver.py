"""Maximum-likelihood joint distributions by sequential quadratic programming.

Minimise f(p) = −l(p)/N + Σp over p ≥ 0: the sum replaces the constraint Σp = 1, which then holds at
the optimum by itself. Each step minimises a quadratic model of f over p ≥ 0. The gradient is exact,
one pass over all reports; the curvature comes from a subsample and is corrected by what the passes
reveal (BFGS): an error in it costs only speed, since the certificate uses the gradient alone.

Early passes run in float32. Once the gap per report is near what float32 resolves they run in
float64, so a gap is only ever certified in float64.
"""

import warnings
from dataclasses import dataclass, field
from math import log, prod

import numpy as np

from deniable.compute.cpu.threads import one_blas_thread
from deniable.compute.progress import report_progress
from deniable.errors import InputError
from deniable.inference.joint.evidence import Evaluation, Evidence
from deniable.inference.joint.quadratic import minimise_quadratic
from deniable.kernels.array_types import Floats

MAX_CELLS = 4096
"""The curvature of a larger table would not fit a small machine's memory."""
_PRECISE_BELOW = 2e-5
"""Gap per report, in nats, below which passes run in float64 (float32 resolves about 1e-8)."""
_HALVINGS = 4
_GROWTH = 8
"""Each subsample is this many times the one before."""
_WARM_UP = 30
"""EM passes over the smallest subsample; they cost less than one quadratic model."""


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


def maximise(
    evidence: Evidence,
    *,
    nats: float = 0.01,
    start: Floats | None = None,
    max_passes: int = 200,
    pseudo: Floats | None = None,
) -> JointFit:
    """Fit the joint distribution of one, two or more variables, certified to within `nats`.

    start : a table to start from; the answer does not depend on it.
    pseudo : float64[m, n], imaginary reports per cell, seen without noise, added to the real ones;
    the result's log-likelihood and gap then include them.

    >>> from deniable.inference.joint.evidence import gather
    >>> a = np.array([[1, 0.1], [0.1, 1], [1, 0.1]], np.float32)
    >>> maximise(gather([(a, a)], (2, 2))).table.round(2)
    array([[0.67, 0.  ],
           [0.  , 0.33]])
    """
    cells = prod(evidence.shape)
    if cells > MAX_CELLS:
        raise InputError(
            f"tables of at most {MAX_CELLS} cells, got {cells} ({evidence.shape}): collapse "
            "categories"
        )
    with one_blas_thread():
        if start is None:
            table, curvature = _from_subsamples(evidence)
        else:
            table, curvature = _checked_start(start, evidence), None
        solver = SqpSolver(evidence, pseudo, curvature, "fitting the table")
        table, evaluation = solver.run(table, nats, max_passes)
    gap = evaluation.gap
    if gap > nats:
        warnings.warn(
            f"the fit stopped after {solver.passes} passes with a gap of {gap:.3g} nats, "
            f"{nats:.3g} asked; raise max_passes",
            NotConvergedWarning,
            stacklevel=2,
        )
    shaped = table.reshape(evidence.shape)
    return JointFit(shaped, evaluation.log_likelihood, gap, solver.passes, gap <= nats)


def _checked_start(start: Floats, evidence: Evidence) -> Floats:
    """Return `start` as a matrix with every cell above 0, since EM never revives one."""
    table = np.asarray(start, np.float64)
    if table.shape != evidence.shape or not np.all(table >= 0) or not table.sum() > 0:
        raise InputError(
            f"start must be a non-negative table of shape {evidence.shape} with a positive sum, "
            f"got shape {table.shape}"
        )
    opened: Floats = 0.999 * (table / table.sum()).reshape(evidence.folded) + 0.001 / table.size
    return opened


def _from_subsamples(evidence: Evidence) -> tuple[Floats, Floats | None]:
    """Climb on growing subsamples; return a positive table near the optimum, and its curvature.

    A subsample's optimum is off by about cells/2 nats of its own likelihood, so a gap of a tenth of
    that is close enough there.
    """
    table: Floats = np.full(evidence.folded, 1.0 / prod(evidence.shape))
    size = _least_sample(table.size)
    curvature: Floats | None = None
    while 4 * size <= evidence.count:
        sample = evidence.sample(size, np.random.default_rng(size))
        if curvature is None:
            for _ in range(_WARM_UP):
                table = sample.evaluate(table, precise=False).em_step(table)
        solver = SqpSolver(sample, None, curvature)
        table, _ = solver.run(table, 0.05 * table.size, 30)
        curvature = solver.curvature
        table = _opened(table)
        size *= _GROWTH
    return table, curvature


def _opened(table: Floats) -> Floats:
    """Mix in a little of the independence table and the uniform one, so that no cell stays at 0."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return 0.988 * table + 0.01 * independent + 0.002 / table.size


def _least_sample(cells: int) -> int:
    return max(20 * cells, 8192)


@dataclass
class SqpSolver:
    """One ascent: the evidence, imaginary reports per cell, and the curvature known so far.

    curvature : float64[mn, mn], of f, or None where it must be sampled (again); stage : its name
    for those who follow its progress, counted in logarithms of the gap.
    """

    evidence: Evidence
    pseudo: Floats | None = None
    curvature: Floats | None = None
    stage: str = ""
    passes: int = 0
    _builds: int = 0
    _previous: Floats | None = None
    _first: float = 0.0
    _best: float = np.inf
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2))

    @property
    def weight(self) -> float:
        """Reports, real and imaginary."""
        return self.evidence.weight + (0.0 if self.pseudo is None else float(self.pseudo.sum()))

    def run(self, table: Floats, nats: float, max_passes: int) -> tuple[Floats, Evaluation]:
        """Climb from a strictly positive table; return the last one and its pass in float64."""
        precise = False
        now = self._evaluate(table, precise)
        while True:
            gap = now.gap
            self._best = min(self._best, gap)
            if self.stage and 0 < nats < self._best < np.inf:
                self._first = max(self._first, gap)
                report_progress(self.stage, 1 - log(self._best / nats) / log(self._first / nats))
            if gap <= nats or self.passes >= max_passes:
                if precise:
                    return table, now
                precise = True
                now = self._evaluate(table, precise)
                continue
            precise = precise or gap < _PRECISE_BELOW * self.weight
            following, then = self._step(table, now, precise)
            self._learn(table, now, following, then, nats)
            table, now = following, then

    def _evaluate(self, table: Floats, precise: bool) -> Evaluation:
        self.passes += 1
        seen = self.evidence.evaluate(table, precise=precise)
        if self.pseudo is None:
            return seen
        held = self.pseudo > 0
        with np.errstate(divide="ignore"):
            logs = float(np.sum(self.pseudo[held] * np.log(table[held])))
        gradient = seen.gradient * self.evidence.weight
        gradient[held] += self.pseudo[held] / np.maximum(table[held], 1e-300)
        return Evaluation(seen.log_likelihood + logs, gradient / self.weight, self.weight)

    def _step(self, table: Floats, now: Evaluation, precise: bool) -> tuple[Floats, Evaluation]:
        """Return the next table: the quadratic model's, halved while it overshoots, else EM's.

        A step is good if it lifts the likelihood (Armijo), or if it halves the best gap so far,
        which still tells up from down where rounding hides the likelihood's last digits.
        """
        target = self._target(table, now)
        rise = self.weight * float(np.sum((target - table) * now.gradient))
        share = 1.0
        for _ in range(_HALVINGS if rise > 0 else 0):
            trial = table + share * (target - table)
            then = self._evaluate(trial, precise)
            if (
                then.log_likelihood >= now.log_likelihood + 1e-4 * share * rise
                or then.gap <= 0.5 * self._best
            ):
                return trial, then
            share *= 0.5
        trial = now.em_step(table)
        return trial, self._evaluate(trial, precise)

    def _target(self, table: Floats, now: Evaluation) -> Floats:
        """Minimise the quadratic model of f at `table` over p ≥ 0, scaled to sum to 1."""
        if self.curvature is None:
            self.curvature = self._sampled_curvature(table, now)
        at = table.ravel()
        # Where a logarithm holds a cell up, its model is good for a limited fall only.
        low = np.zeros(at.size) if self.pseudo is None else 0.1 * at * (self.pseudo.ravel() > 0)
        linear = 1.0 - now.gradient.ravel() - self.curvature @ (at - low)
        arrays = self.evidence.arrays
        target = low + minimise_quadratic(self.curvature, linear, at > low, arrays=arrays)
        total = float(target.sum())
        return (target / total).reshape(table.shape) if total > 0 else table

    def _sampled_curvature(self, table: Floats, now: Evaluation) -> Floats:
        """Curvature of f at `table`, from a fresh sample.

        Near the optimum, where the table hardly moves any more, samples are averaged. Not before:
        a cell that one report holds up is curved a thousand times as much where it is still near 0,
        and an average with that would keep it there.
        """
        sample = self.evidence.sample(self._sample_size(), self._rng)
        share = self.evidence.weight / sample.weight
        curvature = sample.information(table) * (share / self.weight)
        if self.pseudo is not None:
            diagonal = np.diag_indices_from(curvature)
            curvature[diagonal] += (self.pseudo / table**2).ravel() / self.weight
        if sample is not self.evidence:
            self._builds += 1
            if now.gap > table.size:
                self._builds = 0
            elif self._builds > 2 and self._previous is not None:
                curvature += (self._builds - 2) * self._previous
                curvature /= self._builds - 1
            self._previous = curvature
        # The true curvature maps the table to its gradient, whatever the sample.
        return _corrected(curvature, table.ravel(), now.gradient.ravel())

    def _sample_size(self) -> int:
        """Reports to sample a curvature from: worth about four passes."""
        cells = prod(self.evidence.shape)
        return max(_least_sample(cells), 50 * self.evidence.count // cells)

    def _learn(
        self, table: Floats, now: Evaluation, following: Floats, then: Evaluation, nats: float
    ) -> None:
        """Correct the curvature by what a step revealed, or drop it where a new one saves passes.

        Per cell, a curvature costs sample · cells / 2 multiplications, a pass 4 · reports, counted
        at the slower rate it runs at, and a quadratic program some cells². A new curvature is worth
        it where it costs clearly less than the steps still to come at the present pace.
        """
        before, after = now.gap, then.gap
        if after <= nats:
            return
        sample, cells = min(self._sample_size(), self.evidence.count), table.size
        price = 4.0 * (0.5 * sample * cells) / (4.0 * self.evidence.count + 1.3 * cells**2)
        if after > 0.9 * before or log(after / nats) > price * log(before / after):
            self.curvature = None
        elif self.curvature is not None:
            step, change = following - table, now.gradient - then.gradient
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
