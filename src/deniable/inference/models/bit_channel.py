"""The dense channel: P(bit = 1 | category) for any mechanism with independent bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.inference.marginal.design import BloomDesign


@dataclass(frozen=True, eq=False)
class BitChannel:
    """Bit probabilities of every category.

    theta : float64[S, m, k], P(bit b = 1 | category i, stratum s), inside [0, 1].
    labels : the m categories, all different, or None.
    """

    theta: NDArray[np.float64]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Validate shape and range."""
        theta = np.ascontiguousarray(self.theta, dtype=np.float64)
        if theta.ndim != 3:
            raise InputError(f"theta must have shape [strata, categories, bits], got {theta.shape}")
        if theta.size and not (theta.min() >= 0 and theta.max() <= 1):
            raise InputError(
                f"theta must lie in [0, 1], got values in [{theta.min()}, {theta.max()}]"
            )
        if self.labels is not None and len(set(self.labels)) != theta.shape[1]:
            raise InputError(
                f"{theta.shape[1]} categories need as many different labels, "
                f"got {len(self.labels)} of which {len(set(self.labels))} differ"
            )
        object.__setattr__(self, "theta", theta)

    @classmethod
    def of(cls, design: BloomDesign) -> BitChannel:
        """Spell a sparse design out as bit probabilities."""
        shape = (design.strata, design.bits, design.candidates)
        member = design.indicator().toarray().reshape(shape).transpose(0, 2, 1)
        member[~design.told] = 1.0 - (1.0 - 1.0 / design.bits) ** design.hashes
        p, q = design.p[:, None, None], design.q[:, None, None]
        return cls(p + (q - p) * member, design.labels)
