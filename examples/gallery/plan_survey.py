"""How many clients does a survey need?

`plan` compares the mechanisms for a question before anybody answers it. This example compares them
for unlisted strings of at most 20 characters, with ε = 4 and a million clients.
"""

import matplotlib.pyplot as plt

from deniable import plan

planned = plan(clients=1_000_000, epsilon=4.0, unknown=True)
print(planned.heading())
planned.plot()
plt.savefig("plan_survey.png", dpi=110)
