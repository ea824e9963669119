"""What is used of Dask, which is an extra."""

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

__all__ = ["Client", "KilledWorker", "delayed", "get_client", "n_threads_of"]

delayed: Any = _delayed  # without types


def n_threads_of(client: Any) -> int:
    """Threads of all workers of a client, at least 1."""
    return max(1, sum(client.nthreads().values()))
