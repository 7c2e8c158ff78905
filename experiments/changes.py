"""Size and power of the test of change between two periods.

    python -m experiments.changes [--crowds 400] [--jobs 2] [--seed 1]

Bit counts of two periods are drawn as in `experiments.repeated_coverage`. A share `same` of the
clients answers in both periods, with the same value and the same permanent noise. The other clients
are new ones.

`rejected` is the share of crowds in which `compare` finds any change although nothing changed, and
`covered` the share of all intervals that contain the change 0. `power` is the share of crowds in
which it finds that the most common value lost `shift`.

Questions with one or six values get five times as many crowds. Takes about a minute on 16
processors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.analysis import compare
from deniable.kernels.array_types import Floats
from deniable.results import Change, Marginal, Trend
from experiments.paper.records import Row
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import Promise, judged, share_error
from experiments.repeated_coverage import Crowds, crowds_of
from experiments.text_tables import text_table

PERIODS = ("2027-01-04", "2027-01-11")
ROWS = [
    *(("boolean", epsilon, repeats, same)
      for epsilon in (2.0, 4.0, 8.0) for repeats in (1, 7, 30) for same in (0.0, 0.8)),
    *(("choice", epsilon, repeats, same)
      for epsilon in (2.0, 8.0) for repeats in (1, 7) for same in (0.0, 0.8)),
    *(("string", epsilon, 7, same) for epsilon in (4.0, 8.0) for same in (0.0, 0.8)),
    *(("string, 2 hashes", 8.0, 7, same) for same in (0.0, 0.8)),
]  # fmt: skip
"""Question, ε in total, reports per client, share of the same clients."""


@dataclass(frozen=True)
class Task:
    """One row of the table."""

    name: str
    epsilon: float
    repeats: int
    same: float
    crowds: int
    seed: tuple[int, int]


@dataclass(frozen=True, eq=False)
class TwoPeriods:
    """Clients that answer in two periods.

    crowds : the clients of a period; repeats : reports of each client in each period;
    same : see above; shift : share that the first value loses.
    """

    crowds: Crowds
    repeats: int
    same: float
    shift: float = 0.0

    def draw(self, rng: np.random.Generator) -> Trend[Marginal]:
        """Return the trend of both periods."""
        crowds = self.crowds
        before = crowds.values(crowds.shares, crowds.clients, rng)
        both = rng.binomial(before, self.same)
        left = before - both
        shares = self._shares_of_new()
        after = np.stack([rng.multinomial(n, shares) for n in left.sum(axis=1)])
        common, size = crowds.permanent(both, rng), before.sum(axis=1)
        parts = []
        for values in (left, after):
            kept = common + crowds.permanent(values, rng)
            counts = crowds.reported(kept, size, self.repeats, rng)
            parts.append(crowds.decoded(counts, self.repeats))
        return Trend("week", PERIODS, tuple(parts), provenance=crowds.provenance)

    def _shares_of_new(self) -> Floats:
        """Return the shares among new clients that give all clients together the shift."""
        shares = np.append(self.crowds.shares, max(1 - self.crowds.shares.sum(), 0.0))
        move = self.shift / (1 - self.same) if self.shift else 0.0
        shares[0] -= move
        shares[1] += move
        return shares


def contains(change: Change, truth: Floats) -> Floats:
    """Return which intervals of values that exist contain the true change."""
    size = len(truth)
    return np.asarray((change.low[:size] <= truth) & (truth <= change.high[:size]), float)


def measure(task: Task) -> Row:
    """Measure one row."""
    rng = np.random.default_rng([*task.seed])
    crowds = Crowds.of(task.name, task.epsilon)
    null = TwoPeriods(crowds, task.repeats, task.same)
    zero, found = np.zeros(len(crowds.shares)), []
    for _ in range(task.crowds):
        change = compare(null.draw(rng))
        inside = contains(change, zero).mean()
        found.append([change.changed.any(), inside, change.standard_error[0]])
    rejected, covered, error = np.mean(found, axis=0)
    shift = min(3.0 * float(error), (1 - task.same) * float(crowds.shares[0]))
    moved = TwoPeriods(crowds, task.repeats, task.same, shift)
    power = np.mean([compare(moved.draw(rng)).changed[0] for _ in range(task.crowds // 2)])
    return {
        "question": task.name, "ε": task.epsilon, "R": task.repeats, "same": task.same,
        "rejected": float(rejected), "covered": float(covered), "shift": shift,
        "power": float(power),
        "error": float(np.std([each[1] for each in found]) / len(found) ** 0.5),
        "crowds": len(found),
    }  # fmt: skip


def promises(rows: list[Row]) -> list[Promise]:
    """Compare the table with what is promised."""

    def column(name: str) -> Floats:
        return np.array([row[name] for row in rows], dtype=float)

    rejected, crowds, error = column("rejected"), column("crowds"), column("error")
    new = column("same") == 0
    boolean = new & np.array([row["question"] == "boolean" for row in rows])
    return [
        judged("The test of change rejects at .05 if nothing changed",
               rejected, share_error(rejected, crowds), 0, 0.05),
        judged("The same for a boolean, if all clients are new",
               rejected[boolean], share_error(rejected[boolean], crowds[boolean]), 0.03, 0.07),
        judged("Intervals of changes contain the change in the population",
               column("covered"), error, 0.93, 1),
    ]  # fmt: skip


def main() -> None:
    """Print the table and the promises."""
    given = crowd_arguments(__doc__, 400)
    tasks = [
        Task(*row, crowds_of(row[0], given.crowds), (given.seed, i)) for i, row in enumerate(ROWS)
    ]
    rows = list(in_processes(measure, tasks, given.jobs))
    print(text_table(rows))
    for promise in promises(rows):
        print(promise)


if __name__ == "__main__":
    main()
