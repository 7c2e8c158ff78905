"""Which ε is enough?

A larger ε gives more accurate results and less privacy. The picture shows the detection
threshold: the share of clients that must have a value so that `decode` detects it among 10,000
candidates half of the time.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey
from deniable.planning import detectable

SURVEY = """
name = "plan"
version = 1
owner = "example"
description = "Which page opens first?"
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = {epsilon}
"""
epsilons = np.linspace(0.5, 6.0, 12)
questions = [Survey.from_toml(SURVEY.format(epsilon=e)).question("homepage") for e in epsilons]
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for clients in (10_000, 100_000, 1_000_000):
    thresholds = [100 * detectable(question, clients, candidates=10_000) for question in questions]
    axes.plot(epsilons, thresholds, marker="o", label=f"{clients:,} clients")
axes.set(
    yscale="log",
    xlabel="ε per report",
    ylabel="detection threshold, % of clients",
    title="Detection threshold of a string question",
)
axes.grid(alpha=0.3)
axes.legend()
figure.savefig("choose_epsilon.png", dpi=110)
