"""What a survey can see: predicted noise, detection thresholds, and how many strings will be found.

**Noise.** An estimate of one candidate's frequency from N clients has
σ = sqrt(r(1−r)/h) / |q*−p*| / √N, with r = p* + (q*−p*)·(1−(1−1/k)^h): the response noise, and the
bits that other clients' values set.

**Known dictionary.** Among V candidates that are all looked at, a frequency is detectable when it
exceeds z·σ, z the one-sided normal quantile of α/V (Bonferroni).

**Unknown.** A string must stand out among all strings that could be, s nats of them: length · ln D
for D symbols when nothing is known about it. With e the evidence for it per client and squared
frequency, in nats, the threshold is the w at which N·w²·e reaches what finding it takes:

* *whole strings*, all looked at: z·σ, as for a known dictionary of that size.
* *prefixes*: e = 1/(2σ₁²), σ₁ that of one client; it takes 2 + ln(1/α) and 2.6 nats a character of
  words and addresses, whose patterns are learnt on the way, or 1.65·s of strings without pattern,
  which a search by prefixes may lose on the way (more above 35 nats: 2.1·s at 46).
* *n-grams*, default reading: full strings, pairs of grams and, by half, since strings share them,
  single grams: e = ½(1/σ_f² + Σ 1/(σ_g²σ_g′²) + ½·Σ 1/σ_g²). It takes s + 2 + ln(1/α). The grams
  alone must propose the string, half of what s exceeds the number of proposals by, and the full
  string must stand 3.5 σ out.

The constants 2.6, 1.65, ½ and 3.5 are measured, not derived. Against simulated crowds
(`experiments/planning.py`), thresholds are within 10%. The paper's reading finds much less than the
default one: at ε = 4.39 with six letters, strings of 1.8 times its threshold.
"""

import math
from collections.abc import Sequence
from functools import singledispatch
from itertools import combinations
from statistics import NormalDist

from deniable.errors import InputError
from deniable.mechanisms import Mechanism
from deniable.protocols import NGrams, Prefixes, Protocol
from deniable.protocols.alphabet import TextProtocol, count_strings
from deniable.survey import Question

ALPHA = 0.05
CANDIDATES = 1000
WORDS_NATS = 2.6
"""What a character of words and addresses takes to be found by prefixes."""
RANDOM_FACTOR = 1.65
"""The same of strings without pattern, over their own nats."""
TEST_NATS = 2.0
"""What testing takes beside ln(1/α)."""
STANDS_OUT = 3.5
PROPOSED = 1e5


def noise_sd(mechanism: Mechanism, clients: float, frequency: float = 0.0) -> float:
    """Standard deviation of one candidate's estimate, at this frequency of its own."""
    if clients <= 0:
        raise InputError(f"expected a number of clients above 0, got {clients}")
    return math.sqrt(mechanism.variance(frequency) / clients)


def clients_to_move(question: Question, clients: int, shift: float) -> int:
    """How many of the clients, sending the most harmful report, move one value's estimate this far.

    A report that supports a value adds (1−p)/(q−p)/N to its estimate, p and q the probabilities
    that an honest report supports it without and with the value. Only clients whose report speaks
    of the whole value count.
    """
    mechanism = question.protocol.mechanisms[0]
    p, q = mechanism.support
    whole = clients * question.protocol.identifying_share
    return math.ceil(abs(shift) * whole * abs(q - p) / (1 - p))


def detectable(
    question: Question, clients: float, *, candidates: int = CANDIDATES, alpha: float = ALPHA
) -> float:
    """The smallest frequency of a listed value that stands out; above 1 if none does.

    A choice is tested against all its options, whatever `candidates` says.
    """
    whole = question.protocol.mechanisms[0]
    looked_at = candidates if question.kind == "string" else whole.width
    return _z(alpha, looked_at) * noise_sd(whole, clients * question.protocol.identifying_share)


def discoverable(
    question: Question,
    clients: float,
    *,
    length: float | None = None,
    random: bool = False,
    alpha: float = ALPHA,
) -> float:
    """The smallest frequency of a string that nobody listed but `discover` finds.

    length : of a typical string, half of max_length if not given; random : its characters follow no
    pattern, unlike those of words and addresses (n-grams, and domains of which all strings are
    looked at, do not profit from patterns)
    """
    one = _discoverable_by_one(question.protocol, length, random, alpha)
    return one / math.sqrt(clients)


def _typical(protocol: TextProtocol, length: float | None) -> tuple[float, float]:
    """Return the length of a typical string, and its nats if nothing is known about it."""
    length = protocol.max_length / 2 if length is None else length
    return length, length * math.log(len(protocol.alphabet.content) + 1)


@singledispatch
def _discoverable_by_one(
    protocol: Protocol, length: float | None, random: bool, alpha: float
) -> float:
    """Return what `discoverable` is with a single client: thresholds fall with √N."""
    raise InputError(
        f"question {protocol.question!r} asks for whole values only: give it a dictionary, with "
        "protocol ngrams or prefixes"
    )


@_discoverable_by_one.register
def _by_prefixes(protocol: Prefixes, length: float | None, random: bool, alpha: float) -> float:
    sd = noise_sd(protocol.mechanism, 1.0)
    if len(protocol.levels) == 1:
        return sd * _z(alpha, count_strings(len(protocol.alphabet.content), protocol.max_length))
    length, nats = _typical(protocol, length)
    takes = RANDOM_FACTOR * nats if random else WORDS_NATS * length
    return sd * math.sqrt(2 * (takes + TEST_NATS - math.log(alpha)))


@_discoverable_by_one.register
def _by_ngrams(protocol: NGrams, length: float | None, random: bool, alpha: float) -> float:
    _, nats = _typical(protocol, length)
    full = protocol.full.variance()
    grams = [mechanism.variance() for mechanism in protocol.grams]
    proposing = sum(1 / (a * b) for a, b in combinations(grams, 2))
    proposing += sum(1 / variance for variance in grams) / 2
    enough = math.sqrt(2 * (nats + TEST_NATS - math.log(alpha)) / (1 / full + proposing))
    proposed = math.sqrt(max(nats - math.log(PROPOSED), 0.0) / proposing)
    return max(enough, proposed, STANDS_OUT * math.sqrt(full))


def expected_found(weights: Sequence[float], threshold: float, sd: float) -> float:
    """How many of strings with these frequencies pass a threshold, on average."""
    normal = NormalDist()
    return sum(normal.cdf((w - threshold) / sd) for w in weights)


def _z(alpha: float, looked_at: int) -> float:
    return -NormalDist().inv_cdf(alpha / min(max(looked_at, 1), 10**300))
