"""What is used of Dask, which is an extra."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

try:
    import dask
    from dask.base import is_dask_collection as is_delayed
    from dask.delayed import delayed as _delayed
    from distributed import Client, KilledWorker, comm, get_client, get_worker, protocol
    from distributed import wait as _wait
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankcore.dask needs {error.name}: pip install 'rankcore[dask]'", name=error.name
    ) from error

__all__ = [
    "Client",
    "KilledWorker",
    "connect",
    "delayed",
    "failures_allowed",
    "fetch",
    "get_client",
    "get_worker",
    "is_delayed",
    "listen",
    "n_threads_of",
    "n_workers_of",
    "release",
    "to_serialize",
    "wait",
]

# Seconds to reach a worker.
REACHED = 5.0

# Without types.
delayed: Any = _delayed
_comm: Any = comm
_protocol: Any = protocol


def n_threads_of(client: Any) -> int:
    """Threads of all workers of a client, at least 1."""
    return max(1, sum(client.nthreads().values()))


def n_workers_of(client: Any) -> int:
    """Workers of a client, at least 1."""
    return max(1, len(client.nthreads()))


async def connect(address: str, security: Any) -> Any:
    """A connection between workers, of which the other is listening already."""
    args = security.get_connection_args("worker")
    # By default Dask would try for half a minute to reach one that is gone, and has no limit for
    # what is agreed on afterwards.
    return await asyncio.wait_for(_comm.connect(address, timeout=REACHED, **args), REACHED)


async def listen(worker: Any, serve: Any) -> tuple[Any, str]:
    """Listen for other workers at any free port of one; also the address that they connect to."""
    scheme, _ = _comm.parse_address(worker.address)
    args = worker.security.get_listen_args("worker")
    if scheme == "inproc":
        listener = await _comm.listen("inproc://", serve, **args)
        return listener, listener.contact_address
    # Others may know the host by another name than it has for itself.
    host = _comm.get_address_host(worker.listen_address)
    at = _comm.unparse_address(scheme, _comm.unparse_host_port(host, 0))
    listener = await _comm.listen(at, serve, **args)
    _, port = _comm.get_address_host_port(listener.listen_address)
    known = _comm.unparse_host_port(_comm.get_address_host(worker.address), port)
    return listener, _comm.unparse_address(scheme, known)


def to_serialize(value: Any) -> Any:
    """A value within a message, which Dask sends as it sends data."""
    return _protocol.to_serialize(value)


def wait(futures: Collection[Any]) -> None:
    """Wait for tasks, whatever becomes of them."""
    _wait(list(futures))  # type: ignore[no-untyped-call]


def fetch(client: Any, futures: Sequence[Any]) -> Future[Any]:
    """Results of tasks, to wait for as long as one likes; it ends when the tasks are released."""
    results = client.gather(list(futures), asynchronous=True)
    return asyncio.run_coroutine_threadsafe(results, client.loop.asyncio_loop)


def failures_allowed() -> int:
    """Workers that a task may be lost with."""
    return int(dask.config.get("distributed.scheduler.allowed-failures"))


def release(futures: Iterable[Any]) -> None:
    """Want nothing of these any more: what nobody wants is cancelled and forgotten.

    ``Client.cancel`` would do so by force, and fails in the scheduler if a task between two of them
    is wanted by nobody.
    """
    for future in futures:
        future.release()
