"""What unlisted strings add to the errors of a joint table.

The likelihood, and the estimate from counts, treat an unlisted string as a random one. A real one
sets the same bits in all reports of a cohort. In a cohort where it shares bits with a fitted
string, some of its clients are taken for clients of that string, in all cells of the string alike:
they give the same answers to the other questions as the rest of Other. So cells of one string err
together, and their sum, the margin, errs by much more than the noise of so many reports.

The variance of the share of clients that move from Other to a fitted string, v, is estimated in two
ways. The *differences between strata* show how much the fit really reacts to shared bits, but they
are reliable only if many bits are shared. `decode` also estimates v, from the scatter of all bits,
listed or not, and this is reliable even if none is shared; but a likelihood that compares several
bits of a string is misled less than `decode`. So we take the mean of both, and give `decode` the
weight of four shared bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.kernels.array_types import Floats
from deniable.results.covariance import Covariance

DECODE_WEIGHT = 4.0
"""Weight of the variance of `decode`, as a number of shared bits."""


@dataclass(frozen=True, eq=False)
class Unlisted:
    """What the marginal of a question says about its unlisted strings.

    Parameters
    ----------
    variance : float64 array of shape (m − 1,)
        Variance of each fitted string by the interval of the marginal, which allows for unlisted
        strings.
    shared_bits : float
        Number of bits, over all strata, that an unlisted string is expected to share with fitted
        ones.
    other : float, default 0
        Share of Other by the marginal, corrected for the selection of the fitted strings.
    """

    variance: Floats
    shared_bits: float
    other: float = 0.0


def add_unlisted(
    fitted: Covariance, influence: Floats, unlisted: Sequence[Unlisted | None]
) -> Covariance:
    """Return the covariance of a fitted table plus what unlisted strings add to it.

    influence : float64[S, *shape], how far each stratum moves the table;
    unlisted : of each question whose last fitted category is Other, else None
    """
    matrix = fitted.matrix
    for question, known in enumerate(unlisted):
        if known is not None:
            # Row i moves clients from Other to category i, and what they answer moves with them.
            size = fitted.table.shape[question]
            moves = np.hstack([np.eye(size - 1), -np.ones((size - 1, 1))])
            answers = np.take(fitted.table, -1, axis=question)
            answers = answers + 1e-6 * fitted.table.sum(axis=question)
            moved = np.multiply.outer(moves, answers / answers.sum())
            moved = np.moveaxis(moved, 1, question + 1).reshape(size - 1, -1)
            matrix = matrix + _moved(fitted, influence, question, known) * moved.T @ moved
            together = moved.mean(axis=0)
            matrix = matrix + _bias_of_other(fitted, question, known) * np.outer(together, together)
    return Covariance(fitted.table, matrix)


def _moved(fitted: Covariance, influence: Floats, question: int, unlisted: Unlisted) -> float:
    """Return the variance of the share of clients that move to one of the fitted strings."""
    others = tuple(v for v in range(fitted.table.ndim) if v != question)
    noise = np.diagonal(_margin(fitted, question).matrix)[:-1]
    by_decode = float(np.maximum(unlisted.variance - noise, 0.0).mean())
    margins = influence.sum(axis=tuple(v + 1 for v in others))[:, :-1]
    strata = int(margins.any(axis=1).sum())
    if strata < 2:
        return by_decode
    between = (margins**2).sum(axis=0) * strata / (strata - 1)
    by_strata = float((between - noise).mean())
    weights = (unlisted.shared_bits, DECODE_WEIGHT)
    return max(float(np.average([by_strata, by_decode], weights=weights)), 0.0)


def _bias_of_other(fitted: Covariance, question: int, unlisted: Unlisted) -> float:
    """Return the square of what Other lacks, compared with the marginal.

    In small crowds a table gives too little to Other: strings were chosen because their estimates
    were large, and cells at 0 cannot make up for others that are too large.
    """
    lacking = unlisted.other - float(_margin(fitted, question).table.flat[-1])
    return max(lacking, 0.0) ** 2


def _margin(fitted: Covariance, question: int) -> Covariance:
    """Return the shares of one question's categories."""
    shape = enumerate(fitted.table.shape)
    return fitted.collapsed(
        [np.arange(size) if v == question else np.zeros(size, np.intp) for v, size in shape]
    )
