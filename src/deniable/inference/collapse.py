"""Fit more categories than are asked for, then add the extra ones up into Other.

Detected strings outside the top have their own likelihood; as categories of their own they are
told apart from Other report by report, which leaves less for Other's model to get wrong. For one
variable that gains nothing measurable over the mixture (summed absolute error of five known
shares .0087 against .0084, N = 50,000, four runs); it is meant for joint tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.results.marginal import Marginal


@dataclass(frozen=True, eq=False)
class Collapse:
    """Which categories are fitted, and where each goes in the table that is shown.

    fitted : candidates with a category in the fit, the shown ones first;
    shown : how many of them are shown. Other is the last category of both tables.
    """

    fitted: NDArray[np.intp]
    shown: int

    def groups(self, *, other: bool = True) -> NDArray[np.intp]:
        """Return each fitted category's place among the shown: intp[fitted (+ 1 with Other)]."""
        return np.minimum(np.arange(self.fitted.size + int(other)), self.shown)

    def matrix(self, *, other: bool = True) -> NDArray[np.float64]:
        """Return the 0/1 matrix L that adds fitted categories up into shown ones.

        A joint table J collapses to L_x @ J @ L_y.T, its covariance over vec(J) with their
        Kronecker product.
        """
        groups = self.groups(other=other)
        places = int(groups.max()) + 1 if groups.size else 0
        return np.asarray(np.arange(places)[:, None] == groups, dtype=np.float64)


def choose_categories(marginal: Marginal, top: int, *, cap: int = 30) -> Collapse:
    """Fit every detected candidate up to `cap`, and show the `top` most frequent."""
    if top < 0 or cap < top:
        raise InputError(f"expected 0 <= top <= cap, got top = {top} and cap = {cap}")
    fitted = marginal.top(cap)
    return Collapse(fitted, min(top, fitted.size))
