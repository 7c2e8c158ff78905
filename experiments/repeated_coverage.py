"""Coverage of marginal confidence intervals if every client reports several times.

    python -m experiments.repeated_coverage [--crowds 400] [--jobs 2] [--seed 1]

Clients keep their values and their permanent noise, so that the count of a bit over R reports per
client is Binomial(R·a, q) + Binomial(R·(n − a), p), where a clients have a permanent 1. Parameters
are those that a survey gives a question with this ε in total (not per report).

The table has the coverage of the population's share, over all values and of the most common one;
the coverage of the mass found; and the rate of any false detection among 20 absent strings at
alpha = .05 (strings only). `former` is the
coverage of the population's share by the former rule, which inflated all variances by the
correlation of a bit that no client sets.

Rows "asymmetric" and "local hash" have the most accurate noise with two thirds of ε per report. The
reports of local hashing are simulated one by one, so these rows get a quarter of the crowds.

Questions with one or six values get five times as many crowds. Takes about a minute on 16
processors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from deniable.analysis.categories import candidates_of
from deniable.analysis.tallying import provenance_of
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.models import model_of
from deniable.inference.models.base import AnyModel
from deniable.kernels.array_types import Floats, Int64s, Mask
from deniable.mechanisms import Mechanism, Noise
from deniable.mechanisms.noise import ONE
from deniable.results import Marginal, Provenance
from deniable.simulation import simulate_days
from deniable.simulation.populations import power, zipf
from deniable.survey import Survey
from experiments.direct_counts import set_bits, values_by_stratum
from experiments.paper.records import Row
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import Promise, judged, share_error
from experiments.text_tables import text_table

AnyCounts = Any
"""Counts of a model of any kind."""
ABSENT = 20
MORE_PER_REPORT = "epsilon_per_report = {more}"
QUESTIONS: dict[str, tuple[Floats, str, int]] = {
    "boolean": (np.array([0.3]), "", 2_000),
    "choice": (zipf(6), 'options = ["v0", "v1", "v2", "v3", "v4", "v5"]', 2_000),
    "string": (zipf(20), "cohorts = 64", 20_000),
    "string, 2 hashes": (zipf(20), "cohorts = 64\nhashes = 2", 20_000),
    "string, 8 cohorts": (power(), "cohorts = 8", 20_000),
    "choice, asymmetric": (
        zipf(6),
        f'options = ["v0", "v1", "v2", "v3", "v4", "v5"]\n{MORE_PER_REPORT}',
        2_000,
    ),
    "string, asymmetric": (zipf(20), f"cohorts = 64\n{MORE_PER_REPORT}", 20_000),
    "string, local hash": (zipf(20), f'mechanism = "localhash"\n{MORE_PER_REPORT}', 20_000),
}
"""Shares of the values, settings of the question, and number of clients."""


@dataclass(frozen=True, eq=False)
class Crowds:
    """Clients with values of known shares, their question's model, and its noise."""

    shares: Floats
    clients: int
    model: AnyModel
    mechanism: Mechanism
    provenance: Provenance
    survey: Survey

    @property
    def noise(self) -> Noise:
        """Noise of the question."""
        return self.mechanism.noise

    @classmethod
    def of(cls, name: str, epsilon: float) -> Crowds:
        """Return the crowds of one kind of question; epsilon : in total."""
        shares, settings, clients = QUESTIONS[name]
        kind = name.split(",")[0]
        survey = Survey.from_toml(
            'name = "repeated"\nversion = 1\nowner = "o"\ndescription = "d"\n'
            'expires = 2999-12-31\ncollect = "repeatedly"\n'
            f'[questions.x]\nkind = "{kind}"\nepsilon = {epsilon}\n'
            + settings.replace("{more}", f"{2 * epsilon / 3:.6f}")
        )
        question = survey.question("x")
        absent = ABSENT if kind == "string" else 0
        names = [f"v{i}" for i in range(len(shares) + absent)] if kind == "string" else None
        model = model_of(candidates_of(question, names))
        mechanism = question.protocol.mechanisms[0]
        own = HashCrowds if mechanism.bound else cls
        return own(
            shares, clients, model, mechanism, provenance_of(survey, [question], 0, ""), survey
        )

    def positions(self) -> Int64s:
        """Bits of every value, int[S, m, h]."""
        known = getattr(self.model, "positions", None)
        return np.arange(len(self.shares))[None, :, None] if known is None else known

    def draw(self, repeats: int, rng: np.random.Generator) -> AnyCounts:
        """Return counts of all reports."""
        values = self.values(self.shares, self.clients, rng)
        return self.reported(self.permanent(values, rng), values.sum(axis=1), repeats, rng)

    def values(self, shares: Floats, clients: int, rng: np.random.Generator) -> Int64s:
        """Return the number of clients with each value and with none, int[S, values + 1]."""
        everyone = np.append(shares, max(1 - shares.sum(), 0.0))
        return values_by_stratum(everyone, clients, len(self.positions()), rng)

    def permanent(self, values: Int64s, rng: np.random.Generator) -> Int64s:
        """Return the number of clients whose permanent noise sets each bit, int[S, k]."""
        width = getattr(self.model, "bits", len(self.shares))
        flip, kept = self.noise.flip / ONE, self.noise.kept / ONE
        listed = self.positions()[:, : len(self.shares)]
        holders = set_bits(values[:, :-1], listed, width)
        others = values.sum(axis=1)[:, None] - holders
        return np.asarray(rng.binomial(holders, kept) + rng.binomial(others, flip))

    def reported(
        self, kept: Int64s, total: Int64s, repeats: int, rng: np.random.Generator
    ) -> BitCounts:
        """Return the counts of reports; kept : clients by permanent bit; total : by stratum."""
        p, q = self.noise.p / ONE, self.noise.q / ONE
        ones = rng.binomial(repeats * kept, q)
        ones += rng.binomial(repeats * (total[:, None] - kept), p)
        return BitCounts(ones, repeats * total)

    def decoded(self, counts: BitCounts, repeats: int) -> Marginal:
        """Return the marginal of reports of clients that sent `repeats` each."""
        counts = counts.repeated(Repetition.of(self.mechanism, repeats))
        marginal = self.model.marginal(counts, alpha=0.05, correction="holm")
        return replace(marginal, question="x", reports_per_client=float(repeats))

    def formerly(self, counts: BitCounts, repeats: int) -> Marginal | None:
        """Return the marginal by the former rule: fewer reports, by one factor for all bits."""
        if self.noise.keep is not None:
            return None
        p_star, noise = float(self.noise.p_star), self.noise
        phi, gain = noise.flip / ONE, (noise.q - noise.p) / ONE
        factor = 1 + (repeats - 1) * gain**2 * phi * (1 - phi) / (p_star * (1 - p_star))
        total = np.rint(counts.total / factor).astype(np.int64)
        ones = np.minimum(np.rint(counts.ones / factor).astype(np.int64), total[:, None])
        return self.model.marginal(BitCounts(ones, total), alpha=0.05, correction="holm")


class HashCrowds(Crowds):
    """Clients that report numbers, simulated one by one."""

    def draw(self, repeats: int, rng: np.random.Generator) -> AnyCounts:
        """Return counts of all reports."""
        names = [f"v{i}" for i in range(len(self.shares))]
        value = rng.choice(len(names), self.clients, p=self.shares / self.shares.sum())
        answers = {"x": [names[i] for i in value]}
        count = self.model.counter()
        days = simulate_days(self.survey, answers, repeats, rng=rng)
        return reduce(add, (count(batch.column("x")) for batch in days))


def covered(marginal: Marginal, truth: Floats) -> Mask:
    """Return which intervals contain the truth."""
    size = len(truth)
    return np.asarray((marginal.low[:size] <= truth) & (truth <= marginal.high[:size]))


@dataclass(frozen=True)
class Task:
    """One row of the table of coverage."""

    name: str
    epsilon: float
    repeats: int
    crowds: int
    seed: int


def coverage(task: Task) -> Row:
    """Measure intervals of one period."""
    rng = np.random.default_rng([task.seed, len(task.name), int(task.epsilon), task.repeats])
    drawn, repeats = Crowds.of(task.name, task.epsilon), task.repeats
    rows = []
    for _ in range(task.crowds):
        counts = drawn.draw(repeats, rng)
        result = drawn.decoded(counts, repeats)
        population = covered(result, drawn.shares)
        found = drawn.shares[result.detected[: len(drawn.shares)]].sum()
        mass = result.mass_found.low <= found <= result.mass_found.high
        false = result.detected[len(drawn.shares) :].any()
        former = drawn.formerly(counts, repeats)
        old = np.zeros(1) if former is None else covered(former, drawn.shares)
        each = (population, old)
        rows.append([*(x.mean() for x in each), *(x[0] for x in each), mass, false])
    every, old, top, top_old, mass, false = np.mean(rows, axis=0)
    return {
        "question": task.name, "ε": task.epsilon, "R": repeats,
        "population": float(every), "most common": float(top), "mass found": float(mass),
        "any false": float(false), "former": float(old), "most common ": float(top_old),
        "error": float(np.std([row[0] for row in rows]) / len(rows) ** 0.5), "crowds": len(rows),
    }  # fmt: skip


def crowds_of(name: str, crowds: int) -> int:
    """Return how many crowds a row gets."""
    if name.endswith("local hash"):
        return -(-crowds // 4)
    return crowds if name.startswith("string") else 5 * crowds


def promises(rows: list[Row]) -> list[Promise]:
    """Compare the table with what is promised."""

    def column(name: str) -> Floats:
        return np.array([row[name] for row in rows], dtype=float)

    error, crowds = column("error"), column("crowds")
    top, mass, false = (column(name) for name in ("most common", "mass found", "any false"))
    return [
        judged("Intervals contain the population's share, 1 to 30 reports per client",
               column("population"), error, 0.93, 0.97),
        judged("Intervals of the most common value contain its share in the population",
               top, share_error(top, crowds), 0.93, 0.97),
        judged("The interval of the mass found contains it, 1 to 30 reports per client",
               mass, share_error(mass, crowds), 0.93, 0.97),
        judged("Any absent string is detected, 1 to 30 reports per client",
               false, share_error(false, crowds), 0, 0.05),
    ]  # fmt: skip


def main() -> None:
    """Print the table and the promises."""
    given = crowd_arguments(__doc__, 400)
    tasks = [
        Task(name, epsilon, repeats, crowds_of(name, given.crowds), given.seed)
        for name in QUESTIONS
        for epsilon in (2.0, 4.0, 8.0)
        for repeats in (1, 7, 30)
    ]
    rows = list(in_processes(coverage, tasks, given.jobs))
    print(text_table(rows))
    for promise in promises(rows):
        print(promise)


if __name__ == "__main__":
    main()
