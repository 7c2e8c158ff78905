"""The figures of the paper, in its layout, drawn from the data of an experiment alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from experiments.paper.records import Record

Data = Mapping[str, Any]
"""The record of an experiment as JSON: rows by the names of its parts."""
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
}
BLUE, GREY, RED, GREEN, BROWN = "#1f6f8b", "#b8b8b8", "#c4541a", "#3f8f4f", "#8a5a2b"
READING_COLOURS = {
    "paper, δ = .04 as its program": RED,
    "paper, δ by its formula": "#d99a6c",
    "default": BLUE,
    "our protocol": "#123f52",
}
BARS = {
    "truth": ("true", "#4c9a52"),
    "with candidates given, ε = 4.39": ("candidates given, ε = 4.39", "#c9a227"),
    "with candidates given, printed q": ("candidates given, q = .32 as printed", "#6b8fb5"),
    "bigrams, printed q, paper": ("paper's protocol and decoder, as printed", "#d98fa6"),
    "our protocol": ("our protocol, ε = 4.39 in total", BLUE),
}
"""Label and colour of the cases that the chart of domains shows."""


def draw_tables(data: Data) -> Figure:
    """Draw Tables I and II: estimated and drawn shares, in per cent, on a scale of colours."""
    rows = data["table"]
    names = [row["value"] for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
    titles = {"estimate": "Estimated, %", "truth": "Drawn, %"}
    for ax, (what, title) in zip(axes, titles.items(), strict=True):
        table = 100 * np.array([row[what] for row in rows])
        largest = table[:-1, :-1].max()
        ax.imshow(table, cmap="Blues", vmin=0, vmax=largest * 1.4)
        for (i, j), value in np.ndenumerate(table):
            style = {"color": "white" if value > largest else "black", "fontsize": 9}
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", **style)
        ax.set_xticks(range(len(names)), rows[0]["other values"], fontsize=9)
        ax.set_yticks(range(len(names)), names, fontsize=9)
        ax.set_title(title)
    return figure


def draw_other(data: Data) -> Figure:
    """Draw estimates against the truth, without Other above and with it below."""
    figure, axes = plt.subplots(2, 2, figsize=(8, 8))
    titles = {"none": "Other ignored", "mixture": "with Other"}
    panels = product(titles, ("joint", "conditional"))
    for ax, (way, panel) in zip(axes.ravel(), panels, strict=True):
        cells = [c for c in data["points"] if c["other"] == way and c["panel"] == panel]
        truth = 100 * np.array([c["truth"] for c in cells])
        estimate = 100 * np.array([c["estimate"] for c in cells])
        ax.plot(truth.ravel(), estimate.ravel(), "o", ms=3, color=GREY)
        ax.plot(truth[0], estimate.mean(axis=0), "o", ms=5, color=BLUE, label="mean")
        ends = [truth.min() * 0.8, truth.max() * 1.1]
        ax.plot(ends, ends, color=RED, lw=1)
        ax.set_title(f"{titles[way]}, {panel} frequencies", fontsize=10)
        ax.set(xlabel="true, %", ylabel="estimated, %")
    return figure


def draw_playstore(data: Data) -> Figure:
    """Draw the rate of paid apps by category, and the 60 cells of the table, with 95% intervals."""
    cells = sorted(data["cells"], key=lambda c: -c["truth"][0] / sum(c["truth"]))
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 10))
    for i, c in enumerate(cells):
        above.plot([i, i], [100 * c["rate_low"][0], 100 * c["rate_high"][0]], color=BLUE, lw=2)
        above.plot(i, 100 * c["rate"][0], "o", color=BLUE, ms=4)
        above.plot(i, 100 * c["truth"][0] / sum(c["truth"]), "_", color=RED, ms=11, mew=2)
        for side, colour in enumerate((BROWN, GREEN)):
            low, high, truth = (100 * c[name][side] for name in ("low", "high", "truth"))
            below.plot([low, high], [truth, truth], color=colour, lw=1.5)
            below.plot(100 * c["table"][side], truth, "o", color=colour, ms=4)
    names = [c["category"].replace("_", " ").lower() for c in cells]
    above.set_xticks(range(len(cells)), names, rotation=90, fontsize=8)
    above.set_ylabel("paid, % (red: true)")
    most = 100 * max(max(c["truth"]) for c in cells)
    below.plot([0, most], [0, most], color="black", lw=0.6)
    below.set_xlabel("estimated, % of all apps, with 95% intervals (green: free, brown: paid)")
    below.set_ylabel("true, %")
    return figure


def draw_independence(data: Data) -> Figure:
    """Draw sorted p-values against uniform quantiles, one panel per setting without association."""
    settings = {name: rows for name, rows in data.items() if name.endswith("strength=0.0")}
    columns = -(-len(settings) // 2)
    figure, axes = plt.subplots(2, columns, figsize=(3.6 * columns, 7.4))
    colours = {"score": BLUE, "paper": RED, "lrt": GREY}
    for ax, (name, rows) in zip(axes.ravel(), settings.items(), strict=False):
        for row in rows:
            p = np.array(row["p_values"])
            quantiles = (np.arange(len(p)) + 0.5) / len(p)
            ax.plot(quantiles, p, ".", ms=3, color=colours[row["method"]], label=row["method"])
        ax.plot([0, 1], [0, 1], color="black", lw=0.6)
        ax.set_title(name.removesuffix(", strength=0.0"), fontsize=9)
    axes.ravel()[0].legend()
    for ax in axes.ravel()[len(settings) :]:
        ax.set_visible(False)
    figure.supxlabel("uniform quantiles")
    figure.supylabel("p-values")
    return figure


def draw_hashes(data: Data) -> Figure:
    """Draw the highest ranks: the truth as bars, mean estimates by reading as points.

    The area of a point is the share of crowds that discovered the string of this rank.
    """
    rows = data["ranks"][:25]
    figure, ax = plt.subplots(figsize=(9, 4.4))
    ranks = [r["rank"] for r in rows]
    ax.bar(ranks, [100 * r["truth"] for r in rows], color="#dcdcdc", label="true")
    for shift, (name, colour) in enumerate(READING_COLOURS.items()):
        seen = [r for r in rows if r.get(name) is not None]
        if seen:
            x = np.array([r["rank"] for r in seen]) + 0.16 * (shift - 1.5)
            area = [30 * r[f"{name}: found"] for r in seen]
            ax.scatter(x, [100 * r[name] for r in seen], area, color=colour, label=name)
    ax.set(xticks=ranks, xlabel="rank (area of points: share of crowds that found the string)")
    ax.set_ylabel("% of clients, mean over crowds")
    ax.legend()
    return figure


def draw_urls(data: Data) -> Figure:
    """Draw the 30 most common domains: the truth, and the estimate of each case that found them."""
    rows = data["bars"]
    figure, ax = plt.subplots(figsize=(8, 13))
    height = 0.8 / len(BARS)
    for place, (key, (label, colour)) in enumerate(BARS.items()):
        y = np.arange(len(rows)) - 0.4 + (place + 0.5) * height
        width = [100 * (r.get(key) or 0.0) for r in rows]
        ax.barh(y, width, height, color=colour, label=label)
    ax.set_yticks(range(len(rows)), [r["value"] for r in rows], fontsize=9)
    ax.set(xlabel="% of clients", ylim=(len(rows) - 0.4, -0.6))
    ax.legend(loc="lower right")
    return figure


def draw_length(data: Data) -> Figure:
    """Draw the Hellinger distance and the strings not found, against the length of strings."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
    for (reading, line, name), (n, colour) in product(
        (("paper", "o-", "paper"), ("fused", "o--", "ours")),
        {2: BLUE, 3: RED, 4: GREEN}.items(),
    ):
        rows = [r for r in data["length"] if r["n"] == n and r["reading"] == reading]
        lengths, style = [r["length"] for r in rows], {"color": colour, "ms": 5}
        for ax, what in zip(axes, ("Hellinger", "not found"), strict=True):
            ax.plot(lengths, [r[what] for r in rows], line, label=f"n = {n}, {name}", **style)
        for r in rows if reading == "paper" else ():
            x = [r["length"]] * len(r["each"])
            axes[0].plot(x, r["each"], ".", color=colour, ms=3, alpha=0.15)
    for ax, what in zip(axes, ("Hellinger distance", "false negative rate"), strict=True):
        ax.set(xlabel="length of strings", ylabel=what)
    axes[1].legend(fontsize=8)
    return figure


def draw_complexity(data: Data) -> Figure:
    """Draw the time of each phase against clients, size of the dictionary, and length."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharey=True)
    labels = {
        "reports": "number of clients",
        "alphabet": "entries in the dictionary of bigrams",
        "length": "length of strings",
    }
    colours = {"marginals": GREY, "co-occurrences": BLUE, "cliques": RED, "all": "black"}
    for ax, (size, label) in zip(axes, labels.items(), strict=True):
        rows = [row for row in data["times"] if row["size"] == size]
        x = [row["value"] ** 2 if size == "alphabet" else row["value"] for row in rows]
        for phase, colour in colours.items():
            ax.loglog(x, [row[phase] for row in rows], "o-", ms=4, color=colour, label=phase)
            for at, row in zip(x, rows, strict=True):
                each = row["each"][phase]
                ax.plot([at] * len(each), each, ".", ms=3, color=colour, alpha=0.4)
        ax.set_xlabel(label)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    return figure


def draw_threshold(data: Data) -> Figure:
    """Draw the Hellinger distance against the number of edges, one cluster per threshold."""
    figure, ax = plt.subplots(figsize=(7, 4.6))
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(data["threshold"])))
    for row, colour in zip(data["threshold"], colours, strict=True):
        ax.plot(row["each edges"], row["each"], "o", ms=4, alpha=0.5, color=colour)
        marker = {"ms": 8, "color": colour, "mec": "black"}
        label = f"{row['threshold / delta']:g} δ"
        ax.plot(row["edges"], row["Hellinger"], "D", **marker, label=label)
    ax.set(xlabel="edges of the graph of bigrams", ylabel="Hellinger distance")
    ax.legend(title="threshold")
    return figure


def draw_distributions(data: Data) -> Figure:
    """Draw each shape: the truth by rank as steps, estimates of discovered strings as points."""
    shapes = list(dict.fromkeys(row["weights"] for row in data["ranks"]))
    figure, axes = plt.subplots(2, 2, figsize=(10, 7))
    for ax, shape in zip(axes.ravel(), shapes, strict=True):
        rows = [r for r in data["ranks"] if r["weights"] == shape]
        truth = 100 * np.array(rows[0]["truth"])
        ax.step(range(len(truth)), truth, where="mid", color="#7a7a7a", label="true")
        for shift, row in enumerate(rows):
            found = 100 * np.sort(row["estimate"])[::-1][: len(truth)]
            places, reading = np.arange(len(found)) + 0.25 * (shift - 1), row["reading"]
            ax.plot(places, found, "o", ms=3.5, color=READING_COLOURS[reading], label=reading)
        name = "the hash trial's" if shape == "power" else shape
        ax.set_title(f"{name}: estimates of discovered strings, by rank", fontsize=10)
        ax.set(ylabel="% of clients", ylim=(0, None))
    axes[0, 0].legend(fontsize=8)
    return figure


FIGURES: dict[str, Callable[[Data], Figure]] = {
    "tables": draw_tables,
    "other": draw_other,
    "playstore": draw_playstore,
    "independence": draw_independence,
    "hashes": draw_hashes,
    "urls": draw_urls,
    "length": draw_length,
    "complexity": draw_complexity,
    "threshold": draw_threshold,
    "distributions": draw_distributions,
}


def write(record: Record, folder: Path) -> tuple[Path, Path]:
    """Write NAME.json and NAME.png to the folder; the figure is drawn from the data alone."""
    data = record.write(folder)
    picture = folder / f"{record.experiment}.png"
    with plt.rc_context(STYLE):
        figure = FIGURES[record.experiment](record.data())
        figure.savefig(picture, dpi=100)
    plt.close(figure)
    return data, picture
