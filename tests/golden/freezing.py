"""Turn results into plain JSON data: their numbers and labels, no prose, no digests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

ESTIMATED = ("estimate", "standard_error", "low", "high")
MEASURED = (*ESTIMATED, "p_value")


def as_json(data: Any) -> Any:
    """Return data as JSON gives it back, with numbers that JSON lacks as text."""
    if isinstance(data, Mapping):
        return {str(key): as_json(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [as_json(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return as_json(data.tolist())
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data


def fields(found: Any, *names: str) -> dict[str, Any]:
    """Return some attributes by name."""
    return {name: getattr(found, name) for name in names}


def marginal(found: Any) -> dict[str, Any]:
    """Freeze estimates of listed values."""
    data = {
        "names": list(found.names),
        **fields(found, *MEASURED, "detected", "identified", "groups"),
        **fields(found, "detection_threshold", "overdispersion", "reports"),
        "mass_found": fields(found.mass_found, *ESTIMATED),
        "mass_unexplained": fields(found.mass_unexplained, *ESTIMATED),
        "problems": len(found.fit.problems) if found.fit else None,
    }
    if found.subgroup is not None:
        data["subgroup"] = fields(found.subgroup, *ESTIMATED)
    return data


def joint(found: Any) -> dict[str, Any]:
    """Freeze a joint table with what it offers besides its cells."""
    data: dict[str, Any] = {
        **fields(found, "questions", "labels", "table", *ESTIMATED[1:], "p_value"),
        **fields(found, "log_likelihood", "gap_nats", "converged", "reports"),
        "covariance": np.diagonal(found.covariance) if found.table.size > 16 else found.covariance,
        "margins": {name: fields(found.margin(name), *ESTIMATED) for name in found.questions},
        "conditional": {
            name: fields(found.conditional(name), *ESTIMATED) for name in found.questions
        },
        "cell": found.cell(*(labels[0] for labels in found.labels)),
        "problems": len(found.fit.problems) if found.fit else None,
    }
    if found.made_from == "counts" or len(found.questions) == 1:
        return data
    if len(found.questions) == 2:
        tests = {method: found.test(method) for method in ("score", "paper", "lrt")}
        data["effect"] = fields(found.cramers_v(), "estimate", "low", "high")
    else:
        tests = {"mutual": found.mutual_independence()}
    names = ("statistic", "degrees_of_freedom", "p_value")
    data["tests"] = {name: fields(each, *names) for name, each in tests.items()}
    return data


def discovery(found: Any) -> dict[str, Any]:
    """Freeze the strings that were found."""
    data = {
        **fields(found, "strings", *MEASURED, "candidates", "detection_threshold", "reports"),
        "stages": [[stage.kept, stage.dropped] for stage in found.stages],
        "truncated": bool(found.truncation),
        "mass_found": fields(found.mass_found, *ESTIMATED),
        "mass_unexplained": fields(found.mass_unexplained, *ESTIMATED),
    }
    if found.graph is not None:
        data["graph"] = fields(found.graph, "labels", "edges", "weights", "cliques")
    return data
