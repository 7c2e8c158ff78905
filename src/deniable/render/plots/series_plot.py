"""A series: what each period's result says, over the periods."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from deniable.errors import InputError
from deniable.render.plots.marginal_plot import short
from deniable.results import Discovery, Joint, Result, Trend


def draw_series(result: Trend[Result], ax: Axes, *, most: int = 6) -> Axes:
    """Strings found in each period, or how strongly two questions were associated."""
    days = np.array(result.periods, "datetime64[D]")
    if not result.parts:
        raise InputError("a series without a period has no picture")
    if all(isinstance(part, Discovery) for part in result.parts):
        _strings(result, ax, days, most)
    elif all(isinstance(part, Joint) and len(part.questions) == 2 for part in result.parts):
        _strength(result, ax, days)
    else:
        kind = type(result.parts[0]).__name__
        raise InputError(f"there is no picture of a series of {kind}: draw its parts")
    ax.set_title(result.heading(), fontsize=10, loc="left")
    ax.tick_params(axis="x", rotation=30)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _strings(result: Trend[Result], ax: Axes, days: np.ndarray, most: int) -> None:
    shares: dict[str, dict[int, tuple[float, float, float]]] = {}
    for i, part in enumerate(result.parts):
        assert isinstance(part, Discovery)
        for value, *numbers in zip(part.strings, part.estimate, part.low, part.high, strict=True):
            shares.setdefault(value, {})[i] = tuple(100 * float(n) for n in numbers)  # type: ignore[assignment]
    total = {value: sum(n[0] for n in seen.values()) for value, seen in shares.items()}
    for value in sorted(total, key=lambda v: -total[v])[:most]:
        places = sorted(shares[value])
        estimate, low, high = (np.array([shares[value][i][k] for i in places]) for k in range(3))
        ax.errorbar(
            days[places], estimate, yerr=[estimate - low, high - estimate], fmt="o-", ms=3.5,
            lw=1.2, capsize=2, label=short(value),
        )  # fmt: skip
    ax.set_ylabel("clients, % (95% intervals)")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _strength(result: Trend[Result], ax: Axes, days: np.ndarray) -> None:
    seen = [part.cramers_v() for part in result.parts if isinstance(part, Joint)]
    estimate = np.array([v.estimate for v in seen])
    low, high = np.array([v.low for v in seen]), np.array([v.high for v in seen])
    spread = [np.maximum(estimate - low, 0), np.maximum(high - estimate, 0)]
    ax.errorbar(days, estimate, yerr=spread, fmt="o-", ms=4, capsize=3)
    ax.set_ylabel("Cramér's V (95% intervals)")
    ax.set_ylim(0, None)
