"""Shards that workers hold, and questions from worker to worker.

Dask's scheduler takes milliseconds for a task, which a round of RankBoost cannot wait for. Here one
worker asks others, which ask others in turn and add up what they hear, over connections of Dask's
kind and security that the scheduler has no part in. What a worker holds is the result of a task: it
goes when nobody wants it any more.
"""

from __future__ import annotations

import asyncio
import pickle
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from threading import Thread
from typing import Any, NamedTuple

from rankcore.boosting._stump_shard import Move, StumpShard, Sums, added
from rankcore.dask import _engine

# Workers that one worker asks.
ASKED = 4


class Lost(RuntimeError):
    """A worker with some of the shards is gone."""


class Unreached(Lost):
    """A worker with some of the shards cannot be connected to."""


class Tree(NamedTuple):
    """Where a worker listens, and the workers that it asks."""

    address: str
    below: tuple[Tree, ...]


class Question(NamedTuple):
    """A method of `StumpShard`, the moves from a number on, and its other arguments."""

    method: str
    start: int
    moves: Sequence[Move]
    args: tuple[Any, ...]


class Held:
    """The shards of a worker, which answer whoever connects, outside Dask's task slots.

    Parameters
    ----------
    shards : list of StumpShard
    n_threads : int
        That look at them.
    """

    def __init__(self, shards: Sequence[StumpShard], n_threads: int) -> None:
        self._shards = list(shards)
        self._n_threads = min(n_threads, len(self._shards))
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        return {"_shards": self._shards, "_n_threads": self._n_threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pool = ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else None
        self.address = ""

    def answer(self, method: str, moves: Sequence[Move], args: tuple[Any, ...]) -> list[Sums]:
        """What each of the shards answers."""

        def ask(shard: StumpShard) -> Sums:
            sums: Sums = getattr(shard, method)(moves, *args)
            return sums

        return list((map if self._pool is None else self._pool.map)(ask, self._shards))

    def listen(self, worker: Any) -> None:
        """Answer from a thread of their own, for as long as this object is there."""
        started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        args = started, worker, _serving(weakref.ref(self), worker.security)
        Thread(target=asyncio.run, args=(_listen(*args),), daemon=True).start()
        self.address, loop, ended = started.result()
        weakref.finalize(self, loop.call_soon_threadsafe, ended.set)


def hold(shards: Sequence[StumpShard]) -> Held:
    """A task: hold shards on this worker."""
    worker = _engine.get_worker()
    # Copies, of the same bins but of weights and sums of their own: those who held the shards
    # before a worker was lost may not be done yet.
    held = Held([copy(shard) for shard in shards], worker.state.nthreads)
    held.listen(worker)
    return held


def address_of(held: Held) -> str:
    """A task: where a worker listens; empty if what it held has been moved."""
    return held.address


def tree_of(addresses: Sequence[str], at: int = 0) -> Tree:
    """The first asks all others, by way of some of them."""
    below = range(ASKED * at + 1, min(len(addresses), ASKED * at + ASKED + 1))
    return Tree(addresses[at], tuple(tree_of(addresses, k) for k in below))


class Shards:
    """All shards, for a task on the worker that is the first of the tree: `Answers`.

    Parameters
    ----------
    held : Held
        Of this worker.
    tree : Tree
    """

    def __init__(self, held: Held, tree: Tree) -> None:
        self._held, self._below, self._runner = held, Below(), asyncio.Runner()
        try:
            self._runner.run(self._below.connect(tree, _engine.get_worker().security))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections, as the workers below then do."""
        self._below.close()
        self._runner.close()

    def look(self, moves: Sequence[Move], exponents: tuple[int, ...], by_bin: bool) -> Sums:
        """As `StumpShard.look`."""
        return self._ask("look", moves, (exponents, by_bin))

    def measure(self, moves: Sequence[Move], stump: Move, exponents: tuple[int, ...]) -> Sums:
        """As `StumpShard.measure`."""
        return self._ask("measure", moves, (stump, exponents))

    def _ask(self, method: str, moves: Sequence[Move], args: tuple[Any, ...]) -> Sums:
        self._runner.run(self._below.ask(method, moves, args))
        parts = self._held.answer(method, moves, args)
        return added(parts + self._runner.run(self._below.hear()))


class Below:
    """Connections to the workers that one worker asks."""

    def __init__(self) -> None:
        self._comms: list[Any] = []
        self._n_sent = 0

    async def connect(self, tree: Tree, security: Any) -> None:
        """Connect, and say whom these workers are to ask."""
        for one in tree.below:
            try:
                self._comms.append(await _engine.connect(one.address, security))
                await self._comms[-1].write(pickle.dumps(one))
            except OSError as error:
                raise Unreached(f"{one.address} does not answer: {error}") from error

    def close(self) -> None:
        """End the connections."""
        for comm in self._comms:
            comm.abort()

    async def ask(self, method: str, moves: Sequence[Move], args: tuple[Any, ...]) -> None:
        """Send a question."""
        question = Question(method, self._n_sent, list(moves[self._n_sent :]), args)
        sent = pickle.dumps(question)
        self._n_sent = len(moves)
        for comm in self._comms:
            try:
                await comm.write(sent)
            except OSError as error:
                raise Lost(f"{comm.peer_address} is gone: {error}") from error

    async def hear(self) -> list[Sums]:
        """The answers."""
        return list(await asyncio.gather(*map(self._hear_one, self._comms)))

    async def _hear_one(self, comm: Any) -> Sums:
        try:
            answer = await comm.read()
        except OSError as error:
            raise Lost(f"{comm.peer_address} is gone: {error}") from error
        if "error" in answer:
            raise pickle.loads(answer["error"])
        return Sums(tuple(answer["totals"]), tuple(answer["bins"]), answer["in_range"])


# ------------------------------------------------------------------------------ workers below


async def _listen(
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]], worker: Any, serve: Any
) -> None:
    ended = asyncio.Event()
    try:
        listener, address = await _engine.listen(worker, serve)
    except BaseException as error:  # raised where the start is awaited
        started.set_exception(error)
        return
    started.set_result((address, asyncio.get_running_loop(), ended))
    await ended.wait()
    listener.stop()


def _serving(held: weakref.ref[Held], security: Any) -> Any:
    """What answers a connection."""

    async def serve(comm: Any) -> None:
        below = Below()
        try:
            with suppress(OSError):  # the worker above is done, or gone
                try:
                    await below.connect(pickle.loads(await comm.read()), security)
                    moves: list[Move] = []
                    while True:
                        question: Question = pickle.loads(await comm.read())
                        moves[question.start :] = question.moves
                        await comm.write(await answer(below, question.method, moves, question.args))
                except OSError:
                    raise
                except Exception as error:  # raised where the answer is awaited
                    await comm.write({"error": _pickled(error)})
        finally:
            below.close()
            comm.abort()

    async def answer(
        below: Below, method: str, moves: Sequence[Move], args: tuple[Any, ...]
    ) -> dict[str, Any]:
        here = held()
        if here is None:
            raise Lost("a worker has lost its shards")
        await below.ask(method, moves, args)
        sums = added(here.answer(method, moves, args) + await below.hear())
        return {
            "totals": list(sums.totals),
            "bins": [_engine.to_serialize(one) for one in sums.bins],
            "in_range": sums.in_range,
        }

    return serve


def _pickled(error: Exception) -> bytes:
    try:
        return pickle.dumps(error)
    except Exception:  # whatever its attributes are
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
