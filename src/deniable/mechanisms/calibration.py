"""From ε to the integer thresholds of the noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeVar

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.noise import ONE
from deniable.privacy import largest_step

M = TypeVar("M", bound=Mechanism)
Letter = Literal["p", "q", "f"]


def calibrate(mechanism: M, epsilon: float, *, vary: Letter = "q", in_total: bool = False) -> M:
    """Change one of p, q or f so that the loss is as close to ε as possible without exceeding it.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism whose noise is changed. If p or q varies, it stays on its side of the other.
    epsilon : float
        Maximum loss, in nats.
    vary : {"p", "q", "f"}, default "q"
        Probability that is changed.
    in_total : bool, default False
        Whether `epsilon` limits the loss in total, which depends on f only, or per report.

    Returns
    -------
    Mechanism
        The mechanism with its new noise.

    Raises
    ------
    InputError
        If ε is too small, or if `in_total` is set and `vary` is not "f".

    Examples
    --------
    >>> from deniable.mechanisms import Bloom, Noise
    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> third = calibrate(bloom, 1.4648)
    >>> round(third.noise.q / 2**32, 4), third.loss.per_report <= 1.4648
    (0.4095, True)
    """
    if in_total and vary != "f":
        raise InputError('the loss in total depends on f only: use vary="f"')
    noise = mechanism.noise

    fixed, old = (noise.p, noise.q) if vary == "q" else (noise.q, noise.p)

    def moved(step: int) -> M:
        if vary == "f":
            return replace(mechanism, noise=replace(noise, flip=ONE // 2 - step))
        new = fixed + step if old > fixed else fixed - step
        return replace(mechanism, noise=replace(noise, **{vary: new}))

    def loss(step: int) -> float:
        return moved(step).loss.in_total if in_total else moved(step).loss.per_report

    # Without permanent noise, a probability of 0 or 1 would prove a value.
    if vary == "f":
        room = ONE // 2 - (not (0 < noise.p < ONE and 0 < noise.q < ONE))
    else:
        room = (ONE - fixed if old > fixed else fixed) - (noise.flip == 0)
    return moved(largest_step(epsilon, 1, room, loss))
