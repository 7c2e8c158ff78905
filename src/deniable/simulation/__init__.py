"""Simulated crowds: populations to draw clients from, and the reports of many clients at once."""

from deniable.extras import needs_packages

with needs_packages("deniable.simulation"):
    from deniable.simulation.coded import Coded
    from deniable.simulation.crowd import Crowd, simulate, simulate_days, simulate_stream
    from deniable.simulation.example_data import play_store, top_domains
    from deniable.simulation.populations import (
        JointPopulation,
        Population,
        contingency,
        correlated,
        exponential,
        from_csv,
        from_spec,
        geometric,
        power,
        random_strings,
        step,
        table_from_csv,
        uniform,
        zipf,
    )

__all__ = [
    "Coded",
    "Crowd",
    "JointPopulation",
    "Population",
    "contingency",
    "correlated",
    "exponential",
    "from_csv",
    "from_spec",
    "geometric",
    "play_store",
    "power",
    "random_strings",
    "simulate",
    "simulate_days",
    "simulate_stream",
    "step",
    "table_from_csv",
    "top_domains",
    "uniform",
    "zipf",
]
