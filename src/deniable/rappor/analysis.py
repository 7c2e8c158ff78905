"""The two analyses of google/rappor, from its files to its files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.analysis.associating import associate_likelihoods
from deniable.errors import InputError, did_you_mean
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.detection import Correction
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.options import OptionModel
from deniable.inference.models.other import mixture_other
from deniable.kernels.array_types import Singles
from deniable.kernels.counting.bit_sums import count_ones
from deniable.rappor import files as rappor
from deniable.rappor.files import DistMetrics, Params, ResultRow, Variable
from deniable.rappor.reports import Reports, read_reports
from deniable.results import Joint, Marginal
from deniable.results.joint import OTHER


def decode_dist(
    map_file: Path, counts_file: Path, params_file: Path, *, alpha: float, correction: Correction
) -> tuple[list[ResultRow], DistMetrics]:
    """Estimate how common the candidates of a map are.

    Returns the rows of results.csv, one per detected string, and the content of metrics.json.
    """
    start = time.perf_counter()
    params = rappor.read_params(params_file)
    candidates = rappor.read_map(map_file, params)
    counts = BitCounts(*rappor.read_counts(counts_file, params))
    model = _bloom_model(params, candidates)
    marginal = estimate_marginal(counts, model, alpha=alpha, correction=correction)
    n = marginal.reports
    detected = marginal.top(len(candidates.strings))
    shares = (marginal.estimate, marginal.standard_error)
    columns = (*(n * share for share in shares), *shares, marginal.low, marginal.high)
    rows = [ResultRow(candidates.strings[i], *(column[i] for column in columns)) for i in detected]
    mass = marginal.mass_found.estimate
    variances = _variances(counts, model, marginal)
    seconds = time.perf_counter() - start
    return rows, DistMetrics(n, mass, len(rows), *variances, seconds)


def _bloom_model(params: Params, candidates: rappor.Map) -> BloomModel:
    """Return the category model of the candidates."""
    p_star, q_star = float(params.noise.p_star), float(params.noise.q_star)
    return BloomModel(candidates.positions, params.k, p_star, q_star, labels=candidates.strings)


def _variances(counts: BitCounts, model: BloomModel, marginal: Marginal) -> tuple[float, float]:
    """Return the shares of the variance of bit frequencies that detected strings (do not) explain.

    The first share is explained, the second is not; they add up to 1.
    """
    total = np.maximum(counts.total, 1)[:, None]
    observed = (counts.ones / total - model.p[:, None]) / (model.q - model.p)[:, None]
    detected = np.where(marginal.detected, marginal.estimate, 0.0)
    residual = observed - np.asarray(model.indicator() @ detected).reshape(observed.shape)
    variation = float(((observed - observed.mean()) ** 2).sum())
    unexplained = float(((residual - residual.mean(axis=1, keepdims=True)) ** 2).sum())
    share = unexplained / variation if variation > 0 else 0.0
    return 1 - share, share


@dataclass(frozen=True)
class AssocSource:
    """Files that describe the variables of a metric and hold their reports."""

    schema: Path
    reports: Path
    metric_name: str
    params_dir: Path

    def variable(self, name: str) -> Variable:
        """Return the row of the schema for a variable."""
        variables = {v.name: v for v in rappor.read_metric(self.schema, self.metric_name)}
        if name not in variables:
            raise InputError(
                f"{self.schema}: metric {self.metric_name!r} has no variable {name!r}, only "
                f"{', '.join(variables)}.{did_you_mean(name, variables)}"
            )
        return variables[name]


def decode_assoc(
    source: AssocSource, maps: Sequence[tuple[str, Path | None]], *, top: int, alpha: float
) -> Joint:
    """Estimate the joint distribution of two strings or booleans, each with its own parameters.

    maps : name of each variable and its map, None for a boolean
    top : maximum number of strings per variable that become categories
    """
    names = [name for name, _ in maps]
    variables = [source.variable(name) for name in names]
    params = [rappor.read_params(source.params_dir / f"{v.params}.csv") for v in variables]
    strings = [p for v, p in zip(variables, params, strict=True) if v.kind == "string"]
    reports = read_reports(
        source.reports,
        columns=names,
        cohorts=min((p.m for p in strings), default=None),
        bits={
            v.name: p.k if v.kind == "string" else 1 for v, p in zip(variables, params, strict=True)
        },
    )
    rows, labels = zip(
        *(
            _likelihood_rows(variable, own, map_file, reports, top, alpha)
            for variable, own, (_, map_file) in zip(variables, params, maps, strict=True)
        ),
        strict=True,
    )
    return associate_likelihoods(rows, labels, questions=names, strata=reports.cohort)


def _likelihood_rows(
    variable: Variable,
    params: Params,
    map_file: Path | None,
    reports: Reports,
    top: int,
    alpha: float,
) -> tuple[Singles, tuple[str, ...]]:
    """Return likelihood rows float32[N, m] of one variable and the labels of its m categories."""
    bits, _ = reports.columns[variable.name]
    noise = params.noise
    if variable.kind == "boolean":
        answers = OptionModel(("TRUE",), float(noise.p_star), float(noise.q_star), silent="FALSE")
        stratum = np.zeros(len(reports), np.uint16)
        return answers.likelihood(bits, stratum).rows, answers.labels
    if map_file is None:
        raise InputError(f"{variable.name} is a string: give its map with --map1 or --map2")
    model = _bloom_model(params, rappor.read_map(map_file, params))
    counts = BitCounts(*count_ones(bits, params.k, reports.cohort, params.m))
    marginal = estimate_marginal(counts, model, alpha=alpha)
    chosen = marginal.top(top)
    if chosen.size == 0:
        raise InputError(f"{variable.name}: no string of the map was detected")
    categories = model.take(chosen).with_other(mixture_other(marginal, model, chosen))
    rows = categories.likelihood(bits, reports.cohort).rows
    labels = categories.labels or ()
    return rows, labels if rows.shape[1] == len(labels) else (*labels, OTHER)
