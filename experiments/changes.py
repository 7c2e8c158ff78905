"""Size and power of the test of change between two periods.

    python -m experiments.changes [--crowds 400] [--jobs 2] [--seed 1]

Bit counts of two periods are drawn as in `experiments.repeated_coverage`. A share `same` of the
clients answers in both periods, with the same value and the same permanent noise. The other clients
are new ones; or, with `moves`, they answer in both periods but change their answer, such that as
many change to "yes" as to "no".

`rejected` is the share of crowds in which `compare` finds any change although nothing changed, and
`covered` the share of all intervals that contain the change 0, for the population and for the
clients that answered. `power` is the share of crowds in which it finds that the most common value
lost `shift`. The columns `unknown` are those of the default, same_clients = 0.

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
    *(("boolean", epsilon, repeats, same, False)
      for epsilon in (2.0, 4.0, 8.0) for repeats in (1, 7, 30) for same in (0.0, 0.8, 1.0)),
    *(("boolean", epsilon, 7, 0.8, True) for epsilon in (2.0, 8.0)),
    *(("choice", epsilon, repeats, 0.8, False)
      for epsilon in (2.0, 8.0) for repeats in (1, 7)),
    *(("string", epsilon, 7, same, False) for epsilon in (4.0, 8.0) for same in (0.0, 0.8)),
    *(("string, 2 hashes", 8.0, 7, same, False) for same in (0.8, 1.0)),
]  # fmt: skip
"""Question, ε in total, reports per client, share of the same clients, whether answers move."""


@dataclass(frozen=True)
class Task:
    """One row of the table."""

    name: str
    epsilon: float
    repeats: int
    same: float
    moves: bool
    crowds: int
    seed: tuple[int, int]


@dataclass(frozen=True, eq=False)
class TwoPeriods:
    """Clients that answer in two periods.

    crowds : the clients of a period; repeats : reports of each client in each period;
    same, moves : see above; shift : share that the first value loses, if the others are new.
    """

    crowds: Crowds
    repeats: int
    same: float
    moves: bool = False
    shift: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Trend[Marginal], Floats]:
        """Return the trend of both periods, and the change among the clients that answered."""
        crowds = self.crowds
        before = crowds.values(crowds.shares, crowds.clients, rng)
        both = rng.binomial(before, self._kept())
        left = before - both
        if self.moves:
            after = left[:, ::-1]
        else:
            total, shares = left.sum(axis=1), self._shares_of_new()
            after = np.stack([rng.multinomial(n, shares) for n in total])
        common, size = crowds.permanent(both, rng), before.sum(axis=1)
        parts = []
        for values in (left, after):
            kept = common + crowds.permanent(values, rng)
            counts = crowds.reported(kept, size, self.repeats, rng)
            parts.append(crowds.decoded(counts, self.repeats))
        trend = Trend("week", PERIODS, tuple(parts), provenance=crowds.provenance)
        realised = (after - left).sum(axis=0)[:-1] / crowds.clients
        return trend, realised

    def _kept(self) -> Floats:
        """Return P(a client keeps its value), by value."""
        kept = np.full(len(self.crowds.shares) + 1, self.same)
        if self.moves:  # as many change to "yes" as to "no"
            yes = self.crowds.shares[0]
            kept[1] = 1 - (1 - self.same) * yes / (1 - yes)
        return kept

    def _shares_of_new(self) -> Floats:
        """Return the shares among new clients that give all clients together the shift."""
        shares = np.append(self.crowds.shares, max(1 - self.crowds.shares.sum(), 0.0))
        move = self.shift / (1 - self.same) if self.shift else 0.0
        shares[0] -= move
        shares[1] += move
        return shares


def of_respondents(trend: Trend[Marginal], clients: int) -> Trend[Marginal]:
    """Return the same trend with intervals for the clients that answered."""
    parts = tuple(part.of_respondents(clients) for part in trend.parts)
    return Trend(trend.by, trend.periods, parts, provenance=trend.provenance)


def contains(change: Change, truth: Floats) -> Floats:
    """Return which intervals of values that exist contain the true change."""
    size = len(truth)
    return np.asarray((change.low[:size] <= truth) & (truth <= change.high[:size]), float)


def measure(task: Task) -> Row:
    """Measure one row."""
    rng = np.random.default_rng([*task.seed])
    crowds = Crowds.of(task.name, task.epsilon)
    null = TwoPeriods(crowds, task.repeats, task.same, task.moves)
    zero, found = np.zeros(len(crowds.shares)), []
    for _ in range(task.crowds):
        trend, realised = null.draw(rng)
        known, unknown = compare(trend, same_clients=task.same), compare(trend)
        answered = compare(of_respondents(trend, crowds.clients), same_clients=task.same)
        found.append(
            [known.changed.any(), unknown.changed.any(), contains(known, zero).mean(),
             contains(answered, realised).mean(), known.standard_error[0]]
        )  # fmt: skip
    rejected, unknown_rejected, inside, answered_inside, error = np.mean(found, axis=0)
    row: dict[str, object] = {
        "question": task.name, "ε": task.epsilon, "R": task.repeats, "same": task.same,
        "moves": "yes" if task.moves else "", "rejected": float(rejected),
        "unknown": float(unknown_rejected), "covered": float(inside),
        "respondents": float(answered_inside),
    }  # fmt: skip
    powers = float("nan"), float("nan")
    shift = min(3.0 * float(error), (1 - task.same) * float(crowds.shares[0]))
    if task.same < 1 and not task.moves:
        changed = TwoPeriods(crowds, task.repeats, task.same, shift=shift)
        trends = [changed.draw(rng)[0] for _ in range(task.crowds // 2)]
        powers = (
            float(np.mean([compare(t, same_clients=task.same).changed[0] for t in trends])),
            float(np.mean([compare(t).changed[0] for t in trends])),
        )
    error = float(np.std([each[2] for each in found]) / len(found) ** 0.5)
    return {**row, "shift": shift, "power": powers[0], "unknown ": powers[1], "error": error,
            "crowds": len(found)}  # fmt: skip


def promises(rows: list[Row]) -> list[Promise]:
    """Compare the table with what is promised."""

    def column(name: str) -> Floats:
        return np.array([row[name] for row in rows], dtype=float)

    rejected, crowds, error = column("rejected"), column("crowds"), column("error")
    exact = np.isin(column("same"), (0.0, 1.0)) | np.array([row["moves"] == "yes" for row in rows])
    boolean = exact & np.array([row["question"] == "boolean" for row in rows])
    both = np.isfinite(column("power")) & (column("same") > 0) & (column("R") > 1)
    gain = column("power")[both] - column("unknown ")[both]
    return [
        judged("The test of change rejects at .05 if nothing changed",
               rejected, share_error(rejected, crowds), 0, 0.05),
        judged("The same for a boolean, if all clients are new, all the same, or answers move",
               rejected[boolean], share_error(rejected[boolean], crowds[boolean]), 0.03, 0.07),
        judged("Intervals of changes contain the change in the population",
               column("covered"), error, 0.93, 1),
        judged("Intervals of changes contain the change among the clients that answered",
               column("respondents"), error, 0.93, 1),
        judged("Power gained by knowing that .8 of the clients are the same, 7 or 30 reports each",
               gain, share_error(gain, crowds[both] / 2), 0.05, 1),
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
