"""Shards that Dask's actors hold, and sums that go from worker to worker.

Dask's scheduler takes milliseconds for a task, which a round of RankBoost cannot wait for. An actor
keeps the shards of its worker, calls the actors below it and adds their sums to its own. Calls are
Dask's: they use the connections between its workers, with the security of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple

from rankcore.boosting._stump_shard import Move, StumpShard, Sums, added
from rankcore.dask import _engine

# Actors that one actor calls.
BELOW = 4
# Seconds to connect to another worker; by default Dask tries for half a minute.
CONNECTED = 5.0


class WorkerLost(RuntimeError):
    """A worker with some of the shards is gone, or cannot be reached."""


class Node(NamedTuple):
    """An actor: its worker, its key, and the actors below it."""

    address: str
    key: str
    below: tuple[Node, ...]


class Question(NamedTuple):
    """A method of `StumpShard`, all moves from number ``start`` on, and its other arguments.

    Dask pickles it whole: of lists it makes a header and a frame for each item.
    """

    method: str
    start: int
    moves: Sequence[Move]
    args: tuple[Any, ...]


def tree_of(actors: Sequence[tuple[str, str]], at: int = 0) -> Node:
    """Addresses and keys as a tree, of which the first is the root."""
    below = range(BELOW * at + 1, min(len(actors), BELOW * at + BELOW + 1))
    return Node(*actors[at], tuple(tree_of(actors, k) for k in below))


class ShardActor:
    """The shards of a worker, for `distributed.Client.submit` with ``actor=True``."""

    def __init__(self, shards: Sequence[StumpShard], below: tuple[Node, ...]) -> None:
        self._worker: Any = _engine.get_worker()
        # Copies, of the same bins but of weights and sums of their own: an actor of the time before
        # a worker was lost may still be at work.
        self._shards = [copy(shard) for shard in shards]
        self._below, self._moves = below, list[Move]()
        self._pool = ThreadPoolExecutor(min(self._worker.state.nthreads, len(shards)))
        self._lock = asyncio.Lock()

    # A coroutine: Dask has one thread for all other methods of a worker's actors, where fits that
    # run at once would wait for each other for ever.
    async def answer(self, question: Question) -> Sums:
        """The sums of these shards and of all below."""
        method, start, moves, args = question
        async with self._lock:  # shards overwrite their sums
            if start > len(self._moves):
                raise WorkerLost(f"{self._worker.address} does not have the first {start} moves")
            self._moves[start:] = moves
            run = asyncio.get_running_loop().run_in_executor
            there = [_ask(self._worker, one, question) for one in self._below]
            here = [
                run(self._pool, getattr(shard, method), self._moves, *args)
                for shard in self._shards
            ]
            return added(await asyncio.gather(*there, *here))


async def _ask(worker: Any, node: Node, question: Question) -> Sums:
    """The answer of an actor on another worker."""
    try:
        comm = await asyncio.wait_for(worker.rpc.connect(node.address), CONNECTED)
        worker.rpc.reuse(node.address, comm)
        found = await worker.rpc(node.address).actor_execute(
            actor=node.key, function="answer", args=[_engine.to_serialize(question)]
        )
    except OSError as error:
        raise WorkerLost(f"{node.address} does not answer: {error!r}") from error
    except KeyError as error:
        raise WorkerLost(f"{node.address} has lost its shards") from error
    if found["status"] != "OK":
        raise found["exception"]
    sums: Sums = found["result"]
    return sums


class Shards:
    """All shards, for a task on the worker of the root: the `Answers` of `rankcore.boosting`."""

    def __init__(self, root: Node) -> None:
        self._worker: Any = _engine.get_worker()
        actors: Any = self._worker.state.actors
        self._actor: ShardActor | None = actors.get(root.key)
        self._n_sent = 0

    def look(self, moves: Sequence[Move], exponents: tuple[int, ...], by_bin: bool) -> Sums:
        """As `StumpShard.look`."""
        return self._ask("look", moves, exponents, by_bin)

    def measure(self, moves: Sequence[Move], stump: Move, exponents: tuple[int, ...]) -> Sums:
        """As `StumpShard.measure`."""
        return self._ask("measure", moves, stump, exponents)

    def _ask(self, method: str, moves: Sequence[Move], *args: Any) -> Sums:
        if self._actor is None:
            raise WorkerLost(f"{self._worker.address} has lost its shards")
        start, self._n_sent = self._n_sent, len(moves)
        answer = self._actor.answer(Question(method, start, list(moves[start:]), args))
        loop = self._worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(answer, loop).result()
