"""How are two answers related?

`associate` estimates the joint table of two questions: the share of clients for each pair of
answers, although both answers of every report are noisy. Each cell has a standard error, and a
test says whether the questions are independent.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, associate, simulate
from deniable.simulation import contingency, correlated, exponential

survey = Survey.from_toml("""
name = "browsers"
version = 1
owner = "example"
description = "Home page and browser."
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = 3.0
[questions.browser]
kind = "choice"
options = ["Firefox", "Chromium", "Safari"]
epsilon = 2.0
""")
pages = tuple(f"page{i:02}.example" for i in range(30))
table = correlated(exponential(30, 6.0), np.array([0.5, 0.3, 0.2]), strength=0.4)
rng = np.random.default_rng(8)
crowd = contingency(table, homepage=pages, browser=("Firefox", "Chromium", "Safari"))
reports = simulate(survey, crowd.draw(200_000, rng), rng=rng)

joint = associate(survey, reports, ["homepage", "browser"], candidates={"homepage": pages}, top=8)
print(f"Cramér's V = {joint.cramers_v().estimate:.2f}")
joint.plot()
plt.savefig("joint_table.png", dpi=110)
