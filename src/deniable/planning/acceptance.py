"""What people, and the programs on their devices, would object to in a survey."""

from __future__ import annotations

import datetime as dt

from deniable.client.limits import DEFAULT_LIMITS
from deniable.errors import InputError
from deniable.formatting import epsilon_text, odds_factor, rounded_up
from deniable.mechanisms import Mechanism
from deniable.mechanisms.noise import ONE
from deniable.planning.in_words import WEAK_EPSILON
from deniable.privacy import NANO
from deniable.survey import Survey
from deniable.survey.survey import total_charge

FAR_DAYS = 2 * 366
"""A survey that ends later asks for longer than people can judge."""
SMALL_GROUP = 1e-5
"""Share of clients from which on a group with equal clear fields is called small."""
MANY_GROUPS = 2**20
"""With more groups, many clients are alone in theirs, even if each sends one report only."""
LITTLE_NOISE, MANY_BITS = 0.01, 8
"""With less fresh noise, on at least so many bits, reports of one client are almost equal."""
MANY_ANSWERS = 5
"""A budget for so many changed answers hardly limits anything."""


def refuse_supercookie(survey: Survey) -> None:
    """Raise InputError if the clear fields of a survey could tell clients apart."""
    if survey.groups > DEFAULT_LIMITS.groups:
        raise InputError(
            f"the clear fields of survey {survey.name!r} divide the clients into "
            f"{_power(survey.groups)} groups, so that they could tell clients apart; clients "
            f"refuse more than {DEFAULT_LIMITS.groups:,}. Report fewer n-grams (grams), or choose "
            "cohorts and families with common factors"
        )


def acceptance_warnings(survey: Survey, today: dt.date) -> list[str]:
    """Say why few people would accept a survey; an empty list if nothing speaks against it."""
    limits = DEFAULT_LIMITS.exceeded(survey)
    warnings = [f"clients refuse this survey by default: {'; '.join(limits)}"] if limits else []
    once = survey.collect == "once"
    unit = "per report" if once else "in total"
    for question in survey.questions if len(survey.questions) > 1 else ():
        own = rounded_up(question.loss.per_report if once else question.loss.in_total, 4)
        if question.kind != "boolean" and own >= WEAK_EPSILON:
            warnings.append(
                f"{question.name}: ε = {epsilon_text(own)} {unit} hardly hides its answer; the "
                f"odds of a guess may change by a factor of {odds_factor(own)}"
            )
    answers = survey.budget / max(1, total_charge(survey.questions, survey.collect))
    linkable = survey.smallest_group < SMALL_GROUP and (answers >= 2 or not once)
    if linkable or survey.groups > MANY_GROUPS:
        warnings.append(
            f"the smallest group of clients with equal clear fields has one client in "
            f"{1 / survey.smallest_group:,.0f}, so that several reports of one client could be "
            "recognised: choose fewer cohorts, prefix lengths or n-grams"
        )
    warnings += [
        f"{question.name}: reports of one client are almost equal, because there is little fresh "
        "noise on top of the permanent noise, so that they could be recognised: choose a smaller "
        "epsilon_per_report, or p and q closer to ½"
        for question in survey.questions
        if any(map(_recognisable, question.protocol.mechanisms))
    ]
    if answers >= MANY_ANSWERS:
        what = "answers" if once else "changed sets of answers"
        warnings.append(
            f"the budget ε = {epsilon_text(survey.budget / NANO)} allows {answers:,.0f} {what}, "
            "each with its own loss: choose a smaller budget"
        )
    if (days := (survey.expires - today).days) > FAR_DAYS:
        warnings.append(
            f"the survey ends in {days / 365.25:,.0f} years: choose an earlier day, and publish a "
            "new version if the answers are needed for longer"
        )
    return warnings


def _recognisable(mechanism: Mechanism) -> bool:
    """Return whether permanent noise on many bits is sent with hardly any fresh noise."""
    noise = mechanism.noise
    flipped = max(min(x, ONE - x) for x in (noise.p, noise.q))
    return bool(noise.flip) and mechanism.width >= MANY_BITS and flipped < LITTLE_NOISE * ONE


def _power(number: int) -> str:
    """Return a large number about as a power of ten; it may have thousands of digits."""
    return f"{number:,}" if number < 10**12 else f"about 10^{number.bit_length() * 30103 // 100000}"
