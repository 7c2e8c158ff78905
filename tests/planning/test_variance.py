"""The variance that plans count on is that of estimates."""

import numpy as np
import pytest

from deniable import decode, simulate
from deniable.planning.recommend import OpenDesign, designs_for
from deniable.planning.thresholds import detectable

OPEN = OpenDesign("choice", "once", detectable)


@pytest.mark.parametrize("design", designs_for(OPEN, 3, False, 20, "a-z"), ids=lambda d: d.name)
def test_variance_is_that_of_estimates(design: OpenDesign) -> None:
    """False alarms: variances of 100 estimates are within 0.6 to 1.5 of the truth but for 1e-3."""
    crowds, clients = 100, 2_000
    rng = np.random.default_rng(5)
    survey = design.draft(2.0).survey()
    answers = np.array(["option 1", "option 2", "option 3", None], dtype=object)
    estimates = [
        decode(
            survey, simulate(survey, {"answer": rng.choice(answers, clients)}, rng=rng), "answer"
        ).estimate
        for _ in range(crowds)
    ]
    measured = clients * np.var(estimates, axis=0, ddof=1).mean()
    mechanism = survey.questions[0].protocol.mechanisms[0]
    assert 0.6 < measured / mechanism.variance(1 / 4) < 1.5
