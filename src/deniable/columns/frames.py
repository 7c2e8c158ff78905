"""Protocols that recognise data frames of other libraries without importing them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ArrowStream(Protocol):
    """Arrow's PyCapsule interface, which Arrow tables and polars and pandas frames have."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@runtime_checkable
class PandasFrame(Protocol):
    """A frame of pandas before 2.2, which does not have the PyCapsule interface."""

    @property
    def iloc(self) -> object:
        """Rows by position."""


Frame = ArrowStream | PandasFrame
"""Frames that `columns.arrow.from_frame` reads; `isinstance(value, Frame)` works."""
