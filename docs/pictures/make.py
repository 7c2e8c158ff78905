"""The pictures of the documentation: python docs/pictures/make.py (a few seconds).

A crowd of 200,000 answers a survey of a home page (a string) and a browser (a choice), correlated.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import deniable
from deniable.simulation import contingency, correlated, exponential

mpl.use("Agg")
HERE = Path(__file__).parent
SURVEY = deniable.Survey.from_toml(
    """
name = "pictures"
version = 1
owner = "docs"
description = "home page and browser"
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = 3.0
[questions.browser]
kind = "choice"
options = ["Firefox", "Chromium", "Safari", "another"]
epsilon = 2.0
"""
)
PAGES = tuple(f"page{i:02}.example" for i in range(60))
BROWSERS = ("Firefox", "Chromium", "Safari", "another")


def main() -> None:
    rng = np.random.default_rng(7)
    table = correlated(exponential(60, 12.0), np.array([0.4, 0.35, 0.15, 0.1]), strength=0.35)
    crowd = contingency(table, homepage=PAGES, browser=BROWSERS)
    reports = deniable.simulate(SURVEY, crowd.draw(200_000, rng), rng=rng)
    marginal = deniable.decode(SURVEY, reports, "homepage", PAGES)
    truth = dict(zip(PAGES, table.sum(axis=1), strict=True))
    axes = marginal.plot(truth=truth, most=16)
    axes.figure.savefig(HERE / "marginal.png", dpi=110)
    joint = deniable.associate(
        SURVEY, reports, ["homepage", "browser"], candidates={"homepage": PAGES}, top=8
    )
    axes = joint.plot()
    axes.figure.savefig(HERE / "joint.png", dpi=110)
    print(marginal.heading())
    print(joint.heading())
    print(joint.test(), joint.cramers_v())


if __name__ == "__main__":
    main()
