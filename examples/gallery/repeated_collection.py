"""What do many reports of one client reveal?

A client that reports daily draws its permanent noise once per value and fresh noise for each
report. The average of many reports then converges to the permanent noise, not to the answer. A
program that ignores the ledger (the client's record of the ε it has spent) and repeats a one-time
survey every day reveals the answer. In the survey file, `f` sets the permanent noise, and `p` and
`q` set the fresh noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, simulate
from deniable.simulation import simulate_days

SURVEY = """
name = "daily"
version = 1
owner = "example"
description = "Do you use dark mode?"
expires = 2999-12-31
collect = "{collect}"
[questions.dark_mode]
kind = "boolean"
f = {f}
p = 0.25
q = 0.75
"""
DAYS, CLIENTS = 60, 2_000
truth = [True, False] * (CLIENTS // 2)
answers = {"dark_mode": truth}
rng = np.random.default_rng(11)
once = Survey.from_toml(SURVEY.format(collect="once", f=0.0))
daily = Survey.from_toml(SURVEY.format(collect="repeatedly", f=0.5))
collections = {
    "one-time noise, repeated daily": (simulate(once, answers, rng=rng) for _ in range(DAYS)),
    "permanent and fresh noise": simulate_days(daily, answers, DAYS, rng=rng),
}
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for label, collection in collections.items():
    ones, guessed = np.zeros(CLIENTS), []
    for day, reports in enumerate(collection, 1):
        *_, bits = reports.arrays()
        ones += bits[:, 0] & 1
        guessed.append(100 * np.mean((ones > day / 2) == truth))
    axes.plot(range(1, DAYS + 1), guessed, label=label)
axes.set(
    xlabel="reports per client",
    ylabel="answers that an attacker guesses, %",
    title="Permanent noise bounds what all reports reveal",
    ylim=(45, 102),
)
axes.grid(alpha=0.3)
axes.legend(loc="center right")
figure.savefig("repeated_collection.png", dpi=110)
