"""Colours: pages and plots share them, they differ for everybody, and text on them can be read."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib import colors

from deniable.render import colours, plots
from deniable.render.html.static_files import static

STATIC = Path(colours.__file__).parent / "html" / "static"
# Machado, Oliveira and Fernandes, 2009: what people without one kind of cones see, in linear RGB.
SIGHT = {
    "all cones": np.eye(3),
    "no L cones": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no M cones": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no S cones": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def linear(colour: str) -> np.ndarray:
    v = np.array(colors.to_rgb(colour))
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = XYZ @ np.clip(rgb, 0, 1) / (0.9505, 1, 1.0888)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(first: str, second: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(c)) for c in (first, second))
    return (high + 0.05) / (low + 0.05)


def nearest(palette: list[str], sight: str) -> float:
    """Return the smallest difference (CIE 1976) of two colours."""
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in palette]
    return float(min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)))


@pytest.mark.parametrize("scheme", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_lines_differ_for_everybody(scheme: dict[str, str], sight: str) -> None:
    series = [scheme[f"s{i}"] for i in range(colours.LINES)]
    assert nearest(series, sight) > 15, "about six just noticeable differences"
    assert all(contrast(colour, scheme["paper"]) >= 3 for colour in series)
    assert nearest([scheme["more3"], scheme["less3"], scheme["none"]], sight) > 15
    assert nearest([scheme["sure"], scheme["unsure"], scheme["truth"]], sight) > 10


def test_red_and_green_would_not_do() -> None:
    assert nearest(["#b35900", "#1a7f37"], "no L cones") < 15


@pytest.mark.parametrize("scheme", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_numbers_on_cells_can_be_read(scheme: dict[str, str]) -> None:
    for step in range(1, colours.STEPS + 1):
        ink = scheme["on" if step == colours.STEPS else "ink"]
        for side in ("more", "less"):
            assert contrast(scheme[f"{side}{step}"], ink) >= 4.5, (side, step)
    assert contrast(scheme["none"], scheme["ink"]) >= 4.5


def test_colours_are_defined_once() -> None:
    assert colours.LIGHT.keys() == colours.DARK.keys()
    for file in STATIC.iterdir():
        if file.suffix in (".css", ".js", ".html") and file.name != "colours.css":
            assert not re.findall(r"#[0-9a-f]{3,6}\b(?=[;\s\"'])", file.read_text()), file.name
    used = set(re.findall(r"var\(--(\w+)\)", static("chart.css") + static("style.css")))
    assert used <= colours.LIGHT.keys()
    sources = Path(colours.__file__).parent.rglob("*.py")
    assert not [
        s for s in sources if s.name != "colours.py" and re.search(r'"#\w{6}"', s.read_text())
    ]


def test_plots_use_the_colours_and_steps_of_pages() -> None:
    scale = plots.heat_scale()
    for residual, name in ((-9, "less4"), (-1.5, "less1"), (0.5, "none"), (3.5, "more3")):
        drawn = colors.to_hex(scale["cmap"](scale["norm"](residual)))
        assert drawn == colours.LIGHT[name], residual
    assert colours.LIGHT["sure"] == plots.DETECTED
