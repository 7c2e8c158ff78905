"""Every name that is imported from below the top level of the package.

When the structure of the package changes, this is the only file of the golden tests to adapt.
"""

from deniable.analysis import associate_likelihoods
from deniable.cli.app import app
from deniable.collector.app import Collector
from deniable.collector.settings import Settings
from deniable.columns import scan, to_wire
from deniable.results import Result
from deniable.simulation import simulate_days

__all__ = [
    "Collector",
    "Result",
    "Settings",
    "app",
    "associate_likelihoods",
    "scan",
    "simulate_days",
    "to_wire",
]
