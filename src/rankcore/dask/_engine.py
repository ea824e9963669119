"""What is used of Dask, which is an extra."""

from collections.abc import Iterable
from typing import Any

try:
    from dask.delayed import delayed as _delayed
    from distributed import Client, KilledWorker, get_client
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankcore.dask needs {error.name}: pip install 'rankcore[dask]'", name=error.name
    ) from error

__all__ = [
    "Client",
    "KilledWorker",
    "delayed",
    "get_client",
    "n_threads_of",
    "n_workers_of",
    "release",
]

delayed: Any = _delayed  # without types


def n_threads_of(client: Any) -> int:
    """Threads of all workers of a client, at least 1."""
    return max(1, sum(client.nthreads().values()))


def n_workers_of(client: Any) -> int:
    """Workers of a client, at least 1."""
    return max(1, len(client.nthreads()))


def release(futures: Iterable[Any]) -> None:
    """Want nothing of these any more: what nobody wants is cancelled and forgotten.

    ``Client.cancel`` would do so by force, and fails in the scheduler if a task between two of them
    is wanted by nobody.
    """
    for future in futures:
        future.release()
