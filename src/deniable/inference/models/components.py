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

from deniable.inference.marginal.design import BloomDesign
from deniable.inference.models.bit_channel import BitChannel
from deniable.inference.models.hash_design import HashDesign
from deniable.inference.models.other import MixtureOther, Other, ProductOther
from deniable.kernels.hashing.lines import line_numbers

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


def components_of(known: BloomDesign | HashDesign | BitChannel, other: Other | None) -> Components:
    """The categories of one question, Other last, if there is one."""
    if isinstance(known, BitChannel):
        return Components(known.theta.__getitem__, np.eye(known.theta.shape[1]))
    size = known.candidates
    if isinstance(other, ProductOther) and isinstance(known, BloomDesign):
        strings, profile = _bloom(known), other.theta

        def theta(strata: Indices) -> Floats:
            found = strings(strata)
            found[:, -1] = profile[strata]
            return found

        return Components(theta, np.eye(size + 1))
    listed: list[BloomDesign | HashDesign] = [known]
    mixing = np.eye(size, size + 1)
    if isinstance(other, MixtureOther):
        listed.append(other.tail)
        tail = len(other.share)
        mixing = np.zeros((size + 1, size + tail + 1))
        mixing[:size, :size] = np.eye(size)
        mixing[size, size:] = np.append(other.share, other.remainder)
    if isinstance(known, HashDesign):
        cells = np.concatenate(
            [part.cells for part in listed if isinstance(part, HashDesign)], axis=1
        )
        names = tuple(map(str, range(cells.shape[1])))
        return Components(_numbers(replace(known, cells=cells, labels=names)), mixing, True)
    parts = [part.positions for part in listed if isinstance(part, BloomDesign)]
    whole = replace(known, positions=np.concatenate(parts, axis=1), labels=None)
    return Components(_bloom(whole), mixing)


def _bloom(design: BloomDesign) -> Callable[[Indices], Floats]:
    """Strings of a Bloom filter, an unknown one last: it sets each bit as often as any other."""
    chance = 1.0 - (1.0 - 1.0 / design.bits) ** design.hashes

    def theta(strata: Indices) -> Floats:
        positions = design.positions[strata]
        member = np.zeros((len(strata), design.candidates + 1, design.bits))
        np.put_along_axis(member[:, :-1], np.maximum(positions, 0), 1.0, axis=2)
        member[:, :-1][positions[:, :, 0] < 0] = chance
        member[:, -1] = chance
        p, q = design.p[strata, None, None], design.q[strata, None, None]
        return np.asarray(p + (q - p) * member)

    return theta


def _numbers(hashed: HashDesign) -> Callable[[Indices], Floats]:
    """Strings of local hashing, an unknown one last. A stratum is a slot, a family and a line."""
    own, another, unknown = hashed.chance

    def theta(strata: Indices) -> Floats:
        family, line = np.divmod(strata, hashed.lines)
        slopes = hashed.line_digits[line][:, None]
        number = line_numbers(hashed.cell_digits[family], slopes, hashed.values)
        out = np.full((len(strata), hashed.candidates + 1, hashed.values), another)
        np.put_along_axis(out[:, :-1], number[:, :, None], own, axis=2)
        out[:, :-1][hashed.cells[family] < 0] = unknown
        out[:, -1] = unknown
        return out

    return theta
