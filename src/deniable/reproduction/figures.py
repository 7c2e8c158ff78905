"""The paper's figures, from the experiments' data, in its layout: data in, figure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Data = Mapping[str, Any]
"""An experiment's record as JSON: rows by the names of its parts."""
BLUE, GREY, RED, GREEN, BROWN = "#1f6f8b", "#b8b8b8", "#c4541a", "#3f8f4f", "#8a5a2b"
CENTRED = {"ha": "center", "va": "center"}


def draw_tables(data: Data) -> Figure:
    """Tables I and II: estimated and drawn, in per cent, each cell in its colour."""
    rows = data["table"]
    names = [row["value"] for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for ax, what in zip(axes, ("estimate", "truth"), strict=True):
        table = 100 * np.array([row[what] for row in rows])
        ax.imshow(table, cmap="Blues", vmin=0, vmax=table[:-1, :-1].max() * 1.4)
        for (i, j), value in np.ndenumerate(table):
            colour = "white" if value > table[:-1, :-1].max() else "black"
            ax.text(j, i, f"{value:.2f}", **CENTRED, fontsize=9, color=colour)
        ax.set_xticks(range(len(names)), rows[0]["other values"], fontsize=9)
        ax.set_yticks(range(len(names)), names, fontsize=9)
        ax.set_title({"estimate": "Estimated, %", "truth": "Drawn, %"}[what], loc="left")
    return figure


def draw_other(data: Data) -> Figure:
    """Estimates against truth, without Other above and with it below."""
    figure, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
    for row, (way, title) in zip(
        axes, (("none", "Other ignored"), ("mixture", "with Other")), strict=True
    ):
        for ax, panel in zip(row, ("joint", "conditional"), strict=True):
            cells = [c for c in data["points"] if c["other"] == way and c["panel"] == panel]
            truth = 100 * np.array([c["truth"] for c in cells])
            estimate = 100 * np.array([c["estimate"] for c in cells])
            ax.plot(truth.ravel(), estimate.ravel(), "o", ms=3, color=GREY)
            ax.plot(truth[0], estimate.mean(axis=0), "o", ms=5, color=BLUE, label="mean")
            low, high = truth.min() * 0.8, truth.max() * 1.1
            ax.plot([low, high], [low, high], color=RED, lw=1)
            ax.set_title(f"{title}, {panel} frequencies", fontsize=10, loc="left")
            ax.set_xlabel("true, %")
            ax.set_ylabel("estimated, %")
            _plain(ax)
    return figure


def draw_playstore(data: Data) -> Figure:
    """Rate of paid apps by category, and the table's 60 cells, with 95% intervals."""
    cells = sorted(data["cells"], key=lambda c: -c["truth"][0] / sum(c["truth"]))
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 10), layout="constrained")
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
    _plain(above, below)
    return figure


def draw_independence(data: Data) -> Figure:
    """Sorted p-values against uniform quantiles, one panel for each setting without association."""
    settings = {name: rows for name, rows in data.items() if name.endswith("strength=0.0")}
    columns = -(-len(settings) // 2)
    figure, axes = plt.subplots(2, columns, figsize=(3.6 * columns, 7.4), layout="constrained")
    colours = {"score": BLUE, "paper": RED, "lrt": GREY}
    for ax, (name, rows) in zip(axes.ravel(), settings.items(), strict=False):
        for row in rows:
            p = np.array(row["p_values"])
            quantiles = (np.arange(len(p)) + 0.5) / len(p)
            ax.plot(quantiles, p, ".", ms=3, color=colours[row["method"]], label=row["method"])
        ax.plot([0, 1], [0, 1], color="black", lw=0.6)
        ax.set_title(name.removesuffix(", strength=0.0"), fontsize=9, loc="left")
    axes.ravel()[0].legend(frameon=False)
    for ax in axes.ravel()[len(settings) :]:
        ax.set_visible(False)
    figure.supxlabel("uniform quantiles")
    figure.supylabel("p-values")
    return figure


COLOURS = {
    "paper, δ = .04 as its program": RED,
    "paper, δ by its formula": "#d99a6c",
    "default": BLUE,
    "our protocol": "#123f52",
}


def draw_hashes(data: Data) -> Figure:
    """The most frequent strings: truth as steps, every reading's estimates as points."""
    rows = data["strings"][:22]
    figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
    ax.bar(range(len(rows)), [100 * r["truth"] for r in rows], color="#dcdcdc", label="true")
    for shift, (name, colour) in enumerate(COLOURS.items()):
        some = [(i, 100 * r[name]) for i, r in enumerate(rows) if r.get(name) is not None]
        if some:
            x, y = zip(*some, strict=True)
            ax.plot(np.array(x) + 0.16 * (shift - 1.5), y, "o", ms=5, color=colour, label=name)
    ax.set_xticks(range(len(rows)), [r["value"] for r in rows], rotation=90, family="monospace")
    ax.set_ylabel("% of clients")
    ax.legend(frameon=False)
    _plain(ax)
    return figure


BARS = {
    "truth": ("true", "#4c9a52"),
    "with the dictionary, ε = 4.39": ("dictionary known, ε = 4.39", "#c9a227"),
    "with the dictionary, printed q": ("dictionary known, q = .32 as printed", "#6b8fb5"),
    "bigrams, printed q, paper": ("paper's protocol and decoder, as printed", "#d98fa6"),
    "our protocol": ("our protocol, ε = 4.39 in all", BLUE),
}


def draw_urls(data: Data) -> Figure:
    """The top 30 domains: true frequency and every scenario's estimate; no bar, not found."""
    rows = data["bars"]
    figure, ax = plt.subplots(figsize=(8, 13), layout="constrained")
    height = 0.8 / len(BARS)
    for place, (key, (label, colour)) in enumerate(BARS.items()):
        y = np.arange(len(rows)) - 0.4 + (place + 0.5) * height
        width = [100 * (r.get(key) or 0.0) for r in rows]
        ax.barh(y, width, height, color=colour, label=label)
    ax.set_yticks(range(len(rows)), [r["value"] for r in rows], fontsize=9)
    ax.invert_yaxis()
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlabel("% of clients")
    ax.legend(frameon=False, loc="lower right")
    _plain(ax)
    return figure


def draw_length(data: Data) -> Figure:
    """Hellinger distance, and strings not found, against the length; every trial in light."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    rows = data["length"]
    for reading, line, name in (("paper", "o-", "paper"), ("fused", "o--", "ours")):
        for n, colour in {2: BLUE, 3: RED, 4: GREEN}.items():
            chosen = [r for r in rows if r["n"] == n and r["reading"] == reading]
            lengths, style = [r["length"] for r in chosen], {"color": colour, "ms": 5}
            for ax, what in zip(axes, ("Hellinger", "not found"), strict=True):
                values = [r[what] for r in chosen]
                ax.plot(lengths, values, line, label=f"n = {n}, {name}", **style)
            for r in chosen if reading == "paper" else ():
                x = [r["length"]] * len(r["each"])
                axes[0].plot(x, r["each"], ".", color=colour, ms=3, alpha=0.15)
    for ax, what in zip(axes, ("Hellinger distance", "false negative rate"), strict=True):
        ax.set_xlabel("length of strings")
        ax.set_ylabel(what)
    axes[1].legend(frameon=False, fontsize=8)
    _plain(*axes)
    return figure


def draw_threshold(data: Data) -> Figure:
    """Hellinger distance against edges, one cluster a threshold."""
    figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(data["threshold"])))
    for row, colour in zip(data["threshold"], colours, strict=True):
        ax.plot(row["each edges"], row["each"], "o", ms=4, alpha=0.5, color=colour)
        marker = {"ms": 8, "color": colour, "mec": "black"}
        label = f"{row['threshold / delta']:g} δ"
        ax.plot(row["edges"], row["Hellinger"], "D", **marker, label=label)
    ax.set_xlabel("edges of the graph of bigrams")
    ax.set_ylabel("Hellinger distance")
    ax.legend(frameon=False, title="threshold")
    _plain(ax)
    return figure


def draw_distributions(data: Data) -> Figure:
    """Every shape: truth by rank as steps, estimates of what was found as points."""
    shapes = list(dict.fromkeys(row["weights"] for row in data["ranks"]))
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for ax, shape in zip(axes.ravel(), shapes, strict=True):
        rows = [r for r in data["ranks"] if r["weights"] == shape]
        truth = 100 * np.array(rows[0]["truth"])
        ax.step(range(len(truth)), truth, where="mid", color="#7a7a7a", label="true")
        for shift, row in enumerate(rows):
            found = 100 * np.sort(row["estimate"])[::-1][: len(truth)]
            places, reading = np.arange(len(found)) + 0.25 * (shift - 1), row["reading"]
            ax.plot(places, found, "o", ms=3.5, color=COLOURS[reading], label=reading)
        name = "the hash trial's" if shape == "power" else shape
        ax.set_title(f"{name}: estimates of what was found, by rank", fontsize=10, loc="left")
        ax.set_ylabel("% of clients")
        ax.set_ylim(0, None)
    axes[0, 0].legend(frameon=False, fontsize=8)
    _plain(*axes.ravel())
    return figure


def _plain(*axes: Axes) -> None:
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)


FIGURES: dict[str, Callable[[Data], Figure]] = {
    "tables": draw_tables,
    "other": draw_other,
    "playstore": draw_playstore,
    "independence": draw_independence,
    "hashes": draw_hashes,
    "urls": draw_urls,
    "length": draw_length,
    "threshold": draw_threshold,
    "distributions": draw_distributions,
}
