"""Imports from Dask, which is an extra."""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from rankcore._core.params import check_count

try:
    import dask
    import distributed
    from dask.base import is_dask_collection
    from distributed import Client as Client
    from distributed import KilledWorker as KilledWorker
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankcore.dask requires {error.name}: pip install 'rankcore[dask]'", name=error.name
    ) from error

# Without types.
_dask: Any = dask
_protocol: Any = distributed.protocol
delayed, get_worker = _dask.delayed, distributed.get_worker
to_serialize, is_delayed = _protocol.to_serialize, is_dask_collection


def engine_of(client: Any) -> Any:
    """Given or current client; raise TypeError if it is not a client."""
    if client is None:
        return distributed.get_client()
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a distributed.Client; found {client!r}: pass one, as in "
            'client=distributed.Client("tcp://127.0.0.1:8786")'
        )
    return client


def n_threads_of(client: Any) -> int:
    """Threads of all workers of a client, at least 1."""
    return max(1, sum(client.nthreads().values()))


def count_of(value: Any, name: str, client: Any) -> int:
    """Validated number of shards or blocks; by default one per thread."""
    if value is None:
        return n_threads_of(client)
    check_count(value, name)
    return int(value)


def n_workers_of(client: Any) -> int:
    """Workers of a client, at least 1."""
    return max(1, len(client.nthreads()))


def fetch(client: Any, futures: Sequence[Any]) -> Future[Any]:
    """Results of tasks as an awaitable, which ends when the tasks are released."""
    results = client.gather(list(futures), asynchronous=True)
    return asyncio.run_coroutine_threadsafe(results, client.loop.asyncio_loop)


def failures_allowed() -> int:
    """Number of lost workers after which a task fails."""
    return int(dask.config.get("distributed.scheduler.allowed-failures"))


def release(futures: Iterable[Any]) -> None:
    """Release these futures, so that Dask cancels and forgets them.

    ``Client.cancel`` would force this, and fails in the scheduler if an intermediate task is not
    requested by a client.
    """
    for future in futures:
        future.release()
