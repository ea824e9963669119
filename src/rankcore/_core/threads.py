"""How many threads ``n_jobs`` asks for."""

from __future__ import annotations

from numbers import Integral
from typing import Any


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
