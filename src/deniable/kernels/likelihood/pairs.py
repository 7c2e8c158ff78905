"""Numbering of the unordered pairs of categories."""

import numpy as np

from deniable.kernels.array_types import Indices


def pair_index(size: int) -> Indices:
    """Return the number of each pair of categories, intp[size, size]; both orders have the same.

    >>> pair_index(3)
    array([[0, 1, 2],
           [1, 3, 4],
           [2, 4, 5]])
    """
    first, second = np.triu_indices(size)
    index = np.empty((size, size), np.intp)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index
