"""Family-wise error, power and coverage with few cohorts, where unlisted strings can mislead.

    python -m experiments.few_cohorts [--crowds 200] [--jobs 16]

`decode`: ten listed Zipf strings, 20 or 1,000 candidates that nobody holds, and unlisted mass on
one string or spread over 50; N = 100,000; h = 1 with p = .0122, q = .5, otherwise p = .25, q = .75.
`fwer` is the share of crowds with a false detection, `found` the mean number of the ten strings
that are detected, `coverage` that of the 95% intervals of all candidates, `present` that of the ten
strings, `mass` that of `mass_found`, and `width` the median half-width of intervals.

`associate`: two correlated string questions (k = 128, h = 2) of ten listed Zipf strings and one
unlisted string that 30% of clients hold; N = 100,000; the five most common strings and Other.
Coverage of the cells of listed strings, and of those with Other.

Every crowd has hash functions of its own, so that figures are averages over them. With 200 crowds
everything takes about a quarter of an hour of CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from deniable import associate, simulate
from deniable.inference.marginal.design import BloomDesign
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.results.joint import OTHER
from deniable.simulation.populations import zipf
from experiments.direct_counts import bit_counts, random_positions, values_by_stratum
from experiments.paper.trials import bloom, survey_of
from experiments.parallel import crowd_arguments, in_processes
from experiments.promises import Promise, judged, share_error

PRESENT = 10
REPORTS = 100_000
COHORTS = (8, 16)
JOINT_COHORTS = (8,)
UNLISTED = ((0.0, 1), (0.1, 1), (0.3, 1), (0.1, 50), (0.3, 50))
TOP = 5


class Setting(NamedTuple):
    """One row of the first table."""

    cohorts: int
    hashes: int = 2
    bits: int = 128
    unlisted: float = 0.3
    strings: int = 1
    absent: int = 20

    def __str__(self) -> str:
        return (
            f"{self.cohorts:2d} cohorts, h = {self.hashes}, k = {self.bits:3d}, {self.absent:4d} "
            f"absent, {self.unlisted:.1f} unlisted on {self.strings:2d}"
        )


class Task(NamedTuple):
    """Crowds of a setting; joint tables use only its number of cohorts."""

    setting: Setting
    crowds: int
    seed: int


class Decoded(NamedTuple):
    """What the crowds of a setting found, on average."""

    fwer: float
    found: float
    coverage: float
    present: float
    mass: float
    width: float


def measure_decode(task: Task) -> Decoded:
    """Decode the crowds of a setting."""
    setting = task.setting
    cohorts, hashes, bits, unlisted, strings, absent = setting
    rng = np.random.default_rng([task.seed, *setting[:3], round(100 * unlisted), strings, absent])
    listed = np.r_[(1 - unlisted) * zipf(PRESENT), np.zeros(absent)]
    shares = np.r_[listed, np.full(strings, unlisted / strings)]
    p, q = (0.0122, 0.5) if hashes == 1 else (0.25, 0.75)
    crowds = []
    for _ in range(task.crowds):
        positions = random_positions(shares.size, rng, strata=cohorts, k=bits, h=hashes)
        values = values_by_stratum(shares, REPORTS, cohorts, rng)
        counts = bit_counts(values, positions, bits, p, q, rng)
        design = BloomDesign(np.ascontiguousarray(positions[:, : listed.size]), bits, p, q)
        result = estimate_marginal(counts, design, correction="holm")
        inside = (result.low <= listed) & (listed <= result.high)
        mass = float(listed[result.detected].sum())
        crowds.append(
            Decoded(
                fwer=float(result.detected[PRESENT:].any()),
                found=result.detected[:PRESENT].sum(),
                coverage=inside.mean(),
                present=inside[:PRESENT].mean(),
                mass=result.mass_found.low <= mass <= result.mass_found.high,
                width=np.median(result.high - result.low) / 2,
            )
        )
    return Decoded(*np.mean(np.array(crowds, float), axis=0).tolist())


def measure_joint(task: Task) -> tuple[float, float]:
    """Return the coverage of cells of two listed strings, and of cells with Other."""
    shares = np.r_[0.7 * zipf(PRESENT), 0.3]
    truth = 0.7 * np.outer(shares, shares) + 0.3 * np.diag(shares)
    filters = bloom(cohorts=task.setting.cohorts)
    survey, inside = survey_of(x=filters, y=filters), []
    for crowd in range(task.crowds):
        rng = np.random.default_rng([task.seed, task.setting.cohorts, crowd])
        names = np.array([f"string {i} of crowd {task.seed}.{crowd}" for i in range(PRESENT + 1)])
        x, y = np.divmod(rng.choice(truth.size, REPORTS, p=truth.ravel()), PRESENT + 1)
        batch = simulate(survey, {"x": names[x], "y": names[y]}, rng=rng)
        listed = names[:-1].tolist()
        joint = associate(survey, batch, ["x", "y"], candidates={"x": listed, "y": listed}, top=TOP)
        true = truth
        for axis, labels in enumerate(joint.labels):
            shown = [listed.index(label) for label in labels if label != OTHER]
            rest = np.delete(true, shown, axis=axis).sum(axis=axis, keepdims=True)
            parts = [np.take(true, shown, axis=axis), rest][: 1 + (OTHER in labels)]
            true = np.concatenate(parts, axis=axis)
        covered = (joint.low <= true) & (true <= joint.high)
        with_other = np.logical_or.outer(*(np.array(x) == OTHER for x in joint.labels))
        inside.append([covered[~with_other].mean(), covered[with_other].mean()])
    return tuple(np.nanmean(inside, axis=0).tolist())


def settings() -> Iterator[Setting]:
    """Yield the rows of the first table."""
    for hashes, bits in product((1, 2, 4), (32, 256)):
        for cohorts in COHORTS:
            for unlisted, strings in UNLISTED:
                yield Setting(cohorts, hashes, bits, unlisted, strings)
            yield Setting(cohorts, hashes, bits, absent=1000)
        yield Setting(64, hashes, bits, absent=1000)


def promises(
    rows: list[tuple[Setting, Decoded]], cells: list[float], crowds: int
) -> Iterator[Promise]:
    """Judge the rows, and cells of joint tables."""
    for sentence, name, low, high in (
        ("Any absent candidate is detected", "fwer", 0.0, 0.05),
        ("Intervals of shares contain the truth", "coverage", 0.93, 1.0),
    ):
        values = np.array([getattr(found, name) for _, found in rows])
        sentence = f"{sentence}, with 8, 16 or 64 cohorts"
        yield judged(sentence, values, share_error(values, crowds), low, high)
    values = np.array(cells)
    sentence = "Intervals of cells of listed strings contain the truth, with 8 cohorts"
    yield judged(sentence, values, share_error(values, crowds), 0.93, 1.0)


def main() -> None:
    """Print both tables and the promises."""
    options = crowd_arguments(__doc__ or "", crowds=200)
    tasks = [Task(setting, options.crowds, options.seed) for setting in settings()]
    rows = []
    print(f"{'decode':61s} " + " ".join(f"{name:>8s}" for name in Decoded._fields))
    for task, result in zip(tasks, in_processes(measure_decode, tasks, options.jobs), strict=True):
        rows.append((task.setting, result))
        print(f"{task.setting!s:61s} " + " ".join(f"{x:8.3f}" for x in result), flush=True)
    # Tables take longer: several tasks per row keep all processes busy.
    parts = max(options.crowds // 25, 1)
    tasks = [
        Task(Setting(cohorts), -(-options.crowds // parts), options.seed + part)
        for cohorts in JOINT_COHORTS
        for part in range(parts)
    ]
    covered = np.array(list(in_processes(measure_joint, tasks, options.jobs)))
    covered = covered.reshape(len(JOINT_COHORTS), parts, 2).mean(axis=1)
    print(f"{'associate':61s} {'cells':>8s} {'other':>8s}")
    for cohorts, (cells, other) in zip(JOINT_COHORTS, covered, strict=True):
        print(f"{f'{cohorts:2d} cohorts':61s} {cells:8.3f} {other:8.3f}")
    for promise in promises(rows, covered[:, 0].tolist(), options.crowds):
        print(promise)


if __name__ == "__main__":
    main()
