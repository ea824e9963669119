"""Actors that hold the binned rows of their workers for boosting, called all at once.

`Actors` makes one on each worker that has shards of a fit. `Actors.call` calls a method of all of
them and waits for their results: an exchange. Only Dask's documented interface is used.
"""

from __future__ import annotations

from typing import Any

from rankcore.dask._cluster import Shards, wait

# Seconds after which a client looks whether a worker without an answer is still there.
LOOK = 5.0


class WorkerLost(RuntimeError):
    """A worker with some of the rows is lost."""


class Actors:
    """One actor on each worker, made from the worker's shards.

    Calls of an actor take milliseconds less than tasks. Dask does not make an actor again whose
    worker is lost: then `WorkerLost` is raised, and new ones are made of the shards, which Dask
    computes again.
    """

    def __init__(self, shards: Shards, kind: Any, *args: Any) -> None:
        client = self._client = shards.client
        wait(shards.futures)
        for future in shards.futures:
            if future.status == "error":
                future.result()  # raises
        by_address: dict[str, list[Any]] = {}
        workers_of = client.who_has(shards.futures)
        for future in shards.futures:
            if not workers_of.get(future.key):
                raise WorkerLost("a worker was lost before its rows were binned")
            by_address.setdefault(sorted(workers_of[future.key])[0], []).append(future)
        threads = client.nthreads()
        self._futures = [
            client.submit(
                kind,
                futures,
                *args,
                threads.get(address, 1),
                workers=[address],
                actor=True,
                pure=False,
            )
            for address, futures in by_address.items()
        ]
        self.n_calls, self._actors = 0, list[Any]()
        try:
            started = zip(self._futures, by_address, strict=True)
            self._actors = self._checked(
                lambda: [self._started(future, address) for future, address in started]
            )
        except BaseException:
            self.release()
            raise

    def call(self, method: str, *args: Any) -> list[Any]:
        """Return the results of a method of all actors."""
        self.n_calls += 1

        def run() -> list[Any]:
            answers = [getattr(actor, method)(*args) for actor in self._actors]
            return [answer.result() for answer in answers]

        return self._checked(run)

    def release(self) -> None:
        """Drop the actors."""
        self._actors = []
        # An actor refers to its future itself, as long as a traceback refers to the actor.
        self._client.cancel(self._futures)

    def _started(self, future: Any, address: str) -> Any:
        """Wait for an actor; raise `WorkerLost` if its worker was lost before."""
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                if address not in self._client.nthreads():
                    raise WorkerLost(f"{address} was lost before its rows were binned") from None

    def _checked(self, run: Any) -> list[Any]:
        try:
            return list(run())
        except WorkerLost:
            raise
        except (OSError, RuntimeError) as error:
            lost = [
                future for future in self._futures if future.status not in ("pending", "finished")
            ]
            if not lost and not isinstance(error, OSError):
                raise
            raise WorkerLost(f"a worker with some of the rows was lost: {error}") from error
