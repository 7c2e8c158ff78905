"""Test that ranges of rows are worked on by shared threads, in order and without deadlock."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from deniable.kernels.chunks import over_threads

RANGES = [(i, i + 1) for i in range(8)]
TIMEOUT_SECONDS = 60


def squares(threads: int = 2) -> list[int]:
    return over_threads(lambda start, stop: start * start, RANGES, threads)


def test_results_are_in_order_and_errors_arrive() -> None:
    assert squares() == squares(1) == [i * i for i in range(8)]
    with pytest.raises(ZeroDivisionError):
        over_threads(lambda start, stop: 1 // start, RANGES, 2)
    assert squares() == squares(1), "the threads go on after an error"


def test_threads_are_used_again_and_work_at_the_same_time() -> None:
    both = threading.Barrier(2)

    def meet(start: int, stop: int) -> str:
        both.wait(TIMEOUT_SECONDS)
        return threading.current_thread().name

    first, again = (set(over_threads(meet, RANGES[:2], 2)) for _ in range(2))
    assert len(first) == 2 and first == again


def test_work_that_calls_threads_again_does_not_wait_for_itself() -> None:
    inner: list[list[list[int]]] = []
    caller = threading.Thread(
        target=lambda: inner.append(over_threads(lambda start, stop: squares(), RANGES, 2)),
        daemon=True,
    )
    caller.start()
    caller.join(TIMEOUT_SECONDS)
    assert inner == [[squares(1)] * len(RANGES)]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    squares()
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    child = fork.Process(target=lambda: answers.put(squares()), daemon=True)
    child.start()
    child.join(TIMEOUT_SECONDS)
    assert child.exitcode == 0 and answers.get() == squares(1)
    child.close()
