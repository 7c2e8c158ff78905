"""Category model of choices and booleans, which have one bit per option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from deniable.columns import Column
from deniable.inference.marginal.bit_counts import BitCounts, count_bits
from deniable.inference.marginal.closed_form import covariance_of_options, estimate_basic
from deniable.inference.marginal.detection import Correction
from deniable.inference.models.base import (
    Axis,
    Candidates,
    CategoryModel,
    Components,
    TableSettings,
    register,
)
from deniable.inference.models.likelihood import Likelihood, channel_rows
from deniable.kernels.array_types import Bytes, Floats, Integers
from deniable.results.joint import NO_ANSWER
from deniable.results.marginal import Marginal


@dataclass(frozen=True, eq=False)
class OptionModel(CategoryModel[BitCounts]):
    """Model of options: bit i stands for option i.

    Parameters
    ----------
    options : tuple of str
        The options.
    p, q : float
        P(bit = 1) for an option that the client did not choose, and for the one it chose.
    silent : str, optional
        Label of the category of clients that chose no option; None if there is no such category.
    """

    options: tuple[str, ...]
    p: float
    q: float
    silent: str | None = None

    @classmethod
    def of(cls, candidates: Candidates) -> OptionModel:
        """Return the model of a question's candidates."""
        mechanism = candidates.question.protocol.mechanisms[0]
        p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
        # With a single bit, a client without an answer counts as "no".
        silent = "no" if mechanism.width == 1 else None
        return cls(mechanism.labels, p, q, silent)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the categories."""
        return self.options if self.silent is None else (*self.options, self.silent)

    @property
    def theta(self) -> Floats:
        """P(bit = 1 | category), float64[1, m, k]."""
        member = np.eye(len(self.labels), len(self.options), dtype=bool)
        return np.where(member, self.q, self.p)[np.newaxis]

    def counter(self) -> Callable[[Column], BitCounts]:
        """Return a function that counts the reports of a batch."""
        return partial(count_bits, threads=1)

    def counts_from_bits(self, counts: BitCounts) -> BitCounts:
        """Convert counts of all outcomes to the counts of this model."""
        return counts

    def marginal(self, counts: BitCounts, *, alpha: float, correction: Correction) -> Marginal:
        """Estimate how common each candidate is."""
        return estimate_basic(
            counts, self.p, self.q, alpha=alpha, correction=correction, labels=self.options
        )

    def covariance(self, marginal: Marginal) -> Floats:
        """Return the covariance of the estimates of `marginal`."""
        return covariance_of_options(marginal)

    def fitted(
        self, question: str, count: Callable[[], BitCounts], settings: TableSettings
    ) -> tuple[OptionModel, Axis]:
        """Return all options, and "no answer" if significantly many clients chose none."""
        model = self
        if self.silent is None and settings.other:
            share, error = self.silent_share(count(), settings.alpha)
            if share > 3 * error:
                model = replace(self, silent=NO_ANSWER)
        meaning = "clients that gave none of the options" if model.silent == NO_ANSWER else ""
        return model, Axis.whole(model.labels, meaning)

    def silent_share(self, counts: BitCounts, alpha: float) -> tuple[float, float]:
        """Return the share of clients that chose no option, and its standard error."""
        marginal = self.marginal(counts, alpha=alpha, correction="bonferroni")
        error = float(np.sqrt((marginal.standard_error**2).sum()))
        return 1 - float(marginal.estimate.sum()), error

    def likelihood(self, bits: Bytes, stratum: Integers) -> Likelihood:
        """Return P(report | category) for each report."""
        return channel_rows(self.theta, bits, stratum)

    def components(self) -> Components:
        """Return the categories as mixtures of components."""
        return Components(self.theta.__getitem__, np.eye(len(self.labels)))


register("choice", OptionModel)
register("choice-asymmetric", OptionModel)
register("boolean", OptionModel)
