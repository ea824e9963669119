"""Rounds of RankBoost on shards held by Dask actors, with sums along a tree of workers.

Dask's scheduler takes milliseconds per task, too long for a round. An actor keeps the shards of its
worker, calls the actors below it and adds their sums to its own. Calls use Dask's connections
between workers, with the security of the cluster. One task makes several rounds; they are repeated
if a worker is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from time import perf_counter
from typing import Any, NamedTuple

from rankcore.boosting._given_bins import Cuts
from rankcore.boosting._shared_rounds import SharedRounds, Standing
from rankcore.boosting._stump_booster import Round, Step
from rankcore.boosting._stump_shard import Move, StumpShard, Sums, added
from rankcore.dask import _engine
from rankcore.dask._run import Run

# Number of actors that one actor calls.
BELOW = 4
# Seconds to connect to another worker; Dask's default is half a minute.
CONNECTED = 5.0
# Seconds of rounds in one task, which the client receives together.
TOGETHER = 1.0


class WorkerLost(RuntimeError):
    """A worker with some of the shards is lost or not reachable."""


class Node(NamedTuple):
    """An actor: its worker, its key, and the actors below it."""

    address: str
    key: str
    below: tuple[Node, ...]


class Question(NamedTuple):
    """A method of `StumpShard`, all moves from number ``start``, and other arguments.

    Pickled as a whole by Dask, which would send each item of a list with a header and a frame.
    """

    method: str
    start: int
    moves: Sequence[Move]
    args: tuple[Any, ...]


def tree_of(actors: Sequence[tuple[str, str]], at: int = 0) -> Node:
    """Addresses and keys as a tree with the first one as the root."""
    below = range(BELOW * at + 1, min(len(actors), BELOW * at + BELOW + 1))
    return Node(*actors[at], tuple(tree_of(actors, k) for k in below))


class ShardActor:
    """The shards of a worker, for `distributed.Client.submit` with ``actor=True``."""

    def __init__(self, shards: Sequence[StumpShard], below: tuple[Node, ...]) -> None:
        self._worker: Any = _engine.get_worker()
        # Copies with the same bins, but with their own weights and sums: an actor from before the
        # loss of a worker may still be running.
        self._shards = [copy(shard) for shard in shards]
        self._below, self._moves = below, list[Move]()
        self._pool = ThreadPoolExecutor(min(self._worker.state.nthreads, len(shards)))
        self._lock = asyncio.Lock()

    # A coroutine: Dask runs other methods of all actors of a worker in one thread, where concurrent
    # fits would deadlock.
    async def answer(self, question: Question) -> Sums:
        """Sums of these shards and of all below."""
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
    """Answer of an actor on another worker."""
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
    """All shards, for a task on the root's worker, as `SharedRounds` requires them."""

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


def rounds_of(
    run: Run, cuts: Any, totals: tuple[float, ...], step: Step, n_rounds: int
) -> Iterator[Round]:
    """Yield the rounds of a fit, several at a time, until no round improves the model.

    ``run`` has shards that are `StumpShard`, ``cuts`` is a future of `Cuts`, and ``totals`` are the
    initial weights. Raises RuntimeError if workers are lost repeatedly.
    """
    standing, n_made, n_asked, n_groups, n_lost = Standing(totals), 0, 0, 0, 0
    while not standing.done and n_made < n_rounds:
        run.drop([*run.shards, cuts])
        try:
            n_groups += 1
            group = Group(run, n_groups)
            while not standing.done and n_made < n_rounds:
                n_asked += 1
                args = group.root, cuts, standing, step, n_rounds - n_made
                first = [group.root.address]
                task = run.submit(make_rounds, *args, what=f"rounds-{n_asked}", workers=first)
                ((standing, made),) = run.gather([task], group.check)
                run.drop([*run.shards, cuts, *group.actors])
                n_made, n_lost = n_made + len(made), 0
                yield from made
        except WorkerLost as error:
            n_lost += 1
            if n_lost > _engine.failures_allowed():
                raise RuntimeError(
                    f"{run.name}-rounds was lost with {n_lost} workers, and no round was made "
                    f"({error}): they may be short of memory; use more shards or larger workers, "
                    "and check that workers can connect"
                ) from error


class Group:
    """Actors that hold the shards of their workers, balanced by their threads."""

    def __init__(self, run: Run, group: int) -> None:
        run.wait(run.shards)
        shards = self._divided(run)
        keys = [f"actor-{group}-{number}" for number in range(len(shards))]
        self.root = tree_of(list(zip(shards, map(run.key, keys), strict=True)))
        self._nodes = {node.key: node for node in _nodes(self.root)}
        self.actors = [
            run.submit(
                ShardActor,
                some,
                self._nodes[run.key(what)].below,
                what=what,
                workers=[address],
                actor=True,
            )
            for what, (address, some) in zip(keys, shards.items(), strict=True)
        ]
        run.wait(self.actors, self.check)

    def _divided(self, run: Run) -> dict[str, list[Any]]:
        """Shards of each worker with any."""
        threads, homes = run.threads(), run.client.who_has(run.shards)
        most = -(-len(run.shards) // _engine.n_threads_of(run.client))
        ours: dict[str, list[Any]] = {address: [] for address in sorted(threads)}
        elsewhere = []
        for shard in run.shards:
            address = next(iter(homes.get(shard.key, ())), None)
            if address in ours and len(ours[address]) < most * threads[address]:
                ours[address].append(shard)
            else:
                elsewhere.append(shard)
        for shard in elsewhere:
            ours[min(ours, key=lambda one: len(ours[one]) / threads[one])].append(shard)
        return {address: some for address, some in ours.items() if some}

    def check(self, threads: Mapping[str, int]) -> None:
        """Raise `WorkerLost` if a worker is lost, as its actor is not recreated."""
        gone = {node.address for node in self._nodes.values()} - set(threads)
        if gone:
            raise WorkerLost(f"{min(gone)} is gone")


def _nodes(root: Node) -> Iterator[Node]:
    yield root
    for one in root.below:
        yield from _nodes(one)


# ------------------------------------------------------------------------------ a task


def make_rounds(
    root: Node, cuts: Cuts, standing: Standing, step: Step, most: int
) -> tuple[Standing, list[Round]]:
    """Make some rounds; return them and the state after them."""
    end = perf_counter() + TOGETHER
    standing = deepcopy(standing)
    made: list[Round] = []
    rounds = SharedRounds(standing, cuts, Shards(root), step, most)
    while not standing.done and len(made) < most and perf_counter() < end:
        found = rounds.round()
        if found is not None:
            made.append(found)
    return standing, made
