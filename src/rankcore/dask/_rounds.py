"""Rounds of RankBoost: made on one worker, which asks the others; begun again where one is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import wait as ended
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rankcore.boosting._shared_rounds import Round, SharedRounds, Standing
from rankcore.boosting._value_groups import Cuts
from rankcore.dask._engine import failures_allowed, fetch, n_threads_of, wait
from rankcore.dask._held import (
    Held,
    Lost,
    Shards,
    Tree,
    Unreached,
    address_of,
    hold,
    tree_of,
)
from rankcore.dask._mixing import Run

# Seconds of rounds that one task makes: the client hears of them together.
TOGETHER = 1.0
# Seconds between two looks at whether all workers are there: longer than a task without trouble.
LOOK = 1.5


@dataclass(frozen=True)
class Step:
    """How long steps are: as for `SharedRounds`."""

    step: str
    smoothing: float
    rate: float


def rounds_of(
    run: Run, cuts: Any, totals: tuple[float, ...], step: Step, n_rounds: int
) -> Iterator[Round]:
    """The rounds of a fit, some at a time, until there is nothing to learn.

    Parameters
    ----------
    run : Run
        Its shards are `StumpShard`.
    cuts : Future
        Of `Cuts`.
    totals : tuple of float
        Of the weights before the first round.
    step : Step
    n_rounds : int
        At most.

    Raises
    ------
    RuntimeError
        If workers are lost again and again, and no round is made.
    """
    standing, n_made, n_asked, n_groups, n_lost = Standing(totals), 0, 0, 0, 0
    while not standing.done and n_made < n_rounds:
        run.drop([*run.shards, cuts])
        try:
            n_groups += 1
            group = Group(run, n_groups)
            while not standing.done and n_made < n_rounds:
                n_asked += 1
                task = run.submit(
                    make_rounds,
                    group.first,
                    group.tree,
                    cuts,
                    standing,
                    step,
                    n_rounds - n_made,
                    what=f"rounds-{n_asked}",
                    workers=[group.addresses[0]],
                )
                (found,) = group.gather([task])
                run.drop([*run.shards, cuts, *group.held])
                if isinstance(found, Lost):
                    raise found
                standing, made = found
                n_made, n_lost = n_made + len(made), 0
                yield from made
        except Lost as error:
            n_lost += 1
            if n_lost > failures_allowed():
                why = "they may be short of memory; use more shards or larger workers"
                if isinstance(error, Unreached):
                    why = "workers must reach each other at any free port"
                raise RuntimeError(
                    f"{run.name}-rounds was lost with {n_lost} workers, and no round was made "
                    f"({error}): {why}"
                ) from error


class Group:
    """The workers that hold the shards, each of those it has, as evenly as their threads allow."""

    def __init__(self, run: Run, group: int) -> None:
        self._run = run
        wait(run.shards)
        run.gather([one for one in run.shards if one.status == "error"])
        self.addresses, shards = self._divided()
        self.held = [
            run.submit(hold, some, what=f"held-{group}-{number}", workers=[address])
            for number, (address, some) in enumerate(zip(self.addresses, shards, strict=True))
        ]
        asked = [
            run.submit(address_of, one, what=f"address-{group}-{number}", workers=[address])
            for number, (address, one) in enumerate(zip(self.addresses, self.held, strict=True))
        ]
        listening = self.gather(asked)
        if not all(listening):
            raise Lost("shards were moved to another worker")
        self.first, self.tree = self.held[0], tree_of(listening)

    def _divided(self) -> tuple[list[str], list[list[Any]]]:
        """Workers, and the shards of each."""
        client = self._run.client
        threads, homes = client.nthreads(), client.who_has(self._run.shards)
        if not threads:
            raise Lost("there are no workers")
        most = -(-len(self._run.shards) // n_threads_of(client))
        ours: dict[str, list[Any]] = {address: [] for address in sorted(threads)}
        elsewhere = []
        for shard in self._run.shards:
            address = next(iter(homes.get(shard.key, ())), None)
            if address in ours and len(ours[address]) < most * threads[address]:
                ours[address].append(shard)
            else:
                elsewhere.append(shard)
        for shard in elsewhere:
            ours[min(ours, key=lambda one: len(ours[one]) / threads[one])].append(shard)
        used = {address: some for address, some in ours.items() if some}
        return list(used), list(used.values())

    def gather(self, tasks: Sequence[Any]) -> list[Any]:
        """Results of tasks on these workers; raise `Lost` if one of these is gone.

        No other worker makes them again: not even a task that is done has a result for certain, for
        its worker may go before the result is fetched.
        """
        results = fetch(self._run.client, tasks)
        while not ended([results], timeout=LOOK).done:
            gone = set(self.addresses) - set(self._run.client.nthreads())
            if gone:
                raise Lost(f"{min(gone)} is gone")
        with self._run.watched():
            return list(results.result())


# ------------------------------------------------------------------------------ a task


def make_rounds(
    held: Held, tree: Tree, cuts: Cuts, standing: Standing, step: Step, most: int
) -> tuple[Standing, list[Round]] | Lost:
    """Some rounds, and how things stand after them.

    That a worker is lost is a result: an error would keep what is held here with its traceback.
    """
    end = perf_counter() + TOGETHER
    standing = deepcopy(standing)
    made: list[Round] = []
    try:
        with closing(Shards(held, tree)) as shards:
            rounds = SharedRounds(
                standing, cuts, shards, step=step.step, smoothing=step.smoothing, rate=step.rate
            )
            while not standing.done and len(made) < most and perf_counter() < end:
                found = rounds.round(len(made) + 1 == most)
                if found is not None:
                    made.append(found)
    except Lost as error:
        return type(error)(str(error))
    return standing, made
