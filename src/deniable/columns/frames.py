"""Protocols that recognise data frames of other libraries without importing them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ArrowStream(Protocol):
    """Any table with Arrow's PyCapsule interface: Arrow tables, frames of polars and pandas 2.2."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@runtime_checkable
class PandasFrame(Protocol):
    """Any pandas frame, recognised by `iloc`: before pandas 2.2 it had no PyCapsule interface."""

    @property
    def iloc(self) -> object:
        """Rows by position."""


Frame = ArrowStream | PandasFrame
"""Any frame that `columns.arrow.from_frame` can read. Use it in `isinstance(value, Frame)`."""
