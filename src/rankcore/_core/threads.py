"""How many threads ``n_jobs`` asks for, and short work that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any

from rankcore._core.concurrency import signals_held


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless a number of threads is None, positive or negative."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None, positive or negative; found {n_jobs!r}. None is one thread, -1 "
            "one per processor"
        )


def n_threads(n_jobs: Any) -> int:
    """Threads that ``n_jobs`` asks for, as joblib counts: None is 1, -1 one per processor.

    Raises
    ------
    ValueError
        As `check_n_jobs`.
    """
    check_n_jobs(n_jobs)
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def shared_out(
    pool: ThreadPoolExecutor, run: Callable[..., Any], *items: Iterable[Any]
) -> list[Any]:
    """What a function gives for each item, in turn; some milliseconds' worth of work.

    Signals wait until it is done. A handler that raises between two steps of the pool could leave
    a lock of it taken, for which the whole process would wait for ever.
    """
    with signals_held():
        return list(pool.map(run, *items))


def end_threads(pool: ThreadPoolExecutor | None) -> None:
    """End the threads of a pool, if there is one."""
    if pool is not None:
        with signals_held():
            pool.shutdown()
