"""Coverage of marginal confidence intervals if every client reports several times.

    python -m experiments.repeated_coverage [--replications 400] [--seed 1]

Clients keep their values and their permanent noise, so that the count of a bit over R reports per
client is Binomial(R·a, q) + Binomial(R·(n − a), p), where a clients have a permanent 1. Parameters
are those that a survey gives a question with this ε in total (not per report). Columns: coverage of
the population's share and of the share among the clients that answered, over all values and of the
most common one; coverage of the mass found; rate of any false detection among 20 absent strings
at alpha = .05 (strings only). The last columns are the coverage of the population's share by the
former rule, which inflated all variances by the correlation of a bit that no client sets. Takes
about two minutes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from deniable.analysis.categories import candidates_of
from deniable.inference.marginal.bit_counts import BitCounts, Repetition
from deniable.inference.models import model_of
from deniable.inference.models.base import AnyModel
from deniable.kernels.array_types import Floats, Int64s, Mask
from deniable.mechanisms import Noise
from deniable.mechanisms.noise import ONE
from deniable.results import Marginal
from deniable.simulation.populations import power, zipf
from deniable.survey import Survey
from experiments.direct_counts import set_bits, values_by_stratum

ABSENT = 20
QUESTIONS: dict[str, tuple[Floats, str, int]] = {
    "boolean": (np.array([0.3]), "", 2_000),
    "choice": (zipf(6), 'options = ["v0", "v1", "v2", "v3", "v4", "v5"]', 2_000),
    "string": (zipf(20), "cohorts = 64", 20_000),
    "string, 2 hashes": (zipf(20), "cohorts = 64\nhashes = 2", 20_000),
    "string, 8 cohorts": (power(), "cohorts = 8", 20_000),
}
"""Shares of the values, settings of the question, and number of clients."""
HEADER = """\
                                  population    respondents   mass   any    former rule
question           epsilon  R     all    most   all    most   found  false  all    most"""


@dataclass(frozen=True, eq=False)
class Crowds:
    """Clients with values of known shares, their question's model, and its noise."""

    shares: Floats
    clients: int
    model: AnyModel
    noise: Noise

    @classmethod
    def of(cls, name: str, epsilon: float) -> Crowds:
        """Return the crowds of one kind of question; epsilon : in total."""
        shares, settings, clients = QUESTIONS[name]
        kind = name.split(",")[0]
        survey = Survey.from_toml(
            'name = "repeated"\nversion = 1\nowner = "o"\ndescription = "d"\n'
            'expires = 2999-12-31\ncollect = "repeatedly"\n'
            f'[questions.x]\nkind = "{kind}"\nepsilon = {epsilon}\n{settings}\n'
        )
        question = survey.question("x")
        absent = ABSENT if kind == "string" else 0
        names = [f"v{i}" for i in range(len(shares) + absent)] if kind == "string" else None
        model = model_of(candidates_of(question, names))
        return cls(shares, clients, model, question.protocol.mechanisms[0].noise)

    def positions(self) -> Int64s:
        """Bits of every value, int[S, m, h]."""
        known = getattr(self.model, "positions", None)
        return np.arange(len(self.shares))[None, :, None] if known is None else known

    def draw(self, repeats: int, rng: np.random.Generator) -> tuple[BitCounts, Floats]:
        """Return counts of all reports, and the shares among the clients that answered."""
        positions = self.positions()
        everyone = np.append(self.shares, max(1 - self.shares.sum(), 0.0))
        values = values_by_stratum(everyone, self.clients, len(positions), rng)
        total, values = values.sum(axis=1), values[:, :-1]
        width = getattr(self.model, "bits", len(self.shares))
        holders = set_bits(values, positions[:, : len(self.shares)], width)
        flip, p, q = (each / ONE for each in (self.noise.flip, self.noise.p, self.noise.q))
        kept = rng.binomial(holders, 1 - flip) + rng.binomial(total[:, None] - holders, flip)
        ones = rng.binomial(repeats * kept, q)
        ones += rng.binomial(repeats * (total[:, None] - kept), p)
        return BitCounts(ones, repeats * total), values.sum(axis=0) / self.clients

    def decoded(self, counts: BitCounts, repeats: int) -> Marginal:
        """Return the marginal of reports of clients that sent `repeats` each."""
        counts = counts.repeated(Repetition(repeats, self.noise.flip / ONE))
        return self.model.marginal(counts, alpha=0.05, correction="holm")

    def formerly(self, counts: BitCounts, repeats: int) -> Marginal:
        """Return the marginal by the former rule: fewer reports, by one factor for all bits."""
        p_star, noise = float(self.noise.p_star), self.noise
        phi, gain = noise.flip / ONE, (noise.q - noise.p) / ONE
        factor = 1 + (repeats - 1) * gain**2 * phi * (1 - phi) / (p_star * (1 - p_star))
        total = np.rint(counts.total / factor).astype(np.int64)
        ones = np.minimum(np.rint(counts.ones / factor).astype(np.int64), total[:, None])
        return self.model.marginal(BitCounts(ones, total), alpha=0.05, correction="holm")


def covered(marginal: Marginal, truth: Floats) -> Mask:
    """Return which intervals contain the truth."""
    size = len(truth)
    return np.asarray((marginal.low[:size] <= truth) & (truth <= marginal.high[:size]))


def measure(crowds: Crowds, repeats: int, replications: int, seed: list[int]) -> str:
    """Return one line of the table."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(replications):
        counts, realised = crowds.draw(repeats, rng)
        result = crowds.decoded(counts, repeats)
        population = covered(result, crowds.shares)
        respondents = covered(result.of_respondents(crowds.clients), realised)
        found = crowds.shares[result.detected[: len(crowds.shares)]].sum()
        mass = result.mass_found.low <= found <= result.mass_found.high
        false = result.detected[len(crowds.shares) :].any()
        old = covered(crowds.formerly(counts, repeats), crowds.shares)
        each = (population, respondents, old)
        rows.append([*(x.mean() for x in each), *(x[0] for x in each), mass, false])
    every, answered, old, top, top_answered, top_old, mass, false = np.mean(rows, axis=0)
    return (
        f"{every:.3f}  {top:.3f}  {answered:.3f}  {top_answered:.3f}  {mass:.3f}  {false:.3f}  "
        f"{old:.3f}  {top_old:.3f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(HEADER)
    for name in QUESTIONS:
        for epsilon in (2.0, 4.0, 8.0):
            crowds = Crowds.of(name, epsilon)
            for repeats in (1, 7, 30):
                seed = [given.seed, len(name), int(epsilon), repeats]
                line = measure(crowds, repeats, given.replications, seed)
                print(f"{name:17s}  {epsilon:<7g}  {repeats:<4d}  {line}", flush=True)


if __name__ == "__main__":
    main()
