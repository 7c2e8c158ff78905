"""Frames of other libraries, told apart without loading any of them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ArrowStream(Protocol):
    """An Arrow table, a polars frame or a pandas frame: Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@runtime_checkable
class PandasFrame(Protocol):
    """A pandas frame of a version before 2.2, which does not offer an Arrow stream."""

    @property
    def iloc(self) -> object: ...


Frame = ArrowStream | PandasFrame
"""What `isinstance(value, Frame)` accepts can be read by `columns.arrow.from_frame`."""
