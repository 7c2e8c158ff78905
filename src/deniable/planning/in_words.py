"""What ε promises and what a survey can detect, in words for people who are new to both."""

import math

from deniable.errors import MissingPackage
from deniable.formatting import Z95, epsilon_text, odds_factor, percent, rounded_up
from deniable.observers import Amplification
from deniable.planning.thresholds import detectable, discoverable, noise_sd
from deniable.privacy import right_guesses
from deniable.survey import Question, Survey
from deniable.survey.detection import NOT_TESTED, has_few_cohorts

WEAK_EPSILON = 8.0
"""From this ε on, a survey is said to protect hardly anything: e^8 is almost 3,000."""
WEAK_BOOLEAN_EPSILON = 3.0
"""From this ε on, a yes-or-no answer can be guessed from its report in 95% of cases."""


def epsilon_meaning(epsilon: float, what: str) -> str:
    """Say what ε means; `what` says of which reports.

    >>> epsilon_meaning(2.0, "One report").split(". ")[1]
    'This changes the odds of any guess about the answers by a factor of at most 7.39.'
    """
    return (
        f"{what}: ε = {epsilon_text(epsilon)}. This changes the odds of any guess about the "
        f"answers by a factor of at most {odds_factor(epsilon)}."
    )


def shuffled_meaning(shuffled: Amplification) -> str:
    """Say what shuffling adds, and who must be trusted for it.

    >>> from deniable import amplified
    >>> from deniable.survey import example_survey
    >>> shuffled_meaning(amplified(example_survey(), 10**6)).split(". ")[0]
    'Seen only in a batch of 1,000,000 reports: ε ≤ 0.005016 at δ = 1e-08'
    """
    return (
        f"Seen only in {shuffled}. This holds against analysts and readers of the shuffled store, "
        "if the collector is trusted to shuffle; against the collector itself, only ε of the "
        "reports holds."
    )


def guessing_meaning(question: Question) -> str:
    """Say how often a guess between two answers to a question is right at most.

    >>> from deniable.survey import example_survey
    >>> guessing_meaning(example_survey().question("dark_mode")).split(": ")[1]
    'a guess between two equally likely answers is right in at most 73.2% after one report'
    """

    def share(epsilon: float) -> str:
        return f"{rounded_up(100 * right_guesses(epsilon), 3):g}%"

    loss = question.loss
    known = f"{share(loss.per_report)} after one report"
    if loss.per_report < loss.in_total < math.inf:
        known += f", and in {share(loss.in_total)} after all reports about one answer"
    return (
        f"{question.name}: a guess between two equally likely answers is right in at most {known}"
    )


def privacy_warnings(survey: Survey) -> list[str]:
    """Say what is hardly protected, because its ε is so large; an empty list if nothing is."""
    once = survey.collect == "once"
    unit, reports = ("per report", "the report") if once else ("in total", "the reports")

    def epsilon(of: Survey | Question) -> float:
        return rounded_up(of.loss.per_report if once else of.loss.in_total, 4)

    warnings = []
    if (whole := epsilon(survey)) >= WEAK_EPSILON:
        warnings.append(weak_epsilon(whole, unit))
    for question in survey.questions:
        if question.kind == "boolean" and (own := epsilon(question)) >= WEAK_BOOLEAN_EPSILON:
            warnings.append(
                f"{question.name}: ε = {epsilon_text(own)} {unit} hardly hides a yes-or-no answer; "
                f"it can be guessed from {reports} with odds of up to {odds_factor(own)} to 1. For "
                "such questions, 1 or 2 is usual"
            )
    return warnings


def cohort_warnings(survey: Survey) -> list[str]:
    """Say which string questions have too few cohorts; an empty list if none has."""
    few = [question.name for question in survey.questions if has_few_cohorts(question)]
    return [f"{', '.join(few)}: {NOT_TESTED}"] if few else []


def weak_epsilon(epsilon: float, unit: str) -> str:
    """Say that ε is so large that it hardly protects anyone."""
    return (
        f"ε = {epsilon_text(epsilon)} {unit} is practically no protection, because the odds of a "
        f"guess about a client's answers may change by a factor of {odds_factor(epsilon)}. Lower "
        "ε, or ask fewer questions; 1 to 4 is usual"
    )


def threshold_text(threshold: float, clients: int) -> str:
    """Return a detection threshold: at least one client; "none" if nothing is detected.

    >>> [threshold_text(share, 1000) for share in (0.0123, 0.0001, 1.2, math.inf)]
    ['1.23%', '0.100%', 'none', '–']
    """
    if not math.isfinite(threshold):  # nothing is tested
        return "–"
    share = max(threshold, 1 / clients)
    return percent(share) if share < 1 else "none"


def outlook(question: Question, clients: int) -> str:
    """Say what the reports of this many clients will show about a question."""
    whole = question.protocol.mechanisms[0]
    if question.kind != "string":
        margin = Z95 * noise_sd(whole, clients, 0.5)
        if margin >= 0.5:
            return "nothing: the noise is larger than any share. Ask more clients, or raise ε"
        shares = {"boolean": "share of yes", "number": "share of each bin"}.get(
            question.kind, "share of each option"
        )
        return f"the {shares}, to within ±{100 * margin:.2g} percentage points"
    unlisted = question.protocol.name != "single"
    strings = "strings that nobody listed" if unlisted else "the strings that you list"
    try:
        threshold = (discoverable if unlisted else detectable)(question, clients)
    except MissingPackage as error:
        return f"{strings}, if enough clients have them ({error})"
    if math.isinf(threshold):
        return f"shares of {strings} with intervals. {NOT_TESTED}"
    if (common := max(threshold, 1 / clients)) >= 1:
        return "nothing: not even a string that all clients have. Ask more clients, or raise ε"
    return (
        f"{strings}, if enough clients have them: a string that {percent(common)} of the clients "
        f"have ({common * clients:,.0f} of {clients:,}) is found half of the time, one that is "
        "twice as common almost always"
    )
