"""The rule that fills in what an author left out, from ε.

| collect    | kind           | rule |
| ---------- | -------------- | ---- |
| once       | boolean        | f = 0, q = e^ε/(1+e^ε), p = 1−q |
| once       | choice, string | f = 0, h = 1, q = ½, p = 1/(1+e^ε): optimised unary encoding |
| repeatedly | any            | p = ¼, q = ¾, and f from ε = 2h·ln((1−f/2)/(f/2)), one bit: half |

A string has one hash, 64 cohorts, and the fewest bits, a power of two from 128 to 1024, at which
the bits that other clients set add less than a sixth to the variance: 128 up to ε = 3.7, 256 at the
paper's 4.39. Local hashing has 16 families of cohorts. With p or q given, only the other is filled
in; with both given, ε is a promise that is checked. Where ε is filled in, the integers are the
largest whose loss, rounded up, is not above it. One hash and q = ½ have much less noise than the
paper's two hashes and p = ¼ at the same ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from deniable.errors import InputError
from deniable.mechanisms import LocalHash, Mechanism, Noise, calibrate
from deniable.mechanisms.noise import ONE
from deniable.privacy import NANO, largest_step, nanonats_down
from deniable.protocols.alphabet import count_strings

HASHES, COHORTS = 1, 64
MIN_DEFAULT_BITS, MAX_DEFAULT_BITS = 128, 1024
MAX_COLLISION_VARIANCE = Fraction(1, 6)
FAMILIES = 16
MAX_ENUMERATED_STRINGS, MAX_ENUMERATED_LENGTH = 1_200_000_000, 23
"""Strings of a domain that an analyst can look at each, in a minute on two cores, and their longest
length, which SHA-256 hashes in one block."""
MAX_FIRST_PREFIXES, SHARE_DECAY, CONFIRMATION_SHARE = 4_000_000, 4.5, 0.27

Build = Callable[[Noise], Mechanism]


def fill(
    build: Build,
    collect: str,
    *,
    epsilon: float | None,
    p: float | None = None,
    q: float | None = None,
    f: float | None = None,
) -> Mechanism:
    """The mechanism with p, q and f as given and the rest from ε; never above ε."""
    if epsilon is not None:
        epsilon = _payable(epsilon)
    if collect == "once":
        mechanism = _once(build, epsilon, p, q, f or 0.0)
    else:
        mechanism = _repeatedly(build, epsilon, p, q, f)
    mechanism = build(mechanism.noise)  # its width may follow from its noise
    spent = mechanism.loss.per_report if collect == "once" else mechanism.loss.in_total
    if epsilon is not None and spent > epsilon:
        word = "once" if collect == "once" else "for ever"
        raise InputError(
            f"these p, q and f spend ε = {spent:.6f} {word}, above the {epsilon:.6f} that epsilon "
            "promises; leave one out to have it filled in"
        )
    return mechanism


def local_hash(
    collect: str, *, epsilon: float | None, values: int | None, families: int
) -> LocalHash:
    """Local hashing that spends ε; g is the prime nearest to e^ε + 1 where it is not given."""
    if epsilon is None:
        raise InputError("expected epsilon: local hashing has no p and q of its own to give")
    if collect != "once":
        raise InputError('expected collect = "once": local hashing has no permanent response')
    return LocalHash.spending(_payable(epsilon), families=families, values=values)


def _payable(epsilon: float) -> float:
    """Just below ε in whole billionths of a nat, in which budgets are kept: shares that were
    rounded up could not all be paid from the ε that they are shares of."""
    if (nanonats := nanonats_down(epsilon)) == 0:
        raise InputError(f"epsilon = {epsilon:g} is too small: choose 1e-9 or more")
    return math.nextafter(nanonats / NANO, 0.0)


def _once(
    build: Build, epsilon: float | None, p: float | None, q: float | None, f: float
) -> Mechanism:
    if p is not None and q is not None:
        return build(Noise.of(p=p, q=q, f=f))
    if epsilon is None:
        raise InputError("expected epsilon, or both p and q")
    if p is not None:
        return calibrate(build(Noise.of(p=p, q=1.0 if f else 1 - 2**-32, f=f)), epsilon, vary="q")
    start = build(Noise.of(p=2**-32, q=0.5 if q is None else q, f=f))
    if q is None and start.kind == "boolean":
        return _symmetric(build, epsilon, f)
    return calibrate(start, epsilon, vary="p")


def _symmetric(build: Build, epsilon: float, f: float) -> Mechanism:
    """p = 1 − q, the best a single bit can do."""
    flip = Noise.of(p=0.25, q=0.75, f=f).flip

    def at(step: int) -> Mechanism:
        return build(Noise(flip, ONE // 2 - step, ONE // 2 + step))

    return at(largest_step(epsilon, 1, ONE // 2 - 1, lambda step: at(step).loss.per_report))


def _repeatedly(
    build: Build, epsilon: float | None, p: float | None, q: float | None, f: float | None
) -> Mechanism:
    p, q = (0.25 if p is None else p), (0.75 if q is None else q)
    if f is not None:
        return build(Noise.of(p=p, q=q, f=f))
    if epsilon is None:
        raise InputError("expected epsilon, or f, for repeated collection")
    return calibrate(build(Noise.of(p=p, q=q, f=0.5)), epsilon, vary="f", in_total=True)


def bits_for(noise: Noise, hashes: int) -> int:
    """The fewest bits, a power of two, at which other clients' bits add little noise.

    With r = p* + (q*−p*)·h/k, r(1−r) exceeds p*(1−p*) by about (q*−p*)(1−2p*)·h/k.
    """
    p, q = noise.p_star, noise.q_star
    bits = MIN_DEFAULT_BITS
    load = abs((q - p) * (1 - 2 * p)) * hashes
    while bits < MAX_DEFAULT_BITS and load > MAX_COLLISION_VARIANCE * bits * p * (1 - p):
        bits *= 2
    return bits


def prefix_lengths(symbols: int, length: int) -> list[tuple[int, float]]:
    """Prefix lengths and their shares of clients.

    If every string can be looked at, the whole string alone: no client is spent on a prefix. Else,
    from the longest prefix of which all can be looked at, every length, each with e^(−1/4.5) of the
    share before it, since later levels have fewer prefixes to tell apart; and the whole string once
    more, with .27 of the clients, to test what was found. Chosen by trial on strings of 20 symbols;
    shares within a tenth of these find as many.
    """
    if length <= MAX_ENUMERATED_LENGTH and count_strings(symbols, length) <= MAX_ENUMERATED_STRINGS:
        return [(length, 1.0)]
    first = 1
    while first < length and (symbols + 1) ** (first + 1) <= MAX_FIRST_PREFIXES:
        first += 1
    lengths = range(first, length + 1)
    shares = [math.exp(-(n - first) / SHARE_DECAY) for n in lengths]
    whole = sum(shares)
    return [
        *(
            (n, (1 - CONFIRMATION_SHARE) * share / whole)
            for n, share in zip(lengths, shares, strict=True)
        ),
        (length, CONFIRMATION_SHARE),
    ]


def weights(shares: list[float]) -> list[int]:
    """Shares as integers that sum to 2³² exactly; what rounding leaves goes to the last."""
    whole = sum(map(Fraction, shares))
    parts = [int(Fraction(share) * ONE / whole) for share in shares]
    parts[-1] += ONE - sum(parts)
    return parts
