"""The paper's decoder with its own marginals and its own model of Other."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.paper.original import discover_original

from deniable.discovery import discover
from tests.discovery.ngrams.test_ngrams import reports_of, survey_of


@pytest.mark.parametrize("listed", [True, False])
def test_the_papers_own_marginals_and_other(listed: bool) -> None:
    """Both readings of the paper find the same strings; LASSO is unbiased if all are listed."""
    survey = survey_of('max_length = 4\nalphabet = "a-h"\ngram = 2\ngrams = 2')
    shares = {"abcd": 0.5, "efgh": 0.3, "hahc": 0.2}
    rare = {} if listed else {f"{a}{b}aa": 0.001 for a in "abcdefgh" for b in "abcdefgh"}
    reports = reports_of(survey, shares | rare, 20_000)
    ours, whole = (
        discover(survey, reports, "s", reading="paper"),
        discover_original(survey, reports, "s"),
    )
    assert whole.reading == "original" and set(shares) <= set(whole.strings)
    assert set(whole.strings[:3]) == set(ours.strings[:3]) == set(shares)
    if listed:  # four standard errors, three strings: once in 5,000
        truth = np.array([shares[s] for s in whole.strings])
        assert np.all(np.abs(whole.estimate - truth) < 4 * whole.standard_error)
