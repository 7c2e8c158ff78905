"""Pearson's correlation of two questions whose categories stand for numbers.

With x and y the numbers of the categories (middles of bins; 1 and 0 for yes and no), and p the
joint table of the clients that answered both questions, ρ is a function of six sums Σ p·w with
w = 1, x, y, x², y² and xy. We start from the *unconstrained* estimate of the table, whose error is
close to normal (see `effect_size`), and get the standard error of ρ by the delta method. The 95%
interval is symmetric on Fisher's scale artanh ρ.

Numbers within a bin are taken to be in its middle, which makes ρ a little smaller than that of the
numbers themselves: by the factor √(1 − w²/(12σ²)) per question with bins of width w.
"""

from collections.abc import Sequence

import numpy as np

from deniable.formatting import Z95
from deniable.kernels.array_types import Floats
from deniable.results.association import Correlation
from deniable.results.covariance import Covariance

UNKNOWN = Correlation(np.nan, -1.0, 1.0)


def correlation_of(table: Covariance, scores: Sequence[Floats]) -> Correlation:
    """Estimate the correlation from an unconstrained table and its covariance.

    scores : for each question the numbers of its categories, NaN where there is none
    """
    x, y = np.meshgrid(*scores, indexing="ij")
    known = ~np.isnan(x + y).ravel()
    x, y = x.ravel()[known], y.ravel()[known]
    # Large numbers with small differences would lose digits.
    x, y = x - x.mean(), y - y.mean()
    weights = np.stack([np.ones(x.size), x, y, x * x, y * y, x * y])
    shares = table.table.ravel()[known]
    whole, *sums = (weights @ shares).tolist()
    matrix = table.matrix[np.ix_(known, known)]
    if whole <= Z95 * np.sqrt(max(float(matrix.sum()), 0.0)):
        return UNKNOWN
    mean_x, mean_y, xx, yy, xy = (each / whole for each in sums)
    var_x, var_y, covariance = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
    if min(var_x, var_y) <= 0:
        return UNKNOWN
    scale = np.sqrt(var_x * var_y)
    rho = float(np.clip(covariance / scale, -1 + 1e-9, 1 - 1e-9))
    # Influence of each cell on ρ: its standardised product less ρ times its average square.
    u, v = (x - mean_x) / np.sqrt(var_x), (y - mean_y) / np.sqrt(var_y)
    influence = (u * v - rho * (u * u + v * v) / 2) / whole
    error = np.sqrt(max(float(influence @ matrix @ influence), 0.0))
    reach = Z95 * error / (1 - rho**2)
    low, high = np.tanh([np.arctanh(rho) - reach, np.arctanh(rho) + reach]).tolist()
    return Correlation(rho, low, high)
