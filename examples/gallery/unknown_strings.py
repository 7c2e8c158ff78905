"""Which strings do clients have?

Nobody listed these strings. Each of 100,000 clients reports one prefix of its word, at ε = 4.
`discover` searches from short prefixes to longer ones and tests every candidate on reports that
were not used to find it, so that the probability of any false discovery is at most 5%.
"""

import matplotlib.pyplot as plt
import numpy as np

from deniable import Survey, discover, simulate
from deniable.simulation import Population, zipf

survey = Survey.from_toml("""
name = "words"
version = 1
owner = "example"
description = "What did you search for?"
expires = 2999-12-31
collect = "once"
[questions.word]
kind = "string"
mechanism = "localhash"
epsilon = 4.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 8
alphabet = "a-z"
""")
birds = ("heron", "osprey", "bittern", "curlew", "egret", "gannet", "jackdaw", "kite", "lapwing")
mammals = ("otter", "lynx", "badger", "marten", "beaver", "stoat", "dormouse", "ferret", "hare")
words = (*mammals, *birds)
rng = np.random.default_rng(3)
crowd = Population(words, zipf(len(words)))
reports = simulate(survey, {"word": crowd.draw(100_000, rng)}, rng=rng)

discovery = discover(survey, reports, "word")
print(discovery.heading())
truth = dict(zip(crowd.values, crowd.weights, strict=True))
discovery.plot(truth=truth)
plt.savefig("unknown_strings.png", dpi=110)
