"""Progress of long computations.

A verb has the parameter `progress`: a function of the name of a stage and of the share of the stage
that is done, from 0 to 1. The decorator `reports_progress` makes it the listener while the verb
runs. Loops call `report_progress(...)` and need not know the listener, such as a progress bar or a
web page. A listener that raises an exception stops the computation.

>>> def show(stage, done):
...     print(stage, done)
>>> with listening(show):
...     report_progress("reading", 0.5)
reading 0.5
>>> report_progress("reading", 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar, cast

Progress = Callable[[str, float], None]
P = ParamSpec("P")
T = TypeVar("T")

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Report progress to this listener within the block; None keeps the present listener."""
    if progress is None:
        yield
        return
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: float) -> None:
    """Report that this share of a stage, from 0 to 1, is done."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(done, 0.0), 1.0))


def reports_progress(verb: Callable[P, T]) -> Callable[P, T]:
    """Decorate a verb: its keyword argument `progress` is the listener while it runs."""

    @wraps(verb)
    def with_listener(*args: P.args, **kwargs: P.kwargs) -> T:
        with listening(cast("Progress | None", kwargs.get("progress"))):
            return verb(*args, **kwargs)

    return with_listener
