"""Estimate what a crowd answers without learning what any person answered.

Names are imported on first use: a client never imports anything outside the standard library, and
the command line starts quickly.
"""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports
from deniable.version import __version__

if TYPE_CHECKING:
    from deniable.analysis import PairCounts, Stored, associate, count, decode, trend
    from deniable.client import Client
    from deniable.columns import ReportBatch
    from deniable.discovery import discover
    from deniable.observers import amplified
    from deniable.planning.recommend import plan
    from deniable.simulation import simulate
    from deniable.survey import Report, Survey

__all__ = [
    "Client",
    "PairCounts",
    "Report",
    "ReportBatch",
    "Stored",
    "Survey",
    "__version__",
    "amplified",
    "associate",
    "count",
    "decode",
    "discover",
    "plan",
    "simulate",
    "trend",
]

_LATER = {
    "deniable.analysis": ["PairCounts", "Stored", "associate", "count", "decode", "trend"],
    "deniable.client": ["Client"],
    "deniable.columns": ["ReportBatch"],
    "deniable.discovery": ["discover"],
    "deniable.observers": ["amplified"],
    "deniable.planning.recommend": ["plan"],
    "deniable.simulation": ["simulate"],
    "deniable.survey": ["Report", "Survey"],
}
__getattr__ = lazy_exports(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
