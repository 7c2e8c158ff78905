"""Candidate strings: as text, filtered by what the analyst knows, and tested on full strings.

The full-string reports take no part in proposing a candidate, and their noise is independent of the
gram reports' noise, so a candidate's test is honest however it was proposed, as long as every
candidate that was looked at is counted: levels, one per candidate, sum to alpha (Bonferroni with
weights that do not depend on the full-string reports).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from deniable.discovery.ngrams.grams import Rows, full_design
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.multiplicity import upper_tail
from deniable.inference.marginal.regression import BitTable, fit_columns
from deniable.inference.marginal.scan import scan_candidates
from deniable.mechanisms import Bloom
from deniable.protocols import NGrams

Floats = NDArray[np.float64]
Accept = str | Callable[[str], bool] | None


def predicate(accept: Accept) -> Callable[[str], bool] | None:
    """A regular expression (for the whole string) or a function as a function; None for all."""
    if accept is None:
        return None
    if callable(accept):
        return accept
    try:
        pattern = re.compile(accept)
    except re.error as error:
        raise InputError(f"accept is not a regular expression: {error}; got {accept!r}") from None
    return lambda text: pattern.fullmatch(text) is not None


def accepted(protocol: NGrams, rows: Rows, accept: Accept) -> NDArray[np.intp]:
    """Which strings, uint8[C, M], the analyst's predicate accepts."""
    keep = predicate(accept)
    if keep is None:
        return np.arange(len(rows))
    text = protocol.alphabet.text
    return np.array([i for i, row in enumerate(rows) if keep(text(row.tobytes()))], np.intp)


def string_noise(protocol: NGrams, reports: int) -> float:
    """Standard error of a rare string's frequency from the full-string reports.

    sqrt(p(1-p)/h) / (q-p) / sqrt(N), without the little that shared bits add.
    """
    mechanism = protocol.full
    assert isinstance(mechanism, Bloom)
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    return sqrt(p * (1 - p) / mechanism.hashes / reports) / abs(q - p)


@dataclass(frozen=True, eq=False)
class Tested:
    """Candidates after their test: p_value and standard_error float64[C], found bool[C]."""

    p_value: Floats
    standard_error: Floats
    found: NDArray[np.bool_]


def judge(protocol: NGrams, counts: BitCounts, rows: Rows, level: Floats, known: int = 0) -> Tested:
    """Test each string on the full-string reports at its own level.

    rows : uint8[C, M], different strings, of which the first `known` are taken as there: the
    others are tested on the residual of a fit of these. level : float64[C], what each p-value must
    not exceed.
    """
    if len(rows) == 0:
        none = np.zeros(0)
        return Tested(none, none, np.zeros(0, bool))
    design = full_design(protocol, rows)
    table = BitTable.of(counts, design, True)
    active = np.arange(known, dtype=np.intp)
    fit = fit_columns(table, design.indicator(active))
    scan = scan_candidates(
        table, design, active, fit, float(norm.isf(level[level > 0].min(initial=0.05)))
    )
    p_value = np.where(scan.identified, upper_tail(scan.test, scan.skewness), 1.0)
    return Tested(p_value, np.sqrt(scan.variance), p_value <= level)
