"""discover: the strings that clients reported, without a list of candidates."""

from __future__ import annotations

from typing import Any

from deniable.analysis.source import Reports, Source
from deniable.compute.backend import Backend
from deniable.compute.named import default_backend
from deniable.compute.progress import Progress, reports_progress
from deniable.discovery.ngrams.run import discover_ngrams
from deniable.discovery.prefixes.run import discover_prefixes
from deniable.discovery.shared.run import Accept, DiscoveryRun, predicate
from deniable.discovery.shared.string_models import Words
from deniable.discovery.whole_domain.run import discover_whole
from deniable.errors import InputError
from deniable.protocols import NGrams, Prefixes
from deniable.results import Discovery
from deniable.survey import Survey


@reports_progress
def discover(
    survey: Survey,
    reports: Reports | Any,
    question: str,
    *,
    accept: str | Accept | None = None,
    alpha: float = 0.05,
    reading: str | None = None,
    delta: float | None = None,
    words: Words = (),
    executor: Backend | None = None,
    progress: Progress | None = None,
) -> Discovery:
    """Find the strings that clients reported, without a list of candidates.

    reports : a batch, a file, an Arrow table, a store, or any number of these
    accept : a regular expression for the whole string, or a function of it: candidates that it
        refuses are neither tested nor counted
    alpha : the chance of reporting any string that is not there
    reading : of an `ngrams` question: "fused", the default, searches with all pairs of grams and
        peels off what it finds; "paper" is the paper's procedure
    delta : the pair threshold of the paper's reading, if not its own
    words : of a `prefixes` question: strings that may be held, and words that strings may be made
        of, perhaps with weights (a mapping). They are tested first, steer the search, and need not
        be there; what was found in the same reports must not be among them
    progress : told a stage's name and how much of it is done, from 0 to 1
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    asked = survey.question(question)
    accepted = predicate(accept)
    source, executor = Source(reports, survey), executor or default_backend()
    match asked.protocol:
        case NGrams() as protocol:
            if words:
                raise InputError("words belong to prefixes; this question asks for n-grams")
            grams = DiscoveryRun(source, asked, protocol, accepted, alpha, executor)
            return discover_ngrams(grams, reading, delta)
        case Prefixes() as protocol:
            if reading is not None or delta is not None:
                raise InputError(
                    "reading and delta belong to n-grams; this question asks for prefixes"
                )
            run = DiscoveryRun(source, asked, protocol, accepted, alpha, executor)
            # A single level is the whole string: there are no prefixes to follow.
            whole = len(protocol.levels) == 1
            return discover_whole(run, words) if whole else discover_prefixes(run, words)
    raise InputError(
        f"question {question!r} reports whole values only: decode it with candidates, or ask with "
        'a dictionary, protocol "ngrams" or "prefixes"'
    )
