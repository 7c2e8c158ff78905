"""Devices that tests run on: PyTorch on processors always, on a GPU where there is one.

PyTorch is not imported before a test asks for it: loaded before numba, it lends numba other
mathematical functions, and the last bits of a fit differ from those of a process without it.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

MISSING = "PyTorch is not installed: make .venv/.torch, or pip install 'deniable[gpu]'"
HERE = find_spec("torch") is not None

if not HERE and os.environ.get("CI"):
    raise ModuleNotFoundError(MISSING)

needs_torch = pytest.mark.skipif(not HERE, reason=MISSING)
needs_cuda = pytest.mark.skipif(
    not (HERE and any(Path("/dev").glob("nvidia[0-9]*"))), reason="there is no CUDA device here"
)
DEVICES = [
    pytest.param("cpu", marks=needs_torch),
    pytest.param("cuda", marks=needs_cuda),
]
