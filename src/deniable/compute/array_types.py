"""Types of the arrays that pass between an analysis and whatever works on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DeviceArray = Any
"""A NumPy array, or a `torch.Tensor` in the memory of a device."""
Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
Integers = NDArray[np.integer[Any]]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Table = NDArray[np.floating[Any]]
"""A table of probabilities; its precision is that of the work done with it."""
Bytes = NDArray[np.uint8]
RowShard = tuple[NDArray[np.floating[Any]], ...]
"""One float32[N, m] per variable, each row's largest entry 1; then, optionally, weights [N]."""
RowArrays = Sequence[DeviceArray]
"""Likelihood rows: one float32[N, m] per variable."""
Weights = NDArray[np.floating[Any]] | None
"""How many reports each row stands for, [N]; None means one each."""
Strata = Integers | None
"""What is known in the clear of each row, [N]; None where nothing is."""
