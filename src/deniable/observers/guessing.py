"""How often the best attacker names a client's value, from its reports or from the shuffled store.

The attacker knows how common each value is (the prior), everything that is published, and the
client's clear fields. It names the value with the largest posterior probability. For strings, every
value is assumed to differ from the others in each part that a client reports, and hashes are drawn
at random: this is the best case for the attacker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from deniable.errors import InputError
from deniable.extras import needs_packages
from deniable.mechanisms.base import Mechanism
from deniable.observers.amplification import DEFAULT_DELTA, amplified
from deniable.survey import Question, Survey, SurveyOrPath

with needs_packages("deniable.observers.guessing"):
    import numpy as np
    from numpy.typing import NDArray

    from deniable.observers.attack_evidence import (
        AttackEvidence,
        NumberEvidence,
        SubsetEvidence,
        bit_evidence,
    )

from deniable.mechanisms.bit_mechanism import BitMechanism
from deniable.mechanisms.noise import ONE
from deniable.mechanisms.number_mechanism import NumberMechanism
from deniable.mechanisms.subset import Subset

DEFAULT_STRINGS = 1000
"""Number of equally common strings in the default prior."""
MAX_VALUES = 10_000
TRIALS = 4000
TRIALS_AT_ONCE = 250
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Guesses:
    """Probability that an attacker names the value of a client; see `guessed`.

    Parameters
    ----------
    question : str
        Name of the question.
    values : int
        Number of values in the prior.
    without : float
        Probability without any report: that of the most common value.
    after : dict of int to float
        Probability after this many reports of the client.
    store : float
        Upper bound of the probability for an attacker who sees only a shuffled batch.
    batch : int
        Number of reports of this batch.
    exact : bool
        Whether `after` is exact; otherwise it is simulated, or bounded if the mechanism is unknown.

    Examples
    --------
    >>> from deniable.survey import example_survey
    >>> round(guessed(example_survey(), "dark_mode").after[1], 3)
    0.731
    """

    question: str
    values: int
    without: float
    after: dict[int, float]
    store: float
    batch: int
    exact: bool

    def __str__(self) -> str:
        reports = ", ".join(
            f"{share:.1%} from {n} report{'s' * (n > 1)}" for n, share in self.after.items()
        )
        uniform = math.isclose(self.without * self.values, 1)
        prior = "are equally common" if uniform else "are as common as stated"
        return (
            f"{self.question}: if {self.values:,} values {prior}, the best attacker "
            f"names a client's value with probability {reports}, at most {self.store:.1%} from a "
            f"shuffled batch of {self.batch:,} reports, and {self.without:.1%} from none"
        )


def guessed(
    survey: SurveyOrPath,
    question: str,
    prior: int | Sequence[float] | None = None,
    *,
    reports: Sequence[int] = (1,),
    batch: int = 10**6,
    rng: np.random.Generator | int | None = 0,
) -> Guesses:
    """Compute how often the best attacker names the value of a client.

    It is exact for choice and boolean questions, unless there are very many options. For strings,
    the attack is simulated.

    Parameters
    ----------
    survey : Survey, str or Path
        The survey, or the path of its file.
    question : str
        Name of the question.
    prior : int or sequence of float, optional
        Number of equally common values, or one weight per value. The values of a choice are its
        options, those of a boolean question are yes and no; for strings, the default is 1,000.
    reports : sequence of int, default (1,)
        Numbers of reports of one client that the attacker sees.
    batch : int, default 1,000,000
        Number of reports of the shuffled batch.
    rng : Generator, int or None, default 0
        Random numbers of the simulation, or a seed.

    Returns
    -------
    Guesses
        Probabilities without reports, after some, and with the shuffled batch only.

    Raises
    ------
    InputError
        If the question is unknown, or the prior does not fit it.

    Examples
    --------
    >>> from deniable import guessed
    >>> from deniable.survey import example_survey
    >>> guess = guessed(example_survey(), "dark_mode", reports=(1, 30))
    >>> guess.without, round(guess.after[30], 3), round(guess.store, 3)
    (0.5, 0.996, 0.501)
    """
    survey = Survey.of(survey)
    asked = survey.question(question)
    if isinstance(reports, int) or not all(type(n) is int and n >= 1 for n in reports):
        raise InputError(
            f"reports must be whole numbers of at least 1, such as (1, 30), not {reports!r:.60}"
        )
    weights = _prior(asked, prior)
    generator = np.random.default_rng(rng)
    mechanisms = asked.protocol.mechanisms
    after, exact = {}, True
    for n in dict.fromkeys((*reports, 1)):
        evidence = [evidence_of(mechanism, n) for mechanism in mechanisms]
        known = [each for each in evidence if each is not None]
        if len(known) < len(evidence):
            loss = sum(mechanism.loss_after(n) for mechanism in mechanisms)
            after[n], exact = guess_bound(weights, loss, 0.0), False
        elif len(known) == 1 and (best := known[0].best_guess(weights)) is not None:
            after[n] = best
        else:
            after[n], exact = _simulated(known, weights, generator), False
    shuffled = amplified(survey, batch, DEFAULT_DELTA)
    # A batch tells no more about the client than its own report does.
    store = min(guess_bound(weights, shuffled.epsilon, shuffled.delta), after[1])
    return Guesses(
        question=question,
        values=len(weights),
        without=float(weights.max()),
        after={n: float(after[n]) for n in reports},
        store=store,
        batch=batch,
        exact=exact,
    )


@singledispatch
def evidence_of(mechanism: Mechanism, reports: int) -> AttackEvidence | None:
    """Return what some reports of this mechanism say about values; None if it is unknown."""
    return None


@evidence_of.register
def _(mechanism: BitMechanism, reports: int) -> AttackEvidence | None:
    noise = mechanism.noise
    labels = mechanism.labels
    return bit_evidence(
        (noise.p / ONE, noise.q / ONE),
        (float(noise.p_star), float(noise.q_star)),
        reports,
        (mechanism.width, mechanism.hashes, bool(labels)),
    )


@evidence_of.register
def _(mechanism: NumberMechanism, reports: int) -> AttackEvidence | None:
    noise = mechanism.noise
    fresh, permanent = (noise.p / ONE, noise.q / ONE), (noise.flip / ONE, noise.kept / ONE)
    return NumberEvidence(*fresh, reports, mechanism.bound, *permanent)


@evidence_of.register
def _(mechanism: Subset, reports: int) -> AttackEvidence | None:
    if reports > 1:  # collected once
        return None
    return SubsetEvidence(mechanism.support[1], mechanism.members, mechanism.loss.per_report)


def guess_bound(weights: Weights, epsilon: float, delta: float) -> float:
    """Return the largest probability of naming the value that (ε, δ) allows.

    An attacker that distinguishes the m most common values as well as ε allows names each of them
    with probability e^ε/(e^ε + m − 1); some m is best.

    >>> round(guess_bound(np.full(2, 0.5), math.log(3), 0.0), 3)
    0.75
    """
    ordered = np.sort(weights)[::-1]
    others = np.arange(len(ordered))
    named = np.cumsum(ordered) / (1 + others * math.exp(-epsilon))
    return min(1.0, float(named.max()) + delta)


def _prior(question: Question, prior: int | Sequence[float] | None) -> Weights:
    """Return the probability of each value."""
    labels = question.protocol.mechanisms[0].labels
    values = 2 if question.kind == "boolean" else len(labels)
    if prior is None:
        prior = values or DEFAULT_STRINGS
    try:
        weights = np.ones(prior) if isinstance(prior, int) else np.asarray(prior, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "a prior must be a number of values, or one weight per value in the order of the "
            f"options (yes, then no), not {prior!r:.60}"
        ) from None
    if values and len(weights) != values:
        raise InputError(
            f"question {question.name!r} has {values} values, so its prior must have as many "
            f"weights, not {len(weights)}"
        )
    if not 2 <= len(weights) <= MAX_VALUES:
        raise InputError(f"a prior must have 2 to {MAX_VALUES:,} values, not {len(weights)}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError("the weights of a prior must be numbers of at least 0, not all 0")
    return np.asarray(weights / weights.sum(), np.float64)


def _simulated(
    parts: Sequence[AttackEvidence], weights: Weights, rng: np.random.Generator
) -> float:
    """Return the mean probability of the most likely value, over simulated clients."""
    total = 0.0
    with np.errstate(divide="ignore"):
        log_prior = np.log(weights)
    for _ in range(TRIALS // TRIALS_AT_ONCE):
        truth = rng.choice(len(weights), TRIALS_AT_ONCE, p=weights)
        scores = log_prior + sum(part.scores(truth, len(weights), rng) for part in parts)
        scores -= scores.max(axis=1, keepdims=True)
        total += float((1 / np.exp(scores).sum(axis=1)).sum())
    return total / (TRIALS // TRIALS_AT_ONCE * TRIALS_AT_ONCE)
