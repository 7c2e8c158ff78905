"""How common is each value?

200,000 clients report their home page, each at ε = 3. `decode` estimates the share of every
candidate with a 95% confidence interval, and marks the strings that it detects. The probability of
any false detection is at most 5%. The crosses are the true shares, which are known because the
crowd is simulated.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, decode, simulate
from deniable.simulation import Population, exponential

survey = Survey.from_toml("""
name = "home-pages"
version = 1
owner = "example"
description = "Which page opens first?"
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = 3.0
""")
rng = np.random.default_rng(7)
pages = Population(tuple(f"page{i:02}.example" for i in range(60)), exponential(60, 12.0))
reports = simulate(survey, {"homepage": pages.draw(200_000, rng)}, rng=rng)

marginal = decode(survey, reports, "homepage", pages.values)
print(marginal.heading())
truth = dict(zip(pages.values, pages.weights, strict=True))
marginal.plot(truth=truth, most=30)
plt.savefig("marginal.png", dpi=110)
