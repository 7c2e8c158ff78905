"""Compile the kernels before tests run side by side and each worker compiles them for itself.

    python -m tests.warm_kernels

Analyses a small crowd in each way; the compiled code stays in the cache beside the sources.
"""

from __future__ import annotations

import numpy as np

from deniable import associate, count, decode, discover, simulate
from deniable.simulation import Population, zipf
from tests.surveys import make_survey

WORDS = ("abba", "beef", "cafe", "dead", "face", "fade")
LISTED = f"""
[questions.page]
kind = "string"
epsilon = 4.0
[questions.pick]
kind = "choice"
options = {list(WORDS)}
epsilon = 4.0
"""
QUESTION = """
[questions.word]
kind = "string"
mechanism = "{}"
epsilon = 3.5
[questions.word.dictionary]
protocol = "{}"
max_length = {}
alphabet = "a-f"
"""
UNKNOWN = (("localhash", "prefixes", 4), ("localhash", "prefixes", 12), ("bloom", "ngrams", 6))


def main() -> None:
    """Simulate, decode, associate and discover."""
    rng = np.random.default_rng(1)
    people = Population(WORDS, zipf(len(WORDS)))
    for collect in ("once", "repeatedly"):
        survey = make_survey(LISTED, collect=collect)
        values = people.draw(2000, rng)
        reports = simulate(survey, {"page": values, "pick": values}, rng=rng)
        decode(survey, reports, "page", WORDS)
        associate(survey, reports, ["page", "pick"], candidates={"page": WORDS})
        count(survey, reports, ["page", "pick"])
    for settings in UNKNOWN:
        survey = make_survey(QUESTION.format(*settings))
        discover(survey, simulate(survey, people.draw(5000, rng), rng=rng), "word")


if __name__ == "__main__":
    main()
