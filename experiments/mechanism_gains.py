"""Measure how much more accurate newer mechanisms are, beside what theory predicts.

    python -m experiments.mechanism_gains [--crowds 200] [--jobs 2] [--seed 1]

Each row compares two surveys that ask the same questions with the same ε: the sum of the squared
errors of all estimates, by the older mechanism over the newer one. Crowds of 20,000 clients; the
error of a gain is one standard error, from the scatter of the crowds.

options : estimates of four options by `decode`; ε = 2. The prediction is the ratio of the sums of
    `Mechanism.variance`.
table : the 16 cells of a joint table of two such questions, ε = 2 each, by `associate`. In the
    last rows a tenth of the clients answer neither question. The prediction is from the Fisher
    information of the reports about all cells, those with "no answer" included if there are any.

To add a row, add a `Comparison`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from deniable import ReportBatch, Survey, associate, decode, simulate
from deniable.kernels.array_types import Floats
from deniable.mechanisms import Mechanism
from deniable.simulation import Coded, zipf
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged
from experiments.text_tables import text_table

CLIENTS = 20_000
EPSILON = 2.0
OPTIONS = ("a", "b", "c", "d")
HEADER = 'name = "gains"\nversion = 1\nowner = "x"\ndescription = "x"\nexpires = 2999-12-31\n'
CHOICE = '[questions.{}]\nkind = "choice"\nepsilon = {}\noptions = ["a", "b", "c", "d"]\n'


@dataclass(frozen=True)
class Comparison:
    """Two surveys, who answers what, and how it is estimated.

    name : what is compared, in words
    older, newer : surveys with the same questions
    truth : shares of the answers, one axis per question; an axis longer than `OPTIONS` ends with
        the clients that do not answer
    estimate : returns the estimated shares of the options from reports
    predict : returns the predicted sum of squared errors of one survey, times the clients
    """

    name: str
    older: Survey
    newer: Survey
    truth: Floats
    estimate: Callable[[Survey, ReportBatch], Floats]
    predict: Callable[[Survey, Floats], float]

    @property
    def target(self) -> Floats:
        """Shares of the options alone, which are estimated."""
        return self.truth[(slice(len(OPTIONS)),) * self.truth.ndim]

    def squared_error(self, survey: Survey, seed: int) -> float:
        """Return the sum of squared errors in one crowd."""
        rng = np.random.default_rng(seed)
        drawn = rng.choice(self.truth.size, CLIENTS, p=self.truth.ravel())
        codes = np.unravel_index(drawn, self.truth.shape)
        answers = {
            question.name: Coded(OPTIONS, np.where(code < len(OPTIONS), code, -1).astype(np.int32))
            for question, code in zip(survey.questions, codes, strict=True)
        }
        found = self.estimate(survey, simulate(survey, answers, rng=rng))
        return float(np.square(found - self.target).sum())


def survey_of(questions: int, defaults: int) -> Survey:
    """Return a survey with one or two choices, collected once, with these defaults."""
    asked = "".join(CHOICE.format(name, EPSILON) for name in "xy"[:questions])
    return Survey.from_toml(f'{HEADER}collect = "once"\ndefaults = {defaults}\n{asked}')


def decoded(survey: Survey, reports: ReportBatch) -> Floats:
    """Return the estimated shares of the options."""
    return decode(survey, reports, survey.questions[0].name).estimate


def tabulated(survey: Survey, reports: ReportBatch) -> Floats:
    """Return the estimated shares of all pairs of options."""
    return associate(survey, reports, ["x", "y"]).table[: len(OPTIONS), : len(OPTIONS)]


def marginal_variance(survey: Survey, truth: Floats) -> float:
    """Return the sum of the variances of all options, times the clients."""
    mechanism = survey.questions[0].protocol.mechanisms[0]
    return sum(mechanism.variance(float(share)) for share in truth[: len(OPTIONS)])


def table_variance(survey: Survey, truth: Floats) -> float:
    """Return the sum of the variances of all pairs of options by the Fisher information."""
    first, second = (
        report_probabilities(question.protocol.mechanisms[0])[:, :size]
        for question, size in zip(survey.questions, truth.shape, strict=True)
    )
    given = np.einsum("xi,yj->xyij", first, second).reshape(-1, truth.size)
    fisher = given.T @ (given / (given @ truth.ravel())[:, None])
    # Shares sum to 1: the information about differences from the last cell.
    change = np.vstack([np.eye(truth.size - 1), -np.ones(truth.size - 1)])
    covariance = change @ np.linalg.inv(change.T @ fisher @ change) @ change.T
    variance = np.diagonal(covariance).reshape(truth.shape)
    return float(variance[: len(OPTIONS), : len(OPTIONS)].sum())


def report_probabilities(mechanism: Mechanism) -> Floats:
    """Return P(report | option), and last given no answer, float64[reports, options + 1]."""
    p, q = mechanism.support
    categories = len(mechanism.labels) + 1
    if mechanism.ones is None:
        reports = np.array(list(product((0, 1), repeat=mechanism.width)), bool)
        chance = np.where(np.eye(categories, mechanism.width, dtype=bool), q, p)
        return np.asarray(np.where(reports[:, None], chance, 1 - chance).prod(axis=2))
    sets = np.array(list(combinations(range(categories), mechanism.ones)))
    holds = (sets[:, :, None] == np.arange(categories)).any(axis=1)
    return np.asarray(np.where(holds, q / holds.sum(axis=0), (1 - q) / (~holds).sum(axis=0)))


def comparisons() -> list[Comparison]:
    """Return all rows."""
    one, two = ((survey_of(n, 1), survey_of(n, 2)) for n in (1, 2))
    equal, steep = np.full(4, 0.25), zipf(4)
    everyone = np.full((4, 4), 1 / 32) + np.eye(4) / 8
    silent = np.zeros((5, 5))
    silent[:4, :4], silent[4, 4] = 0.9 * everyone, 0.1
    shares = (decoded, marginal_variance)
    tables = (tabulated, table_variance)
    return [
        Comparison("four options, equally common", *one, equal, *shares),
        Comparison("four options, Zipf", *one, steep, *shares),
        Comparison("four options, a tenth silent", *one, np.r_[0.9 * equal, 0.1], *shares),
        Comparison("table 4 × 4, everyone answers", *two, everyone, *tables),
        Comparison("table 4 × 4, a tenth silent", *two, silent, *tables),
    ]


def _measure(task: tuple[int, bool, int]) -> float:
    row, newer, seed = task
    compared = comparisons()[row]
    return compared.squared_error(compared.newer if newer else compared.older, seed)


def main() -> None:
    """Print one row per comparison."""
    options = crowd_arguments(__doc__ or "", crowds=200)
    rows = []
    for row, compared in enumerate(comparisons()):
        start = options.seed * 10**6 + 2 * row * options.crowds
        tasks = [
            (row, newer, start + newer * options.crowds + crowd)
            for newer in (False, True)
            for crowd in range(options.crowds)
        ]
        errors = np.array(list(in_processes(_measure, tasks, options.jobs))).reshape(2, -1)
        older, newer = errors.mean(axis=1)
        scatter = errors.std(axis=1, ddof=1) / errors.mean(axis=1) / np.sqrt(options.crowds)
        surveys = compared.older, compared.newer
        before, after = (compared.predict(survey, compared.truth) for survey in surveys)
        rows.append(
            {
                "estimates": compared.name,
                "rms error before": float(np.sqrt(older / compared.target.size)),
                "after": float(np.sqrt(newer / compared.target.size)),
                "gain in variance": float(older / newer),
                "±": float(older / newer * np.hypot(*scatter)),
                "predicted": before / after,
            }
        )
    print(f"{text_table(rows)}\n")
    for noun, least in (("four options", 2.0), ("table 4 × 4", 2.5)):
        own = [row for row in rows if str(row["estimates"]).startswith(noun)]
        gain, error = (np.array([row[key] for row in own]) for key in ("gain in variance", "±"))
        sentence = f"Gain of subset selection over one bit per option, ε = 2, {noun}"
        print(judged(sentence, gain, error, least, np.inf))


if __name__ == "__main__":
    main()
