"""Analysis of reports: the verbs `decode`, `associate`, `count`, `trend`, `compare`.

Names are imported on first use: `decode` needs few of the modules that `associate` does.
"""

from typing import TYPE_CHECKING

from deniable.lazy import lazy_exports

if TYPE_CHECKING:
    from deniable.analysis.associating import associate, associate_likelihoods
    from deniable.analysis.changes import compare
    from deniable.analysis.counting import PairCounts, count
    from deniable.analysis.decoding import decode
    from deniable.analysis.periods import by_period, trend
    from deniable.analysis.source import Stored

__all__ = [
    "PairCounts",
    "Stored",
    "associate",
    "associate_likelihoods",
    "by_period",
    "compare",
    "count",
    "decode",
    "trend",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "deniable.analysis.associating": ["associate", "associate_likelihoods"],
        "deniable.analysis.changes": ["compare"],
        "deniable.analysis.counting": ["PairCounts", "count"],
        "deniable.analysis.decoding": ["decode"],
        "deniable.analysis.periods": ["by_period", "trend"],
        "deniable.analysis.source": ["Stored"],
    },
)
