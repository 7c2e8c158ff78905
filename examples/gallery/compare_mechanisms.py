"""Which mechanism is the most accurate?

The variance of an estimated share, times the number of clients, for a choice of four options that
is collected once. A mechanism with half the variance needs half the clients. The dashed line is the
best known lower bound: subset selection reaches it. `deniable plan --compare` prints the numbers,
also for other questions.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable.analysis import compare_mechanisms

table = compare_mechanisms(
    kind="choice", options=4, epsilons=np.linspace(0.5, 4.5, 17).tolist(), timed=False
)
figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
table.plot(axes)
figure.savefig("compare_mechanisms.png", dpi=110)
