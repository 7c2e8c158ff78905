"""What the models of Bloom filters and of local hashing have in common.

The marginal chooses which strings get a category in a joint table. Detected strings beyond those
that are shown are fitted too, and added up into Other afterwards (see `inference.joint.collapse`).
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
    """Model of listed strings, followed by Other if the model has one."""

    other: Other | None = field(default=None, kw_only=True)

    exclusive: ClassVar[bool] = False
    """Whether a report sets exactly one of its outcomes, instead of any number of bits."""

    # --- supplied by subclasses -------------------------------------------------------------------

    @abstractmethod
    def string_rows(self, bits: Bytes, stratum: Integers, arrays: ArrayKernels) -> Likelihood:
        """Return P(report | string) for each report."""

    @abstractmethod
    def mixture_log_likelihood(
        self, bits: Bytes, stratum: Integers, share: Floats, arrays: ArrayKernels = CPU_KERNELS
    ) -> DeviceArray:
        """Return the log-likelihood of each report, float64[N], under a mixture of strings.

        share : float64[m + 1], sum 1: share of each string, and last of unlisted strings
        """

    @abstractmethod
    def theta(self, strata: Indices) -> Floats:
        """Return P(outcome | string) in some strata, float64[S, m + 1, k]; last, unlisted ones."""

    @abstractmethod
    def product_other(self, question: str, counts: C, estimate: Floats) -> Other | None:
        """Return the paper's model of Other, or None if these strings sum to 1 or more.

        estimate : float64[m], frequencies of these strings
        """

    # --- common to all ----------------------------------------------------------------------------

    def fitted(
        self, question: str, count: Callable[[], C], settings: TableSettings
    ) -> tuple[Self, Axis]:
        """Choose the detected strings, most common first, and Other as categories."""
        counts = count()
        marginal = self.marginal(counts, alpha=settings.alpha, correction="bonferroni")
        fitted = marginal.top(max(settings.fitted or 0, settings.top))
        if fitted.size == 0:
            raise InputError(
                f"question {question!r}: none of the {self.candidates} candidates was detected in "
                f"{counts.reports:,} reports, so the table would have no categories; the detection "
                f"threshold is {marginal.detection_threshold:.4f}"
            )
        known, estimate = self.take(fitted), marginal.estimate[fitted]
        other: Other | None = None
        nothing = f"not in the table, because its categories sum to {estimate.sum():.1%} of reports"
        meaning = nothing if settings.other else ""
        if settings.other == "product":
            other = known.product_other(question, counts, estimate)
        elif settings.other:
            other = mixture_other(marginal, self, fitted)
        labels = known.labels or ()
        shown = labels[: settings.top]
        if other is not None:
            labels += (OTHER,)
            named = f"all values except the {len(shown)} named ones"
            meaning = f"{named}, about {other.mass:.1%} of reports"
        groups = np.minimum(np.arange(len(labels)), len(shown))
        if len(labels) > len(shown):
            shown += (OTHER,)
        return known.with_other(other), Axis(labels, shown, groups, meaning)

    def with_other(self, other: Other | None) -> Self:
        """Return the same strings with Other as the last category."""
        return replace(self, other=other)

    def likelihood(
        self, bits: Bytes, stratum: Integers, arrays: ArrayKernels = CPU_KERNELS
    ) -> Likelihood:
        """Return P(report | category) for each report."""
        rows = self.string_rows(bits, stratum, arrays)
        if self.other is None:
            return rows
        return arrays.append_column(rows, self.other.log_likelihood(bits, stratum, arrays))

    def components(self) -> Components:
        """Return the categories as mixtures of components."""
        if self.other is not None:
            return self.other.components(self)
        return Components(self.theta, np.eye(self.candidates, self.candidates + 1), self.exclusive)


def hashed_positions(candidates: Candidates) -> Int32s:
    """Return the bits (or cells) that each string is hashed to.

    They are int32[slots·families, m, hashes], and −1 if a slot has no evidence for the string.
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
