"""The verb `decode`: estimate how common each value of one question is."""

from collections.abc import Mapping
from dataclasses import replace

from deniable.analysis.categories import Strings, candidates_of
from deniable.analysis.conditions import Subgroup, Where
from deniable.analysis.source import Reports, Source
from deniable.analysis.tallying import (
    check_all,
    count_and_check,
    has_tests,
    histogram_of,
    provenance_of,
)
from deniable.compute.executors import AnyExecutor, executor_of
from deniable.compute.progress import Progress, reports_progress
from deniable.errors import InputError, check_number
from deniable.inference.fit_check import fit_check, possible_shares
from deniable.inference.marginal.bit_counts import Repetition
from deniable.inference.marginal.detection import Correction
from deniable.inference.models import model_of
from deniable.results import Marginal
from deniable.survey import Survey, SurveyOrPath


@reports_progress
def decode(
    survey: SurveyOrPath,
    reports: Reports,
    question: str,
    candidates: Strings | Mapping[str, Strings] | None = None,
    *,
    where: Where | None = None,
    alpha: float = 0.05,
    correction: Correction = "holm",
    reports_per_client: float = 1.0,
    executor: AnyExecutor = None,
    progress: Progress | None = None,
) -> Marginal:
    """Estimate how common each value of a question is.

    For a string question, the values are the candidates. Clients may also hold strings that
    are not among the candidates: these do not bias the estimates.

    Parameters
    ----------
    survey : Survey, str or Path
        Survey that the reports answer, or the path of its file.
    reports : ReportBatch, str, Path, Arrow table, data frame, Store, Stored, or several of these
        Reports to analyse: in memory, in files, or in a store.
    question : str
        Name of the question to decode.
    candidates : iterable of str, Discovery or Marginal, optional
        Strings to look for, or a result of `discover` or `decode`, whose detected strings are
        used. Required for a string question, and not allowed for other questions, whose options
        are known. Duplicates are ignored. With `where`, a mapping may list candidates of several
        questions, by question.
    where : mapping of str to answers, optional
        Decode only a subgroup: the clients that gave these answers to other questions, such as
        ``{"browser": "Firefox"}``. A list means any of its answers; several questions mean all of
        them. Answers are options, True or False, or strings. Estimates come from the joint
        distribution of the questions, and are shares of the subgroup. A string has an estimate if
        it is detected among all clients.
    alpha : float, default 0.05
        Significance level of the decision which values are present.
    correction : {"holm", "bonferroni", "fdr"} or None, default "holm"
        How `alpha` accounts for testing many values. "holm" and "bonferroni" bound the probability
        of any false detection (family-wise error rate); "holm" detects at least as much. "fdr"
        bounds the expected share of false detections among all detections. None tests each value
        at `alpha`.
    reports_per_client : float, default 1.0
        Average number of reports per client. Reports of one client share its value and its
        permanent noise, so they hold less information than reports of as many clients. Standard
        errors, intervals and tests account for that. If clients differ much, pass the sum of their
        squared numbers of reports divided by the number of reports.
    executor : str or distributed.Client, optional
        Where the computation runs: "threads" (default), "threads:N", "dask://HOST:PORT",
        "tls://HOST:PORT" or a `distributed.Client`.
    progress : callable, optional
        Called with the name of the current stage and the fraction of it that is done.

    Returns
    -------
    Marginal
        One row per value: estimate, standard error, 95% confidence interval, p-value, and
        whether the value was detected. For a number question, a `Histogram`, which also has the
        mean and quantiles.

    Raises
    ------
    InputError
        If the survey has no such question, a string question has no candidates, there are no
        reports, or the reports belong to another survey.

    Examples
    --------
    >>> import numpy as np
    >>> from deniable import Survey, decode, simulate
    >>> survey = Survey.from_toml('''
    ... name = "browsers"
    ... version = 1
    ... owner = "you@example.com"
    ... description = "Which browser do you use?"
    ... expires = 2999-12-31
    ... collect = "once"
    ... [questions.browser]
    ... kind = "choice"
    ... options = ["Firefox", "Safari"]
    ... epsilon = 2.0
    ... ''')
    >>> answers = {"browser": ["Firefox"] * 6000 + ["Safari"] * 4000}
    >>> reports = simulate(survey, answers, rng=np.random.default_rng(1))
    >>> result = decode(survey, reports, "browser")
    >>> result.labels, result.estimate.round(1).tolist()
    (('Firefox', 'Safari'), [0.6, 0.4])
    """
    survey = Survey.of(survey)
    asked = survey.question(question)
    source = Source(reports, survey)
    executor = executor_of(executor)
    check_number("reports_per_client", reports_per_client)
    if not reports_per_client >= 1:
        raise InputError(f"reports_per_client must be at least 1, got {reports_per_client}")
    if where:
        from deniable.analysis.subgroups import decode_subgroup  # needs all of joint tables

        subgroup = Subgroup.of(survey, question, where)
        lists = candidates if isinstance(candidates, Mapping) else {question: candidates}
        marginal = decode_subgroup(
            subgroup,
            source,
            {name: strings for name, strings in lists.items() if strings is not None},
            executor,
            alpha=alpha,
            correction=correction,
            # An upper bound: R reports of a client hold at least as much information as one.
            inflation=reports_per_client,
        )
        assert marginal.subgroup is not None
        questions, used = subgroup.questions, source.count * marginal.subgroup.estimate
        tested = has_tests(survey, questions, used, reports_per_client)
        fit = check_all(source, executor, questions, reports_per_client=reports_per_client)
    else:
        model = model_of(candidates_of(asked, candidates))
        counts, checked = count_and_check(source, executor, asked, model)
        if reports_per_client > 1:
            shared = Repetition.of(asked.protocol.mechanisms[0], reports_per_client)
            counts = counts.repeated(shared)
        marginal = model.marginal(counts, alpha=alpha, correction=correction)
        marginal = replace(marginal, reports_per_client=reports_per_client)
        if asked.kind == "number":
            marginal = histogram_of(asked, marginal, model.covariance(marginal))
        marginal = replace(marginal, question=question)
        questions = (asked,)
        tested = has_tests(survey, questions, source.count, reports_per_client)
        found, used = (marginal.estimate, marginal.standard_error), marginal.reports
        shares = possible_shares(survey, asked, found, used, reports_per_client)
        fit = fit_check(survey, questions, checked, shares, reports_per_client)
    marginal = replace(
        marginal,
        reports_per_client=reports_per_client,
        total_reports=source.count if source.count != marginal.reports else None,
        provenance=provenance_of(survey, questions, marginal.reports, source.origin),
        fit=fit,
    )
    return marginal if tested else marginal.untested()
