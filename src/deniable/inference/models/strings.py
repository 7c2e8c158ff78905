"""Strings: what the models of Bloom filters and of local hashing share.

Marginals choose which strings get a category in a joint table; what was detected beyond those that
are shown is fitted too, and added up into Other afterwards (see `inference.joint.collapse`).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, cast

import numpy as np

from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.errors import InputError
from deniable.inference.marginal.design import HashedStrings
from deniable.inference.models.base import (
    OTHER,
    Axis,
    C,
    Candidates,
    CategoryModel,
    Components,
    TableSettings,
)
from deniable.inference.models.other import Other, mixture_other
from deniable.kernels.array_types import Bytes, DeviceArray, Floats, Indices, Int32s, Integers
from deniable.kernels.hashing.positions import bloom_positions, hash_pairs
from deniable.mechanisms.base import StringMechanism
from deniable.mechanisms.schemes import DENIABLE_1


@dataclass(frozen=True, eq=False)
class StringModel(HashedStrings, CategoryModel[C]):
    """Listed strings, and after them Other, if the model has one."""

    other: Other | None = field(default=None, kw_only=True)

    exclusive: ClassVar[bool] = False
    """Whether a report is exactly one of its outcomes, not any number of bits."""

    # --- what a subclass supplies -----------------------------------------------------------------

    @abstractmethod
    def string_rows(self, bits: Bytes, stratum: Integers, arrays: ArrayKernels) -> Likelihood:
        """P(report | string)."""

    @abstractmethod
    def mixture_log(
        self, bits: Bytes, stratum: Integers, share: Floats, arrays: ArrayKernels = CPU_KERNELS
    ) -> DeviceArray:
        """Log-likelihood of every report, float64[N], if its value is one of the strings, each with
        its share, or else, with the last share, a string that nobody listed.

        share : float64[m + 1], which sum to 1
        """

    @abstractmethod
    def theta(self, strata: Indices) -> Floats:
        """float64[S, m + 1, k], P(outcome | string) in some strata; an unlisted string is last."""

    @abstractmethod
    def product_other(self, question: str, counts: C, estimate: Floats) -> Other | None:
        """The paper's model of what these strings of frequencies float64[m] leave: independent
        bits. None if nothing is left."""

    # --- what follows ---------------------------------------------------------------------------

    def fitted(
        self, question: str, count: Callable[[], C], settings: TableSettings
    ) -> tuple[Self, Axis]:
        counts = count()
        marginal = self.marginal(counts, alpha=settings.alpha, correction="bonferroni")
        fitted = marginal.top(max(settings.fitted or 0, settings.top))
        if fitted.size == 0:
            raise InputError(
                f"question {question!r}: none of {self.candidates} candidates was detected in "
                f"{counts.reports:,} reports; {marginal.detection_threshold:.4f} would be "
                "detectable"
            )
        known, estimate = self.take(fitted), marginal.estimate[fitted]
        other: Other | None = None
        left = f"the known categories sum to {estimate.sum():.4f}, nothing is left for Other"
        meaning = left if settings.other else ""
        if settings.other == "product":
            other = known.product_other(question, counts, estimate)
        elif settings.other:
            other = mixture_other(marginal, self, fitted)
        labels = known.labels or ()
        shown = labels[: settings.top]
        if other is not None:
            labels += (OTHER,)
            named = f"everything but the {len(shown)} named values"
            meaning = f"{named}, about {other.mass:.1%} of reports"
        groups = np.minimum(np.arange(len(labels)), len(shown))
        if len(labels) > len(shown):
            shown += (OTHER,)
        return known.with_other(other), Axis(labels, shown, groups, meaning)

    def with_other(self, other: Other | None) -> Self:
        """The same strings with Other as the last category."""
        return replace(self, other=other)

    def likelihood(
        self, bits: Bytes, stratum: Integers, arrays: ArrayKernels = CPU_KERNELS
    ) -> Likelihood:
        rows = self.string_rows(bits, stratum, arrays)
        if self.other is None:
            return rows
        return arrays.append_column(rows, self.other.log_likelihood(bits, stratum, arrays))

    def components(self) -> Components:
        if self.other is not None:
            return self.other.components(self)
        return Components(self.theta, np.eye(self.candidates, self.candidates + 1), self.exclusive)


def hashed_positions(candidates: Candidates) -> Int32s:
    """int32[slots·families, m, hashes]: the cells (or bits) that each string is hashed to.

    They are −1 where a slot's reports say nothing of the string.
    """
    slots = [
        cast(StringMechanism, slot.mechanism)
        for slot in candidates.question.protocol.parts[0].slots
    ]
    families, hashes, cells = slots[0].hash_layout
    shape = (len(candidates.names), hashes)
    positions = np.full((len(slots), families, *shape), -1, np.int32)
    for slot, mechanism in enumerate(slots):
        tokens = candidates.tokens(slot)
        if mechanism.scheme is DENIABLE_1:
            offsets = np.zeros(len(tokens) + 1, np.int64)
            np.cumsum([len(t) for t in tokens], out=offsets[1:])
            data = np.frombuffer(b"".join(tokens), np.uint8)
            x, y = hash_pairs(mechanism.header, data, offsets)
            cell = bloom_positions(x, y, families, hashes, cells)
        else:
            scheme, header = mechanism.scheme, mechanism.header
            rows = [
                [scheme.positions(token, family, cells, hashes, header) for token in tokens]
                for family in range(families)
            ]
            cell = np.array(rows, np.int32).reshape(families, *shape)
        informative = candidates.informative[slot]
        positions[slot][:, informative] = cell[:, informative]
    return positions.reshape(len(slots) * families, *shape)
