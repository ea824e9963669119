"""Numbers of threads from ``n_jobs``, and short work in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from numbers import Integral
from typing import Any, TypeVar

from rankcore._ext.held_signals import raise_signals, signals_held

Item = TypeVar("Item")
# Items per thread between two checks for signals.
_AT_ONCE = 4


def check_n_jobs(n_jobs: Any, name: str = "n_jobs") -> None:
    """Raise ValueError unless ``n_jobs`` is None, positive or negative."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"{name} must be None, positive or negative; found {n_jobs!r}. None is one thread, -1 "
            "one per processor"
        )


def n_threads(n_jobs: Any) -> int:
    """Number of threads for ``n_jobs``, as in joblib: None is 1, -1 one per processor."""
    check_n_jobs(n_jobs)
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def shared_out(
    pool: ThreadPoolExecutor, run: Callable[..., Any], *items: Iterable[Any]
) -> list[Any]:
    """Results of a function for each item, in order; for a few milliseconds of work.

    The calling thread takes the first item, which avoids waiting for a wake-up. Signals are
    deferred until all are done: a handler that raises inside the pool could leave a lock held, and
    so deadlock the process.
    """
    with signals_held():
        first, *others = zip(*items, strict=True)
        running = [pool.submit(run, *item) for item in others]
        try:
            result = run(*first)
        finally:
            wait(running)  # they write where the caller reads
        return [result, *(one.result() for one in running)]


def for_each(run: Callable[[Item], Any], items: Sequence[Item], n_jobs: int) -> None:
    """Run a function for each item in threads, and handle pending signals in between.

    The function releases the GIL, for a few milliseconds of work.
    """
    n_jobs = min(n_jobs, len(items))
    if n_jobs <= 1:
        for item in items:
            raise_signals()
            run(item)
        return
    with signals_held(), ThreadPoolExecutor(n_jobs) as pool:
        for first in range(0, len(items), _AT_ONCE * n_jobs):
            raise_signals()
            list(pool.map(run, items[first : first + _AT_ONCE * n_jobs]))


def end_threads(pool: ThreadPoolExecutor | None) -> None:
    """Shut down a thread pool, if there is one."""
    if pool is not None:
        with signals_held():
            pool.shutdown()
