"""Charts as SVG text: intervals, heat maps, trends, stages; without scripts and styles.

Colours are classes of `static/style.css`, for light, dark and print. Every mark carries its numbers
as a <title> and can be reached by keyboard. Labels are decoded strings, which may be hostile: all
text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deniable.formatting import counted, html_text, percent, shortened
from deniable.render.view import Shares
from deniable.results import Discovery, Joint

LABEL, WIDTH, ROW, MARGIN = 190, 740, 22, 26
"""Width of labels and of charts, height of rows, and margin, in user units."""
MAX_LABEL = 22
"""Characters of a label."""
SERIES = 8
"""Number of colours of lines."""


def frame(width: float, height: float, text: str, body: Sequence[str]) -> str:
    """Return an SVG image with its alternative text."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html_text(text)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(body)}</svg>'
    )


def mark(title: str, body: str, kind: str = "mark") -> str:
    """Return a mark whose title is shown when it is pointed at or reached by keyboard."""
    return f'<g class="{kind}" tabindex="0"><title>{html_text(title)}</title>{body}</g>'


def shape(name: str, kind: str, **places: float) -> str:
    """Return an element with its class and coordinates."""
    where = "".join(f' {key}="{value:.1f}"' for key, value in places.items())
    return f'<{name} class="{kind}"{where}/>'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return escaped text at a position."""
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{html_text(content)}</text>"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from low to high.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = max(high - low, 1e-12)
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 15) for i in range(first, last + 1)]


def intervals(shares: Shares) -> str:
    """Return estimates with 95% confidence intervals, one row per value, and the threshold."""
    ends = (*shares.estimate, *shares.low, *shares.high)
    known = [v for v in ends if math.isfinite(v)]
    left, right = min([0.0, *known]), max([shares.threshold or 0.0, 1e-9, *known])
    room = WIDTH - LABEL - 90

    def x(share: float) -> float:
        return LABEL + room * (min(max(share, left), right) - left) / (right - left)

    height = ROW * len(shares.names) + 2 * MARGIN
    body = [
        shape("line", "grid", x1=x(t), x2=x(t), y1=MARGIN - 8, y2=height - 18)
        + text(x(t), height - 4, percent(t), "small", "middle")
        for t in ticks(left, right)
    ]
    if left <= shares.threshold <= right:
        at = x(shares.threshold)
        body.append(shape("line", "threshold", x1=at, x2=at, y1=MARGIN - 8, y2=height - 18))
        body.append(text(at, MARGIN - 12, "detection threshold", "small", "middle"))
    for i, (name, estimate) in enumerate(zip(shares.names, shares.estimate, strict=True)):
        y = MARGIN + ROW * i + ROW / 2
        body.append(text(LABEL - 8, y + 4, _short(name), "label", "end"))
        if not math.isfinite(estimate):
            body.append(text(LABEL + 4, y + 4, "not identified", "small"))
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
        body.append(mark(numbers, drawn))
        body.append(text(WIDTH - 4, y + 4, percent(estimate), "small", "end"))
    return frame(
        WIDTH, height, f"{counted(len(shares.names), 'value')} with 95% confidence intervals", body
    )


def _short(label: str) -> str:
    return shortened(label, MAX_LABEL)


def _with_interval(name: str, estimate: float, low: float, high: float) -> str:
    return f"{name}: {percent(estimate)}, 95% confidence interval {percent(low)} to {percent(high)}"


def heatmap(joint: Joint) -> str:
    """Return the joint table of two questions, coloured by the difference from independence."""
    table, residuals = joint.table, joint.residuals
    rows, columns = joint.labels
    across, down = table.sum(axis=0), table.sum(axis=1)
    wide = max(44.0, min(110.0, (WIDTH - LABEL) / len(columns)))
    longest = max(len(_short(label)) for label in columns)
    top = 20.0 + 5 * longest  # a turned letter is about 6 wide and 5 high
    body = [
        f'<g transform="translate({LABEL + wide * (j + 0.5):.1f} {top - 8:.1f}) rotate(-40)">'
        + text(0, 0, _short(label), "label")
        + "</g>"
        for j, label in enumerate(columns)
    ]
    for i, row in enumerate(rows):
        y = top + 30 * i
        body.append(text(LABEL - 8, y + 19, _short(row), "label", "end"))
        for j, column in enumerate(columns):
            expected = float(down[i] * across[j])
            residual = float(residuals[i, j])
            step = min(4, int(abs(residual)))
            kind = f"cell {'more' if residual > 0 else 'less'}{step}"
            cell = (float(part[i, j]) for part in (table, joint.low, joint.high))
            title = (
                f"{_with_interval(f'{row} and {column}', *cell)}; "
                f"{percent(expected)} if independent ({residual:+.1f} standard errors)"
            )
            at = LABEL + wide * j
            box = shape("rect", kind, x=at, y=y, width=wide - 2, height=28, rx=3)
            middle, share = at + wide / 2 - 1, percent(float(table[i, j]))
            body.append(mark(title, box + text(middle, y + 19, share, f"on{step}", "middle")))
    alternative = (
        f"{joint.questions[0]} by {joint.questions[1]}, table of {len(rows)} by {len(columns)}"
    )
    right = LABEL + wide * len(columns) + max(8, 6 * longest - wide / 2)
    return frame(max(WIDTH, right), top + 30 * len(rows) + 8, alternative, body)


def stages(discovery: Discovery) -> str:
    """Return how many strings each stage of a search kept, on a logarithmic scale."""
    largest = max([1, *(s.kept + s.dropped for s in discovery.stages)])
    room = WIDTH - LABEL - 150

    def reach(count: int) -> float:
        return room * math.log1p(count) / math.log1p(largest)

    body = []
    for i, stage in enumerate(discovery.stages):
        y = 8 + ROW * i
        title = (
            f"{stage.name}: kept {stage.kept:,}, dropped {stage.dropped:,}, {stage.seconds:.2f} s"
        )
        place = {"x": LABEL, "y": y, "height": ROW - 6, "rx": 2}
        bars = shape("rect", "dropped", width=reach(stage.kept + stage.dropped), **place)
        bars += shape("rect", "kept", width=reach(stage.kept), **place)
        body += [text(LABEL - 8, y + 13, _short(stage.name), "label", "end"), mark(title, bars)]
        counted = f"{stage.kept:,} of {stage.kept + stage.dropped:,}"
        body.append(text(WIDTH - 4, y + 13, counted, "small", "end"))
    return frame(WIDTH, ROW * len(discovery.stages) + 16, "Number kept by each stage", body)


def lines(
    days: Sequence[str],
    labels: Sequence[str],
    estimate: Sequence[Sequence[float]],
    low: Sequence[Sequence[float]],
    high: Sequence[Sequence[float]],
) -> str:
    """Return shares over time, one line per value, with 95% confidence intervals as bands.

    Parameters
    ----------
    days
        First day of each period.
    labels
        The values.
    estimate, low, high
        One sequence per value, with one number per period.
    """
    height, bottom = 300.0, 260.0
    known = [v for series in (*low, *high) for v in series if math.isfinite(v)]
    least, most = min([0.0, *known]), max([1e-9, *known])
    room = WIDTH - 70 - 130

    def x(i: int) -> float:
        return 60 + room * (i / max(len(days) - 1, 1))

    def y(share: float) -> float:
        return bottom - (bottom - 16) * (share - least) / (most - least)

    body = [
        shape("line", "grid", x1=60, x2=60 + room, y1=y(t), y2=y(t))
        + text(54, y(t) + 4, percent(t), "small", "end")
        for t in ticks(least, most)
    ]
    step = max(1, len(days) // 8)
    body += [
        text(x(i), bottom + 20, d, "small", "middle") for i, d in enumerate(days) if i % step == 0
    ]
    for k, label in enumerate(labels):
        known_days = [i for i in range(len(days)) if math.isfinite(estimate[k][i])]
        if not known_days:
            continue
        up = " ".join(f"{x(i):.1f},{y(high[k][i]):.1f}" for i in known_days)
        down = " ".join(f"{x(i):.1f},{y(low[k][i]):.1f}" for i in reversed(known_days))
        path = " ".join(f"{x(i):.1f},{y(estimate[k][i]):.1f}" for i in known_days)
        body.append(f'<polygon class="band series{k % SERIES}" points="{up} {down}"/>')
        body.append(f'<polyline class="line series{k % SERIES}" points="{path}"/>')
        for i in known_days:
            numbers = _with_interval(f"{label}, {days[i]}", estimate[k][i], low[k][i], high[k][i])
            dot = shape("circle", f"series{k % SERIES}", cx=x(i), cy=y(estimate[k][i]), r=3.5)
            body.append(mark(numbers, dot))
        last = known_days[-1]
        body.append(
            text(x(last) + 8, y(estimate[k][last]) + 4, _short(label)[:16], f"name{k % SERIES}")
        )
    return frame(
        WIDTH, height, f"{counted(len(labels), 'value')} over {counted(len(days), 'period')}", body
    )
