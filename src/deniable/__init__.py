"""deniable: learn what a crowd says without learning what anyone said.

Importing this for a client pulls in nothing outside the standard library; the verbs of an analyst
are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

from deniable.client import Client
from deniable.survey import Report, Survey
from deniable.version import __version__

if TYPE_CHECKING:
    from deniable.analysis import Stored, associate, decode, trend
    from deniable.columns import ReportBatch
    from deniable.discovery import discover
    from deniable.simulation import simulate

__all__ = [
    "Client",
    "Report",
    "ReportBatch",
    "Stored",
    "Survey",
    "__version__",
    "associate",
    "decode",
    "discover",
    "simulate",
    "trend",
]

_LATER = {
    "ReportBatch": "deniable.columns",
    "Stored": "deniable.analysis",
    "associate": "deniable.analysis",
    "decode": "deniable.analysis",
    "discover": "deniable.discovery",
    "simulate": "deniable.simulation",
    "trend": "deniable.analysis",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATER[name]), name)
