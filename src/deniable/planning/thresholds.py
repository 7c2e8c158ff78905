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

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

from deniable.errors import InputError
from deniable.mechanisms import Bloom, LocalHash, Mechanism, calibrate
from deniable.privacy import split
from deniable.protocols import Alphabet, NGrams, Prefixes
from deniable.protocols.alphabet import count_strings
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
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    h, load = 1, 0.0
    if isinstance(mechanism, LocalHash):
        p = 1 / mechanism.values  # a string that a client does not hold is supported by chance
    if isinstance(mechanism, Bloom):
        h, load = mechanism.hashes, 1 - (1 - 1 / mechanism.bits) ** mechanism.hashes
    r = p + (q - p) * (load + frequency * (1 - load))
    return math.sqrt(r * (1 - r) / h / clients) / abs(q - p)


def clients_to_move(question: Question, clients: int, shift: float) -> int:
    """How many of the clients, sending the most harmful report, move one value's estimate this far.

    A report that supports a value adds (1−p)/(q−p)/N to its estimate, p and q the probabilities
    that an honest report supports it without and with the value. Only clients whose report speaks
    of the whole value count.
    """
    mechanism = question.protocol.mechanisms[0]
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    if isinstance(mechanism, LocalHash):
        p = 1 / mechanism.values
    return math.ceil(abs(shift) * clients * whole_share(question) * abs(q - p) / (1 - p))


def whole_share(question: Question) -> float:
    """The share of clients whose report speaks of the whole value, however long it is."""
    protocol = question.protocol
    if isinstance(protocol, Prefixes):
        return sum(
            probability
            for (level,), probability in protocol.draws
            if protocol.levels[level].length == protocol.max_length
        )
    return 1.0


def detectable(
    question: Question, clients: float, *, candidates: int = CANDIDATES, alpha: float = ALPHA
) -> float:
    """The smallest frequency of a listed value that stands out; above 1 if none does.

    A choice is tested against all its options, whatever `candidates` says.
    """
    whole = question.protocol.mechanisms[0]
    looked_at = candidates if question.kind == "string" else whole.width
    return _z(alpha, looked_at) * noise_sd(whole, clients * whole_share(question))


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
    protocol = question.protocol
    if not isinstance(protocol, NGrams | Prefixes):
        raise InputError(
            f"question {question.name!r} asks for whole values only: give it a dictionary, with "
            "protocol ngrams or prefixes"
        )
    symbols = len(protocol.alphabet.content)
    typical = protocol.max_length / 2 if length is None else length
    nats = typical * math.log(symbols + 1)
    if isinstance(protocol, NGrams):
        return _gram_threshold(protocol, nats, alpha) / math.sqrt(clients)
    sd = noise_sd(protocol.mechanism, clients)
    if len(protocol.levels) == 1:
        return _z(alpha, count_strings(symbols, protocol.max_length)) * sd
    takes = RANDOM_FACTOR * nats if random else WORDS_NATS * typical
    return sd * math.sqrt(2 * (takes + TEST_NATS - math.log(alpha)))


def _gram_threshold(protocol: NGrams, nats: float, alpha: float) -> float:
    """Of the default reading, times √N."""
    full = noise_sd(protocol.full, 1.0)
    grams = [noise_sd(mechanism, 1.0) for mechanism in protocol.grams]
    proposing = sum(1 / (a * b) ** 2 for a, b in combinations(grams, 2))
    proposing += sum(1 / sd**2 for sd in grams) / 2
    enough = math.sqrt(2 * (nats + TEST_NATS - math.log(alpha)) / (1 / full**2 + proposing))
    proposed = math.sqrt(max(nats - math.log(PROPOSED), 0.0) / proposing)
    return max(enough, proposed, STANDS_OUT * full)


def expected_found(weights: Sequence[float], threshold: float, sd: float) -> float:
    """How many of strings with these frequencies pass a threshold, on average."""
    normal = NormalDist()
    return sum(normal.cdf((w - threshold) / sd) for w in weights)


@dataclass(frozen=True)
class Split:
    """Shares of ε for the full string and for each n-gram, and the threshold they give."""

    shares: tuple[float, ...]
    threshold: float


def best_split(
    epsilon: float,
    clients: float,
    alphabet: Alphabet,
    max_length: int,
    gram: int = 2,
    grams: int = 2,
) -> Split:
    """The division of ε between full string and n-grams with the lowest predicted threshold.

    The paper gives each report the same share and leaves the best one open. Long strings take most
    of their evidence from pairs of grams; short ones must above all stand out as full strings.
    """
    found = [
        Split(shares, split_threshold(epsilon, shares, clients, alphabet, max_length, gram))
        for full in range(1, 100)
        if (shares := (full / 100, *[(1 - full / 100) / grams] * grams))
    ]
    return min(found, key=lambda s: s.threshold)


def split_threshold(
    epsilon: float,
    shares: Sequence[float],
    clients: float,
    alphabet: Alphabet,
    max_length: int,
    gram: int = 2,
    length: float | None = None,
) -> float:
    """Predicted threshold of n-gram discovery with these shares of ε, full string first.

    length : of a typical string, half of max_length if not given
    """
    from deniable.mechanisms import Noise

    start = Bloom(noise=Noise.of(p=2**-32, q=0.5), bits=256, cohorts=64)
    parts = split(epsilon, shares)
    made = {part: calibrate(start, part, vary="p") for part in set(parts)}
    full, *each = (made[part] for part in parts)
    protocol = NGrams(alphabet, max_length, gram, full, tuple(each))
    nats = (max_length / 2 if length is None else length) * math.log(len(alphabet.content) + 1)
    return _gram_threshold(protocol, nats, ALPHA) / math.sqrt(clients)


def _z(alpha: float, looked_at: int) -> float:
    return -NormalDist().inv_cdf(alpha / min(max(looked_at, 1), 10**300))
