"""Progress with time left, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], total: int, label: str, size: Callable[[T], int]) -> Iterator[T]:
    """The items as they come, each moving the bar by its size."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), *Progress.get_default_columns()[:-1], TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        for item in items:
            yield item
            progress.advance(task, size(item))
