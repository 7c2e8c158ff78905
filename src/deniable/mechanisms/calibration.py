"""From an ε to the integers that spend it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeVar

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.noise import ONE, Noise
from deniable.privacy import check_epsilon, largest

M = TypeVar("M", bound=Mechanism)
Letter = Literal["p", "q", "f"]


def calibrate(mechanism: M, epsilon: float, *, vary: Letter = "q", forever: bool = False) -> M:
    """The same mechanism with one of p, q or f moved to spend as much of ε as integers allow.

    p or q moves along its own side of the other. `forever` says which ε is meant; that one depends
    on f alone. Never above ε:

    >>> from deniable.mechanisms import Bloom
    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> third = calibrate(bloom, 1.4648)
    >>> round(third.noise.q / 2**32, 4), third.loss.once <= 1.4648
    (0.4095, True)
    """
    check_epsilon(epsilon)
    if forever and vary != "f":
        raise InputError('the loss for ever depends on f alone: use vary="f"')
    noise = mechanism.noise

    def moved(step: int) -> Noise:
        if vary == "f":
            return replace(noise, flip=ONE // 2 - step)
        fixed, old = (noise.p, noise.q) if vary == "q" else (noise.q, noise.p)
        new = fixed + step if old > fixed else fixed - step
        return replace(noise, **{vary: new})

    def fits(step: int) -> bool:
        loss = replace(mechanism, noise=moved(step)).loss
        return (loss.forever if forever else loss.once) <= epsilon

    fractional = 0 < noise.p < ONE and 0 < noise.q < ONE
    room = {
        "f": ONE // 2 if fractional else ONE // 2 - 1,
        "q": (ONE - noise.p - 1) if noise.q > noise.p else noise.p - 1,
        "p": (ONE - noise.q - 1) if noise.p > noise.q else noise.q - 1,
    }[vary]
    if noise.flip and vary != "f":
        room += 1  # with a permanent response even p or q of 0 or 1 proves nothing
    step = largest(1, room, fits)
    if step is None:
        raise InputError(f"no {vary} spends as little as ε = {epsilon}: ask for more")
    return replace(mechanism, noise=moved(step))
