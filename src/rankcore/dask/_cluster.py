"""Tasks on the shards of a fit, submitted through the public interface of a Dask client.

A shard is a future. Dask computes it again from its source if its worker is lost, and with it the
tasks that need it, so that a loop over ``gather`` continues where it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import Any, Self

from rankcore._core.params import check_count

try:
    import dask
    import distributed
    from distributed import Client as Client
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankcore.dask requires {error.name}: pip install 'rankcore[dask]'", name=error.name
    ) from error

# Without types.
_dask: Any = dask
_distributed: Any = distributed
delayed, is_dask_collection = _dask.delayed, _dask.is_dask_collection
as_completed, wait = _distributed.as_completed, _distributed.wait


def client_of(client: Any) -> Any:
    """Return the given or the current client."""
    if client is None:
        return distributed.get_client()
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a distributed.Client; got {client!r}: pass one, as in "
            'client=distributed.Client("tcp://127.0.0.1:8786")'
        )
    return client


def count_shards(n_shards: Any, client: Any) -> int:
    """Return a checked number of shards; by default one per thread of the workers."""
    if n_shards is None:
        return max(1, sum(client.nthreads().values()))
    check_count(n_shards, "n_shards")
    return int(n_shards)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Prefix errors of rows with the name of their shard or block."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what}: {error}") from error


class Shards:
    """Futures of shards, released when the block ends. A context manager.

    Errors of tasks name the shard by its number, that of its first blocks in the collection.
    """

    def __init__(self, client: Any, name: str, shards: Sequence[Any]) -> None:
        self.client, self._name = client, name
        self.numbers = list(range(len(shards)))
        self._held: list[Any] = list(client.compute(list(shards)))

    def __len__(self) -> int:
        return len(self._held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        release(self._held)  # tracebacks of errors may keep references to futures

    @property
    def futures(self) -> list[Any]:
        """The futures of all shards."""
        return self._held

    def gather(self, function: Any, *columns: Sequence[Any], **common: Any) -> list[Any]:
        """Return ``function(shard, *items, **common)`` of each; columns have one item per shard."""
        tasks = self._submit(function, columns, common)
        try:
            return list(self.client.gather(tasks))
        finally:
            release(tasks)

    def stream(self, function: Any) -> Iterator[Any]:
        """Yield ``function(shard)`` for each shard, in the order in which they end."""
        tasks = self._submit(function, (), {})
        try:
            for future, result in as_completed(tasks, with_results=True):
                future.release()
                yield result
        finally:
            release(tasks)

    def transform(self, function: Any, *columns: Sequence[Any], **common: Any) -> None:
        """Replace each shard by the result of a function of it, which stays on its worker."""
        before, self._held = self._held, self._submit(function, columns, common)
        release(before)

    def keep(self, kept: Sequence[bool]) -> None:
        """Drop some shards."""
        release(future for future, stays in zip(self._held, kept, strict=True) if not stays)
        self._held = [*compress(self._held, kept)]
        self.numbers = [*compress(self.numbers, kept)]

    @contextmanager
    def sent(self, value: Any) -> Iterator[Any]:
        """Send a value to the workers once; yield a future for tasks.

        The value is a part of the graph, so that it survives a worker, as `Client.scatter` does
        not.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            future = self.client.submit(identity, value, key=None, pure=False)
        try:
            yield future
        finally:
            release([future])

    def _submit(self, function: Any, columns: Iterable[Any], common: Any) -> list[Any]:
        name = f"{self._name}-{function.__name__.strip('_')}"
        return list(
            self.client.map(
                on_shard,
                self._held,
                self.numbers,
                *columns,
                key=name,
                pure=False,
                function=function,
                **common,
            )
        )


def release(futures: Iterable[Any]) -> None:
    """Release futures, so that Dask cancels and forgets their tasks."""
    for future in futures:
        future.release()


# ------------------------------------------------------------------------------ tasks


def identity(value: Any) -> Any:
    """Return a value."""
    return value


def on_shard(shard: Any, number: int, *items: Any, function: Any, **common: Any) -> Any:
    """Call a function of a shard; errors name the shard."""
    with naming(f"shard {number}"):
        return function(shard, *items, **common)
