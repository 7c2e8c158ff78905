"""From a published mechanism back to the object, and from an ε to its integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from deniable.errors import InputError
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.bloom import Bloom
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.options import Boolean, Choice
from deniable.privacy import largest

M = TypeVar("M", bound=Mechanism)
Letter = Literal["p", "q", "f"]


def from_canonical(data: Mapping[str, Any]) -> Mechanism:
    """The mechanism that `Mechanism.canonical` described; every key must be one it knows."""
    rest = dict(data)
    kind = rest.pop("kind", None)
    try:
        noise = Noise(rest.pop("flip"), rest.pop("p"), rest.pop("q"))
        if kind == "bloom":
            return Bloom(noise=noise, scheme_name=rest.pop("scheme"), **rest)
        if kind == "localhash":
            from deniable.mechanisms.local_hash import LocalHash

            return LocalHash(noise=noise, **rest)
        if kind == "choice":
            return Choice(noise=noise, options=tuple(rest.pop("options")), **rest)
        if kind == "boolean":
            return Boolean(noise=noise, **rest)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {kind} mechanism cannot be read: {error}") from None
    raise InputError(f"expected a mechanism bloom, localhash, choice or boolean, got {kind!r}")


def calibrate(mechanism: M, epsilon: float, *, vary: Letter = "q", forever: bool = False) -> M:
    """The same mechanism with one of p, q or f moved to spend as much of ε as integers allow.

    p or q moves along its own side of the other. `forever` says which ε is meant; that one depends
    on f alone. Never above ε:

    >>> bloom = Bloom(noise=Noise.of(p=0.25, q=0.75), bits=128, hashes=2, cohorts=64)
    >>> third = calibrate(bloom, 1.4648)
    >>> round(third.noise.q / 2**32, 4), third.loss.once <= 1.4648
    (0.4095, True)
    """
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InputError(f"expected an ε above 0 and finite, got {epsilon}")
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
