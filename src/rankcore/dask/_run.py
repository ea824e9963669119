"""A fit on a cluster: tasks, results, lost workers, and monitoring."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait as ended
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from numpy.typing import NDArray

from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.monitor import Callback, Monitor
from rankcore._core.sources import MemoryRows
from rankcore.dask._engine import KilledWorker, fetch, is_delayed, release
from rankcore.ordinal._validation import held_out_labels

# Number of results of shards that are joined by one task, or by the client.
JOINED = 8
# Seconds between two checks of the workers: longer than most tasks.
LOOK = 1.5
# Seconds without workers after which a fit warns.
ALONE = 30.0
# Called with the threads of each worker while results are awaited; may raise.
Look = Callable[[Mapping[str, int]], None]


@dataclass
class Run:
    """A fit on a cluster: its tasks and their names."""

    client: Any
    name: str  # of the learner, a prefix of names of tasks
    token: str  # makes names unique
    shards: list[Any] = field(default_factory=list)  # futures of `Shard`, none of them empty
    numbers: list[int] = field(default_factory=list)  # their numbers in messages
    findings: list[Any] = field(default_factory=list)  # before a learner omits shards
    form: Any = None  # a small table with the columns of X
    futures: list[Any] = field(default_factory=list)
    # Time at which the last worker was lost; infinite after the warning.
    alone_since: float | None = None

    @property
    def n_features(self) -> int:
        """Number of features, the same in all shards."""
        return int(self.findings[0].n_features)

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(finding.n_rows for finding in self.findings)

    def source(self) -> MemoryRows:
        """All shards as a single window of the trainer."""
        return MemoryRows(self.form, self, None, n_features=self.n_features)

    def submit(self, function: Any, *args: Any, what: str, **options: Any) -> Any:
        """Submit a task, kept until `drop`; options are those of `Client.submit`."""
        with warnings.catch_warnings():
            # A model is part of the graph, so that it can be recomputed if a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            future = self.client.submit(function, *args, key=self.key(what), **options)
        self.futures.append(future)
        return future

    def map(self, function: Any, *columns: Any, what: str) -> list[Any]:
        """Submit one task per shard, in one message; kept until `drop`.

        Columns are lists with an item per shard, or a value for all.
        """
        keys = [self.key(f"{what}-shard-{number}") for number in self.numbers]
        lists = [one if isinstance(one, list) else [one] * len(keys) for one in columns]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures = self.client.map(function, *lists, key=keys)
        self.futures.extend(futures)
        return list(futures)

    def each(self, function: Any, items: Sequence[Any], *args: Any, what: str) -> list[Any]:
        """Submit one task per item, with further arguments for all."""
        return [
            self.submit(function, one, *args, what=f"{what}-{at}") for at, one in enumerate(items)
        ]

    def joined(self, function: Any, tasks: Sequence[Any], what: str, most: int = 1) -> list[Any]:
        """Join the results of tasks in a tree, to at most ``most`` tasks."""
        level = 0
        while len(tasks) > most:
            level += 1
            parts = [list(tasks[at : at + JOINED]) for at in range(0, len(tasks), JOINED)]
            tasks = self.each(function, parts, what=f"{what}-joined-{level}")
        return list(tasks)

    def sum(self, add: Any, tasks: Sequence[Any], what: str) -> Any:
        """Sum of the results of tasks; the client adds a few itself, which is faster."""
        parts = self.gather(self.joined(add, tasks, what, JOINED))
        return parts[0] if len(parts) == 1 else add(parts)

    def key(self, what: str) -> str:
        """The key of a task."""
        return f"{self.name}-{what}-{self.token}"

    def gather(self, futures: Sequence[Any], look: Look | None = None) -> list[Any]:
        """Results of tasks; errors name the shard and the cause."""
        results = fetch(self.client, futures)
        while not ended([results], timeout=LOOK).done:
            self._look(look)
        with self._watched():
            return list(results.result())

    def wait(self, futures: Sequence[Any], look: Look | None = None) -> None:
        """Wait until tasks are done, and raise their errors; results stay on the workers."""
        for future in futures:
            while True:
                try:
                    error = future.exception(timeout=LOOK)
                    break
                except TimeoutError:
                    self._look(look)
            if error is not None:
                self._look(look)
                with self._watched():
                    raise error

    def threads(self) -> Mapping[str, int]:
        """The threads of each worker, once there is one."""
        while not (threads := self._look(None)):
            sleep(LOOK)
        return threads

    def drop(self, kept: Sequence[Any] = ()) -> None:
        """Release all tasks except these."""
        keep = {future.key for future in kept}
        release(future for future in self.futures if future.key not in keep)
        self.futures = [future for future in self.futures if future.key in keep]

    def _look(self, look: Look | None) -> Mapping[str, int]:
        threads: Mapping[str, int] = self.client.nthreads()
        if threads:
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = monotonic()
        elif monotonic() - self.alone_since > ALONE:
            self.alone_since = float("inf")
            warnings.warn(
                f"{self.name}: the cluster has had no workers for {ALONE:.0f} seconds. The fit "
                "continues when a worker joins; Ctrl-C ends it, as does Dask's setting "
                "distributed.scheduler.no-workers-timeout after a time",
                RuntimeWarning,
                stacklevel=2,
            )
        if look is not None:
            look(threads)
        return threads

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Convert repeated losses of workers to an error that names the task."""
        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"{error.task} was lost with {error.allowed_failures + 1} workers, the last "
                f"{error.last_worker.address}: they may be short of memory; use more shards or "
                "larger workers"
            ) from error


@dataclass(frozen=True)
class Watching:
    """Arguments of ``fit`` for monitoring, as in memory, with held-out rows at the client."""

    eval_set: Any
    eval_qid: Any
    callbacks: Iterable[Callback] | None

    def watch(self, model: Any, fitted: Any, form: Any, in_queries: bool) -> Monitor:
        """Monitor of a model fitted to rows with the columns of ``form``."""
        self._check()
        sets = self.eval_set, None, None, self.eval_qid, None
        held_out = model._validation(form, fitted.n_features_in_, in_queries, sets)
        return Monitor(fitted, held_out, self.callbacks)

    def watch_labels(self, model: Any, fitted: Any, classes: NDArray[Any]) -> Monitor:
        """Monitor of an ordinal learner."""
        self._check()
        sets = as_eval_sets(self.eval_set, None, None, {})
        rows, metrics = fitted._more_rows, model.eval_metric
        held_out = held_out_labels(sets, rows, classes, metrics)
        return Monitor(fitted, held_out, self.callbacks)

    def _check(self) -> None:
        sets = self.eval_set if isinstance(self.eval_set, list) else [self.eval_set]
        for one in sets:
            parts = one if isinstance(one, tuple) else ()
            if any(isinstance(part, list) and any(map(is_delayed, part)) for part in parts):
                raise TypeError(
                    "eval_set must be arrays at the client; found delayed blocks: compute "
                    "them first"
                )
