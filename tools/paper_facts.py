"""Facts from the data of the paper's experiments, in docs/results/paper.

`tools/facts.py` inserts them where a page says `<!-- generated: paper::… -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from experiments.paper import PAPER
from experiments.paper.records import Comparison

from tools.markdown import markdown_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
HEADINGS = ("Quantity", "Paper", "Ours (mean)", "Range for the paper's", "Verdict")
SHOWN_OTHERWISE = ("other", "length", "threshold")
"""Experiments of which a figure or another table shows what the paper does not print."""


def paper_fact(experiment: str, first: str = "", second: str = "", kind: str = "") -> str:
    """Return an experiment's comparison with the paper, or one figure of the experiment."""
    if experiment == "verdicts":
        return _verdicts()
    if experiment == "minutes":
        seconds = sum(load(path)["seconds"] for path in (RESULTS / "paper").glob("*.json"))
        return f"{seconds / 60:.0f}"
    data = load(RESULTS / "paper" / f"{experiment}.json")
    if not first:
        return _comparisons(experiment, data)
    if first == "overview":
        return _overview(data[second], *OVERVIEWS[second])
    if kind:
        case = next(row for row in data[first] if row["case"] == second)
        spread = f"{case['least']} to {case['most']}; {case['runs']} crowds"
        return f"{one_decimal(case[kind])} ({spread})"
    row = next(row for row in data["comparisons"] if row["quantity"] == first)
    if second == "printed":
        return str(row["paper"])
    return one_decimal(row["ours"])


def _verdicts() -> str:
    """Return how many rows of each experiment agree, differ, or cannot be decided."""
    lines = []
    for name in PAPER:
        rows = load(RESULTS / "paper" / f"{name}.json")["comparisons"]
        words = [Comparison(**row).verdict.partition(" ")[0] for row in rows]
        lines.append([name, *(str(words.count(w)) for w in ("agrees", "differs", "undecided", ""))])
    totals = [str(sum(int(line[i]) for line in lines)) for i in range(1, 5)]
    headings = ("Experiment", "Agrees", "Differs", "Undecided", "Nothing printed")
    return markdown_table(headings, [*lines, ["all", *totals]])


def _comparisons(experiment: str, data: dict[str, Any]) -> str:
    """Return what the paper prints beside our means, and why they differ."""
    rows = data["comparisons"]
    if experiment in SHOWN_OTHERWISE:
        rows = [row for row in rows if row["paper"]]
    made = f"Command: `python -m experiments.paper {experiment}`, seed {data['seed']}"
    made += f", {data['seconds']:.0f} s."
    reasons = dict.fromkeys(row["reason"] for row in rows if row["reason"])
    if reasons:
        made += f" Reasons for differences: {'; '.join(reasons)}."
    table = markdown_table(HEADINGS, map(_comparison, rows))
    return "\n\n".join([table, made, *map(_quantity, data["notes"])])


def _comparison(row: dict[str, Any]) -> list[str]:
    """Return the line of a table for one comparison."""
    found = Comparison(**row)
    verdict = found.verdict.partition(":")[0]
    predicted = ""
    if found.predicted:
        low, high = map(_number, found.predicted)
        predicted = low if low == high else f"{low} to {high}"
    paper = _number(float(row["paper"])) if re.fullmatch(r".*e-\d+", row["paper"]) else row["paper"]
    return [_quantity(row["quantity"]), paper, _number(row["ours"]), predicted, verdict]


def _quantity(label: str) -> str:
    """Return the label of a row in full words.

    >>> _quantity("found, bigrams, printed q, paper")
    "found, bigrams, printed q, the paper's decoder"
    """
    for pattern, words in FULL_WORDS.items():
        label = re.sub(pattern, words, label)
    return label


FULL_WORDS = {
    r", paper whole(?=,)": ", the paper's decoder with its own marginals and Other",
    r", paper(?=[,:]|$)": ", the paper's decoder",
    r", (ours|default)(?=:|$)": ", our decoder",
    r"as its program": "as in its published program",
    r"δ by its formula": "δ from its formula",
    r"= \.04": "= 0.04",
    r"(?<= )\.05": "0.05",
    r"cells of 3 standard errors": "cells of at least 3 standard errors",
    r"a run$": "per run",
    r"found by a marginal": "detected by the marginal estimates",
    r"Other as the paper's independent bits": "with Other as independent bits (the paper's model)",
}


def _number(value: float) -> str:
    """Return four digits, without an exponent.

    >>> _number(146100.0), _number(6.015e-05), _number(-0.02727)
    ('146,100', '6.015 · 10⁻⁵', '-0.02727')
    """
    if abs(value) >= 1000:
        return f"{float(f'{value:.4g}'):,.0f}"
    digits, _, exponent = f"{value:.4g}".partition("e")
    return f"{digits} · 10{str(int(exponent)).translate(SUPERSCRIPTS)}" if exponent else digits


def _overview(
    rows: Sequence[dict[str, Any]], same: Sequence[str], across: str, shown: dict[str, str]
) -> str:
    """Return rows side by side that differ only in one column.

    Parameters
    ----------
    rows : rows of an experiment's data
    same : columns that name a line of the table
    across : the column whose values stand next to each other
    shown : columns with the figures, and how they are formatted
    """
    values = [v for v in dict.fromkeys(row[across] for row in rows) if v in LABELS]
    lines: dict[tuple[object, ...], dict[object, list[str]]] = {}
    for row in rows:
        figures = [_formatted(row[column], form) for column, form in shown.items()]
        lines.setdefault(tuple(row[column] for column in same), {})[row[across]] = figures
    headings = [LABELS[v] + ": " + LABELS.get(column, column) for v in values for column in shown]
    blank = [""] * len(shown)
    return markdown_table(
        [*(LABELS.get(column, column) for column in same), *headings],
        [[*key, *(f for v in values for f in cells.get(v, blank))] for key, cells in lines.items()],
    )


OVERVIEWS = {
    "tests": (
        ("setting", "N", "strength", "trials"), "test", {"rejected": ".3f", "KS p": ".2g"},
    ),
    "length": (
        ("n", "length"), "reading", {"Hellinger": ".3f", "not found": ".1%"},
    ),
    "means": (
        ("other",), "f", {"bias": ".2f", "summed": ".1f", "covered": ".3f"},
    ),
}  # fmt: skip
LABELS = {
    "setting": "Questions", "strength": "Association", "trials": "Crowds",
    "score": "our score test", "paper": "the paper's", "fused": "ours",
    "rejected": "rejected at 0.05", "KS p": "Kolmogorov–Smirnov p-value",
    "Hellinger": "Hellinger distance", "not found": "not found",
    "length": "String length", "n": "n", 0.0: "f = 0", 0.5: "f = 0.5", "other": "Model of Other",
    "summed": "summed error", "covered": "coverage", "bias": "bias",
}  # fmt: skip


def one_decimal(value: float) -> str:
    """Return a mean with one decimal, halves rounded up.

    >>> one_decimal(75.55), one_decimal(7.0)
    ('75.6', '7.0')
    """
    return str(Decimal(repr(value)).quantize(Decimal("0.1"), ROUND_HALF_UP))


def _formatted(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


@cache
def load(path: Path) -> Any:
    """Return a data file."""
    return json.loads(path.read_text())
