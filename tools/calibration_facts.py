"""Facts from docs/results/calibration: what the experiments of `make calibrate` printed."""

from __future__ import annotations

from experiments.calibrate import FOLDER, kept
from experiments.promises import MARK, Promise

from tools.markdown import markdown_table

HEADINGS = ("Promise", "Target", "Measured, lowest to highest", "Verdict", "Experiment")


def calibration_fact(name: str) -> str:
    """Return the table of all promises, or the output of one experiment."""
    if name == "promises":
        return markdown_table(HEADINGS, [row for each in kept() for row in _promises(each)])
    shown = [line for line in _lines(name) if not line.startswith(MARK)]
    return "```text\n" + "\n".join(shown).rstrip() + "\n```"


def _promises(name: str) -> list[list[str]]:
    kept = [Promise.read(line) for line in _lines(name) if line.startswith(MARK)]
    link = f"[{name.replace('_', ' ')}](#{name})"
    return [[p.sentence, p.target, p.measured, p.verdict, link] for p in kept]


def _lines(name: str) -> list[str]:
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
