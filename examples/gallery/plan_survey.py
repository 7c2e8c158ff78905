"""How many clients does a survey need?

`plan` predicts the detection threshold before anybody answers: the share of clients that must have
a string so that it is found half of the time. The picture shows it for unlisted strings of at most
20 characters, by ε and number of clients, with the mechanism that `plan` recommends. The dot marks
ε = 4 and a million clients.
"""

import matplotlib.pyplot as plt

from deniable import plan

planned = plan(clients=1_000_000, epsilon=4.0, unknown=True)
print(planned.heading())
planned.plot()
plt.savefig("plan_survey.png", dpi=110)
