"""Protocol for numbers: report the bin that holds the value, as one of several options.

Bin i is [edge i, edge i+1); the last bin is closed. Numbers below the first edge count in the first
bin, numbers above the last edge in the last one, and NaN counts as no answer. So every number is
reported, and a missing report reveals nothing.

A published survey holds the edges as decimal texts, each the shortest that stands for its double:
Python, JavaScript and every other language with IEEE 754 read the same edges.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Self

from deniable.errors import InputError
from deniable.mechanisms import Mechanism
from deniable.mechanisms.base import Settings
from deniable.protocols.base import Value, register
from deniable.protocols.single import Single

MAX_BINS = 256
"""Maximum number of bins: results hold a covariance for every pair of them."""
OUTSIDE = "nearest bin"
"""Where numbers outside the bins count, as a published survey says it to the people it asks."""
MIN_DIGITS = 3
"""Least number of significant digits of the edges of a logarithmic scale."""


@register
@dataclass(frozen=True)
class Bins(Single):
    """Reports the bin of a number with the whole ε.

    Parameters
    ----------
    mechanism : Mechanism
        Reports the label of the bin; its options are `bin_labels(edges)`.
    edges : tuple of float
        Edges of the bins, in increasing order.
    unit : str, default ""
        Unit of the numbers, such as "ms", for people.

    Raises
    ------
    InputError
        If there are too few or too many edges, or they are not finite and increasing.

    Examples
    --------
    >>> from deniable.mechanisms import Choice, Noise
    >>> edges = (0.0, 10.0, 20.0, 50.0)
    >>> noise = Noise.of(p=0.25, q=0.75)
    >>> bins = Bins(Choice(noise=noise, options=bin_labels(edges)), edges, "ms")
    >>> [bins.token(x, 0, 0) for x in (-1, 0, 9.99, 10, 50, 1000)]
    ['0 to 10', '0 to 10', '0 to 10', '10 to 20', '20 to 50', '20 to 50']
    """

    edges: tuple[float, ...]
    unit: str = ""

    name = "bins"

    def __post_init__(self) -> None:
        check_edges(self.edges)
        if type(self.unit) is not str:
            raise InputError(f"unit must be a text, not {self.unit!r:.80}")
        if self.mechanism.labels != bin_labels(self.edges):
            raise InputError("the options of a number question must be the labels of its bins")

    def accepts(self, kind: str, mechanism: Mechanism) -> bool:
        """Return whether a question of this kind can use this mechanism: any that reports options.

        Whoever adds a mechanism for choices need not know about bins.
        """
        return kind == "number" and mechanism.question_kind == "choice"

    @cached_property
    def inner_edges(self) -> tuple[float, ...]:
        """All edges but the first and the last: those that decide the bin of a number."""
        return self.edges[1:-1]

    def token(self, value: Value, part: int, slot: int) -> str | None:
        """Return the label of the bin that holds the number; None for NaN."""
        if value != value:
            return None
        try:
            number = float(value)  # as in other languages
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        return self.mechanism.labels[bisect_right(self.inner_edges, number)]

    def lost(self, value: Value) -> str | None:
        """Say what is lost of a number outside the range of the bins."""
        if value != value:
            return "NaN counts as no answer"
        if self.edges[0] <= value <= self.edges[-1]:
            return None
        low, high = edge_text(self.edges[0]), edge_text(self.edges[-1])
        return f"numbers outside {low} to {high} are counted in the first or last bin"

    @property
    def token_settings(self) -> Settings:
        """Settings that decide the bin of a number; the unit does not."""
        return {**super().token_settings, "edges": list(map(edge_text, self.edges))}

    def canonical(self) -> Settings:
        """Return the settings that define the protocol, for the published survey."""
        return {**super().canonical(), "outside": OUTSIDE, "unit": self.unit}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the protocol with these published settings."""
        if (outside := settings.pop("outside")) != OUTSIDE:
            raise InputError(
                f"this release counts numbers outside the bins in the {OUTSIDE}, but the published "
                f"survey says {outside!r:.80}"
            )
        edges = tuple(map(published_edge, settings["edges"]))
        return super().from_settings({**settings, "edges": edges})


def check_edges(edges: Sequence[float]) -> None:
    """Raise InputError unless these are the edges of at least two bins."""
    if not 3 <= len(edges) <= MAX_BINS + 1:
        raise InputError(
            f"edges must be 3 to {MAX_BINS + 1} numbers (2 to {MAX_BINS} bins), not {len(edges)}"
        )
    if any(type(edge) is not float or not math.isfinite(edge) for edge in edges):
        raise InputError(f"edges must be finite numbers, not {edges!r:.200}")
    for first, second in pairwise(edges):
        if not first < second:
            raise InputError(
                f"edges must increase, unlike {edge_text(first)} and {edge_text(second)}"
            )


def edge_text(edge: float) -> str:
    """Return the shortest decimal text that stands for this double.

    >>> edge_text(0.1), edge_text(20.0), edge_text(-0.0), edge_text(1e300)
    ('0.1', '20', '0', '1e+300')
    """
    return repr(edge) if abs(edge) >= 2**53 or edge % 1 else str(int(edge))


def published_edge(text: str) -> float:
    """Return the number that `edge_text` wrote."""
    if type(text) is not str:
        raise InputError(f"edges of a published survey must be texts, not {text!r:.80}")
    try:
        return float(text)
    except ValueError:
        raise InputError(f"edges of a published survey must be numbers, not {text!r:.80}") from None


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Return the label of each bin.

    >>> bin_labels((0.0, 0.5, 10.0))
    ('0 to 0.5', '0.5 to 10')
    """
    return tuple(f"{edge_text(first)} to {edge_text(last)}" for first, last in pairwise(edges))


def linear_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of bins of equal width, each the double nearest to its decimal value.

    >>> linear_edges(0.1, 0.7, 3)
    (0.1, 0.3, 0.5, 0.7)
    """
    first, last = Fraction(repr(low)), Fraction(repr(high))
    return tuple(float(first + (last - first) * i / bins) for i in range(bins + 1))


def logarithmic_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return edges with about equal ratios, rounded to as few digits as keep them different.

    >>> logarithmic_edges(1.0, 1000.0, 6)
    (1.0, 3.16, 10.0, 31.6, 100.0, 316.0, 1000.0)
    """
    if not low > 0:
        raise InputError(f"a logarithmic scale needs low above 0, not {low:g}")
    steps = [math.log(low) + (math.log(high) - math.log(low)) * i / bins for i in range(1, bins)]
    for digits in range(MIN_DIGITS, 17):
        edges = (low, *(float(f"{math.exp(step):.{digits}g}") for step in steps), high)
        if all(first < second for first, second in pairwise(edges)):
            break
    return edges
