"""The analyst's verbs: from reports of a survey to results."""

from deniable.analysis.associating import associate, associate_likelihoods
from deniable.analysis.counting import pair_counts
from deniable.analysis.decoding import decode
from deniable.analysis.periods import by_period, trend
from deniable.analysis.source import Stored
from deniable.inference.linear.joint_counts import PairCounts

__all__ = [
    "PairCounts",
    "Stored",
    "associate",
    "associate_likelihoods",
    "by_period",
    "decode",
    "pair_counts",
    "trend",
]
