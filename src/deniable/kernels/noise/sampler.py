"""Sample bits that are 1 with one probability if they were 1 and another if they were 0.

Both randomised responses of RAPPOR are this step: permanent noise (PRR) with (if_zero, if_one) =
(phi, 2^32 - phi), where phi is the threshold of f/2, and fresh noise (IRR) with (P, Q).
Probabilities are integers T in 0..2^32 that mean T / 2^32.

A bit becomes 1 if and only if a uniform 32-bit number U is below its threshold T. U is compared
digit by digit, most significant first. Each digit decides half of the bits, so few random words are
needed: two per 64 bits for p = 1/4, q = 3/4, about 13 for most other thresholds. Blocks of 64
words are compared together, in vector instructions, until all their bits are decided.

Random words come from xoshiro256++, which is fast and can be seeded, but is no source of privacy:
this sampler is for simulations only. Clients use `mechanisms.noise.randomise`.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from deniable.errors import InputError
from deniable.kernels.array_types import Words
from deniable.kernels.compiled import compiled, inlined

CERTAIN = 1 << 32
"""Threshold of probability 1."""
CHUNK_BYTES = 1 << 16
"""Bytes of packed rows per random seed; another number would change what a seed reproduces."""

# One flat array holds a block, so that the compiler knows that its parts do not overlap: BLOCK
# words each of bits, undecided bits, result and random words, and 4 * BLOCK of generator states.
BLOCK = 64
UNDECIDED, RESULT, RANDOM, STATE = BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK
WORK = 8 * BLOCK

Thresholds: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
State: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@dataclass(frozen=True)
class Response:
    """A randomised response: thresholds, of `whole`, for bits that are 0 and for bits that are 1.

    >>> Response(1 << 30, 3 << 30).levels, Response(0, CERTAIN).levels, Response(1, CERTAIN).levels
    (2, 0, 32)
    """

    if_zero: int
    if_one: int
    whole: int = CERTAIN

    def __post_init__(self) -> None:
        for name, threshold in (("if_zero", self.if_zero), ("if_one", self.if_one)):
            if not 0 <= threshold <= self.whole:
                power = self.whole.bit_length() - 1
                raise InputError(f"threshold {name} must be in 0..2^{power}, got {threshold}")

    @property
    def levels(self) -> int:
        """Maximum number of random words per 64 bits that the two thresholds can need."""
        uncertain = [t for t in (self.if_zero, self.if_one) if 0 < t < self.whole]
        return max((self.whole.bit_length() - (t & -t).bit_length() for t in uncertain), default=0)

    @property
    def limits(self) -> Thresholds:
        """Thresholds as `sample_block` takes them: (zero, one, sure_zero, sure_one).

        The first two are the 64 binary digits after the point, the others whether it is 1.
        """
        factor = (1 << 64) // self.whole
        zero, one = (np.uint64(t * factor % (1 << 64)) for t in (self.if_zero, self.if_one))
        return (
            zero,
            one,
            np.uint64(self.if_zero == self.whole),
            np.uint64(self.if_one == self.whole),
        )

    def after_permanent(self, flip: int, keep: int | None = None) -> "Response":
        """Return permanent noise with thresholds `flip` and `keep`, followed by this response.

        keep : by default 2^32 - flip, the symmetric noise of RAPPOR

        The thresholds, of 2^64, are exact: p* = (1 - f/2) p + (f/2) q has 64 binary digits if f/2,
        p and q have 32.

        >>> both = Response(1 << 30, 3 << 30).after_permanent(0)
        >>> (both.if_zero, both.if_one) == (1 << 62, 3 << 62)
        True
        """
        if not 0 <= flip <= CERTAIN:
            raise InputError(f"flip, the threshold of f/2, must be in 0..2^32, got {flip}")
        p, q = self.if_zero, self.if_one
        keep = CERTAIN - flip if keep is None else keep
        if_zero, if_one = (one * q + (CERTAIN - one) * p for one in (flip, keep))
        return Response(if_zero, if_one, CERTAIN * CERTAIN)


def chunk_rows(width: int) -> int:
    """Return the number of rows of `width` bytes that share one set of generators."""
    return max(1, CHUNK_BYTES // width)


def chunk_seeds(rows: int, width: int, rng: np.random.Generator) -> Words:
    """Draw 256-bit states of the BLOCK generators of every chunk, u64[chunks, 4 BLOCK]."""
    chunks = -(-rows // chunk_rows(width))
    return rng.integers(0, 1 << 64, size=(chunks, 4 * BLOCK), dtype=np.uint64)


@inlined
def next_word(state: State) -> tuple[np.uint64, State]:
    """Return the next 64-bit word of xoshiro256++ (Blackman and Vigna, 2019) and the next state."""
    s0, s1, s2, s3 = state
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word, (s0, s1, s2, s3)


@inlined
def _draw(work: Words) -> None:
    """Fill the random words of a block, one from each generator."""
    for i in range(BLOCK):
        at = np.uint64(STATE + i)
        word, state = next_word(
            (
                work[at],
                work[at + np.uint64(BLOCK)],
                work[at + np.uint64(2 * BLOCK)],
                work[at + np.uint64(3 * BLOCK)],
            )
        )
        work[np.uint64(RANDOM + i)] = word
        work[at] = state[0]
        work[at + np.uint64(BLOCK)] = state[1]
        work[at + np.uint64(2 * BLOCK)] = state[2]
        work[at + np.uint64(3 * BLOCK)] = state[3]


@inlined
def _begin(work: Words, count: int, limits: Thresholds) -> None:
    """Decide bits of probability 0 and 1, so that no random words are drawn for them."""
    nothing = np.uint64(0)
    zero, one, sure_zero, sure_one = limits
    open_zero = nothing - np.uint64(zero != nothing)
    open_one = nothing - np.uint64(one != nothing)
    sure_zero, sure_one = nothing - sure_zero, nothing - sure_one
    for i in range(BLOCK):
        ones = work[np.uint64(i)]
        used = nothing - np.uint64(i < count)
        work[np.uint64(UNDECIDED + i)] = ((ones & open_one) | (~ones & open_zero)) & used
        work[np.uint64(RESULT + i)] = (ones & sure_one) | (~ones & sure_zero)


@inlined
def _compare_digit(work: Words, digit_zero: np.uint64, digit_one: np.uint64) -> np.uint64:
    """Compare one digit of U with that of the thresholds; return 0 if all bits are decided."""
    left = np.uint64(0)
    when_one, when_zero = np.uint64(0) - digit_one, np.uint64(0) - digit_zero
    for i in range(BLOCK):
        ones, undecided = work[np.uint64(i)], work[np.uint64(UNDECIDED + i)]
        u = work[np.uint64(RANDOM + i)]
        target = (ones & when_one) | (~ones & when_zero)
        work[np.uint64(RESULT + i)] |= undecided & target & ~u
        undecided &= ~(u ^ target)
        work[np.uint64(UNDECIDED + i)] = undecided
        left |= undecided
    return left


@compiled
def sample_block(work: Words, count: int, limits: Thresholds, levels: int) -> None:
    """Replace the `count` words of bits of a block by randomised ones.

    limits, levels : attributes of a `Response`
    """
    _begin(work, count, limits)
    left = np.uint64(0)
    for i in range(BLOCK):
        left |= work[np.uint64(UNDECIDED + i)]
    level = 0
    while left and level < levels:
        _draw(work)
        digit = np.uint64(63 - level)
        left = _compare_digit(
            work, (limits[0] >> digit) & np.uint64(1), (limits[1] >> digit) & np.uint64(1)
        )
        level += 1
    for i in range(BLOCK):
        work[np.uint64(i)] = work[np.uint64(RESULT + i)]
