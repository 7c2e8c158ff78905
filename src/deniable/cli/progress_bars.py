"""Progress with time left, on a terminal only and never on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


def track(items: Iterable[T], total: int, label: str, size: Callable[[T], int]) -> Iterator[T]:
    """The items as they come, each moving the bar by its size."""
    with _bars() as bars:
        task = bars.add_task(label, total=total)
        for item in items:
            yield item
            bars.advance(task, size(item))


@contextmanager
def bars() -> Iterator[None]:
    """One bar for each stage of the work inside; all are gone when it ends."""
    from deniable.compute.progress import listening

    with _bars() as shown:
        task, current = None, ""

        def listen(stage: str, done: float) -> None:
            nonlocal task, current
            if task is None or stage != current:
                if task is not None:
                    shown.update(task, completed=1.0)
                task, current = shown.add_task(stage, total=1.0), stage
            shown.update(task, completed=done)

        with listening(listen):
            yield


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = [SpinnerColumn(), *Progress.get_default_columns()[:-1]]
    columns += [TimeRemainingColumn(), TimeElapsedColumn()]
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
