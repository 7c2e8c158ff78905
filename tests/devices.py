"""Devices that tests run on: PyTorch on processors always, on a GPU where there is one."""

from __future__ import annotations

import os

import pytest

MISSING = "PyTorch is not installed: pip install 'deniable[gpu]'"

try:
    import torch
except ImportError:
    if os.environ.get("CI"):
        raise
    torch = None  # type: ignore[assignment]

if torch is not None:
    # The library's own threads share the work; PyTorch's would only wait for them.
    torch.set_num_threads(1)

needs_torch = pytest.mark.skipif(torch is None, reason=MISSING)
needs_cuda = pytest.mark.skipif(
    torch is None or not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here"
)
DEVICES = [
    pytest.param("cpu", marks=needs_torch),
    pytest.param("cuda", marks=needs_cuda),
]
