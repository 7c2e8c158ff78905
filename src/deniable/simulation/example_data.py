"""Real data for simulated crowds: apps of an app store, and common domain names.

`data/play_store_30x2.csv` counts 9,488 apps of public Google Play metadata in 30 categories. It is
not the sample of the paper's evaluation, which was never published.
"""

from importlib.resources import as_file, files

from deniable.simulation.populations import JointPopulation, table_from_csv


def play_store() -> JointPopulation:
    """Return apps of an app store by category and by whether they must be paid for.

    Returns
    -------
    JointPopulation
        Questions `category`, a choice of 30 options, and `paid`, a boolean.

    Examples
    --------
    >>> play_store().table.shape
    (30, 2)
    """
    with as_file(files("deniable.simulation") / "data" / "play_store_30x2.csv") as path:
        counts = table_from_csv(path, "category", "paid")
    return JointPopulation(
        {"category": counts.values["category"], "paid": (False, True)}, counts.table
    )


def top_domains() -> tuple[str, ...]:
    """Return a hundred domain names that web pages load from, the most common first.

    Returns
    -------
    tuple of str
        Domain names.

    Examples
    --------
    >>> top_domains()[:2]
    ('google.com', 'facebook.com')
    """
    text = files("deniable.simulation").joinpath("data/top100_domains.txt").read_text("utf-8")
    return tuple(text.split())
