"""What reports of each category are like, stratum by stratum, as mixtures of simple components.

A component is a string, or an unknown one: given it, bits are independent, or exactly one of them
is set (a number instead of bits). A category is a mixture of components: a known value is one
alone; Other is the strings that the marginal decode saw outside the categories, and unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Components:
    """theta(strata) : float64[S, C, k], P(bit = 1 | component) in each of some strata;
    mixing : float64[m, C], what each category is made of, rows of sum 1;
    exclusive : whether a report sets exactly one bit.
    """

    theta: Callable[[Indices], Floats]
    mixing: Floats
    exclusive: bool = False

    def collapsed(self, groups: Indices, margin: Floats) -> Components:
        """Categories added up: groups[i] is the new one of category i; margin : their shares."""
        matrix = np.zeros((int(groups.max()) + 1, groups.size))
        # A little for categories estimated at 0, so that one made of them alone exists.
        matrix[groups, np.arange(groups.size)] = margin + 1e-6
        matrix /= matrix.sum(axis=1, keepdims=True)
        return replace(self, mixing=matrix @ self.mixing)
