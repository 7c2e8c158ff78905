"""Defaults for the parameters that a survey file leaves out, computed from ε.

| collect    | kind           | default |
| ---------- | -------------- | ---- |
| once       | boolean        | f = 0, q = e^ε/(1+e^ε), p = 1−q |
| once       | choice, string | f = 0, h = 1, q = ½, p = 1/(1+e^ε): optimised unary encoding |
| once       | choice         | from version 2 on: subset selection, see `mechanisms.subset` |
| repeatedly | any            | p = ¼, q = ¾, and f from ε = 2h·ln((1−f/2)/(f/2)), one bit: half |

Version 2 of the defaults has the most accurate noise for repeated collection: a set bit stays set
with probability ½ under permanent noise, a clear one is set with 1/(1+e^ε), and fresh noise is
symmetric with the loss per report that the author wrote, or that p = ¼ and q = ¾ would have. One
report is then optimised unary encoding with the loss per report, and all reports of a client
together are no worse than optimised unary encoding with ε. A single bit stays symmetric, which is
the best for it. Dictionaries of prefixes use local hashing.

A string question has one hash, 64 cohorts, and the smallest power of two from 128 to 1024 bits at
which the bits that other clients set add less than a sixth to the variance: 128 bits up to ε = 3.7,
256 at the paper's 4.39. Local hashing has 16 families of cohorts. If only one of p and q is given,
the other is computed; if both are given, the loss is compared with ε. Computed probabilities have
the largest loss that, rounded up, does not exceed ε. At the same ε, one hash with q = ½ is far more
accurate than the paper's two hashes with p = ¼.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from deniable.errors import InputError
from deniable.mechanisms import (
    Bloom,
    LocalHash,
    Mechanism,
    Noise,
    PermanentLocalHash,
    Subset,
    calibrate,
)
from deniable.mechanisms.base import KINDS, Settings
from deniable.mechanisms.noise import ONE
from deniable.privacy import NANO, largest_step, nanonats_down
from deniable.protocols.alphabet import count_strings

NEWEST = 2
"""Newest version of the defaults. A file without `defaults` has version 1, which never changes."""
HASHES, COHORTS = 1, 64
MIN_DEFAULT_BITS, MAX_DEFAULT_BITS = 128, 1024
MAX_COLLISION_VARIANCE = Fraction(1, 6)
"""Maximum variance that the bits of other clients add, relative to the variance of the noise."""
FAMILIES = 16
MAX_ENUMERATED_STRINGS, MAX_ENUMERATED_LENGTH = 1_200_000_000, 23
"""Largest set of strings that an analysis tests one by one, in a minute on two cores, and their
maximum length, which SHA-256 hashes in one block."""
MAX_FIRST_PREFIXES = 4_000_000
"""Maximum number of prefixes of the first length, which an analysis tests one by one."""
SHARE_DECAY = 4.5
"""Prefix lengths over which the share of clients decreases by a factor e."""
CONFIRMATION_SHARE = 0.27
"""Share of clients that report the whole string again, to test discovered strings."""

Build = Callable[[Noise], Mechanism]
_NOISE_KEYS = frozenset({"flip", "p", "q", "keep"})


def fill(
    build: Build,
    collect: str,
    *,
    epsilon: float | None,
    per_report: float | None = None,
    best: bool = False,
    p: float | None = None,
    q: float | None = None,
    f: float | None = None,
) -> Mechanism:
    """Return the mechanism with the given p, q and f, and the others computed from ε.

    Parameters
    ----------
    build : callable
        Makes the mechanism from its noise.
    collect : {"once", "repeatedly"}
        Whether ε limits the loss per report or in total.
    epsilon : float or None
        Maximum loss in nats; None if it follows from p, q and f.
    per_report : float or None
        Maximum loss per report in nats, if collected repeatedly; None for that of p = ¼ and q = ¾.
    best : bool
        Whether repeated collection has the most accurate noise, unless p, q or f is given.
    p, q, f : float or None
        Probabilities of the paper; None if they follow from ε.

    Returns
    -------
    Mechanism
        The mechanism, with a loss of at most ε.

    Raises
    ------
    InputError
        If too few of the numbers are given, or if the loss would exceed ε.
    """
    if epsilon is not None:
        epsilon = _below(epsilon)
    if collect == "once":
        mechanism = _once(build, epsilon, p, q, f or 0.0)
    elif epsilon is not None and best and p is q is f is None:
        mechanism = _most_accurate(build, epsilon, per_report)
    else:
        mechanism = _repeatedly(build, epsilon, p, q, f)
    mechanism = build(mechanism.noise)  # the default number of bits depends on the noise
    spent = mechanism.loss.per_report if collect == "once" else mechanism.loss.in_total
    if epsilon is not None and spent > epsilon:
        unit = "per report" if collect == "once" else "in total"
        raise InputError(
            f"p, q and f give ε = {spent:.6f} {unit}, more than epsilon = {epsilon:.6g}; leave out "
            "one of them, and it is computed from epsilon"
        )
    return mechanism


def local_hash(
    collect: str,
    *,
    epsilon: float | None,
    per_report: float | None = None,
    values: int | None,
    families: int,
) -> LocalHash:
    """Return local hashing with a loss of at most ε, with permanent noise if repeatedly collected.

    g defaults to the prime nearest to e^ε + 1, where ε is the loss per report. That defaults to the
    loss of a Bloom filter with p = ¼ and q = ¾.
    """
    if epsilon is None:
        raise InputError("epsilon is missing: local hashing computes its probabilities from it")
    if collect == "once":
        return LocalHash.spending(_below(epsilon), families=families, values=values)
    if per_report is None:
        usual = _repeatedly(_usual_filter, _below(epsilon), None, None, None)
        per_report = usual.loss.per_report
    else:
        per_report = _below(per_report)
    return PermanentLocalHash.spending_both(
        _below(epsilon), per_report, families=families, values=values
    )


def subset(
    collect: str, *, epsilon: float | None, options: Sequence[str], members: int | None
) -> Subset:
    """Return subset selection with a loss of at most ε; w defaults to the most accurate."""
    if epsilon is None:
        raise InputError("epsilon is missing: subset selection computes its probabilities from it")
    if collect != "once":
        raise InputError(
            'subset selection has no permanent noise: set collect = "once", or mechanism = "bits"'
        )
    return Subset.spending(_below(epsilon), tuple(options), members=members)


def _below(epsilon: float) -> float:
    """Return the number just below ε rounded down to billionths of a nat, the unit of budgets.

    The losses of slots are rounded up to billionths; the sum must not exceed the whole ε.
    """
    if (nanonats := nanonats_down(epsilon)) == 0:
        raise InputError(f"epsilon = {epsilon:g} is too small: choose 1e-9 or more")
    return math.nextafter(nanonats / NANO, 0.0)


def _once(
    build: Build, epsilon: float | None, p: float | None, q: float | None, f: float
) -> Mechanism:
    """Return the mechanism for one-time collection: ε limits the loss per report."""
    if p is not None and q is not None:
        return build(Noise.of(p=p, q=q, f=f))
    if epsilon is None:
        raise InputError("epsilon is missing: set epsilon, or both p and q")
    if p is not None:
        return calibrate(build(Noise.of(p=p, q=1.0 if f else 1 - 2**-32, f=f)), epsilon, vary="q")
    start = build(Noise.of(p=2**-32, q=0.5 if q is None else q, f=f))
    if q is None and start.kind == "boolean":
        return _symmetric(build, epsilon, f)
    return calibrate(start, epsilon, vary="p")


def _symmetric(build: Build, epsilon: float, f: float) -> Mechanism:
    """Return the mechanism with p = 1 − q, which is optimal for one bit."""
    flip = Noise.of(p=0.25, q=0.75, f=f).flip

    def at(step: int) -> Mechanism:
        return build(Noise(flip, ONE // 2 - step, ONE // 2 + step))

    return at(largest_step(epsilon, 1, ONE // 2 - 1, lambda step: at(step).loss.per_report))


def _repeatedly(
    build: Build, epsilon: float | None, p: float | None, q: float | None, f: float | None
) -> Mechanism:
    """Return the mechanism for repeated collection: ε limits the loss in total."""
    p, q = (0.25 if p is None else p), (0.75 if q is None else q)
    if f is not None:
        return build(Noise.of(p=p, q=q, f=f))
    if epsilon is None:
        raise InputError("epsilon is missing: set epsilon, or f (for repeated collection)")
    return calibrate(build(Noise.of(p=p, q=q, f=0.5)), epsilon, vary="f", in_total=True)


def _usual_filter(noise: Noise) -> Bloom:
    """Return the default Bloom filter with this noise."""
    return Bloom(noise=noise, bits=MIN_DEFAULT_BITS, hashes=HASHES)


def _most_accurate(build: Build, epsilon: float, per_report: float | None) -> Mechanism:
    """Return the mechanism with the smallest variance for these losses in total and per report."""
    usual = _repeatedly(build, epsilon, None, None, None)
    one_bit = usual.kind == "boolean"
    if per_report is None:
        if one_bit:
            return usual
        per_report = usual.loss.per_report
    else:
        per_report = _below(per_report)
    half = ONE // 2
    keep = None if one_bit else half

    def permanent(step: int) -> Mechanism:
        return build(Noise(half - step, ONE // 4, 3 * ONE // 4, keep))

    steps = largest_step(epsilon, 1, half - 1, lambda step: permanent(step).loss.in_total)

    def fresh(step: int) -> Mechanism:
        return build(Noise(half - steps, half - step, half + step, keep))

    return fresh(largest_step(per_report, 1, half - 1, lambda step: fresh(step).loss.per_report))


def most_accurate(mechanism: Mechanism, epsilon: float, per_report: float) -> Mechanism:
    """Return the same mechanism with the most accurate noise for these losses.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of a question that is collected repeatedly.
    epsilon, per_report : float
        Maximum loss in total and per report, in nats.

    Returns
    -------
    Mechanism
        A mechanism that reports the same tokens.
    """
    if isinstance(mechanism, LocalHash):
        families = mechanism.families
        return PermanentLocalHash.spending_both(epsilon, per_report, families=families)
    settings = {k: v for k, v in mechanism.canonical().items() if k not in _NOISE_KEYS}
    kind = str(settings.pop("kind")).removesuffix("-asymmetric")
    return _most_accurate(partial(built, kind, settings), epsilon, per_report)


def built(kind: str, settings: Settings, noise: Noise) -> Mechanism:
    """Return the mechanism of this kind, or its asymmetric variant if the noise is asymmetric."""
    own = kind if noise.keep is None else f"{kind}-asymmetric"
    return KINDS[own].from_settings(noise, dict(settings))


def bits_for(noise: Noise, hashes: int) -> int:
    """Return the smallest number of bits at which the bits of other clients add little variance.

    With r = p* + (q*−p*)·h/k, r(1−r) exceeds p*(1−p*) by about (q*−p*)(1−2p*)·h/k.
    """
    p, q = noise.p_star, noise.q_star
    bits = MIN_DEFAULT_BITS
    load = abs((q - p) * (1 - 2 * p)) * hashes
    while bits < MAX_DEFAULT_BITS and load > MAX_COLLISION_VARIANCE * bits * p * (1 - p):
        bits *= 2
    return bits


def prefix_lengths(symbols: int, length: int) -> list[tuple[int, float]]:
    """Return the default prefix lengths, with their shares of clients.

    If an analysis can test every string, all clients report the whole string. Otherwise the first
    length is the longest at which it can test every prefix. Every further length up to the whole
    string has e^(−1/4.5) of the share before it, because later stages have fewer prefixes to
    distinguish. 27% of the clients report the whole string again, for the test of discovered
    strings. The shares were chosen by experiments on strings of 20 symbols; shares within a tenth
    of them discover as many strings.
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
    """Return the shares as integers that sum to 2³²; the last one takes the rounding error."""
    whole = sum(map(Fraction, shares))
    parts = [int(Fraction(share) * ONE / whole) for share in shares]
    parts[-1] += ONE - sum(parts)
    return parts
