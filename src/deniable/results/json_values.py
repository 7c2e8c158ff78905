"""Conversion of results to JSON values and back, by the types of their fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np


def to_json_value(value: object) -> object:
    """Return a value for JSON; NaN becomes null, infinite numbers "Infinity" and "-Infinity"."""
    if isinstance(value, np.ndarray | np.generic):
        return to_json_value(value.tolist())
    if is_dataclass(value):
        return {f.name: to_json_value(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def from_json_value(kind: object, value: Any) -> object:
    """Return a value from JSON as the type that a field declares; raise TypeError if it differs."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # a type or None
        return None if value is None else from_json_value(args[0], value)
    if origin is np.ndarray:
        return np.array(_numbers(value), dtype=get_args(args[1])[0])
    if kind is float:
        return math.nan if value is None else float(value)
    if origin is tuple and _checked(value, list):
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return tuple(from_json_value(k, v) for k, v in zip(kinds, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping) and _checked(value, dict):
        return {key: from_json_value(args[1], item) for key, item in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and _checked(value, dict):
        return kind(**typed_fields(kind, value))
    if kind in (str, int, bool):
        _checked(value, kind)
    return value


def _checked(value: object, kind: object) -> bool:
    """Return True, or raise TypeError if the value is of another type."""
    if type(value) is not kind:
        raise TypeError(f"expected {getattr(kind, '__name__', kind)}, got {value!r:.40}")
    return True


def typed_fields(kind: type, data: Mapping[str, object]) -> dict[str, Any]:
    """Return fields from JSON as the types that a dataclass declares for them."""
    hints = get_type_hints(kind)
    return {name: from_json_value(hints[name], value) for name, value in data.items()}


def _numbers(value: object) -> object:
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value) if isinstance(value, str) else value
