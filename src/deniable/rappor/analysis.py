"""google/rappor's two analyses, from that project's files to that project's files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.analysis.associating import associate_likelihoods
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.detection import Correction
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.models.base import OTHER
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.options import OptionModel
from deniable.inference.models.other import mixture_other
from deniable.kernels.array_types import Singles
from deniable.kernels.counting.bit_sums import count_ones
from deniable.rappor import files as rappor
from deniable.rappor.files import DistMetrics, Params, ResultRow, Variable
from deniable.rappor.reports import Reports, read_reports
from deniable.results import Joint, Marginal


def decode_dist(
    map_file: Path, counts_file: Path, params_file: Path, *, alpha: float, correction: Correction
) -> tuple[list[ResultRow], DistMetrics]:
    """The rows of results.csv, which are the detected strings, and the content of metrics.json."""
    start = time.perf_counter()
    params = rappor.read_params(params_file)
    candidates = rappor.read_map(map_file, params)
    counts = BitCounts(*rappor.read_counts(counts_file, params))
    design = _design(params, candidates)
    marginal = estimate_marginal(counts, design, alpha=alpha, correction=correction)
    n = marginal.reports
    detected = marginal.top(len(candidates.strings))
    shares = (marginal.estimate, marginal.standard_error)
    columns = (*(n * share for share in shares), *shares, marginal.low, marginal.high)
    rows = [ResultRow(candidates.strings[i], *(column[i] for column in columns)) for i in detected]
    mass = marginal.mass_found.estimate
    variances = _variances(counts, design, marginal)
    seconds = time.perf_counter() - start
    return rows, DistMetrics(n, mass, len(rows), *variances, seconds)


def _design(params: Params, candidates: rappor.Map) -> BloomModel:
    chances = (float(params.noise.p_star), float(params.noise.q_star))
    return BloomModel(candidates.positions, params.k, *chances, labels=candidates.strings)


def _variances(counts: BitCounts, design: BloomModel, marginal: Marginal) -> tuple[float, float]:
    """Shares of the bit frequencies' variance that the detected strings explain, and do not."""
    total = np.maximum(counts.total, 1)[:, None]
    observed = (counts.ones / total - design.p[:, None]) / (design.q - design.p)[:, None]
    kept = np.where(marginal.detected, marginal.estimate, 0.0)
    fitted = np.asarray(design.indicator() @ kept).reshape(observed.shape)
    whole = float(((observed - observed.mean()) ** 2).sum())
    rest = observed - fitted
    left = float(((rest - rest.mean(axis=1, keepdims=True)) ** 2).sum())
    share = left / whole if whole > 0 else 0.0
    return 1 - share, share


@dataclass(frozen=True)
class AssocSource:
    """Where two variables of a metric are described and reported."""

    schema: Path
    reports: Path
    metric_name: str
    params_dir: Path

    def variable(self, name: str) -> Variable:
        """The row of the schema."""
        rows = rappor.read_schema(self.schema)
        variables = {row.name: row for row in rows if row.metric == self.metric_name}
        if name not in variables:
            known = ", ".join(variables) or "no variables"
            raise InputError(
                f"{self.schema}: metric {self.metric_name!r} has {known}; got {name!r}"
            )
        return variables[name]


def decode_assoc(
    source: AssocSource, maps: Sequence[tuple[str, Path | None]], *, top: int, alpha: float
) -> Joint:
    """The joint distribution of two strings or booleans, each with its own parameters.

    maps : the name of each variable and its map, None for a boolean
    """
    names = [name for name, _ in maps]
    variables = [source.variable(name) for name in names]
    reports = read_reports(source.reports, columns=names)
    rows, labels = zip(
        *(
            _variable(variable, map_file, source.params_dir, reports, top, alpha)
            for variable, (_, map_file) in zip(variables, maps, strict=True)
        ),
        strict=True,
    )
    return associate_likelihoods(rows, labels, questions=names, strata=reports.cohort)


def _variable(
    variable: Variable,
    map_file: Path | None,
    params_dir: Path,
    reports: Reports,
    top: int,
    alpha: float,
) -> tuple[Singles, tuple[str, ...]]:
    """One variable's likelihood rows and labels."""
    params = rappor.read_params(params_dir / f"{variable.params}.csv")
    bits, width = reports.columns[variable.name]
    if width != params.k and variable.kind != "boolean":
        raise InputError(
            f"{variable.name}: reports have {width} bits, {variable.params}.csv says {params.k}"
        )
    noise = params.noise
    if variable.kind == "boolean":
        model = OptionModel(("TRUE",), float(noise.p_star), float(noise.q_star), silent="FALSE")
        stratum = np.zeros(len(reports), np.uint16)
        found = model.likelihood(bits[:, :1] & np.uint8(1), stratum)
        return found.rows, model.labels
    if variable.kind != "string":
        raise InputError(f"{variable.name}: expected type string or boolean, got {variable.kind}")
    if map_file is None:
        raise InputError(f"{variable.name} is a string: give its map")
    if len(reports) and int(reports.cohort.max()) >= params.m:
        raise InputError(
            f"{variable.name}: expected cohorts below {params.m} ({variable.params}.csv), got "
            f"{int(reports.cohort.max())}"
        )
    design = _design(params, rappor.read_map(map_file, params))
    counts = BitCounts(*count_ones(bits, params.k, reports.cohort, params.m))
    marginal = estimate_marginal(counts, design, alpha=alpha)
    chosen = marginal.top(top)
    if chosen.size == 0:
        raise InputError(f"{variable.name}: none of the map's strings was detected")
    known = design.take(chosen).with_other(mixture_other(marginal, design, chosen))
    rows = known.likelihood(bits, reports.cohort).rows
    labels = known.labels or ()
    return rows, labels if rows.shape[1] == len(labels) else (*labels, OTHER)
