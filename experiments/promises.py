"""Lines that say whether a promise was kept, as calibration experiments print them.

`make calibrate` keeps what the experiments printed in docs/results/calibration; `tools/facts.py`
makes the table of docs/results/promises.md from these lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.kernels.array_types import Floats

MARK = "promise: "
CLOSE = 3.0
"""Measured figures have errors of their own: this many of them are allowed beyond the target."""


@dataclass(frozen=True)
class Promise:
    """A promise, its target, what was measured, and whether the two agree."""

    sentence: str
    target: str
    measured: str
    verdict: str

    def __str__(self) -> str:
        return MARK + " | ".join((self.sentence, self.target, self.measured, self.verdict))

    @classmethod
    def read(cls, line: str) -> Promise:
        """Return the promise of a line that `str` made."""
        return cls(*line.removeprefix(MARK).split(" | "))


def judged(sentence: str, values: Floats, errors: Floats, low: float, high: float) -> Promise:
    """Compare measured shares with the range in which all of them should be.

    The rows outside decide, or else those close to an end. They are too imprecise if an error is
    above half the width of the target, or above a tenth of a target without an upper end.

    Parameters
    ----------
    sentence : str
        The promise, in plain words.
    values, errors : float64[n]
        One share per row of the experiment's table, and its standard error as a measurement.
    low, high : float
        The target; 0 or 1 if only the other end matters.
    """
    values, errors = np.atleast_1d(np.asarray(values)), np.broadcast_to(errors, np.shape(values))
    beyond = np.maximum(low - values, values - high)
    outside = beyond > 0
    deciding = outside if outside.any() else beyond > -CLOSE * errors
    error = float(errors[deciding].max(initial=0.0))
    precise = error <= ((high - low) / 2 if np.isfinite(high) else low / 10)
    if missed := int(np.sum(beyond > CLOSE * errors)):
        verdict = f"missed in {missed} of {values.size} rows"
    elif not precise:
        verdict = f"not measured precisely enough (±{error:.3f})"
    elif outside.any():
        verdict = f"kept within error (±{error:.3f})"
    else:
        verdict = "kept"
    ends = sorted({f"{values.min():.3f}", f"{values.max():.3f}"})
    return Promise(sentence, _range(low, high), " to ".join(ends), verdict)


def _range(low: float, high: float) -> str:
    if low <= 0:
        return f"at most {high:g}"
    return f"at least {low:g}" if high >= 1 else f"{low:g} to {high:g}"


def share_error(share: Floats, crowds: int | Floats) -> Floats:
    """Return the standard error of a share of crowds; not 0 if the share is 0 or 1.

    >>> float(share_error(np.array(0.05), 100).round(3))
    0.023
    """
    kept = (np.asarray(share) * crowds + 0.5) / (crowds + 1)
    return np.asarray(np.sqrt(kept * (1 - kept) / crowds))
