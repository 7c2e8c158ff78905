"""Tests whether the reports look like those that honest clients send.

Every test has a null hypothesis that holds for all populations, whatever strings clients hold:

* Clear fields have the distribution that the survey publishes (chi-square test). Clients that
  report repeatedly keep their clear fields, so this test needs one report per client.
* The number of bits that a report sets has a mean between those of a client without an answer and
  of a client whose value sets h different bits, and the variance that follows from the mean.
* Reports that are subsets contain every option at least as often as if no client had chosen it.
* Values do not depend on cohorts. So if every value sets one bit, the numbers of bits that reports
  set differ among cohorts by noise only (chi-square test of their dispersion).
* Hash functions of different cohorts are unrelated. So which bits are frequent in one cohort says
  nothing about which are in another. The test statistic is the sum of the inner products of the
  cohorts' bit counts; its first three moments are those under random permutations of the bits.
* Reports that are very unlikely to occur twice do not occur twice.
* No share of clients exceeds 1.

p-values are corrected for the number of tests (Holm). Tails are computed from three moments, so
that small p-values are right within a small factor only: the level, 0.001, leaves room for it below
the promised 1%. Clients that report repeatedly share values and permanent noise between their
reports: variances are those of `MOST_REPEATS` reports per client, or of more where that is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from deniable.formatting import percent
from deniable.inference.distributions import binomial_pmf, pearson3_tail, poisson_tail
from deniable.inference.fit_counts import FitCounts, PartCounts, draw_shares
from deniable.inference.marginal.bit_counts import Repetition
from deniable.kernels.array_types import Floats, Int64s
from deniable.mechanisms import BitMechanism, Mechanism
from deniable.results.fit_check import LEVEL, FitCheck
from deniable.survey import Question, Survey

MOST_REPEATS = 100
"""Reports per client that tests allow for if a survey is collected repeatedly."""
MIN_REPORTS = 1000
"""Number of reports from which variances are tested, and reports may be said to look right."""
MIN_GROUPS = 8
"""Number of groups of hash functions from which they are compared."""
MIN_ONES_PER_GROUP = 5
"""Average variance of the number of ones of a group from which groups are compared."""
HARMLESS_COPIES = 0.001
"""Share of copies that is tolerated: a few uploads may arrive twice."""
HASH_TESTS = 10
"""Factor of p-values about hash functions, because all crowds of a survey share a false alarm."""
UNSEEN = {
    "string": "whether strings are hashed as the survey says, and whether q is right",
    "choice": "whether options are mixed up, and whether q is right",
    "number": "whether bins are mixed up, and whether q is right",
    "boolean": "a boolean, of which any share up to 100% is possible",
}
"""Faults that reports cannot show, by kind of question."""


@dataclass(frozen=True)
class FitTest:
    """One test: what was tested, its p-value, and what is wrong if it is small.

    conclusive : whether it would notice faults other than impossible shares
    """

    what: str
    p_value: float
    problem: str
    conclusive: bool = True


def fit_check(
    survey: Survey,
    questions: Sequence[Question],
    counts: FitCounts,
    shares: Sequence[FitTest] = (),
    reports_per_client: float = 1.0,
) -> FitCheck:
    """Run all tests that apply, and return their common verdict.

    shares : outcomes of `possible_shares`
    """
    once = survey.collect == "once"
    repeats = _repeats(survey, reports_per_client)
    tests = list(shares)
    if once:
        cohorts = len(counts.cohorts)
        tests += _clear_fields("cohorts", counts.cohorts, np.full(cohorts, 1 / cohorts))
    for question, draws, parts in zip(questions, counts.draws, counts.parts, strict=True):
        if once and len(draws):
            what = f"clear fields of {question.name}"
            tests += _clear_fields(what, draws, draw_shares(survey, question))
        for part, mechanism in zip(parts, question.protocol.mechanisms, strict=False):
            tests += _number_of_ones(question.name, part, mechanism, repeats)
            tests += _members(question.name, part, mechanism)
            tests += _related_hashes(question.name, part)
    tests += _copies(counts)
    unseen = [UNSEEN[q.kind] for q in questions]
    if few := counts.reports < MIN_REPORTS:
        unseen.insert(0, f"so few reports ({counts.reports:,})")
    strings = any(q.protocol.mechanisms[0].question_kind == "string" for q in questions)
    if strings and not any(test.what.startswith("hashes") for test in tests):
        unseen.append("whether some clients always send the same, as there are few hash functions")
    if sum(map(len, counts.rare)) < MIN_REPORTS:
        unseen.append("whether some reports were sent twice")
    if not once:
        unseen.append("whether cohorts are uniform, as clients may report repeatedly")
    several_outcomes = any(m.outcomes > 1 for q in questions for m in q.protocol.mechanisms)
    check = _verdict(tests, tuple(dict.fromkeys(unseen)))
    enough = strings or (once and several_outcomes)
    return replace(check, conclusive=check.conclusive and enough and not few)


def _repeats(survey: Survey, reports_per_client: float) -> float:
    """Return the number of reports per client that tests allow for."""
    return max(reports_per_client, 1.0 if survey.collect == "once" else MOST_REPEATS)


def possible_shares(
    survey: Survey,
    question: Question,
    shares: tuple[Floats, Floats],
    reports: int,
    reports_per_client: float = 1.0,
) -> list[FitTest]:
    """Test that no share exceeds 1.

    shares : estimates and their standard errors, for this number of reports per client
    reports : number of reports that they were estimated from

    The error is at least that of a value that all clients hold, if nothing else is estimated.
    """
    estimate, standard_error = shares
    known = np.isfinite(estimate) & np.isfinite(standard_error)
    repeats = _repeats(survey, reports_per_client)
    clients = reports / repeats
    if not known.any() or clients < 2:
        return []
    least = np.sqrt(question.protocol.mechanisms[0].variance(1.0) / clients)
    widest = np.maximum(standard_error[known] * np.sqrt(repeats / reports_per_client), least)
    t = (estimate[known] - 1) / widest
    p_value = min(1.0, len(t) * float(special.stdtr(clients - 1, -t.max())))
    largest = percent(float(estimate[known][t.argmax()]))
    problem = f"the estimated share {largest} of {question.name} is impossible"
    return [FitTest("shares of at most 100%", p_value, problem, conclusive=False)]


def _verdict(tests: Sequence[FitTest], unchecked: tuple[str, ...]) -> FitCheck:
    """Correct p-values for the number of tests, and collect what is wrong."""
    problems = []
    ordered = sorted(tests, key=lambda test: test.p_value)
    for index, test in enumerate(ordered):
        if test.p_value > LEVEL / (len(tests) - index):
            break
        problems.append(test.problem)
    return FitCheck(
        p_value=min(1.0, len(tests) * ordered[0].p_value) if ordered else float("nan"),
        problems=tuple(dict.fromkeys(problems)),
        checked=tuple(dict.fromkeys(test.what for test in tests)),
        unchecked=unchecked,
        conclusive=any(test.conclusive for test in tests),
    )


def _upper_tail(value: float, mean: float, variance: float, third: float) -> float:
    """Return P(X ≥ value) of a gamma distribution with these moments.

    third : third central moment
    """
    if variance <= 0:
        return 1.0 if value <= mean else 0.0
    deviation = np.sqrt(variance)
    return pearson3_tail(float((value - mean) / deviation), float(third / deviation**3))


def _clear_fields(what: str, counts: Int64s, shares: Floats) -> list[FitTest]:
    """Test that clear fields have their published distribution."""
    n, possible = int(counts.sum()), shares > 0
    cells = int(possible.sum())
    if counts[~possible].any():
        return [FitTest(what, 0.0, f"{what} have values that no client can draw")]
    if cells < 2 or n < 2:
        return []
    share, seen = shares[possible], counts[possible]
    statistic = float((np.square(seen - n * share) / (n * share)).sum())
    # Moments of the statistic for few reports, too; the third is that of equal shares.
    variance = 2 * (cells - 1) + (float((1 / share).sum()) - cells**2 - 2 * cells + 2) / n
    third = (cells - 1) * (n - 1) / n**2 * (8 * (n - 2) + 4 * (cells - 2))
    most = int(np.argmax((seen - n * share) / np.sqrt(n * share)))
    problem = (
        f"{what} are distributed unevenly: one value occurs {seen[most]:,} times instead of about "
        f"{n * share[most]:,.0f} times"
    )
    half_step = cells / n  # two equal reports more add 2·cells/n to the statistic
    p_value = _upper_tail(statistic - half_step, cells - 1, variance, third)
    return [FitTest(what, p_value, problem)]


def _number_of_ones(
    name: str, counts: PartCounts, mechanism: Mechanism, repeats: float
) -> list[FitTest]:
    """Test mean, variance and dispersion among cohorts of the number of bits that a report sets."""
    n = int(counts.total.sum())
    match mechanism:
        case BitMechanism(hashes=hashes, width=width) if n:
            most = min(hashes, width)
        case _:
            return []
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    mean = float(counts.ones.sum()) / n
    repetition = Repetition.of(mechanism, repeats)
    rates = np.array([p, q])
    moments = np.array(repetition.moments(rates, np.full(2, p), np.full(2, q)))
    tails = []
    for bits in (0, most):  # bits that the value sets
        load = np.array([width - bits, bits])
        variance, third = moments @ load
        sign = 1 if (bits == most) == (q > p) else -1
        excess = sign * (mean - float(rates @ load)) - 0.5 / n
        tails.append(_upper_tail(excess, 0, variance / n, sign * third / n**2))
    problem = f"reports of {name} set {mean:.4g} bits on average, which no answers can explain"
    what = f"number of ones of {name}"
    tests = [FitTest(what, min(1.0, 2 * min(tails)), problem, conclusive=width > 1)]
    if width > 1 and counts.set_bits.sum() >= MIN_REPORTS:
        tests += _variance_of_ones(what, counts, (p, q), most, repeats)
    return tests


def _members(name: str, counts: PartCounts, mechanism: Mechanism) -> list[FitTest]:
    """Test that no option is in fewer subsets than if no client had chosen it."""
    n, ones = int(counts.total.sum()), counts.ones.sum(axis=0)
    if mechanism.ones is None or not n:
        return []
    p, _ = mechanism.support
    tail = float(special.bdtr(float(ones.min()), n, p))
    least = int(ones.argmin())
    label = [*map(repr, mechanism.labels), "no answer"][least]
    problem = (
        f"reports of {name} contain {label} {ones[least]:,} times, less than the "
        f"{n * p:,.0f} times that noise alone explains"
    )
    return [FitTest(f"members of {name}", min(1.0, len(ones) * tail), problem)]


def _variance_of_ones(
    what: str, counts: PartCounts, rates: tuple[float, float], most: int, repeats: float
) -> list[FitTest]:
    """Test the variance of the number of ones among reports, and that of its mean among cohorts.

    rates : P(bit = 1) of clients that do not and do set a bit
    most : maximum number of bits that a value sets (h)
    """
    p, q = rates
    number = np.arange(len(counts.set_bits))
    n, width = int(counts.set_bits.sum()), len(number) - 1
    mean = float(number @ counts.set_bits) / n
    measured = float(np.square(number - mean) @ counts.set_bits) / n
    # Values set s bits, 0 ≤ s ≤ h. For a given mean of s, the variance is largest if s is 0 or h.
    load = min(max((mean - width * p) / (q - p), 0.0), float(most))
    whole = min(int(load), most - 1)
    # Slopes of both variances, as functions of the mean; they are equal if h = 1.
    steep = (q * (1 - q) - p * (1 - p)) / (q - p) + (q - p) * (most - 2 * load)
    slope = steep if most == 1 else (q * (1 - q) - p * (1 - p)) / (q - p)
    tails: list[tuple[float, float]] = []
    for loads, steepness, sign in (
        ({0: 1 - load / most, most: load / most}, steep, 1),
        ({whole: 1 + whole - load, whole + 1: load - whole}, slope, -1),
    ):
        probability = _number_distribution(width, rates, loads)
        centre = float(number @ probability)
        expected = float(np.square(number - centre) @ probability)
        influence = np.square(number - centre) - expected - steepness * (number - centre)
        second, third = (float(influence**power @ probability) for power in (2, 3))
        excess = sign * (measured - expected - steepness * (mean - centre))
        spread = second * repeats / n, sign * third * (repeats / n) ** 2
        tails.append((_upper_tail(excess, 0, *spread), expected))
    tail, expected = min(tails)
    problem = f"the {what} has a variance of {measured:.4g} instead of about {expected:.4g}"
    tests = [FitTest(what, min(1.0, 2 * tail), problem)]
    size = counts.total[counts.total > 0]
    if most > 1 or len(size) < MIN_GROUPS or n * expected < MIN_ONES_PER_GROUP * len(size):
        return tests
    differences = counts.ones[counts.total > 0].sum(axis=1) - size * mean
    dispersion = float((np.square(differences) / size).sum()) / expected
    problem = (
        f"the {what} differs among cohorts: its dispersion is {dispersion:.4g} instead of about "
        f"{len(size) - 1}"
    )
    p_value = float(special.chdtrc(len(size) - 1, dispersion / repeats))
    return [*tests, FitTest(f"dispersion among cohorts of the {what}", p_value, problem)]


def _number_distribution(
    width: int, rates: tuple[float, float], loads: Mapping[int, float]
) -> Floats:
    """Return the probability of each number of ones, float64[width + 1].

    loads : share of clients by the number of bits that their values set
    """
    total = np.zeros(width + 1)
    for bits, share in loads.items():
        clear, held = width - bits, np.arange(bits + 1)
        noise = binomial_pmf(np.arange(clear + 1), clear, rates[0])
        total += share * np.convolve(noise, binomial_pmf(held, bits, rates[1]))
    return total


def _related_hashes(name: str, counts: PartCounts) -> list[FitTest]:
    """Test that the frequent bits, or numbers, of one cohort say nothing about those of another."""
    rows = counts.ones[counts.total > 0]
    outcomes = rows.shape[1]
    if len(rows) < MIN_GROUPS or outcomes < 3:
        return []
    centred = (rows - rows.mean(axis=1, keepdims=True)) / np.sqrt(
        counts.total[counts.total > 0, None]
    )
    size, cubes = np.square(centred).sum(axis=1), (centred**3).sum(axis=1)
    shared = centred.sum(axis=0)
    statistic = (float(shared @ shared) - float(size.sum())) / 2
    sums = [float((size**power).sum()) for power in (1, 2, 3)]
    pairs = (sums[0] ** 2 - sums[1]) / 2
    triples = (sums[0] ** 3 - 3 * sums[0] * sums[1] + 2 * sums[2]) / 6
    third = 6 * triples / (outcomes - 1) ** 2
    pair_cubes = (float(cubes.sum()) ** 2 - float(np.square(cubes).sum())) / 2
    third += pair_cubes * outcomes / ((outcomes - 1) * (outcomes - 2))
    most = int(shared.argmax())
    problem = (
        f"the same bits or numbers of {name} are frequent in different cohorts (number {most} most "
        "of all), although each cohort hashes differently"
    )
    p_value = _upper_tail(statistic, 0, pairs / (outcomes - 1), third)
    return [FitTest(f"hashes of {name}", min(1.0, HASH_TESTS * p_value), problem)]


def _copies(counts: FitCounts) -> list[FitTest]:
    """Test that reports that should be unique are unique."""
    if not any(map(len, counts.rare)):
        return []
    prints = np.sort(np.concatenate(counts.rare))
    copies = int((prints[1:] == prints[:-1]).sum())
    by_chance = counts.reports * counts.coincidence / 2
    # Of two copies, both must have been looked at.
    harmless = HARMLESS_COPIES * len(prints) * counts.looked_at
    problem = (
        f"{copies:,} of the {len(prints):,} reports that were compared are copies of others that "
        "chance cannot explain"
    )
    p_value = poisson_tail(copies, by_chance + harmless)
    return [FitTest("copies of reports", p_value, problem)]
