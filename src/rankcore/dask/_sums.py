"""One question to all shards, whose answers are joined by a tree of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rankcore.dask._run import Run

# Results of shards that are joined by one task, or by the client.
JOINED = 8


def each(run: Run, held: Sequence[Any], function: Any, what: str, *args: Any) -> list[Any]:
    """A function of what is held of each shard, and of these."""
    columns = [[one] * len(held) for one in args]
    return run.submit_all(function, held, *columns, what=run.of_shards(what))


def joined(run: Run, tasks: Sequence[Any], function: Any, what: str, most: int = 1) -> list[Any]:
    """Tasks, ``most`` of them at most, whose results are those of all these joined by a tree."""
    level = 0
    while len(tasks) > most:
        edges = [*range(0, len(tasks), JOINED), len(tasks)]
        level += 1
        tasks = [
            run.submit(function, list(tasks[a:b]), what=f"{what}-joined-{level}-{at}")
            for at, (a, b) in enumerate(pairwise(edges))
        ]
    return list(tasks)


def asked(run: Run, held: Sequence[Any], function: Any, add: Any, what: str, *args: Any) -> Any:
    """Sum of the answers of all shards; the client adds a few itself, since a task costs more."""
    tasks = each(run, held, function, what, *args)
    parts = run.gather(joined(run, tasks, add, what, JOINED))
    return parts[0] if len(parts) == 1 else add(parts)
