"""Shards on the workers: tasks by the public interface of a Dask client, and statistics.

A shard is a future. Dask computes it again from its source if its worker is lost, and with it the
tasks that need it, so that a loop over ``gather`` continues where it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.ids import joined
from rankcore._core.inputs import as_rows
from rankcore._core.labels import (
    are_words,
    check_ascent,
    declared_labels,
    encode,
    ranks_among,
)
from rankcore._core.queries import group_rows
from rankcore._core.sources import MemoryRows
from rankcore._core.standardization import Moments
from rankcore.dask._blocks import Shard, check_alike, cluster, join_labels, naming
from rankcore.ordinal.weights import WeightFacts, weights_of_classes


@dataclass(frozen=True)
class ShardStats:
    """Statistics of a shard."""

    first: Shard  # its first row
    n_rows: int
    labels: NDArray[Any]  # distinct, ascending
    counts: NDArray[np.int64]  # number of rows of each label
    queries: NDArray[Any]  # distinct ids
    largest_query: int  # number of its rows
    weights: WeightFacts | None


class Shards:
    """Rows of a fit on the workers. A context manager, which releases them when it ends.

    Errors of tasks name the shard by its number, that of its first blocks in the collection.
    """

    def __init__(self, client: Any, name: str, delayed_shards: Sequence[Any]) -> None:
        self.client, self._name = client, name
        self.numbers = list(range(len(delayed_shards)))
        self.futures: list[Any] = list(client.compute(list(delayed_shards)))
        self.stats: list[ShardStats] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        release(self.futures)  # tracebacks of errors may keep references to futures

    # ------------------------------------------------------------------------ tasks

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
            for future, result in cluster.as_completed(tasks, with_results=True):
                future.release()
                yield result
        finally:
            release(tasks)

    def transform(self, function: Any, *columns: Sequence[Any], **common: Any) -> None:
        """Replace each shard by the result of a function of it, which stays on its worker."""
        before, self.futures = self.futures, self._submit(function, columns, common)
        release(before)

    def keep(self, kept: Sequence[bool]) -> None:
        """Drop some shards."""
        release(future for future, stays in zip(self.futures, kept, strict=True) if not stays)
        self.futures = [*compress(self.futures, kept)]
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
        tasks = (on_shard, self.futures, self.numbers, *columns)
        return list(self.client.map(*tasks, key=name, pure=False, function=function, **common))

    # ------------------------------------------------------------------------ statistics

    def describe(self, nan: bool) -> None:
        """Collect statistics and drop empty shards; raise ValueError if shards do not agree."""
        found = self.gather(shard_stats, nan=nan)
        self.keep([part is not None for part in found])
        self.stats = [part for part in found if part is not None]
        if not self.stats:
            raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
        check_alike([part.first.forms() for part in self.stats])
        self._check_queries()
        if not self.mean_weight:
            raise ValueError("sample_weight must not be all zero")

    def _check_queries(self) -> None:
        """Raise ValueError if a query has rows in two shards."""
        queries = [part.queries for part in self.stats]
        if not self.in_queries:
            return
        ids, shards = joined(queries, "qid"), np.repeat(self.numbers, [*map(len, queries)])
        order = np.argsort(ids, kind="stable")
        twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
        if twice.size:
            first, second = order[twice[0]], order[twice[0] + 1]
            raise ValueError(
                f"query {ids[first]} has rows in shards {shards[first]} and {shards[second]}, and "
                f"a query must be whole in one ({twice.size} are not): divide blocks between "
                "queries, or group the rows of a dask dataframe, as by frame.shuffle('qid')"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(part.n_rows for part in self.stats)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.stats[0].first.X.shape[1])

    @property
    def form(self) -> Any:
        """A small table with the columns of X."""
        names = self.stats[0].first.names
        if names is None:
            return np.broadcast_to(0.0, (1, self.n_features))
        import pandas as pd

        return pd.DataFrame(np.zeros((1, self.n_features)), columns=names)

    @property
    def in_queries(self) -> bool:
        """Whether rows have query ids."""
        return self.stats[0].first.qid is not None

    @property
    def largest_query(self) -> int:
        """Number of rows of the largest query; 0 without query ids."""
        return max(part.largest_query for part in self.stats) if self.in_queries else 0

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.stats[0].weights is not None

    @property
    def mean_weight(self) -> float:
        """Mean of the positive weights of all rows, 0 if there are none; 1 without weights."""
        of_shards = [part.weights for part in self.stats if part.weights is not None]
        if not of_shards:
            return 1.0
        facts = WeightFacts.together(of_shards)
        return float(facts.total / max(facts.n_weighted, 1))

    def ranks(self, model: Any, classes: Any) -> NDArray[Any]:
        """Return all labels, lowest rank first: as declared, or those that occur."""
        order, declared = self.stats[0].first.order, declared_labels(model, classes)
        return ranks_among(self._labels(), order, declared, type(model).__name__)

    def grades(self) -> NDArray[Any]:
        """Return the distinct labels of a ranker; raise ValueError unless they are numbers."""
        labels = self._labels()
        if are_words(labels):
            raise ValueError(
                f"rankers on shards require labels that are numbers; got words such as "
                f"{labels[0]!r}: number them, higher for better, as by y.map({{'poor': 0, 'good': "
                "1}) or, of an ordered categorical, y.cat.codes"
            )
        check_ascent(self.stats[0].first.order)
        return labels

    def _labels(self) -> NDArray[Any]:
        """Return the distinct labels, ascending."""
        return np.unique(join_labels([part.labels for part in self.stats]))

    def moments(self, mean: float) -> Moments:
        """Return the moments of all rows, with weights divided by ``mean``."""
        total = Moments(self.n_features)
        for more in self.gather(shard_moments, mean=mean):
            total.combine(more)
        return total

    def weigh(
        self,
        class_weight: Any,
        ranks: NDArray[Any],
        meaning: Literal["visits", "factors", "shares"],
    ) -> None:
        """Multiply the weights of rows by those of their classes, with means over all shards."""
        if class_weight is None and not self.weighted:
            return
        of_classes = None
        if class_weight is not None:
            counts = np.zeros(ranks.size, dtype=np.int64)
            for part in self.stats:
                counts[encode(part.labels, ranks)] += part.counts
            of_classes = weights_of_classes(class_weight, counts, ranks)
        of_shards = self.gather(weight_facts, of_classes=of_classes, ranks=ranks)
        facts = WeightFacts.together(of_shards)
        divisor = facts.divisor(meaning)
        self.keep([part.largest > 0 for part in of_shards])
        equal = facts.all_weigh(divisor)
        self.transform(weigh, of_classes=of_classes, ranks=ranks, divisor=divisor, drop=equal)

    def source(self) -> MemoryRows:
        """Return a source with one window, which stands for the rows of all shards."""
        return MemoryRows(self.form, self, None, n_features=self.n_features)


def release(futures: Iterable[Any]) -> None:
    """Release futures, so that Dask cancels and forgets their tasks."""
    for future in futures:
        future.release()


# ------------------------------------------------------------------------------ on a worker


def identity(value: Any) -> Any:
    """Return a value."""
    return value


def on_shard(shard: Any, number: int, *items: Any, function: Any, **common: Any) -> Any:
    """Call a function of a shard; errors name the shard."""
    with naming(f"shard {number}"):
        return function(shard, *items, **common)


def shard_stats(shard: Shard | None, nan: bool) -> ShardStats | None:
    """Check the values of a shard, and return its statistics; None if it is empty."""
    if shard is None:
        return None
    n_rows = as_rows(shard.X, nan=nan).n_rows
    labels, counts = np.unique(shard.y, return_counts=True)
    queries = group_rows(shard.qid, n_rows)
    return ShardStats(
        shard.take(np.arange(1)),
        n_rows,
        labels,
        counts,
        np.unique(queries.ids),
        queries.largest,
        None if shard.weights is None else WeightFacts.of(shard.weights),
    )


def shard_moments(shard: Shard, mean: float) -> Moments:
    """Return the weighted moments of a shard, with weights divided by ``mean``."""
    weights = None if shard.weights is None else shard.weights / mean
    return Moments(shard.X.shape[1]).add(as_rows(shard.X), weights)


def row_weights(shard: Shard, of_classes: Any, ranks: Any) -> NDArray[np.float64]:
    """Return the weights of rows times those of their classes."""
    weights = np.ones(shard.y.size) if shard.weights is None else shard.weights
    return weights if of_classes is None else weights * of_classes[encode(shard.y, ranks)]


def weight_facts(shard: Shard, of_classes: Any, ranks: Any) -> WeightFacts:
    """Summarise the weights of a shard."""
    return WeightFacts.of(row_weights(shard, of_classes, ranks))


def weigh(shard: Shard, of_classes: Any, ranks: Any, divisor: float, drop: bool) -> Shard:
    """Set the weights of rows, or none if all of them are equal."""
    weights = None if drop else row_weights(shard, of_classes, ranks) / divisor
    return replace(shard, weights=weights)
