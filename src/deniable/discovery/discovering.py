"""The verb `discover`: find the strings that clients hold, without a list of candidates."""

from __future__ import annotations

from deniable.analysis.source import Reports, Source
from deniable.analysis.tallying import has_tests
from deniable.compute.executors import AnyExecutor, executor_of
from deniable.compute.progress import Progress, reports_progress
from deniable.discovery.ngrams.run import check_reading, discover_ngrams
from deniable.discovery.prefixes.run import discover_prefixes
from deniable.discovery.shared.run import Accept, DiscoveryRun, predicate, untested
from deniable.discovery.shared.string_models import Words, string_model
from deniable.discovery.whole_domain.run import discover_whole
from deniable.errors import InputError, check_number
from deniable.protocols import NGrams, Prefixes
from deniable.results import Discovery
from deniable.survey import Survey, SurveyOrPath


@reports_progress
def discover(
    survey: SurveyOrPath,
    reports: Reports,
    question: str,
    *,
    accept: str | Accept | None = None,
    alpha: float = 0.05,
    reading: str | None = None,
    delta: float | None = None,
    words: Words = (),
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> Discovery:
    """Find the strings that clients hold, without a list of candidates.

    The question must have a dictionary: clients then report parts of their strings (prefixes,
    n-grams, or whole strings of a small domain), from which strings can be put together. A search
    proposes strings, and each of them is tested on reports that were not used to propose it.
    Common strings are discovered; rare ones are missed. `Discovery.detection_threshold` is the
    share of clients at which a string is discovered about half of the time.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Reports to analyse: in memory, in files, or in a store.
    question : str
        Name of a string question with a dictionary.
    accept : str or callable, optional
        Restricts the search to strings of a known form: a regular expression that must match the
        whole string, or a function that takes a string and returns a bool. Other strings are not
        tested, so that fewer tests share `alpha`. With protocol "ngrams", strings that are refused
        although many clients hold them hide rarer ones; then filter the result instead. By default
        all strings are possible.
    alpha : float, default 0.05
        Significance level: maximum probability that any discovered string is false, that is, held
        by no client (family-wise error rate).
    reading : {"fused", "paper"}, optional
        How reports of n-grams are decoded. "fused", the default, uses the evidence of all pairs of
        n-grams, removes discovered strings and searches again; it finds more strings. "paper" is
        the procedure of the RAPPOR paper: significant n-grams, pairs above a threshold, cliques.
        Only for a question with protocol "ngrams".
    delta : float, optional
        Smallest joint frequency of two n-grams that `reading="paper"` counts as a pair. The
        default follows the formula of the paper.
    words : sequence of str, or mapping of str to float, optional
        Strings that clients may hold, and words that their strings may contain, optionally with
        positive weights. Whole strings are tested first, and words guide the search. They need not
        occur. Strings discovered in the same reports must not be among them, because the tests
        would no longer be valid. Only for a question with protocol "prefixes".
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    Discovery
        One row per discovered string, most frequent first: estimate, standard error, 95%
        confidence interval, p-value. Pass it to `decode` or `associate` as candidates.

    Raises
    ------
    InputError
        If the survey has no such question, the question has no dictionary, an option does not fit
        its protocol, there are no reports, or the reports belong to another survey.

    Notes
    -----
    A question whose prefixes all have the maximum length is decoded without a search: every string
    of its domain is scored and tested. Strings near the detection threshold are discovered when
    their estimates happen to be high; estimates and intervals are corrected for that, and
    `Discovery.shrunk_by` says by how much. With `reading="paper"` the detection threshold is that
    of the last test alone: strings are also lost before it, and fewer than half of those at the
    threshold may be found.

    References
    ----------
    .. [1] G. Fanti, V. Pihur and Ú. Erlingsson, "Building a RAPPOR with the Unknown:
       Privacy-Preserving Learning of Associations and Data Dictionaries", PoPETs 2016(3).

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, discover, simulate
    >>> survey = Survey.from_toml('''
    ... name = "words"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "What is your favourite word?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.word]
    ... kind = "string"
    ... mechanism = "localhash"
    ... epsilon = 3.0
    ... [questions.word.dictionary]
    ... protocol = "prefixes"
    ... max_length = 4
    ... alphabet = "a-f"
    ... ''')
    >>> answers = {"word": ["face"] * 2500 + ["bed"] * 1500 + ["cab"] * 1000}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> result = discover(survey, reports, "word")
    >>> result.strings, result.estimate.round(1).tolist()
    (('face', 'bed', 'cab'), [0.5, 0.3, 0.2])
    """
    check_number("alpha", alpha)
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    survey = Survey.of(survey)
    asked = survey.question(question)
    accepted = predicate(accept)
    source, executor = Source(reports, survey), executor_of(executor)
    tested = has_tests(survey, (asked,), source.count)
    match asked.protocol:
        case NGrams() as protocol:
            if words:
                raise InputError(
                    f'words need protocol "prefixes", but question {question!r} has "ngrams"'
                )
            check_reading(reading, delta)
            grams = DiscoveryRun(source, asked, protocol, accepted, alpha, executor)
            return discover_ngrams(grams, reading, delta) if tested else untested(grams)
        case Prefixes() as protocol:
            if reading is not None or delta is not None:
                raise InputError(
                    f'reading and delta need protocol "ngrams", but question {question!r} has '
                    '"prefixes": leave them out'
                )
            run = DiscoveryRun(source, asked, protocol, accepted, alpha, executor)
            if not tested:
                # Wrong words are refused whatever the reports are.
                string_model(protocol.alphabet, words, protocol.max_length)
                return untested(run)
            # A single prefix length is that of the whole string: there are no prefixes to follow.
            whole = len(protocol.levels) == 1
            return discover_whole(run, words) if whole else discover_prefixes(run, words)
    raise InputError(
        f"question {question!r} has no dictionary, so clients report whole values only: decode it "
        "with candidates, or start a new version of the survey with [questions.NAME.dictionary] "
        'and protocol "prefixes" or "ngrams"'
    )
