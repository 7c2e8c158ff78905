"""PyTorch, its devices, and copies of arrays to and from them.

Single precision is never rounded to TensorFloat-32: to prove that the log-likelihood is within 0.01
of its maximum for 10⁷ reports, every gradient needs nine digits. On a data-centre GPU, double
precision on the matrix units is as fast as single precision without them, so proofs of convergence
are computed in double precision.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.extras import needs_packages

Tensor = Any
"""A `torch.Tensor`; torch may not be installed."""

DEVICE_KINDS = ("cuda", "cpu")


@cache
def torch() -> Any:
    """Return the package torch, imported at first use."""
    with needs_packages("a GPU backend"):
        import torch as package
    package.backends.cuda.matmul.allow_tf32 = False
    return package


def device(name: str) -> Any:
    """Return the `torch.device` of this name: "cuda", "cuda:1", or "cpu".

    >>> device("tpu")
    Traceback (most recent call last):
    deniable.errors.InputError: expected device "cuda", "cuda:NUMBER" or "cpu", got 'tpu'
    """
    kind, _, number = name.partition(":")
    if kind not in DEVICE_KINDS or (number and (kind == "cpu" or not number.isdigit())):
        raise InputError(f'expected device "cuda", "cuda:NUMBER" or "cpu", got {name!r}')
    package = torch()
    if kind == "cuda":
        devices = package.cuda.device_count() if package.cuda.is_available() else 0
        if devices <= int(number or 0):
            raise InputError(
                f"there is no CUDA device for {name!r}: PyTorch {package.__version__} finds "
                f"{devices}. Leave --executor out to use CPUs, or run on a machine with an NVIDIA "
                'GPU and its driver ("gpu:cpu" runs the same code on CPUs)'
            )
    return package.device(name)


def to_device(array: Any, where: Any) -> Tensor:
    """Return a NumPy array or tensor as a tensor on a device; uint16 becomes int32."""
    if isinstance(array, np.ndarray):
        if array.dtype == np.uint16:
            array = array.astype(np.int32)
        # Arrays from files may be read-only; tensors cannot be.
        array = torch().from_numpy(array if array.flags.writeable else array.copy())
    return array.to(where)


def to_numpy(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as a NumPy array."""
    return np.asarray(tensor.cpu().numpy())
