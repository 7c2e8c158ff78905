"""google/rappor's two analyses, from that project's files to that project's files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.analysis.associating import associate_likelihoods
from deniable.errors import InputError
from deniable.inference.marginal.bit_counts import BitCounts
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.inference.marginal.multiplicity import Correction
from deniable.inference.models.base import OTHER
from deniable.inference.models.bloom import BloomModel
from deniable.inference.models.options import OptionModel
from deniable.inference.models.other import mixture_other
from deniable.kernels.counting.bit_sums import count_ones
from deniable.rappor import files as rappor
from deniable.rappor.files import Params, Variable
from deniable.results import Joint, Marginal


def decode_dist(
    map_file: Path, counts_file: Path, params_file: Path, *, alpha: float, correction: Correction
) -> tuple[Marginal, list[dict[str, Any]], dict[str, float]]:
    """The marginal, and the rows of results.csv (what was detected) and of metrics.json."""
    start = time.perf_counter()
    params = rappor.read_params(params_file)
    candidates = rappor.read_map(map_file, params)
    counts = BitCounts(*rappor.read_counts(counts_file, params))
    design = _design(params, candidates)
    found = estimate_marginal(counts, design, alpha=alpha, correction=correction)
    n = found.reports
    rows = [
        {
            "string": candidates.strings[i], "estimate": found.estimate[i] * n,
            "std_error": found.standard_error[i] * n, "proportion": found.estimate[i],
            "prop_std_error": found.standard_error[i], "prop_low_95": found.low[i],
            "prop_high_95": found.high[i],
        }
        for i in found.top(len(candidates.strings))
    ]  # fmt: skip
    explained, missing = _variances(counts, design, found)
    metrics = {
        "sample_size": n, "allocated_mass": found.mass_found.estimate,
        "num_detected": len(rows), "explained_var": explained, "missing_var": missing,
        "total_elapsed_time": time.perf_counter() - start,
    }  # fmt: skip
    return found, rows, metrics


def _design(params: Params, candidates: rappor.Map) -> BloomModel:
    chances = (float(params.noise.p_star), float(params.noise.q_star))
    return BloomModel(candidates.positions, params.k, *chances, labels=candidates.strings)


def _variances(counts: BitCounts, design: BloomModel, found: Marginal) -> tuple[float, float]:
    """Shares of the bit frequencies' variance that the detected strings explain, and do not."""
    total = np.maximum(counts.total, 1)[:, None]
    observed = (counts.ones / total - design.p[:, None]) / (design.q - design.p)[:, None]
    kept = np.where(found.detected, found.estimate, 0.0)
    fitted = np.asarray(design.indicator() @ kept).reshape(observed.shape)
    whole = float(((observed - observed.mean()) ** 2).sum())
    rest = observed - fitted
    left = float(((rest - rest.mean(axis=1, keepdims=True)) ** 2).sum())
    share = left / whole if whole > 0 else 0.0
    return 1 - share, share


@dataclass(frozen=True)
class _Read:
    """One variable's likelihood rows and labels."""

    rows: NDArray[np.float32]
    labels: tuple[str, ...]


def decode_assoc(
    schema_file: Path,
    reports_file: Path,
    metric: str,
    params_dir: Path,
    variables: tuple[tuple[str, Path | None], tuple[str, Path | None]],
    *,
    top: int,
    alpha: float,
) -> Joint:
    """The joint distribution of two strings or booleans, each with its own parameters."""
    schema = {v.name: v for v in rappor.read_schema(schema_file) if v.metric == metric}
    for name, _ in variables:
        if name not in schema:
            raise InputError(
                f"{schema_file}: metric {metric!r} has {', '.join(schema) or 'no variables'}; "
                f"got {name!r}"
            )
    reports = rappor.read_reports(reports_file, columns=[name for name, _ in variables])
    read = [
        _variable(schema[name], map_file, params_dir, reports, top, alpha)
        for name, map_file in variables
    ]
    return associate_likelihoods(
        [r.rows for r in read], [r.labels for r in read],
        questions=[name for name, _ in variables], strata=reports.cohort,
    )  # fmt: skip


def _variable(
    variable: Variable,
    map_file: Path | None,
    params_dir: Path,
    reports: rappor.Reports,
    top: int,
    alpha: float,
) -> _Read:
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
        return _Read(found.rows, model.labels)
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
    return _Read(rows, labels if rows.shape[1] == len(labels) else (*labels, OTHER))
