"""Types of the arrays that the whole package passes around.

The first group says only what the elements are; the second says what an array means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Complexes = NDArray[np.complex128]
Bytes = NDArray[np.uint8]
UInt16s = NDArray[np.uint16]
UInt32s = NDArray[np.uint32]
Words = NDArray[np.uint64]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Indices = NDArray[np.intp]
Integers = NDArray[np.integer[Any]]
"""Integers of any width."""
Mask = NDArray[np.bool_]

Table = NDArray[np.floating[Any]]
"""A table of probabilities; its precision is that of the computation."""
RowShard = tuple[NDArray[np.floating[Any]], ...]
"""One float32[N, m] per variable, each row's largest entry 1; then, optionally, weights [N]."""
Weights = Floats | None
"""Number of reports that each row stands for, [N]; None means one each."""
Strata = Integers | None
"""Stratum of each row, [N]: what clients send in the clear; None where nothing is known."""
