"""The analyst's verbs: from reports of a survey to results."""

from deniable.analysis.associating import associate, associate_likelihoods
from deniable.analysis.decoding import decode
from deniable.analysis.source import Stored
from deniable.analysis.trending import trend

__all__ = ["Stored", "associate", "associate_likelihoods", "decode", "trend"]
