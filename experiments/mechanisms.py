"""Compare the mechanisms that can ask a question at the same ε; draw the figure of the docs.

    python -m experiments.mechanisms

Nothing is simulated. `variance` is that of an estimated share from one report per client, times the
number of clients: of a rare string, or of an answer if all answers are equally common. `liar` is
the number of clients as which one lying client can count. Writes the rows to
docs/explanation/mechanisms.json and the figure beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deniable.survey.draft import Draft, DraftQuestion
from experiments.text_tables import text_table

DOCS = Path(__file__).parent.parent / "docs/explanation"
DATA, FIGURE = DOCS / "mechanisms.json", DOCS / "mechanisms.png"
EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.39)
STRINGS = {"max_length": 20, "alphabet": "a-z0-9._-"}
PREFIXES, NGRAMS = ({**STRINGS, "protocol": name} for name in ("prefixes", "ngrams"))


@dataclass(frozen=True)
class Design:
    """A mechanism, and the settings of a question that name it."""

    name: str
    settings: Mapping[str, object]
    dictionary: Mapping[str, object] = field(default_factory=dict)
    per_report: float | None = None

    def row(self, panel: Panel, epsilon: float) -> dict[str, str | float]:
        """Return what the mechanism gives at this ε."""
        settings = dict(self.settings)
        if self.per_report is not None:
            settings["epsilon_per_report"] = round(self.per_report * epsilon, 6)
        asked = DraftQuestion("answer", panel.kind, epsilon, settings, self.dictionary)
        question = Draft("compared", (asked,), collect=panel.collect).survey().questions[0]
        mechanism, share = question.protocol.mechanisms[0], question.protocol.identifying_share
        p, q = mechanism.support
        common = 1 / panel.answers if panel.answers else 0.0
        return {
            "question": panel.title,
            "mechanism": self.name,
            "epsilon": epsilon,
            "variance": mechanism.variance(common) / share,
            "liar": (1 - p) / (q - p) / share,
        }


@dataclass(frozen=True)
class Panel:
    """A question, and the mechanisms that can ask it.

    answers : number of possible answers, no answer included; None for strings
    """

    title: str
    kind: str
    designs: tuple[Design, ...]
    answers: int | None = None
    collect: str = "once"


BLOOM, HASHED = {"mechanism": "bloom"}, {"mechanism": "localhash"}
FOUR = {"options": ["a", "b", "c", "d"]}
PANELS = (
    Panel(
        "four options",
        "choice",
        (
            Design("subset selection", {**FOUR, "mechanism": "subset"}),
            Design("one bit per option", {**FOUR, "mechanism": "bits"}),
        ),
        answers=5,
    ),
    Panel(
        "listed strings",
        "string",
        (Design("Bloom filter", BLOOM), Design("local hashing", HASHED)),
    ),
    Panel(
        "strings that nobody listed",
        "string",
        (
            Design("prefixes, local hashing", HASHED, PREFIXES),
            Design("prefixes, Bloom filter", BLOOM, PREFIXES),
            Design("n-grams, Bloom filter", BLOOM, NGRAMS),
        ),
    ),
    Panel(
        "listed strings, repeatedly",
        "string",
        (
            Design("Bloom filter", BLOOM),
            Design("local hashing", HASHED),
            Design("Bloom filter, noise of the paper", {**BLOOM, "p": 0.25, "q": 0.75}),
            Design("Bloom filter, 84% of ε per report", BLOOM, per_report=0.84),
        ),
        collect="repeatedly",
    ),
)


def least_variance(epsilon: float, answers: int | None) -> float:
    """Return the best known lower bound of `variance`, for every mechanism with this ε per report.

    With k possible answers, all equally common, no mechanism has a smaller sum of variances than
    subset selection of the best size w (Ye and Barg, "Optimal schemes for discrete distribution
    estimation under locally differential privacy", 2018):

        min over w of (k−1)²·(w·e^ε + k − w)² / (k²·(e^ε−1)²·w·(k−w)) per share.

    With unlimited answers, of which each is rare, it is 4e^ε/(e^ε−1)².
    """
    e, k = math.exp(epsilon), answers
    if k is None:
        return 4 * e / (e - 1) ** 2
    return min(
        ((k - 1) * (w * e + k - w) / (k * (e - 1))) ** 2 / (w * (k - w)) for w in range(1, k)
    )


def rows() -> Iterator[dict[str, str | float]]:
    """Yield one row per question, mechanism and ε, and the lower bounds."""
    for panel in PANELS:
        for design in panel.designs:
            yield from (design.row(panel, epsilon) for epsilon in EPSILONS)
        if panel.collect == "once":
            for epsilon in EPSILONS:
                yield {
                    "question": panel.title,
                    "mechanism": "lower bound",
                    "epsilon": epsilon,
                    "variance": least_variance(epsilon, panel.answers),
                    "liar": 1.0,
                }


def draw(axes: Axes, found: list[dict[str, str | float]]) -> None:
    """Draw the variances for one question."""
    for marker, name in zip("osD^", dict.fromkeys(row["mechanism"] for row in found), strict=False):
        line = [row for row in found if row["mechanism"] == name]
        style = "k--" if name == "lower bound" else f"{marker}-"
        values = [row["epsilon"] for row in line], [row["variance"] for row in line]
        axes.plot(*values, style, ms=4, lw=1.2, label=str(name))
    axes.set(title=found[0]["question"], yscale="log", ylabel="variance × number of clients")
    axes.set_xlabel("ε in total" if "repeatedly" in str(found[0]["question"]) else "ε per report")
    axes.grid(which="major", lw=0.4)
    axes.legend(fontsize=8)


def main() -> None:
    """Print and keep the rows, and draw the figure."""
    found = list(rows())
    print(text_table(found))
    DATA.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        draw(axes, [row for row in found if row["question"] == panel.title])
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
