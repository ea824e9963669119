"""One question to all shards, whose answers are joined by a tree of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rankcore.dask._mixing import Run

# Results of shards that are joined by one task, or by the client.
JOINED = 8


def each(run: Run, held: Sequence[Any], function: Any, what: str) -> list[Any]:
    """A function of what is held of each shard."""
    return [
        run.submit(function, one, what=f"{what}-shard-{number}")
        for one, number in zip(held, run.numbers, strict=True)
    ]


def joined(run: Run, tasks: Sequence[Any], function: Any, what: str) -> Any:
    """One task whose result is that of all these, joined by a tree of tasks."""
    level = 0
    while len(tasks) > 1:
        edges = [*range(0, len(tasks), JOINED), len(tasks)]
        level += 1
        tasks = [
            run.submit(function, list(tasks[a:b]), what=f"{what}-joined-{level}-{at}")
            for at, (a, b) in enumerate(pairwise(edges))
        ]
    return tasks[0]
