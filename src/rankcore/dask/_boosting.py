"""Boosting on shards: RankBoost and BipartiteRankBoost with trees or stumps, and OrdinalBoost.

Shards become parts of rows with an objective (`pairs_of`, `ranks_of`), which actors on the workers
bin. The client runs the rounds of `rankcore.boosting.worker_rounds` from the sums of these actors;
if a worker is lost, `SurvivingRounds` makes new ones and repeats the round.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.labels import as_relevance, encode
from rankcore._core.numbers import Floats
from rankcore._core.queries import warn_without_qid
from rankcore.boosting.bipartite import BipartiteRankBoost
from rankcore.boosting.worker_rounds import (
    HeldOutTables,
    OrdinalRoundLearner,
    RoundLearner,
    WorkerRounds,
    occurring_ranks,
    pair_rounds,
    rank_rounds,
    split_constraints,
    train_rounds,
)
from rankcore.boosting.worker_rows import (
    BinnedRows,
    Part,
    bin_edges,
    pair_part,
    rank_part,
    value_groups,
)
from rankcore.dask._actors import Actors, WorkerLost
from rankcore.dask._cluster import Shards
from rankcore.dask._estimators import Watching
from rankcore.dask._online import weigh_rows
from rankcore.dask._shards import Shard, ShardedRows, check_supported, join_labels
from rankcore.ranking.pairs import nothing_to_learn

# Workers that may be lost in one round.
MAX_LOST = 10


class SurvivingRounds:
    """Rounds on actors, which continue if a worker is lost. A context manager.

    The shards of a lost worker are loaded again, with the scores of the model of all rounds that
    ended, and the round is repeated.
    """

    def __init__(self, shards: Shards, rounds: WorkerRounds) -> None:
        self._shards, self._rounds = shards, rounds
        self._actors: Actors | None = None
        self.n_exchanges = 0  # calls of all actors, by which they are measured

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def __iter__(self) -> Iterator[Any]:
        """Yield the statistics of each round, until none improves the model."""
        while not self._rounds.done and (statistics := self._round()) is not None:
            yield statistics

    def go_back(self, model: Any) -> None:
        """Replace the model by that of the best round, after the last one."""
        self._rounds.model = model

    def _round(self) -> Any:
        for _ in range(MAX_LOST):
            try:
                if self._actors is None:
                    self._begin()
                return self._rounds.round()
            except WorkerLost as error:
                lost = error
                self._release()
        raise RuntimeError(
            f"a round lost a worker {MAX_LOST} times ({lost}): workers may be short of memory; use "
            "more or larger workers"
        ) from lost

    def _begin(self) -> None:
        """Bin the rows of all shards, with the scores of the model."""
        rows: Any = self._rounds.rows
        self._actors = Actors(
            self._shards, BinnedRows, self._rounds.model, rows.bins, rows.growth, rows.draws
        )
        rows.restart(self._actors)
        self._rounds.begin()

    def _release(self) -> None:
        if self._actors is not None:
            self.n_exchanges += self._actors.n_calls
            self._actors.release()
            self._actors = None


def fit_pairs(model: Any, rows: ShardedRows, watching: Watching) -> Any:
    """Return a fitted copy of a `RankBoost` or `BipartiteRankBoost`."""
    check_boosted(model)
    check_supported(model, select=("edge",))
    labels = np.unique(join_labels([part.labels for part in rows.stats]))
    upper = upper_label(model, as_relevance(labels, labels.size))
    by_label = not rows.in_queries and upper is not None and model.pair_weight is None
    if not rows.in_queries and not by_label and len(rows.shards) > 1:
        raise ValueError(
            f"without qid all rows belong to one query, divided among {len(rows.shards)} shards: "
            f"that requires two different labels, and no pair_weight; got {labels.size} labels: "
            "pass qid, or n_shards=1"
        )
    bipartite = isinstance(model, BipartiteRankBoost)
    if not bipartite and not rows.in_queries and len(rows.shards) == 1:
        warn_without_qid()  # one query that is divided among shards cannot be declared
    learner = copy(model)
    learner._categories = None
    fitted = learner._begin(rows.form, rows.n_features, rows.largest_query)
    monitor = watching.of_queries(fitted, rows)
    rows.shards.transform(
        pairs_of,
        rows.shards.numbers,
        upper=upper if bipartite or by_label else None,
        by_label=by_label,
        balanced=model.balance == "query",
        mean=rows.mean_weight,
        kind=model.pair_weight,
    )
    sizes = sizes_of(rows.shards)
    if not (sizes[2] * sizes[3] if by_label else sizes[1]):
        raise nothing_to_learn()
    edges = bin_edges(rows.shards.stream(value_groups), model)
    rounds = pair_rounds(fitted, edges, by_label, sizes)
    with SurvivingRounds(rows.shards, rounds) as surviving:
        learning = RoundLearner(fitted, iter(surviving), fitted.n_estimators_)
        train_rounds(learning, rows.source(), monitor)
    return fitted


def fit_ranks(model: Any, rows: ShardedRows, watching: Watching, *, classes: Any) -> Any:
    """Return a fitted copy of an `OrdinalBoost`."""
    check_boosted(model)
    check_supported(model, loss=("absolute", "zero_one", "squared"))
    ranks = rows.ranks(model, classes)
    weigh_rows(model.class_weight, rows, ranks, visits=False)
    counts = np.sum(rows.shards.gather(rank_counts, ranks=ranks), axis=0)
    learner = copy(model)
    learner._categories = None
    every = np.arange(ranks.size, dtype=np.int32)
    state = learner._begin_state(rows.n_features, every, ranks, counts)
    fitted = learner._fitted_copy(rows.form, rows.n_features, state, ranks_=ranks)
    monitor = watching.of_labels(fitted, HeldOutTables)
    occurring = occurring_ranks(fitted, every[counts > 0])
    monotone = split_constraints(fitted, rows.form).signs is not None
    shards = rows.shards
    shards.transform(ranks_of, shards.numbers, ranks=ranks, occurring=occurring, monotone=monotone)
    n_docs, *_ = sizes_of(rows.shards)
    edges = bin_edges(rows.shards.stream(value_groups), model)
    rounds = rank_rounds(fitted, edges, occurring, n_docs, float(counts.sum()))
    with SurvivingRounds(rows.shards, rounds) as surviving:
        watched = watching.callbacks is not None
        learning: Any = OrdinalRoundLearner(fitted, surviving, watched)  # type: ignore[arg-type]
        train_rounds(learning, rows.source(), monitor)
        fitted.costs_ = learning.costs()
    return fitted


def check_boosted(model: Any) -> None:
    """Raise ValueError for parameters that a fit on shards does not support."""
    check_supported(model, warm_start=(False,))
    if model.max_bins is None:
        raise ValueError("a fit on shards requires max_bins; got None")
    categorical = model.categorical_features
    if not (categorical is None or isinstance(categorical, str)):
        raise ValueError(
            "a fit on shards takes numbers only, and requires categorical_features=None; "
            f"got {categorical!r}: replace these columns by numbers whose order has a meaning, "
            "such as one of 0 and 1 for each category, or fit in memory"
        )


def upper_label(model: Any, labels: NDArray[Any]) -> float | None:
    """Return the minimum label of relevant documents, if labels are of two kinds."""
    if isinstance(model, BipartiteRankBoost):
        if model.rel is not None:
            return float(model.rel)
        return float(labels[1]) if labels.size > 1 else inf
    return float(labels[1]) if labels.size == 2 else None


def sizes_of(shards: Shards) -> list[int]:
    """Return the sums of the sizes of parts, and drop shards without rows to learn from."""
    sizes = np.array(shards.gather(part_sizes))
    shards.keep((sizes[:, 0] > 0).tolist())
    return [int(size) for size in sizes.sum(axis=0)]


# ------------------------------------------------------------------------------ tasks


def pairs_of(shard: Shard, number: int, upper: float | None, **settings: Any) -> Part:
    """Form the pairs of a shard; labels of at least ``upper`` are relevant."""
    labels = as_relevance(shard.y, shard.y.size)
    if upper is not None:
        labels = (labels >= upper).astype(np.float64)
    part = pair_part(shard.X, labels, shard.qid, shard.weights, **settings)
    return replace(part, number=number)


def ranks_of(shard: Shard, number: int, ranks: Any, **settings: Any) -> Part:
    """Take the ranks of a shard."""
    part = rank_part(shard.X, encode(shard.y, ranks), shard.weights, **settings)
    return replace(part, number=number)


def part_sizes(part: Part) -> tuple[int, ...]:
    """Return the numbers of rows and pairs of a part, and of its rows by label."""
    return part.sizes


def rank_counts(shard: Shard, ranks: Any) -> Floats:
    """Return the weight of the rows of each rank."""
    return np.bincount(encode(shard.y, ranks), shard.weights, ranks.size).astype(np.float64)
