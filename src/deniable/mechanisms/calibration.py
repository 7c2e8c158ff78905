"""From an ε to the integers that spend it."""

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
    """The same mechanism with one of p, q or f moved to spend as much of ε as integers allow.

    p or q moves along its own side of the other. `in_total` says which ε is meant; that one depends
    on f alone. Never above ε:

    >>> from deniable.mechanisms import Bloom, Noise
    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> third = calibrate(bloom, 1.4648)
    >>> round(third.noise.q / 2**32, 4), third.loss.per_report <= 1.4648
    (0.4095, True)
    """
    if in_total and vary != "f":
        raise InputError('the loss for ever depends on f alone: use vary="f"')
    noise = mechanism.noise

    fixed, old = (noise.p, noise.q) if vary == "q" else (noise.q, noise.p)

    def moved(step: int) -> M:
        if vary == "f":
            return replace(mechanism, noise=replace(noise, flip=ONE // 2 - step))
        new = fixed + step if old > fixed else fixed - step
        return replace(mechanism, noise=replace(noise, **{vary: new}))

    def loss(step: int) -> float:
        return moved(step).loss.in_total if in_total else moved(step).loss.per_report

    # A probability of 0 or 1 proves a value, except behind permanent noise.
    if vary == "f":
        room = ONE // 2 - (not (0 < noise.p < ONE and 0 < noise.q < ONE))
    else:
        room = (ONE - fixed if old > fixed else fixed) - (noise.flip == 0)
    return moved(largest_step(epsilon, 1, room, loss))
