"""How far long work has come; by default nobody listens.

A verb takes `progress`, a function of a stage's name and of how much of the stage is done, from 0
to 1; `reports_progress` makes it heard. The loops below say `report_progress(...)` and know nothing
of who listens: a bar on a terminal, a page. A listener that raises stops the work.

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
    """Tell this listener what is done inside; None leaves the one there is, if any."""
    if progress is None:
        yield
        return
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: float) -> None:
    """`done` of this stage, from 0 to 1, is behind us."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(done, 0.0), 1.0))


def reports_progress(verb: Callable[P, T]) -> Callable[P, T]:
    """The verb, whose keyword `progress` listens while it runs."""

    @wraps(verb)
    def listened_to(*args: P.args, **kwargs: P.kwargs) -> T:
        with listening(cast("Progress | None", kwargs.get("progress"))):
            return verb(*args, **kwargs)

    return listened_to
