"""What a survey can detect: noise, detection thresholds, and the number of discovered strings.

**Noise.** The estimate of one candidate's frequency from N clients has the standard deviation
σ = sqrt(r(1−r)/h) / |q*−p*| / √N with r = p* + (q*−p*)·(1−(1−1/k)^h). It comes from the noise of
the reports and from the bits that other clients' values set.

**Known strings.** With V candidates, all of which are tested, the detection threshold is z·σ, where
z is the one-sided quantile of α/V (Bonferroni), of a gamma distribution with the skewness
γ = (1−2r)/sqrt(N·h·r(1−r)): if ε is large and the crowd small, few ones are expected at a string's
bits, and their number is skewed. Common strings that are not listed scatter over the bits and raise
the threshold by up to 15%.

**Unknown strings.** A string must stand out among all possible strings.

* *Whole strings*, all of which are tested: z·σ, as for known strings.
* *Prefixes*: the search is simulated with noise in place of reports, and strings of every frequency
  are followed through it (`inference.power`); `discover` follows them through the search that it
  made. Words and addresses take 2.4 nats per character, random strings the logarithm of the number
  of symbols.
* In both, σ is that of a crowd in which a third of the clients hold common strings, which are found
  first: reports that they explain no longer disturb the others.
* *n-grams* with the default search: picking a string takes s = length · ln D nats, for D symbols.
  Let e be the evidence for it per client and squared frequency, in nats. The threshold is the
  frequency w at which N·w²·e reaches the evidence that is needed. The evidence comes from full
  strings, pairs of grams, and by half, since strings share them, single grams:
  e = ½(1/σ_f² + Σ 1/(σ_g²σ_g′²) + ½·Σ 1/σ_g²). The search needs s + 1 + ln(1/α) nats. In
  addition, the grams alone must propose the string among 10⁵ proposals, and the full string must be
  3.5 standard deviations above 0.

The constants 2.4, ½ and 3.5 are measured, not derived. Predictions agree within 15% with the
thresholds that `discover` and `decode` report (`experiments/detection_threshold.py`). In small
crowds the noise is skewed, and prefixes need up to 15% more. The paper's search detects much less
than the default one: at ε = 4.39 with six letters, its threshold is 1.8 times as high.
"""

import math
from collections.abc import Sequence
from functools import singledispatch
from itertools import combinations
from statistics import NormalDist

from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.mechanisms import Mechanism
from deniable.mechanisms.noise import ONE
from deniable.protocols import NGrams, Prefixes, Protocol
from deniable.protocols.alphabet import TextProtocol, count_strings
from deniable.survey import Question
from deniable.survey.detection import is_tested

ALPHA = 0.05
"""Default significance level."""
CANDIDATES = 1000
"""Default number of candidates."""
WORD_NATS_PER_CHARACTER = 2.4
"""Evidence that discovering words and addresses from prefixes needs per character."""
EXPLAINED_STRINGS, EXPLAINED_MASS = 7, 1 / 3
"""Common strings that are found first, and the share of clients that hold one of them."""
TEST_NATS = 1.0
"""Evidence that testing a discovered string needs, in addition to ln(1/α)."""
MIN_FULL_STRING_Z = 3.5
"""z of the full string below which a string proposed by its grams is not found."""
MAX_PROPOSALS = 1e5
"""Number of strings that the grams propose."""


def noise_sd(mechanism: Mechanism, clients: float, frequency: float = 0.0) -> float:
    """Return the standard deviation of the estimate of one value.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism that reports the whole value: `question.protocol.mechanisms[0]`.
    clients : float
        Number of clients that report the whole value.
    frequency : float, default 0.0
        Frequency of the value.

    Returns
    -------
    float
        The standard deviation, as a frequency.

    Raises
    ------
    InputError
        If `clients` is not above 0.

    Examples
    --------
    >>> from deniable import Survey
    >>> from deniable.planning import noise_sd
    >>> survey = Survey.from_toml('''
    ... name = "modes"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Do you use dark mode?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> mechanism = survey.question("dark").protocol.mechanisms[0]
    >>> round(noise_sd(mechanism, 10_000), 4)
    0.0043
    """
    if clients <= 0:
        raise InputError(f"clients must be above 0, got {clients}")
    return math.sqrt(mechanism.variance(frequency) / clients)


def clients_to_move(question: Question, clients: int, shift: float) -> int:
    """Return how many malicious clients can move the estimate of a value by a given amount.

    The malicious clients send the most harmful report. Such a report adds (1−p)/(q−p)/N to the
    estimate, where q and p are the probabilities that an honest report supports the value if the
    client has it and if not.

    Parameters
    ----------
    question : Question
        Question that the clients answer.
    clients : int
        Number of all clients.
    shift : float
        Amount by which the estimate moves, as a frequency.

    Returns
    -------
    int
        The number of malicious clients.

    Examples
    --------
    >>> from deniable import Survey
    >>> from deniable.planning import clients_to_move
    >>> survey = Survey.from_toml('''
    ... name = "modes"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Do you use dark mode?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> clients_to_move(survey.question("dark"), 10_000, shift=0.01)
    87
    """
    p, q = question.protocol.mechanisms[0].support
    # Only reports of the whole value support it.
    whole = clients * question.protocol.identifying_share
    return math.ceil(abs(shift) * whole * abs(q - p) / (1 - p))


def detectable(
    question: Question, clients: float, *, candidates: int = CANDIDATES, alpha: float = ALPHA
) -> float:
    """Return the detection threshold of a known value.

    Parameters
    ----------
    question : Question
        Question that the clients answer.
    clients : float
        Number of clients.
    candidates : int, default 1000
        Number of candidates that are tested. Other questions test their options instead.
    alpha : float, default 0.05
        Significance level: maximum probability of any false detection.

    Returns
    -------
    float
        Smallest frequency that is detected with a probability of one half; above 1 if none is, and
        infinite if nothing is tested because there are too few clients or cohorts.

    Examples
    --------
    >>> from deniable import Survey
    >>> from deniable.planning import detectable
    >>> survey = Survey.from_toml('''
    ... name = "modes"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Do you use dark mode?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.dark]
    ... kind = "boolean"
    ... epsilon = 2.0
    ... ''')
    >>> round(detectable(survey.question("dark"), 10_000), 3)
    0.007
    """
    if not _has_tests(question, clients):
        return math.inf
    whole = question.protocol.mechanisms[0]
    tests = candidates if question.kind == "string" else len(whole.labels)
    reports = clients * question.protocol.identifying_share
    z = _skewed(_z(alpha, tests), _skewness(whole, reports))
    return z * noise_sd(whole, reports)


def discoverable(
    question: Question,
    clients: float,
    *,
    length: float | None = None,
    random: bool = False,
    alpha: float = ALPHA,
) -> float:
    """Return the detection threshold of an unknown string that `discover` searches for.

    Parameters
    ----------
    question : Question
        String question with a dictionary (protocol `prefixes` or `ngrams`).
    clients : float
        Number of clients.
    length : float, optional
        Length of a typical string. Half of the question's `max_length` by default.
    random : bool, default False
        Whether strings are random, unlike words and addresses, whose patterns help to find them.
        This makes no difference for n-grams, and for domains so small that every string is tested.
    alpha : float, default 0.05
        Significance level: maximum probability of any false detection.

    Returns
    -------
    float
        Smallest frequency that is detected with a probability of one half; above 1 if none is, and
        infinite if nothing is tested because there are too few clients or families.

    Raises
    ------
    InputError
        If the question reports whole values only.
    MissingPackage
        If the protocol is `prefixes`, and the `analysis` extra is not installed.

    Examples
    --------
    >>> from deniable import Survey
    >>> from deniable.planning import discoverable
    >>> survey = Survey.from_toml('''
    ... name = "pages"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "What is your home page?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.page]
    ... kind = "string"
    ... epsilon = 4.0
    ... [questions.page.dictionary]
    ... protocol = "prefixes"
    ... max_length = 12
    ... alphabet = "a-z"
    ... ''')
    >>> round(discoverable(survey.question("page"), 1_000_000), 4)
    0.0018
    """
    one = _discoverable_by_one(question.protocol, length, random, alpha)
    return one / math.sqrt(clients) if _has_tests(question, clients) else math.inf


def _has_tests(question: Question, clients: float) -> bool:
    """Return whether reports of this many clients are tested; see `survey.detection`."""
    repeated = question.loss.in_total < math.inf
    return is_tested((question,), clients, clients if repeated else None)


def _typical(protocol: TextProtocol, length: float | None) -> tuple[float, float]:
    """Return the length of a typical string, and the nats s that picking it takes."""
    length = protocol.max_length / 2 if length is None else length
    return length, length * math.log(len(protocol.alphabet.content) + 1)


@singledispatch
def _discoverable_by_one(
    protocol: Protocol, length: float | None, random: bool, alpha: float
) -> float:
    """Return the threshold with a single client. Thresholds are proportional to 1/√N."""
    raise InputError(
        f"question {protocol.question!r} reports whole values only, so unknown strings cannot be "
        "discovered; add a dictionary with protocol prefixes or ngrams to the survey"
    )


@_discoverable_by_one.register
def _by_prefixes(protocol: Prefixes, length: float | None, random: bool, alpha: float) -> float:
    sd = _explained_sd(protocol.mechanism)
    symbols = len(protocol.alphabet.content)
    if len(protocol.levels) == 1:
        return sd * _z(alpha, count_strings(symbols, protocol.max_length))
    with needs_packages("the detection threshold of strings that nobody listed"):
        from deniable.inference.power.prefix_prediction import PrefixPlan, threshold_in_errors
        from deniable.inference.power.prefix_search import CONFIRMING_SHARE, LEARNING_SHARE
    planned = PrefixPlan(
        lengths=tuple(level.length for level in protocol.levels),
        shares=tuple(level.weight / ONE for level in protocol.levels),
        learning=LEARNING_SHARE,
        symbols=symbols,
        nats=math.log(symbols) if random else WORD_NATS_PER_CHARACTER,
        length=protocol.max_length / 2 if length is None else length,
        alpha=(1 - CONFIRMING_SHARE) * alpha,
    )
    return sd * threshold_in_errors(planned)


def _explained_sd(mechanism: Mechanism) -> float:
    """Return the noise of a rare string for one client, once common strings are explained.

    Reports that common strings explain tell less than others. If all of them count the same, the
    noise is that of `noise_sd`.
    """
    p, q = mechanism.support
    noise, width = float(mechanism.noise.p_star), mechanism.bound or mechanism.width
    mean = p + (q - p) * mechanism.collision_probability
    free = (1 - 1 / width) ** EXPLAINED_STRINGS
    low = noise + (mean - noise) * (1 - EXPLAINED_MASS)
    high = (mean - free * low) / (1 - free)
    gain = mean * (1 - mean) * (free / (low * (1 - low)) + (1 - free) / (high * (1 - high)))
    return noise_sd(mechanism, 1.0) / math.sqrt(gain)


@_discoverable_by_one.register
def _by_ngrams(protocol: NGrams, length: float | None, random: bool, alpha: float) -> float:
    _, nats = _typical(protocol, length)
    full = protocol.full.variance()
    grams = [mechanism.variance() for mechanism in protocol.grams]
    proposing = sum(1 / (a * b) for a, b in combinations(grams, 2))
    proposing += sum(1 / variance for variance in grams) / 2
    enough = math.sqrt(2 * (nats + TEST_NATS - math.log(alpha)) / (1 / full + proposing))
    proposed = math.sqrt(max(nats - math.log(MAX_PROPOSALS), 0.0) / proposing)
    return max(enough, proposed, MIN_FULL_STRING_Z * math.sqrt(full))


def expected_found(weights: Sequence[float], threshold: float, sd: float) -> float:
    """Return the expected number of strings whose estimates exceed a threshold.

    Parameters
    ----------
    weights : sequence of float
        Frequencies of the strings.
    threshold : float
        Detection threshold, as a frequency.
    sd : float
        Standard deviation of the estimates.

    Returns
    -------
    float
        The expected number.

    Examples
    --------
    >>> from deniable.planning import expected_found
    >>> expected_found([0.5, 0.02], threshold=0.02, sd=0.005)
    1.5
    """
    normal = NormalDist()
    return sum(normal.cdf((w - threshold) / sd) for w in weights)


def _skewness(mechanism: Mechanism, reports: float) -> float:
    """Return the skewness of the number of ones at the bits of a string that nobody holds."""
    p, q = mechanism.support
    mean = p + (q - p) * mechanism.collision_probability
    return (1 - 2 * mean) * (q - p) * noise_sd(mechanism, reports) / (mean * (1 - mean))


def _skewed(z: float, skewness: float) -> float:
    """Return the quantile of a gamma distribution at a normal quantile (Wilson and Hilferty)."""
    if abs(skewness) < 1e-6:
        return z
    skewness = min(skewness, 3 * z)  # the approximation falls with the skewness beyond this
    cube = (1 + skewness * z / 6 - skewness**2 / 36) ** 3
    return (cube - 1) * 2 / skewness


def _z(alpha: float, tests: int) -> float:
    """Return the z that each of several tests must exceed (Bonferroni)."""
    return -NormalDist().inv_cdf(alpha / min(max(tests, 1), 10**300))
