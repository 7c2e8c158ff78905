"""PyTorch, a device of it, and the way there and back.

Single precision is never rounded further to TensorFloat-32: a certificate of 0.01 nats over 10⁷
reports needs nine digits of every gradient. On a data-centre GPU double precision runs on the
matrix units as fast as single does outside of them, so whatever is certified is done in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError

Tensor = Any
"""A `torch.Tensor`; where torch is not installed the name means nothing."""

KINDS = ("cuda", "cpu")


@cache
def torch() -> Any:
    """The package, imported at first use."""
    try:
        import torch as package
    except ImportError as error:
        raise InputError(
            "expected PyTorch for work on a device, but it is not installed: "
            "pip install 'deniable[gpu]'"
        ) from error
    package.backends.cuda.matmul.allow_tf32 = False
    return package


def device(name: str) -> Any:
    """The `torch.device` of this name: "cuda", "cuda:1", or "cpu".

    >>> device("tpu")
    Traceback (most recent call last):
    deniable.errors.InputError: expected device "cuda", "cuda:NUMBER" or "cpu", got 'tpu'
    """
    kind, _, number = name.partition(":")
    if kind not in KINDS or (number and (kind == "cpu" or not number.isdigit())):
        raise InputError(f'expected device "cuda", "cuda:NUMBER" or "cpu", got {name!r}')
    package = torch()
    if kind == "cuda":
        found = package.cuda.device_count() if package.cuda.is_available() else 0
        if found <= int(number or 0):
            raise InputError(
                f"expected a CUDA device for {name!r}, but PyTorch {package.__version__} sees "
                f"{found}: leave --executor out to use this machine's processors, or run on a "
                'machine with an NVIDIA GPU and its driver ("gpu:cpu" runs the same code without)'
            )
    return package.device(name)


def placed(array: Any, where: Any) -> Tensor:
    """This NumPy array, or tensor, on a device; unsigned 16-bit numbers become 32-bit ones."""
    if isinstance(array, np.ndarray):
        if array.dtype == np.uint16:
            array = array.astype(np.int32)
        # Arrays that came from files may not be written to; tensors know no such thing.
        array = torch().from_numpy(array if array.flags.writeable else array.copy())
    return array.to(where)


def on_host(tensor: Tensor) -> NDArray[Any]:
    """This tensor as a NumPy array."""
    return np.asarray(tensor.cpu().numpy())
