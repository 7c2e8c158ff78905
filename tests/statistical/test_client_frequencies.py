"""The real client with the operating system's randomness: bits come out 1 at p* and q*.

Each check adds the bits of N independent reports and allows 5 standard deviations, so that it
alarms falsely less than once in a million runs. The broken twin must be caught.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from experiments.paper.audit import audit, upper_limit

from deniable.client import Client
from deniable.mechanisms import Boolean, Noise, bit_mechanism
from deniable.survey import Survey
from tests.surveys import ANY_SURVEY, survey_toml

REPORTS = 4000
HEAD = survey_toml(name="frequencies", collect="repeatedly", budget=100000)
CASES = {
    "quarters": "p = 0.25\nq = 0.75\nf = 0.5",
    "any digits": "p = 0.123\nq = 0.6789\nf = 0.31",
    "p above q": "p = 0.8\nq = 0.3\nf = 0.2",
    "rare": "p = 0.012\nq = 0.5\nf = 0.05",
    "asymmetric": "epsilon = 6\nepsilon_per_report = 3",
}


def worst_deviation(noise: str) -> float:
    """Largest standardised difference from p* and q*, over set and clear bits."""
    survey = Survey.from_toml(
        HEAD + f'[questions.w]\nkind = "string"\nbits = 24\nhashes = 2\ncohorts = 4\n{noise}'
    )
    mechanism = survey.questions[0].protocol.mechanisms[0]
    ones, seen = [0, 0], [0, 0]
    for _ in range(REPORTS):
        # A new client each time: permanent noise is drawn anew, so reports are independent.
        client = Client(survey, secret=os.urandom(32), limits=ANY_SURVEY)
        out = int.from_bytes(client.answer({"w": "value"}).answers[0].slots[0], "little")
        true = mechanism.true_bits(b"value", client.cohort)
        for is_set, mask in ((1, true), (0, ~true & 0xFFFFFF)):
            ones[is_set] += (out & mask).bit_count()
            seen[is_set] += mask.bit_count()
    expected = (float(mechanism.noise.p_star), float(mechanism.noise.q_star))
    return max(
        abs(one / n - p) / (p * (1 - p) / n) ** 0.5
        for one, n, p in zip(ones, seen, expected, strict=True)
    )


@pytest.mark.parametrize("noise", CASES.values(), ids=CASES.keys())
def test_bits_come_out_at_p_star_and_q_star(noise: str) -> None:
    assert worst_deviation(noise) < 5


def test_broken_twin_that_never_turns_a_1_into_a_0(monkeypatch: pytest.MonkeyPatch) -> None:
    real = bit_mechanism.randomise

    def mutant(bits: int, *rest: Any) -> int:
        return real(bits, *rest) | bits

    monkeypatch.setattr(bit_mechanism, "randomise", mutant)
    assert worst_deviation(CASES["quarters"]) > 5


# --- the audit ---------------------------------------------------------------------------------


def runs_of(noise: Noise, value: bool) -> Any:
    boolean = Boolean(noise=noise)
    return lambda: boolean.encode(
        value, cohort=0, secret=bytes(32), rand=os.urandom(boolean.rand_size)
    )


def test_audit_stays_below_the_claim_and_near_it() -> None:
    """α = 1e-6: a bound above the true ε would be one in a million."""
    noise = Noise.of(p=0.1, q=0.6)
    claim = Boolean(noise=noise).loss.per_report
    found = audit(runs_of(noise, True), runs_of(noise, False), runs=5000, alpha=1e-6)
    assert 0.7 * claim < found.epsilon <= claim


REPEATED = {
    "asymmetric choice": 'kind = "choice"\noptions = ["a", "b"]',
    "local hash": 'kind = "string"\nmechanism = "localhash"\nvalues = 3',
}


@pytest.mark.parametrize("question", REPEATED.values(), ids=REPEATED.keys())
@pytest.mark.parametrize("days", [1, 2])
def test_audit_of_repeated_collection(question: str, days: int) -> None:
    """New secrets in each run; α = 1e-5. The twin without permanent noise exceeds the claim."""
    survey = Survey.from_toml(
        HEAD + f"[questions.w]\n{question}\nepsilon = 1.5\nepsilon_per_report = 1.2\n"
    )
    mechanism = survey.questions[0].protocol.parts[0].slots[0].mechanism
    tokens: dict[int, Any] = {}
    for token in ("a", "b") if mechanism.labels else [b"%d" % i for i in range(30)]:
        at = mechanism.true_bits(token, 0) if mechanism.labels else mechanism.number(token, 0)
        tokens.setdefault(at, token)
    first, second, *_ = tokens.values()

    def runs_of_days(token: Any) -> Any:
        def run() -> tuple[bytes, ...]:
            secret = os.urandom(32)
            size = mechanism.rand_size
            return tuple(
                mechanism.encode(token, cohort=0, secret=secret, rand=os.urandom(size))
                for _ in range(days)
            )

        return run

    found = audit(runs_of_days(first), runs_of_days(second), runs=20_000, alpha=1e-5)
    claim = mechanism.loss_after(days)
    assert 0.85 * claim < found.epsilon <= claim
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(type(mechanism), "permanent", lambda self, value, *_: value)
        leaking = audit(runs_of_days(first), runs_of_days(second), runs=20_000, alpha=1e-5)
    assert leaking.epsilon > claim


def test_audit_catches_a_leak() -> None:
    claimed, real = Noise.of(p=0.25, q=0.75), Noise.of(p=0.05, q=0.95)
    found = audit(runs_of(real, True), runs_of(real, False), runs=3000, alpha=1e-6)
    assert found.epsilon > Boolean(noise=claimed).loss.per_report


def test_clopper_pearson_limits() -> None:
    """scipy 1.17: beta.ppf(.95, 6, 95) is 0.10225..., the upper limit of 5 in 100."""
    assert upper_limit(5, 100, 0.05) == pytest.approx(0.1022534, abs=1e-6)
    assert upper_limit(0, 10, 0.05) == pytest.approx(1 - 0.05 ** (1 / 10))
    assert upper_limit(10, 10, 0.05) == 1
