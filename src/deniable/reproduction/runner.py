"""The paper's tables and figures, by name: run one, write its data and draw its figure."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from deniable.errors import InputError
from deniable.reproduction import PAPER
from deniable.reproduction.records import Record


def reproduce(name: str, *, quick: bool = False, seed: int | None = None) -> Record:
    """Run one of `PAPER`; with its own seed unless another is given."""
    if name not in PAPER:
        raise InputError(f"expected one of {', '.join(PAPER)}, got {name!r}")
    module = import_module(f"deniable.reproduction.{name}")
    record: Record = module.run_all(quick, module.SEED if seed is None else seed)
    return record


def write(record: Record, folder: Path) -> tuple[Path, Path]:
    """NAME.json and NAME.png in the folder; the figure is drawn from the data alone."""
    from matplotlib import pyplot as plt

    from deniable.reproduction.figures import FIGURES

    data = record.write(folder)
    picture = folder / f"{record.experiment}.png"
    figure = FIGURES[record.experiment](record.data())
    figure.savefig(picture, dpi=100)
    plt.close(figure)
    return data, picture
