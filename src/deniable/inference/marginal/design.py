"""The sparse design: which bits each candidate string sets in each stratum.

A report's bit is 1 with probability q* where the candidate sets it and p* elsewhere, so h positions
per stratum say all there is to say about a candidate.
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
    """Candidate strings by what they are hashed to.

    positions : int32[S, m, h], the bits or cells of each string in each stratum. All h are −1 where
        the reports of a stratum say nothing of the string: there it is as good as a string that
        nobody listed.
    labels : the m strings, all different, or None.
    slot : int64[S], or None for one slot: strata of different slots report different parts of
        strings, which may scatter more or less.
    """

    positions: Int32s
    labels: tuple[str, ...] | None = field(default=None, kw_only=True)
    slot: Int64s | None = field(default=None, kw_only=True)

    def check_positions(self, cells: int) -> None:
        """Validate shapes and ranges; `cells` is how many bits or cells there are."""
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
            raise InputError("a candidate has all its positions in a stratum, or none: all -1")
        if self.slot is not None and self.slot.shape != positions.shape[:1]:
            raise InputError(
                f"expected a slot for each of {positions.shape[0]} strata, got {self.slot.shape}"
            )
        if self.labels is None:
            return
        if len(self.labels) != self.candidates:
            raise InputError(f"{self.candidates} candidates but {len(self.labels)} labels")
        if twice := [label for label, count in Counter(self.labels).items() if count > 1]:
            raise InputError(f"candidate {twice[0]!r} is listed twice; list every candidate once")

    @property
    def strata(self) -> int:
        """How many strata, S."""
        return int(self.positions.shape[0])

    @property
    def candidates(self) -> int:
        """How many candidates, m."""
        return int(self.positions.shape[1])

    @property
    def hashes(self) -> int:
        """How many hashes, h."""
        return int(self.positions.shape[2])

    @cached_property
    def partial(self) -> bool:
        """Whether some stratum says nothing of some candidate."""
        return bool(self.positions.size) and bool(self.positions.min() < 0)

    @property
    def informative(self) -> Mask:
        """bool[S, m], whether a stratum's reports say anything of a candidate."""
        return np.asarray(self.positions[:, :, 0] >= 0)

    @property
    def informative_strata(self) -> Mask:
        """bool[S], whether a stratum's reports say anything of some candidate."""
        return np.asarray(self.informative.any(axis=1) | (self.candidates == 0))

    def take(self, candidates: Indices) -> Self:
        """Return the same of some candidates, in the order given."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in candidates)
        return replace(self, positions=self.positions[:, candidates], labels=labels)

    def joined(self, more: Self) -> Self:
        """Return the same of these candidates and more, without labels."""
        positions = np.concatenate([self.positions, more.positions], axis=1)
        return replace(self, positions=positions, labels=None)


@dataclass(frozen=True, eq=False)
class BloomDesign(HashedStrings):
    """Candidates as bit positions. A position that repeats among a candidate's h counts once: a
    Bloom filter is a set of bits.

    bits : k, width of a report.
    p_star, q_star : float64[S] (or one number for all), P(bit = 1) off and on the candidate's
        bits. p* > q* is legal, p* = q* carries no information and is refused.
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
            raise InputError("p* = q* in some stratum: its reports say nothing; leave it out")

    @property
    def p(self) -> Floats:
        """p* per stratum, float64[S]."""
        return np.asarray(self.p_star, dtype=np.float64)

    @property
    def q(self) -> Floats:
        """q* per stratum, float64[S]."""
        return np.asarray(self.q_star, dtype=np.float64)

    def distinct_first(self) -> tuple[Int32s, Int32s]:
        """Return the positions with repeated ones moved to the end, int32[S, m, h], and how many
        are distinct, int32[S, m]: 0 where they are -1."""
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
    """Positions [S, m, h] in order, and which are the first of their kind and not -1."""
    ordered = np.sort(positions, axis=2)
    first = ordered >= 0
    first[:, :, 1:] &= ordered[:, :, 1:] != ordered[:, :, :-1]
    return ordered, first
