"""Does an association change over time?

In each of eight weeks, 60,000 clients report their editor and whether they use dark mode. From the
fifth week on, a new default makes dark mode more common with one of the editors. Every week is
analysed separately. The picture shows Cramér's V, which is 0 for independent questions and 1 for a
perfect association, with its 95% confidence interval.
"""

from datetime import date, timedelta

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, associate, simulate
from deniable.results import Trend
from deniable.simulation import contingency

survey = Survey.from_toml("""
name = "editors"
version = 1
owner = "example"
description = "Editor and dark mode."
expires = 2999-12-31
collect = "once"
[questions.editor]
kind = "choice"
options = ["vim", "emacs", "code"]
epsilon = 2.0
[questions.dark_mode]
kind = "boolean"
epsilon = 1.5
""")
BEFORE = [[0.12, 0.18], [0.08, 0.12], [0.20, 0.30]]  # editor × (dark, light)
AFTER = [[0.12, 0.18], [0.08, 0.12], [0.35, 0.15]]
rng = np.random.default_rng(9)
weeks, tables = [], []
for week in range(8):
    crowd = contingency(
        BEFORE if week < 4 else AFTER,
        editor=("vim", "emacs", "code"),
        dark_mode=(True, False),
    )
    reports = simulate(survey, crowd.draw(60_000, rng), rng=rng)
    weeks.append(str(date(2027, 1, 4) + timedelta(weeks=week)))
    tables.append(associate(survey, reports, ["editor", "dark_mode"]))

trend = Trend("week", tuple(weeks), tuple(tables))
trend.plot()
plt.savefig("association_over_time.png", dpi=110)
