"""Options: a choice or a boolean, with one bit for each option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable.columns import Column
from deniable.compute.arrays import ArrayKernels, Likelihood
from deniable.compute.cpu.array_kernels import CPU_KERNELS
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.closed_form import estimate_basic
from deniable.inference.marginal.detection import Correction
from deniable.inference.models.base import (
    NO_ANSWER,
    Axis,
    Candidates,
    CategoryModel,
    Components,
    TableSettings,
    register,
)
from deniable.inference.models.bit_likelihood import channel_rows
from deniable.kernels.array_types import Bytes, Floats, Integers
from deniable.results.marginal import Marginal


@dataclass(frozen=True, eq=False)
class OptionModel(CategoryModel[BitCounts]):
    """Options, bit i for option i.

    p, q : P(bit = 1) of an option that is not the client's own, and of its own;
    silent : the category of clients that set no bit, None if there is none.
    """

    options: tuple[str, ...]
    p: float
    q: float
    silent: str | None = None

    @classmethod
    def of(cls, candidates: Candidates) -> OptionModel:
        mechanism = candidates.question.protocol.mechanisms[0]
        p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
        # One bit is yes or no: a client that gives no answer says no.
        silent = "no" if mechanism.width == 1 else None
        return cls(mechanism.labels, p, q, silent)

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories."""
        return self.options if self.silent is None else (*self.options, self.silent)

    @property
    def theta(self) -> Floats:
        """float64[1, m, k], P(bit = 1 | category)."""
        member = np.eye(len(self.labels), len(self.options), dtype=bool)
        return np.where(member, self.q, self.p)[np.newaxis]

    def counter(self) -> Callable[[Column], BitCounts]:
        return partial(count_bits, threads=1)

    def counts_from_bits(self, counts: BitCounts) -> BitCounts:
        return counts

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        return estimate_basic(
            counts, self.p, self.q, alpha=alpha, correction=correction, labels=self.options
        )

    def fitted(
        self, question: str, count: Callable[[], BitCounts], settings: TableSettings
    ) -> tuple[OptionModel, Axis]:
        """All options; and no answer, if significantly many clients gave none of them."""
        model = self
        if self.silent is None and settings.other:
            found = self.marginal(count(), alpha=settings.alpha, correction="bonferroni")
            error = float(np.sqrt((found.standard_error**2).sum()))
            if 1 - float(found.estimate.sum()) > 3 * error:
                model = replace(self, silent=NO_ANSWER)
        meaning = "clients that gave none of the options" if model.silent == NO_ANSWER else ""
        return model, Axis.whole(model.labels, meaning)

    def likelihood(
        self, bits: Bytes, stratum: Integers, arrays: ArrayKernels = CPU_KERNELS
    ) -> Likelihood:
        return channel_rows(self.theta, bits, stratum, arrays)

    def components(self) -> Components:
        return Components(self.theta.__getitem__, np.eye(len(self.labels)))


register("choice", OptionModel)
register("boolean", OptionModel)
