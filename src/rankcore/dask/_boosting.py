"""Boosting on shards: RankBoost and BipartiteRankBoost with trees or stumps, and OrdinalBoost.

Shards become parts of rows with an objective (`pairs_of`, `ranks_of`), which actors on the workers
bin. The client runs the rounds of `rankcore.boosting.worker_rounds` from the sums of these actors;
if a worker is lost, `ActorRounds` makes new ones and repeats the round.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
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
from rankcore.dask._blocks import Shard, cluster
from rankcore.dask._estimators import FitArguments, check_supported
from rankcore.dask._shards import Shards
from rankcore.ranking.pairs import nothing_to_learn

# Workers that may be lost in one round.
MAX_LOST = 10
# Seconds after which a client looks whether a worker without an answer is still there.
LOOK = 5.0


class WorkerLost(Exception):
    """A worker with some of the rows is lost."""


class ActorRounds:
    """Rounds on actors, one for the shards of each worker. A context manager.

    Calls of an actor take milliseconds less than tasks. Dask does not make an actor again whose
    worker is lost: new ones are made of the shards, which Dask computes again, with the scores of
    the model of all rounds that ended, and the round is repeated.
    """

    def __init__(self, shards: Shards, rounds: WorkerRounds) -> None:
        self._shards, self._rounds, self._client = shards, rounds, shards.client
        self._futures, self._actors = list[Any](), list[Any]()
        self.n_calls = 0  # exchanges with all actors

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

    def call(self, method: str, *args: Any) -> list[Any]:
        """Return the results of a method of `BinnedRows` of all workers."""
        self.n_calls += 1
        with self._noticing_losses():
            answers = [getattr(actor, method)(*args) for actor in self._actors]
            return [answer.result() for answer in answers]

    def _round(self) -> Any:
        for _ in range(MAX_LOST):
            try:
                if not self._actors:
                    self._start()
                return self._rounds.round()
            except WorkerLost as error:
                lost = error
                self._release()
        raise RuntimeError(
            f"a round lost a worker {MAX_LOST} times ({lost}): workers may be short of memory; use "
            "more or larger workers"
        ) from lost

    def _start(self) -> None:
        """Make actors, which bin the rows of all shards, and begin the next round."""
        client, futures = self._client, self._shards.futures
        rows: Any = self._rounds.rows
        cluster.wait(futures)
        for future in futures:
            if future.status == "error":
                future.result()  # raises
        workers, threads = client.who_has(futures), client.nthreads()
        by_address: dict[str, list[Any]] = {}
        for future in futures:
            address = min(workers.get(future.key) or [""])
            by_address.setdefault(address, []).append(future)
        if "" in by_address:
            raise WorkerLost("a worker was lost before its rows were binned")
        made_of = self._rounds.model, rows.bins, rows.growth, rows.draws
        self._futures = [
            client.submit(
                BinnedRows,
                held,
                *made_of,
                threads.get(address, 1),
                workers=[address],
                actor=True,
                pure=False,
            )
            for address, held in by_address.items()
        ]
        with self._noticing_losses():
            started = zip(self._futures, by_address, strict=True)
            self._actors = [self._started(future, address) for future, address in started]
        rows.restart(self)
        self._rounds.begin()

    def _started(self, future: Any, address: str) -> Any:
        """Wait for an actor; raise `WorkerLost` if its worker was lost before."""
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                if address not in self._client.nthreads():
                    raise WorkerLost(f"{address} was lost before its rows were binned") from None

    @contextmanager
    def _noticing_losses(self) -> Iterator[None]:
        """Raise `WorkerLost` for the errors of Dask if a worker is lost."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            there = all(future.status in ("pending", "finished") for future in self._futures)
            if there and not isinstance(error, OSError):
                raise
            raise WorkerLost(f"a worker with some of the rows was lost: {error}") from error

    def _release(self) -> None:
        """Drop the actors, which tracebacks of errors may refer to."""
        self._client.cancel(self._futures)
        self._futures, self._actors = [], []


def fit_pairs(model: Any, shards: Shards, given: FitArguments) -> Any:
    """Return a fitted copy of a `RankBoost` or `BipartiteRankBoost`."""
    check_boosted(model)
    check_supported(model, classes=(None,), select=("edge",))
    labels = shards.grades()
    upper = upper_label(model, as_relevance(labels, labels.size))
    by_label = not shards.in_queries and upper is not None and model.pair_weight is None
    n_shards = len(shards.futures)
    if not shards.in_queries and not by_label and n_shards > 1:
        raise ValueError(
            f"without qid all rows belong to one query, divided among {n_shards} shards: "
            f"that requires two different labels, and no pair_weight; got {labels.size} labels: "
            "pass qid, or n_shards=1"
        )
    bipartite = isinstance(model, BipartiteRankBoost)
    if not bipartite and not shards.in_queries and n_shards == 1:
        warn_without_qid()  # one query that is divided among shards cannot be declared
    learner = copy(model)
    learner._categories = None
    fitted = learner._begin(shards.form, shards.n_features, shards.largest_query)
    monitor = given.monitor_of_queries(fitted, shards)
    shards.transform(
        pairs_of,
        shards.numbers,
        upper=upper if bipartite or by_label else None,
        by_label=by_label,
        balanced=model.balance == "query",
        mean=shards.mean_weight,
        kind=model.pair_weight,
    )
    sizes = sizes_of(shards)
    if not (sizes[2] * sizes[3] if by_label else sizes[1]):
        raise nothing_to_learn()
    edges = bin_edges(shards.stream(value_groups), model)
    rounds = pair_rounds(fitted, edges, by_label, sizes)
    with ActorRounds(shards, rounds) as on_actors:
        learning = RoundLearner(fitted, iter(on_actors), fitted.n_estimators_)
        train_rounds(learning, shards.source(), monitor)
    return fitted


def fit_ranks(model: Any, shards: Shards, given: FitArguments) -> Any:
    """Return a fitted copy of an `OrdinalBoost`."""
    check_boosted(model)
    check_supported(model, loss=("absolute", "zero_one", "squared"))
    ranks = shards.ranks(model, given.classes)
    shards.weigh(model.class_weight, ranks, "factors")
    counts = np.sum(shards.gather(rank_counts, ranks=ranks), axis=0)
    learner = copy(model)
    learner._categories = None
    every = np.arange(ranks.size, dtype=np.int32)
    state = learner._begin_state(shards.n_features, every, ranks, counts)
    fitted = learner._fitted_copy(shards.form, shards.n_features, state, ranks_=ranks)
    monitor = given.monitor_of_labels(fitted, HeldOutTables)
    occurring = occurring_ranks(fitted, every[counts > 0])
    monotone = split_constraints(fitted, shards.form).signs is not None
    shards.transform(ranks_of, shards.numbers, ranks=ranks, occurring=occurring, monotone=monotone)
    n_docs, *_ = sizes_of(shards)
    edges = bin_edges(shards.stream(value_groups), model)
    rounds = rank_rounds(fitted, edges, occurring, n_docs, float(counts.sum()))
    with ActorRounds(shards, rounds) as on_actors:
        watched = given.callbacks is not None
        made: Any = on_actors
        learning: Any = OrdinalRoundLearner(fitted, made, occurring, watched)
        train_rounds(learning, shards.source(), monitor)
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
    return pair_part(shard.X, labels, shard.qid, shard.weights, number=number, **settings)


def ranks_of(shard: Shard, number: int, ranks: Any, **settings: Any) -> Part:
    """Take the ranks of a shard."""
    places = encode(shard.y, ranks)
    return rank_part(shard.X, places, shard.weights, number=number, **settings)


def part_sizes(part: Part) -> tuple[int, ...]:
    """Return the numbers of rows and pairs of a part, and of its rows by label."""
    return part.sizes


def rank_counts(shard: Shard, ranks: Any) -> Floats:
    """Return the weight of the rows of each rank."""
    return np.bincount(encode(shard.y, ranks), shard.weights, ranks.size).astype(np.float64)
