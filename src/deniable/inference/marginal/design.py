"""The design of the regression: which bits each candidate string sets in each stratum.

A bit of a report is 1 with probability q* if the client's string sets it, and p* otherwise. So h
positions per stratum describe a candidate completely.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from deniable.errors import InputError
from deniable.kernels.array_types import Floats, Indices, Int32s, Int64s, Mask


@dataclass(frozen=True, eq=False)
class HashedStrings:
    """Candidate strings, described by the positions that they are hashed to.

    Parameters
    ----------
    positions : int32 array of shape (S, m, h)
        Bits or cells of each string in each stratum. All h are −1 if a stratum has no evidence for
        the string: there it counts as an unlisted string.
    labels : tuple of str, optional
        The m strings, without duplicates.
    slot : int64 array of shape (S,), optional
        Slot of each stratum; a single slot by default. Slots report different parts of strings,
        and unlisted strings may scatter differently in each.
    """

    positions: Int32s
    labels: tuple[str, ...] | None = field(default=None, kw_only=True)
    slot: Int64s | None = field(default=None, kw_only=True)

    def check_positions(self, cells: int) -> None:
        """Validate shapes and ranges, for a number of bits or cells."""
        positions = np.ascontiguousarray(self.positions)
        if positions.ndim != 3 or positions.dtype.kind not in "iu":
            raise InputError(
                "positions must be integers of shape [strata, candidates, hashes], got "
                f"{positions.dtype}{list(positions.shape)}"
            )
        if positions.shape[2] < 1:
            raise InputError("a candidate needs at least one hash, got positions with h = 0")
        if positions.size and (positions.min() < -1 or positions.max() >= cells):
            raise InputError(
                f"positions must lie in 0..{cells - 1}, or be -1, got "
                f"{positions.min()}..{positions.max()}; is 'bits' the report's width?"
            )
        object.__setattr__(self, "positions", positions.astype(np.int32, copy=False))
        if self.partial and bool(((positions < 0) != (positions[:, :, :1] < 0)).any()):
            raise InputError(
                "in each stratum, either all positions of a candidate must be -1 or none of them"
            )
        if self.slot is not None and self.slot.shape != positions.shape[:1]:
            raise InputError(
                f"slot must have one entry for each of the {positions.shape[0]} strata, got shape "
                f"{self.slot.shape}"
            )
        if self.labels is None:
            return
        if len(self.labels) != self.candidates:
            raise InputError(
                f"there are {self.candidates} candidates but {len(self.labels)} labels"
            )
        if twice := [label for label, count in Counter(self.labels).items() if count > 1]:
            raise InputError(f"candidate {twice[0]!r} is listed twice; list every candidate once")

    @property
    def strata(self) -> int:
        """Number of strata, S."""
        return int(self.positions.shape[0])

    @property
    def candidates(self) -> int:
        """Number of candidates, m."""
        return int(self.positions.shape[1])

    @property
    def hashes(self) -> int:
        """Number of hashes, h."""
        return int(self.positions.shape[2])

    @cached_property
    def partial(self) -> bool:
        """Whether some stratum has no evidence for some candidate."""
        return bool(self.positions.size) and bool(self.positions.min() < 0)

    @property
    def informative(self) -> Mask:
        """Whether a stratum has evidence for a candidate, bool[S, m]."""
        return np.asarray(self.positions[:, :, 0] >= 0)

    @property
    def informative_strata(self) -> Mask:
        """Whether a stratum has evidence for any candidate, bool[S]."""
        return np.asarray(self.informative.any(axis=1) | (self.candidates == 0))

    def take(self, candidates: Indices) -> Self:
        """Return some of the candidates, in the order given."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in candidates)
        return replace(self, positions=self.positions[:, candidates], labels=labels)

    def joined(self, more: Self) -> Self:
        """Return these candidates followed by more, without labels."""
        positions = np.concatenate([self.positions, more.positions], axis=1)
        return replace(self, positions=positions, labels=None)


@dataclass(frozen=True, eq=False)
class BloomDesign(HashedStrings):
    """Candidates as positions of bits.

    A position that repeats among the h positions of a candidate counts once, since a Bloom filter
    is a set of bits.

    Parameters
    ----------
    bits : int
        Width of a report, k.
    p_star, q_star : float, or float64 array of shape (S,)
        P(bit = 1) of bits that the client's string does not set, and of those that it sets. p* may
        exceed q*, but they must differ.
    """

    bits: int
    p_star: ArrayLike
    q_star: ArrayLike

    def __post_init__(self) -> None:
        """Validate, and broadcast p* and q* over the strata."""
        self.check_positions(self.bits)
        for name in ("p_star", "q_star"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.ndim > 1 or (value.ndim == 1 and len(value) != self.strata):
                raise InputError(
                    f"{name} must be one number or one per stratum ({self.strata}), "
                    f"got shape {value.shape}"
                )
            object.__setattr__(self, name, np.broadcast_to(value, self.strata).copy())
        p, q = self.p, self.q
        if not (np.all((p >= 0) & (p <= 1)) and np.all((q >= 0) & (q <= 1))):
            raise InputError(f"p* and q* must lie in [0, 1], got p* = {p} and q* = {q}")
        if np.any(p == q):
            raise InputError(
                "p* = q* in some stratum, so its reports hold no information; leave the stratum out"
            )

    @property
    def p(self) -> Floats:
        """p* per stratum, float64[S]."""
        return np.asarray(self.p_star, dtype=np.float64)

    @property
    def q(self) -> Floats:
        """q* per stratum, float64[S]."""
        return np.asarray(self.q_star, dtype=np.float64)

    def distinct_first(self) -> tuple[Int32s, Int32s]:
        """Return positions with repeated ones moved to the end, and the number of distinct ones.

        They are int32[S, m, h] and int32[S, m]; the number is 0 if the positions are -1.
        """
        ordered, first = _distinct(self.positions)
        rank = np.argsort(~first, axis=2, kind="stable")
        count = first.sum(axis=2).astype(np.int32)
        return np.ascontiguousarray(np.take_along_axis(ordered, rank, axis=2)), count

    def indicator(self, candidates: Indices | None = None) -> sparse.csc_matrix:
        """Return the 0/1 matrix of some candidates: float64[S * k, len(candidates)], row s*k+b."""
        chosen = self.positions if candidates is None else self.positions[:, candidates]
        strata, columns = chosen.shape[:2]
        ordered, first = _distinct(chosen)
        rows = ordered + (np.arange(strata, dtype=np.int64) * self.bits)[:, None, None]
        rows, first = rows.transpose(1, 0, 2), first.transpose(1, 0, 2)
        indices = rows[first]
        pointer = np.concatenate([[0], np.cumsum(first.sum(axis=(1, 2)))])
        shape = (strata * self.bits, columns)
        return sparse.csc_matrix((np.ones(indices.size), indices, pointer), shape=shape)


def _distinct(positions: Int32s) -> tuple[Int32s, Mask]:
    """Sort positions int32[S, m, h], and mark those that are neither repeated nor -1."""
    ordered = np.sort(positions, axis=2)
    first = ordered >= 0
    first[:, :, 1:] &= ordered[:, :, 1:] != ordered[:, :, :-1]
    return ordered, first
