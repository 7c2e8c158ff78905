"""Apps of an app store by category, and whether they are free: a real table for trials.

9,488 apps of public Google Play metadata, in 30 categories; another sample than the paper's ("Play
Store" in its evaluation), which was never published.
"""

from importlib.resources import as_file, files

from deniable.errors import InputError
from deniable.simulation.populations import JointPopulation, table_from_csv


def play_store() -> JointPopulation:
    """30 categories × paid (False, True): questions `category`, a choice, and `paid`, a boolean.

    >>> play_store().table.shape
    (30, 2)
    """
    with as_file(files("deniable.simulation") / "data" / "play_store_30x2.csv") as path:
        counts = table_from_csv(path, "category", "paid")
    if counts.values["paid"] != ("free", "paid"):
        raise InputError(f"expected columns free and paid, got {counts.values['paid']}")
    return JointPopulation(
        {"category": counts.values["category"], "paid": (False, True)}, counts.table
    )
