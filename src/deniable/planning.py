"""What a survey can see: predicted noise, detection thresholds, and how many strings will be found.

**Noise.** An estimate of one candidate's frequency from N clients has
σ = sqrt(r(1−r)/h) / |q*−p*| / √N, with r = p* + (q*−p*)·(1−(1−1/k)^h): the response noise, and the
bits that other clients' values set.

**Known dictionary.** Among V candidates that are all looked at, a frequency is detectable when it
exceeds z·σ, z the one-sided normal quantile of α/V (Bonferroni).

**Unknown, n-grams.** A string is found when each of its grams is found at its position, where only
r/P of the clients report, among Dⁿ grams, and the full string passes the test of candidates.

**Unknown, prefixes.** Every client's report is evidence, but a string must stand out among all
strings: with s nats a string (length · ln D when nothing is known about them) the threshold is
about σ·√(2(s + 5)). Where clients report whole strings only, every string of the domain is tested:
z·σ as for a known dictionary of that size. Strings already found lower σ for the others, by up to
√2 with local hashing; that is not counted here.

Predictions are tested against simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from deniable.errors import InputError
from deniable.mechanisms import Bloom, LocalHash, Mechanism, calibrate
from deniable.privacy import split
from deniable.protocols import Alphabet, NGrams, Prefixes
from deniable.protocols.alphabet import count_strings
from deniable.survey import Question

ALPHA = 0.05
CANDIDATES = 1000
SLACK_NATS = 5.0
"""What testing adds to a string's own nats: about ln(1/α) and the levels it survives."""


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
    nats: float | None = None,
    alpha: float = ALPHA,
) -> float:
    """The smallest frequency of a string that nobody listed but `discover` finds.

    length : of a typical string, half of max_length if not given; nats : what is not known about a
    string beforehand, length · ln(alphabet) if not given
    """
    protocol = question.protocol
    if isinstance(protocol, NGrams):
        return max(_gram_threshold(protocol, clients, alpha), detectable(question, clients))
    if not isinstance(protocol, Prefixes):
        raise InputError(
            f"question {question.name!r} asks for whole values only: give it a dictionary, with "
            "protocol ngrams or prefixes"
        )
    if len(protocol.levels) == 1 and nats is None:
        strings = count_strings(len(protocol.alphabet.content), protocol.max_length)
        return _z(alpha, strings) * noise_sd(protocol.mechanism, clients)
    symbols = len(protocol.alphabet.content) + 1
    typical = protocol.max_length / 2 if length is None else length
    known = typical * math.log(symbols) if nats is None else nats
    return noise_sd(protocol.mechanism, clients) * math.sqrt(2 * (known + SLACK_NATS))


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

    The paper gives each report the same share and leaves the best one open. Grams must be told
    apart from few clients at each position, so they deserve more than the full string.
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
) -> float:
    """Predicted threshold of n-gram discovery with these shares of ε, full string first."""
    from deniable.mechanisms import Noise

    start = Bloom(noise=Noise.of(p=2**-32, q=0.5), bits=256, cohorts=64)
    full, *parts = (calibrate(start, e, vary="p") for e in split(epsilon, shares))
    protocol = NGrams(alphabet, max_length, gram, full, tuple(parts))
    at_grams = _gram_threshold(protocol, clients, ALPHA)
    return max(at_grams, _z(ALPHA, CANDIDATES) * noise_sd(full, clients))


def _gram_threshold(protocol: NGrams, clients: float, alpha: float) -> float:
    symbols = len(protocol.alphabet.content) + 1
    there = clients * len(protocol.grams) / protocol.positions
    worst = max(noise_sd(m, there) for m in protocol.grams)
    return _z(alpha, symbols**protocol.gram) * worst


def _z(alpha: float, looked_at: int) -> float:
    return -NormalDist().inv_cdf(alpha / min(max(looked_at, 1), 10**300))
