"""Rounds of RankBoost: made on one worker with sums of all, and repeated if a worker is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from time import perf_counter
from typing import Any

from rankcore.boosting._shared_rounds import SharedRounds, Standing
from rankcore.boosting._stump_booster import Round, Step
from rankcore.boosting._value_groups import Cuts
from rankcore.dask._actors import Node, ShardActor, Shards, WorkerLost, tree_of
from rankcore.dask._engine import failures_allowed, n_threads_of
from rankcore.dask._run import Run

# Seconds of rounds that one task makes: the client hears of them together.
TOGETHER = 1.0


def rounds_of(
    run: Run, cuts: Any, totals: tuple[float, ...], step: Step, n_rounds: int
) -> Iterator[Round]:
    """The rounds of a fit, some at a time, until there is nothing to learn.

    ``run`` has shards that are `StumpShard`, ``cuts`` is a future of `Cuts`, and ``totals`` are the
    weights before the first round. Raises RuntimeError if workers are lost again and again.
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
            if n_lost > failures_allowed():
                raise RuntimeError(
                    f"{run.name}-rounds was lost with {n_lost} workers, and no round was made "
                    f"({error}): they may be short of memory; use more shards or larger workers, "
                    "and check that workers reach each other"
                ) from error


class Group:
    """Actors that hold the shards, each those its worker has, as evenly as their threads allow."""

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
        """The shards of each worker that has any."""
        threads, homes = run.threads(), run.client.who_has(run.shards)
        most = -(-len(run.shards) // n_threads_of(run.client))
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
        """Raise `WorkerLost` if a worker is gone: no other one makes its actor again."""
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
    """Some rounds, and how things stand after them."""
    end = perf_counter() + TOGETHER
    standing = deepcopy(standing)
    made: list[Round] = []
    rounds = SharedRounds(standing, cuts, Shards(root), step, most)
    while not standing.done and len(made) < most and perf_counter() < end:
        found = rounds.round()
        if found is not None:
            made.append(found)
    return standing, made
