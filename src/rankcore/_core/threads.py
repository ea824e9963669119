"""Numbers of threads from ``n_jobs``, and short work in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Self, TypeVar

from threadpoolctl import ThreadpoolController

from rankcore._core.params import N_JOBS

Item = TypeVar("Item")


def n_threads(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``, as in joblib: None is 1, -1 one per CPU."""
    N_JOBS.check(n_jobs, "n_jobs")
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class Threads:
    """Threads for the short steps of a computation, of which the calling thread is the first.

    Functions release the GIL for a few milliseconds.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._pool = ThreadPoolExecutor(n - 1) if n > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def submit(self, run: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function in another thread."""
        assert self._pool is not None
        return self._pool.submit(run, *args)

    def map(self, run: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        """Return the results of a function for each item, in order; at most one per thread."""
        first, *others = zip(*items, strict=True)
        running = [self.submit(run, *item) for item in others]
        try:
            result = run(*first)  # avoids waiting for a wake-up
        finally:
            for future in running:
                future.exception()  # waits, as they write where the caller reads
        return [result, *(future.result() for future in running)]

    def for_each(self, run: Callable[[Item], Any], items: Sequence[Item]) -> None:
        """Run a function for each item, in whichever thread is free."""
        left = deque(items)

        def work(_: int) -> None:
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    run(item)
                except BaseException:
                    left.clear()  # no thread begins another item
                    raise

        if items:
            self.map(work, range(min(self.n, len(items))))


def for_each(run: Callable[[Item], Any], items: Sequence[Item], n_jobs: int) -> None:
    """Run a function for each item in temporary threads: see `Threads.for_each`."""
    with Threads(min(n_jobs, len(items))) as threads:
        threads.for_each(run, items)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # it searches for libraries, for most of a millisecond


_blas_is_limited = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread, at least until a block that another thread began before ends.

    The limit is mostly one of the process: if each block restored the limit that it found, one that
    began within another would restore 1 for good. So only the first one sets it, and restores it
    itself, as threadpoolctl ignores a thread while another one that set limits lives.
    """
    if not _blas_is_limited.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _blas_is_limited.release()
