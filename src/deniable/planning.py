"""What a survey can see: the noise of an estimate and the frequency it can detect.

An estimate of one candidate's frequency from N clients has, from the response noise alone,
σ = sqrt(p*(1−p*)/h) / |q*−p*| / √N. Among `candidates` that are all looked at, a frequency is
detectable when it exceeds z·σ with z the one-sided normal quantile of α/candidates (Bonferroni).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from deniable.errors import InputError
from deniable.mechanisms import Bloom, Mechanism
from deniable.protocols import Prefixes
from deniable.survey import Question

ALPHA = 0.05
CANDIDATES = 1000


def noise_sd(mechanism: Mechanism, clients: float) -> float:
    """Standard deviation of one candidate's estimated frequency."""
    if clients <= 0:
        raise InputError(f"expected a number of clients above 0, got {clients}")
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    h = mechanism.hashes if isinstance(mechanism, Bloom) else 1
    return math.sqrt(p * (1 - p) / h / clients) / abs(q - p)


def full_share(question: Question) -> float:
    """The share of clients whose report speaks of the whole value."""
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
    z = NormalDist().inv_cdf(1 - alpha / looked_at)
    return z * noise_sd(whole, clients * full_share(question))
