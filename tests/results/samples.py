"""One result of every class, for tests of what all of them can do."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from deniable import Survey, associate, plan, simulate
from deniable.analysis import compare
from deniable.results import Discovery, Histogram, Joint, Marginal, Measured, Result, Trend
from tests.surveys import make_survey

SHARE = Measured.normal(0.5, 0.1)


def marginal(first: float) -> Marginal:
    estimate = np.array([first, 1 - first])
    return Marginal(
        estimate=estimate,
        standard_error=np.full(2, 0.1),
        low=estimate - 0.2,
        high=estimate + 0.2,
        p_value=np.full(2, 0.01),
        detected=np.array([True, False]),
        identified=np.array([True, True]),
        groups=(),
        detection_threshold=0.1,
        mass_found=SHARE,
        mass_unexplained=SHARE,
        background=np.zeros(1),
        overdispersion=0.0,
        reports=7,
        alpha=0.05,
        correction="holm",
        labels=("a", "b"),
        question="page",
    )


def histogram(first: float = 0.3) -> Histogram:
    labelled = replace(marginal(first), labels=("0 to 10", "10 to 20"), question="latency")
    covariance = np.array([[0.01, -0.002], [-0.002, 0.01]])
    return Histogram.of(labelled, np.array([0.0, 10.0, 20.0]), covariance, "ms")


def discovery(*strings: str) -> Discovery:
    numbers = np.full(len(strings), 0.25)
    return Discovery(
        strings=strings,
        symbols=np.zeros((len(strings), 1), np.uint8),
        **dict.fromkeys(("estimate", "standard_error", "low", "high"), numbers),
        **dict.fromkeys(("p_value", "evidence", "level"), numbers),
        evidence_name="z",
        candidates=9,
        correction="all of them",
        truncation="",
        stages=(),
        detection_threshold=0.1,
        mass_found=SHARE,
        mass_unexplained=SHARE,
        mass_at_end=None,
        reports=7,
        alpha=0.05,
        reading="prefixes",
        question="word",
    )


@cache
def editors() -> Survey:
    return make_survey(
        """
        [questions.editor]
        kind = "choice"
        options = ["vim", "emacs", "<b>nano</b>"]
        epsilon = 2.0
        [questions.dark]
        kind = "boolean"
        epsilon = 2.0
        [questions.tabs]
        kind = "boolean"
        epsilon = 2.0
        """
    )


@cache
def joint(*questions: str) -> Joint:
    """Return a table of simulated answers: dark mode goes with vim."""
    editor = np.array(["vim", "emacs", "<b>nano</b>"] * 500)
    answers = {"editor": editor, "dark": editor == "vim", "tabs": np.arange(1500) % 2 == 0}
    reports = simulate(editors(), answers, rng=np.random.default_rng(1))
    return associate(editors(), reports, questions or ("editor", "dark"))


def samples() -> dict[str, Result]:
    """Return results by their name, at least one per class in `Result._kinds`."""
    unidentified = replace(marginal(0.3), estimate=np.array([np.nan, 0.7]))
    trend = Trend("day", ("2027-01-04", "2027-01-05"), (marginal(0.3), marginal(0.6)))
    return {
        "Marginal": marginal(0.3),
        "Marginal with NaN": unidentified,
        "Histogram": histogram(),
        "Trend of histograms": Trend("day", trend.periods, (histogram(0.3), histogram(0.6))),
        "Discovery": discovery("cat", "dog"),
        "Discovery of nothing": discovery(),
        "Joint": joint(),
        "Joint of three": joint("editor", "dark", "tabs"),
        "Joint from JSON": Joint.from_json(joint().to_json()),
        "Plan": plan(clients=100_000, epsilon=4.0, kind="boolean"),
        "Trend": trend,
        "Change": compare(trend),
        "Series": Trend("week", ("2027-01-04",), (joint(),), {"2027-01-11": "no reports"}),
    }
