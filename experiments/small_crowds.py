"""Family-wise error rate in small crowds, for every mechanism and protocol.

    python -m experiments.small_crowds [--crowds 500] [--only single]

The share of crowds in which `decode` detects any of 200 absent strings (alpha = .05), or, for a
choice of 20 and a boolean, any absent option, and the mean number of values of the crowd (.5, .3,
.1, .1) that it detects. Each crowd has other absent strings, and so other hash functions. At a rate
of .05, 500 crowds stay below .074 with probability .99. A daily trend decodes each day as a
crowd of its own. All rows take about twenty minutes.
"""

from __future__ import annotations

import argparse

import numpy as np

from deniable import Survey, decode, simulate

HEADER = """
name = "small"
version = 1
owner = "experiments"
description = "a small crowd"
expires = 2999-12-31
collect = "once"
[questions.answer]
"""
DICTIONARY = """
[questions.answer.dictionary]
protocol = "{}"
alphabet = "a-z"
max_length = 8
"""
HELD = ("apple", "pear", "fig", "quince")
SHARES = (0.5, 0.3, 0.1, 0.1)
OPTIONS = (*HELD, *(f"absent{i}" for i in range(16)))
QUESTIONS = {
    "single": 'kind = "string"\nepsilon = {}\n',
    "ngrams": 'kind = "string"\nepsilon = {}\n' + DICTIONARY.format("ngrams"),
    "prefixes": 'kind = "string"\nepsilon = {}\n' + DICTIONARY.format("prefixes"),
    "localhash": 'kind = "string"\nmechanism = "localhash"\nepsilon = {}\n'
    + DICTIONARY.format("prefixes"),
    "choice": f'kind = "choice"\noptions = {list(OPTIONS)}\nepsilon = {{}}\n',
    "boolean": 'kind = "boolean"\nepsilon = {}\n',
}


def absent_strings(crowd: int, count: int = 200) -> list[str]:
    """Return strings that nobody holds; other ones for each crowd."""
    numbers = (crowd * count + i for i in range(count))
    return ["z" + "".join(chr(97 + n // 26**j % 26) for j in range(5)) for n in numbers]


def family_wise(name: str, epsilon: float, reports: int, crowds: int) -> tuple[float, float]:
    """Return the share of crowds with a false detection, and the mean number of true ones."""
    survey = Survey.from_toml(HEADER + QUESTIONS[name].format(epsilon))
    wrong, right = 0, 0
    for crowd in range(crowds):
        rng = np.random.default_rng([19, crowd, reports])
        answers = rng.choice(HELD, reports, p=SHARES).tolist()
        if name == "boolean":
            answers = [False] * reports
        batch = simulate(survey, {"answer": answers}, rng=rng)
        strings = [*HELD, *absent_strings(crowd)] if name not in ("choice", "boolean") else None
        detected = decode(survey, batch, "answer", strings).detected
        true = 0 if name == "boolean" else len(HELD)
        wrong += bool(detected[true:].any())
        right += int(detected[:true].sum())
    return wrong / crowds, right / crowds


def main() -> None:
    """Print one row per question, epsilon and number of reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowds", type=int, default=500)
    parser.add_argument("--only", choices=list(QUESTIONS))
    options = parser.parse_args()
    print(f"{options.crowds} crowds\nquestion    epsilon  reports  fwer   found of 4")
    for name in [options.only] if options.only else QUESTIONS:
        for epsilon in (1.0, 4.0):
            for reports in (1, 3, 10, 30, 100, 1_000):
                rate, found = family_wise(name, epsilon, reports, options.crowds)
                row = f"{name:10s}  {epsilon:<7g}  {reports:<7,d}  {rate:.3f}  {found:.2f}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
