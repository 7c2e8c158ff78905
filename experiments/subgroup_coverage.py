"""Coverage of the intervals that `decode(…, where=…)` gives.

    python -m experiments.subgroup_coverage [--crowds 300] [--jobs 2] [--seed 9]

Clients answer y, and then x, whose distribution in the subgroup differs from that outside: it is
shifted by two values, and every third value is absent. The name of a case says x | y and the share
of the subgroup. In cases with unlisted strings, only the most common strings are candidates; of y
only the subgroup's own answer is listed, unless the name says more.

`rows` is the number of intervals of values that have an estimate. `covered` is the share of them
that contain the truth; `present` and `absent` are the same for values that clients in the subgroup
have, and for values that they do not have. `spread` is the standard deviation of the errors over
the standard error. `false` is the share of trials in which an absent value is detected. `unknown`
is the share of trials whose subgroup cannot be distinguished from an empty one: their intervals are
[0, 1], and are not counted.

There are a fifth as many crowds of 200,000 reports, and a fifteenth as many of a million. Takes
about two minutes on 16 processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import deniable
from deniable.kernels.array_types import Floats, Mask
from deniable.results import Marginal
from deniable.simulation import geometric, random_strings, simulate, zipf
from experiments.paper.records import Row
from experiments.paper.trials import Settings, bloom, choice, generators, survey_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import judged, share_error
from experiments.text_tables import text_table

SIX = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
RARE = np.array([0.5, 0.48, 0.02])


@dataclass(frozen=True)
class Asked:
    """A question, and how clients answer it.

    Parameters
    ----------
    settings : dict
        Settings of the question; of a choice without its options.
    weights : float64 array
        Distribution of its values.
    listed : int, optional
        Number of strings that are candidates, the most common ones; all by default.
    """

    settings: Settings
    weights: Floats
    listed: int | None = None

    @property
    def is_string(self) -> bool:
        """Whether it is a string question."""
        return bool(self.settings["kind"] == "string")

    def values(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return the values: random strings, or options."""
        if self.is_string:
            return random_strings(len(self.weights), 6, rng)
        return tuple(f"option {i}" for i in range(len(self.weights)))

    def with_options(self, values: Sequence[str]) -> Settings:
        """Return the settings of a survey whose values these are."""
        return self.settings if self.is_string else {**self.settings, "options": list(values)}


@dataclass(frozen=True)
class Case:
    """A question x, and a question y of which one answer selects the subgroup."""

    x: Asked
    y: Asked
    subgroup: int

    def inside(self) -> Floats:
        """Return the distribution of x inside the subgroup."""
        weights = np.roll(self.x.weights, 2)
        weights[1::3] = 0.0
        return np.asarray(weights / weights.sum())

    def answers(
        self, xs: Sequence[str], ys: Sequence[str], reports: int, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return the answers of simulated clients."""
        places = rng.choice(len(ys), reports, p=self.y.weights)
        inside, outside = (
            rng.choice(len(xs), reports, p=p) for p in (self.inside(), self.x.weights)
        )
        values = np.where(places == self.subgroup, inside, outside)
        return {"x": np.array(xs)[values].tolist(), "y": np.array(ys)[places].tolist()}


OPTIONS, RARE_OPTION = Asked(choice(()), SIX), Asked(choice(()), RARE)
NOISY = Asked(choice((), p=0.38, q=0.62), SIX)
CASES = {
    "choice | choice 4%": Case(OPTIONS, OPTIONS, 5),
    "choice | choice 2%": Case(OPTIONS, RARE_OPTION, 2),
    "choice | choice 4%, ε = 1": Case(NOISY, NOISY, 5),
    "choice | string 5%, all listed": Case(OPTIONS, Asked(bloom(), zipf(40)), 4),
    "choice | string 5%, half unlisted": Case(OPTIONS, Asked(bloom(), zipf(40), 5), 4),
    "choice | string 5%, others unlisted": Case(OPTIONS, Asked(bloom(), zipf(40), 0), 4),
    "string | choice 4%": Case(Asked(bloom(), zipf(40)), OPTIONS, 5),
    "string, half unlisted | choice 4%": Case(Asked(bloom(), zipf(100), 10), OPTIONS, 5),
    "string | string 5%, both partly listed": Case(
        Asked(bloom(), geometric(30), 8), Asked(bloom(), zipf(40), 10), 4
    ),
}
REPORTS = {20_000: 1, 200_000: 5, 1_000_000: 15}
"""Numbers of reports, and by how much the number of crowds is divided."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates of the values in one subgroup, beside the truth; all arrays are of shape (m,)."""

    truth: Floats
    estimate: Floats
    error: Floats
    low: Floats
    high: Floats
    detected: Mask

    @staticmethod
    def of(result: Marginal, truth: Floats) -> Intervals:
        """Return the values of a result that have an estimate."""
        known, m = result.identified, result
        shares = [a[known] for a in (truth, m.estimate, m.standard_error, m.low, m.high)]
        return Intervals(shares[0], shares[1], shares[2], shares[3], shares[4], m.detected[known])

    @property
    def covered(self) -> Mask:
        """Whether each interval contains the truth."""
        return (self.low <= self.truth) & (self.truth <= self.high)


def trials(case: Case, reports: int, count: int, seed: int) -> list[Intervals | None]:
    """Decode the subgroup in several crowds."""
    return [trial(case, reports, rng) for rng in generators(seed, count)]


def crowd(task: tuple[str, int, int, int]) -> Intervals | None:
    """Decode the subgroup in one crowd of a case, that of this number."""
    name, reports, seed, number = task
    seeds = np.random.SeedSequence(seed, spawn_key=(number,))
    return trial(CASES[name], reports, np.random.default_rng(seeds))


def trial(case: Case, reports: int, rng: np.random.Generator) -> Intervals | None:
    """Decode the subgroup in a simulated crowd; None if it cannot be told from an empty one."""
    xs, ys = case.x.values(rng), case.y.values(rng)
    survey = survey_of(x=case.x.with_options(xs), y=case.y.with_options(ys))
    batch = simulate(survey, case.answers(xs, ys, reports, rng), rng=rng)
    named = {"x": (case.x, xs), "y": (case.y, ys)}
    candidates = {n: v[: q.listed] for n, (q, v) in named.items() if q.is_string}
    result = deniable.decode(survey, batch, "x", candidates, where={"y": ys[case.subgroup]})
    truth = case.inside()[[xs.index(name) for name in result.names]]
    return Intervals.of(result, truth) if result.identified.any() else None


def measured(found: list[Intervals | None]) -> Row:
    """Return the numbers of one line."""
    known = [trial for trial in found if trial is not None]
    truth, covered = (np.concatenate([getattr(t, n) for t in known]) for n in ("truth", "covered"))
    z = np.concatenate([(t.estimate - t.truth) / t.error for t in known])
    false = [bool((t.detected & (t.truth == 0)).any()) for t in known]
    return {
        "rows": len(covered),
        "covered": float(covered.mean()),
        "present": float(covered[truth > 0].mean()),
        "absent": float(covered[truth == 0].mean()),
        "spread": float(z.std()),
        "false": float(np.mean(false)),
        "unknown": 1 - len(known) / len(found),
        "error": float(np.std([t.covered.mean() for t in known]) / len(known) ** 0.5),
    }


def main() -> None:
    """Print the table and the promises."""
    given = crowd_arguments(__doc__, 300, seed=9)
    crowds = {reports: max(given.crowds // part, 2) for reports, part in REPORTS.items()}
    settings = [(case, reports) for reports in REPORTS for case in CASES]
    tasks = [(*s, given.seed, i) for s in settings for i in range(crowds[s[1]])]
    found = in_processes(crowd, tasks, given.jobs)
    rows: list[Row] = []
    for case, reports in settings:
        own = [next(found) for _ in range(crowds[reports])]
        rows.append({"case": case, "N": reports, "crowds": crowds[reports], **measured(own)})
    print(f"{text_table(rows)}\n")
    covered, error, false, count = (
        np.array([row[name] for row in rows], float)
        for name in ("covered", "error", "false", "crowds")
    )
    print(judged("Intervals in a subgroup contain the truth", covered, error, 0.93, 0.97))
    sentence = "An absent value is detected in a subgroup"
    print(judged(sentence, false, share_error(false, count), 0, 0.05))


if __name__ == "__main__":
    main()
