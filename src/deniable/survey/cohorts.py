"""How many cohorts a string question needs, and what is not known with fewer."""

from collections.abc import Mapping, Sequence

ENOUGH_COHORTS = 8
"""Number of cohorts from which on their differences show how far unlisted strings mislead."""


def has_few_cohorts(mechanism: Mapping[str, object]) -> bool:
    """Return whether a mechanism with these parameters hashes strings in fewer than 8 ways."""
    ways = mechanism.get("families", mechanism.get("cohorts"))
    return isinstance(ways, int) and ways < ENOUGH_COHORTS


def few_cohorts(questions: Sequence[str]) -> str:
    """Say what is not known about string questions with few cohorts."""
    return (
        f"{', '.join(questions)}: fewer than {ENOUGH_COHORTS} cohorts (with local hashing, "
        "families), so that an unlisted string may set the same bits as a candidate. Tests and "
        "intervals allow for that: common values may go undetected among many candidates, and "
        f"errors are larger. Use at least {ENOUGH_COHORTS} cohorts"
    )
