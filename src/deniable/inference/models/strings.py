"""What the models of Bloom filters and of local hashing have in common.

The marginal chooses which strings get a category in a joint table. Detected strings beyond those
that are shown are fitted too, and added up into Other afterwards (see `inference.joint.collapse`).
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, cast

import numpy as np

from deniable.errors import InputError
from deniable.formatting import Z95, percent
from deniable.inference.joint.unlisted import Unlisted
from deniable.inference.marginal.design import HashedStrings
from deniable.inference.models.base import (
    Axis,
    C,
    Candidates,
    CategoryModel,
    Components,
    TableSettings,
)
from deniable.inference.models.likelihood import Likelihood
from deniable.inference.models.other import Other, mixture_other
from deniable.kernels.array_types import Bytes, Floats, Indices, Int32s, Integers
from deniable.kernels.compiled import pays_off
from deniable.kernels.hashing.few_strings import numpy_seconds, positions_of_few
from deniable.mechanisms.base import StringMechanism
from deniable.mechanisms.schemes import DENIABLE_1
from deniable.results.joint import OTHER


@dataclass(frozen=True, eq=False)
class StringModel(HashedStrings, CategoryModel[C]):
    """Model of m listed strings, followed by Other if the model has one.

    C is the class of the counts. In the shapes of arrays, N is the number of reports, S of strata,
    and k of outcomes (bits, or values of a number).
    """

    other: Other | None = field(default=None, kw_only=True)

    exclusive: ClassVar[bool] = False
    """Whether a report is one number, so that exactly one outcome occurs, instead of bits."""

    # --- supplied by subclasses -------------------------------------------------------------------

    @abstractmethod
    def string_rows(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | string) for each report."""

    @abstractmethod
    def mixture_log_likelihood(self, bits: Bytes, stratum: Integers, share: Floats) -> Floats:
        """Return the log-likelihood of each report, float64[N], under a mixture of strings.

        share : float64[m + 1], sum 1: share of each string, and last of unlisted strings
        """

    @property
    @abstractmethod
    def unlisted_bit_probability(self) -> float:
        """Probability that an unlisted string has a given outcome: sets a bit, or is a number."""

    @abstractmethod
    def theta(self, strata: Indices) -> Floats:
        """Return P(outcome | string) in some strata, float64[S, m + 1, k].

        The last row is that of a random unlisted string.
        """

    @abstractmethod
    def product_other(self, question: str, counts: C, estimate: Floats) -> Other | None:
        """Return the paper's model of Other, with independent bits.

        It is None if the frequencies sum to 1 or more.

        estimate : float64[m], frequencies of the listed strings
        """

    # --- common to all ----------------------------------------------------------------------------

    def fitted(
        self, question: str, count: Callable[[], C], settings: TableSettings
    ) -> tuple[Self, Axis]:
        """Choose the detected strings, most common first, and Other as categories.

        count : function that counts the reports of the question
        """
        if self.candidates == 0:
            raise InputError(
                f"question {question!r}: the list of candidates is empty; list at least one string"
            )
        counts = count()
        marginal = self.marginal(counts, alpha=settings.alpha, correction="bonferroni")
        tested = marginal.detected
        if not settings.tested:
            # A category needs no proof of presence.
            marginal = replace(marginal, detected=marginal.identified & (marginal.low > 0))
        chosen = marginal.top(max(settings.fitted or 0, settings.top))
        required = [marginal.names.index(name) for name in settings.required]
        for index in required:
            if not np.isfinite(marginal.estimate[index]):
                raise InputError(
                    f"question {question!r}: the reports cannot distinguish "
                    f"{marginal.names[index]!r} from other strings"
                )
        chosen = np.array(list(dict.fromkeys([*required, *chosen.tolist()])), np.intp)
        if chosen.size == 0:
            raise InputError(
                f"question {question!r}: none of the {self.candidates} candidates was detected in "
                f"{counts.reports:,} reports, so the table would have no categories; the detection "
                f"threshold is {marginal.detection_threshold:.4f}"
            )
        known, estimate = self.take(chosen), marginal.estimate[chosen]
        other: Other | None = None
        if settings.other == "product":
            other = known.product_other(question, counts, estimate)
        elif settings.other:
            other = mixture_other(marginal, self, chosen)
        labels = known.labels or ()
        shown = labels[: settings.top]
        # All categories beyond those that are shown are added up into one group, the last.
        labels += (OTHER,) if other is not None else ()
        groups = np.minimum(np.arange(len(labels)), len(shown))
        meaning = ""
        if len(labels) > len(shown):
            meaning = f"all values except the {len(shown)} named ones"
            if other is None:
                meaning = f"the detected strings except the {len(shown)} named ones"
            shown += (OTHER,)
        elif settings.other:
            total = percent(float(estimate.sum()))
            meaning = f"not in the table, because decode finds {total} of clients in its categories"
        unlisted: Unlisted | None = None
        if other is not None:
            bits = known.informative.sum() * known.hashes * known.unlisted_bit_probability
            reach = np.maximum(marginal.high - marginal.estimate, marginal.estimate - marginal.low)
            share = float(marginal.estimate[tested].sum() - estimate.sum())
            share += marginal.mass_unexplained.estimate
            variance = (reach[chosen] / Z95) ** 2
            unlisted = Unlisted(variance, float(bits), share)
        return known.with_other(other), Axis(labels, shown, groups, meaning, unlisted)

    def with_other(self, other: Other | None) -> Self:
        """Return the same strings with Other as the last category."""
        return replace(self, other=other)

    def likelihood(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | category) for each report."""
        rows = self.string_rows(bits, stratum)
        if self.other is None:
            return rows
        return rows.with_column(self.other.log_likelihood(bits, stratum))

    def components(self) -> Components:
        """Return the categories as mixtures of components."""
        if self.other is not None:
            return self.other.components(self)
        # Each category is one listed string; unlisted strings, the last component, have weight 0.
        return Components(self.theta, np.eye(self.candidates, self.candidates + 1), self.exclusive)


def hashed_positions(candidates: Candidates) -> Int32s:
    """Return the position of the bit, or the number, that each hash of each string gives.

    The result is int32[slots·families, m, hashes]. A family consists of the hashes of one cohort,
    or of one hash function of local hashing. Entries are −1 if reports of a slot are no evidence
    for a string.
    """
    mechanisms = [
        cast(StringMechanism, slot.mechanism)
        for slot in candidates.question.protocol.parts[0].slots
    ]
    families, hashes, cells = mechanisms[0].hash_layout
    shape = (len(candidates.names), hashes)
    positions = np.full((len(mechanisms), families, *shape), -1, np.int32)
    for slot, mechanism in enumerate(mechanisms):
        tokens = candidates.tokens(slot)
        scheme, header = mechanism.scheme, mechanism.header
        if scheme is DENIABLE_1:
            slot_positions = _positions(header, tokens, families, hashes, cells)
        else:
            rows = [
                [scheme.positions(token, family, cells, hashes, header) for token in tokens]
                for family in range(families)
            ]
            slot_positions = np.array(rows, np.int32).reshape(families, *shape)
        informative = candidates.informative[slot]
        positions[slot][:, informative] = slot_positions[:, informative]
    return positions.reshape(len(mechanisms) * families, *shape)


def _positions(
    header: bytes, strings: Sequence[bytes], families: int, hashes: int, cells: int
) -> Int32s:
    """Return the positions of strings by the scheme `deniable-1`, int32[families, m, hashes]."""
    if not pays_off(numpy_seconds(len(strings), families, hashes)):
        return positions_of_few(header, strings, families, hashes, cells)
    from deniable.kernels.hashing.positions import bloom_positions, hash_pairs

    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    data = np.frombuffer(b"".join(strings), np.uint8)
    x, y = hash_pairs(header, data, offsets)
    return bloom_positions(x, y, families, hashes, cells)
