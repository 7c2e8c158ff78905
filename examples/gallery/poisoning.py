"""What can lying clients do?

Some clients skip the noise and send the report that raises one option the most. No analysis can
distinguish such a report from an honest one. The smaller ε is, the more influence one such client
has. The lines show how far the theory expects the estimate to move, and the dots show a simulation
with 50,000 clients.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, decode, simulate
from deniable.columns.batch import from_arrays
from deniable.planning import clients_to_move

CLIENTS = 50_000
SURVEY = """
name = "votes"
version = 1
owner = "example"
description = "Which option do you prefer?"
expires = 2999-12-31
collect = "once"
[questions.vote]
kind = "choice"
options = ["a", "b", "c", "d"]
epsilon = {epsilon}
"""
rng = np.random.default_rng(10)
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for epsilon in (0.5, 1.0, 2.0, 4.0):
    survey = Survey.from_toml(SURVEY.format(epsilon=epsilon))
    honest = simulate(survey, {"vote": rng.choice(["b", "c", "d"], CLIENTS).tolist()}, rng=rng)
    shares, estimates = np.array([0.005, 0.01, 0.02]), []
    for liars in (shares * CLIENTS).astype(int):
        cohort, clear, bits = (column.copy() for column in honest.arrays())
        bits[:liars] = 1  # the bit of option "a" is set, and no other
        marginal = decode(survey, from_arrays(survey, [cohort, clear, bits]), "vote")
        estimates.append(100 * marginal.estimate[0])
    percent = 1000 / clients_to_move(survey.question("vote"), 100_000, 0.01)
    (line,) = axes.plot([0, 2], [0, 2 * percent], label=f"ε = {epsilon:g}")
    axes.plot(100 * shares, estimates, "o", color=line.get_color())
axes.set(
    xlabel="clients that lie, %",
    ylabel="estimate of an option that nobody chose, %",
    title="Influence of malicious clients on an estimate",
)
axes.grid(alpha=0.3)
axes.legend()
figure.savefig("poisoning.png", dpi=110)
