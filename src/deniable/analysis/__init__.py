"""The analyst's verbs: from reports of a survey to results."""

from deniable.analysis.associating import associate, associate_likelihoods
from deniable.analysis.decoding import decode

__all__ = ["associate", "associate_likelihoods", "decode"]
