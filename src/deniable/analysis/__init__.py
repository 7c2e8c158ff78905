"""Analysis of reports: the verbs `decode`, `associate`, `pair_counts`, `trend`, `compare`."""

from deniable.extras import needs_packages

with needs_packages("deniable.analysis"):
    from deniable.analysis.associating import associate, associate_likelihoods
    from deniable.analysis.changes import compare
    from deniable.analysis.counting import pair_counts
    from deniable.analysis.decoding import decode
    from deniable.analysis.mechanism_comparison import compare_mechanisms
    from deniable.analysis.periods import by_period, trend
    from deniable.analysis.source import Stored
    from deniable.inference.linear.joint_counts import PairCounts

__all__ = [
    "PairCounts",
    "Stored",
    "associate",
    "associate_likelihoods",
    "by_period",
    "compare",
    "compare_mechanisms",
    "decode",
    "pair_counts",
    "trend",
]
