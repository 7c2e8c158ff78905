"""Compare frozen data with what the present code gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TABLE = 5e-6
"""How far cells of a fitted joint table may lie from the frozen ones.

The fit stops once its log-likelihood is certified to lie within 0.01 nats of the maximum, which
alone would allow a cell to move by √(2 · 0.01) = 0.14 standard errors, about 5e-4. The last step
of the solver lands much closer. Over all joint cases, cells moved by at most 2e-7, and conditional
rates by at most 1e-6, when the reports were put in another order, which changes the order of every
sum; and by at most 1e-6 and 3e-6 when the fit was continued to 1e-5 nats. Standard errors of the
cells are 1e-3 and more. The other tolerances of `JOINT` were measured in the same way, and leave a
factor of two or more. On one machine the same code gives the same bits, unless the reports come
from a store, which shuffles them."""


@dataclass(frozen=True)
class Tolerance:
    """A float agrees if it is within `absolute`, or within `relative` of the expected value.

    Sums and matrix products in float64 depend on the order in which a processor adds: on one, they
    differed from those of another by up to 2.2e-8. Whole numbers and labels must be equal.

    fields : other tolerances (absolute, relative) for all numbers below a key of this name;
    bounded : keys whose numbers need only stay below a bound; ignored : keys not compared.
    """

    absolute: float = 1e-9
    relative: float = 1e-6
    fields: dict[str, tuple[float, float]] = field(default_factory=dict)
    bounded: dict[str, float] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()


CLOSE = Tolerance()
JOINT = Tolerance(
    absolute=TABLE,
    relative=1e-5,
    fields={
        "standard_error": (1e-7, 1e-5),
        "covariance": (1e-9, 2e-5),
        "p_value": (2e-5, 5e-3),
        "log_likelihood": (1e-4, 0.0),
    },
    bounded={"gap_nats": 0.01},
    ignored=frozenset({"passes"}),
)
SINGLE_PRODUCTS = Tolerance(relative=1e-5)
"""For n-grams, whose scores are matrix products in float32.

On another processor, p-values differed by up to 2.8e-6."""


def differences(
    expected: Any, found: Any, tolerance: Tolerance = CLOSE, path: str = ""
) -> Iterator[str]:
    """Yield one line for every place where the two differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            where = f"{path}.{key}"
            if key not in expected or key not in found:
                yield f"{where}: only in {'the golden file' if key in expected else 'the result'}"
            elif key in tolerance.bounded and isinstance(expected[key], float):
                if not found[key] <= tolerance.bounded[key]:
                    yield f"{where}: {found[key]} is above {tolerance.bounded[key]}"
            elif key not in tolerance.ignored:
                inner = _inside(tolerance, key)
                yield from differences(expected[key], found[key], inner, where)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path}: {len(expected)} entries expected, {len(found)} found"
            return
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, tolerance, f"{path}[{i}]")
    elif not _agree(expected, found, tolerance):
        yield f"{path}: {expected!r} expected, {found!r} found"


def _inside(tolerance: Tolerance, key: str) -> Tolerance:
    if key not in tolerance.fields:
        return tolerance
    absolute, relative = tolerance.fields[key]
    return Tolerance(absolute, relative)


def _agree(expected: Any, found: Any, tolerance: Tolerance) -> bool:
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None:
        return expected is found
    if isinstance(expected, float) and isinstance(found, numbers):
        return math.isclose(expected, found, rel_tol=tolerance.relative, abs_tol=tolerance.absolute)
    if isinstance(expected, int) and isinstance(found, float):
        return math.isclose(expected, found, rel_tol=tolerance.relative, abs_tol=tolerance.absolute)
    return type(expected) is type(found) and expected == found
