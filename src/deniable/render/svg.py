"""Charts as SVG text: intervals, heat maps, trends, stages. `svg_marks` has their parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from deniable.formatting import counted, percent, shortened
from deniable.render.colours import LINES, STEPS
from deniable.render.svg_marks import (
    WIDE,
    Layout,
    frame,
    mark,
    shape,
    text,
    text_within,
    tick_label,
    ticks,
)  # fmt: skip
from deniable.render.view import Shares
from deniable.results import Discovery, Joint

MARGIN = 26
"""Space above and below the rows of a chart, in user units."""
MIN_CELL, MAX_CELL = 50.0, 110.0
"""Smallest and largest width of a cell of a heat map."""
HEAT_LABELS = {True: (104.0, 13), False: (190.0, 22)}
"""Width of the row labels of a heat map and characters of all its labels, by narrowness."""


class _Rows:
    """Positions in a chart of rows: labels on the left, or above the rows in a narrow chart."""

    def __init__(self, layout: Layout, count: int, top: float, value: float) -> None:
        """Place `count` rows below `top`, with `value` units for a number on the right."""
        self.layout, self.top = layout, top
        self.step = 38 if layout.narrow else 22
        self.left = layout.label or 6
        self.right = layout.width - (6 if layout.narrow else value)
        self.bottom = top + self.step * count
        self.height = self.bottom + 40  # ticks, and the title of the axis

    def y(self, row: int) -> float:
        """Return the middle of the row's bar."""
        return self.top + self.step * row + (27 if self.layout.narrow else 11)

    def texts(self, row: int, label: str, value: str) -> str:
        """Return the label of a row and its number."""
        at = self.y(row) - (11 if self.layout.narrow else -4)
        start = (0, "start") if self.layout.narrow else (self.left - 8, "end")
        name = text(start[0], at, shortened(label, self.layout.longest), "label", start[1])
        return name + text(self.layout.width - 2, at, value, "small", "end")

    def axis(self, places: Sequence[tuple[float, str]], title: str) -> str:
        """Return grid lines with labels below them, and the title of the axis."""
        ends = 0.0, self.layout.width
        lines = (
            shape("line", "grid", x1=x, x2=x, y1=self.top, y2=self.bottom + 4)
            + text_within(x, self.bottom + 17, label, ends)
            for x, label in places
        )
        middle = (self.left + self.right) / 2
        return "".join(lines) + text_within(middle, self.bottom + 34, title, ends)


def intervals(shares: Shares, layout: Layout = WIDE) -> str:
    """Return estimates with 95% confidence intervals, one row per value, and the threshold."""
    ends = (*shares.estimate, *shares.low, *shares.high, shares.threshold)
    known = [v for v in ends if math.isfinite(v)]
    left, right = min([0.0, *known]), max([0.0, *known]) or 1.0
    rows = _Rows(layout, len(shares.names), MARGIN, 70)

    def x(share: float) -> float:
        inside = min(max(share, left), right)
        return rows.left + (rows.right - rows.left) * (inside - left) / (right - left)

    places = [(x(t), tick_label(t)) for t in ticks(left, right, 4 if layout.narrow else 6)]
    body = [
        rows.axis(places, f"share of {shares.whom}, with 95% confidence intervals"),
        shape("line", "zero", x1=x(0), x2=x(0), y1=rows.top, y2=rows.bottom + 4),
    ]
    if math.isfinite(shares.threshold):
        at = x(shares.threshold)
        body.append(shape("line", "threshold", x1=at, x2=at, y1=rows.top - 8, y2=rows.bottom + 4))
        body.append(text_within(at, rows.top - 12, "detection threshold", (0, layout.width)))
    for i, (name, estimate) in enumerate(zip(shares.names, shares.estimate, strict=True)):
        y = rows.y(i)
        if not math.isfinite(estimate):
            body += [rows.texts(i, name, ""), text(rows.left + 4, y + 4, "not identified", "small")]
            continue
        kind = "sure" if shares.detected[i] else "unsure"
        low, high = shares.low[i], shares.high[i]
        drawn = shape("line", f"{kind} bar", x1=x(low), x2=x(high), y1=y, y2=y)
        drawn += shape("circle", kind, cx=x(estimate), cy=y, r=4)
        numbers = _with_interval(name, estimate, low, high)
        if shares.truth is not None:
            at = x(shares.truth[i])
            drawn += shape("line", "truth", x1=at, x2=at, y1=y - 7, y2=y + 7)
            numbers += f", truth {percent(shares.truth[i])}"
        body += [rows.texts(i, name, percent(estimate)), mark(numbers, drawn)]
    count = counted(len(shares.names), "value")
    return frame(layout.width, rows.height, f"{count} with 95% confidence intervals", body)


def _with_interval(name: str, estimate: float, low: float, high: float) -> str:
    return f"{name}: {percent(estimate)}, 95% confidence interval {percent(low)} to {percent(high)}"


def heatmap(joint: Joint, layout: Layout = WIDE) -> str:
    """Return the joint table of two questions, coloured by the difference from independence."""
    names, questions = joint.labels, joint.questions
    arrays = [joint.table, joint.low, joint.high, joint.residuals]
    if layout.narrow and len(names[1]) > len(names[0]):
        names, questions, arrays = names[::-1], questions[::-1], [a.T for a in arrays]
    table, *_, residuals = arrays
    label_width, longest = HEAT_LABELS[layout.narrow]
    rows, columns = ([shortened(label, longest) for label in axis] for axis in names)
    across, down = table.sum(axis=0), table.sum(axis=1)
    reach = 5.8 * max(map(len, columns))  # of a turned label, to the right and upwards
    fitting = (layout.width - label_width - reach) / (len(columns) - 0.5)
    wide = max(MIN_CELL, min(MAX_CELL, fitting))
    top = 36.0 + reach
    body = [text(0, 12, f"rows: {questions[0]}; columns: {questions[1]}", "small")]
    body += [
        f'<g transform="translate({label_width + wide * (j + 0.5):.1f} {top - 8:.1f}) rotate(-40)">'
        + text(0, 0, label, "label")
        + "</g>"
        for j, label in enumerate(columns)
    ]
    for i, (row, row_name) in enumerate(zip(rows, names[0], strict=True)):
        y = top + 30 * i
        body.append(text(label_width - 8, y + 19, row, "label", "end"))
        for j, column_name in enumerate(names[1]):
            residual = float(residuals[i, j])
            step = min(STEPS, int(abs(residual))) if math.isfinite(residual) else 0
            cell = (float(part[i, j]) for part in arrays[:3])
            title = _with_interval(f"{row_name} and {column_name}", *cell)
            if math.isfinite(residual):
                expected = percent(float(down[i] * across[j]))
                title += f"; {expected} if independent ({residual:+.1f} standard errors)"
            at = label_width + wide * j
            kind = f"cell {'more' if residual > 0 else 'less'}{step}"
            box = shape("rect", kind, x=at, y=y, width=wide - 2, height=28, rx=3)
            middle, share = at + wide / 2 - 1, float(table[i, j])
            number = f"{100 * share:.1f}%" if layout.narrow else percent(share)
            body.append(mark(title, box + text(middle, y + 19, number, f"on{step}", "middle")))
    bottom = top + 30 * len(rows)
    body.append(_heat_key(bottom + 16, layout.width))
    alternative = f"{' by '.join(questions)}, table of {len(rows)} by {len(columns)}"
    right = label_width + wide * len(columns) + max(8, reach - wide / 2)
    return frame(max(layout.width, right), bottom + 70, alternative, body)


def _heat_key(y: float, width: float) -> str:
    """Return the colours of a heat map with the differences that they stand for."""
    kinds = [f"less{s}" for s in range(STEPS, 0, -1)] + [f"more{s}" for s in range(STEPS + 1)]
    size = min(44.0, width / len(kinds))
    left = (width - size * len(kinds)) / 2
    boxes = (
        shape("rect", kind, x=left + size * i, y=y, width=size - 1, height=12)
        for i, kind in enumerate(kinds)
    )
    bounds = [n for n in range(-STEPS, STEPS + 1) if n]
    labels = (
        text(left + size * (i + 1), y + 27, f"{n:+d}".replace("-", "−"), "small", "middle")
        for i, n in enumerate(bounds)
    )
    title = "less ← standard errors from independence → more"
    return "".join((*boxes, *labels, text_within(width / 2, y + 46, title, (0, width))))


def stages(discovery: Discovery, layout: Layout = WIDE) -> str:
    """Return how many strings each stage of a search kept, on a logarithmic scale."""
    largest = max([1, *(s.kept + s.dropped for s in discovery.stages)])
    rows = _Rows(layout, len(discovery.stages), 6, 190)

    def reach(count: int) -> float:
        return (rows.right - rows.left) * math.log1p(count) / math.log1p(largest)

    step = 1 if largest < 10_000 else 2
    powers = range(step, math.floor(math.log10(largest)) + 1, step)
    places = [(rows.left + reach(n), _count_label(n)) for n in (0, *(10**k for k in powers))]
    body = [rows.axis(places, "number of strings, on a logarithmic scale")]
    for i, stage in enumerate(discovery.stages):
        total = stage.kept + stage.dropped
        title = (
            f"{stage.name}: kept {stage.kept:,}, dropped {stage.dropped:,}, {stage.seconds:.2f} s"
        )
        place = {"x": rows.left, "y": rows.y(i) - 7, "height": 14.0, "rx": 2.0}
        bars = shape("rect", "dropped", width=reach(total), **place)
        bars += shape("rect", "kept", width=reach(stage.kept), **place)
        body += [rows.texts(i, stage.name, f"{stage.kept:,} of {total:,}"), mark(title, bars)]
    return frame(layout.width, rows.height, "Number kept by each stage", body)


def _count_label(count: int) -> str:
    """Return the label of a tick: 10,000 or 1 M."""
    return f"{count:,}" if count < 1_000_000 else f"{count // 1_000_000:,} M"


@dataclass(frozen=True)
class ShareScale:
    """A vertical axis of shares; title : what is drawn."""

    title: str

    def ends(self, known: Sequence[float]) -> tuple[float, float]:
        """Return the ends of the axis, which include 0."""
        return min([0.0, *known]), max([0.0, *known]) or 1.0

    def tick(self, value: float) -> str:
        """Return the label of a tick."""
        return tick_label(value)

    def describe(self, name: str, estimate: float, low: float, high: float) -> str:
        """Return an estimate with its interval."""
        return _with_interval(name, estimate, low, high)


class NumberScale(ShareScale):
    """A vertical axis of numbers, which need not include 0."""

    def ends(self, known: Sequence[float]) -> tuple[float, float]:
        """Return the ends of the axis."""
        least, most = min(known, default=0.0), max(known, default=1.0)
        return (least, most) if least < most else (least - 0.5, most + 0.5)

    def tick(self, value: float) -> str:
        """Return the label of a tick."""
        return f"{value:g}"

    def describe(self, name: str, estimate: float, low: float, high: float) -> str:
        """Return an estimate with its interval."""
        return f"{name}: {estimate:.4g}, 95% confidence interval {low:.4g} to {high:.4g}"


def wants_logarithm(edges: Sequence[float]) -> bool:
    """Return whether bins are so unequal that a logarithmic axis shows them better."""
    widths = [second - first for first, second in pairwise(edges)]
    return edges[0] > 0 and max(widths) > 10 * min(widths)


def histogram(shares: Shares, edges: Sequence[float], title: str, layout: Layout = WIDE) -> str:
    """Return shares of bins as bars as wide as the bins, with 95% confidence intervals.

    Parameters
    ----------
    shares
        The bins, in their order.
    edges
        Edges of the bins.
    title
        Title of the horizontal axis.
    layout
        Size of the chart.
    """
    top, bottom, left, right = 24.0, 264.0, 50.0, layout.width - 16
    scale = ShareScale(f"share of {shares.whom} per bin, with 95% confidence intervals")
    known = [v for v in (*shares.low, *shares.high, *(shares.truth or ())) if math.isfinite(v)]
    least, most = scale.ends(known)
    position = math.log if wants_logarithm(edges) else float
    first, last = position(edges[0]), position(edges[-1])

    def x(value: float) -> float:
        return left + (right - left) * (position(value) - first) / (last - first)

    def y(share: float) -> float:
        return bottom - (bottom - top) * (share - least) / (most - least)

    body = [text(0, 12, scale.title, "small")]
    body += [
        shape("line", "grid" if t else "zero", x1=left, x2=right, y1=y(t), y2=y(t))
        + text(left - 6, y(t) + 4, scale.tick(t), "small", "end")
        for t in ticks(least, most)
    ]
    step = math.ceil(len(edges) / (5 if layout.narrow else 11))
    body += [text_within(x(e), bottom + 18, f"{e:g}", (0, layout.width)) for e in edges[::step]]
    body.append(text_within((left + right) / 2, bottom + 38, title, (0, layout.width)))
    for i, (start, end) in enumerate(pairwise(edges)):
        estimate, low, high = shares.estimate[i], shares.low[i], shares.high[i]
        if not math.isfinite(estimate):
            continue
        numbers = scale.describe(shares.names[i], estimate, low, high)
        kind, ends = "kept" if shares.detected[i] else "dropped", sorted((y(estimate), y(0)))
        place = {"x": x(start) + 0.5, "width": max(x(end) - x(start) - 1, 0.5)}
        drawn = shape("rect", kind, y=ends[0], height=ends[1] - ends[0], **place)
        middle = (x(start) + x(end)) / 2
        drawn += shape("line", "zero", x1=middle, x2=middle, y1=y(low), y2=y(high))
        if shares.truth is not None:
            at = y(shares.truth[i])
            drawn += shape("line", "truth", x1=x(start), x2=x(end), y1=at, y2=at)
            numbers += f", truth {percent(shares.truth[i])}"
        body.append(mark(numbers, drawn))
    count = counted(len(shares.names), "bin")
    return frame(layout.width, bottom + 48, f"Histogram of {count}", body)


def lines(
    days: Sequence[str],
    labels: Sequence[str],
    numbers: tuple[Sequence[Sequence[float]], Sequence[Sequence[float]], Sequence[Sequence[float]]],
    layout: Layout,
    scale: ShareScale,
) -> str:
    """Return numbers over time, one line per value, with 95% confidence intervals as bands.

    Parameters
    ----------
    days
        First day of each period.
    labels
        The values.
    numbers
        Estimates and both ends of their intervals: one sequence per value each, with one number per
        period.
    layout
        Size of the chart; a narrow one has a legend below it instead of names beside the lines.
    scale
        What the numbers are.
    """
    estimate, low, high = numbers
    top, bottom, left = 24.0, 264.0, 50.0
    right = layout.width - (36 if layout.narrow else 160)
    known = [v for series in (*low, *high) for v in series if math.isfinite(v)]
    least, most = scale.ends(known)

    def x(i: int) -> float:
        return left + (right - left) * (i / (len(days) - 1) if len(days) > 1 else 0.5)

    def y(share: float) -> float:
        return bottom - (bottom - top) * (share - least) / (most - least)

    body = [text(0, 12, scale.title, "small")]
    body += [
        shape("line", "grid" if t else "zero", x1=left, x2=right, y1=y(t), y2=y(t))
        + text(left - 6, y(t) + 4, scale.tick(t), "small", "end")
        for t in ticks(least, most)
    ]
    step = math.ceil(len(days) / (3 if layout.narrow else 7))
    body += [text(x(i), bottom + 20, days[i], "small", "middle") for i in range(0, len(days), step)]
    ends: list[tuple[float, int]] = []
    for k, label in enumerate(labels):
        known_days = [i for i in range(len(days)) if math.isfinite(estimate[k][i])]
        if not known_days:
            continue
        kind = f"series{k % LINES}"
        up = " ".join(f"{x(i):.1f},{y(high[k][i]):.1f}" for i in known_days)
        down = " ".join(f"{x(i):.1f},{y(low[k][i]):.1f}" for i in reversed(known_days))
        path = " ".join(f"{x(i):.1f},{y(estimate[k][i]):.1f}" for i in known_days)
        body.append(f'<polygon class="band {kind}" points="{up} {down}"/>')
        if len(known_days) == 1:  # a band of one period has no width
            (i,) = known_days
            ends_of_bar = {"y1": y(low[k][i]), "y2": y(high[k][i])}
            body.append(shape("line", f"line {kind}", x1=x(i), x2=x(i), **ends_of_bar))
        body.append(f'<polyline class="line {kind}" points="{path}"/>')
        for i in known_days:
            ends_of_interval = low[k][i], high[k][i]
            told = scale.describe(f"{label}, {days[i]}", estimate[k][i], *ends_of_interval)
            body.append(mark(told, shape("circle", kind, cx=x(i), cy=y(estimate[k][i]), r=3.5)))
        ends.append((y(estimate[k][known_days[-1]]), k))
    legend, height = _legend(ends, labels, (right, bottom), layout)
    title = f"{counted(len(labels), 'value')} over {counted(len(days), 'period')}"
    return frame(layout.width, height, title, [*body, *legend])


def _legend(
    ends: list[tuple[float, int]],
    labels: Sequence[str],
    corner: tuple[float, float],
    layout: Layout,
) -> tuple[list[str], float]:
    """Return the names of the lines, and the height of the chart with them.

    Names stand beside the ends of their lines, moved up where they would overlap, or below a
    narrow chart. `ends` are pairs of height and index, `corner` is the lower right one of the plot.
    """
    right, bottom = corner
    if not layout.narrow:  # from below, so that no name stands below the plot
        at, placed = bottom + 15, []
        for end, k in sorted(ends, reverse=True):
            at = min(end, at - 15)
            placed.append((at, k))
        ends = placed[::-1]
    made, at = [], bottom + 26 if layout.narrow else 0.0
    for end, k in ends:
        at = at + 20 if layout.narrow else end
        start = 0.0 if layout.narrow else right + 8
        longest = layout.longest if layout.narrow else 18
        made.append(shape("rect", f"series{k % LINES}", x=start, y=at - 5, width=10, height=10))
        made.append(text(start + 16, at + 4, shortened(labels[k], longest), "label"))
    return made, max(bottom + 30, at + 12)
