"""What can an attacker guess?

Four options are equally common, so that a guess without reports is right in 25% of cases. On the
left, an attacker sees the reports of one client, one per day for a year. With one-time noise, which
a client refuses to repeat, the answer would soon be known; with permanent noise and ε = 2 in total,
it stays uncertain for ever. On the right, an attacker sees one report, or only a shuffled batch of
a million reports. `guessed` computes these probabilities exactly, and bounds the last. Clients
report one noisy bit per option; with subset selection, the default in files with `defaults = 2`, a
single report is more accurate and easier to guess from.
"""

import matplotlib.pyplot as plt

from deniable import Survey, guessed

SURVEY = """
name = "editors"
version = 1
owner = "example"
description = "Which editor do you use?"
expires = 2999-12-31
collect = "{collect}"
[questions.editor]
kind = "choice"
options = ["vim", "emacs", "nano", "ed"]
epsilon = {epsilon}
"""
DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365)
LOSSES = (0.5, 1, 1.5, 2, 3, 4, 5)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained", sharey=True)
for label, collect in {"one-time noise, repeated": "once", "permanent noise": "repeatedly"}.items():
    survey = Survey.from_toml(SURVEY.format(collect=collect, epsilon=2))
    after = guessed(survey, "editor", reports=DAYS).after
    left.plot(DAYS, [100 * after[day] for day in DAYS], marker=".", label=label)
guesses = [
    guessed(Survey.from_toml(SURVEY.format(collect="once", epsilon=loss)), "editor")
    for loss in LOSSES
]
right.plot(LOSSES, [100 * g.after[1] for g in guesses], marker=".", label="one report")
right.plot(LOSSES, [100 * g.store for g in guesses], marker=".", label="shuffled batch (at most)")
left.set(xlabel="daily reports of one client", ylabel="right guesses, %", xscale="log")
left.set_title("Permanent noise bounds what a year reveals")
right.set(xlabel="ε per report", title="A shuffled batch hides a client")
for axes in (left, right):
    axes.axhline(25, color="grey", linestyle=":", label="no report")
    axes.set_ylim(0, 102)
    axes.legend()
figure.savefig("what_attackers_guess.png", dpi=150)
